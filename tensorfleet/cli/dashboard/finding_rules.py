"""The rules of the findings: each looks at one view of the fleet and says what it sees. Nothing but arithmetic.

A rule compares means over eight seconds (`TaskView.long_rates`), and stays silent until it has seen enough.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tensorfleet.cli.dashboard.overview import FleetView, TaskView, hottest, loads
from tensorfleet.cli.dashboard.rates import TaskRates

_MIN_SECONDS = 2.5  # of rates that are compared
_HOT_RATIO, _VERY_HOT_RATIO = 1.4, 1.8  # hottest server to the mean; with two servers the most is 2
_MIN_HOT_BYTES = 16 * 1024.0  # per second: below this nobody waits for bytes
_WHOLE_SHARE = 0.5  # of a server's traffic on one variable
_SLOW_RATIO, _VERY_SLOW_RATIO = 1.5, 3.0  # a worker's time for a step to the median of the others
_INPUT_SHARE, _BAD_INPUT_SHARE = 0.3, 0.6
_WAIT_SHARE = 0.4
_STALE_RATIO = 2.0  # mean staleness to what the number of workers explains
_MIN_GRADIENTS = 20
_QUEUE_WAIT = 0.5  # of the time somebody waits
_MIN_GROWTH_BYTES = 4e6  # per second
_GROWTH_SHARE = 0.005  # of its memory, per second
_ONE_SIDED = 10.0
_BUSY_CORES = 0.85
_RESTARTED_SECONDS = 120.0
_MIN_STUCK_SECONDS = 6.0
_EXPECTED_STEPS = 0.5  # that it would have ended meanwhile at its own mean speed, which counts the pause
BETWEEN = "between"  # what a worker does from the end of a step to the next one
_MIN_STEPS = 2.0  # of a worker in the time looked at

Severity = Literal["info", "warning", "serious"]


@dataclass(frozen=True, slots=True)
class RunObservation:
    """What a rule says about one task, or about the run."""

    kind: str
    severity: Severity
    task: str | None
    text: str
    advice: str
    #: shown at once: it is a fact, not a mean
    is_sudden: bool = False


_Rule: TypeAlias = Callable[[FleetView], Iterator[RunObservation]]


def rates_in(fleet: FleetView) -> Iterator[tuple[TaskView, TaskRates]]:
    """The tasks that answer and have been seen for long enough."""
    for view in fleet.tasks.values():
        if view.is_running and view.long_rates is not None and view.long_rates.seconds >= _MIN_SECONDS:
            yield view, view.long_rates


def shown_bytes(count: float) -> str:
    """1.5 MB, 410 KB, 12 B: three digits at most."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def shown_seconds(seconds: float) -> str:
    """1.2 s, 310 ms, 0.2 ms."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def shown_share(share: float) -> str:
    """71 %, as the page writes it."""
    return f"{100 * share:.0f} %"


# -- Servers ----------------------------------------------------------------------------------------------------------


def hot_server(fleet: FleetView) -> Iterator[RunObservation]:
    """One parameter server carries much more than the others."""
    load = loads({view.label: rates for view, rates in rates_in(fleet)}, fleet.servers)
    label, ratio = hottest(load)
    if label is None or ratio is None or ratio < _HOT_RATIO or load[label] < _MIN_HOT_BYTES:
        return
    share = load[label] / sum(load.values())
    text = f"{label} carries {shown_share(share)} of the bytes of the {len(load)} parameter servers ({ratio:.2g} times the mean)"
    cause, advice = _cause_of_heat(fleet.tasks[label], len(load))
    severity: Severity = "serious" if ratio >= _VERY_HOT_RATIO else "warning"
    yield RunObservation("hot_server", severity, label, f"{text}{cause}.", advice)


def _cause_of_heat(view: TaskView, servers: int) -> tuple[str, str]:
    """Why a server is hot, and what to do about it."""
    by_bytes = (
        f"Place variables by their size: `tf.train.replica_device_setter(..., ps_strategy=tf.contrib.training."
        f"GreedyLoadBalancingStrategy({servers}, tf.contrib.training.byte_size_load_fn))`."
    )
    rates, snapshot = view.long_rates, view.snapshot
    if rates is None or snapshot is None or not rates.variables:
        return "", by_bytes
    traffic = _with_slots({name: use.bytes for name, use in rates.variables.items()})
    name = max(traffic, key=lambda each: traffic[each])
    share = traffic[name] / max(sum(traffic.values()), 1.0)
    if share < _WHOLE_SHARE:
        return f": it has {snapshot.variable_count or len(snapshot.variables)} variables", by_bytes
    size = shown_bytes(snapshot.variables[name].bytes)
    if "/part_" in name:
        return f", because of the partition `{name}` ({size})", (
            f"Its rows are used more than those of the other partitions. Use more of them: "
            f"`tf.fixed_size_partitioner({2 * servers})`, or shuffle the ids."
        )
    return f", because `{name}` ({size}) is whole there", (
        f"Split it over the servers: `tf.get_variable(..., partitioner=tf.fixed_size_partitioner({servers}))`."
    )


def _with_slots(traffic: dict[str, float]) -> dict[str, float]:
    """The traffic of each variable with that of its optimizer slots, such as `w/Adam` of `w`."""
    result: dict[str, float] = {}
    for name, count in traffic.items():
        above = name.split("/")
        owners = ("/".join(above[:i]) for i in range(1, len(above) + 1))
        owner = next(each for each in owners if each in traffic)
        result[owner] = result.get(owner, 0.0) + count
    return result


def busy_server(fleet: FleetView) -> Iterator[RunObservation]:
    """A parameter server has no more CPU."""
    for view, rates in rates_in(fleet):
        cores = rates.newest.process.cores
        if view.is_server and cores and rates.cpu >= _BUSY_CORES * cores:
            yield RunObservation(
                "busy_server",
                "warning",
                view.label,
                f"{view.label} uses {rates.cpu:.2g} of {cores:.0f} cores: its processor limits the workers.",
                "Run more parameter servers (`tensorfleet run --ps N`), or move it to a machine with more cores.",
            )


def whole_reads(fleet: FleetView) -> Iterator[RunObservation]:
    """Workers read all of a large variable and change little of it."""
    for view, rates in rates_in(fleet):
        for name, use in rates.variables.items():
            variable = rates.newest.variables[name]
            is_whole = use.read_bytes >= 0.9 * use.reads * variable.bytes > 0
            is_one_sided = 0 < use.update_bytes * _ONE_SIDED <= use.read_bytes
            if is_whole and is_one_sided and variable.bytes >= 1e6 and use.read_bytes >= 1e6:
                yield RunObservation(
                    "whole_reads",
                    "warning",
                    view.label,
                    f"Workers read all of `{name}` ({shown_bytes(variable.bytes)}) of {view.label} in their steps, "
                    f"{use.read_bytes / use.update_bytes:.0f} times the bytes that they write to it.",
                    "Read the rows that a step needs: `tf.nn.embedding_lookup` or `tf.gather` on the variable itself.",
                )


# -- Workers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlowWorker:
    """A worker that is slower than the others."""

    label: str
    ratio: float  # its time for a step to the median of the others
    seconds: float  # of its steps, without waiting for others
    usual: float
    part: str  # where the time goes that the others do not need


def workers_in(fleet: FleetView) -> list[tuple[TaskView, TaskRates]]:
    """The tasks that train."""
    return [
        (view, rates)
        for view, rates in rates_in(fleet)
        if not view.is_server and view.job != "evaluator" and rates.newest.steps
    ]


def slow_workers(fleet: FleetView) -> list[SlowWorker]:
    """The workers whose steps take longer than those of the others."""
    workers = [
        (view, rates) for view, rates in workers_in(fleet) if rates.steps * rates.seconds >= _MIN_STEPS
    ]
    if len(workers) < 2:
        return []
    result = []
    for view, rates in workers:
        others = [other for seen, other in workers if seen.label != view.label]
        own, usual = _own_seconds(rates), statistics.median(_own_seconds(other) for other in others)
        if usual <= 0:
            continue
        ratio = own / usual
        if ratio >= _SLOW_RATIO:
            result.append(SlowWorker(view.label, ratio, own, usual, _slow_part(rates, others)))
    return result


def _own_seconds(rates: TaskRates) -> float:
    """The time from step to step in which the worker does not wait for other workers."""
    return sum(seconds for part, seconds in _parts_of(rates).items() if part != "wait")


def _parts_of(rates: TaskRates) -> dict[str, float]:
    """The seconds of one step by part, with those between two steps."""
    parts = rates.part_seconds
    return {**parts, BETWEEN: max(1.0 / rates.steps - sum(parts.values()), 0.0)}


def _slow_part(rates: TaskRates, others: list[TaskRates]) -> str:
    parts = _parts_of(rates)

    def excess(part: str) -> float:
        return parts[part] - statistics.median(_parts_of(other).get(part, 0.0) for other in others)

    return max((part for part in parts if part != "wait"), key=excess)


_SLOW_ADVICE = {
    "input": "Its input is slow: add `dataset.prefetch(1)`, or look at the disk that it reads from.",
    BETWEEN: "Its script is busy between two calls of sess.run: prepare batches in `tf.data` with `prefetch(1)`, and look at "
    "its hooks.",
    "pull": "It gets variables slowly: look at its network, and at the server that it reads from.",
    "push": "It sends gradients slowly: look at its network, and at the server that it writes to.",
    "compute": "Look for other programs on its machine, and for a larger share of the data. In synchronous training "
    "`tf.train.SyncReplicasOptimizer` goes on without the slowest, if `replicas_to_aggregate` is below "
    "`total_num_replicas`.",
}


_WHERE = {
    "input": "in waiting for input",
    "pull": "in getting variables",
    "push": "in sending updates",
    "compute": "in computing",
    BETWEEN: "outside of sess.run",
}


def straggler(fleet: FleetView) -> Iterator[RunObservation]:
    """A worker is slower than the others."""
    for worker in slow_workers(fleet):
        yield RunObservation(
            "straggler",
            "serious" if worker.ratio >= _VERY_SLOW_RATIO else "warning",
            worker.label,
            f"{worker.label} takes {worker.ratio:.2g} times as long for a step as the other workers "
            f"({shown_seconds(worker.seconds)} to {shown_seconds(worker.usual)}), mostly {_WHERE.get(worker.part)}.",
            _SLOW_ADVICE[worker.part],
        )


def stuck_worker(fleet: FleetView) -> Iterator[RunObservation]:
    """A worker ends no step although it has ended many before."""
    for view, rates in workers_in(fleet):
        expected = rates.steps * rates.recent_seconds
        if rates.recent_steps or expected < _EXPECTED_STEPS or rates.recent_seconds < _MIN_STUCK_SECONDS:
            continue
        waits = rates.newest.waits_for
        why = f": it waits for {waits[0]} for {waits[1]:.0f} s" if waits else ""
        yield RunObservation(
            "stuck_worker",
            "warning",
            view.label,
            f"{view.label} has ended no step for {rates.recent_seconds:.0f} s{why}.",
            f"Look at its threads: tensorfleet debug NAME {view.label} stack.",
        )


def _share_of_time(rates: TaskRates, part: str) -> float:
    """The fraction of a worker's time in a part of its steps; what it does between them is time, too."""
    return min(rates.part_seconds.get(part, 0.0) * rates.steps, rates.parts.get(part, 0.0))


