"""Find host ops that would repeat the computation of another one.

Two columns of features made of one input look its words up twice, as graphs are built. XLA leaves out what it finds twice
within a segment; this is the same for what runs on the host, and for what leads from there to there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

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
        key = (op.type, plan.devices[op], attributes(op), *(_value(t, plan, standing) for t in op._inputs))
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


def attributes(op: Operation, but: Sequence[str] = ()) -> Hashable:
    """The attributes that tell two operations of one type apart: internal ones ("_class") do not, nor those of `but`."""
    named = op._attrs.items()
    return tuple(sorted((n, repr(value)) for n, value in named if not n.startswith("_") and n not in but))


def _value(tensor: Tensor, plan: Plan, standing: dict[Tensor, Tensor]) -> Hashable:
    return value_of(tensor, plan) if tensor in plan.constants else standing.get(tensor, tensor)


def value_of(tensor: Tensor, plan: Plan) -> Hashable:
    """What equal constants have in common, or the tensor itself if the constant is large."""
    constant = plan.constants[tensor]
    if np.size(constant) > _MAX_COMPARED_ELEMENTS:
        return tensor
    value = np.asarray(constant)
    strings = value.dtype.kind == "O"
    return tensor.dtype, value.shape, tuple(value.ravel().tolist()) if strings else value.tobytes()
