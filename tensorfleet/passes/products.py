"""Make one matrix product of a sum of many.

A weight used at every step of a recurrent network has the gradient x1' d1 + x2' d2 + ... Stacked, the factors
make one long product, [x1; x2; ...]' [d1; d2; ...], that keeps a processor busy where many small ones do not.
"""

from __future__ import annotations

from collections import Counter

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import Part, Plan

_FEWEST = 3  # stacking costs a copy of the factors


def products(plan: Plan) -> Plan:
    """Fills `products` of the plan's segments."""
    for part in plan.parts:
        sums = [op for op in part.ops if op.type == "AddN" and len(op._inputs) >= _FEWEST]
        if part.kind == "segment" and sums:
            _find(plan, part, sums)
    return plan


def _find(plan: Plan, part: Part, sums: list[Operation]) -> None:
    inside = set(part.ops)
    fed = set(plan.feeds)
    users = Counter(t for op in plan.ops for t in op._inputs)
    users.update(part.outputs)
    users.update(plan.fetches)
    for op in sums:
        chains = [_chain(t, inside, fed, users) for t in op._inputs]
        factors = [c[-1] for c in chains if c and _is_outer(c[-1], plan)]
        if len(factors) == len(chains) and op._outputs[0].dtype.is_floating:
            part.products[op] = factors
            part.hidden.update(o for chain in chains for o in chain)


def _chain(tensor: Tensor, inside: set[Operation], fed: set[Tensor], users: Counter) -> list[Operation]:
    """The operations from a term of the sum back to what computes it, if nobody else uses any of them."""
    found: list[Operation] = []
    while tensor._op in inside and tensor not in fed and users[tensor] == 1:
        found.append(tensor._op)
        if tensor._op.type != "Identity":
            return found
        tensor = tensor._op._inputs[0]
    return []


def _is_outer(op: Operation, plan: Plan) -> bool:
    """Whether an operation multiplies a transposed matrix, of values that do not change under way, by another."""
    if op.type != "MatMul" or not op._attrs["transpose_a"] or op._attrs["transpose_b"]:
        return False
    return op._outputs[0].shape.is_fully_defined() and not any(
        (op, i) in plan.live or t.dtype._is_ref_dtype for i, t in enumerate(op._inputs)
    )
