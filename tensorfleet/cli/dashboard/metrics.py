"""`/metrics`: the counters of all tasks in Prometheus's text format 0.0.4.

`METRICS` is the list of all metrics; docs/metrics.md has the same, and a test compares them. Names do not change from
release to release. Counters are the tasks' own and begin at zero when a task begins, as Prometheus expects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tensorfleet.cli.dashboard.findings import RunFinding
from tensorfleet.cli.dashboard.overview import FleetView, TaskView
from tensorfleet.cli.dashboard.snapshots import TaskSnapshot

#: Of one variable, queue or link there are so many at most for each task, the busiest first: every one is a series.
MAX_VARIABLES = 50
_AGES = (0, 1, 2, 4, 8, 16, 32, 64)
#: label values, in the order of the metric's labels, and the value
_Sample: TypeAlias = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class RunMetric:
    """One metric: its name without the prefix, its labels, and how its samples come from one task."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...]
    samples: Callable[[TaskView], Iterable[_Sample]]

    @property
    def full_name(self) -> str:
        """As Prometheus sees it."""
        return f"tensorfleet_{self.name}"


def _of_snapshot(value: Callable[[TaskSnapshot], float | None]) -> Callable[[TaskView], Iterable[_Sample]]:
    def samples(view: TaskView) -> Iterator[_Sample]:
        number = value(view.snapshot) if view.snapshot is not None else None
        if number is not None:
            yield (view.label,), number

    return samples


def _task_counter(name: str, text: str, value: Callable[[TaskSnapshot], float | None]) -> RunMetric:
    return RunMetric(name, "counter", text, ("task",), _of_snapshot(value))


def _task_gauge(name: str, text: str, value: Callable[[TaskSnapshot], float | None]) -> RunMetric:
    return RunMetric(name, "gauge", text, ("task",), _of_snapshot(value))


def _parts(view: TaskView) -> Iterator[_Sample]:
    if view.snapshot is not None and view.snapshot.steps:
        for part, seconds in view.snapshot.parts.items():
            yield (view.label, part), seconds


def _peers(name: str) -> Callable[[TaskView], Iterator[_Sample]]:
    def samples(view: TaskView) -> Iterator[_Sample]:
        for peer, counters in (view.snapshot.peers if view.snapshot else {}).items():
            yield (view.label, peer), getattr(counters, name)

    return samples


def _variables(name: str) -> Callable[[TaskView], Iterator[_Sample]]:
    def samples(view: TaskView) -> Iterator[_Sample]:
        variables = view.snapshot.variables if view.snapshot else {}
        for variable, counters in list(variables.items())[:MAX_VARIABLES]:
            yield (view.label, variable), getattr(counters, name)

    return samples


def _queues(name: str) -> Callable[[TaskView], Iterator[_Sample]]:
    def samples(view: TaskView) -> Iterator[_Sample]:
        queues = view.snapshot.queues if view.snapshot else {}
        for queue, counters in list(queues.items())[:MAX_VARIABLES]:
            value = getattr(counters, name)
            if value is not None:
                yield (view.label, queue), value

    return samples


def _shards(name: str) -> Callable[[TaskView], Iterator[_Sample]]:
    def samples(view: TaskView) -> Iterator[_Sample]:
        for input_name, counters in (view.snapshot.shards if view.snapshot else {}).items():
            yield (view.label, input_name), getattr(counters, name)

    return samples


def _dropped(view: TaskView) -> Iterator[_Sample]:
    for worker, counters in (view.snapshot.staleness if view.snapshot else {}).items():
        yield (view.label, worker), counters.dropped


def _scalars(view: TaskView) -> Iterator[_Sample]:
    for tag, (_, value) in (view.snapshot.scalars if view.snapshot else {}).items():
        yield (view.label, tag), value


