"""Decides what a run does when a task ends, a user interrupts, or time is up: events in, actions out.

No processes, clocks or threads here: the times come with the events.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import NamedTuple

_TERMINATE_SECONDS = 2.0  # from asking a task to end until it is killed
_INTERRUPT_SECONDS = 1.5  # the same after Ctrl-C: somebody is waiting for the prompt


class Start(NamedTuple):
    """Start a task again."""

    label: str


class Send(NamedTuple):
    """Send a signal to a task and all that it started."""

    label: str
    number: int


@dataclass
class Failure:
    """A task that ended as it should not have."""

    label: str
    code: int  # negative: the signal that ended it
    at: float

    @property
    def exit_code(self) -> int:
        """As shells give it."""
        return self.code if self.code >= 0 else 128 - self.code


@dataclass
class _TaskState:
    serves: bool
    restarts_left: int
    running: bool = True
    code: int | None = None


@dataclass
class Policy:
    """The state of a run. Each `on_...` returns what is to be done."""

    tasks: dict[str, _TaskState] = field(default_factory=dict)
    keep_going: bool = False
    failure: Failure | None = None
    exit_code: int | None = None  # set once everything has ended
    _stopping: int | None = None  # the exit code to come, once the end has begun
    _kill_at: float | None = None
    _interrupted: bool = False

    def add(self, label: str, serves: bool, restarts: int = 0) -> None:
        """A task that has been started."""
        self.tasks[label] = _TaskState(serves, restarts)

    @property
    def deadline(self) -> float | None:
        """When `on_time` has something to do."""
        return self._kill_at

    @property
    def running(self) -> list[str]:
        """The tasks that have not ended."""
        return [label for label, task in self.tasks.items() if task.running]

    @property
    def one_is_left(self) -> bool:
        """Whether exactly one of the tasks that do not serve others is left."""
        workers = [task.running for task in self.tasks.values() if not task.serves]
        return len(workers) > 1 and sum(workers) == 1

    @property
    def stopping(self) -> bool:
        """Whether tasks have been told to end."""
        return self._stopping is not None

    def on_exit(self, label: str, code: int, now: float) -> list[Start | Send]:
        """A task has ended."""
        task = self.tasks[label]
        task.running, task.code = False, code
        actions: list[Start | Send] = []
        if code != 0 and not self.stopping:
            if task.restarts_left > 0:
                task.restarts_left -= 1
                task.running, task.code = True, None
                return [Start(label)]
            self.failure = self.failure or Failure(label, code, now)
            if not self.keep_going:
                actions = self._stop(self.failure.exit_code, now + _TERMINATE_SECONDS)
        if not self.stopping and self._work_is_done():
            code = self.failure.exit_code if self.failure else 0
            actions = self._stop(code, now + _TERMINATE_SECONDS)
        if not self.running:
            self.exit_code = self._stopping if self._stopping is not None else 0
        return actions

    def on_signal(self, number: int, now: float) -> list[Start | Send]:
        """The user wants the run to end: at once if they say so twice."""
        if self._interrupted:
            self._kill_at = None
            return [Send(label, signal.SIGKILL) for label in self.running]
        self._interrupted = True
        return self._stop(128 + number, now + _INTERRUPT_SECONDS, signal.SIGINT)

    def on_timeout(self, now: float) -> list[Start | Send]:
        """The run has taken as long as it may."""
        return [] if self.stopping else self._stop(124, now + _TERMINATE_SECONDS)

    def on_time(self, now: float) -> list[Start | Send]:
        """Time has passed."""
        if self._kill_at is None or now < self._kill_at:
            return []
        self._kill_at = None
        return [Send(label, signal.SIGKILL) for label in self.running]

    def _work_is_done(self) -> bool:
        workers = [task for task in self.tasks.values() if not task.serves]
        return bool(workers) and not any(task.running for task in workers)

    def _stop(self, code: int, kill_at: float, to_workers: int = signal.SIGTERM) -> list[Start | Send]:
        self._stopping = code
        self._kill_at = kill_at
        return [Send(n, signal.SIGTERM if self.tasks[n].serves else to_workers) for n in self.running]
