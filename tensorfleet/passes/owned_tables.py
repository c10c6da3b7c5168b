"""Find tables whose rows a step reads and then updates, all in one segment.

Such a segment owns the table while it runs: XLA gathers the rows, computes, and writes them back in place. Where
something else needs the table, or the changes come from elsewhere, rows are read and changed on the host.
"""

from __future__ import annotations

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.kernels.rows import FUSED
from tensorfleet.passes.plan import PartKind, Plan, variable_of


def owned_tables(
    plan: Plan, kinds: dict[Operation, PartKind], hidden: set[Operation], known: set[Tensor]
) -> dict[Operation, list[Operation]]:
    """Each table that a segment can own, with the operations on it. `hidden` are reads that only gathers use."""
    if plan.nested or plan.guards or plan.merges or not any(op.type in FUSED for op in kinds):
        return {}
    users: dict[Operation, list[Operation]] = {}
    for op in kinds:
        for variable in _touched(op, plan, hidden):
            users.setdefault(variable, []).append(op)
    return {v: ops for v, ops in users.items() if _owns(ops, plan, kinds, known)}


def _touched(op: Operation, plan: Plan, hidden: set[Operation]) -> set[Operation]:
    """The variables that an operation reads or updates, itself or through a hidden read."""
    variables = set()
    for t in op._inputs:
        source = t._op._inputs[0] if t._op in hidden else t
        if source.dtype._is_ref_dtype or source.dtype.name == "resource":
            variables.add(plan.variable_of(source))
    return {v for v in variables if v is not None}


def _owns(ops: list[Operation], plan: Plan, kinds: dict[Operation, PartKind], known: set[Tensor]) -> bool:
    updates = [op for op in ops if op.spec.updates]
    gathers = [op for op in ops if kinds[op] is PartKind.GATHER]
    if len(updates) != 1 or not gathers or len(gathers) + 1 != len(ops):
        return False
    (update,) = updates
    change = update._inputs[-1]
    if update.type not in FUSED or change in known or kinds.get(change._op) is not PartKind.SEGMENT:
        return False
    if any((update, i) in plan.live for i in range(len(update._inputs))):
        return False
    return all("/device:CPU" in plan.devices[op] for op in ops) and change.dtype.is_floating


def reads_of(tables: dict[Operation, list[Operation]], hidden: set[Operation]) -> set[Operation]:
    """The hidden reads of these tables."""
    return {r for r in hidden if variable_of(r._inputs[0]) in tables}
