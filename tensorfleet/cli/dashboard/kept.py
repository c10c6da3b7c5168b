"""Which reports of the tasks are kept for when the run is over, and when each is asked for. Decides only.

Counters come once a second anyway. Settings are asked for once in the life of a task, and graphs again and again, ever
more seldom while they stay the same. Times are of the steady clock; `kept_at` in a report is a unix time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tensorfleet.cli.dashboard.overview import Json

KeptTopic: TypeAlias = Literal["settings", "graph", "stats"]
KEPT: tuple[KeptTopic, ...] = ("settings", "graph", "stats")
MAX_GRAPHS = 8  # workers first: replicas of one graph tell little more
MAX_NODES = 20_000
_FEWEST_NODES = 1000
_SOON_SECONDS = 1.0  # while there is no graph yet
_CHANGED_SECONDS = 2.0
_LONGEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class KeptQuestion:
    """What to ask a task now."""

    topic: KeptTopic
    options: Json


@dataclass(slots=True)
class _Plan:
    """When a topic of a task is asked for next."""

    due: float = 0.0
    pause: float = _SOON_SECONDS
    nodes: int = MAX_NODES

    def wait(self, now: float, pause: float) -> None:
        self.pause = min(pause, _LONGEST_SECONDS)
        self.due = now + self.pause


@dataclass(slots=True)
class _TaskReports:
    """What is known of one task."""

    incarnation: object = None
    plans: dict[KeptTopic, _Plan] = field(default_factory=dict)
    reports: dict[KeptTopic, Json] = field(default_factory=dict)
    changed: set[KeptTopic] = field(default_factory=set)


class KeptReports:
    """The last reports of all tasks. An empty report, as of a session that was closed, replaces no other."""

    def __init__(self) -> None:
        self._tasks: dict[str, _TaskReports] = {}

    def wanted(self, label: str, labels: Collection[str], now: float) -> KeptQuestion | None:
        """What to ask a task of these tasks now; None while nothing is due."""
        plans = self._task(label).plans
        settings, graph = (plans.setdefault(topic, _Plan()) for topic in ("settings", "graph"))
        if now >= settings.due:
            return KeptQuestion("settings", {})
        if now >= graph.due and label in sorted(labels, key=_rank)[:MAX_GRAPHS]:
            version = self.report(label, "graph").get("version", "")
            return KeptQuestion("graph", {"nodes": graph.nodes, "unless": version})
        return None

    def took(self, label: str, topic: KeptTopic, content: Json, now: float, wall: float) -> None:
        """A task has told a report."""
        task = self._task(label)
        if topic == "stats" and content.get("incarnation") != task.incarnation:
            # Another process: it may have other settings and another graph.
            task.incarnation, task.plans = content.get("incarnation"), {}
        plan = task.plans.setdefault(topic, _Plan())
        if topic == "graph" and content.get("is_unchanged") is True and topic in task.reports:
            task.reports[topic] |= {"kept_at": wall}
            plan.wait(now, plan.pause * 2)
        elif _has_content(topic, content):
            task.reports[topic] = {**content, "kept_at": wall}
            task.changed.add(topic)
            plan.wait(now, _CHANGED_SECONDS)
        elif topic in task.reports:
            plan.wait(now, plan.pause * 2)
        else:
            plan.wait(now, _SOON_SECONDS)
        if topic == "settings":
            plan.due = float("inf")  # until another process tells its counters

    def failed(self, label: str, topic: KeptTopic, now: float) -> None:
        """A task has not told a report. It is asked again later, for less of its graph."""
        plan = self._task(label).plans.setdefault(topic, _Plan())
        plan.nodes = max(plan.nodes // 4, _FEWEST_NODES)
        plan.wait(now, plan.pause * 2)

    def report(self, label: str, topic: str) -> Json:
        """The last report of a task on a topic; empty when there is none."""
        reports = self._tasks[label].reports if label in self._tasks else {}
        return next((report for known, report in reports.items() if known == topic), {})

    def all(self, only_changed: bool = False) -> Iterator[tuple[str, KeptTopic, Json]]:
        """Task, topic and report of all that is kept, or of what has changed since this was asked last."""
        for label, task in self._tasks.items():
            for topic, report in task.reports.items():
                if topic in task.changed or not only_changed:
                    yield label, topic, dict(report)
            task.changed.clear()

    def _task(self, label: str) -> _TaskReports:
        return self._tasks.setdefault(label, _TaskReports())


def _rank(label: str) -> tuple[bool, int, str]:
    job, _, index = label.partition("/")
    return job == "ps", int(index) if index.isdecimal() else 0, job


def _has_content(topic: KeptTopic, content: Json) -> bool:
    """Whether a report says something: those of a task are not trusted to have the right shape."""
    listed = content.get({"settings": "settings", "graph": "sessions", "stats": "variables"}[topic])
    return isinstance(listed, list) and bool(listed)
