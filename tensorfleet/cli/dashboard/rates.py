"""Rates from counters: what each task did per second between two of its snapshots. Nothing but arithmetic.

Counters are cumulative since a task began. A task that was restarted has another incarnation and begins at zero: only
snapshots of its newest incarnation are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tensorfleet.cli.dashboard.snapshots import PARTS, TaskSnapshot

RATE_SECONDS = 5.0  # the page's rates are means over this time
LEAST_STEPS = 4  # over which the speed of a worker is measured
_MIN_SECONDS = 0.2  # closer snapshots say nothing about a rate


@dataclass(frozen=True, slots=True)
class LinkRates:
    """What a task asks of another one, per second."""

    bytes: float
    requests: float
    #: by variable of the other task: reads from shared memory, and their bytes
    shared: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VariableRates:
    """How one variable is used."""

    bytes: float
    reads: float
    updates: float
    read_bytes: float = 0.0
    update_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueRates:
    """How one queue is used. The waits are seconds of waiting per second: 1.0 is one caller that always waits."""

    enqueued: float
    dequeued: float
    enqueue_waits: float
    dequeue_waits: float


@dataclass(frozen=True, slots=True)
class TaskRates:
    """What a task does per second, over `seconds` before its newest snapshot."""

    newest: TaskSnapshot
    seconds: float
    steps: float
    recent_steps: float  # how many, in the time asked for; `seconds` is longer if they are few
    recent_seconds: float
    failed_steps: float
    step_seconds: float | None  # of one step
    parts: dict[str, float]  # fractions of the steps' time
    part_seconds: dict[str, float]  # of one step
    cpu: float  # 1.0 is one core
    memory_growth: float  # bytes per second
    requests: float
    sent_bytes: float
    received_bytes: float
    busy: float  # fraction
    updates: float
    load_bytes: float  # what others read and write here, per second
    links: dict[str, LinkRates] = field(default_factory=dict)
    variables: dict[str, VariableRates] = field(default_factory=dict)
    queues: dict[str, QueueRates] = field(default_factory=dict)
    staleness: dict[str, dict[int, float]] = field(default_factory=dict)  # by worker: gradients by their age
    dropped: float = 0.0  # gradients in this time


def within(history: Sequence[TaskSnapshot], seconds: float, least_steps: int = 0) -> list[TaskSnapshot]:
    """The snapshots of the newest incarnation that are not older than `seconds` before the newest one.

    Of a task that has taken fewer than `least_steps` in that time, as many older ones as it takes: the rate of a worker
    whose steps take seconds would jump otherwise.
    """
    if not history:
        return []
    newest = history[-1]
    life = [s for s in history if s.incarnation == newest.incarnation and s.time <= newest.time]
    first = len(life) - 1
    while first > 0:
        before = life[first - 1]
        is_recent = newest.time - before.time <= seconds + _MIN_SECONDS
        is_slow = before.steps > 0 and newest.steps - life[first].steps < least_steps
        if not is_recent and not is_slow:
            break
        first -= 1
    return life[first:]


def rates_of(
    history: Sequence[TaskSnapshot], seconds: float = RATE_SECONDS, least_steps: int = LEAST_STEPS
) -> TaskRates | None:
    """The rates over the last `seconds` of a history, oldest first. None while there are not two moments to compare."""
    window = within(history, seconds, least_steps)
    if len(window) < 2 or window[-1].time - window[0].time < _MIN_SECONDS:
        return None
    return _between(window[0], window[-1], within(history, seconds)[0])


def _between(old: TaskSnapshot, new: TaskSnapshot, recent: TaskSnapshot) -> TaskRates:
    seconds = new.time - old.time
    steps = _grown(old.steps, new.steps)
    parts = {part: _grown(old.parts.get(part, 0.0), new.parts.get(part, 0.0)) for part in PARTS}
    in_parts = sum(parts.values())
    served_out = _grown(old.server.sent_bytes, new.server.sent_bytes)
    served_in = _grown(old.server.received_bytes, new.server.received_bytes)
    return TaskRates(
        newest=new,
        seconds=seconds,
        steps=steps / seconds,
        recent_steps=_grown(recent.steps, new.steps),
        recent_seconds=new.time - recent.time,
        failed_steps=_grown(old.failed_steps, new.failed_steps) / seconds,
        step_seconds=_grown(old.step_seconds, new.step_seconds) / steps if steps else None,
        parts={part: value / in_parts for part, value in parts.items()} if in_parts else {},
        part_seconds={part: value / steps for part, value in parts.items()} if steps else {},
        cpu=_grown(old.process.cpu_seconds, new.process.cpu_seconds) / seconds,
        memory_growth=(new.process.memory_bytes - old.process.memory_bytes) / seconds,
        requests=_grown(old.server.requests, new.server.requests) / seconds,
        sent_bytes=(served_out + sum(_peer_growth(old, new, "sent_bytes").values())) / seconds,
        received_bytes=(served_in + sum(_peer_growth(old, new, "received_bytes").values())) / seconds,
        busy=min(_grown(old.server.busy_seconds, new.server.busy_seconds) / seconds, 1.0),
        updates=_grown(old.server.updates, new.server.updates) / seconds,
        load_bytes=(served_out + served_in) / seconds,
        links=_links(old, new, seconds),
        variables=_variables(old, new, seconds),
        queues=_queues(old, new, seconds),
        staleness=_staleness(old, new),
        dropped=sum(
            _grown(_dropped(old, worker), counters.dropped) for worker, counters in new.staleness.items()
        ),
    )


def with_shared_reads(rates: Mapping[str, TaskRates]) -> dict[str, TaskRates]:
    """The rates of some tasks, by label; those of a variable with the reads from shared memory that others tell of."""
    shared: dict[tuple[str, str], tuple[float, float]] = {}
    for each in rates.values():
        for task, link in each.links.items():
            for name, (reads, size) in link.shared.items():
                before = shared.get((task, name), (0.0, 0.0))
                shared[task, name] = (before[0] + reads, before[1] + size)
    result = {}
    for label, each in rates.items():
        variables = {
            name: _read_more(use, *shared[label, name]) if (label, name) in shared else use
            for name, use in each.variables.items()
        }
        result[label] = replace(each, variables=variables)
    return result


def _read_more(use: VariableRates, reads: float, size: float) -> VariableRates:
    return replace(use, bytes=use.bytes + size, reads=use.reads + reads, read_bytes=use.read_bytes + size)


def _grown(before: float, after: float) -> float:
    return max(after - before, 0.0)


def _peer_growth(old: TaskSnapshot, new: TaskSnapshot, name: str) -> dict[str, float]:
    result = {}
    for task, counters in new.peers.items():
        before = old.peers.get(task)
        result[task] = _grown(getattr(before, name) if before else 0.0, getattr(counters, name))
    return result


def _links(old: TaskSnapshot, new: TaskSnapshot, seconds: float) -> dict[str, LinkRates]:
    sent, received = _peer_growth(old, new, "sent_bytes"), _peer_growth(old, new, "received_bytes")
    requests = _peer_growth(old, new, "requests")
    return {
        task: LinkRates(
            (sent[task] + received[task]) / seconds,
            requests[task] / seconds,
            _shared(old, new, task, seconds),
        )
        for task in new.peers
    }


def _shared(
    old: TaskSnapshot, new: TaskSnapshot, task: str, seconds: float
) -> dict[str, tuple[float, float]]:
    before = old.peers[task].shared if task in old.peers else {}
    result = {}
    for name, (reads, size) in new.peers[task].shared.items():
        reads_before, size_before = before.get(name, (0.0, 0.0))
        result[name] = (_grown(reads_before, reads) / seconds, _grown(size_before, size) / seconds)
    return result


def _variables(old: TaskSnapshot, new: TaskSnapshot, seconds: float) -> dict[str, VariableRates]:
    result = {}
    for name, after in new.variables.items():
        # The list holds those of most traffic: one that is new in it has not moved all its bytes just now.
        if name in old.variables:
            before = old.variables[name]
            result[name] = VariableRates(
                _grown(before.traffic, after.traffic) / seconds,
                _grown(before.reads, after.reads) / seconds,
                _grown(before.updates, after.updates) / seconds,
                _grown(before.read_bytes, after.read_bytes) / seconds,
                _grown(before.update_bytes, after.update_bytes) / seconds,
            )
    return result


def _queues(old: TaskSnapshot, new: TaskSnapshot, seconds: float) -> dict[str, QueueRates]:
    result = {}
    for name, after in new.queues.items():
        if name in old.queues:
            before = old.queues[name]
            result[name] = QueueRates(
                _grown(before.enqueued, after.enqueued) / seconds,
                _grown(before.dequeued, after.dequeued) / seconds,
                _grown(before.enqueue_wait_seconds, after.enqueue_wait_seconds) / seconds,
                _grown(before.dequeue_wait_seconds, after.dequeue_wait_seconds) / seconds,
            )
    return result


def _staleness(old: TaskSnapshot, new: TaskSnapshot) -> dict[str, dict[int, float]]:
    result = {}
    for worker, counters in new.staleness.items():
        before: Mapping[int, float] = old.staleness[worker].counts if worker in old.staleness else {}
        counts = {age: _grown(before.get(age, 0.0), count) for age, count in counters.counts.items()}
        result[worker] = {age: count for age, count in counts.items() if count}
    return result


def _dropped(snapshot: TaskSnapshot, worker: str) -> float:
    counters = snapshot.staleness.get(worker)
    return counters.dropped if counters else 0.0
