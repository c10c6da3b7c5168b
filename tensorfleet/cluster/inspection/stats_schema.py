# ruff: noqa: RUF009 - the function gives each field its meaning
"""What a task tells about its load: topic `stats`, as JSON with these fields.

Counts and seconds are sums since the task began, so whoever asks twice computes rates. docs/statistics.md is made from
this file by `tools/make_statistics.py`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

VERSION = 1
MAX_VARIABLES = 500


def _told(meaning: str, default: Any = dataclasses.MISSING) -> Any:
    """A field with its meaning."""
    if default is dataclasses.MISSING:
        return field(metadata={"meaning": meaning})
    if isinstance(default, (list, dict)):
        return field(default_factory=type(default), metadata={"meaning": meaning})
    return field(default=default, metadata={"meaning": meaning})


@dataclass(slots=True)
class Process:
    """The process of the task."""

    cpu_seconds: float = _told("Processor time, of all its threads, in user and system mode.", 0.0)
    memory_bytes: int = _told("Memory that it has in RAM (resident set size).", 0)
    cores: int = _told("Processor cores that it may use.", 1)
    threads: int = _told("Threads it has, those of libraries included.", 0)


@dataclass(slots=True)
class Parts:
    """Where the time of steps goes, in seconds.

    Steps of 5 ms and more are all measured. Of shorter ones one is measured after 100 ms of steps, and stands for those
    before it; the last 100 ms may not be divided yet.
    """

    input: float = _told(
        "Conversion of feeds, iterators, readers, and dequeues from queues of anything but single integers or flags.",
        0.0,
    )
    pull: float = _told("Reads of variables of other tasks.", 0.0)
    compute: float = _told("All the rest, most of it computing in this task.", 0.0)
    push: float = _told(
        "Stages of other tasks that update variables, accumulators or queues, with the time they compute.",
        0.0,
    )
    wait: float = _told(
        "Waiting for others: token queues (single integers or flags), accumulators, barriers, collectives.",
        0.0,
    )


@dataclass(slots=True)
class Steps:
    """The steps of this task: calls of `Session.run` and of callables. Queue runners do not count."""

    count: int = _told("Steps that have ended, well or not.", 0)
    failed: int = _told(
        "Steps that ended with an error. The end of the input (OutOfRangeError) is not one.", 0
    )
    seconds: float = _told("Time spent in steps. Steps in several threads at the same time count each.", 0.0)
    global_step: int | None = _told(
        "The global step: the variable `global_step` if it is in this task, else what a hook or a summary saw last.",
        None,
    )
    parts: Parts = field(
        default_factory=Parts,
        metadata={"meaning": "The seconds, divided by what was done. Their sum is `seconds`."},
    )


@dataclass(slots=True)
class PeerLoad:
    """What this task has asked of another one."""

    task: str = _told("The other task, such as ps/0.")
    requests: int = _told(
        "Messages sent to it, each with an answer. Questions whether it is alive do not count.", 0
    )
    sent_bytes: int = _told("Bytes sent to it, with those of tensors that go through shared memory.", 0)
    received_bytes: int = _told(
        "Bytes received from it, with those of tensors in shared memory and with `shared_bytes`.", 0
    )
    waited_seconds: float = _told(
        "Time that steps have waited for its answers, measured as `parts` are.", 0.0
    )
    shared_reads: int = _told(
        "Reads of its small variables from shared memory, on the same machine: without a request.", 0
    )
    shared_bytes: int = _told("The bytes of these reads.", 0)


@dataclass(slots=True)
class ServerLoad:
    """What others have asked of this task, by messages.

    Reads from shared memory send none. The load of a server on one machine is what the others tell: the sum of
    `sent_bytes` and `received_bytes` of their `peers` entries for it.
    """

    requests: int = _told(
        "Messages that it has answered. Inspection and questions whether it is alive do not count.", 0
    )
    sent_bytes: int = _told("Bytes of its answers, with those of tensors that go through shared memory.", 0)
    received_bytes: int = _told("Bytes of the requests, counted in the same way.", 0)
    busy_seconds: float = _told(
        "Time spent on running stages. Waiting for queues and other tasks is left out; stages that run at the same "
        "time count each.",
        0.0,
    )
    updates: int = _told("Updates of its variables: the sum of all versions.", 0)
    clients: int = _told("Processes that use this server now.", 0)


@dataclass(slots=True)
class VariableLoad:
    """A variable that lives in this task."""

    name: str = _told("Its name.")
    dtype: str = _told("The type of its elements.")
    shape: list[int] = _told("Its shape; empty for a scalar, and before it is initialized.")
    bytes: int = _told("The size of its value; 0 before it is initialized.")
    version: int = _told("How often it was changed, by any assignment; the initializer is the first.")
    reads: int = _told(
        "Runs of stages that took its value, and gathers of its rows. Reads from shared memory count where they "
        "are made, in `shared_reads` of `peers`."
    )
    updates: int = _told("The same as `version`. Small variables that are kept in one array count together.")
    read_bytes: int = _told("Bytes read: of gathers only the rows.")
    update_bytes: int = _told("Bytes changed: of updates of rows only these.")


@dataclass(slots=True)
class QueueLoad:
    """A queue or accumulator that lives in this task."""

    name: str = _told("Its name.")
    kind: str = _told("FIFOQueue, RandomShuffleQueue, PaddingFIFOQueue, PriorityQueue, or Accumulator.")
    size: int = _told("Elements in it now; of an accumulator gradients.")
    capacity: int | None = _told("Elements it has room for; null without a limit.")
    enqueued: int = _told("Elements put in; of an accumulator gradients applied.")
    dequeued: int = _told("Elements taken out; of an accumulator means taken.")
    enqueue_wait_seconds: float = _told(
        "Time that steps have waited for room. A wait counts when it is over."
    )
    dequeue_wait_seconds: float = _told(
        "Time that steps have waited for elements. A wait counts when it is over."
    )


@dataclass(slots=True)
class Staleness:
    """How old the gradients of one worker were when they were applied.

    A worker tells its own. In asynchronous training it counts the steps that are measured in parts, which are all long
    ones and some of the short ones: the updates of a variable by others between the first read of it and the first update
    of it in the same step, and of several variables the most. It looks at 16 variables of each server at most. Steps that
    fail, that are traced, or that only assign are not counted. With a consistency (`tf.fleet.Optimizer`) the server that
    has the global step counts every gradient of each worker instead. A server with accumulators tells how many gradients
    of each worker it has dropped.
    """

    worker: str = _told("The worker, such as worker/1.")
    counts: dict[str, int] = _told(
        "By staleness (updates by others since the variables were read) the number of gradients.", {}
    )
    dropped: int = _told("Gradients that were too stale, and not applied.", 0)
    scaled: int = _told("Gradients among `counts` that were made smaller because they were stale.", 0)


@dataclass(slots=True)
class UnderWay:
    """A step that is running now, or a stage that others have asked for and that waits."""

    session: str = _told("The session: an identifier.")
    step: int = _told("The number of the step in its session; 0 where it has none.")
    seconds: float = _told("For how long it has been running; of a stage of another task, waiting.")
    waits_for: str | None = _told("What it waits for, in words; null if it computes.", None)


@dataclass(slots=True)
class LastError:
    """The last error of a step or a request in this task."""

    time: float = _told("When, in seconds since 1970.")
    text: str = _told("Its class and message.")


@dataclass(slots=True)
class Stats:
    """The load of one task."""

    version: int = _told("The version of this schema. Fields may be added without a new one.")
    task: str = _told("The task, such as worker/1.")
    incarnation: int = _told("A number for the life of the task: one that was started again has another.")
    time: float = _told("The time of the answer, in seconds since 1970, by the clock of the task.")
    started: float = _told("When the process began, in seconds since 1970.")
    host: str = _told("The name of the machine.")
    pid: int = _told("The number of the process.")
    process: Process = field(default_factory=Process, metadata={"meaning": "Processor, memory and threads."})
    steps: Steps = field(default_factory=Steps, metadata={"meaning": "The steps of this task."})
    peers: list[PeerLoad] = _told("What this task has asked of others.", [])
    server: ServerLoad = field(
        default_factory=ServerLoad, metadata={"meaning": "What others have asked of this task by messages."}
    )
    variables: list[VariableLoad] = _told(
        f"The variables of this task; of more than {MAX_VARIABLES} those with the most traffic. The most traffic first.",
        [],
    )
    variable_count: int = _told("How many variables there are.", 0)
    variable_bytes: int = _told("The bytes of all of them.", 0)
    queues: list[QueueLoad] = _told("The queues and accumulators of this task.", [])
    staleness: list[Staleness] = _told("How stale gradients were, as far as it is counted here.", [])
    scalars: dict[str, tuple[int, float]] = _told(
        "By tag the step and value of the newest scalar summary that this task has written; at most 50 tags. A value that is not finite is null.",
        {},
    )
    under_way: list[UnderWay] = _told("What is running or waiting now; at most 50.", [])
    last_error: LastError | None = _told(
        "The last error of a step or a request; null if there was none.", None
    )


#: every part, for the documentation and the tests
ALL: tuple[type[Any], ...] = (
    Stats,
    Process,
    Steps,
    Parts,
    PeerLoad,
    ServerLoad,
    VariableLoad,
    QueueLoad,
    Staleness,
    UnderWay,
    LastError,
)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a part of the report, for the documentation."""

    name: str
    kind: str
    meaning: str


def fields_of(part: type[Any]) -> list[Field]:
    """The fields of a part, with their meanings."""
    return [Field(f.name, str(f.type), f.metadata["meaning"]) for f in dataclasses.fields(part)]
