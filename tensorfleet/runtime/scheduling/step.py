"""One step under way: its cancellation, its deadline, and the waits to wake then."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from tensorfleet.base import errors
from tensorfleet.graph.kernel_types import Wakeable
from tensorfleet.kernels.interruptible_calls import Call, Interrupted
from tensorfleet.runtime.resources import RandomStreams, ResourceManager
from tensorfleet.state.long_waits import LongWait

if TYPE_CHECKING:
    from tensorfleet.base.counters import StepTimer
    from tensorfleet.graph.kernel_types import Event
    from tensorfleet.runtime.observing import ValueObserver
    from tensorfleet.runtime.scheduling.items import Item
    from tensorfleet.runtime.scheduling.program import Program
    from tensorfleet.runtime.scheduling.threads import Pool
    from tensorfleet.runtime.trace import StepObserver
    from tensorfleet.runtime.variable_versions import VariableVersions


class ExecutionContext:
    """One run of a program: its cancellation, its deadline, and the trace it leaves if asked to."""

    __slots__ = (
        "_lock",
        "_waiting",
        "asker",
        "deadline",
        "observer",
        "private",
        "reason",
        "resources",
        "streams",
        "task",
        "trace",
        "versions",
        "waits_for",
    )

    #: measures the parts of the step, if they are to be
    timer: StepTimer | None = None
    #: on a durable server: has the changes of the step copied before it waits, and lets others run meanwhile
    guard: StageGuard | None = None
    #: what the step waits for, in words, and since when; of several waits the last that began. Most steps never set it.
    waits_for: tuple[str, float] | None

    def __init__(
        self, resources: ResourceManager, streams: RandomStreams, deadline: float | None, waits: bool = True
    ) -> None:
        self.resources = resources
        self.private = resources  # of this session alone
        self.task = ""  # where the step runs, when it is part of a cluster
        self.streams = streams
        self.deadline = deadline
        self._lock = threading.Lock() if waits else None  # a step that never waits needs no waking
        self._waiting: set[Wakeable] = set()
        self.reason: errors.OpError | None = None
        #: who asked for the results, when it was another process: it may have gone
        self.asker: Any = None
        self.trace: StepObserver | None = None
        #: who looks at the values of the step, if anybody does
        self.observer: ValueObserver | None = None
        #: notes the versions of the variables that the step reads and updates, if they are wanted
        self.versions: VariableVersions | None = None

    def cancel(self, reason: errors.OpError) -> None:
        """Ends the step: waiting operations wake up and raise `reason`."""
        # The first reason counts: later ones follow from it.
        if self.reason is None:
            self.reason = reason
        self.end()

    def end(self) -> None:
        """Wakes all waits, and gives back everything that is still held."""
        if self._lock is not None:
            with self._lock:
                waiting = list(self._waiting)
            for event in waiting:
                event.set()

    def wait(self, event: Event, what: str, long: LongWait | None = None) -> None:
        """Waits until `event` is set; raises when the step is cancelled or its deadline passes.

        The caller looks at its own state after any of these: an event may be set in the same moment. With `long`, a wait
        that takes long is logged.
        """
        guard = self.guard
        if guard is not None:
            guard.pause()
        try:
            if self.trace is not None:
                with self.trace.waiting(what):
                    self._wait(event, what, long)
            else:
                self._wait(event, what, long)
        finally:
            if guard is not None:
                guard.resume()

    @property
    def is_exclusive(self) -> bool:
        """Whether no other step changes variables now: on a durable server these run one at a time."""
        return self.guard is not None

    @contextlib.contextmanager
    def beside_others(self) -> Iterator[None]:
        """Lets other steps go on meanwhile. What was read of variables before has to be copied."""
        guard = self.guard
        if guard is None:
            yield
            return
        guard.pause()
        try:
            yield
        finally:
            guard.resume()

    def _wait(self, event: Event, what: str, long: LongWait | None) -> None:
        assert self._lock is not None
        began = time.monotonic()
        with self._lock:
            self._waiting.add(event)
        self.waits_for = waits_for = (what, began)
        try:
            if self.reason is None and not self._comes(event, long):
                state = "" if long is None else long.state()
                raise errors.DeadlineExceededError(
                    None,
                    None,
                    f"Timed out waiting for notification: waited {what}{self._where()}{state}. Raise timeout_in_ms of "
                    "tf.RunOptions (or operation_timeout_in_ms of tf.ConfigProto), or see why nobody answers.",
                )
            if self.reason is not None:
                raise self.reason
        finally:
            waited = time.monotonic() - began
            with self._lock:
                self._waiting.discard(event)
                if self.waits_for is waits_for:
                    self.waits_for = None
            self._count_wait(waited, long)

    def _count_wait(self, seconds: float, long: LongWait | None) -> None:
        if long is not None:
            long.count(seconds)
        if self.asker is not None:
            self.asker.waited_seconds += seconds

    def _comes(self, event: Event, long: LongWait | None) -> bool:
        """Whether an event is set before the deadline."""
        began = now = time.monotonic()
        while True:
            left = None if self.deadline is None else self.deadline - now
            pause = 0.0 if long is None else long.due() - (now - began)
            if long is None or (left is not None and left <= pause):
                return bool(event.wait(left))
            if event.wait(pause):
                return True
            now = time.monotonic()
            long.tell(now - began, self._where())

    def _where(self) -> str:
        return f" of {self.task}" if self.task else ""

    def hold(self, held: Wakeable) -> None:
        """Has `held.set()` called when the step ends, unless it is released before."""
        assert self._lock is not None
        with self._lock:
            self._waiting.add(held)
        if self.reason is not None:
            held.set()

    def release(self, held: Wakeable) -> None:
        """Ends what `hold` began."""
        assert self._lock is not None
        with self._lock:
            self._waiting.discard(held)

    def stoppable(self, call: Call) -> Any:
        """What a Python function returns, which is interrupted when the step is cancelled."""
        assert self._lock is not None
        with self._lock:
            self._waiting.add(call)
        try:
            if self.reason is None:
                return call.run()
            raise self.reason
        except Interrupted:
            assert self.reason is not None
            raise self.reason from None
        finally:
            with self._lock:
                self._waiting.discard(call)


class MeasuredContext(ExecutionContext):
    """One run whose parts are measured, that notes the versions of variables, or that is guarded."""

    __slots__ = ("guard", "timer")


class StageGuard(Protocol):
    """Who runs the items of a step on a durable server (cluster/durability/), one such step after the other."""

    def run(self, program: Program, ctx: ExecutionContext, values: list[Any], pool: Pool) -> None:
        """Runs the items of a program."""

    def attempt(self, item: Item, i: int, ctx: ExecutionContext, values: list[Any]) -> None:
        """Runs one of several items that run side by side."""

    def pause(self) -> None:
        """The step waits."""

    def resume(self) -> None:
        """The step goes on."""
