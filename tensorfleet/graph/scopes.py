"""The default graph and session, and the `tf.` functions that act on them."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from tensorfleet.base.devices import DeviceLike
    from tensorfleet.base.types import FeedDict
    from tensorfleet.graph.stacks import DeviceFunction

_local = threading.local()


class SessionLike(Protocol):
    """The part of `tf.Session` that graphs use; its class is in a later folder, and scripts bring wrappers of it."""

    @property
    def graph(self) -> Graph:
        """The graph it runs."""

    def run(self, fetches: Any, feed_dict: FeedDict | None = None) -> Any:
        """Runs operations and gives the values of tensors."""


def graph_stack() -> list[Graph]:
    """The default graphs this thread has entered, innermost last."""
    stack = getattr(_local, "graphs", None)
    if stack is None:
        stack = _local.graphs = []
    return stack


@export("get_default_graph")
def get_default_graph() -> Graph:
    """The graph that new operations go to in this thread. A thread that entered none has one of its own."""
    stack = getattr(_local, "graphs", None)
    return stack[-1] if stack else _own_graph()


def _own_graph() -> Graph:
    graph = getattr(_local, "graph", None)
    if graph is None:
        graph = _local.graph = Graph()
    return graph


def outermost_graph() -> Graph:
    """The innermost default graph of this thread that is not the body of a function."""
    for graph in reversed(graph_stack()):
        if not graph.building_function:
            return graph
    return _own_graph()


@export("reset_default_graph")
def reset_default_graph() -> None:
    """Forgets this thread's default graph; a fresh one takes its place."""
    if graph_stack():
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit "
            "the nesting and create a new graph."
        )
    _local.graph = None


def session_stack() -> list[Any]:
    """The default sessions this thread has entered, innermost last."""
    stack = getattr(_local, "sessions", None)
    if stack is None:
        stack = _local.sessions = []
    return stack


@export("get_default_session")
def get_default_session() -> Any:
    """The session of the innermost `with session:` block in this thread, or None."""
    stack = session_stack()
    return stack[-1] if stack else None


class default_session:
    """Makes `session` the default inside the block. With `enforce_nesting`, blocks end in the order they began."""

    def __init__(self, session: object) -> None:
        self._session = session
        self.enforce_nesting = True

    def __enter__(self) -> Any:
        session_stack().append(self._session)
        return self._session

    def __exit__(self, *error: object) -> None:
        stack = session_stack()
        if self.enforce_nesting and stack and stack[-1] is not self._session:
            raise AssertionError(f"Nesting violated for default stack of {type(self._session)} objects")
        # Without `enforce_nesting` it may lie anywhere in the stack.
        if self._session in stack:
            stack.remove(self._session)


def session_for(session: SessionLike | None, graph: Graph, doing: str, call: str = "eval") -> SessionLike:
    """The session given, else the default one; ValueError when neither fits `graph`."""
    given = session is not None
    session = session if given else get_default_session()
    if session is None:
        raise ValueError(
            f"Cannot {doing} using `{call}()`: No default session is registered. Use `with sess.as_default()` "
            f"or pass an explicit session to `{call}(session=sess)`"
        )
    if session.graph is not graph:
        what = doing.split()[1]
        raise ValueError(
            f"Cannot use the {'given' if given else 'default'} session to {doing}: the {what}'s graph is different "
            f"from the session's graph. Pass an explicit session to `{call}(session=sess)`, one made for that graph."
        )
    return session


