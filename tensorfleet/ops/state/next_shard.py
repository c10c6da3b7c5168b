"""Asking the server that deals the shards of an input for the next one: `tf.fleet.shard_dataset`."""

from __future__ import annotations

import time

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import vector_of
from tensorfleet.ops.state.queue_ops import shared
from tensorfleet.state.shard_deals import ShardDealer, ShardDeals

_FINISHED = -1


@op(
    "FleetNextShard",
    "reader: string, read: int64 -> shard: int64",
    "shared_name: string; shards: int; epochs: int = 0; seed: int = -1; again: bool = true; container: string = ''",
    shape=lambda op: vector_of(5),
    host=True,
    stateful=True,
)
def _next_shard(
    ctx: HostContext,
    reader: Array,
    read: Array,
    *,
    shared_name: bytes,
    shards: int,
    epochs: int,
    seed: int,
    again: bool,
    container: bytes,
) -> Array:
    name = shared_name.decode()
    numbers = (shards, epochs, seed, again)
    if shards < 1 or epochs < 0:
        raise errors.invalid(
            f"'{name}' needs at least one shard and no negative number of epochs, not {shards} and {epochs}."
        )
    make = lambda name: ShardDealer(name, ShardDeals(*numbers))  # noqa: E731
    dealer = shared(ctx, "shard dealer", container, shared_name, make)
    if not dealer.matches(*numbers):
        raise errors.invalid(
            f"The input '{name}' is shared with other numbers of shards or epochs, or another seed. Give all readers the "
            "same ones, or another name."
        )
    who = np.asarray(reader).item()
    if int(read) != _FINISHED:
        dealer.give_back(who.decode(), int(read))
        return np.zeros(5, np.int64)
    outcome, shard, finished = dealer.next(who.decode(), ctx.private, time.monotonic())
    return np.array([outcome, *shard, finished], np.int64)


not_differentiable("FleetNextShard")