METRICS: tuple[RunMetric, ...] = (
    RunMetric(
        "task_up",
        "gauge",
        "1 if the task answers, 0 if it is silent, has failed or is not up yet.",
        ("task",),
        lambda view: [((view.label,), float(view.is_running))],
    ),
    RunMetric(
        "task_restarts_total",
        "counter",
        "How often the task was started again.",
        ("task",),
        lambda view: [((view.label,), float(view.restarts))],
    ),
    _task_gauge("task_start_time_seconds", "When the task began, in Unix time.", lambda s: s.started or None),
    _task_counter("steps_total", "Steps that the task's sessions have run.", lambda s: s.steps),
    _task_counter("failed_steps_total", "Steps that raised an error.", lambda s: s.failed_steps),
    _task_counter("step_seconds_total", "Time in steps.", lambda s: s.step_seconds),
    RunMetric(
        "step_part_seconds_total",
        "counter",
        "Time in steps by part: input, pull, compute, push, wait (for other workers).",
        ("task", "part"),
        _parts,
    ),
    _task_gauge("global_step", "The global step, as the task knows it.", lambda s: s.global_step),
    _task_counter(
        "process_cpu_seconds_total", "CPU time of the task's process.", lambda s: s.process.cpu_seconds
    ),
    _task_gauge("process_memory_bytes", "Memory of the task's process.", lambda s: s.process.memory_bytes),
    _task_gauge("process_threads", "Threads of the task's process.", lambda s: s.process.threads),
    RunMetric(
        "peer_requests_total",
        "counter",
        "Requests of the task to a peer.",
        ("task", "peer"),
        _peers("requests"),
    ),
    RunMetric(
        "peer_sent_bytes_total",
        "counter",
        "Bytes from the task to a peer.",
        ("task", "peer"),
        _peers("sent_bytes"),
    ),
    RunMetric(
        "peer_received_bytes_total",
        "counter",
        "Bytes from a peer to the task, in answers to it.",
        ("task", "peer"),
        _peers("received_bytes"),
    ),
    RunMetric(
        "peer_wait_seconds_total",
        "counter",
        "Time that the task waited for answers of a peer.",
        ("task", "peer"),
        _peers("waited_seconds"),
    ),
    _task_counter(
        "server_requests_total", "Requests that the task has answered.", lambda s: s.server.requests
    ),
    _task_counter("server_sent_bytes_total", "Bytes in these answers.", lambda s: s.server.sent_bytes),
    _task_counter(
        "server_received_bytes_total", "Bytes in these requests.", lambda s: s.server.received_bytes
    ),
    _task_counter(
        "server_busy_seconds_total", "Time spent on these requests.", lambda s: s.server.busy_seconds
    ),
    _task_counter("server_updates_total", "Updates of variables on the task.", lambda s: s.server.updates),
    _task_gauge("server_clients", "Processes that are connected to the task.", lambda s: s.server.clients),
    _task_gauge("variables", "Variables on the task.", lambda s: s.variable_count),
    _task_gauge("variables_bytes", "Size of all variables on the task.", lambda s: s.variable_bytes),
    RunMetric("variable_bytes", "gauge", "Size of a variable.", ("task", "variable"), _variables("bytes")),
    RunMetric(
        "variable_read_bytes_total",
        "counter",
        "Bytes of a variable that others have read by requests; not from shared memory.",
        ("task", "variable"),
        _variables("read_bytes"),
    ),
    RunMetric(
        "variable_update_bytes_total",
        "counter",
        "Bytes that others have written to a variable.",
        ("task", "variable"),
        _variables("update_bytes"),
    ),
    RunMetric(
        "variable_updates_total",
        "counter",
        "Updates of a variable.",
        ("task", "variable"),
        _variables("updates"),
    ),
    RunMetric("queue_size", "gauge", "Elements in a queue.", ("task", "queue"), _queues("size")),
    RunMetric(
        "queue_capacity",
        "gauge",
        "Room of a queue, if it is limited.",
        ("task", "queue"),
        _queues("capacity"),
    ),
    RunMetric(
        "queue_enqueued_total", "counter", "Elements put in a queue.", ("task", "queue"), _queues("enqueued")
    ),
    RunMetric(
        "queue_dequeued_total", "counter", "Elements taken from it.", ("task", "queue"), _queues("dequeued")
    ),
    RunMetric(
        "queue_enqueue_wait_seconds_total",
        "counter",
        "Time that callers waited for room in a queue.",
        ("task", "queue"),
        _queues("enqueue_wait_seconds"),
    ),
    RunMetric(
        "queue_dequeue_wait_seconds_total",
        "counter",
        "Time that callers waited for elements of a queue.",
        ("task", "queue"),
        _queues("dequeue_wait_seconds"),
    ),
    RunMetric(
        "shards_held",
        "gauge",
        "Shards of an input that workers have now.",
        ("task", "input"),
        _shards("held"),
    ),
    RunMetric(
        "shards_finished_total",
        "counter",
        "Shards that workers have finished.",
        ("task", "input"),
        _shards("finished"),
    ),
    RunMetric(
        "shards_dealt_again_total",
        "counter",
        "Shards that were dealt again because their worker had died.",
        ("task", "input"),
        _shards("dealt_again"),
    ),
    RunMetric(
        "gradients_dropped_total",
        "counter",
        "Gradients of a worker that were too old to be applied.",
        ("task", "worker"),
        _dropped,
    ),
    RunMetric("summary_value", "gauge", "The newest value of a scalar summary.", ("task", "tag"), _scalars),
)
#: Those that are not a function of one task; `exposition` writes them.
STALENESS = "tensorfleet_gradient_staleness_versions"
FINDING = "tensorfleet_finding"
STALENESS_HELP = "How many versions old the gradients of a worker were when they were applied."
CHANGES = "tensorfleet_worker_changes_total"
CHANGES_HELP = "How often a worker has joined or left, and how often the run was scaled."
FINDING_HELP = "1 for each finding that the page shows."
DECISIONS = "tensorfleet_server_decisions_total"
DECISIONS_HELP = "Decisions about which process leads a durable parameter server."


