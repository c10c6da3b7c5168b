"""Collective operations: each worker brings a value, and all get the combined value.

Every worker runs its own graph. All operations with the same keys are on the same task, where the workers meet; `_rank`
says which worker brings a value. A worker that has ended, or does not come, is an error for those that wait. Without
`_rank` the devices of one session meet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import errors, logging, settings
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, DTypeLike, ShapeLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op

RANK = "_rank"
# Long enough not to fill the log of a slow step, short enough for somebody who watches it.
_REPORT_EVERY_SECONDS = 30.0
_KEYS = "group_size: int; group_key: int; instance_key: int; "
_HOW = "communication_hint: string = 'auto'; timeout_seconds: float = 0.0"
_WAITS: dict[str, Any] = {"host": True, "stateful": True, "blocks": True}


def default_timeout() -> float:
    """How many seconds a worker waits for the others, unless the operation has a timeout."""
    return settings.COLLECTIVE_SECONDS()


#: The result of the values of all workers, in order. A worker that only receives has None.
Combine: TypeAlias = Callable[[list[Any]], Array]


class Arrival:
    """One worker that waits for the others."""

    def __init__(self, meeting: Meeting, rank: int, value: Array | None, seconds: float) -> None:
        self.meeting, self.rank, self.value = meeting, rank, value
        self.seconds = seconds
        self.result: Array | None = None
        self.error: errors.OpError | None = None
        self._event = threading.Event()

    def set(self) -> None:
        """Ends the waiting."""
        self._event.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the others; says now and then for whom. DeadlineExceededError when they do not come."""
        began = time.monotonic()
        while True:
            waited = time.monotonic() - began
            if timeout is not None and waited >= timeout:
                return False
            if waited >= self.seconds:
                raise errors.DeadlineExceededError(
                    None,
                    None,
                    f"Worker {self.rank} has waited {self.seconds:.0f} s for {self.meeting.missing()} to take part in "
                    "a collective operation. See whether it still runs and makes as many steps, or set "
                    "TENSORFLEET_COLLECTIVE_SECONDS to wait longer.",
                )
            left = [_REPORT_EVERY_SECONDS, self.seconds - waited] + (
                [] if timeout is None else [timeout - waited]
            )
            if self._event.wait(max(min(left), 0.0)):
                return True
            logging.info("Worker %d waits for %s.", self.rank, self.meeting.missing())


class Meeting:
    """Where the workers meet, step after step."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self._lock = threading.Lock()
        self._here: dict[int, Arrival] = {}

    def missing(self) -> str:
        """The workers that have not come yet, in words."""
        absent = [str(r) for r in range(self.size) if r not in self._here]
        return f"worker{'s' * (len(absent) > 1)} {', '.join(absent)} of {self.size}"

    def arrive(self, arrival: Arrival, combine: Combine) -> None:
        """Adds a worker; the last one computes the result."""
        with self._lock:
            before = self._here.get(arrival.rank)
            self._here[arrival.rank] = arrival
            if before is not None:
                before.error = errors.AbortedError(
                    None, None, f"Worker {arrival.rank} takes part in '{self.name}' a second time."
                )
                before.set()
            if len(self._here) < self.size:
                return
            here = [self._here[r] for r in range(self.size)]
            self._here = {}
        try:
            result = combine([a.value for a in here])
        except errors.OpError as error:
            for a in here:
                a.error = error
        else:
            for a in here:
                a.result = result
        for a in here:
            a.set()

    def withdraw(self, arrival: Arrival) -> None:
        """Takes a worker away that does not wait any more."""
        with self._lock:
            if self._here.get(arrival.rank) is arrival:
                del self._here[arrival.rank]

    def left(self, rank: int, owner: str) -> None:
        """A worker's session has ended: those that wait need not wait for it."""
        with self._lock:
            waiting = [a for r, a in self._here.items() if r != rank]
            self._here = {}
        for arrival in waiting:
            arrival.error = errors.UnavailableError(
                None,
                None,
                f"Worker {rank} of {self.size} ({owner}) has ended or was lost while worker {arrival.rank} waited for "
                "it in a collective operation. Start it again, or let all workers make the same number of steps.",
            )
            arrival.set()


class Participant:
    """A session that takes part: a private resource, which is cleared when the session ends."""

    def __init__(self, meeting: Meeting, rank: int, owner: str) -> None:
        self._meeting, self._rank, self._owner = meeting, rank, owner

    def clear(self) -> None:
        """The session has ended."""
        self._meeting.left(self._rank, self._owner)


def _device_index(op: Operation) -> int:
    return DeviceSpec.from_string(op.device).device_index or 0


def _meet(
    ctx: HostContext, value: Array | None, keys: tuple[int, int, int], seconds: float, combine: Combine
) -> Array:
    size, group, instance = keys
    name = f"{group}/{instance}"
    meeting = ctx.resources.get("", "collective", name, lambda: Meeting(name, size))
    rank = int(ctx.op._attrs.get(RANK, _device_index(ctx.op)))
    ctx.private.get("", "collective", name, lambda: Participant(meeting, rank, ctx.private.owner))
    arrival = Arrival(meeting, rank, value, seconds or default_timeout())
    meeting.arrive(arrival, combine)
    try:
        ctx.step.wait(arrival, f"for {meeting.missing()}")
    finally:
        meeting.withdraw(arrival)
    if arrival.error is not None:
        raise arrival.error
    assert arrival.result is not None
    return arrival.result


_MERGES = {b"Add": np.add, b"Mul": np.multiply, b"Min": np.minimum, b"Max": np.maximum}


