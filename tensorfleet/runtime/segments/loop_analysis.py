"""Which loops XLA can run, and how many iterations of them there can be: read from the graph, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base.devices import hardware
from tensorfleet.graph.operation import Tensor
from tensorfleet.passes.plan import Plan, variable_of
from tensorfleet.runtime.segments.loop_stores import STORES

if TYPE_CHECKING:
    from tensorfleet.passes.control_flow import Loop


def traceable(loop: Loop) -> bool:
    """Whether XLA may be able to run a loop. Tracing may still find that it cannot."""
    if any(t.dtype.np_dtype.kind == "O" for t in loop.initial):
        return False
    return _plan_traceable(loop.cond, True) and _plan_traceable(loop.body, False)


def _plan_traceable(plan: Plan, condition: bool) -> bool:
    if plan.loops or len(set(map(hardware, plan.devices.values()))) > 1:
        return False
    for op in plan.ops:
        if op.type in STORES:
            if op in plan.guards:
                return False
            continue
        spec = op.spec
        if spec.host or spec.updates or spec.rows is not None or spec.variable:
            return False
        if spec.in_numpy is not None and spec.in_numpy(op):
            return False
        if spec.rng and (op in plan.guards or condition):
            return False
        if any(_is_object(t) for t in (*op._inputs, *op._outputs)):
            return False
    return True


def _is_object(tensor: Tensor) -> bool:
    return tensor.dtype.np_dtype.kind == "O" and variable_of(tensor) is None


def iteration_limits(loop: Loop) -> list[tuple[int, int | None, Any]]:
    """Bounds on the number of iterations: (variable, position of the fixed limit or None, constant limit).

    A variable that grows by one in each iteration and must stay below a limit bounds them.
    """
    merged = {m._outputs[0]: i for i, m in enumerate(loop.variables.merges)}
    fixed = {inside: k for k, (_, inside) in enumerate(loop.fixed)}
    result: list[tuple[int, int | None, Any]] = []
    stack = [loop.cond.fetches[0]]
    while stack:
        op = stack.pop()._op
        if op.type in ("LogicalAnd", "Identity"):
            stack += op._inputs
        elif op.type == "Less" and op._inputs[0] in merged:
            i, limit = merged[op._inputs[0]], op._inputs[1]
            if _counts(loop, i) and (limit in fixed or limit in loop.cond.constants):
                result.append((i, fixed.get(limit), loop.cond.constants.get(limit)))
    return result


def _counts(loop: Loop, i: int) -> bool:
    """Whether a variable grows by one in every iteration."""
    op = loop.body.fetches[i]._op
    if op.type not in ("Add", "AddV2"):
        return False
    own, step = op._inputs
    while own._op.type == "Identity" and own not in loop.body.feeds:
        own = own._op._inputs[0]
    switch = loop.variables.switches[i]
    mine = {loop.variables.merges[i]._outputs[0], None if switch is None else switch._outputs[1]}
    one = loop.body.constants.get(step)
    return own in mine and one is not None and np.size(one) == 1 and int(one) == 1
