"""Find the host operations of one type that can be called together.

A model with twenty columns of words hashes and numbers each column's words by itself. On a few hundred words most of such a
call is not arithmetic but numpy's way there, so some operations have a kernel for several of them at once. Those of one
level that are alike and need nothing of each other become one part.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.common_subexpressions import attributes, value_of
from tensorfleet.passes.plan import PartKind, Plan, updated_by, variable_of

#: the state that a row gather or a row update is about is its variables; others keep their order with everything
_ON_ROWS = {PartKind.GATHER, PartKind.ROWS}
_ON_STATE = {PartKind.ALONE, PartKind.CHUNKS, PartKind.LOOP}
# Members of an enum are slow to look up in Python 3.11, and these are compared with for every operation.
_PURE = {PartKind.HOST, PartKind.INDEX, PartKind.VARYING}
_SEGMENT = PartKind.SEGMENT
# Index operations have a part together anyway, in which each costs 1 us. To leave it costs 10 us, as two reshapes in
# the embedding benchmark showed.
_MIN_OPS, _MIN_INDEX_OPS = 2, 8
# Attributes in which operations that are called together may differ: their kernels look at each.
_OWN_ATTRIBUTES = ("num_buckets", "out_idx")


def joinable(plan: Plan, kinds: dict[Operation, PartKind]) -> dict[Operation, Hashable]:
    """The operations that may run together, each with what those that do have in common."""
    if plan.nested:
        return {}
    able = {
        op: _likeness(op, kind, plan)
        for op, kind in kinds.items()
        if (kind in _ON_ROWS or (kind in _PURE and op.spec.joined is not None and not op.spec.stateful))
        and op not in plan.guards
        and op not in plan.merges
        and not any((op, i) in plan.live for i in range(len(op._inputs)))
    }
    count = Counter(able.values())
    return {
        op: like
        for op, like in able.items()
        if count[like] >= (_MIN_INDEX_OPS if kinds[op] is PartKind.INDEX else _MIN_OPS)
    }


def _likeness(op: Operation, kind: PartKind, plan: Plan) -> Hashable:
    inputs = tuple(value_of(t, plan) if t in plan.constants else (t.dtype, _row(t)) for t in op._inputs)
    return op.type, kind, attributes(op, _OWN_ATTRIBUTES), inputs


def _row(tensor: Tensor) -> Hashable:
    """What is known about the shape of a tensor, but for its length."""
    dims = tensor.shape._d
    return dims if dims is None else (len(dims), *dims[1:])


def put_off(
    ops: list[Operation],
    before: dict[Operation, list[Operation]],
    kinds: dict[Operation, PartKind],
    later: dict[Operation, Hashable],
) -> tuple[list[Operation], dict[Operation, set[Operation]]]:
    """The operations of one level, with those of `later` as late as possible, so that several can run at a time.

    What reads or changes a state stays in its order. The second result tells which operations of the level each needs
    for that, or for its inputs.
    """
    if later.keys().isdisjoint(ops):
        return ops, {}
    needs = _needs(ops, before, kinds)
    return _Waiting(ops, needs, later).in_waves(), needs


class _Waiting:
    """The operations of a level that wait for others, and those that may run."""

    def __init__(
        self, ops: list[Operation], needs: dict[Operation, set[Operation]], later: dict[Operation, Hashable]
    ) -> None:
        self._ops = ops
        self._later = later
        self._place = {op: n for n, op in enumerate(ops)}
        self._missing = {op: len(needs[op]) for op in ops}
        self._after: dict[Operation, list[Operation]] = {}
        for op in ops:
            for b in needs[op]:
                self._after.setdefault(b, []).append(op)
        self._ready: list[int] = []
        self._held: dict[Hashable, list[Operation]] = {}
        self._found: list[Operation] = []

    def in_waves(self) -> list[Operation]:
        """The order: what may run runs at once, what several may run as one only when nothing else may."""
        for op in [op for op in self._ops if not self._missing[op]]:
            self._free(op)
        while self._ready or self._held:
            while self._ready:
                self._emit(self._ops[heapq.heappop(self._ready)])
            if self._held:
                # The largest group first: what it frees may still join the smaller ones.
                most = max(self._held, key=lambda like: len(self._held[like]))
                for op in sorted(self._held.pop(most), key=self._place.__getitem__):
                    self._emit(op)
        return self._found

    def _free(self, op: Operation) -> None:
        if op in self._later:
            self._held.setdefault(self._later[op], []).append(op)
        else:
            heapq.heappush(self._ready, self._place[op])

    def _emit(self, op: Operation) -> None:
        self._found.append(op)
        for follower in self._after.get(op, ()):
            self._missing[follower] -= 1
            if not self._missing[follower]:
                self._free(follower)


def _needs(
    ops: list[Operation], before: dict[Operation, list[Operation]], kinds: dict[Operation, PartKind]
) -> dict[Operation, set[Operation]]:
    """The operations of a level that each waits for."""
    here = set(ops)
    needs: dict[Operation, set[Operation]] = {}
    last: set[Operation] = set()  # the last one on a state
    on_rows: dict[str, list[Operation]] = {}  # since then, by variable
    for op in ops:
        needs[op] = here.intersection(before[op])
        if kinds[op] in _ON_ROWS:
            needs[op] |= last
            for variable in _variables(op):
                earlier = on_rows.setdefault(variable, [])
                needs[op].update(earlier)
                earlier.append(op)
        elif kinds[op] is _SEGMENT:  # segments of a level run before all else of it
            continue
        elif kinds[op] in _ON_STATE or op.spec.stateful or op.spec.blocks:
            needs[op].update(last, *on_rows.values())
            last, on_rows = {op}, {}
    return needs


def _variables(op: Operation) -> set[str]:
    """The names, in their stores, of the variables whose rows an operation reads or changes."""
    source = op._inputs[0]
    handle = source.dtype._is_ref_dtype or source.dtype.name == "resource"
    tensors = updated_by(op) if op.spec.updates else [source if handle else source._op._inputs[0]]
    variables = [variable_of(t) for t in tensors]
    return {(v._attrs.get("shared_name") or b"").decode() or v.name for v in variables if v is not None}
