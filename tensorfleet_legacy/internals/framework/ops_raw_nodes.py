"""Nodes that are told to a graph first and become its operations later, as TensorFlow's C interface makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor


class RawNode(NamedTuple):
    """A node that is not yet an operation."""

    node_def: Any
    inputs: Sequence[Tensor]
    control_inputs: Sequence[Operation]


_told: WeakKeyDictionary[Graph, list[RawNode]] = WeakKeyDictionary()


@export("python.framework.ops._create_c_op")
def create_c_op(
    graph: Graph, node_def: Any, inputs: Sequence[Tensor], control_inputs: Sequence[Operation]
) -> RawNode:
    """Tells a graph of a node, whose name is free."""
    result = RawNode(node_def, inputs, control_inputs)
    _told.setdefault(graph, []).append(result)
    return result


def _operation(graph: Graph, node: RawNode) -> Operation:
    """The operation that a node becomes, in what surrounds new operations now."""
    _told[graph].remove(node)
    name = node.node_def.name
    graph._names_in_use[name.lower()] = 1
    with graph.as_default():
        op = graph.create_op(node.node_def.op, node.inputs, name=f"{name}/", attrs=dict(node.node_def.attr))
    op._add_control_inputs([c for c in node.control_inputs if c not in op._control_inputs])
    return op


def _new_operations(graph: Graph, compute_devices: bool = True) -> list[Operation]:
    """Makes operations of all nodes that were told."""
    return [_operation(graph, node) for node in list(_told.get(graph, ()))]


Graph._create_op_from_tf_operation = _operation  # type: ignore[attr-defined]
Graph._add_new_tf_operations = _new_operations  # type: ignore[attr-defined]
