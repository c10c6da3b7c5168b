"""Asks all tasks for their counters once a second, each in a thread of its own: a silent task delays no other."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tensorfleet.base import errors, logging
from tensorfleet.cli.dashboard.kept import KeptReports, KeptTopic
from tensorfleet.cli.dashboard.overview import FleetView, Json, TaskView, joined
from tensorfleet.cli.dashboard.rates import rates_of
from tensorfleet.cli.dashboard.snapshots import TaskSnapshot, snapshot_of
from tensorfleet.cli.dashboard.states import TaskFacts, state_of
from tensorfleet.cluster.inspection.ask import Inspector

POLL_SECONDS = 1.0
LONG_SECONDS = 8.0  # what findings look at: what begins now is to be named within ten seconds
_SLOW_SECONDS = 60.0  # for workers whose steps take seconds
_ANSWER_SECONDS = 2.0  # then the task is asked again
_SPARE = 4  # snapshots that are kept whole beyond the longest time
_END_SECONDS = 5.0  # for the threads to end
_NO_ANSWER = (errors.UnavailableError, errors.DeadlineExceededError, errors.AbortedError, OSError)
_REFUSED = ("refused", "no route", "not known")


class Asker(Protocol):
    """A way to ask one task; `Inspector` is the real one."""

    def ask(self, topic: str, options: Mapping[str, Any] | None = ..., seconds: float = ...) -> Any:
        """A report with `content`."""

    def close(self) -> None:
        """Ends it."""


class StatsCollector:
    """The newest counters of each task. `view()` gives the state of all of them."""

    def __init__(
        self, connect: Callable[[str, str], Asker] = Inspector, poll_seconds: float = POLL_SECONDS
    ) -> None:
        self._connect = connect
        self._poll_seconds = poll_seconds
        self._whole = int(LONG_SECONDS / poll_seconds) + _SPARE
        self._kept = int(_SLOW_SECONDS / poll_seconds)
        self._lock = threading.Lock()
        self._facts: dict[str, TaskFacts] = {}
        self._histories: dict[str, deque[TaskSnapshot]] = {}
        self._reports = KeptReports()
        self._threads: dict[str, threading.Thread] = {}
        self._ended = threading.Event()

    def update(
        self,
        label: str,
        address: str | None,
        pid: int | None = None,
        launched: str | None = None,
        exit_code: int | None = None,
        host: str | None = None,
    ) -> None:
        """What the launcher, or the list of a cluster's tasks, says about a task. The first time begins to ask it."""
        with self._lock:
            facts = self._facts.setdefault(label, TaskFacts(label))
            if launched == "running" and facts.pid is not None and pid != facts.pid:
                facts.restarts += 1
            if launched == "running" and pid != facts.pid:
                facts.started = time.time()
            facts.address, facts.launched, facts.exit_code = address, launched, exit_code
            facts.pid, facts.host = pid if pid is not None else facts.pid, host
            begins = address is not None and label not in self._threads and not self._ended.is_set()
            if begins:
                thread = threading.Thread(
                    target=self._poll, args=(label,), name=f"stats of {label}", daemon=True
                )
                self._threads[label] = thread
        if begins:
            thread.start()

    def clear(self) -> None:
        """Other tasks follow: those of before are forgotten."""
        with self._lock:
            self._facts.clear()
            self._histories.clear()
            self._reports = KeptReports()

    def facts(self) -> list[TaskFacts]:
        """What is known about each task."""
        with self._lock:
            return [dataclasses.replace(facts) for facts in self._facts.values()]

    def address(self, label: str) -> str | None:
        """Where a task answers; None if it does not. Raises KeyError for a task that the run does not have."""
        with self._lock:
            return self._facts[label].address

    def report(self, label: str, topic: str) -> Json:
        """The last report of a task on a topic that is kept; empty when there is none."""
        with self._lock:
            return self._reports.report(label, topic)

    def reports(self, only_changed: bool = False) -> list[tuple[str, KeptTopic, Json]]:
        """Task, topic and last report of all that is kept, or of what has changed since this was asked last."""
        with self._lock:
            return list(self._reports.all(only_changed))

    def view(self, now: float | None = None) -> FleetView:
        """The state of all tasks now."""
        steady = time.monotonic() if now is None else now
        wall = round(time.time(), 3)  # as it is shown, so that nobody asks for the same moment twice
        with self._lock:
            listed = [
                (dataclasses.replace(facts), list(self._histories.get(label, ())))
                for label, facts in self._facts.items()
            ]
        views = {facts.label: _view(facts, history, steady, wall) for facts, history in listed}
        return joined(FleetView(wall, views))

    def stop(self) -> None:
        """Ends all threads and connections."""
        self._ended.set()
        with self._lock:
            threads = list(self._threads.values())
        deadline = time.monotonic() + _END_SECONDS
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _poll(self, label: str) -> None:
        asker: Asker | None = None
        at: str | None = None
        # Spread over the second: 200 answers at once would make each other late.
        pause = hash(label) % 97 / 97 * self._poll_seconds * 0.5
        while not self._ended.wait(pause):
            began = time.monotonic()
            with self._lock:
                facts = self._facts.get(label) or TaskFacts(label)
                address, is_over = facts.address, facts.launched in ("ended", "failed")
                facts.first_asked = facts.first_asked or began
            if address is not None and not is_over:
                if asker is None or address != at:
                    if asker is not None:
                        asker.close()
                    asker, at = self._connect(label, address), address
                self._ask(label, asker)
                self._ask_to_keep(label, asker)
            pause = max(self._poll_seconds - (time.monotonic() - began), self._poll_seconds * 0.1)
        if asker is not None:
            asker.close()

    def _ask(self, label: str, asker: Asker) -> None:
        try:
            report = asker.ask("stats", None, _ANSWER_SECONDS).content
            snapshot = snapshot_of(label, report, time.time())
        except (errors.OpError, OSError) as error:
            message = error.message if isinstance(error, errors.OpError) else str(error)
            with self._lock:
                facts = self._facts.get(label) or TaskFacts(label)
                facts.error = message[:500]
                facts.is_refused = any(word in message.lower() for word in _REFUSED)
                if not isinstance(error, _NO_ANSWER):
                    facts.last_answer = time.monotonic()  # it answers, that it does not tell this
            return
        except Exception as error:  # a report that nobody expected must not end the polling
            logging.warning("The statistics of %s cannot be read: %r", label, error)
            return
        with self._lock:
            if label not in self._facts:
                return  # forgotten meanwhile
            facts = self._facts[label]
            history = self._histories.setdefault(label, deque(maxlen=self._kept))
            if facts.launched is None and history and history[-1].incarnation != snapshot.incarnation:
                facts.restarts += 1
            facts.last_answer, facts.error, facts.is_refused = time.monotonic(), None, False
            facts.started = snapshot.started or facts.started
            facts.pid = facts.pid or int(report.get("pid") or 0) or None
            facts.host = facts.host or str(report.get("host") or "") or None
            self._reports.took(label, "stats", report, facts.last_answer, time.time())
            history.append(snapshot)
            if len(history) > self._whole:  # 500 variables of each moment would be much for the memory
                history[-self._whole] = dataclasses.replace(history[-self._whole], variables={}, queues={})

    def _ask_to_keep(self, label: str, asker: Asker) -> None:
        """At most one report more, of a task that has just answered."""
        with self._lock:
            facts = self._facts.get(label)
            if facts is None or facts.last_answer is None or facts.error is not None:
                return
            question = self._reports.wanted(label, self._facts, time.monotonic())
        if question is None:
            return
        try:
            content = asker.ask(question.topic, question.options, _ANSWER_SECONDS).content
        except Exception:  # another version, or a graph that takes too long: the page goes on without
            content = None
        with self._lock:
            if label not in self._facts:
                return  # forgotten meanwhile
            if isinstance(content, dict):
                facts.last_answer = time.monotonic()
                self._reports.took(label, question.topic, content, facts.last_answer, time.time())
            else:
                self._reports.failed(label, question.topic, time.monotonic())


def _view(facts: TaskFacts, history: list[TaskSnapshot], steady: float, wall: float) -> TaskView:
    state = state_of(facts, steady)
    begin = facts.last_answer if facts.last_answer is not None else facts.first_asked
    rates = long_rates = None
    with contextlib.suppress(ArithmeticError, ValueError):
        rates, long_rates = rates_of(history), rates_of(history, LONG_SECONDS)
    return TaskView(
        label=facts.label,
        state=state,
        uptime=max(wall - facts.started, 0.0) if facts.started and state in ("running", "silent") else None,
        snapshot=history[-1] if history else None,
        rates=rates,
        long_rates=long_rates,
        silent_seconds=steady - begin if begin is not None else 0.0,
        restarts=facts.restarts,
        is_launched=facts.launched is not None,
        error=facts.error,
    )
