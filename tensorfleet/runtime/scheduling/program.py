"""An executable plan: parts bound to slots, stores and devices, and the loop that runs them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.devices import hardware
from tensorfleet.graph.operation import Tensor
from tensorfleet.kernels.packed_strings import Strings
from tensorfleet.passes.pipeline import divide, divide_by_op
from tensorfleet.passes.plan import Part, PartKind, Plan
from tensorfleet.runtime.resources import ResourceManager, VariableStore
from tensorfleet.runtime.scheduling.batched_host_ops import JoinedGathers, JoinedRows, joined_item, settle
from tensorfleet.runtime.scheduling.cooperative import CooperativeRun
from tensorfleet.runtime.scheduling.host_loops import Guarded, LoopItem, MergeItem
from tensorfleet.runtime.scheduling.host_ops import ChunksItem, GatherItem, HostItem, RowsItem, SameItem
from tensorfleet.runtime.scheduling.index_ops import IndexItem
from tensorfleet.runtime.scheduling.items import Item, OpItem
from tensorfleet.runtime.scheduling.step import ExecutionContext
from tensorfleet.runtime.scheduling.threads import Pool
from tensorfleet.runtime.segments.branches import settle_absent
from tensorfleet.runtime.segments.segment import stand_in, uninitialized
from tensorfleet.runtime.segments.segment_item import SegmentItem
from tensorfleet.runtime.segments.shape_variance import Varying, Watch

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Operation
    from tensorfleet.runtime.values import Values


def _bare(item: Item) -> Item:
    """An item without the conditions it runs under."""
    return item.item if isinstance(item, Guarded) else item


def _soon_done(item: Item) -> bool:
    """Whether an item takes so little time that waking a thread for it does not pay."""
    item = _bare(item)
    if isinstance(item, SegmentItem):
        return len(item.segment.steps) <= _MAX_INLINE_STEPS and not any(
            s.op.spec.heavy for s in item.segment.steps
        )
    return type(item) is HostItem and not _may_last(item) and not item.op._inputs  # it looks up a resource


def _may_last(item: Item) -> bool:
    """Whether an item may run for ever: it waits, loops, or calls a Python function of the user's."""
    item = _bare(item)
    return item.blocks or isinstance(item, LoopItem) or _is_call(item)


def _is_call(item: Item) -> bool:
    """Whether an item calls a function of the user's."""
    item = _bare(item)
    return type(item) is HostItem and item.op.type in ("PyFunc", "PyFuncStateless", "EagerPyFunc")


def _takes(item: Item) -> bool:
    """Whether a waiting item only takes something: nobody waits until it has."""
    op = getattr(item, "op", None)
    return op is not None and ("Dequeue" in op.type or "TakeGradient" in op.type)


class Slots:
    """Numbers the values that pass between the parts of one program."""

    def __init__(
        self, fed: frozenset[Tensor] = frozenset(), same: Mapping[Tensor, Tensor] | None = None
    ) -> None:
        self._of: dict[Tensor, int] = {}
        self._joint: dict[tuple[int, ...], int] = {}
        self._fed = fed
        #: for a tensor that is computed twice, the one whose slot it has
        self.same = same or {}
        #: the slots that somebody reads
        self.read: set[int] = set()

    def made_by(self, tensor: Tensor) -> int:
        """The slot that the operation of a tensor writes to: of a fed one not its own, which has what was fed."""
        return self.place(stand_in(tensor) if tensor in self._fed else tensor)

    def of(self, tensor: Tensor) -> int:
        """The slot of a tensor, for somebody who reads it."""
        slot = self.place(tensor)
        self.read.add(slot)
        return slot

    def place(self, tensor: Tensor) -> int:
        """The slot of a tensor. One that has the value of another has its slot too."""
        tensor = self.same.get(tensor, tensor)
        return self._of.setdefault(tensor, len(self))

    def known(self, tensor: Tensor) -> int | None:
        """The slot of a tensor, None if it has none."""
        return self._of.get(self.same.get(tensor, tensor))

    def joint(self, slots: tuple[int, ...]) -> int:
        """The slot of several values as one."""
        return self._joint.setdefault(slots, len(self))

    def __len__(self) -> int:
        return len(self._of) + len(self._joint)


# A segment of so few operations, none of them heavy, has run before another thread would have started.
_MAX_INLINE_STEPS = 8
_OP_ITEMS: dict[PartKind, Callable[[Part, Plan, Slots, ResourceManager], OpItem]] = {
    PartKind.INDEX: IndexItem,
    PartKind.HOST: HostItem,
    PartKind.JOINED: joined_item,
    PartKind.ROWS: RowsItem,
    PartKind.CHUNKS: ChunksItem,
    PartKind.GATHER: GatherItem,
    PartKind.LOOP: LoopItem,
    PartKind.MERGE: MergeItem,
    PartKind.SAME: SameItem,
}


