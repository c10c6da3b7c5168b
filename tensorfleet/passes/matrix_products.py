"""Make one matrix product of a sum of many, and no more of a product than is used.

A weight used at every step of a recurrent network has the gradient x1' d1 + x2' d2 + ... Stacked, the factors
make one long product, [x1; x2; ...]' [d1; d2; ...], that keeps a processor busy where many small ones do not.

What a layer gives to the one below it is often a part of a product: the columns that belong to the state, where it
was joined with an input that needs no gradient. Then the others need not be computed.
"""

from __future__ import annotations

from collections import Counter

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import Part, PartKind, Plan

_MIN_TERMS = 3  # stacking costs a copy of the factors


def products(plan: Plan) -> Plan:
    """Fills `products` of the plan's segments."""
    for part in plan.parts:
        if part.kind is not PartKind.SEGMENT:
            continue
        sums = [op for op in part.ops if op.type == "AddN" and len(op._inputs) >= _MIN_TERMS]
        slices = [op for op in part.ops if op.type == "Slice"]
        if sums or slices:
            _find(plan, part, sums, slices)
    return plan


def _find(plan: Plan, part: Part, sums: list[Operation], slices: list[Operation]) -> None:
    inside = set(part.ops)
    fed = set(plan.feeds)
    users, unused = _users(plan, part)
    for op in sums:
        chains = [_chain(t, inside, fed, users) for t in op._inputs]
        terms = [c[-1] for c in chains if c and _is_outer(c[-1], plan)]
        if len(terms) == len(chains) and op._outputs[0].dtype.is_floating:
            part.products[op] = terms
            part.hidden.update(o for chain in chains for o in chain)
    for op in slices:
        chain = _chain(op._inputs[0], inside, fed, users)
        if op not in unused and chain and part.hidden.isdisjoint(chain) and _is_part(op, chain[-1], plan):
            part.products[op] = [chain[-1]]
            part.hidden.update(chain)
    if part.hidden:
        part.hidden |= unused & inside


def _users(plan: Plan, part: Part) -> tuple[Counter[Tensor], set[Operation]]:
    """How often each value is used, and the operations that others only wait for, of the kinds found here."""
    users = Counter((*part.outputs, *plan.fetches))
    unused: set[Operation] = set()
    for op in reversed(plan.ops):
        if op.type in ("Identity", "Slice") and op not in plan.targets and not users[op._outputs[0]]:
            unused.add(op)
        else:
            users.update(op._inputs)
    return users, unused


def _chain(
    tensor: Tensor, inside: set[Operation], fed: set[Tensor], users: Counter[Tensor]
) -> list[Operation]:
    """The operations from a term of the sum back to its computation, if nothing else uses any of them."""
    result: list[Operation] = []
    while tensor._op in inside and tensor not in fed and users[tensor] == 1:
        result.append(tensor._op)
        if tensor._op.type != "Identity":
            return result
        tensor = tensor._op._inputs[0]
    return []


def _is_outer(op: Operation, plan: Plan) -> bool:
    """Whether an operation multiplies a transposed matrix, of values that do not change under way, by another."""
    if op.type != "MatMul" or not op._attrs["transpose_a"] or op._attrs["transpose_b"]:
        return False
    return op._outputs[0].shape.is_fully_defined() and not any(
        (op, i) in plan.live or t.dtype._is_ref_dtype for i, t in enumerate(op._inputs)
    )


def _is_part(op: Operation, product: Operation, plan: Plan) -> bool:
    """Whether a slice takes some columns of a product by a transposed matrix."""
    if product.type != "MatMul" or product._attrs["transpose_a"] or not product._attrs["transpose_b"]:
        return False
    shape, taken = product._outputs[0].shape, op._outputs[0].shape
    begin = plan.constants.get(op._inputs[1])
    if begin is None or not taken.is_fully_defined() or not shape.is_fully_defined() or int(begin[0]):
        return False
    if any((product, i) in plan.live or t.dtype._is_ref_dtype for i, t in enumerate(product._inputs)):
        return False
    (rows, columns), (all_rows, all_columns) = taken.as_list(), shape.as_list()
    return bool(rows == all_rows and columns < all_columns)
