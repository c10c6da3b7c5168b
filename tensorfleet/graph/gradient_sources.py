"""The tensors that gradients are taken with respect to: of variables too, and inside functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph

if TYPE_CHECKING:
    from tensorfleet.base.types import TensorLike


def source(x: TensorLike) -> Tensor:
    """The tensor a gradient is taken with respect to; for a variable, its handle or reference."""
    if isinstance(x, Tensor):
        return x
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor):
        return handle
    parts = getattr(x, "_get_variable_list", None)
    if parts is not None:
        return to_tensor(x)
    if hasattr(x, "_as_graph_element"):
        result: Tensor = x._ref() if hasattr(x, "_ref") else x.value()  # type: ignore[attr-defined]  # a variable's
        return result
    return to_tensor(x, name="x")


def inside(x: TensorLike) -> Tensor:
    """The tensor a gradient is taken with respect to; inside a function, the capture of an outer one."""
    result = source(x)
    graph = get_default_graph()
    if not graph._building_function:
        return result
    snapshot = getattr(x, "_snapshot", None)  # what is read of a reference variable
    for tensor in (result, snapshot):
        if tensor is not None and (captured := _captured(graph, tensor)) is not None:
            return captured
    return result


def _captured(graph: Any, tensor: Tensor) -> Tensor | None:
    if tensor.graph is graph:
        return tensor
    outer = getattr(graph, "outer", None)
    if outer is None:
        return None
    around = _captured(outer, tensor)
    if around is None:
        return None
    copied = graph.copied.get(around._op)  # as constants are
    captured: Tensor | None = graph.captures.get(around)
    return captured if copied is None else copied._outputs[around._value_index]
