"""Host operations of one type that are called together, on values that are kept together (kernels/lanes.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.kernels.lanes import Lanes, Order
from tensorfleet.kernels.rows import put_rows
from tensorfleet.passes.plan import Part, Plan
from tensorfleet.runtime.scheduling.host_ops import GatherItem, HostItem, RowsItem
from tensorfleet.runtime.variable_packs import WriterLocks, release

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Operation, Tensor
    from tensorfleet.runtime.resources import ResourceManager, VariableStore
    from tensorfleet.runtime.scheduling.program import Slots
    from tensorfleet.runtime.scheduling.step import ExecutionContext
    from tensorfleet.runtime.values import Values


class _Joint:
    """An input or an output of several operations: a slot for all as one, and a slot for each."""

    __slots__ = ("each", "key", "source", "split", "whole")

    def __init__(self, tensors: list[Tensor], slots: Slots, is_result: bool) -> None:
        place = slots.made_by if is_result else slots.place
        self.each = [place(t) for t in tensors]
        self.key = tuple(self.each)
        self.whole = slots.joint(self.key)
        #: of an output: whether somebody takes the values one by one
        self.split = True
        #: of an input: the slot of values that these are some of, and which of them
        self.source: tuple[int, list[int]] | None = None

    def take(self, values: Values) -> Lanes | None:
        """The values as one, joined by the first that asks for them; None if they cannot be."""
        result: Lanes | None = values[self.whole]
        if result is not None:
            return result
        source = None if self.source is None else values[self.source[0]]
        if source is not None and self.source is not None:
            result = source.pick(self.source[1])
        else:
            result = Lanes.of([values[s] for s in self.each])
        values[self.whole] = result
        return result

    def put(self, values: Values, lanes: Lanes) -> None:
        """Stores the values of an output."""
        values[self.whole] = lanes
        if self.split:
            self.cut(values, lanes)

    def cut(self, values: Values, lanes: Lanes) -> None:
        """Stores the values one by one."""
        for slot, value in zip(self.each, lanes.split(), strict=True):
            values[slot] = value


class _Shared:
    """One value that is an input of every operation."""

    __slots__ = ("slot",)

    def __init__(self, slot: int) -> None:
        self.slot = slot

    def take(self, values: Values) -> np.ndarray:
        """The value."""
        return np.asarray(values[self.slot])


class JoinedItem:
    """Several operations with a kernel for all of them; one after the other where that has no shorter way."""

    blocks = False

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        self.op = part.ops[-1]
        self.name = self.op.name
        self.device = part.device
        self.ops = part.ops
        self._part, self._plan, self._slots, self._resources = part, plan, slots, resources
        self._alone: list[Any] | None = None
        first = part.ops[0]
        self.given: list[_Joint | _Shared | np.ndarray] = [
            self._input([op._inputs[i] for op in part.ops], plan, slots) for i in self._positions(first)
        ]
        self.made = [
            _Joint([op._outputs[i] for op in part.ops], slots, is_result=True) for i in self._results(first)
        ]

    def _positions(self, op: Operation) -> range:
        """The inputs that are values."""
        return range(len(op._inputs))

    def _results(self, op: Operation) -> range:
        """The outputs that are values."""
        return range(len(op._outputs))

    def _input(self, tensors: list[Tensor], plan: Plan, slots: Slots) -> _Joint | _Shared | np.ndarray:
        # Operations that are called together have equal constants, as small as these are.
        for t in tensors:
            slots.place(t)  # for those that run by themselves
        constant = plan.constants.get(tensors[0])
        if constant is not None and all(t in plan.constants for t in tensors):
            return np.asarray(constant)
        if all(t is tensors[0] for t in tensors):
            return _Shared(slots.of(tensors[0]))
        return _Joint(tensors, slots, is_result=False)

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the operations."""
        results = self._together(values)
        if results is None:
            self._one_by_one(ctx, values)
        else:
            for joint, lanes in zip(self.made, results, strict=True):
                joint.put(values, lanes)

    def _together(self, values: Values) -> tuple[Lanes, ...] | None:
        given = []
        for g in self.given:
            taken = g if type(g) is np.ndarray else g.take(values)
            if taken is None:
                return None
            given.append(taken)
        if not any(type(g) is Lanes for g in given):
            return None
        try:
            with np.errstate(all="ignore"):
                return self._call(given)
        except Exception:
            return None  # the one that it is about says so itself, with its name

    def _call(self, given: list[Any]) -> tuple[Lanes, ...] | None:
        kernel = self.op.spec.joined
        assert kernel is not None
        results: tuple[Lanes, ...] | None = kernel(self.ops, given)
        return results

    def _one_by_one(self, ctx: ExecutionContext, values: Values) -> None:
        for g in self.given:
            if type(g) is not _Joint:
                continue
            if g.source is not None:
                g.take(values)
            if values[g.whole] is not None:
                g.cut(values, values[g.whole])
        for item in self._items():
            item.run(ctx, values)

    def _items(self) -> list[Any]:
        """The operations, each by itself: made when there is need of them."""
        if self._alone is None:
            parts = [replace(self._part, ops=[op]) for op in self.ops]
            self._alone = [self._single(part) for part in parts]
        return self._alone

    def _single(self, part: Part) -> Any:
        return HostItem(part, self._plan, self._slots, self._resources)


