"""Watching tensors by name: their values in the coming steps that compute them."""

from __future__ import annotations

import math
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.operation import Tensor
from tensorfleet.kernels.packed_strings import Strings
from tensorfleet.passes.plan import PartKind
from tensorfleet.runtime.observing import Replay
from tensorfleet.runtime.scheduling.batched_host_ops import JoinedItem
from tensorfleet.runtime.segments.segment_item import SegmentItem

if TYPE_CHECKING:
    from tensorfleet.graph.graph import Graph
    from tensorfleet.passes.plan import Plan
    from tensorfleet.runtime.scheduling.program import Program
    from tensorfleet.runtime.segments.segment import SegmentStep
    from tensorfleet.runtime.values import Values

_MAX_WAITING_BYTES = 256 << 20  # of values that nobody has taken yet
_MAX_FETCHES = 3


@dataclass(slots=True)
class Seen:
    """A watched tensor in one step."""

    name: str
    #: counted from 1 among those that were seen
    step: int
    time: float
    #: what the step fetches, and whose session it is part of
    fetches: str
    session: str
    value: Any


@dataclass(slots=True)
class _Place:
    """Where a program has the value of a tensor."""

    name: str
    read: Callable[[Values], Any] | None = None
    #: inside of which segment, and the operations there that it takes
    item: SegmentItem | None = None
    steps: Sequence[SegmentStep] = ()
    tensor: Tensor | None = None


@dataclass
class TensorWatch:
    """Collects the values of tensors over some steps, each of them at least once in each step that counts."""

    names: Sequence[str]
    steps: int
    #: only of this session's steps, by the task that owns it; empty for all
    session: str = ""
    expires: float = math.inf
    changed: Condition = field(default_factory=Condition)
    #: by what they fetch: the steps that ran and did not compute any of the tensors
    others: Counter[str] = field(default_factory=Counter)
    #: by name: why a step that has the operation does not have its value
    reasons: dict[str, str] = field(default_factory=dict)
    dropped: int = 0

    def __post_init__(self) -> None:
        self._begun = 0
        self._done = 0
        self._seen: deque[Seen] = deque()
        self._bytes = 0
        self._places: weakref.WeakKeyDictionary[Program, list[_Place]] = weakref.WeakKeyDictionary()

    def begin(self, program: Program, session: str) -> _TensorStep | None:
        """Looks at a step if it computes one of the tensors, and enough steps have not been seen."""
        if self.session and session != self.session:
            return None
        places = self._places.get(program)
        if places is None:
            places = self._places[program] = list(self._located(program))
        with self.changed:
            if not places:
                self.others[fetched(program.plan)] += 1
                return None
            if self._begun >= self.steps:
                return None
            self._begun += 1
            return _TensorStep(self, places, fetched(program.plan), session)

    def _located(self, program: Program) -> Iterable[_Place]:
        for name in self.names:
            tensor = tensor_named(program.plan.graph, name)
            place = None if tensor is None else _place(name, tensor, program)
            if isinstance(place, str):
                self.reasons[name] = place
            elif place is not None:
                yield place

    def add(self, seen: list[Seen]) -> None:
        """Takes in what was seen in a step."""
        with self.changed:
            self._done += 1
            for one in seen:
                one.step = self._done
                self._seen.append(one)
                self._bytes += int(getattr(one.value, "nbytes", 0))
            while self._bytes > _MAX_WAITING_BYTES and len(self._seen) > 1:
                self._bytes -= int(getattr(self._seen.popleft().value, "nbytes", 0))
                self.dropped += 1
            self.changed.notify_all()

    def again(self) -> None:
        """A step had nothing to show after all: another one counts instead."""
        with self.changed:
            self._begun -= 1

    def take(self, seconds: float) -> tuple[list[Seen], bool]:
        """What was seen since the last call, after at most so many seconds, and whether that is all."""
        limit = time.monotonic() + seconds
        with self.changed:
            while not self._seen and self._done < self.steps:
                left = limit - time.monotonic()
                if left <= 0 or not self.changed.wait(left):
                    break
            seen, self._bytes = list(self._seen), 0
            self._seen.clear()
            return seen, self._done >= self.steps


