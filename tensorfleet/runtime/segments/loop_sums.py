"""Sums of matrix products over the iterations of a loop, computed as one product after it.

The gradient of a weight that a loop uses in each iteration is x1' d1 + x2' d2 + ... The loop that computes it pops each x
from a stack, and adds a small product to a matrix as large as the weight. The x are all there before it begins. So
the loop only keeps the d, and [x1; x2; ...]' [d1; d2; ...] comes after it: one product, large enough for several cores.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.kernels.aligned_memory import aligned
from tensorfleet.runtime.segments.padded_sizes import rounded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorfleet.base.types import Array
    from tensorfleet.graph.operation import Operation, Tensor
    from tensorfleet.passes.control_flow import Loop
    from tensorfleet.runtime.segments.segment import Segment


@dataclass(frozen=True)
class LoopSum:
    """A loop variable that is a sum of products."""

    variable: int
    stack: int  # which of the fixed values is the stack of the left factors
    right: int  # the slot of the right factor, in the body
    replaced: frozenset[Operation]  # the operations of the body that are not needed for it


def loop_sums(loop: Loop, body: Segment) -> list[LoopSum]:
    """The variables of a loop that only add up products of popped matrices."""
    if body.guarded:
        return []
    plans = (loop.cond, loop.body)
    users = Counter(t for plan in plans for op in plan.ops for t in op._inputs)
    users.update(t for plan in plans for t in plan.fetches)
    sums = [_sum_of(loop, body, i, users) for i in range(len(loop.initial))]
    return [one for one in sums if one is not None]


def _sum_of(loop: Loop, body: Segment, i: int, users: Counter[Tensor]) -> LoopSum | None:
    switch, result = loop.variables.switches[i], loop.body.fetches[i]
    if switch is None or users[switch._outputs[1]] != 1 or users[loop.variables.merges[i]._outputs[0]]:
        return None
    chain = _chain(switch._outputs[1], result, users) if result.dtype.is_floating else []
    steps = {step.op: step for step in body.steps}
    if not chain or any(op not in steps for op in chain):
        return None
    stack, right = _popped(loop, chain[-1]._inputs[0]), steps[chain[-1]].args[1]
    return None if stack is None or right < 0 else LoopSum(i, stack, right, frozenset(chain))


def _chain(own: Tensor, result: Tensor, users: Counter[Tensor]) -> list[Operation]:
    """The operations from the sum of a variable and a product back to the product, if nothing else uses any of them."""
    add = result._op
    if add.type not in ("Add", "AddV2") or own not in add._inputs or users[result] != 1:
        return []
    (term,) = (t for t in add._inputs if t is not own)
    chain = [add]
    while users[term] == 1:
        chain.append(term._op)
        if (
            term._op.type == "MatMul"
            and term._op._attrs["transpose_a"]
            and not term._op._attrs["transpose_b"]
        ):
            return chain
        if term._op.type != "Identity":
            break
        term = term._op._inputs[0]
    return []


def _popped(loop: Loop, left: Tensor) -> int | None:
    """The position of the stack that a value is popped from, if nothing else changes that stack in an iteration."""
    pop = left._op
    if pop.type != "StackPopV2":
        return None
    stack = pop._inputs[0]
    if sum(stack in op._inputs[:1] for op in loop.body.ops) != 1:
        return None
    return next((k for k, (_, inside) in enumerate(loop.fixed) if inside is stack), None)


def product_of_stacks(before: Any, left: Any, right: Any, count: int) -> Array:
    """`before` and the sum of the products of the first `count` matrices of two stacks; those after them are zero."""
    rows = min(rounded(count), len(right))  # few sizes, each of which is compiled once
    stacks = [aligned(np.asarray(stack)[:rows]) for stack in (left, right)]
    result: Array = _product()(np.asarray(before), *stacks)
    return result


@cache
def _product() -> Callable[..., Any]:
    from tensorfleet.runtime.devices import load_jax

    jax, _ = load_jax()

    def product(before: Array, left: Array, right: Array) -> Array:
        flat = [x.reshape(-1, x.shape[-1]) for x in (left, right)]
        result: Array = before + flat[0].T @ flat[1]
        return result

    jitted: Callable[..., Any] = jax.jit(product)
    return jitted
