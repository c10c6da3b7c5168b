"""What the page shows: a run that is going on, or one that has ended."""

from __future__ import annotations

import dataclasses
import importlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tensorfleet.base import logging, settings
from tensorfleet.base.log_lines import own_words
from tensorfleet.cli.dashboard import metrics
from tensorfleet.cli.dashboard.collector import POLL_SECONDS, StatsCollector
from tensorfleet.cli.dashboard.findings import FindingBoard, RunFinding, stragglers
from tensorfleet.cli.dashboard.kept import KEPT
from tensorfleet.cli.dashboard.overview import FleetView, Json, TaskView, at_end, busier, now_json, point
from tensorfleet.cli.dashboard.series import series_json
from tensorfleet.cli.dashboard.states import TaskFacts
from tensorfleet.cli.dashboard.store import StatsHistory, StatsStore
from tensorfleet.cli.output import log_path
from tensorfleet.cluster.inspection.ask import ASK_SECONDS, ask

_LAST_WORDS = 20  # lines of a task that failed
_MAX_LOG_BYTES = 4 << 20  # of a log's end that are read
_MAX_SECONDS = 600.0  # of one inspection
_STATE_EVERY_SECONDS = 5.0  # the state for when the run is over
_REPORTS_EVERY_SECONDS = 30.0  # the last reports of the tasks, which are larger
_TRACE_SECONDS = 60.0
_END_SECONDS = 5.0
# By them everything can be run in a task, which takes the page for somebody at its own machine. Whoever has the page's
# key alone must not be able to do that: for them there is the command.
_COMMAND_ONLY = {"attach": "attach", "pdb": "attach --pdb", "pdb_talk": "attach --pdb"}


class Unavailable(Exception):
    """Something that the page cannot give, with the reason."""

    def __init__(self, sentence: str, status: int = 404) -> None:
        super().__init__(sentence)
        self.status = status


class RunSource(Protocol):
    """What the HTTP interface needs. A task that the run does not have is a KeyError."""

    def describe(self) -> Json:
        """`/api/run`."""

    def now(self) -> Json:
        """`/api/now`."""

    def series(self, seconds: float, since: float) -> Json:
        """`/api/series`."""

    def log_lines(self, task: str, tail: int) -> list[str]:
        """The end of a task's log."""

    def inspect(self, task: str, topic: str, options: Mapping[str, Any]) -> Json:
        """A question to a task."""

    def trace(self, steps: int) -> Json:
        """A trace of the next steps of all tasks."""

    def metrics(self) -> str:
        """`/metrics`."""


@dataclass(slots=True)
class RunFacts:
    """What is known of the run as a whole."""

    name: str
    script: str | None = None
    logs: Path | None = None
    started: float = field(default_factory=time.time)
    ended: float | None = None
    exit_code: int | None = None


