"""The operations with which the training steps of all workers ask their gate."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.types import Array
from tensorfleet.fleet.consistency.gate import Gate, GateMember
from tensorfleet.fleet.consistency.text import Schedule, parse_schedule
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.state.queue_ops import shared
from tensorfleet.state.gradient_tallies import GATE_KIND, GATE_MEMBER_KIND

_USES: dict[str, Any] = {"host": True, "stateful": True, "shape": lambda op: SCALAR}
_HANDLE = "handle: resource"


@op(
    "FleetConsistency",
    "-> handle: resource",
    "consistency: string; workers: int >= 1; container: string = ''; shared_name: string = ''",
    **_USES,
)
def _make(
    ctx: HostContext, *, consistency: bytes, workers: int, container: bytes, shared_name: bytes
) -> Gate:
    gate = shared(
        ctx, GATE_KIND, container, shared_name, lambda name: Gate(name, _parsed(consistency), workers)
    )
    if gate.schedule.text.encode() != consistency and gate.schedule != _parsed(consistency):
        raise errors.invalid(
            f"A worker trains with the consistency {consistency.decode()!r}, and the others with "
            f"{gate.schedule.text!r}. Give all workers the same, or reset the servers (tf.Session.reset) before the next "
            "training."
        )
    return gate


def _parsed(consistency: bytes) -> Schedule:
    try:
        return parse_schedule(consistency.decode(errors="replace"))
    except ValueError as error:
        raise errors.invalid(str(error)) from None


def _member(ctx: HostContext, gate: Gate) -> GateMember:
    return ctx.private.get("", GATE_MEMBER_KIND, gate.id, lambda: GateMember(gate, ctx.private))


@op("FleetConsistencySeen", f"{_HANDLE} -> updates: int64", **_USES)
def _seen(ctx: HostContext, gate: Gate) -> np.int64:
    return np.int64(gate.updates())


@op("FleetConsistencyWorkers", f"{_HANDLE} -> workers: int32", **_USES)
def _workers(ctx: HostContext, gate: Gate) -> np.int32:
    return np.int32(gate.workers())


@op(
    "FleetConsistencyJudge",
    f"{_HANDLE}, age: int64, step: int64 -> weight: float, aggregate: bool, workers: int32",
    host=True,
    stateful=True,
    shape=lambda op: [SCALAR, SCALAR, SCALAR],
)
def _judge(ctx: HostContext, gate: Gate, age: Array, step: Array) -> tuple[np.generic, ...]:
    weight, aggregate, workers = gate.judge(_member(ctx, gate), int(age), int(step))
    return np.float32(weight), np.bool_(aggregate), np.int32(workers)


@op("FleetConsistencyArrive", f"{_HANDLE} -> gradients: int32", blocks=True, **_USES)
def _arrive(ctx: HostContext, gate: Gate) -> np.int32:
    return np.int32(gate.arrive(ctx, _member(ctx, gate)))


@op("FleetConsistencyUpdated", f"{_HANDLE} ->", host=True, stateful=True)
def _updated(ctx: HostContext, gate: Gate) -> None:
    gate.updated(_member(ctx, gate))


not_differentiable(
    "FleetConsistency",
    "FleetConsistencySeen",
    "FleetConsistencyWorkers",
    "FleetConsistencyJudge",
    "FleetConsistencyArrive",
)
