"""The state of all tasks at one moment, and what the page shows of it. Nothing here asks, waits or reads a clock."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tensorfleet.cli.dashboard.rates import TaskRates, with_shared_reads
from tensorfleet.cli.dashboard.snapshots import TaskSnapshot
from tensorfleet.cli.dashboard.states import TaskState

#: A JSON object of the page's interface.
Json: TypeAlias = dict[str, Any]
_MAX_LINKS = 1000  # of the traffic map: with 200 tasks there are more than anybody can see
_MAX_VARIABLES = 50
_MAX_TAGS = 50
_ENDING_SECONDS = 10.0  # the tasks of a run end one after the other
# Summaries that hooks and queues write by themselves: the page shows both elsewhere.
_OF_STEPS = (
    "parts",
    "between_fraction",
    "seconds_per_step",
    "is_straggler",
)  # what an ended task is shown by
_OWN_TAGS = ("global_step/sec", "_full")


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task: its state, its newest counters, its rates over some seconds (for the page) and more (for findings)."""

    label: str
    state: TaskState
    uptime: float | None = None
    snapshot: TaskSnapshot | None = None
    rates: TaskRates | None = None
    long_rates: TaskRates | None = None
    silent_seconds: float = 0.0
    restarts: int = 0
    #: whether a launcher knows how it ended; nobody does in a cluster that was started by hand
    is_launched: bool = True
    error: str | None = None

    @property
    def job(self) -> str:
        """Such as worker."""
        return self.label.partition("/")[0]

    @property
    def is_server(self) -> bool:
        """Whether it keeps variables for others."""
        if self.job == "ps":
            return True
        return self.snapshot is not None and self.snapshot.server.updates > 0 and self.snapshot.steps == 0

    @property
    def is_running(self) -> bool:
        """Whether it answers."""
        return self.state == "running"


@dataclass(frozen=True, slots=True)
class FleetView:
    """All tasks at one moment."""

    time: float  # unix seconds
    tasks: dict[str, TaskView] = field(default_factory=dict)

    @property
    def global_step(self) -> int | None:
        """The largest that any task knows."""
        steps = [
            view.snapshot.global_step
            for view in self.tasks.values()
            if view.snapshot is not None and view.snapshot.global_step is not None
        ]
        return max(steps, default=None)

    @property
    def server_load(self) -> dict[str, float]:
        """By server: bytes that others read and write there, per second."""
        return loads(
            {v.label: v.rates for v in self.tasks.values() if v.is_running and v.rates}, self.servers
        )

    @property
    def servers(self) -> set[str]:
        """The tasks that keep variables for others."""
        return {label for label, view in self.tasks.items() if view.is_server}

    @property
    def scalars(self) -> dict[str, float]:
        """The newest value of each scalar summary, of whichever task."""
        newest: dict[str, tuple[int, float]] = {}
        for view in self.tasks.values():
            for tag, pair in (view.snapshot.scalars if view.snapshot else {}).items():
                if tag not in newest or pair[0] >= newest[tag][0]:
                    newest[tag] = pair
        shown = [(tag, value) for tag, (_, value) in sorted(newest.items()) if not tag.endswith(_OWN_TAGS)]
        return dict(shown[:_MAX_TAGS])


def joined(fleet: FleetView) -> FleetView:
    """The same with what tasks tell of the variables of others: the reads from shared memory."""
    now = with_shared_reads({label: view.rates for label, view in fleet.tasks.items() if view.rates})
    long = with_shared_reads(
        {label: view.long_rates for label, view in fleet.tasks.items() if view.long_rates}
    )
    tasks = {
        label: replace(view, rates=now.get(label), long_rates=long.get(label))
        for label, view in fleet.tasks.items()
    }
    return replace(fleet, tasks=tasks)


