"""Waiting for all replicas of a synchronous training that are there: `SyncReplicasOptimizer` where they come and go."""

from __future__ import annotations

import numpy as np

from tensorfleet.base import errors
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.state.queue_ops import complete
from tensorfleet.state.queues import Queue


@op(
    "FleetAwaitReplicas",
    "handle: resource -> count: int32",
    shape=lambda op: SCALAR,
    host=True,
    blocks=True,
    stateful=True,
)
def _await(ctx: HostContext, queue: Queue) -> np.int32:
    roster = queue.roster
    if roster is None or not roster.follows:
        raise errors.invalid(f"Queue '{queue.name}' is not a queue of tokens for replicas that come and go.")
    what = f"for the gradients of all replicas that take tokens of queue '{queue.name}'"
    return np.int32(roster.await_all(ctx, lambda attempt: complete(ctx, roster.rounds, attempt, what)))


not_differentiable("FleetAwaitReplicas")


def await_replicas(handle: Tensor) -> Tensor:
    """The number of replicas that wait for a token of a queue, once all that are there do."""
    count: Tensor = apply("FleetAwaitReplicas", handle)
    return count