class _TensorStep:
    """One step that computes some of the tensors."""

    def __init__(self, watch: TensorWatch, places: list[_Place], fetches: str, session: str) -> None:
        self._watch, self._places = watch, places
        self._fetches, self._session = fetches, session
        self._inside: dict[str, Any] = {}

    def wants(self, item: SegmentItem) -> Iterable[SegmentStep] | None:
        """The operations inside of a segment that make watched tensors."""
        return [step for p in self._places if p.item is item for step in p.steps] or None

    def inside(self, replay: Replay) -> None:
        """Keeps the values of a segment."""
        for place in self._places:
            if place.item is replay.item and place.tensor is not None:
                value = _value(place.tensor, replay)
                if value is not None:
                    self._inside[place.name] = np.array(value)

    def end(self, values: Values) -> None:
        """Keeps the other values, and hands all of them to the watch."""
        seen, now = [], time.time()
        for place in self._places:
            value = self._inside.get(place.name) if place.read is None else place.read(values)
            if value is not None:
                copy = np.array(np.asarray(value))
                seen.append(Seen(place.name, 0, now, self._fetches, self._session, copy))
        if seen:
            self._watch.add(seen)
        else:  # in a branch that was not taken, or the step failed before it
            self._watch.again()


def tensor_named(graph: Graph, name: str) -> Tensor | None:
    """The tensor of a name; that of an operation alone is its first output."""
    op_name, _, index = name.partition(":")
    op = graph._by_name.get(op_name)
    number = int(index or 0) if (index or "0").isdecimal() else -1
    return op._outputs[number] if op is not None and 0 <= number < len(op._outputs) else None


def fetched(plan: Plan) -> str:
    """What a plan is for, in words."""
    names = [t.name for t in plan.fetches] + [op.name for op in plan.targets]
    more = f" and {len(names) - _MAX_FETCHES} more" if len(names) > _MAX_FETCHES else ""
    return ", ".join(names[:_MAX_FETCHES]) + more


def _place(name: str, tensor: Tensor, program: Program) -> _Place | str | None:
    """Where a program has the value of a tensor: why it has none, or None if the tensor is not part of it."""
    plan = program.plan
    if tensor in plan.fed:
        return _in_slot(name, tensor, program)
    if tensor in plan.constants:
        constant = plan.constants[tensor]
        return _Place(name, lambda values: constant)
    while tensor._op in plan.same:
        tensor = plan.same[tensor._op]._outputs[tensor._value_index]
    op = tensor._op
    if op in plan.inside or any(op in loop.inside for loop in plan.loops):
        return "it is inside of a loop: watch what the loop gives"
    if op not in plan.devices:
        return None
    if tensor.dtype._is_ref_dtype or tensor.dtype.name in ("resource", "variant"):
        variable = plan.variable_of(tensor)
        if variable is None:
            return "it is a handle, not a value"
        store = program.store_of(variable)
        return _Place(name, lambda values: store.read())
    return _computed(name, tensor, program)


def _computed(name: str, tensor: Tensor, program: Program) -> _Place | str | None:
    """Where the part is that computes a tensor."""
    plan, op = program.plan, tensor._op
    for part, item in zip(plan.parts, program.items, strict=True):
        if op in part.ops:
            if part.kind is PartKind.SEGMENT and isinstance(item, SegmentItem) and tensor not in part.outputs:
                return _in_segment(name, tensor, item)
            if isinstance(item, JoinedItem):
                return _in_joint(name, tensor, item)
            return _in_slot(name, tensor, program)
    return None


def _in_joint(name: str, tensor: Tensor, item: JoinedItem) -> _Place | None:
    """Operations that are called together may keep their results in one array."""
    if tensor._value_index >= len(item.made):
        return None
    joint, number = item.made[tensor._value_index], item.ops.index(tensor._op)

    def read(values: Values) -> Any:
        value, whole = values[joint.each[number]], values[joint.whole]
        return whole.split()[number] if value is None and whole is not None else _plain(value)

    return _Place(name, read)


def _in_slot(name: str, tensor: Tensor, program: Program) -> _Place | str:
    slot = program.slot_of(tensor)
    if slot is None:
        return "the step does not keep it apart"
    return _Place(name, lambda values: _plain(values[slot]))


def _plain(value: Any) -> Any:
    return np.asarray(value) if type(value) is Strings else value


def _in_segment(name: str, tensor: Tensor, item: SegmentItem) -> _Place | str:
    segment = item.segment
    slot = segment.slot_of(tensor)
    makers = [step for step in segment.steps if slot is not None and slot in step.outs]
    if not makers:  # computed in one with others: again by itself, from its inputs
        slots = {segment.slot_of(t) for t in tensor._op._inputs} - {None}
        makers = [s for s in segment.steps if not slots.isdisjoint(s.outs)] or segment.steps[:1]
    if not makers:
        return "the step does not compute it apart"
    return _Place(name, None, item, makers, tensor)


def _value(tensor: Tensor, replay: Replay) -> Any:
    slot = replay.item.segment.slot_of(tensor)
    if slot is not None:
        return replay.values[slot]
    op = tensor._op
    if op.spec.updates or op.spec.rng is not None or op.spec.host:
        return None
    given = [_value(t, replay) for t in op._inputs]
    if any(v is None for v in given):
        return None
    with np.errstate(all="ignore"):
        return Kernel(op).call(np, given)[tensor._value_index]