@export("name_scope")
class name_scope:
    """`with tf.name_scope("layer1") as scope:` groups the names of the operations made inside."""

    def __init__(self, name: str | None, default_name: str | None = None, values: object = None) -> None:
        if not (name is None or isinstance(name, str)) or not (
            default_name is None or isinstance(default_name, str)
        ):
            raise TypeError(
                "`default_name` type is not a string type. You likely meant to pass this into the `values` kwarg."
            )
        self._name = default_name if name is None else name
        self._default_name = default_name
        self._values = values
        self._given = name
        self._entered: AbstractContextManager[str] | None = None
        self._graph_entered: AbstractContextManager[Graph] | None = None

    @property
    def name(self) -> str | None:
        """The name asked for."""
        return self._name

    def __enter__(self) -> str:
        if self._name is None and self._values is not None:
            raise ValueError(
                f"At least one of name ({self._given}) and default_name ({self._default_name}) must be provided."
            )
        graph = graph_of(self._values) if self._values else get_default_graph()
        # The values may belong to another graph than the default one: names and operations go to theirs.
        self._graph_entered = graph.as_default()
        self._graph_entered.__enter__()
        self._entered = graph.name_scope(self._name)
        try:
            return self._entered.__enter__()
        except BaseException:
            self._graph_entered.__exit__(None, None, None)
            raise

    def __exit__(self, *error: Any) -> None:
        assert self._entered is not None and self._graph_entered is not None
        self._entered.__exit__(*error)
        self._graph_entered.__exit__(*error)


def graph_of(values: object) -> Graph:
    """The one graph all graph elements among `values` belong to, else the default graph."""
    default = get_default_graph()
    if default._building_function:
        return default  # tensors from around a function's body are captured
    graph: Graph | None = None
    first: Any = None
    flat = list(values) if isinstance(values, (list, tuple)) else [values]
    while flat:
        value = flat.pop(0)
        if isinstance(value, (list, tuple)):
            flat[:0] = value
            continue
        if isinstance(value, (Tensor, Operation, CompositeTensor)):
            element: Any = value
        else:
            convert = getattr(value, "_as_graph_element", None)
            element = convert() if convert else None
        if element is None:
            continue
        if graph is None:
            graph, first = element.graph, element
        elif element.graph is not graph:
            raise ValueError(f"{element} must be from the same graph as {first}. Build both in one graph.")
    return graph if graph is not None else default


@export("device")
def device(device_name_or_function: DeviceLike | DeviceFunction) -> AbstractContextManager[None]:
    """Places the operations made inside the block: a device string, a function of the op, or None."""
    return get_default_graph().device(device_name_or_function)


@export("container")
def container(container_name: str) -> AbstractContextManager[str]:
    """Keeps the state of the variables and queues made inside the block in a named container."""
    return get_default_graph().container(container_name)


@export("colocate_with")
def colocate_with(op: object, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Puts the operations made inside the block where `op` is."""
    return get_default_graph().colocate_with(op, ignore_existing)


@export("control_dependencies")
def control_dependencies(control_inputs: Iterable[object] | None) -> AbstractContextManager[None]:
    """Makes the operations created inside the block run after `control_inputs`."""
    return get_default_graph().control_dependencies(control_inputs)


@export("op_scope")
@contextmanager
def op_scope(values: object, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """The old argument order of `tf.name_scope`."""
    with name_scope(name, default_name=default_name, values=values) as scope:
        yield scope


@export("set_random_seed", "random.set_random_seed")
def set_random_seed(seed: int | None) -> None:
    """Sets the graph-level seed, from which each random op derives its own."""
    get_default_graph().seed = seed


@export("add_to_collection")
def add_to_collection(name: Hashable, value: object) -> None:
    """Appends `value` to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


@export("add_to_collections")
def add_to_collections(names: str | Iterable[Hashable], value: object) -> None:
    """Appends `value` to several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


@export("get_collection")
def get_collection(key: Hashable, scope: str | None = None) -> list[Any]:
    """A copy of a collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


@export("get_collection_ref")
def get_collection_ref(key: Hashable) -> list[Any]:
    """A collection of the default graph itself, open to changes."""
    return get_default_graph().get_collection_ref(key)


# What `tf.GraphKeys` holds; the values are what TensorFlow writes into MetaGraphs.
@export("GraphKeys")
class GraphKeys:
    """Names of the standard collections."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SAVERS = "savers"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    SAVEABLE_OBJECTS = "saveable_objects"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    GLOBAL_STEP = "global_step"
    EVAL_STEP = "eval_step"
    TRAIN_OP = "train_op"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    VARIABLES = "variables"
    _SUMMARY_COLLECTION = "_SUMMARY_V2"
