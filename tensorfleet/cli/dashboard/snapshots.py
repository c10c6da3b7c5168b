"""What a task reports on topic `stats`, as typed values: the counters of one moment, cumulative since the task began.

A report comes over the network, from a task of another version perhaps. What is absent or not a number counts as zero,
so that one odd field never hides a task.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: The parts of a worker's step, in the order of a step.
PARTS = ("input", "pull", "compute", "push", "wait")
_MAX_NAME = 400  # characters: of a variable, a queue, a summary
_TOO_LARGE = 1e300
_MAX_LISTED = 500  # variables, queues, peers of one task


@dataclass(frozen=True, slots=True)
class PeerCounters:
    """What the task has asked of another one."""

    requests: float = 0.0
    sent_bytes: float = 0.0
    received_bytes: float = 0.0
    waited_seconds: float = 0.0
    #: by variable of the other task: reads from shared memory, and their bytes
    shared: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerCounters:
    """What others have asked of the task."""

    requests: float = 0.0
    sent_bytes: float = 0.0
    received_bytes: float = 0.0
    busy_seconds: float = 0.0
    updates: float = 0.0
    clients: float = 0.0


@dataclass(frozen=True, slots=True)
class VariableCounters:
    """One variable of the task."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    bytes: float = 0.0
    version: float = 0.0
    reads: float = 0.0
    updates: float = 0.0
    read_bytes: float = 0.0
    update_bytes: float = 0.0

    @property
    def traffic(self) -> float:
        """All bytes read and written over the network."""
        return self.read_bytes + self.update_bytes


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """One queue of the task."""

    kind: str = ""
    size: float = 0.0
    capacity: float | None = None
    enqueued: float = 0.0
    dequeued: float = 0.0
    enqueue_wait_seconds: float = 0.0
    dequeue_wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ShardCounters:
    """The shards of one input that the task deals."""

    held: float = 0.0
    finished: float = 0.0
    dealt_again: float = 0.0


@dataclass(frozen=True, slots=True)
class StalenessCounters:
    """How many versions old the gradients of one worker were when they were applied."""

    counts: dict[int, float] = field(default_factory=dict)
    dropped: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessCounters:
    """The process of the task."""

    cpu_seconds: float = 0.0
    memory_bytes: float = 0.0
    cores: float = 0.0
    threads: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """All counters of a task at one moment."""

    task: str
    incarnation: int
    time: float  # by the task's clock
    started: float = 0.0
    process: ProcessCounters = field(default_factory=ProcessCounters)
    steps: float = 0.0
    failed_steps: float = 0.0
    step_seconds: float = 0.0
    global_step: int | None = None
    parts: dict[str, float] = field(default_factory=dict)
    peers: dict[str, PeerCounters] = field(default_factory=dict)
    server: ServerCounters = field(default_factory=ServerCounters)
    variables: dict[str, VariableCounters] = field(default_factory=dict)
    variable_count: int = 0
    variable_bytes: float = 0.0
    queues: dict[str, QueueCounters] = field(default_factory=dict)
    shards: dict[str, ShardCounters] = field(default_factory=dict)
    staleness: dict[str, StalenessCounters] = field(default_factory=dict)
    scalars: dict[str, tuple[int, float]] = field(default_factory=dict)
    waits_for: tuple[str, float] | None = None  # of its longest step that is under way: what, for how long
    last_error: str | None = None


