"""`tf.fleet.trace`: one trace of all tasks of a cluster, and of all their sessions, for some steps."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.cluster.targets import task_addresses
from tensorfleet.fleet.checking import positive_number, whole_number
from tensorfleet.fleet.clock_offsets import NONE, better, measure
from tensorfleet.fleet.task_sources import RemoteTask, Source, ThisProcess
from tensorfleet.fleet.trace_merge import TaskTrace, TraceRequest, merge

#: called with the steps that the slowest task has done, the steps wanted, and the seconds since the start
Progress: TypeAlias = Callable[[int, int, float], None]
_Result = TypeVar("_Result")

_POLL_SECONDS = 0.1
_POLL_ANSWER_SECONDS = 5.0
# A worker that is slow between its steps may not be in one when the recording begins. One that has ended its training
# delays the trace by as much.
_FIRST_STEP_SECONDS = 3.0
_MAX_ASKED_AT_ONCE = 16


def trace_tasks(
    addresses: Mapping[str, str],
    steps: int = 20,
    seconds: float = 10.0,
    by_op: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Records some steps of all tasks, and gives one Chrome trace: a dict to write as JSON.

    `addresses` has host:port by label, such as "worker/1". The recording is over when every process with sessions has
    done `steps` steps, or after `seconds`. A task that does not answer, or dies meanwhile, is left out; "otherData" says
    so. Raises FailedPreconditionError when a task is being traced already, and UnavailableError when none answers.
    """
    tracing = _Tracing([RemoteTask(label, at) for label, at in addresses.items()], steps, seconds, by_op)
    try:
        tracing.start()
        tracing.follow(progress)
        return tracing.take()
    finally:
        tracing.close()