def loads(rates: Mapping[str, TaskRates], servers: Collection[str]) -> dict[str, float]:
    """The bytes that each server moves per second.

    On one machine others read small variables from its memory without a word to it: what they tell counts as well.
    """
    told = dict.fromkeys(servers, 0.0)
    for each in rates.values():
        for to, link in each.links.items():
            if to in told:
                told[to] += link.bytes
    return {label: max(rates[label].load_bytes, told[label]) for label in sorted(servers) if label in rates}


def hottest(load: Mapping[str, float]) -> tuple[str | None, float | None]:
    """The server of the largest load, and how many times the mean that is. None where there is nothing to compare."""
    total = sum(load.values())
    if len(load) < 2 or not total:
        return None, None
    label = max(load, key=lambda name: load[name])
    return label, load[label] * len(load) / total


def now_json(fleet: FleetView, stragglers: set[str], findings: list[Json]) -> Json:
    """The answer to `/api/now`."""
    load = fleet.server_load
    label, ratio = hottest(load)
    return {
        "time": fleet.time,
        "tasks": {name: _task(view, name in stragglers) for name, view in fleet.tasks.items()},
        "traffic": _traffic(fleet),
        "servers": {"load": _rounded(load), "hottest": label, "hottest_to_mean": _number(ratio)},
        "staleness": _staleness(fleet),
        "queues": _queues(fleet),
        "variables": _variables(fleet),
        "findings": findings,
    }


def busier(kept: FleetView | None, fleet: FleetView) -> FleetView | None:
    """Of two moments the one to show when the run has ended: the newer, unless its tasks are ending already."""
    active = _active(fleet)
    if kept is None or fleet.time - kept.time > _ENDING_SECONDS:
        return fleet if active else kept
    return fleet if active >= _active(kept) else kept


def _active(fleet: FleetView) -> int:
    return sum(view.is_running and view.rates is not None for view in fleet.tasks.values())


def at_end(now: Json, busy: Json) -> Json:
    """The last answer to `/api/now`: the states at the end of the run, and its load as it was before."""
    tasks = {
        label: {
            **task,
            **{key: value for key, value in busy["tasks"].get(label, {}).items() if key in _OF_STEPS},
        }
        for label, task in now["tasks"].items()
    }
    return {**now, "tasks": tasks} | {key: busy[key] for key in ("traffic", "servers", "variables")}


def point(fleet: FleetView) -> Json:
    """What is kept of this moment for the curves."""
    live = {label: view for label, view in fleet.tasks.items() if view.is_running and view.rates is not None}
    rates = {label: view.rates for label, view in live.items() if view.rates is not None}
    return {
        "global_step": fleet.global_step,
        "loss": {tag: _number(value) for tag, value in fleet.scalars.items()},
        # A server takes no steps: it has no curve, rather than a flat one.
        "steps_per_second": _rounded(
            {label: r.steps for label, r in rates.items() if r.newest.steps and not live[label].is_server}
        ),
        "memory_bytes": _rounded({label: r.newest.process.memory_bytes for label, r in rates.items()}),
        "cpu_percent": _rounded({label: r.cpu * 100 for label, r in rates.items()}),
        "server_bytes_per_second": _rounded(fleet.server_load),
    }


def _task(view: TaskView, is_straggler: bool) -> Json:
    rates = view.rates if view.is_running else None
    snapshot = view.snapshot
    return {
        "state": view.state,
        "uptime_seconds": _number(view.uptime),
        "steps_per_second": _number(rates.steps) if rates and rates.newest.steps else None,
        "memory_bytes": _number(snapshot.process.memory_bytes) if snapshot else None,
        "cpu_percent": _number(rates.cpu * 100) if rates else None,
        "global_step": snapshot.global_step if snapshot else None,
        "is_straggler": is_straggler,
        "parts": {part: round(value, 4) for part, value in rates.parts.items()} if rates else {},
        "between_fraction": round(_between(rates), 4) if rates and rates.steps else None,
        "seconds_per_step": _number(1.0 / rates.steps) if rates and rates.steps else None,
        "requests_per_second": _number(rates.requests) if rates else None,
        "busy_fraction": _number(rates.busy) if rates else None,
        "updates_per_second": _number(rates.updates) if rates else None,
        "sent_bytes_per_second": _number(rates.sent_bytes) if rates else None,
        "received_bytes_per_second": _number(rates.received_bytes) if rates else None,
        # That it does not answer any more is no error of a task that has ended.
        "last_error": (snapshot.last_error if snapshot else None)
        or (view.error if view.state != "ended" else None),
    }


