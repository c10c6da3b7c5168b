"""A run from start to end: starts the tasks, passes their output on, carries out the policy's actions."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tensorfleet.base.run_status import ALONE, STATUS
from tensorfleet.cli.dashboard.launched import LaunchedPage
from tensorfleet.cli.failure import Reason, lost_in, reason_in, report
from tensorfleet.cli.output import Output, Progress, log_path
from tensorfleet.cli.plan import INSPECT, MADE, STAYS, TOKEN, Task
from tensorfleet.cli.policy import Failure, Policy, Send, Start
from tensorfleet.cli.process import Guardian, Running
from tensorfleet.cli.registry import Entry

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REDRAW_SECONDS = 0.5  # of the status line
_MAX_UNPRINTED_LINES = 10_000  # then tasks wait: a slow terminal must not fill the memory
_BROKEN_PIPE = 128 + signal.SIGPIPE


class _Line(NamedTuple):
    label: str
    text: str


class _Exit(NamedTuple):
    label: str
    code: int


class _Note(NamedTuple):
    text: str


class _Signal(NamedTuple):
    number: int


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as open_sockets:
        result = []
        for _ in range(count):
            listener = open_sockets.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            result.append(listener.getsockname()[1])
        return result


class Launcher:
    """One run of a script's tasks. `go()` returns the exit code."""

    def __init__(
        self,
        tasks: list[Task],
        name: str,
        script: str,
        log_dir: Path | None = None,
        restarts: int = 0,
        timeout: float | None = None,
        keep_going: bool = False,
        output: Output | None = None,
        made: Path | None = None,  # where a task tells of a cluster that has more tasks than these
        page: LaunchedPage | None = None,
    ) -> None:
        self._made = made
        self._restarts = restarts
        self._statuses: dict[str, Path] = {}
        if log_dir is not None:
            here = [task.label for task in tasks if task.host is None]
            self._statuses = {
                label: log_path(log_dir, label).with_suffix(".status").absolute() for label in here
            }
        self._alone = (log_dir or Path()).absolute() / "alone.status"
        # Where tasks without an address in a cluster answer questions about themselves.
        silent = [task.label for task in tasks if not task.address and task.host is None]
        ports = free_ports(len(silent))
        self._inspects = {label: f"127.0.0.1:{port}" for label, port in zip(silent, ports, strict=True)}
        self._tasks = {task.label: self._with_status(task) for task in tasks}
        self._script = script
        self._log_dir = log_dir
        self._events: queue.SimpleQueue[_Line | _Exit | _Signal | _Note] = queue.SimpleQueue()
        self._room = threading.Semaphore(_MAX_UNPRINTED_LINES)
        self._start_time = time.monotonic()
        self._end_time = self._start_time + timeout if timeout else None
        self._timeout = timeout
        self._policy = Policy(keep_going=keep_going)
        for task in tasks:
            self._policy.add(task.label, task.serves, restarts)
        self._output = output or Output(list(self._tasks), sys.stdout, log_dir)
        self._progress = Progress(self._start_time, self._statuses)
        token = tasks[0].environment.get(TOKEN) or os.environ.get(TOKEN, "")
        self._page = page
        if page is not None:
            page.note = lambda text: self._events.put(_Note(text))
            page.begin(token)
        self._entry = Entry(name, script, log_dir, token, page.address if page else None)
        self._running: dict[str, Running] = {}
        self._failed: list[str] = []

    def go(self) -> int:
        """Starts everything and stays until everything has ended."""
        # A process of its own: it ends the tasks even if this one is killed.
        guardian = Guardian()
        try:
            with self._signals():
                for label in self._tasks:
                    self._start(label, guardian)
                while self._policy.exit_code is None:
                    self._step(guardian)
                self._print_the_rest()
            self._output.close()
        except BrokenPipeError:  # nobody reads us any more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _BROKEN_PIPE
        finally:
            # Whatever ended the loop, no task outlives the launcher.
            for running in self._running.values():
                running.send(signal.SIGKILL)
            guardian.close()
            self._entry.remove()
            for path in (*self._statuses.values(), *([self._alone] if self._statuses else [])):
                with contextlib.suppress(OSError):  # there is no such folder, or it is not ours
                    path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the exit code tells it too
            self._explain()
        return self._policy.exit_code

    def _with_status(self, task: Task) -> Task:
        """A task that tells where it is in a file."""
        path = self._statuses.get(task.label)
        added = {STATUS: str(path), ALONE: str(self._alone)} if path else {}
        if task.label in self._inspects:
            added[INSPECT] = f"{task.label}@{self._inspects[task.label]}"
        if self._made:
            added[MADE] = str(self._made)
        if task.serves and self._restarts:
            added[STAYS] = "1"
        return replace(task, environment={**task.environment, **added})

    def _print_the_rest(self) -> None:
        """Lines that came while the last task ended."""
        while not self._events.empty():
            event = self._events.get_nowait()
            if isinstance(event, _Line):
                self._output.line(*event)
            elif isinstance(event, _Note):
                self._output.note(event.text)

    def _step(self, guardian: Guardian) -> None:
        now = time.monotonic()
        for action in self._due(now):
            self._do(action, guardian)
        self._output.status(self._progress.text(now, len(self._policy.running), len(self._tasks)))
        deadlines = [t for t in (self._policy.deadline, self._end_time) if t is not None and t > now]
        try:
            event = self._events.get(timeout=min([_REDRAW_SECONDS, *(t - now for t in deadlines)]))
        except queue.Empty:
            return
        for action in self._take(event):
            self._do(action, guardian)

    def _due(self, now: float) -> list[Start | Send]:
        if self._end_time is not None and now >= self._end_time:
            self._end_time = None
            self._output.note(f"Timed out after {self._timeout:g} s; stopping.")
            return self._policy.on_timeout(now)
        return self._policy.on_time(now)

    def _take(self, event: _Line | _Exit | _Signal | _Note) -> list[Start | Send]:
        """Handles an event; gives the actions that follow from it."""
        now = time.monotonic()
        if isinstance(event, _Line):
            self._room.release()
            self._progress.line(event.label, event.text, now)
            self._output.line(*event)
            return []
        if isinstance(event, _Note):
            self._output.note(event.text)
            return []
        if isinstance(event, _Signal):
            self._output.note(f"Got {signal.Signals(event.number).name}; stopping.")
            return self._policy.on_signal(event.number, now)
        label, code = event
        running = self._running.pop(label)
        stopping = self._policy.stopping
        actions = self._policy.on_exit(label, code, now)
        state = "ended" if code == 0 or stopping else "failed"
        # A task that is restarted has not failed the run.
        if state == "failed" and actions[:1] != [Start(label)]:
            self._failed.append(label)
        self._tell(running, state, code)
        if self._statuses and self._policy.one_is_left:
            self._tell_the_last()
        return actions

    def _tell_the_last(self) -> None:
        try:
            self._alone.touch()
        except OSError as error:
            self._output.note(
                f"cannot write {self._alone}: {error.strerror}. An evaluator will not notice the end of the run."
            )

    def _do(self, action: Start | Send, guardian: Guardian) -> None:
        if isinstance(action, Start):
            host = self._tasks[action.label].host
            where = f" on {host.shown}" if host else ""
            self._output.note(f"{action.label}{where} died; restarting it.")
            self._start(action.label, guardian)
        elif action.label in self._running:
            self._running[action.label].send(action.number)

    def _start(self, label: str, guardian: Guardian) -> None:
        task = self._tasks[label]
        running = Running(
            task,
            self._on_line,
            lambda label, code: self._events.put(_Exit(label, code)),
            guardian,
        )
        self._running[label] = running
        self._tell(running, "running")

    def _tell(self, running: Running, state: str, code: int | None = None) -> None:
        """Other commands, and the page, know what became of a task."""
        task = running.task
        inspect = self._inspects.get(task.label)
        self._entry.update(task.label, running.pid, task.address, state, inspect)
        if self._page is not None:
            host = task.host.shown if task.host else None
            self._page.task(task.label, running.pid, task.address or inspect, state, code, host)

    def _on_line(self, label: str, text: str) -> None:
        # Tasks that print faster than a terminal shows them wait here, or the lines would fill the memory.
        self._room.acquire()
        self._events.put(_Line(label, text))

    def _explain(self) -> None:
        failure = self._policy.failure
        if self._made and self._made.exists():
            return  # it is started again
        if failure is None:
            if self._log_dir is not None and len(self._tasks) > 1:
                print(f"tensorfleet: logs are in {self._log_dir}", file=sys.stderr, flush=True)
            return
        # The first task to fail may only have lost another, whose error is the root cause.
        reason = reason_in(self._output.tails[failure.label], self._script)
        failure, reason = self._cause(failure, reason)
        log = log_path(self._log_dir, failure.label) if self._log_dir else None
        others = [label for label in self._failed if label != failure.label]
        host = self._tasks[failure.label].host
        print(report(failure, reason, time.monotonic(), log, others, host), file=sys.stderr, flush=True)

    def _cause(self, failure: Failure, reason: Reason) -> tuple[Failure, Reason]:
        """A failure, or that of the task whose loss it tells of, where that one's output ends with an error."""
        lost = lost_in(reason.error)
        if lost is None or lost not in self._tasks:
            return failure, reason
        own = reason_in(self._output.tails[lost], self._script)
        if not own.place or not self._policy.tasks[lost].code:
            return failure, reason
        return Failure(lost, 1, failure.at), own  # by the error, whatever has hurried its end

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Turns signals into events, and restores their handlers afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        heard = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]  # as nohup leaves SIGHUP
        before = {n: signal.signal(n, lambda n, _: self._events.put(_Signal(n))) for n in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
