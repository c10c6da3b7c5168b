"""Compute constants, static shapes, and pure operations on them while planning."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.graph.constant import SHAPE_OPS, of_shape
from tensorfleet.graph.kernels import run_numpy
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import Plan

_MAX_FOLDED_ELEMENTS = 1 << 16  # elements: larger results are cheaper to compute than to carry along


def fold(plan: Plan, switches: bool = True) -> Plan:
    """Moves constant operations from the work into `plan.constants`.

    A Switch of a constant gives it to both branches. It must stay where it is not known yet what is in which branch:
    a Merge of two constants would not tell which of them to take.
    """
    constants = plan.constants
    fed = set(plan.feeds)
    rest: list[Operation] = []
    inside = set(plan.ops) if plan.inert else set()
    shown = set(plan.fetches) if plan.guards and not plan.nested else set()
    for op in plan.ops:
        waited = [plan.inside.get(c, c) for c in op._control_inputs]
        if waited and not (plan.inert and all(c in plan.inert or c not in inside for c in waited)):
            rest.append(op)  # it may stand between two operations that must keep their order
            continue
        values = _value(op, constants, fed) if switches or op.type != "Switch" else None
        if values is None or (op in plan.guards and not shown.isdisjoint(op._outputs)):
            rest.append(op)  # a result of a branch is there only if the branch is taken
            continue
        plan.folded.append(op)
        for tensor, value in zip(op._outputs, values, strict=True):
            if tensor not in fed:
                constants[tensor] = value
    plan.ops = rest
    return plan


def fold_outside_branches(plan: Plan) -> Plan:
    """Moves constant operations to `plan.constants` before it is known which operations are in which branch."""
    return fold(plan, switches=False)


def _value(op: Operation, constants: dict[Tensor, Any], fed: set[Tensor]) -> tuple[Any, ...] | None:
    if op.type == "Const":
        return (op._attrs["value"],)
    if op.type == "Switch" and op._inputs[0] in constants and op._inputs[0] not in fed:
        return (constants[op._inputs[0]],) * 2
    if op.type in SHAPE_OPS:
        known = of_shape(op)
        if known is not None:
            return (known,)
    if not op._outputs or not op.spec.pure or op.spec.heavy or op.type == "Placeholder":
        return None
    if not op._inputs or any(t in fed or t not in constants for t in op._inputs):
        return None
    sizes = [out.shape.num_elements() for out in op._outputs]
    if any(n is None or n > _MAX_FOLDED_ELEMENTS for n in sizes):
        return None
    try:
        values = run_numpy(op, [constants[t] for t in op._inputs])
    except Exception:  # it fails again, with the op's name, when the step runs
        return None
    return tuple(np.asarray(v) for v in values)
