"""A run from start to end: starts the tasks, passes their output on, carries out the policy's actions."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors, settings
from tensorfleet.base.run_status import ALONE, STATUS
from tensorfleet.cli.control import ControlServer, Handler
from tensorfleet.cli.dashboard.launched import LaunchedPage
from tensorfleet.cli.engines.base import EngineError, RunEngine, RunningTask, Wanted
from tensorfleet.cli.engines.child import free_ports
from tensorfleet.cli.failure import Reason, lost_in, reason_in, report
from tensorfleet.cli.moves import Moves
from tensorfleet.cli.output import JsonOutput, Output, Progress, log_path
from tensorfleet.cli.plan import INSPECT, LOG_FORMAT, MADE, NOTICE, STAYS, TOKEN, Place, Task
from tensorfleet.cli.policy import LEAVE_SECONDS, Action, Failure, GiveBack, Policy, Seek, Send, Start
from tensorfleet.cli.registry import Entry
from tensorfleet.cli.replicas import ServerPair
from tensorfleet.cli.run_events import (
    Exit,
    Found,
    LauncherCall,
    Lost,
    NeverStarted,
    PrintedLine,
    Restart,
    RunEvent,
    UserNote,
    UserSignal,
)
from tensorfleet.cli.run_settings import RunSettings
from tensorfleet.cli.scaling import Decision, ScaleRequest, Scaling
from tensorfleet.cli.server_moves import MOVE, ServerMoves

if TYPE_CHECKING:
    from tensorfleet.cli.guarding import RunGuards
    from tensorfleet.cli.joining import Guest, JoinListener

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REDRAW_SECONDS = 0.5  # of the status line
_MAX_UNPRINTED_LINES = 10_000  # then tasks wait: a slow terminal must not fill the memory
_BROKEN_PIPE = 128 + signal.SIGPIPE
_CANNOT_START = 127  # as shells say it


class Launcher:
    """One run of a script's tasks. `go()` returns the exit code."""

    def __init__(
        self,
        tasks: list[Task],
        engine: RunEngine,
        settings: RunSettings,
        output: Output | None = None,
        page: LaunchedPage | None = None,
        wanted: dict[str, Wanted] | None = None,
        unplaced: frozenset[str] = frozenset(),
        pairs: Sequence[ServerPair] = (),
    ) -> None:
        """`wanted` are the requests for places by label; the tasks in `unplaced` have none yet; `pairs` are durable."""
        log_dir = settings.log_dir
        self._settings = settings
        self._engine = engine
        self._wanted = wanted or {}
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
        self._durable = frozenset(label for pair in pairs for label in pair.labels)
        self._output = output or Output([task.label for task in tasks], sys.stdout, log_dir)
        self._tasks = {task.label: self._as_told(task) for task in tasks}
        self._events: queue.SimpleQueue[RunEvent] = queue.SimpleQueue()
        self._room = threading.Semaphore(_MAX_UNPRINTED_LINES)
        self._start_time = time.monotonic()
        self._end_time = self._start_time + settings.timeout if settings.timeout else None
        self._policy = Policy(keep_going=settings.keep_going, grace_seconds=settings.grace)
        for task in tasks:
            self._policy.add(
                task.label,
                task.serves,
                settings.restarts,
                elastic=task.job in settings.elastic,
                placed=task.label not in unplaced,
                durable=task.label in self._durable,
                parked=settings.scaled_by_hand and task.label in unplaced,
            )
        self._progress = Progress(self._start_time, self._statuses)
        token = tasks[0].environment.get(TOKEN) or os.environ.get(TOKEN, "")
        self._moves = Moves(token, self.on_note)
        self._guards = _guards_for(pairs, self, self._moves, token)
        self._server_moves = ServerMoves(self._guards, engine, self._tasks, self._moves)
        self._page = page
        if page is not None:
            page.note = self.on_note
            page.begin(token)
        where = page.address if page else None
        self._entry = Entry(
            settings.name, settings.script, log_dir, token, where, engine.name, settings.grace
        )
        self._control: ControlServer | None = None
        self._joins: JoinListener | None = None
        self._running: dict[str, RunningTask] = {}
        self._started: set[str] = set()
        self._failed: list[str] = []

    # -- what the engine tells: from threads of its own ----------------------------------------------

    def on_line(self, label: str, text: str) -> None:
        """A task has printed a line."""
        # Tasks that print faster than a terminal shows them wait here, or the lines would fill the memory.
        self._room.acquire()
        self._events.put(PrintedLine(label, text))

    def on_exit(self, label: str, code: int, lost: str | None = None) -> None:
        """A task has ended, or its place is gone."""
        self._events.put(Exit(label, code, lost))
        # At once: lines that are still to be printed must not hold up the standby.
        if self._guards is not None:
            self._guards.exited(label, code, lost)

    def on_place(self, label: str, place: Place) -> None:
        """A place that was looked for."""
        self._events.put(Found(label, place))

    def on_note(self, text: str) -> None:
        """A line for the user."""
        self._events.put(UserNote(text))

    # -- what the guards of durable tasks tell ---------------------------------------------------------

    def on_restart(self, label: str) -> None:
        """A standby is to be started in the place of a task."""
        self._events.put(Restart(label))

    def on_decision(self, task: str, text: str) -> None:
        """What was decided about a durable task."""
        self._events.put(UserNote(text))
        if self._page is not None:
            self._page.decision(task, text)

    def on_lost(self, label: str, cause: str, text: str) -> None:
        """Both servers of a durable task are gone."""
        self._events.put(Lost(label, cause, text))

    # -- what other commands ask for: from threads of their own -----------------------------------------

    def _handlers(self) -> dict[str, Handler[Any]]:
        """What this run can be asked for, by name."""
        jobs = {task.job for task in self._tasks.values()}
        scaling = Scaling(self._policy, self.call, self._scaled, len(jobs & {"chief", "master"}))
        return {"scale": Handler(ScaleRequest, scaling.answer), MOVE: self._server_moves.handler}

    def _scaled(self, text: str) -> None:
        self._output.note(text)
        if self._page is not None:
            self._page.change("scaled", None, f"was {text[:1].lower()}{text[1:]}")

    def _changed(self, change: str, label: str, text: str, where: str = "") -> None:
        """A worker has joined or left: a line, and an event of the page."""
        self._output.note(f"{label}{where} {text}")
        if self._page is not None:
            self._page.change(change, label, text)

    def admit(self, guest: Guest, now: float) -> Task:
        """Takes in a worker that somebody has started by hand, as it is to be told. Raises ScaleError."""
        label = guest.label = self._policy.on_join(now)
        task = self._tasks[label] = self._moves.to(self._tasks[label], Place(guest.address))
        self._changed("joined", label, f"joins: started by hand on {guest.host}.")
        self._running[label] = guest
        self._started.add(label)
        self._tell(task, guest, "running")
        self._moves.announce({label: self._tasks[label] for label in self._policy.running})
        return self._moves.told(task)

    def _open_joins(self) -> JoinListener | None:
        if not self._settings.elastic:
            return None
        from tensorfleet.cli.joining import JoinListener

        try:
            joins = JoinListener(self, self._entry.token, self._settings.script, self._engine.name == "local")
        except (OSError, errors.OpError) as error:
            self._output.note(f"No worker can join this run by hand ({settings.JOIN_AT.name}): {error}")
            return None
        self._entry.joined_at(joins.address)
        return joins

    def call(self, decide: Decision) -> None:
        """Has something decided in the thread of the launcher, and done."""
        self._events.put(LauncherCall(decide))

    def _open_control(self) -> ControlServer | None:
        try:
            return ControlServer(self._entry, self._handlers())
        except OSError as error:  # a run is not worth less for not being asked
            self._output.note(f"Other commands cannot ask this run for anything: {error}.")
            return None

    # -- the loop ------------------------------------------------------------------------------------

    def go(self) -> int:
        """Starts everything and stays until everything has ended."""
        try:
            with self._signals():
                self._control = self._open_control()
                self._joins = self._open_joins()
                for label in self._policy.running:
                    self._start(label)
                for label in self._policy.seeking:
                    self._seek(label)
                if self._guards is not None:
                    self._guards.start()
                while self._policy.exit_code is None:
                    self._step()
                self._print_the_rest()
            self._output.close()
        except EngineError:
            self._print_the_rest()  # what the tasks have said before there was no place any more
            raise
        except BrokenPipeError:  # nobody reads us any more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _BROKEN_PIPE
        finally:
            # Whatever ended the loop, no task outlives the launcher. A slow printer must not hold up its engine.
            self._room.release(_MAX_UNPRINTED_LINES)
            if self._guards is not None:
                self._guards.stop()
            self._engine.close()
            if self._joins is not None:
                self._joins.close()
            if self._guards is not None:
                self._guards.close()
            self._moves.close()
            if self._control is not None:
                self._control.close()
            self._entry.remove()
            for path in (*self._statuses.values(), *([self._alone] if self._statuses else [])):
                with contextlib.suppress(OSError):  # there is no such folder, or it is not ours
                    path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the exit code tells it too
            self._explain()
        return self._policy.exit_code

    def _as_told(self, task: Task) -> Task:
        """A task with what the launcher tells it of the run."""
        path = self._statuses.get(task.label)
        added = {STATUS: str(path), ALONE: str(self._alone)} if path else {}
        if task.label in self._inspects:
            added[INSPECT] = f"{task.label}@{self._inspects[task.label]}"
        if isinstance(self._output, JsonOutput):
            added[LOG_FORMAT] = "json"
        if self._settings.made:
            added[MADE] = str(self._settings.made)
        stays = self._settings.restarts or self._settings.elastic or task.label in self._durable
        if task.serves and stays:
            added[STAYS] = "1"
        # A server that gets notice stays until its workers have saved.
        leaves = LEAVE_SECONDS if task.job in self._settings.elastic and not task.serves else None
        if grace := self._settings.grace or leaves:
            added[NOTICE] = f"{grace:g}"
        return replace(task, environment={**task.environment, **added})

    def _print_the_rest(self) -> None:
        """Lines that came while the last task ended."""
        while not self._events.empty():
            event = self._events.get_nowait()
            if isinstance(event, PrintedLine):
                self._output.line(*event)
            elif isinstance(event, UserNote):
                self._output.note(event.text)

    def _step(self) -> None:
        now = time.monotonic()
        self._entry.beat(now)
        for action in self._due(now):
            self._do(action)
        text = self._progress.text(now, len(self._policy.running), len(self._tasks))
        waiting = self._policy.seeking
        self._output.status(text + (f"|  no place yet for {', '.join(waiting)} " if waiting else ""))
        deadlines = [t for t in (self._policy.deadline, self._end_time) if t is not None and t > now]
        try:
            event = self._events.get(timeout=min([_REDRAW_SECONDS, *(t - now for t in deadlines)]))
        except queue.Empty:
            return
        for action in self._take(event):
            self._do(action)

    def _due(self, now: float) -> list[Action]:
        if self._end_time is not None and now >= self._end_time:
            self._end_time = None
            self._output.note(f"Timed out after {self._settings.timeout:g} s; stopping.")
            return self._policy.on_timeout(now)
        return self._policy.on_time(now)

    def _take(self, event: RunEvent) -> list[Action]:
        """Handles an event; gives the actions that follow from it."""
        now = time.monotonic()
        match event:
            case PrintedLine():
                self._room.release()
                self._progress.line(event.label, event.text, now)
                self._output.line(*event)
            case UserNote():
                self._output.note(event.text)
            case UserSignal():
                self._output.note(f"Got {signal.Signals(event.number).name}; stopping.")
                return self._policy.on_signal(event.number, now)
            case Found():
                return self._take_place(event, now)
            case Exit():
                return self._take_exit(event, now)
            case Restart(label):
                if self._guards is not None:
                    self._guards.stand_by(label, True)
                return self._policy.on_restart(label, now)
            case Lost():
                return self._take_lost(event, now)
            case LauncherCall(decide):
                return decide(now)
        return []

    def _take_lost(self, event: Lost, now: float) -> list[Action]:
        if self._guards is not None:
            self._guards.stand_by(event.label, False)
        failed_before = self._policy.failure
        actions = self._policy.on_lost(event.label, event.cause, now)
        if self._policy.failure is not None and failed_before is None:
            self._failed.append(event.cause)
        if event.text:
            self.on_decision(event.label, event.text)
        return actions

    def _take_place(self, event: Found, now: float) -> list[Action]:
        actions = self._policy.on_place(event.label, now)
        if actions:
            task = self._tasks[event.label]
            self._tasks[event.label] = self._moves.to(task, event.place)
        return actions

    def _take_exit(self, event: Exit, now: float) -> list[Action]:
        label, code, lost = event
        running = self._running.pop(label)
        stopping = self._policy.stopping
        leaves = self._policy.is_leaving(label)
        actions = self._policy.on_exit(label, code, now, lost is not None)
        comes_back = actions[:1] in ([Start(label)], [Seek(label)])
        if leaves and not stopping:
            self._started.discard(label)
            self._changed("left", label, "has left.")
        elif comes_back and not lost and not stopping and self._tasks[label].job in self._settings.elastic:
            self._changed("left", label, f"died (exit code {code}). Looking for a place for it.")
        elif lost and not stopping and label not in self._durable:
            then = "Looking for another place" if comes_back else "It does not come back"
            self._output.note(f"{label} is lost: {lost}. {then}.")
        # A worker that leaves after another has finished has not failed, nor has one that comes back.
        failed = (code != 0 or lost) and not stopping and not comes_back and not leaves
        failed = bool(failed and self._policy.failure)
        if failed:
            self._failed.append(label)
        state = "failed" if failed or (comes_back and not stopping) else "ended"
        self._tell(self._tasks[label], running, state, code)
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

    def _do(self, action: Action) -> None:
        if self._guards is not None and not self._policy.serving:
            self._guards.stop()  # before the servers are told to end
        if isinstance(action, Send):
            if action.label in self._running:
                self._running[action.label].send(action.number)
        elif isinstance(action, Seek):
            self._seek(action.label)
        elif isinstance(action, GiveBack):
            self._engine.release(action.label)
        else:
            self._start_again(action.label)

    def _start_again(self, label: str) -> None:
        """Starts a task that died, or that has a place now."""
        task = self._tasks[label]
        where = f" on {task.host.shown}" if task.host else ""
        came_late = label not in self._started
        text = "joins." if came_late else "died; restarting it."
        if task.job in self._settings.elastic:
            self._changed("joined", label, text, where)
        elif label not in self._durable:
            self._output.note(f"{label}{where} {text}")
        try:
            self._start(label)
        except (EngineError, OSError) as error:
            self._output.note(f"{label} cannot be started: {error}")
            self._running[label] = NeverStarted()
            self.on_exit(label, _CANNOT_START)
        else:
            self._moves.announce({label: self._tasks[label] for label in self._policy.running})

    def _seek(self, label: str) -> None:
        self._engine.seek(self._wanted[label], self)

    def _start(self, label: str) -> None:
        task = self._tasks[label] = self._server_moves.placed(self._tasks[label])
        told = self._moves.told(task if self._guards is None else self._guards.begin(task))
        running = self._engine.start(told, self)
        self._started.add(label)
        self._running[label] = running
        self._tell(task, running, "running")

    def _tell(self, task: Task, running: RunningTask, state: str, code: int | None = None) -> None:
        """Other commands, and the page, know what became of a task."""
        inspect = self._inspects.get(task.label)
        address = self._moves.current(task.address) if task.address else None
        self._entry.update(task.label, running.pid, address, state, inspect, running.where)
        if self._page is not None:
            host = task.host.shown if task.host else None
            self._page.task(task.label, running.pid, address or inspect, state, code, host)

    def _explain(self) -> None:
        failure = self._policy.failure
        if self._settings.made and self._settings.made.exists():
            return  # it is started again
        if failure is None:
            if self._settings.log_dir is not None and len(self._tasks) > 1:
                print(f"tensorfleet: logs are in {self._settings.log_dir}", file=sys.stderr, flush=True)
            return
        # The first task to fail may only have lost another, whose error is the root cause.
        reason = reason_in(self._output.tails[failure.label], self._settings.script)
        failure, reason = self._cause(failure, reason)
        log_dir = self._settings.log_dir
        log = log_path(log_dir, failure.label) if log_dir else None
        others = [label for label in self._failed if label != failure.label]
        task = self._tasks[failure.label]
        node = task.host.shown if task.host else None
        advice = self._engine.advice(task, failure.code)
        block = report(failure, reason, time.monotonic(), log, others, node, advice)
        print(block, file=sys.stderr, flush=True)

    def _cause(self, failure: Failure, reason: Reason) -> tuple[Failure, Reason]:
        """A failure, or that of the task whose loss it tells of, where that one's output ends with an error."""
        lost = lost_in(reason.error)
        if lost is None or lost not in self._tasks:
            return failure, reason
        own = reason_in(self._output.tails[lost], self._settings.script)
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
        before = {n: signal.signal(n, lambda n, _: self._events.put(UserSignal(n))) for n in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _guards_for(
    pairs: Sequence[ServerPair], launcher: Launcher, moves: Moves, token: str
) -> RunGuards | None:
    """The guards of the durable tasks, if there are any."""
    if not pairs:
        return None
    from tensorfleet.cli.guarding import RunGuards
    from tensorfleet.cluster.transport.token import secure

    if token:
        secure(token=token)
    return RunGuards(pairs, launcher, moves.known)
