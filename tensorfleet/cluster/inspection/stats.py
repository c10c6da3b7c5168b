"""Topic `stats`: the load of this task, in the fields of stats_schema.py.

Everything that costs more than a look at a number is done here, when somebody asks, and not by the steps.
"""

from __future__ import annotations

import heapq
import os
import socket
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.base import counters
from tensorfleet.cluster.inspection import own_task, running_steps
from tensorfleet.cluster.inspection.json_of import as_json
from tensorfleet.cluster.inspection.stats_schema import (
    MAX_VARIABLES,
    VERSION,
    LastError,
    Parts,
    PeerLoad,
    Process,
    QueueLoad,
    ServerLoad,
    Staleness,
    Stats,
    Steps,
    VariableLoad,
)
from tensorfleet.cluster.inspection.topics import NoOptions, Options, Report, chosen
from tensorfleet.cluster.transport import peers
from tensorfleet.cluster.transport.traffic import Traffic
from tensorfleet.kernels.parallel_for import core_count
from tensorfleet.runtime.resources import ResourceManager, VariableStore
from tensorfleet.runtime.variable_use import size_of
from tensorfleet.state.accumulators import Accumulator, maximums
from tensorfleet.state.gradient_tallies import GATE_KIND, JudgesGradients
from tensorfleet.state.queues import Queue

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

_ACCUMULATORS = ("accumulator", "sparse accumulator")
_MAX_QUEUES = 200
_PUT, _TAKE = "Enqueue", ("Dequeue", "TakeGrad")


def report(server: Server | None, options: Options) -> Report:
    """The load of this task."""
    chosen(NoOptions, options)
    return Report(as_json(stats_of(own_task.server_here(server), own_task.label(server))))


def stats_of(server: Server | None, label: str) -> Stats:
    """The load of the task of a server, or of this process if it has none."""
    managers = own_task.resources(server)
    stores, queues, accumulators = _state(managers)
    listed, count, size, updates = variable_loads(stores)
    return Stats(
        version=VERSION,
        task=label,
        incarnation=own_task.incarnation(server),
        time=time.time(),
        started=own_task.started(),
        host=socket.gethostname(),
        pid=os.getpid(),
        process=_process(),
        steps=_steps(stores),
        peers=_peers(),
        server=_served(server, updates),
        variables=listed,
        variable_count=count,
        variable_bytes=size,
        queues=[*map(_queue, queues[:_MAX_QUEUES]), *map(_accumulator, accumulators[:_MAX_QUEUES])],
        staleness=[*_own_staleness(label), *_told_staleness(managers, accumulators)],
        scalars=dict(counters.scalars),
        under_way=running_steps.under_way(server),
        last_error=_last_error(),
    )


def _state(
    managers: Iterable[ResourceManager],
) -> tuple[list[VariableStore], list[Queue], list[Accumulator]]:
    """What lives in this task."""
    stores: dict[VariableStore, None] = {}
    queues: dict[Queue, None] = {}
    accumulators: dict[Accumulator, None] = {}
    for manager in managers:
        manager.uses.settle()
        stores.update(dict.fromkeys(manager.of_kind("variable")))
        queues.update(dict.fromkeys(q for q in manager.of_kind("queue") if isinstance(q, Queue)))
        accumulators.update(dict.fromkeys(manager.of_kind(*_ACCUMULATORS)))
    return list(stores), list(queues), list(accumulators)


def _process() -> Process:
    import psutil  # a task that nobody asks need not load it

    process = psutil.Process()
    with process.oneshot():
        cpu, memory = process.cpu_times(), process.memory_info()
        threads = process.num_threads()
    return Process(cpu.user + cpu.system, memory.rss, core_count(), threads)


def _steps(stores: Iterable[VariableStore]) -> Steps:
    steps = counters.steps
    return Steps(
        steps.count, steps.failed, steps.seconds, _global_step(stores), Parts(**steps.parts_so_far())
    )


def _global_step(stores: Iterable[VariableStore]) -> int | None:
    values = [store.read() for store in stores if store.name == "global_step"]
    numbers = [np.asarray(value) for value in values if value is not None]
    known = [int(number) for number in numbers if number.ndim == 0 and number.dtype.kind in "iu"]
    return max(known) if known else counters.newest_global_step()