def waits_for_input(fleet: FleetView) -> Iterator[RunObservation]:
    """A worker waits for its data."""
    for view, rates in workers_in(fleet):
        share = _share_of_time(rates, "input")
        if share >= _INPUT_SHARE:
            yield RunObservation(
                "waits_for_input",
                "serious" if share >= _BAD_INPUT_SHARE else "warning",
                view.label,
                f"{view.label} waits for input {shown_share(share)} of its time.",
                "Prepare batches while a step runs: `dataset.prefetch(1)`, and `map(..., num_parallel_calls=N)`.",
            )


def waits_for_others(fleet: FleetView) -> Iterator[RunObservation]:
    """Workers of a synchronous training wait for each other."""
    workers = workers_in(fleet)
    waiting = [
        (view.label, _share_of_time(rates, "wait"))
        for view, rates in workers
        if _share_of_time(rates, "wait") >= _WAIT_SHARE
    ]
    if len(workers) < 2 or 2 * len(waiting) < len(workers):
        return
    share = statistics.mean(share for _, share in waiting)
    slow = [worker.label for worker in slow_workers(fleet)]
    for_whom = f", mostly for {' and '.join(slow[:3])}" if slow else ""
    count = len(workers)
    yield RunObservation(
        "waits_for_others",
        "warning",
        None,
        f"{len(waiting)} of {count} workers wait for others {shown_share(share)} of their time{for_whom}.",
        "Go on without the slowest: `tf.train.SyncReplicasOptimizer(..., "
        f"replicas_to_aggregate={max(count - 1, 1)}, total_num_replicas={count})`.",
    )


