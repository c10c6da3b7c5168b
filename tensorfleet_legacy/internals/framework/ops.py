"""Small parts of `tensorflow.python.framework`: shapes, types, devices, graphs and their stacks."""

from __future__ import annotations

import abc
import itertools
import warnings
from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes, errors
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.base.naming import export, find, publish
from tensorfleet.base.shapes import Dimension, TensorShape, as_shape
from tensorfleet.graph import registry
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import (
    get_default_graph,
    graph_of,
    graph_stack,
    session_stack,
)
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue


@export("python.framework.tensor_shape.dimension")
def dimension(value: Any) -> Dimension:
    """A dimension of a size."""
    return Dimension(value)


@export("python.framework.ops._set_call_cpp_shape_fn")
def set_call_cpp_shape_fn(_: Any) -> None:
    """Does nothing: shapes are inferred here."""


@export("python.framework.ops._get_graph_from_inputs", "contrib.framework.get_graph_from_inputs")
def get_graph_from_inputs(op_input_list: Any, graph: Graph | None = None) -> Graph:
    """The graph of an operation's inputs, else the default graph; a graph that is given must be theirs."""
    values = tuple(op_input_list)
    if graph is None:
        return graph_of(values)
    if not isinstance(graph, Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    for value in values:
        if getattr(value, "graph", graph) is not graph:
            raise ValueError(f"{value} is not from the passed-in graph.")
    return graph


@export("python.framework.ops.get_all_collection_keys")
def get_all_collection_keys() -> list:
    """The names of the default graph's collections."""
    return get_default_graph().get_all_collection_keys()


class _Stack:
    """A stack of defaults, as TensorFlow's own programs look at it."""

    def __init__(self, stack: Callable[[], list]) -> None:
        self._stack = stack

    @property
    def stack(self) -> list:
        """All of this thread, the innermost last."""
        return self._stack()

    def get_default(self) -> Any:
        """The innermost, or None."""
        stack = self._stack()
        return stack[-1] if stack else None

    def reset(self) -> None:
        """Forgets all of this thread."""
        self._stack().clear()

    def is_cleared(self) -> bool:
        """Whether there is none."""
        return not self._stack()


publish(_Stack(session_stack), "python.framework.ops._default_session_stack")

publish(_Stack(graph_stack), "python.framework.ops._default_graph_stack")


@export("python.pywrap_tensorflow.TF_bfloat16_type")
def bfloat16_type() -> type:
    """The type of bfloat16 numbers in numpy."""
    return dtypes.bfloat16.as_numpy_dtype


@export("python.framework.tensor_shape.scalar")
def scalar() -> TensorShape:
    """The shape of a scalar."""
    return TensorShape([])


@export("python.framework.tensor_shape.vector")
def vector(length: Any) -> TensorShape:
    """The shape of a vector."""
    return TensorShape([length])


@export("python.framework.tensor_shape.matrix")
def matrix(rows: Any, cols: Any) -> TensorShape:
    """The shape of a matrix."""
    return TensorShape([rows, cols])


@export("python.framework.tensor_shape.unknown_shape")
def unknown_shape(rank: int | None = None, *, ndims: int | None = None) -> TensorShape:
    """A shape of which at most the rank is known."""
    known = ndims if rank is None else rank
    return TensorShape(None if known is None else [None] * known)


@export("python.framework.ops.convert_n_to_tensor")
def convert_n_to_tensor(
    values: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list:
    """Each of several values as a tensor."""
    names = [None if name is None else f"{name}_{i}" for i in range(len(values))]
    convert = find("convert_to_tensor")
    return [
        convert(v, dtype, name=n, preferred_dtype=preferred_dtype) for v, n in zip(values, names, strict=True)
    ]


@export("python.framework.ops.get_name_scope", "contrib.framework.get_name_scope")
def get_name_scope() -> str:
    """The name scope that is open now, without a slash at its end."""
    return find("get_default_graph")().get_name_scope()


_last_uid = itertools.count(1)


@export("python.framework.ops.uid")
def uid() -> int:
    """A number that no other call in this process gives."""
    return next(_last_uid)


@export("python.framework.ops.get_gradient_function")
def get_gradient_function(op: Any) -> Callable | None:
    """The gradient function of an operation; None without inputs, LookupError without a gradient."""
    if not op.inputs:
        return None
    named = op._attrs.get("_gradient_op_type")
    name = op.type if named is None else named.decode()
    if not registry.has_named_gradient(name) and not op.spec.differentiable:
        return None
    try:
        return registry.named_gradient(name)
    except LookupError:
        raise LookupError(f"gradient registry has no entry for: {name}") from None


@export("python.framework.graph_util_impl._extract_graph_summary")
def _extract_graph_summary(graph_def: Any) -> tuple[dict, dict, dict]:
    """By the name of a node: the names of its inputs, the node, its place in the list."""
    inputs, nodes, places = {}, {}, {}
    for place, node in enumerate(graph_def.node):
        nodes[node.name], places[node.name] = node, place
        inputs[node.name] = [name.removeprefix("^").partition(":")[0] for name in node.input]
    return inputs, nodes, places


@export("python.framework.graph_util_impl._bfs_for_reachable_nodes")
def _bfs_for_reachable_nodes(target_nodes: Any, name_to_input_name: dict) -> set[str]:
    """The names of all nodes that some nodes need."""
    result: set[str] = set()
    waiting = list(target_nodes)
    while waiting:
        name = waiting.pop(0)
        if name not in result:
            result.add(name)
            waiting += name_to_input_name.get(name, ())
    return result


@export("python.framework.sparse_tensor.is_sparse")
def is_sparse(x: Any) -> bool:
    """Whether something is a sparse tensor, or the value of one."""
    return isinstance(x, (SparseTensor, SparseTensorValue))


@export("python.framework.device.is_device_spec")
def is_device_spec(obj: Any) -> bool:
    """Whether something is a `DeviceSpec`."""
    return isinstance(obj, DeviceSpec)


@export("python.framework.device.check_valid")
def check_valid(spec: str) -> None:
    """ValueError for what is not the name of a device."""
    DeviceSpec.from_string(spec)


@export(
    "python.framework.errors_impl._make_specific_exception",
    "python.framework.errors._make_specific_exception",
)
def make_specific_exception(node_def: Any, op: Any, message: str, error_code: int) -> errors.OpError:
    """The exception of an error code."""
    try:
        result: errors.OpError = errors.exception_type_from_error_code(error_code)(node_def, op, message)
    except KeyError:
        warnings.warn(f"Unknown error code: {error_code}", stacklevel=2)
        result = errors.UnknownError(node_def, op, message, error_code)
    return result


@export("python.framework.ops.convert_n_to_tensor_or_indexed_slices")
def convert_n_to_tensor_or_indexed_slices(values: Any, dtype: Any = None, name: str | None = None) -> list:
    """Each of several values as a tensor; what is IndexedSlices, or None, stays as it is."""
    if not isinstance(values, (list, tuple)):
        raise TypeError("values must be a list.")
    convert = find("convert_to_tensor_or_indexed_slices")
    return [
        None if v is None else convert(v, dtype, None if name is None else f"{name}_{i}")
        for i, v in enumerate(values)
    ]


@export("python.framework.ops.internal_convert_to_tensor")
def internal_convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    **_: Any,
) -> Tensor:
    """A value as a tensor; with `as_ref`, a variable as its reference."""
    return to_tensor(value, None if dtype is None else dtypes.as_dtype(dtype), name, preferred_dtype, as_ref)


@export("python.framework.ops._TensorLike", "python.framework.tensor_like._TensorLike")
class TensorLike(abc.ABC):  # noqa: B024 - it only says what is one
    """The base of values in a graph: tensors, sparse tensors and slices; your own class may derive from it."""


for _kind in (Tensor, SparseTensor, IndexedSlices):
    TensorLike.register(_kind)


@export("python.framework.ops.is_dense_tensor_like")
def is_dense_tensor_like(t: Any) -> bool:
    """Whether something is a tensor or a variable."""
    return isinstance(t, (Tensor, find("Variable")))


@export("python.framework.ops.register_dense_tensor_like_type")
def register_dense_tensor_like_type(tensor_type: Any) -> None:
    """Checks that a type has what a tensor has: a name and a dtype."""
    for attribute in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, attribute, None), property):
            raise TypeError(f"Type {tensor_type.__name__} does not define a `{attribute}` property")


