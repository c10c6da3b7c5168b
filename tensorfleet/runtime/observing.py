"""Looking at the values of steps while they run, without changing what they compute.

An observer never adds fetches to a program: another program would be compiled another way, and its results could differ
in the last bit. Values that pass between the parts of a program are read when it has run. Values inside of a segment are
computed again, in numpy, from the same inputs and variables (`replay`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tensorfleet.base import errors, logging

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.program import Program
    from tensorfleet.runtime.scheduling.step import ExecutionContext
    from tensorfleet.runtime.segments.segment import Segment, SegmentStep
    from tensorfleet.runtime.segments.segment_item import SegmentItem
    from tensorfleet.runtime.values import Values


class Replay:
    """What a segment computes in a step, from copies of what it works on."""

    def __init__(self, item: SegmentItem, values: Values, before: Values, state: Values) -> None:
        self.item = item
        self.values = values
        #: the variables before the step and after it
        self.before, self.state = before, state


class StepWatch(Protocol):
    """Something that looks at one step of a program."""

    def wants(self, item: SegmentItem) -> Iterable[SegmentStep] | None:
        """The operations of a segment that it needs the results of, None for none of them."""

    def inside(self, replay: Replay) -> None:
        """What a segment computes."""

    def end(self, values: Values) -> None:
        """The values of the program, when it has run or failed."""


class StepsWatch(Protocol):
    """Something that looks at steps."""

    #: by the steady clock: nobody asks for its results any more after that, and it is removed
    expires: float

    def begin(self, program: Program, session: str) -> StepWatch | None:
        """Looks at a step of this program and session, unless that is of no interest."""


#: the watches of this process; replaced as a whole, so that a step reads it without a lock
active: tuple[StepsWatch, ...] = ()
_lock = threading.Lock()


def add(watch: StepsWatch) -> None:
    """Has a watch look at all steps from now on."""
    global active
    with _lock:
        active = (*active, watch)


def remove(watch: StepsWatch) -> None:
    """Ends what `add` began."""
    global active
    with _lock:
        active = tuple(w for w in active if w is not watch)


class ValueObserver:
    """All that look at one step. What they raise never reaches the step."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._program: Program | None = None
        self._watches: list[StepWatch] = []

    def begin(self, program: Program) -> None:
        """The step begins. A program inside of another one is left alone."""
        if self._program is not None:
            return
        self._program = program
        now = time.monotonic()
        for watch in active:
            if watch.expires < now:
                remove(watch)
                continue
            begun = _shielded(lambda watch=watch: watch.begin(program, self._session))  # type: ignore[misc]
            if begun is not None:
                self._watches.append(begun)

    def look(self, item: SegmentItem, ctx: ExecutionContext, inputs: Values) -> None:
        """A segment is about to run, and has the locks of the variables that it changes."""
        for watch in self._watches:
            _shielded(lambda watch=watch: self._look(watch, item, ctx, inputs))  # type: ignore[misc]

    @staticmethod
    def _look(watch: StepWatch, item: SegmentItem, ctx: ExecutionContext, inputs: Values) -> None:
        wanted = watch.wants(item)
        if wanted is not None:
            watch.inside(replay(item, ctx, inputs, list(wanted)))

    def end(self, program: Program, values: Values) -> None:
        """The step has run or failed."""
        if program is self._program:
            for watch in self._watches:
                _shielded(lambda watch=watch: watch.end(values))  # type: ignore[misc]


def _shielded(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        logging.warning("Looking at a step failed, which goes on: %s: %s", type(error).__name__, error)
        return None


def replay(item: SegmentItem, ctx: ExecutionContext, inputs: Values, wanted: list[SegmentStep]) -> Replay:
    """Runs some operations of a segment in numpy, with all that they need. The step itself is not touched.

    An operation that fails ends it: the results of those before it are there.
    """
    segment = item.segment
    values = segment.template.copy()
    for slot, value in zip(segment.input_slots, inputs, strict=True):
        values[slot] = None if value is None else np.asarray(value)
    steps = None if segment.guarded else needed(segment, wanted)
    before: Values = [None] * len(item.stores)
    for i, store in enumerate(item.stores):
        value = store.read()
        # What is changed in place, by this replay or by the step after it, is copied.
        if value is not None:
            before[i] = np.array(value) if i in segment.owned else np.asarray(value)
    state = [np.array(v) if i in segment.owned else v for i, v in enumerate(before)]
    streams = [ctx.streams.take(step.op, 0) for step in segment.rng_steps]
    try:
        with np.errstate(all="ignore"):
            segment.interpret(values, state, streams, steps=steps)
    except errors.OpError:
        pass  # the step is about to say so itself
    return Replay(item, values, before, state)


def needed(segment: Segment, wanted: list[SegmentStep]) -> list[SegmentStep]:
    """Some operations of a segment with all that they depend on, in order."""
    ids = {id(step) for step in wanted}
    codes: set[int] = set()
    result = []
    for step in reversed(segment.steps):
        made = {o for o in step.outs if o is not None} | {~u for u in step.updates}
        if id(step) in ids or not made.isdisjoint(codes):
            codes.update(step.args)
            result.append(step)
    return result[::-1]
