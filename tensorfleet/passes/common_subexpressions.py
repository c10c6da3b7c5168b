"""Find host ops that would repeat the computation of another one.

Two columns of features made of one input look its words up twice, as graphs are built. XLA leaves out what it finds twice
within a segment; this is the same for what runs on the host, and for what leads from there to there.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import Plan

_MAX_COMPARED_ELEMENTS = 64  # elements of a constant that is compared by its value


def share(plan: Plan) -> Plan:
    """Fills `plan.same`."""
    if plan.nested or sum(op.spec.host for op in plan.ops) < 2:
        return plan
    outside = set(plan.feeds) | set(plan.fetches)
    standing: dict[Tensor, Tensor] = {}  # for a tensor, the first that has the same value
    first: dict[Hashable, Operation] = {}
    for op in plan.ops:
        if not _repeatable(op, plan, outside):
            continue
        key = (op.type, plan.devices[op], _attributes(op), *(_value(t, plan, standing) for t in op._inputs))
        same = first.setdefault(key, op)
        if same is not op:
            plan.same[op] = same
            standing.update(zip(op._outputs, same._outputs, strict=True))
    return plan


def _repeatable(op: Operation, plan: Plan, outside: set[Tensor]) -> bool:
    """Whether an operation gives the same whenever it is given the same, and nobody but the step gets it."""
    spec = op.spec
    depends = spec.updates or spec.reads or spec.rng or spec.stateful or spec.variable or spec.blocks
    if depends or op in plan.guards or op in plan.merges or op in plan.loops or op.type == "Placeholder":
        return False
    special = (
        t.dtype._is_ref_dtype or t.dtype.name in ("resource", "variant") for t in (*op._inputs, *op._outputs)
    )
    return bool(op._outputs) and not any(special) and outside.isdisjoint(op._outputs)


def _attributes(op: Operation) -> Hashable:
    """The attributes that tell two operations of one type apart: internal ones ("_class") do not."""
    return tuple(sorted((name, repr(value)) for name, value in op._attrs.items() if not name.startswith("_")))


def _value(tensor: Tensor, plan: Plan, standing: dict[Tensor, Tensor]) -> Hashable:
    constant = plan.constants.get(tensor)
    if constant is None or np.size(constant) > _MAX_COMPARED_ELEMENTS:
        return standing.get(tensor, tensor)
    value = np.asarray(constant)
    strings = value.dtype.kind == "O"
    return tensor.dtype, value.shape, tuple(value.ravel().tolist()) if strings else value.tobytes()
