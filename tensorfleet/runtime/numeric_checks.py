"""Finding the first operation of a step that makes a NaN or an infinity.

Each segment of a checked step also runs operation by operation, on copies of what it works on (observing.py). So every
result is looked at, also those that a compiled program never stores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base.platform.thread_frames import is_users
from tensorfleet.runtime.observing import Replay
from tensorfleet.runtime.segments.segment_item import SegmentItem
from tensorfleet.runtime.tensor_watch import fetched
from tensorfleet.runtime.value_stats import has_bad, statistics

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Operation
    from tensorfleet.runtime.scheduling.items import Item
    from tensorfleet.runtime.scheduling.program import Program
    from tensorfleet.runtime.segments.segment import SegmentStep
    from tensorfleet.runtime.values import Values


@dataclass(slots=True)
class Culprit:
    """An operation whose result has a NaN or an infinity."""

    op: Operation
    output: dict[str, Any]
    #: the name and the statistics of each input
    inputs: list[tuple[str, dict[str, Any]]]
    #: whether it made the number: all its inputs are finite
    makes: bool
    step: str
    time: float
    #: in the results of compiled code alone: numpy gets finite ones
    only_compiled: bool = False

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "op": self.op.name,
            "type": self.op.type,
            **line_of(self.op),
            "output": self.output,
            "inputs": [{"name": name, **stats} for name, stats in self.inputs],
            "makes": self.makes,
            "step": self.step,
            "time": self.time,
            "only_compiled": self.only_compiled,
        }


def line_of(op: Operation) -> dict[str, Any]:
    """The line of the user's program that made an operation; empty for one that another task sent."""
    for file, line, _, code in reversed(op.traceback):
        if is_users(file):
            return {"line": f"{file}:{line}", "code": code}
    return {"line": "", "code": ""}


@dataclass
class NumericWatch:
    """Checks steps until an operation makes a NaN or an infinity."""

    steps: int
    expires: float = math.inf
    changed: Condition = field(default_factory=Condition)
    checked: int = 0
    #: the first operation that makes one; and the first that has one, which it may have got from outside
    maker: Culprit | None = None
    taker: Culprit | None = None

    def begin(self, program: Program, session: str) -> _NumericStep | None:
        """Checks a step, unless enough have been."""
        if self.maker is not None or self.checked >= self.steps:
            return None
        return _NumericStep(self, program)

    def add(self, culprits: Iterable[Culprit]) -> None:
        """Takes in what a step has shown."""
        with self.changed:
            self.checked += 1
            for culprit in culprits:
                if culprit.makes:
                    self.maker = self.maker or culprit
                else:
                    self.taker = self.taker or culprit
            self.changed.notify_all()

    def take(self, seconds: float) -> dict[str, Any]:
        """What is known after at most so many seconds, or as soon as there is something."""
        limit = time.monotonic() + seconds
        with self.changed:
            while self.maker is None and self.checked < self.steps:
                left = limit - time.monotonic()
                if left <= 0 or not self.changed.wait(left):
                    break
            return {
                "checked": self.checked,
                "done": self.maker is not None or self.checked >= self.steps,
                "maker": self.maker and self.maker.content(),
                "taker": self.taker and self.taker.content(),
            }


class _NumericStep:
    """One step that is checked."""

    def __init__(self, watch: NumericWatch, program: Program) -> None:
        self._watch, self._program = watch, program
        self._step = fetched(program.plan)
        self._found: list[tuple[SegmentItem, Culprit]] = []

    def wants(self, item: SegmentItem) -> Iterable[SegmentStep] | None:
        """All operations of every segment that computes."""
        return item.segment.steps or None

    def inside(self, replay: Replay) -> None:
        """Looks at all results of a segment, in order."""
        segment = replay.item.segment
        for step in segment.steps:
            given = [replay.values[a] if a >= 0 else replay.before[~a] for a in step.args]
            made = [replay.values[o] for o in step.outs if o is not None]
            made += [replay.state[u] for u in step.updates]
            bad = next((value for value in made if has_bad(value)), None)
            if bad is not None:
                names = _names(step, segment)
                culprit = self._culprit(step.op, bad, list(zip(names, given, strict=True)))
                self._found.append((replay.item, culprit))
                if culprit.makes:
                    return

    def end(self, values: Values) -> None:
        """Looks at what is not in segments, and at what compiled programs gave."""
        found = list(self._found)
        order = {id(item): i for i, item in enumerate(self._program.items)}
        inside = {id(item) for item, _ in found}
        others = [
            (item, culprit)
            for item in self._program.items
            if id(item) not in inside and (culprit := self._outside(item, values)) is not None
        ]
        everything = sorted([*found, *others], key=lambda pair: order.get(id(pair[0]), -1))
        self._watch.add(culprit for _, culprit in everything)

    def _outside(self, item: Item, values: Values) -> Culprit | None:
        outs = [values[o] for o in getattr(item, "outs", ()) if o is not None]
        bad = next((value for value in outs if has_bad(value)), None)
        if bad is None:
            return None
        if isinstance(item, SegmentItem):
            given = list(
                zip((t.name for t in item.segment.inputs), (values[i] for i in item.ins), strict=True)
            )
            culprit = self._culprit(
                item.segment.steps[-1].op if item.segment.steps else item.segment.ops[-1], bad, given
            )
            culprit.only_compiled = item.reading is None
            culprit.makes = culprit.makes and item.reading is None
            return culprit
        op: Any = getattr(item, "op", None)
        if op is None or not hasattr(op, "traceback"):
            return None
        slots = [(t.name, self._program.slot_of(t)) for t in op._inputs]
        return self._culprit(op, bad, [(name, values[slot]) for name, slot in slots if slot is not None])

    def _culprit(self, op: Operation, bad: Any, given: Sequence[tuple[str, Any]]) -> Culprit:
        inputs = [(name, statistics(v)) for name, v in given if _is_array(v)]
        # What comes from elsewhere (a queue, a Python function, another task) is not made here.
        makes = not any(has_bad(v) for _, v in given if _is_array(v)) and not op.spec.blocks
        return Culprit(op, statistics(bad), inputs, makes, self._step, time.time())


def _is_array(value: Any) -> bool:
    return value is not None and (hasattr(value, "__array__") or isinstance(value, (int, float, np.generic)))


def _names(step: SegmentStep, segment: Any) -> list[str]:
    inputs = step.op._inputs
    if len(inputs) == len(step.args):
        return [t.name for t in inputs]
    return [segment.tensor_of(a).name if a >= 0 else segment.variables[~a].name for a in step.args]