def _peers() -> list[PeerLoad]:
    by_label: dict[str, PeerLoad] = {}
    for peer in peers.known():
        traffic, (shared_reads, shared_bytes) = peer.traffic(), peer.shared()
        if not (traffic.requests or shared_reads):
            continue
        label = own_task.label_of_peer(peer)
        load = by_label.setdefault(label, PeerLoad(label))
        load.requests += traffic.requests
        load.sent_bytes += traffic.sent_bytes
        load.received_bytes += traffic.received_bytes
        load.waited_seconds += counters.steps.waited_for(peer)
        load.shared_reads += shared_reads
        load.shared_bytes += shared_bytes
    return [by_label[label] for label in sorted(by_label)]


def _served(server: Server | None, updates: int) -> ServerLoad:
    traffic = Traffic() if server is None else server.served.so_far()
    return ServerLoad(
        requests=traffic.requests,
        sent_bytes=traffic.sent_bytes,
        received_bytes=traffic.received_bytes,
        busy_seconds=traffic.busy_seconds,
        updates=updates,
        clients=0 if server is None else server.served.clients(),
    )


def variable_loads(stores: Iterable[VariableStore]) -> tuple[list[VariableLoad], int, int, int]:
    """The variables with the most traffic; the number, the bytes and the updates of all."""
    sized = [(store, size_of(store.value)) for store in stores]
    busiest = heapq.nlargest(
        MAX_VARIABLES, sized, key=lambda one: (one[0].read_bytes + _update_bytes(*one), one[1])
    )
    listed = [_variable(store, size) for store, size in busiest]
    return listed, len(sized), sum(size for _, size in sized), sum(store.updates for store, _ in sized)


def _variable(store: VariableStore, size: int) -> VariableLoad:
    updates = store.updates
    return VariableLoad(
        name=store.name,
        dtype=store.dtype.base_dtype.name,
        shape=[int(n) for n in getattr(store.value, "shape", ())],
        bytes=size,
        version=updates,
        reads=store.reads,
        updates=updates,
        read_bytes=store.read_bytes,
        update_bytes=_update_bytes(store, size),
    )


def _update_bytes(store: VariableStore, size: int) -> int:
    return (store.updates - store.row_updates) * size + store.row_update_bytes


def _queue(queue: Queue) -> QueueLoad:
    waited = dict(queue.waited)
    return QueueLoad(
        name=queue.name,
        kind=queue.kind,
        size=queue.size(),
        capacity=queue.room_for(),
        enqueued=queue.enqueued,
        dequeued=queue.dequeued,
        enqueue_wait_seconds=waited.get(_PUT, 0.0),
        dequeue_wait_seconds=sum(waited.get(verb, 0.0) for verb in _TAKE),
    )


def _accumulator(accumulator: Accumulator) -> QueueLoad:
    waited = sum(accumulator.waited.get(verb, 0.0) for verb in _TAKE)
    return QueueLoad(
        accumulator.name,
        "Accumulator",
        accumulator.count,
        None,
        accumulator.applied,
        accumulator.taken,
        0.0,
        waited,
    )


def _own_staleness(label: str) -> list[Staleness]:
    """What this process has counted of its own gradients."""
    if not counters.staleness and not counters.dropped_gradients():
        return []
    counts = {str(age): n for age, n in sorted(dict(counters.staleness).items())}
    return [Staleness(label, counts, counters.dropped_gradients())]


def _told_staleness(
    managers: Iterable[ResourceManager], accumulators: Iterable[Accumulator]
) -> list[Staleness]:
    """What became of the gradients that workers have brought here."""
    gates: dict[JudgesGradients, None] = {}
    for manager in managers:
        gates.update(dict.fromkeys(manager.of_kind(GATE_KIND)))
    by_worker: dict[str, Staleness] = {}
    for tallies in (gate.tallies() for gate in gates):
        for owner, tally in tallies.items():
            told = by_worker.setdefault(owner, Staleness(own_task.label_of(owner)))
            told.scaled += tally.scaled
            told.dropped += tally.dropped
            for age, n in tally.ages.items():
                told.counts[str(age)] = told.counts.get(str(age), 0) + n
    # An accumulator that a gate has told to drop a gradient counts it as well.
    for owner, n in maximums([a.dropped for a in accumulators]).items():
        told = by_worker.setdefault(owner, Staleness(own_task.label_of(owner)))
        told.dropped = max(told.dropped, n)
    return [by_worker[owner] for owner in sorted(by_worker)]


def _last_error() -> LastError | None:
    last = counters.last_error
    return LastError(last.time, last.text) if last.text else None
