"""Looks up a tensor or operation of a graph by its name or by an object that stands for it, such as a variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorfleet.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from tensorfleet.graph.graph import Graph

_FORM = 'Tensor names must be of the form "<op_name>:<output_index>"'


def check_inputs(graph: Graph, inputs: Sequence[Tensor], name: str) -> None:
    """Raises ValueError for an input of a new operation that is in another graph."""
    for t in inputs:
        if t.graph is not graph:
            raise ValueError(
                f"Tensor {t} must be from the same graph as the operation '{name.rstrip('/')}' being made. "
                "Build both inside the same `with graph.as_default():`."
            )


def find_element(graph: Graph, obj: object, allow_tensor: bool, allow_operation: bool) -> Tensor | Operation:
    """The Tensor or Operation of a graph that `obj` names or stands for."""
    wanted = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation)
    if isinstance(obj, (str, bytes)):
        name = obj.decode() if isinstance(obj, bytes) else obj
        if ":" in name and allow_tensor:
            return _tensor_by_name(graph, name)
        return _operation_by_name(graph, name, wanted, allow_operation)
    result: Tensor | Operation
    if isinstance(obj, (Tensor, Operation)):
        result = obj
    else:
        # Variables, queues and user classes stand for a tensor or its name.
        convert = getattr(obj, "_as_graph_element", None)
        element = convert() if convert else None
        if element is None:
            raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")
        if isinstance(element, (str, bytes)):
            return find_element(graph, element, allow_tensor, allow_operation)
        result = element
    if isinstance(result, Tensor) and not allow_tensor:
        raise TypeError(f"Can not convert a Tensor into a {wanted}.")
    if isinstance(result, Operation) and not allow_operation:
        raise TypeError(f"Can not convert an Operation into a {wanted}.")
    if result.graph is not graph:
        shown = result.name if isinstance(result, Operation) else result
        raise ValueError(f"{type(result).__name__} {shown} is not an element of this graph.")
    return result


def _tensor_by_name(graph: Graph, name: str) -> Tensor:
    op_name, _, index = name.rpartition(":")
    if not index.isdigit() or ":" in op_name:
        raise ValueError(f"The name {name!r} looks like a Tensor name, but is not a valid one. {_FORM}.")
    op = graph._by_name.get(op_name)
    missing = f"The name {name!r} refers to a Tensor which does not exist. The operation, {op_name!r},"
    if op is None:
        raise KeyError(f"{missing} does not exist in the graph.")
    if int(index) >= len(op._outputs):
        raise KeyError(f"{missing} exists but only has {len(op._outputs)} outputs.")
    return op._outputs[int(index)]


def _operation_by_name(graph: Graph, name: str, wanted: str, allowed: bool) -> Operation:
    if ":" in name:
        raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a {wanted}.")
    op = graph._by_name.get(name)
    if op is None and allowed:
        raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
    if op is None:
        raise ValueError(
            f"The name {name!r} looks like an (invalid) Operation name, not a {wanted}. "
            f"{_FORM}; the operation does not exist."
        )
    if not allowed:
        raise ValueError(f"The name {name!r} refers to an Operation, not a {wanted}. {_FORM}.")
    return op