def stale_gradients(fleet: FleetView) -> Iterator[RunObservation]:
    """Gradients are older than the number of workers explains."""
    counts: dict[str, dict[int, float]] = {}
    for _, rates in rates_in(fleet):
        for worker, ages in rates.staleness.items():
            total = counts.setdefault(worker, {})
            for age, count in ages.items():
                total[age] = total.get(age, 0.0) + count
    workers = max(len(workers_in(fleet)), len(counts))
    usual = max(workers - 1, 1)
    for worker, ages in counts.items():
        number = sum(ages.values())
        if number < _MIN_GRADIENTS:
            continue
        mean = sum(age * count for age, count in ages.items()) / number
        if mean > _STALE_RATIO * usual:
            yield RunObservation(
                "stale_gradients",
                "warning",
                worker,
                f"Gradients of {worker} are {mean:.2g} versions old when they are applied (95 % are at most "
                f"{percentile(ages, 0.95)} old); with {workers} workers about {usual} is usual.",
                "Find out why it is slow, lower the learning rate, or train synchronously with "
                "`tf.train.SyncReplicasOptimizer`.",
            )


def percentile(counts: dict[int, float], fraction: float) -> int:
    """The smallest age that at least this fraction of the gradients do not exceed."""
    left = fraction * sum(counts.values())
    for age in sorted(counts):
        left -= counts[age]
        if left <= 1e-9:
            return age
    return max(counts, default=0)


