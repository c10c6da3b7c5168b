"""What this process has done since it began, as plain numbers: they are counted here and read by whoever asks.

Nobody takes a lock to count. CPython changes threads at calls and at the ends of loops only, so `x.count += n` loses
nothing as long as `n` is a name or a number: a call on the right side must come before, in a statement of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorfleet.base import errors

if TYPE_CHECKING:
    from tensorfleet.base.protos import Event

#: the parts of a step: waiting for input, reading variables of other tasks, sending them updates, waiting for others
INPUT, PULL, PUSH, WAIT = "input", "pull", "push", "wait"
#: all the rest of a step
COMPUTE = "compute"
PARTS = (INPUT, PULL, COMPUTE, PUSH, WAIT)

# To measure a step in parts costs it 10 to 50 us, and more if it reads many variables of several servers (64 of four: 1 ms).
# After one as long as this the next is measured too; else one is measured after so many seconds of steps.
_LONG_SECONDS, _MEASURE_EVERY_SECONDS = 5e-3, 0.1
_MAX_SCALARS = 50
_MAX_ERROR_LENGTH = 2000
_MAX_AGE = 1000  # of a gradient, in updates: older ones count as this old


class StepTimer:
    """Where the time of one step goes. Parts that nobody adds are computing."""

    __slots__ = ("parts", "waited")

    def __init__(self) -> None:
        self.parts = dict.fromkeys((INPUT, PULL, PUSH, WAIT), 0.0)
        #: for which other task the step has waited how long
        self.waited: dict[object, float] = {}

    def add(self, part: str, seconds: float) -> None:
        """Adds to a part. Several threads may do so: parts of a step that ran at the same time count together."""
        self.parts[part] += seconds

    def add_waits(self, tasks: Sequence[object], seconds: float) -> None:
        """Adds to the time that the step has waited for some tasks, each its share."""
        for task in tasks:
            self.waited[task] = self.waited.get(task, 0.0) + seconds / len(tasks)

    def shares(self, seconds: float) -> dict[str, float]:
        """The parts as fractions of a step that took so long."""
        known = sum(self.parts.values())
        whole = max(seconds, known, 1e-9)
        shares = {part: spent / whole for part, spent in self.parts.items()}
        shares[COMPUTE] = max(whole - known, 0.0) / whole
        return shares


class StepCounts:
    """The steps of this process: calls of `run` and of callables. What queue runners put into queues is not counted."""

    __slots__ = ("_attributed", "_lock", "count", "due", "failed", "parts", "seconds", "waited")

    def __init__(self) -> None:
        self.count = self.failed = 0
        self.seconds = 0.0
        #: from how many seconds on the next step is measured
        self.due = 0.0
        self.parts = dict.fromkeys(PARTS, 0.0)
        #: seconds by what was waited for
        self.waited: dict[object, float] = {}
        self._attributed = 0.0
        self._lock = threading.Lock()

    def measured(self, timer: StepTimer, took: float) -> None:
        """A step that was measured is over. The steps before it that were not are taken to be like it."""
        self.count += 1
        self.seconds += took
        self.due = self.seconds if took >= _LONG_SECONDS else self.seconds + _MEASURE_EVERY_SECONDS
        with self._lock:
            due = max(self.seconds - self._attributed, 0.0)
            self._attributed = self._attributed + due
            for part, share in timer.shares(took).items():
                self.parts[part] += share * due
            for task, waited in timer.waited.items():
                self.waited[task] = self.waited.get(task, 0.0) + waited / max(took, 1e-9) * due

    def parts_so_far(self) -> dict[str, float]:
        """The parts with the steps since the last measured one, which are taken to be like all before."""
        with self._lock:
            parts, whole = dict(self.parts), self._attributed
        if not whole:
            return {**parts, COMPUTE: self.seconds}
        return parts

    def waited_for(self, task: object) -> float:
        """How many seconds steps have waited for a task."""
        return self.waited.get(task, 0.0)


class ErrorLog:
    """The last error of a step or request, with its time."""

    __slots__ = ("text", "time")

    def __init__(self) -> None:
        self.time, self.text = 0.0, ""

    def note(self, error: BaseException) -> None:
        """Remembers an error."""
        try:
            text = str(error.message if isinstance(error, errors.OpError) else error)
        except (
            Exception
        ):  # an error of the user's own may fail to say what it is; it must not turn into another
            text = "(it cannot be printed)"
        self.time, self.text = time.time(), f"{type(error).__name__}: {text}"[:_MAX_ERROR_LENGTH]


steps = StepCounts()
last_error = ErrorLog()
#: by tag the newest scalar summary that this process has written: step and value
scalars: dict[str, tuple[int, float]] = {}
_newest_step: int | None = None
#: by their staleness how many gradients of this process, and how many were dropped
staleness: dict[int, int] = {}
dropped = 0
_tells_staleness = False  # whether the program itself tells the staleness of every gradient


def failed(error: BaseException) -> None:
    """A step has ended with an error. The end of the input is not one."""
    steps.count += 1
    if not isinstance(error, errors.OutOfRangeError):
        steps.failed += 1
        last_error.note(error)


def note_global_step(step: int) -> None:
    """Remembers the global step that a hook or a summary tells: a number of Python's or numpy's."""
    global _newest_step
    _newest_step = step


def newest_global_step() -> int | None:
    """The global step that was told last."""
    return None if _newest_step is None else int(_newest_step)


def note_event(event: Event) -> None:
    """Remembers the scalars of a summary, and its step."""
    if event.step:
        note_global_step(event.step)
    for value in event.summary.value:
        if value.HasField("simple_value") and (value.tag in scalars or len(scalars) < _MAX_SCALARS):
            scalars[value.tag] = event.step, value.simple_value


def leave_staleness_to_others() -> None:
    """From here on somebody else counts every gradient: those of measured steps are among them."""
    global _tells_staleness
    if not _tells_staleness:
        _tells_staleness = True
        staleness.clear()


def note_staleness(age: int, is_dropped: bool) -> None:
    """Counts a gradient of this process that others have made so many updates after."""
    global dropped
    leave_staleness_to_others()
    if is_dropped:
        dropped += 1
    else:
        age = min(age, _MAX_AGE)
        staleness[age] = staleness.get(age, 0) + 1


def note_measured_staleness(age: int) -> None:
    """The same, seen in a measured step. It counts unless the program itself tells of every gradient."""
    if not _tells_staleness:
        staleness[age] = staleness.get(age, 0) + 1


def dropped_gradients() -> int:
    """How many gradients of this process were dropped as stale."""
    return dropped


def forget() -> None:
    """Starts again from zero, in a forked process."""
    global _newest_step, dropped, _tells_staleness
    steps.__init__()  # type: ignore[misc]
    last_error.__init__()  # type: ignore[misc]
    scalars.clear()
    staleness.clear()
    _newest_step, dropped, _tells_staleness = None, 0, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
