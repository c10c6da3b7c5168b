"""The stand-in, in one task's part of a graph, for an operation of another task whose values arrive from there."""

from __future__ import annotations

from typing import NoReturn

from tensorfleet.base import errors
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.registry import not_differentiable, op


@op(
    "FleetArrival",
    "-> values: list(types)",
    "types: list(type); shapes: list(shape)",
    shape=lambda op: list(op._attrs["shapes"]),
    host=True,
    stateful=True,
)
def _arrival(ctx: HostContext) -> NoReturn:
    raise errors.InternalError(None, None, "A value of another task was used before it was sent.")


not_differentiable("FleetArrival")