def exposition(
    fleet: FleetView,
    findings: Sequence[RunFinding],
    decisions: Mapping[str, int] | None = None,
    changes: Mapping[str, int] | None = None,
) -> str:
    """The text of `/metrics`.

    `decisions` are those about each durable task, `changes` is how often workers have joined and left, and the run was
    scaled.
    """
    lines: list[str] = []
    for metric in METRICS:
        samples = [sample for view in fleet.tasks.values() for sample in metric.samples(view)]
        lines += _head(metric.full_name, metric.kind, metric.help)
        lines += [
            _line(metric.full_name, zip(metric.labels, values, strict=True), number)
            for values, number in samples
        ]
    lines += _head(STALENESS, "histogram", STALENESS_HELP)
    for view in fleet.tasks.values():
        for worker, counters in (view.snapshot.staleness if view.snapshot else {}).items():
            lines += _histogram(view.label, worker, counters.counts)
    lines += _head(CHANGES, "counter", CHANGES_HELP)
    lines += [_line(CHANGES, [("change", change)], count) for change, count in (changes or {}).items()]
    lines += _head(FINDING, "gauge", FINDING_HELP)
    for finding in findings:
        seen = finding.observation
        kind = seen.kind.partition(" ")[0]
        labels = {"kind": kind, "subject": seen.kind.partition(" ")[2], "severity": seen.severity}
        lines.append(_line(FINDING, [*labels.items(), ("task", seen.task or "")], 1.0))
    lines += _head(DECISIONS, "counter", DECISIONS_HELP)
    lines += [_line(DECISIONS, [("task", task)], count) for task, count in (decisions or {}).items()]
    return "\n".join(lines) + "\n"


def _histogram(task: str, worker: str, counts: dict[int, float]) -> list[str]:
    labels = [("task", task), ("worker", worker)]
    lines = []
    for limit in _AGES:
        below = sum(count for age, count in counts.items() if age <= limit)
        lines.append(_line(f"{STALENESS}_bucket", [*labels, ("le", str(limit))], below))
    total = sum(counts.values())
    lines.append(_line(f"{STALENESS}_bucket", [*labels, ("le", "+Inf")], total))
    lines.append(_line(f"{STALENESS}_sum", labels, sum(age * count for age, count in counts.items())))
    lines.append(_line(f"{STALENESS}_count", labels, total))
    return lines


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Iterable[tuple[str, str]], number: float) -> str:
    shown = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)
    return f"{name}{{{shown}}} {_shown(number)}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _shown(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(float(number))
