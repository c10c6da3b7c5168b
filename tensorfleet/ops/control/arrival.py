"""What stands, in one task's part of a graph, for an operation of another task: its values arrive from there."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import errors
from tensorfleet.graph.registry import not_differentiable, op


@op(
    "FleetArrival",
    "-> values: list(types)",
    "types: list(type); shapes: list(shape)",
    shape=lambda op: list(op._attrs["shapes"]),
    host=True,
    stateful=True,
)
def _arrival(ctx: Any) -> Any:
    raise errors.InternalError(None, None, "A value of another task was used before it was sent.")


not_differentiable("FleetArrival")
