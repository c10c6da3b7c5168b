"""Helpers of the graph editor: lists of operations and tensors, name scopes, placeholders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet.ops.array.basic import placeholder

_PREFIX = "geph"


def concatenate_unique(la: list, lb: list) -> list:
    """Adds to the first list what only the second has."""
    seen = set(la)
    for element in lb:
        if element not in seen:
            la.append(element)
            seen.add(element)
    return la


class ListView:
    """A list that can only be read."""

    def __init__(self, list_: list) -> None:
        if not isinstance(list_, list):
            raise TypeError(f"Expected a list, got: {type(list_)}.")
        self._list = list_

    def __iter__(self) -> Iterator:
        return iter(self._list)

    def __len__(self) -> int:
        return len(self._list)

    def __bool__(self) -> bool:
        return bool(self._list)

    def __getitem__(self, i: Any) -> Any:
        return self._list[i]

    def __add__(self, other: Iterable) -> list:
        return list(self) + list(other)


def is_iterable(obj: Any) -> bool:
    """Whether a loop can run over it; tensors cannot."""
    if isinstance(obj, Tensor):
        return False
    try:
        iter(obj)
    except TypeError:
        return False
    return True


def flatten_tree(tree: Any, leaves: list | None = None) -> list:
    """The leaves of lists, tuples and dictionaries within each other."""
    result = [] if leaves is None else leaves
    if isinstance(tree, dict):
        tree = tree.values()
    if not is_iterable(tree):
        result.append(tree)
        return result
    for branch in tree:
        flatten_tree(branch, result)
    return result


def transform_tree(tree: Any, fn: Callable, iterable_type: Any = tuple) -> Any:
    """The same tree with `fn` of each leaf. What is no list, tuple or dict becomes an `iterable_type`."""
    if not is_iterable(tree):
        return fn(tree)
    if isinstance(tree, dict):
        result = type(tree)()
        for key, branch in tree.items():
            result[key] = transform_tree(branch, fn)
        return result
    branches = [transform_tree(branch, fn) for branch in tree]
    if hasattr(tree, "_fields"):
        return type(tree)(*branches)
    return type(tree)(branches) if isinstance(tree, (list, tuple)) else iterable_type(branches)


def check_graphs(*args: Any) -> None:
    """Refuses things of different graphs."""
    get_unique_graph([a for a in args if a is not None], none_if_empty=True)


def get_unique_graph(tops: Any, check_types: Any = None, none_if_empty: bool = False) -> Graph | None:
    """The graph that all of them are of."""
    if isinstance(tops, Graph):
        return tops
    if not is_iterable(tops):
        raise TypeError(f"{type(tops)} is not iterable")
    kinds = (Operation, Tensor) if check_types is None else check_types
    result: Graph | None = None
    for i, element in enumerate(tops):
        if not isinstance(element, kinds):
            raise TypeError(f"Expected a type in ({kinds}), got: {type(element)}")
        if result is not None and element.graph is not result:
            raise ValueError(f"Argument[{i}]: Wrong graph! All must be of one graph.")
        result = element.graph
    if result is None and not none_if_empty:
        raise ValueError("Can't find the unique graph of an empty list. Give at least one element.")
    return result


def make_list_of_op(
    ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False
) -> list[Operation]:
    """The operations of a graph, or those given, as a list."""
    return _listed(ops, Operation, Graph.get_operations, check_graph, allow_graph, ignore_ts)


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph."""
    if not isinstance(graph, Graph):
        raise TypeError(f"Expected a graph, got: {type(graph)}")
    return [t for op in graph.get_operations() for t in op.outputs]


def make_list_of_t(
    ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False
) -> list[Tensor]:
    """The tensors of a graph, or those given, as a list."""
    return _listed(ts, Tensor, get_tensors, check_graph, allow_graph, ignore_ops)