class JoinedGathers(JoinedItem):
    """Rows of several tables of one width, taken into one array."""

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        super().__init__(part, plan, slots, resources)
        self._stores = [item.store for item in self._items()]
        self.taking = set(self._stores)

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Takes the rows."""
        super().run(ctx, values)
        if ctx.versions is not None:
            ctx.versions.note_read(self.taking)

    def _positions(self, op: Operation) -> range:
        return range(1, 2)

    def _single(self, part: Part) -> GatherItem:
        return GatherItem(part, self._plan, self._slots, self._resources)

    def _call(self, given: list[Any]) -> tuple[Lanes, ...] | None:
        rows = _rows_of(self._stores, given[0]) if type(given[0]) is Lanes else None
        return None if rows is None else (rows,)


class JoinedRows(JoinedItem):
    """Updates of rows of several tables: all rows are taken, changed at once, and put back.

    The locks of all variables are held meanwhile, and each one's gate while its rows are put back.
    """

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        super().__init__(part, plan, slots, resources)
        items = self._items()
        op = part.ops[0]
        rows = op.spec.rows
        assert rows is not None
        self._rows = rows - len(op.spec.updates)
        self._indices = self.given[self._rows]
        #: for each variable of an operation, its stores
        self._stores = [[item.stores[k] for item in items] for k in range(len(op.spec.updates))]
        every = {store for stores in self._stores for store in stores}
        self.changing = every
        self._locks = WriterLocks(sorted(every, key=lambda store: store.order))
        #: a variable that is updated twice is updated in turn
        distinct = len(every) == len(items) * len(op.spec.updates)
        self._apart = op.spec.joined is not None and distinct and type(self._indices) is _Joint

    def _positions(self, op: Operation) -> range:
        # The variables come first in all updates of rows that have a kernel for several.
        return range(len(op.spec.updates), len(op._inputs))

    def _results(self, op: Operation) -> range:
        return range(0)

    def _single(self, part: Part) -> RowsItem:
        return RowsItem(part, self._plan, self._slots, self._resources)

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the updates."""
        held: list[Any] = []
        try:
            self._locks.acquire(held)
            new = self._together(values) if self._apart else None
            if new is not None:
                if ctx.versions is not None:
                    ctx.versions.note_update(self.changing)
                self._put_back(values, new)
        except Exception as e:
            raise errors.about(self.op, e) from e
        finally:
            release(held)
        if new is None:
            self._one_by_one(ctx, values)

    def _call(self, given: list[Any]) -> tuple[Lanes, ...] | None:
        indices = given[self._rows]
        if type(indices) is not Lanes or indices.order is Order.ANY:
            return None
        rows = [_rows_of(stores, indices) for stores in self._stores]
        return None if any(r is None for r in rows) else super()._call([*rows, *given])

    def _put_back(self, values: Values, new: tuple[Lanes, ...]) -> None:
        assert type(self._indices) is _Joint
        places = values[self._indices.whole].split()
        for stores, lanes in zip(self._stores, new, strict=True):
            for store, where, rows in zip(stores, places, lanes.split(), strict=True):
                with store.gate:
                    put_rows(store.writable(), where, rows)
                    if store.recorder is None:
                        store.touched()
                    else:
                        store.rows_touched(where, rows.nbytes)


def _rows_of(stores: Sequence[VariableStore], indices: Lanes) -> Lanes | None:
    """Some rows of each of several variables; None if they do not fit together, or an index is outside."""
    first = stores[0].value
    if indices.data.ndim != 1 or indices.scalars or type(first) is not np.ndarray or not indices.sizes.all():
        return None
    if indices.data.min() < 0:
        return None
    most = np.maximum.reduceat(indices.data, indices.firsts).tolist()
    rows = np.empty((indices.starts[-1], *first.shape[1:]), first.dtype)
    result = indices.like(rows)
    for store, where, last, to in zip(stores, indices.split(), most, result.split(), strict=True):
        if not store.take_rows_into(where, last, to):
            return None
    return result


def joined_item(part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> JoinedItem:
    """What runs operations that are called together."""
    op = part.ops[0]
    if op.spec.rows is not None:
        return JoinedRows(part, plan, slots, resources)
    gathers = op in plan.gathers
    return (JoinedGathers if gathers else JoinedItem)(part, plan, slots, resources)


def settle(items: list[Any], slots: Slots) -> None:
    """Finds out which values somebody takes one by one: the others are never cut apart."""
    joined = [item for item in items if isinstance(item, JoinedItem)]
    by_key = {m.key: m for item in joined for m in item.made}
    lane = {slot: (m, n) for m in by_key.values() for n, slot in enumerate(m.each)}
    for item in joined:
        for g in item.given:
            if type(g) is not _Joint or g.key in by_key:
                continue
            of = [lane.get(slot) for slot in g.each]
            if of[0] is not None and all(entry is not None and entry[0] is of[0][0] for entry in of):
                g.source = of[0][0].whole, [entry[1] for entry in of if entry is not None]
            else:
                slots.read.update(g.each)
    for item in joined:
        for m in item.made:
            m.split = not slots.read.isdisjoint(m.each)
