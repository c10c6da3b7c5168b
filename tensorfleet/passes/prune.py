"""Keep only the operations that the fetches need, given the feeds."""

from __future__ import annotations

from collections.abc import Container

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import Plan, ordered

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")


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
        stack.extend(c for c in op._control_inputs if c not in plan.done and not _is_given(c, fed))
    plan.ops = ordered(needed, fed)
    return plan


def _is_given(op: Operation, fed: Container[Tensor]) -> bool:
    """Whether an operation is a fed placeholder: others run even when fed, for their effects."""
    return op.type in _PLACEHOLDERS and op._outputs[0] in fed