class LiveRun:
    """A run that is going on: collects, keeps, finds."""

    def __init__(
        self,
        facts: RunFacts,
        collector: StatsCollector,
        store: StatsStore,
        inspect: Callable[..., Any] = ask,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._facts, self._collector, self._store = facts, collector, store
        self._ask = inspect
        self._poll_seconds = poll_seconds
        self._lock, self._one_tick = threading.Lock(), threading.Lock()
        self._board = FindingBoard()
        self._view = collector.view()
        self._findings: list[RunFinding] = []
        self._states: dict[str, str] = {}
        self._dealt_again: dict[tuple[str, str], float] = {}
        self._changes = dict.fromkeys(("joined", "left", "scaled"), 0)
        self._state_kept = self._reports_kept = 0.0
        self._decisions: dict[str, int] = {}  # by durable task
        self._busy: FleetView | None = None  # as it was before the tasks ended
        self._ended = threading.Event()
        self._looked = 0.0  # when somebody asked last, by the steady clock
        self._end_seen = threading.Event()
        self._thread = threading.Thread(target=self._tick_on, name="statistics of the run", daemon=True)

    def start(self) -> None:
        """Begins to collect."""
        self._store.add_event(self._facts.started, "run", None, "started")
        self._thread.start()

    def end(self, exit_code: int | None) -> None:
        """The run is over: its last state is kept."""
        self.tick()  # the states at the end, before anybody is told that it is one
        self._facts.exit_code, self._facts.ended = exit_code, time.time()
        self._keep_state()
        self._keep_reports(self._collector.reports())
        self._store.add_event(self._facts.ended, "run", None, f"ended with code {exit_code}")

    def decided(self, task: str, text: str) -> None:
        """The guard of a durable task has decided something."""
        with self._lock:
            self._decisions[task] = self._decisions.get(task, 0) + 1
        self._store.add_event(time.time(), "decision", task, text)

    def is_watched(self, seconds: float) -> bool:
        """Whether a browser has asked in the last seconds."""
        return time.monotonic() - self._looked < seconds

    def wait_until_seen(self, seconds: float) -> None:
        """Waits until a browser knows that the run has ended, for so long at most."""
        self._end_seen.wait(seconds)

    def stop(self) -> None:
        """Ends all threads and closes the store."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(_END_SECONDS)
        self._collector.stop()
        self._keep_state()
        self._keep_reports(self._collector.reports(only_changed=True))
        self._store.close()

    def tick(self) -> None:
        """Looks at all tasks once."""
        with self._one_tick:
            view = self._collector.view()
            findings = self._board.update(view)
            with self._lock:
                self._view, self._findings = view, findings
            self._busy = busier(self._busy, view)
            self._store.add_point(view.time, point(view))
            for text in self._board.changes():
                self._store.add_event(view.time, "finding", None, text)
            self._note_states(view)
            self._note_shards(view)
            if view.time - self._state_kept >= _STATE_EVERY_SECONDS:
                self._keep_state()
            if view.time - self._reports_kept >= _REPORTS_EVERY_SECONDS:
                self._reports_kept = view.time
                self._keep_reports(self._collector.reports(only_changed=True))

    def changed(self, change: str, task: str | None, text: str) -> None:
        """A worker has joined or left, or the run was scaled."""
        self._changes[change] = self._changes.get(change, 0) + 1
        self._store.add_event(time.time(), change, task, text)

    def _note_shards(self, view: FleetView) -> None:
        """Makes an event of each shard that was dealt again."""
        for label, task in view.tasks.items():
            for name, shards in (task.snapshot.shards if task.snapshot else {}).items():
                before = self._dealt_again.get((label, name), 0.0)
                self._dealt_again[label, name] = shards.dealt_again
                count = int(shards.dealt_again - before)
                if count > 0:
                    what = "shard was" if count == 1 else "shards were"
                    text = f"{count} {what} dealt again, of input {name}, because a worker has died"
                    self._store.add_event(view.time, "shard", label, text)

    def _note_states(self, view: FleetView) -> None:
        codes = {task.label: task.exit_code for task in self._collector.facts()}
        for label, task in view.tasks.items():
            if self._states.get(label) != task.state:
                self._states[label] = task.state
                code = f" with code {codes[label]}" if codes.get(label) is not None else ""
                self._store.add_event(view.time, "task", label, f"{task.state}{code}")

    def describe(self) -> Json:
        """`/api/run`."""
        self._looked = time.monotonic()
        content = self._described()
        if not content["is_live"]:
            self._end_seen.set()
        return content

    def _described(self) -> Json:
        facts, (view, _) = self._facts, self._seen()  # the moment that `now` shows
        tasks = []
        for task in self._collector.facts():
            seen = view.tasks.get(task.label) or TaskView(task.label, "starting")
            words = self._last_words(task.label) if seen.state in ("failed", "dead") else None
            tasks.append(_task_json(task, seen.state, seen.uptime, words))
        return {
            "name": facts.name,
            "script": facts.script,
            "started": facts.started,
            "ended": facts.ended,
            "is_live": facts.ended is None,
            "exit_code": facts.exit_code,
            "tasks": tasks,
            "settings": shown_settings(os.environ),
            "logs": str(facts.logs) if facts.logs else None,
            "is_kept": self._store.is_on_disk,
            "events": self._store.events(),
        }

    def now(self) -> Json:
        """`/api/now`."""
        self._looked = time.monotonic()
        return self._now()

    def _now(self) -> Json:
        view, findings = self._seen()
        now = now_json(view, stragglers(view), [finding.json() for finding in findings])
        if self._facts.ended is None or self._busy is None:
            return now
        return at_end(now, now_json(self._busy, stragglers(self._busy), []))

    def _seen(self) -> tuple[FleetView, list[RunFinding]]:
        with self._lock:
            return self._view, self._findings

    def series(self, seconds: float, since: float) -> Json:
        """`/api/series`."""
        return series_json(self._store, time.time(), seconds, since)

    def metrics(self) -> str:
        """`/metrics`."""
        with self._lock:
            decisions = dict(self._decisions)
        return metrics.exposition(*self._seen(), decisions, self._changes)

    def log_lines(self, task: str, tail: int) -> list[str]:
        """The end of a task's log."""
        self._collector.address(task)  # of this run
        return log_tail(self._facts.logs, task, tail)

    def inspect(self, task: str, topic: str, options: Mapping[str, Any]) -> Json:
        """A question to a task."""
        address = self._collector.address(task)
        if topic in _COMMAND_ONLY:
            raise Unavailable(
                f"Run tensorfleet debug {self._facts.name} {task} {_COMMAND_ONLY[topic]} in a terminal.", 403
            )
        if self._facts.ended is not None:
            return _kept(self._collector.report(task, topic), task, topic)
        if address is None:
            raise Unavailable(f"{task} has no address, so it cannot be asked.", 409)
        seconds = options.get("seconds")
        extra = float(seconds) if isinstance(seconds, int | float) and 0 <= seconds <= _MAX_SECONDS else 0.0
        content: Json = self._ask(task, address, topic, options, ASK_SECONDS + extra).content
        return content

    def trace(self, steps: int) -> Json:
        """A trace of the next steps of all tasks."""
        if self._facts.ended is not None:
            raise Unavailable("The run has ended: there are no more steps to trace.", 409)
        try:
            tracing = importlib.import_module("tensorfleet.fleet.tracing")
        except ModuleNotFoundError:
            raise Unavailable("This version of TensorFleet cannot trace.", 501) from None
        view = self._collector.view()
        addresses = {
            task.label: task.address
            for task in self._collector.facts()
            if task.address is not None and view.tasks[task.label].is_running
        }
        if not addresses:
            raise Unavailable("No task answers, so there is nothing to trace.", 409)
        trace: Json = tracing.trace_tasks(addresses, steps, _TRACE_SECONDS, False)
        return trace

    def _tick_on(self) -> None:
        # The last state of a run that is over stays as it is.
        while not self._ended.wait(self._poll_seconds) and self._facts.ended is None:
            try:
                self.tick()
            except Exception as error:  # one odd report must not stop the page for good
                logging.warning("The page could not take in the state of the tasks: %r", error)

    def _keep_state(self) -> None:
        self._state_kept = time.time()
        self._store.set_state("run", self._described())
        self._store.set_state("now", self._now())

    def _keep_reports(self, reports: Iterable[tuple[str, str, Json]]) -> None:
        for task, topic, report in reports:
            self._store.set_report(task, topic, report)

    def _last_words(self, task: str) -> list[str] | None:
        try:
            return own_words(log_tail(self._facts.logs, task, 2 * _LAST_WORDS))[-_LAST_WORDS:]
        except Unavailable:
            return None


class RecordedRun:
    """A run that has ended, from its store."""

    def __init__(self, history: StatsHistory, logs: Path) -> None:
        self._history, self._logs = history, logs
        self._run = history.state("run")
        self._tasks = {task["label"] for task in self._run.get("tasks", [])}

    def describe(self) -> Json:
        """`/api/run`."""
        last = self._history.last_time()
        # Without an end in the store, the launcher was killed: the last point is the last that is known.
        ended = self._run.get("ended") or last or self._run.get("started")
        started = self._run.get("started") or last
        return {"name": self._logs.name, "script": None, "exit_code": None, "tasks": [], "settings": []} | (
            self._run
            | {"started": started, "ended": ended, "is_live": False, "events": self._history.events()}
        )

    def now(self) -> Json:
        """`/api/now`."""
        return now_json(FleetView(self._history.last_time() or 0.0), set(), []) | self._history.state("now")

    def series(self, seconds: float, since: float) -> Json:
        """`/api/series`: up to the end of the run."""
        return series_json(self._history, self._history.last_time() or 0.0, seconds, since)

    def metrics(self) -> str:
        """`/metrics`: nothing is measured any more."""
        return "# The run has ended.\n"

    def log_lines(self, task: str, tail: int) -> list[str]:
        """The end of a task's log."""
        self._check(task)
        return log_tail(self._logs, task, tail)

    def inspect(self, task: str, topic: str, options: Mapping[str, Any]) -> Json:
        """What the task has told last: nobody answers any more."""
        self._check(task)
        return _kept(self._history.report(task, topic), task, topic)

    def trace(self, steps: int) -> Json:
        """Nobody computes any more."""
        raise Unavailable("The run has ended: there are no more steps to trace.", 409)

    def stop(self) -> None:
        """Closes the store."""
        self._history.close()

    def _check(self, task: str) -> None:
        if task not in self._tasks:
            raise KeyError(task)


def _kept(report: Json, task: str, topic: str) -> Json:
    """The last report of a task of a run that has ended. Raises `Unavailable` where none is kept."""
    if report:
        return report
    if topic in KEPT:
        raise Unavailable(f"The run has ended, and no report of {task} on {topic} was kept.", 409)
    raise Unavailable(f"The run has ended: {task} cannot be asked any more.", 409)


def log_tail(logs: Path | None, task: str, tail: int) -> list[str]:
    """The last lines of a task's log. Raises `Unavailable` where there is none."""
    if logs is None:
        raise Unavailable(
            f"No log of {task} here: a task that is started by hand writes to its own terminal."
        )
    path = log_path(logs, task)
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _MAX_LOG_BYTES, 0))
            text = file.read(_MAX_LOG_BYTES)
    except OSError as error:
        raise Unavailable(f"Cannot read the log {path}: {error.strerror}.") from None
    return text.decode(errors="replace").splitlines()[-tail:]


def shown_settings(environment: Mapping[str, str]) -> list[Json]:
    """All settings with their values in an environment; secrets are not shown."""
    return [dataclasses.asdict(setting) for setting in settings.in_use(environment)]


def _task_json(task: TaskFacts, state: str, uptime: float | None, words: list[str] | None) -> Json:
    return {
        "label": task.label,
        "job": task.job,
        "index": task.index,
        "state": state,
        "pid": task.pid,
        "address": task.address,
        "host": task.host,
        "uptime_seconds": round(uptime, 1) if uptime is not None else None,
        "last_words": words,
        "exit_code": task.exit_code,
        "restarts": task.restarts,
    }