# -- Queues, processes ------------------------------------------------------------------------------------------------


def queue_waits(fleet: FleetView) -> Iterator[RunObservation]:
    """A queue is empty and somebody waits for elements, or full and somebody waits for room."""
    for view, rates in rates_in(fleet):
        for name, use in rates.queues.items():
            queue = rates.newest.queues[name]
            if "sync_token" in name:
                continue  # waiting there is how workers of a synchronous training wait for each other
            if queue.size == 0 and use.dequeue_waits >= _QUEUE_WAIT:
                yield RunObservation(
                    f"queue_empty {name}",
                    "warning",
                    view.label,
                    f"The queue `{name}` of {view.label} is empty, and steps wait for its elements.",
                    "Fill it faster: more threads in `tf.train.QueueRunner` or `tf.train.batch`, or less work for each element.",
                )
            elif queue.capacity and queue.size >= queue.capacity and use.enqueue_waits >= _QUEUE_WAIT:
                yield RunObservation(
                    f"queue_full {name}",
                    "info",
                    view.label,
                    f"The queue `{name}` of {view.label} is full ({queue.capacity:.0f} elements): input is faster than the steps.",
                    "Nothing is wrong. Fewer threads that fill it would leave more of the processor to the steps.",
                )


def no_answer(fleet: FleetView) -> Iterator[RunObservation]:
    """A task does not answer, or has died."""
    for view in fleet.tasks.values():
        if view.state == "silent":
            yield RunObservation(
                "silent",
                "serious",
                view.label,
                f"{view.label} has not answered for {view.silent_seconds:.0f} s.",
                "It may be stopped, swapping or cut off from the network. Its log and `kill -CONT PID` may help.",
                is_sudden=True,
            )
        elif view.state == "dead" and not view.is_launched:
            yield RunObservation(
                "dead",
                "serious",
                view.label,
                f"{view.label} is gone: nobody listens at its address any more.",
                "It has ended or was killed: its own output says which.",
                is_sudden=True,
            )
        elif view.state in ("dead", "failed"):
            how = "was killed" if view.state == "dead" else "has failed"
            yield RunObservation(
                "dead",
                "serious",
                view.label,
                f"{view.label} {how}.",
                "Read the end of its log. tensorfleet run --restart N starts failed tasks again.",
                is_sudden=True,
            )


def restarted(fleet: FleetView) -> Iterator[RunObservation]:
    """A task was started again a short time ago."""
    for view in fleet.tasks.values():
        if view.restarts and view.is_running and (view.uptime or 0.0) < _RESTARTED_SECONDS:
            times = "" if view.restarts == 1 else f", {view.restarts} times in all"
            yield RunObservation(
                "restarted",
                "warning",
                view.label,
                f"{view.label} was restarted {view.uptime or 0.0:.0f} s ago{times}.",
                "Read the end of its former life in its log.",
                is_sudden=True,
            )


def memory_growth(fleet: FleetView) -> Iterator[RunObservation]:
    """A task takes more and more memory."""
    for view, rates in rates_in(fleet):
        memory = rates.newest.process.memory_bytes
        if (view.uptime or 0.0) < _RESTARTED_SECONDS or view.rates is None:
            continue  # starting takes memory
        growth = min(rates.memory_growth, view.rates.memory_growth)
        if growth >= max(_MIN_GROWTH_BYTES, _GROWTH_SHARE * memory):
            yield RunObservation(
                "memory_growth",
                "warning",
                view.label,
                f"The memory of {view.label} grows by {shown_bytes(growth)} per second; it has {shown_bytes(memory)}.",
                "Ops that are made inside the training loop are a frequent reason: call graph.finalize() before it.",
            )


#: In the order in which they are looked at.
RULES: tuple[_Rule, ...] = (
    no_answer,
    restarted,
    hot_server,
    straggler,
    stuck_worker,
    waits_for_input,
    waits_for_others,
    stale_gradients,
    whole_reads,
    busy_server,
    queue_waits,
    memory_growth,
)