class _Tracing:
    """A trace under way."""

    def __init__(self, sources: Sequence[Source], steps: int, seconds: float, by_op: bool) -> None:
        self._sources = list(sources)
        self._asked = TraceRequest(steps, seconds, by_op, time.monotonic_ns(), time.time_ns())
        self._id = secrets.token_hex(8)
        self._tasks: dict[str, TaskTrace] = {}
        self._missing: dict[str, str] = {}
        self._began = 0.0

    def start(self) -> None:
        """Has every task record."""
        asked = self._asked
        self._began = time.monotonic()
        options = {"steps": asked.steps, "seconds": asked.seconds, "by_op": asked.by_op, "id": self._id}
        # A task that begins first must not be done with its steps before the last begins.
        options["hold"] = True

        def begin(source: Source) -> TaskTrace:
            # First the clock: the recording is not to show the questions, nor to be over before the last of them.
            offset = NONE if isinstance(source, ThisProcess) else measure(lambda: source.ask("clock"))
            told = source.ask("trace_start", options)
            host, pid, process = str(told["host"]), int(told["pid"]), str(told["process"])
            return TaskTrace(source.label, host, pid, process, offset)

        self._tasks = self._each(begin)
        # This process may be one of the tasks: then it is not a client beside them.
        processes = [t.process for t in self._tasks.values()]
        for source in [s for s in self._sources if isinstance(s, ThisProcess)]:
            if source.label in self._tasks and processes.count(self._tasks[source.label].process) > 1:
                self._leave(source)
                del self._tasks[source.label]
        if not self._tasks:
            text = " ".join(self._missing.values()) or "There is no task to trace."
            raise errors.UnavailableError(None, None, text)
        self._each(lambda s: s.ask("trace_take", {"id": self._id, "go": True}))

    def follow(self, progress: Progress | None = None) -> None:
        """Waits until the tasks have done their steps, or the time is over."""
        until = self._began + self._asked.seconds
        had_sessions = False
        while (now := time.monotonic()) < until and self._sources:
            told = self._each(lambda s: s.ask("trace_take", {"id": self._id}, _POLL_ANSWER_SECONDS))
            is_early = now - self._began < _FIRST_STEP_SECONDS
            done, is_complete = steps_done(self._awaitable(told), self._asked.steps, is_early)
            if progress is not None:
                progress(done, self._asked.steps, now - self._began)
            has_sessions = any(task["begun"] for task in told.values())
            if is_complete or (had_sessions and not has_sessions):  # or all that ran steps have died
                return
            had_sessions = has_sessions
            time.sleep(min(_POLL_SECONDS, max(until - time.monotonic(), 0.0)))

    def _awaitable(self, told: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """What the tasks told. Whoever waits here may run no more steps, so its earlier ones do not count."""
        own = {source.label for source in self._sources if isinstance(source, ThisProcess)}
        return [{**task, "has_run": task.get("has_run") and label not in own} for label, task in told.items()]

    def take(self) -> dict[str, Any]:
        """Ends the recordings, takes them, and gives the trace."""
        # All end before the first is taken: what others do for the taking is not part of the trace.
        self._each(lambda s: s.ask("trace_take", {"id": self._id, "end": True, "start": 1 << 40}))
        self._each(self._take_all)
        return merge(
            [self._tasks[s.label] for s in self._sources if s.label in self._tasks],
            self._missing,
            self._asked,
        )

    def _take_all(self, source: Source) -> None:
        task = self._tasks[source.label]
        if not isinstance(source, ThisProcess):
            task.clock = better(task.clock, measure(lambda: source.ask("clock")))
        events: list[Any] = []
        left = 1
        while left:
            told = source.ask("trace_take", {"id": self._id, "start": len(events)})
            events += told["events"]
            left = told["left"] if told["events"] else 0
        task.events, task.steps, task.dropped = events, told["steps"], told["dropped"]
        task.began, task.ended = told["began_ns"], told["ended_ns"]
        task.threads = {int(ident): name for ident, name in told["threads"].items()}

    def close(self) -> None:
        """Lets every task forget the recording, and ends the connections."""
        for source in list(self._sources):
            self._leave(source)

    def _leave(self, source: Source) -> None:
        # Of two tasks in one process, the first forgets the recording of both.
        shared = [t for t in self._tasks.values() if t.process == self._process_of(source)]
        try:
            if source.label in self._tasks and not (isinstance(source, ThisProcess) and len(shared) > 1):
                source.ask("trace_take", {"id": self._id, "drop": True}, _POLL_ANSWER_SECONDS)
        except errors.OpError:
            pass  # it is gone, or has forgotten it already
        finally:
            source.close()
            self._sources.remove(source)

    def _process_of(self, source: Source) -> str | None:
        task = self._tasks.get(source.label)
        return None if task is None else task.process

    def _each(self, do: Callable[[Source], _Result]) -> dict[str, _Result]:
        """Does something with every task, several at a time. One that fails is left out from now on."""
        if not self._sources:
            return {}
        refused: list[errors.OpError] = []

        def attempt(source: Source) -> tuple[Source, _Result | errors.OpError]:
            try:
                return source, do(source)
            except errors.OpError as error:
                return source, error

        with ThreadPoolExecutor(min(len(self._sources), _MAX_ASKED_AT_ONCE), "tensorfleet-trace") as pool:
            results = list(pool.map(attempt, self._sources))
        told: dict[str, _Result] = {}
        for source, result in results:
            if not isinstance(result, errors.OpError):
                told[source.label] = result
                continue
            if isinstance(result, (errors.FailedPreconditionError, errors.InvalidArgumentError)):
                refused.append(result)
            self._missing[source.label] = result.message
            source.close()
            self._sources.remove(source)
            self._tasks.pop(source.label, None)
        if refused:
            self._tasks |= {label: r for label, r in told.items() if isinstance(r, TaskTrace)}
            raise refused[0]
        return told


def steps_done(told: Sequence[Mapping[str, Any]], steps: int, is_early: bool = False) -> tuple[int, bool]:
    """How many steps the slowest process has done, and whether all have done enough.

    A process without sessions of its own, such as a parameter server, waits for the others. If none has any, then the
    clients are elsewhere, and the steps that a task has served count. As long as it is early, a process that has run
    steps before is waited for as well.
    """
    active = [t for t in told if t["begun"] or t["under_way"] or (is_early and t.get("has_run"))]
    if active:
        done = min(task["steps"] for task in active)
        return done, done >= steps
    done = max((task["served"] for task in told), default=0)
    return min(done, steps), done >= steps


class Trace:
    """A trace to make; `tf.fleet.trace` gives one. Nothing is recorded before `start`, `result`, or a `with` block."""

    def __init__(
        self, sources: Callable[[], list[Source]], steps: int, seconds: float, by_op: bool, path: Path | None
    ) -> None:
        self._make_sources = sources
        self._steps, self._seconds, self._by_op, self._path = steps, seconds, by_op, path
        self._tracing: _Tracing | None = None
        self._trace: dict[str, Any] | None = None

    def start(self) -> Trace:
        """Begins to record, in all tasks, and returns at once."""
        if self._tracing is not None or self._trace is not None:
            raise RuntimeError("This trace was started already. Call tf.fleet.trace again for another one.")
        tracing = _Tracing(self._make_sources(), self._steps, self._seconds, self._by_op)
        try:
            tracing.start()
        except BaseException:
            tracing.close()
            raise
        self._tracing = tracing
        return self

    def result(self, waits: bool = True) -> dict[str, Any]:
        """The trace as a dict, and as a file if there is a path. Starts and waits for the steps, if need be.

        Other threads or other tasks must run the steps meanwhile. With `waits=False` it is over at once.
        """
        if self._trace is not None:
            return self._trace
        if self._tracing is None:
            self.start()
        tracing = self._tracing
        assert tracing is not None
        try:
            if waits:
                tracing.follow()
            self._trace = tracing.take()
        finally:
            tracing.close()
        if self._path is not None:
            write_trace(self._trace, self._path)
        return self._trace

    def __enter__(self) -> Trace:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.result(waits=False)
        except errors.OpError:
            if error is None:  # what has failed in the block is more important
                raise


@export("fleet.trace")
def trace(
    session_or_target: object,
    steps: int = 20,
    seconds: float = 10.0,
    path: str | Path | None = None,
    by_op: bool = False,
) -> Trace:
    """One trace of all tasks of a cluster, to open in chrome://tracing or Perfetto.

        with tf.fleet.trace(sess, path="trace.json"):
            for _ in range(20):
                sess.run(train_op)

    records what runs in the block, in every task and session: at most `steps` steps of each process, and at most for
    `seconds`. `tf.fleet.trace(target).result()` waits for steps that other threads or tasks run. Either way `result()`
    gives the trace as a dict, which is written to `path` too. `by_op` runs every operation of the steps by itself.

    `session_or_target` is a session or a target such as grpc://host:port.
    """
    target = getattr(session_or_target, "sess_str", session_or_target)
    if not isinstance(target, str):
        raise TypeError(
            f"session_or_target must be a session or a string such as grpc://host:port, not {target!r}."
        )
    steps, seconds = whole_number("steps", steps, 1), positive_number("seconds", seconds)

    def sources() -> list[Source]:
        tasks = {label: at for label, at in task_addresses(target).items() if at is not None}
        own = ThisProcess("client" if tasks else "local")
        return [*(RemoteTask(label, at) for label, at in tasks.items()), own]

    return Trace(sources, steps, seconds, bool(by_op), None if path is None else Path(path))


def write_trace(trace: Mapping[str, Any], path: Path) -> None:
    """Writes a trace as JSON."""
    path.write_text(json.dumps(trace, separators=(",", ":")))