def snapshot_of(task: str, report: Mapping[str, Any], received: float) -> TaskSnapshot:
    """The snapshot that a report describes. `task` is who was asked, `received` is the time if it names none."""
    steps, process = _object(report, "steps"), _object(report, "process")
    global_step = steps.get("global_step")
    return TaskSnapshot(
        task=task,
        incarnation=int(_number(report, "incarnation")),
        time=_number(report, "time") or received,
        started=_number(report, "started"),
        process=ProcessCounters(*_numbers(process, "cpu_seconds", "memory_bytes", "cores", "threads")),
        steps=_number(steps, "count"),
        failed_steps=_number(steps, "failed"),
        step_seconds=_number(steps, "seconds"),
        global_step=int(_number(steps, "global_step")) if global_step is not None else None,
        parts={part: _number(_object(steps, "parts"), part) for part in PARTS},
        peers={_text(p, "task"): _peer(p) for p in _items(report, "peers")},
        server=_server(_object(report, "server")),
        variables={_text(v, "name"): _variable(v) for v in _items(report, "variables")},
        variable_count=int(_number(report, "variable_count")),
        variable_bytes=_number(report, "variable_bytes"),
        queues={_text(q, "name"): _queue(q) for q in _items(report, "queues")},
        shards={
            _text(s, "name"): ShardCounters(*_numbers(s, "held", "finished", "dealt_again"))
            for s in _items(report, "shards")
        },
        staleness={_text(s, "worker"): _staleness(s) for s in _items(report, "staleness")},
        scalars=dict(_scalars(_object(report, "scalars"))),
        waits_for=_waits_for(_items(report, "under_way")),
        last_error=_text(_object(report, "last_error"), "text") or None,
    )


def _peer(item: Mapping[str, Any]) -> PeerCounters:
    shared = dict(_shared(_object(item, "shared_variables")))
    requests, sent, received, waited = _numbers(
        item, "requests", "sent_bytes", "received_bytes", "waited_seconds"
    )
    return PeerCounters(requests, sent, received, waited, shared)


def _shared(item: Mapping[str, Any]) -> Iterable[tuple[str, tuple[float, float]]]:
    for name, pair in list(item.items())[:_MAX_LISTED]:
        if isinstance(pair, list) and len(pair) == 2:
            reads, size = (_number({"": value}, "") for value in pair)
            yield name[:_MAX_NAME], (reads, size)


def _server(item: Mapping[str, Any]) -> ServerCounters:
    return ServerCounters(
        *_numbers(item, "requests", "sent_bytes", "received_bytes", "busy_seconds", "updates", "clients")
    )


def _variable(item: Mapping[str, Any]) -> VariableCounters:
    shape = item.get("shape")
    dimensions = tuple(int(n) for n in shape if isinstance(n, int)) if isinstance(shape, list) else ()
    counters = _numbers(item, "bytes", "version", "reads", "updates", "read_bytes", "update_bytes")
    return VariableCounters(_text(item, "dtype"), dimensions, *counters)


def _queue(item: Mapping[str, Any]) -> QueueCounters:
    capacity = item.get("capacity")
    return QueueCounters(
        _text(item, "kind"),
        _number(item, "size"),
        _number(item, "capacity") if capacity is not None else None,
        *_numbers(item, "enqueued", "dequeued", "enqueue_wait_seconds", "dequeue_wait_seconds"),
    )


def _staleness(item: Mapping[str, Any]) -> StalenessCounters:
    counts = _object(item, "counts")
    return StalenessCounters(
        {int(key): _number(counts, key) for key in counts if key.isdecimal()}, _number(item, "dropped")
    )


def _scalars(item: Mapping[str, Any]) -> Iterable[tuple[str, tuple[int, float]]]:
    for tag, pair in list(item.items())[:50]:
        match pair:
            case [int() | float() as step, int() | float() as value] if math.isfinite(step):
                yield tag[:_MAX_NAME], (int(step), float(value))


def _waits_for(under_way: list[Mapping[str, Any]]) -> tuple[str, float] | None:
    waiting = [(_text(step, "waits_for"), _number(step, "seconds")) for step in under_way]
    return max((pair for pair in waiting if pair[0]), key=lambda pair: pair[1], default=None)


def _object(report: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = report.get(name)
    return value if isinstance(value, dict) else {}


def _items(report: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = report.get(name)
    items = value[:_MAX_LISTED] if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return value[:_MAX_NAME] if isinstance(value, str) else ""


def _number(item: Mapping[str, Any], name: str) -> float:
    value = item.get(name)
    # Neither NaN nor an integer that is too long for a float.
    return float(value) if isinstance(value, int | float) and abs(value) < _TOO_LARGE else 0.0


def _numbers(item: Mapping[str, Any], *names: str) -> list[float]:
    return [_number(item, name) for name in names]
