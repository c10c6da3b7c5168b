"""Keep only what the fetches need, given what is fed."""

from __future__ import annotations

from tensorfleet.graph.operation import Operation
from tensorfleet.passes.plan import Plan, ordered


def prune(plan: Plan) -> Plan:
    """Lists the operations that must run, in order."""
    fed = set(plan.feeds) | plan.constants.keys()
    needed: set[Operation] = set()
    stack: list[Operation] = [t._op for t in plan.fetches if t not in fed] + list(plan.targets)
    while stack:
        op = stack.pop()
        if op in needed:
            continue
        needed.add(op)
        stack.extend(t._op for t in op._inputs if t not in fed)
        stack.extend(
            c
            for c in op._control_inputs
            if c not in plan.done and not (c._outputs and fed.issuperset(c._outputs))
        )
    plan.ops = ordered(needed, fed)
    return plan