@export("python.framework.ops._run_using_default_session")
def run_using_default_session(operation: Any, feed_dict: Any, graph: Any, session: Any = None) -> None:
    """Runs an operation in a session, or in the default one."""
    operation.run(feed_dict, session)


@export("python.framework.ops._eval_using_default_session")
def eval_using_default_session(tensors: Any, feed_dict: Any, graph: Any, session: Any = None) -> Any:
    """Evaluates tensors in a session, or in the default one."""
    from tensorfleet.graph.scopes import session_for

    return session_for(session, graph, "evaluate tensor").run(tensors, feed_dict)


@export("python.framework.ops.dismantle_graph")
def dismantle_graph(graph: Any) -> None:
    """Does nothing: a graph that nobody holds is collected."""


class _Gradients:
    """The table of gradients, by op type or name."""

    def lookup(self, name: str) -> Any:
        """The gradient function of this name; LookupError if there is none."""
        try:
            return registry.named_gradient(name)
        except LookupError:
            raise LookupError(f"gradient registry has no entry for: {name}") from None

    def list(self) -> list[str]:
        """The names of all gradients."""
        known = [n for n, spec in registry.all_ops().items() if spec.gradient is not None]
        return [*known, *(n for n in registry._NAMED_GRADIENTS if n not in known)]