def _listed(
    given: Any, kind: type, of_graph: Callable, check_graph: bool, allow_graph: bool, ignore: bool
) -> list:
    if isinstance(given, Graph):
        if not allow_graph:
            raise TypeError("allow_graph is False: cannot convert a tf.Graph.")
        return of_graph(given)
    result = list(given) if is_iterable(given) else [given]
    if ignore:
        result = [x for x in result if isinstance(x, kind)]
    for x in result:
        if not isinstance(x, kind):
            raise TypeError(f"Expected {kind.__name__}s, got: {type(x)}")
    if check_graph:
        get_unique_graph(result, none_if_empty=True)
    return result


def get_generating_ops(ts: Any) -> list[Operation]:
    """The operations that give the tensors."""
    return [t.op for t in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> list[Operation]:
    """The operations that take the tensors, each once."""
    return list(dict.fromkeys(op for t in make_list_of_t(ts, allow_graph=False) for op in t.consumers()))


class ControlOutputs:
    """For each operation of a graph, those that wait for it."""

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
        self._graph = graph
        self._waiting: dict[Operation, list[Operation]] = {}
        self._version = -1
        self.update()

    def update(self) -> ControlOutputs:
        """Looks at the graph again, if it has grown."""
        if self._version != self._graph.version:
            self._version = self._graph.version
            self._waiting.clear()
            for op in self._graph.get_operations():
                for before in op.control_inputs:
                    self._waiting.setdefault(before, []).append(op)
        return self

    def get_all(self) -> dict[Operation, list[Operation]]:
        """All of them."""
        return self._waiting

    def get(self, op: Operation) -> list[Operation]:
        """The operations that wait for one."""
        return self._waiting.get(op, [])

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph


def scope_finalize(scope: str) -> str:
    """A scope with a slash at its end, if it is not empty."""
    return scope + "/" if scope and not scope.endswith("/") else scope


def scope_dirname(scope: str) -> str:
    """All up to the last slash, with it."""
    return scope[: scope.rfind("/") + 1]


def scope_basename(scope: str) -> str:
    """The part of a name after the last slash."""
    return scope.rpartition("/")[2]


def placeholder_name(t: Tensor | None = None, scope: str | None = None, prefix: str = _PREFIX) -> str:
    """The name of the placeholder that stands for a tensor; in `scope`, or that of the tensor if None."""
    if scope is not None:
        scope = scope_finalize(scope)
    if t is None:
        return (scope or "") + prefix
    if not isinstance(t, Tensor):
        raise TypeError(f"Expected a tf.Tensor, got: {type(t)}")
    own = scope_dirname(t.op.name) if scope is None else scope
    return f"{own}{prefix}__{scope_basename(t.op.name)}_{t.value_index}"


def make_placeholder_from_tensor(t: Tensor, scope: str | None = None, prefix: str = _PREFIX) -> Tensor:
    """A placeholder of the type and the shape of a tensor, in the default graph."""
    return placeholder(t.dtype, t.shape, placeholder_name(t, scope, prefix))


def make_placeholder_from_dtype_and_shape(
    dtype: Any, shape: Any = None, scope: str | None = None, prefix: str = _PREFIX
) -> Tensor:
    """A placeholder, in the default graph."""
    return placeholder(dtype, shape, placeholder_name(scope=scope, prefix=prefix))


def get_predefined_collection_names() -> list[str]:
    """The names of the collections that TensorFlow itself has."""
    return [getattr(GraphKeys, key) for key in dir(GraphKeys) if key.isupper()]


def find_corresponding_elem(target: Any, dst_graph: Graph, dst_scope: str = "", src_scope: str = "") -> Any:
    """The operation or tensor with the same name in another graph or scope; None when there is none."""
    src_scope, dst_scope = scope_finalize(src_scope), scope_finalize(dst_scope)
    name = target.name
    if not name.startswith(src_scope):
        raise ValueError(f"{name} does not start with {src_scope}")
    name = dst_scope + name[len(src_scope) :]
    find = dst_graph.get_tensor_by_name if isinstance(target, Tensor) else dst_graph.get_operation_by_name
    try:
        return find(name)
    except KeyError:
        return None


def find_corresponding(targets: Any, dst_graph: Graph, dst_scope: str = "", src_scope: str = "") -> Any:
    """The same for each of a tree."""
    return transform_tree(targets, lambda top: find_corresponding_elem(top, dst_graph, dst_scope, src_scope))
