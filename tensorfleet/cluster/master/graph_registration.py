"""What a master sends a task beforehand: the operations of its stages, and the stages in terms of their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tensorfleet.cluster.stage_spec import BranchSpec, GuardSpec
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import attr_to_proto, node_def, versions
from tensorfleet.graph.library import add_library
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.partition import MASTER, Stage, task_of
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import Branches, Guard

if TYPE_CHECKING:
    from tensorfleet.base.protos import GraphDef, NodeDef


class Shipment:
    """The operations that one task knows of, sent as they are needed, each once."""

    def __init__(self, graph: Graph, task: str, placer: Placer) -> None:
        self.graph = graph
        self.task = task
        self.placer = placer
        self.sent: set[Operation] = set()

    def nodes(self, ops: Iterable[Operation]) -> GraphDef:
        """A `GraphDef` with these operations, and with those of this task that they refer to, less what was sent."""
        from tensorfleet.base.protos import GraphDef

        proto = GraphDef(versions=versions())
        stack = list(ops)
        new: list[Operation] = []
        while stack:
            op = stack.pop()
            if op in self.sent:
                continue
            self.sent.add(op)
            new.append(op)
            # An operation of another task is only a name here: its inputs are not needed.
            if self._here(op):
                stack.extend(t._op for t in op._inputs)
                stack.extend(c for c in op._control_inputs if self._here(c))
        for op in sorted(new, key=lambda op: op._id):
            proto.node.add().CopyFrom(self._node(op) if self._here(op) else _arrival(op))
        if self.graph._functions:
            add_library(proto, self.graph, new)
        return proto

    def _here(self, op: Operation) -> bool:
        return task_of(self.placer.device_of(op)) == self.task

    def _node(self, op: Operation) -> NodeDef:
        node: NodeDef = node_def(op, add_shapes=op.type in ("Merge", "RefMerge"))
        node.device = self.placer.device_of(op)
        node.attr.pop("_class", None)  # the device says it all
        away = {f"^{c.name}" for c in op._control_inputs if not self._here(c)}
        if away:
            kept = [text for text in node.input if text not in away]
            del node.input[:]
            node.input.extend(kept)
        return node


def _arrival(op: Operation) -> NodeDef:
    from tensorfleet.base.protos import NodeDef

    node = NodeDef(name=op.name, op="FleetArrival")
    attr_to_proto("list(type)", [t.dtype.base_dtype for t in op._outputs], node.attr["types"])
    attr_to_proto("list(shape)", [t.shape for t in op._outputs], node.attr["shapes"])
    return node


def named(branches: Branches) -> BranchSpec:
    """Branches as a message tells them."""

    def plain(guard: Guard) -> GuardSpec:
        return sorted((p.name, value) for p, value in guard)

    guards, merges = branches
    return BranchSpec(
        guards={op.name: plain(guard) for op, guard in guards.items()},
        merges={op.name: [plain(guard) for guard in choices] for op, choices in merges.items()},
    )


def found(branches: BranchSpec, graph: Graph) -> Branches:
    """Branches that a message told, in terms of a graph here."""

    def guard(literals: GuardSpec) -> Guard:
        return frozenset((graph.get_tensor_by_name(name), value) for name, value in literals)

    return (
        {graph.get_operation_by_name(n): guard(g) for n, g in branches.guards.items()},
        {graph.get_operation_by_name(n): [guard(g) for g in c] for n, c in branches.merges.items()},
    )


class Sources:
    """Where each input of a remote stage comes from, and where each output goes."""

    def __init__(
        self, stage: Stage, home: dict[Tensor, Stage], own: str | None, handles: dict[Tensor, Tensor]
    ) -> None:
        self.given: list[Tensor] = []
        self.kept: list[Tensor] = []
        self.awaited: list[Tensor] = []
        #: handles that came into the loop that the stage is in, which the task keeps
        self.held = [t for t in stage.inputs if t in handles]
        for t in stage.inputs:
            maker = home.get(t)
            if t in handles:
                continue
            if maker is None or maker.task in (own, MASTER):
                self.given.append(t)
            elif maker.task == stage.task:
                self.kept.append(t)
            else:
                self.awaited.append(t)