publish(_Gradients(), "python.framework.ops._gradient_registry", "python.framework.ops.gradient_registry")


@export("python.framework.ops.RegisterShape")
class RegisterShape:
    """Accepted for old tests: shapes are inferred by the ops themselves."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")

    def __call__(self, f: Any) -> Any:
        return f


@export("python.framework.tensor_util.ShapeEquals")
def shape_equals(tensor_proto: Any, shape: Any) -> bool:
    """Whether a `TensorProto` has a shape."""
    if not hasattr(tensor_proto, "tensor_shape"):
        raise TypeError("tensor_proto is not a tensor_pb2.TensorProto object")
    dims = as_shape(shape).as_list() if not isinstance(shape, (list, tuple)) else list(shape)
    return [d.size for d in tensor_proto.tensor_shape.dim] == [int(d) for d in dims]


@export("python.framework.tensor_util.shape_tensor")
def shape_tensor(shape: Any) -> Tensor:
    """A shape as a tensor; int32 for what holds no tensors."""
    dtype = None
    if isinstance(shape, (tuple, list)):
        if not shape:
            dtype = dtypes.int32
        elif all(isinstance(d, (int, Dimension)) for d in shape):
            dtype, shape = dtypes.int32, [int(d) for d in shape]
    return to_tensor(shape, dtype, "shape")


@export("python.framework.ops.has_default_graph")
def has_default_graph() -> bool:
    """Whether this thread is inside `with graph.as_default():`."""
    return bool(graph_stack())


@export("python.framework.ops.name_scope_v2")
class NameScope:
    """A name scope that may be entered again, each time under a name of its own."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name
        self._entered: list[Any] = []

    @property
    def name(self) -> str:
        """The name asked for."""
        return self._name

    def __enter__(self) -> str:
        scope = get_default_graph().name_scope(self._name)
        self._entered.append(scope)
        return scope.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)


@export("python.framework.c_api_util.ScopedTFStatus")
class ScopedStatus:
    """Accepted for tests that count these: errors travel as exceptions here."""

    status = None


@export("python.framework.tensor_util.maybe_set_static_shape")
def maybe_set_static_shape(tensor: Any, shape: Any) -> None:
    """Gives a tensor the static shape that a tensor of its shape tells, unless it has one."""
    if isinstance(shape, Tensor) and not tensor.shape.is_fully_defined():
        tensor.set_shape(constant_value_as_shape(shape))