@op(
    "CollectiveReduce",
    "input: T -> data: T",
    "T: number; " + _KEYS + "merge_op: string(Min|Max|Mul|Add); final_op: string(Id|Div); "
    "subdiv_offsets: list(int); wait_for: list(int) = []; " + _HOW,
    shape=lambda op: op._inputs[0].shape,
    **_WAITS,
)
def _reduce(
    ctx: HostContext,
    value: Array,
    *,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: bytes,
    final_op: bytes,
    timeout_seconds: float,
    **_: Any,
) -> Array:
    def combine(values: list[Array]) -> Array:
        shapes = {np.shape(v) for v in values}
        if len(shapes) > 1:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Workers bring values of different shapes to a collective operation: {sorted(shapes)}.",
            )
        total = np.array(values[0], copy=True)
        for v in values[1:]:  # in the order of the workers, so that all sums round alike
            total = _MERGES[merge_op](total, v)
        return (total / group_size).astype(total.dtype) if final_op == b"Div" else total

    keys = (group_size, group_key, instance_key)
    return _meet(ctx, np.asarray(value), keys, timeout_seconds, combine)


_SHAPED = "T: type; " + _KEYS + "shape: shape; " + _HOW


@op("CollectiveBcastSend", "input: T -> data: T", _SHAPED, shape=lambda op: op._attrs["shape"], **_WAITS)
def _send(
    ctx: HostContext,
    value: Array,
    *,
    group_size: int,
    group_key: int,
    instance_key: int,
    timeout_seconds: float,
    **_: Any,
) -> Array:
    return _meet(ctx, value, (group_size, group_key, instance_key), timeout_seconds, _the_one_sent)


@op("CollectiveBcastRecv", "-> data: T", _SHAPED, shape=lambda op: op._attrs["shape"], **_WAITS)
def _receive(
    ctx: HostContext, *, group_size: int, group_key: int, instance_key: int, timeout_seconds: float, **_: Any
) -> Array:
    return _meet(ctx, None, (group_size, group_key, instance_key), timeout_seconds, _the_one_sent)


@op(
    "CollectiveGather",
    "input: T -> data: T",
    "T: number; " + _KEYS + "shape: shape; " + _HOW,
    shape=lambda op: op._attrs["shape"],
    **_WAITS,
)
def _gather(
    ctx: HostContext,
    value: Array,
    *,
    group_size: int,
    group_key: int,
    instance_key: int,
    timeout_seconds: float,
    **_: Any,
) -> Array:
    def combine(values: list[Array]) -> Array:
        shapes = [np.shape(v) for v in values]
        if len(set(shapes)) > 1:
            raise errors.InternalError(
                None, None, f"Inconsistent output shapes: workers bring {shapes} to be gathered."
            )
        return np.concatenate(values)

    return _meet(ctx, np.asarray(value), (group_size, group_key, instance_key), timeout_seconds, combine)


def _the_one_sent(values: list[Array | None]) -> Array:
    return next(v for v in values if v is not None)


not_differentiable("CollectiveReduce", "CollectiveGather", "CollectiveBcastSend", "CollectiveBcastRecv")

_HERE = "python.ops.collective_ops."


def _check(what: str, group_size: int, device: str | None) -> None:
    if device is not None and not device:
        raise ValueError("Device assignment required for collective ops")
    if group_size <= 1:
        raise ValueError(f"Parameter group_size to {what} must be at least 2.")


@export(_HERE + "all_reduce")
def all_reduce(
    t: Tensor,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: str,
    final_op: str,
    subdiv_offsets: Iterable[int] = (0,),
    communication_hint: str = "auto",
) -> Tensor:
    """The combined values of all devices of a group. Each device has its own operation, with the same keys."""
    _check("all_reduce", group_size, t.device)
    return apply(
        "CollectiveReduce",
        t,
        group_size=group_size,
        group_key=group_key,
        instance_key=instance_key,
        merge_op=merge_op,
        final_op=final_op,
        subdiv_offsets=list(subdiv_offsets),
        communication_hint=communication_hint.lower(),
    )


@export(_HERE + "all_gather")
def all_gather(
    t: Tensor, group_size: int, group_key: int, instance_key: int, communication_hint: str = "auto"
) -> Tensor:
    """The values of all devices of a group, one behind the other."""
    _check("all_gather", group_size, t.device)
    rows, *rest = t.shape.as_list()
    whole = [None if rows is None else rows * group_size, *rest]
    keys: dict[str, Any] = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    return apply("CollectiveGather", t, shape=whole, communication_hint=communication_hint.lower(), **keys)


@export(_HERE + "broadcast_send")
def broadcast_send(
    t: Tensor,
    shape: ShapeLike,
    dtype: DTypeLike,
    group_size: int,
    group_key: int,
    instance_key: int,
    **how: Any,
) -> Tensor:
    """Gives a value to all devices of a group."""
    _check("broadcast_send", group_size, t.device)
    keys: dict[str, Any] = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    return apply("CollectiveBcastSend", t, shape=shape, **keys, **how)


@export(_HERE + "broadcast_recv")
def broadcast_recv(
    shape: ShapeLike, dtype: DTypeLike, group_size: int, group_key: int, instance_key: int, **how: Any
) -> Tensor:
    """The value that one device of a group gives to all."""
    _check("broadcast_recv", group_size, None)
    keys: dict[str, Any] = {"group_size": group_size, "group_key": group_key, "instance_key": instance_key}
    return apply("CollectiveBcastRecv", T=dtype, shape=shape, **keys, **how)
