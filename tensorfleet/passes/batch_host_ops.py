"""Find the host operations of one type that can be called together.

A model with twenty columns of words hashes and numbers each column's words by itself. On a few hundred words most of such a
call is not arithmetic but numpy's way there, so some operations have a kernel for several of them at once. Those of one
level that need nothing of each other become one part.
"""

from __future__ import annotations

import heapq
from collections import Counter

from tensorfleet.graph.operation import Operation
from tensorfleet.passes.plan import PartKind, Plan

_ON_STATE = {PartKind.ALONE, PartKind.CHUNKS, PartKind.GATHER, PartKind.LOOP, PartKind.ROWS}


def joinable(plan: Plan, kinds: dict[Operation, PartKind]) -> set[Operation]:
    """The operations that may run together with others of their type."""
    if plan.nested:
        return set()
    able = {
        op
        for op, kind in kinds.items()
        if kind is PartKind.HOST
        and op.spec.joined is not None
        and op not in plan.guards
        and op not in plan.merges
    }
    count = Counter(op.type for op in able)
    return {op for op in able if count[op.type] > 1}


def put_off(
    ops: list[Operation],
    before: dict[Operation, list[Operation]],
    kinds: dict[Operation, PartKind],
    later: set[Operation],
) -> list[Operation]:
    """The operations of one level, with those of `later` as late as possible, so that several can run at a time.

    What reads or changes a state stays in its order.
    """
    if later.isdisjoint(ops):
        return ops
    place = {op: n for n, op in enumerate(ops)}
    waiting, after = _waiting(ops, before, kinds)
    ready: list[int] = []
    held: dict[str, list[Operation]] = {}
    found: list[Operation] = []

    def free(op: Operation) -> None:
        if op in later:
            held.setdefault(op.type, []).append(op)
        else:
            heapq.heappush(ready, place[op])

    def emit(op: Operation) -> None:
        found.append(op)
        for follower in after.get(op, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                free(follower)

    for op in [op for op in ops if not waiting[op]]:
        free(op)
    while ready or held:
        while ready:
            emit(ops[heapq.heappop(ready)])
        if held:
            for op in held.pop(max(held, key=lambda kind: len(held[kind]))):
                emit(op)
    return found


def _waiting(
    ops: list[Operation], before: dict[Operation, list[Operation]], kinds: dict[Operation, PartKind]
) -> tuple[dict[Operation, int], dict[Operation, list[Operation]]]:
    """How many of the level each operation waits for, and which wait for it."""
    here = set(ops)
    waiting: dict[Operation, int] = {}
    after: dict[Operation, list[Operation]] = {}
    last: set[Operation] = set()  # the last one on a state
    for op in ops:
        needs = here.intersection(before[op])
        if kinds[op] in _ON_STATE or op.spec.stateful or op.spec.blocks:
            needs, last = needs | last, {op}
        waiting[op] = len(needs)
        for b in needs:
            after.setdefault(b, []).append(op)
    return waiting, after