def _item_of(part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> Item:
    """What runs a part."""
    if part.kind is PartKind.SEGMENT:  # its conditions are inside, operation by operation
        return SegmentItem(part, plan, slots, resources)
    make = _OP_ITEMS.get(part.kind)
    if make is None:
        op = part.ops[0]
        text = f"No program can run a part of the kind '{part.kind}' (with '{op.name}'). This is a bug in TensorFleet."
        raise errors.InternalError(None, op, text)
    item = make(part, plan, slots, resources)
    return Guarded(item, part.guard, slots) if part.guard else item


class Program:
    """What one combination of fetches and feeds runs, ready to go."""

    def __init__(self, plan: Plan, resources: ResourceManager) -> None:
        same = {op: plan.same[op] for part in plan.parts if part.kind is PartKind.SAME for op in part.ops}
        slots = Slots(
            plan.fed, {a: b for op in same for a, b in zip(op._outputs, same[op]._outputs, strict=True)}
        )
        self.plan = plan
        self._resources = resources
        self._slots = slots
        self._watch = Watch()
        self._divided: Program | None = None
        self._dividing = threading.Lock()
        self._by_op: Program | None = None
        self.feed_slots = [slots.of(t) for t in plan.feeds]
        self.items: list[Item] = [_item_of(part, plan, slots, resources) for part in plan.parts]
        if not plan.nested:
            self._learn()
        self.after = [len(part.after) for part in plan.parts]
        self.followers: list[list[int]] = [[] for _ in plan.parts]
        for i, part in enumerate(plan.parts):
            for j in part.after:
                self.followers[j].append(i)
        self.fetch_slots = [self._fetch(t, plan, slots, resources) for t in plan.fetches]
        settle(self.items, slots)
        self._strings = any(t.dtype.base_dtype == dtypes.string for t in plan.fetches)
        self.template: Values = [None] * len(slots)
        for tensor, value in plan.constants.items():
            if tensor in slots._of:
                self.template[slots.of(tensor)] = value
        #: settles what becomes of a result that lies in a branch not taken
        self._settle = settle_absent(plan)
        self.in_order = self.items
        # Nothing to run beside an item, even one that waits: no thread is worth waking.
        self.sequential = len({hardware(p.device) for p in plan.parts}) <= 1 and self._one_after_the_other()
        #: when it is each item's turn, if several functions of the user's might wait for each other
        self.turn = self._turns() if self.sequential else []
        # A segment of NoOps only orders others, which the list does already, and so does a shared result.
        idle: list[Item] = [i for i in self.in_order if isinstance(i, SegmentItem) and not i.segment.steps]
        idle += [i for i in self.in_order if isinstance(i, SameItem)]
        self.work = [i for i in self.in_order if i not in idle]
        # Nothing to wait for either: such a step needs no cancelling.
        self.inline = self.sequential and not any(map(_may_last, self.items))
        self._use = resources.uses.add(self, self._variables_read())

    def _variables_read(self) -> list[VariableStore]:
        """The variables whose whole value a run takes, also to fetch it: not those that it only updates."""
        result = [s.store for s in self.fetch_slots if not isinstance(s, int)]
        for item in map(_bare, self.items):
            if isinstance(item, SegmentItem):
                result += [item.stores[i] for i in item.segment.taken()]
            elif isinstance(item, HostItem):
                result += item.reads()
        return list(dict.fromkeys(result))

    def for_staleness(self) -> tuple[set[VariableStore], set[VariableStore]]:
        """The variables that it only reads, and those that it updates, as far as a step may note their versions."""
        taking = {s.store for s in self.fetch_slots if not isinstance(s, int)}
        changing: set[VariableStore] = set()
        for item in map(_bare, self.items):
            if isinstance(item, SegmentItem | GatherItem | JoinedGathers):
                taking |= item.taking
            if isinstance(item, SegmentItem | RowsItem | JoinedRows):
                changing |= item.changing
        return taking, changing

    def _learn(self) -> None:
        """Lets segments find out what of theirs changes its shape from run to run."""
        for part, item in zip(self.plan.parts, self.items, strict=True):
            if isinstance(item, SegmentItem) and part.varying:
                item.compiler.possible &= item.compiler.heavy  # its signatures do not come back
            elif isinstance(item, SegmentItem):
                varying = Varying(item.segment, item.compiler.heavy, self._watch)
                item.compiler.varying = None if varying.over else varying

    def _divide(self) -> Program:
        """The program that runs from now on: with what changes its shape apart from the rest."""
        if self._divided is not None:
            return self._divided
        with self._dividing:
            if self._divided is None:
                learned = [i.compiler.varying for i in self.items if isinstance(i, SegmentItem)]
                apart = [op for one in learned if one is not None for op in one.varying_ops()]
                divided = Program(divide(self.plan, apart), self._resources)
                loops = {item.op: item for item in map(_bare, self.items) if isinstance(item, LoopItem)}
                for item in map(_bare, divided.items):
                    if isinstance(item, LoopItem):
                        item.follow(loops[item.op])
                self._divided = divided
            return self._divided

    def slot_of(self, tensor: Tensor) -> int | None:
        """The slot of a tensor in the values of a run; None for one that is inside of a segment."""
        return self._slots.known(tensor)

    def store_of(self, variable: Operation) -> VariableStore:
        """The memory of a variable of this program."""
        return self._resources.variable(variable)

    def by_op(self) -> Program:
        """The program that runs every operation by itself: slower, but each has its own cost."""
        with self._dividing:
            if self._by_op is None:
                self._by_op = Program(divide_by_op(self.plan), self._resources)
            return self._by_op

    def last_to_run(self) -> Item | None:
        """The item that runs when all others have, if there is one."""
        return self.work[-1] if self.sequential and not self.turn and self.work else None

    def _turns(self) -> list[int]:
        """The order of the items, if there are calls of functions that do not need each other; else nothing."""
        calls = [i for i, item in enumerate(self.items) if _is_call(item)]
        if len(calls) < 2:
            return []
        before: list[set[int]] = []
        for part in self.plan.parts:
            before.append(set(part.after).union(*(before[j] for j in part.after)))
        if all(i in before[j] for i, j in itertools.pairwise(calls)):
            return []
        place = {id(item): n for n, item in enumerate(self.in_order)}
        return [place[id(item)] for item in self.items]

    def _one_after_the_other(self) -> bool:
        """Whether all work that is not before a waiting item needs what that item waits for, or is soon done.

        Several that only take something may wait in turn: nothing could run between them. What is soon done
        goes first, so the items get an order in which each waits as late as it can.
        """
        items = self.items
        blocking = [i for i, item in enumerate(items) if item.blocks]
        if not blocking:
            return True
        before: list[set[int]] = []
        waits: list[int] = []  # how many items wait, one after the other, before each
        for part in self.plan.parts:
            before.append(set(part.after).union(*(before[j] for j in part.after)))
            waits.append(max((waits[j] + items[j].blocks for j in part.after), default=0))
        takes = {i for i in blocking if _takes(items[i])}
        # Of several to take, the last is filled last: waiting for it first means to wait once.
        order = sorted(range(len(items)), key=lambda j: (waits[j], items[j].blocks, -j if j in takes else j))
        self.in_order = [items[j] for j in order]
        return all(
            i in before[j] or (i in takes and j in takes) or (waits[j] <= waits[i] and _soon_done(items[j]))
            for i in blocking
            for j in range(len(items))
            if j != i and j not in before[i]
        )

    def _fetch(self, tensor: Tensor, plan: Plan, slots: Slots, resources: ResourceManager) -> int | _Fetched:
        if tensor.dtype._is_ref_dtype:
            variable = plan.variable_of(tensor)
            if variable is not None:
                # Fetching a reference gives what the variable holds when the step is over.
                return _Fetched(resources.variable(variable), variable)
        return slots.of(tensor)

    def run(self, ctx: ExecutionContext, feeds: Sequence[Any], pool: Pool) -> Values:
        """Runs the program and returns the fetched values."""
        if self._divided is not None or self._watch.asked:
            return self._divide().run(ctx, feeds, pool)
        self._use.runs += 1
        values = self.template.copy()
        for slot, value in zip(self.feed_slots, feeds, strict=True):
            values[slot] = value
        observer = ctx.observer
        if observer is not None:
            observer.begin(self)
        try:  # not a method: its call would take longer than many a step's only item
            if ctx.guard is not None:
                ctx.guard.run(self, ctx, values, pool)
            elif self.turn:
                CooperativeRun(self, ctx, values, pool.limit).run()
            elif self.sequential:
                if ctx.trace is None:
                    for item in self.work:
                        item.run(ctx, values)
                else:
                    for item in self.in_order:
                        ctx.trace.run(item, ctx, values)
            else:
                pool.run(self, ctx, values)
        finally:
            if observer is not None:
                observer.end(self, values)
        fetched = [values[s] if isinstance(s, int) else s.read(ctx) for s in self.fetch_slots]
        if self._strings:
            fetched = [np.asarray(v) if type(v) is Strings else v for v in fetched]
        return fetched if self._settle is None else self._settle(fetched)


class _Fetched:
    """A fetched reference: read at the end of the step."""

    __slots__ = ("store", "variable")

    def __init__(self, store: VariableStore, variable: Operation) -> None:
        self.store = store
        self.variable = variable

    def read(self, ctx: ExecutionContext) -> Any:
        value = self.store.hand_out()
        if ctx.versions is not None:
            ctx.versions.note_read({self.store})
        if value is None:
            raise uninitialized(self.variable)
        return value
