"""The value that a reader of a variable sees when the graph orders it after an update.

In TensorFlow the read of a reference variable shares the variable's memory, so an operation that waits
for an update sees the new value even through a read made long before. Programs rely on it: moving averages
applied after an optimizer step, for one. A read here is a snapshot; so where an operation is ordered after
an update, its argument becomes a live view of the variable instead.
"""

from __future__ import annotations

from tensorfleet.graph.operation import Operation
from tensorfleet.passes.plan import Plan, read_of, updated_by, variable_of


def order(plan: Plan) -> Plan:
    """Fills `plan.live`."""
    bits = _updated_variables(plan)
    if not bits:
        return plan
    seen: dict[Operation, int] = {}  # which variables have been updated before the end of an op
    for op in plan.ops:
        before = 0
        for t in op._inputs:
            if t not in plan.fed:
                before |= seen.get(plan.inside.get(t._op, t._op), 0)
        for c in op._control_inputs:
            before |= seen.get(plan.inside.get(c, c), 0)
        if before:
            for i, t in enumerate(op._inputs):
                variable = None if t in plan.fed else read_of(t._op, plan.fed)
                if variable is not None and before & bits.get(variable, 0):
                    plan.live[(op, i)] = variable
        seen[op] = before | _own(op, bits)
    return plan


def _updated_variables(plan: Plan) -> dict[Operation, int]:
    """A bit for every reference variable that the plan updates."""
    bits: dict[Operation, int] = {}
    for op in plan.ops:
        for tensor in updated_by(op):
            variable = variable_of(tensor)
            if tensor.dtype._is_ref_dtype and variable is not None and variable not in bits:
                bits[variable] = 1 << len(bits)
    return bits


def _own(op: Operation, bits: dict[Operation, int]) -> int:
    mine = 0
    for tensor in updated_by(op):
        variable = variable_of(tensor)
        if variable is not None:
            mine |= bits.get(variable, 0)
    return mine