def _between(rates: TaskRates) -> float:
    """The fraction of its time that a worker spends outside of its steps."""
    return max(1.0 - (rates.step_seconds or 0.0) * rates.steps, 0.0)


def _traffic(fleet: FleetView) -> list[Json]:
    links = [
        (label, to, link)
        for label, view in fleet.tasks.items()
        if view.is_running and view.rates
        for to, link in view.rates.links.items()
        if link.bytes or link.requests
    ]
    links.sort(key=lambda entry: -entry[2].bytes)
    return [
        {
            "from": label,
            "to": to,
            "bytes_per_second": _number(link.bytes),
            "requests_per_second": _number(link.requests),
        }
        for label, to, link in links[:_MAX_LINKS]
    ]


def _staleness(fleet: FleetView) -> list[Json]:
    """Since the tasks began; the counts of several servers for one worker are added up."""
    counts: dict[str, dict[int, float]] = {}
    dropped: dict[str, float] = {}
    for view in fleet.tasks.values():
        for worker, counters in (view.snapshot.staleness if view.snapshot else {}).items():
            total = counts.setdefault(worker, {})
            for age, count in counters.counts.items():
                total[age] = total.get(age, 0.0) + count
            dropped[worker] = dropped.get(worker, 0.0) + counters.dropped
    return [
        {
            "worker": worker,
            "counts": {str(age): int(count) for age, count in sorted(total.items())},
            "dropped": int(dropped[worker]),
        }
        for worker, total in sorted(counts.items())
    ]


def _queues(fleet: FleetView) -> list[Json]:
    result = []
    for label, view in fleet.tasks.items():
        for name, queue in (view.snapshot.queues if view.snapshot else {}).items():
            rates = view.rates.queues.get(name) if view.rates else None
            result.append(
                {
                    "task": label,
                    "name": name,
                    "kind": queue.kind,
                    "size": int(queue.size),
                    "capacity": int(queue.capacity) if queue.capacity is not None else None,
                    "enqueued_per_second": _number(rates.enqueued) if rates else None,
                    "dequeued_per_second": _number(rates.dequeued) if rates else None,
                    "enqueue_waits": _number(rates.enqueue_waits) if rates else None,
                    "dequeue_waits": _number(rates.dequeue_waits) if rates else None,
                }
            )
    return result[:_MAX_LINKS]


def _variables(fleet: FleetView) -> list[Json]:
    found = []
    for label, view in fleet.tasks.items():
        for name, variable in (view.snapshot.variables if view.snapshot else {}).items():
            rates = view.rates.variables.get(name) if view.rates and view.is_running else None
            found.append((rates.bytes if rates else 0.0, variable.bytes, label, name, variable, rates))
    found.sort(key=lambda entry: (-entry[0], -entry[1], entry[2], entry[3]))
    return [
        {
            "task": label,
            "name": name,
            "dtype": variable.dtype,
            "shape": list(variable.shape),
            "bytes": int(variable.bytes),
            "version": int(variable.version),
            "bytes_per_second": _number(traffic),
            "reads_per_second": _number(rates.reads) if rates else None,
            "updates_per_second": _number(rates.updates) if rates else None,
        }
        for traffic, _, label, name, variable, rates in found[:_MAX_VARIABLES]
    ]


def _number(value: float | None) -> float | None:
    """Six digits: no reader needs more, and JSON has no NaN."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.6g}")


def _rounded(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in values.items()}
