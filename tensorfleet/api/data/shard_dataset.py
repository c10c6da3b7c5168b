"""`tf.fleet.shard_dataset`: workers that come and go share an input, shard by shard.

A server deals the shards (state/shard_deals.py). Each iterator has a session of its own for asking it: when the process
dies, the session ends, and the server deals its shard again.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.calls import DatasetFunction
from tensorfleet.api.data.dataset import Dataset
from tensorfleet.api.data.dataset_ops import NOTE, dataset_op
from tensorfleet.api.data.functions import traced
from tensorfleet.api.data.nodes import DatasetRun, Node, StartNode, cannot_save
from tensorfleet.api.data.structure import ELEMENTS, Leaf
from tensorfleet.base import dtypes, errors, logging
from tensorfleet.base.naming import export
from tensorfleet.base.protos import RunOptions
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.functions import find_function
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import device as device_scope
from tensorfleet.ops.array.basic import placeholder
from tensorfleet.session.session import Session
from tensorfleet.state.shard_deals import DEALT, OVER, Shard

if TYPE_CHECKING:
    from tensorfleet.api.data.blocks import Block
    from tensorfleet.runtime.scheduling.host_ops import StepHostContext
    from tensorfleet.runtime.scheduling.step import ExecutionContext

_ASK_MS = 60_000
_GIVE_BACK_MS = 2_000  # a process that ends must not hang because a server is gone
_POLL_SECONDS = 0.2
_FINISHED = -1


@export("fleet.shard_dataset")
def shard_dataset(
    dataset: Dataset | Callable[[Tensor], Dataset],
    num_shards: int,
    target: str = "",
    num_epochs: int | None = None,
    name: str = "input",
    device: str | None = None,
    seed: int | None = None,
    at_death: str = "repeat",
    wait_seconds: float = 60.0,
) -> Dataset:
    """A dataset whose shards are dealt to the workers that are there, each to one of them in an epoch.

    `dataset` is a function from the number of a shard, an int64 scalar, to its dataset, such as one of a file; or a whole
    dataset, of which shard i is `dataset.shard(num_shards, i)`. A shard must give the same elements in the same order each
    time. Apply this last, after `batch` and `prefetch`: an element counts as used when the next one is asked for.

    Every worker makes it with the same arguments and, as `target`, its own server. A server deals the shards: the one of
    `device`, if that is not given the first parameter server. `num_epochs` None is without end; do not `repeat` the result.
    With `seed` the shards of each epoch come in another order.

    While no worker dies, each element is used once in an epoch, whoever joins, and whoever leaves by closing its session.
    The shard of a worker that dies is dealt again from where that worker got it: its elements are used at least once. With
    at_death="skip" what is left of it is skipped: its elements are used at most once.

    At the end of the last epoch a worker waits while others have shards, because they may die: until nobody has finished
    one for `wait_seconds`. Workers that train in step with each other (`SyncReplicasOptimizer`) should pass 0.
    """
    if at_death not in ("repeat", "skip"):
        raise ValueError(f'at_death must be "repeat" or "skip", not {at_death!r}.')
    for what, value in (("num_shards", num_shards), ("num_epochs", 1 if num_epochs is None else num_epochs)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{what} must be a whole number of 1 or more, not {value!r}.")
    make = dataset if callable(dataset) else lambda shard: dataset.shard(num_shards, shard)
    function = traced(make, "shard_dataset", Leaf(dtypes.int64, TensorShape([])))
    if not isinstance(function.result, Dataset):
        raise TypeError(f"`dataset` must return a `Dataset` object. Got {type(function.result)}.")
    structure: Any = function.structure
    deal = {
        "target": target,
        "device": device if device is not None else "/job:ps/task:0" if target else "",
        "wait_seconds": float(wait_seconds),
        "op": {
            "shared_name": name,
            "shards": int(num_shards),
            "epochs": int(num_epochs or 0),
            "seed": -1 if seed is None else int(seed),
            "again": at_death == "repeat",
        },
    }
    return Dataset._make(
        "FleetShardDataset", structure.kind, function.captured, f=function.name, deal=json.dumps(deal)
    )


@dataset_op(
    "FleetShardDataset",
    "other_arguments: list(Targuments)",
    f"f: func; Targuments: list(type); deal: string; {ELEMENTS}{NOTE}",
    stateful=True,
)
def _shard_dataset(ctx: StepHostContext, captured: list[Any], *, f: str, deal: bytes) -> Node:
    function = DatasetFunction(find_function(ctx.op.graph, f), captured)
    return StartNode(lambda step: ShardsRun(function, ShardReader(json.loads(deal))))


class ShardReader:
    """One iterator's way to the server that deals the shards."""

    def __init__(self, deal: dict[str, Any]) -> None:
        self.name: str = deal["op"]["shared_name"]
        self._wait_seconds: float = deal["wait_seconds"]
        reader = uuid.uuid4().hex
        with Graph().as_default() as graph, device_scope(deal["device"] or None):
            self._read = placeholder(dtypes.int64, [])
            self._shard = apply("FleetNextShard", reader, self._read, **deal["op"])
        self._session = Session(deal["target"], graph=graph)

    def next(self, step: ExecutionContext) -> Shard | None:
        """The next shard, after this reader has finished the one it had; None when there are no more."""
        finished, since = -1, time.monotonic()
        while True:
            outcome, epoch, number, position, done = self._ask(_FINISHED, _ASK_MS)
            if outcome == DEALT:
                return Shard(epoch, number, position)
            if done != finished:
                finished, since = done, time.monotonic()
            if outcome == OVER:
                return None
            if time.monotonic() - since >= self._wait_seconds:
                logging.warning(
                    "Input '%s' ends here while other workers have shards: none was finished for %g s. If such a worker "
                    "dies, another that comes later reads its shard.",
                    self.name,
                    self._wait_seconds,
                )
                return None
            _pause(step, f"for the last shards of input '{self.name}', which other workers have")

    def close(self, position: int | None) -> None:
        """Gives the shard back after so many of its elements, if there is one."""
        if position is not None:
            with contextlib.suppress(errors.OpError, RuntimeError):  # it is dealt again from its start
                self._ask(position, _GIVE_BACK_MS)
        self._session.close()

    def _ask(self, read: int, timeout_ms: int) -> list[int]:
        options = RunOptions(timeout_in_ms=timeout_ms)
        answer: list[int] = self._session.run(self._shard, {self._read: read}, options=options).tolist()
        return answer


class ShardsRun(DatasetRun):
    """The elements of the shards that one worker gets."""

    def __init__(self, function: DatasetFunction, reader: ShardReader) -> None:
        self._function, self._reader = function, reader
        self._run: DatasetRun | None = None
        self._step: ExecutionContext | None = None
        self._read = self._newest = 0  # elements of this shard, and how many of them were given last

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements, of one shard."""
        self._step = step
        while True:
            if self._run is None and not self._begin(step):
                return None
            assert self._run is not None
            block = self._run.next(n, step)
            if block is not None:
                self._read, self._newest = self._read + block.size, block.size
                return block
            self._run.close()
            self._run = None

    def _begin(self, step: ExecutionContext) -> bool:
        shard = self._reader.next(step)
        if shard is None:
            return False
        (node,) = self._function.call([np.int64(shard.number)], step)
        self._run, self._read, self._newest = node.start(step), 0, 0
        while self._read < shard.position:
            block = self._run.next(shard.position - self._read, step)
            if block is None:
                break
            self._read += block.size
        return True

    def close(self) -> None:
        """Leaves what is left of the shard to others."""
        position = None
        if self._run is not None:
            self._run.close()
            # The step that got the last elements may have failed, unless the session ended in good order.
            used = self._step is not None and self._step.private.finished
            position = self._read if used else self._read - self._newest
        self._run = None
        self._reader.close(position)

    def save(self) -> dict[str, Any]:
        """Other workers go on with the shards."""
        raise cannot_save("a dataset that workers share shard by shard")


def _pause(step: ExecutionContext, what: str) -> None:
    """Waits a moment, which the end of the step ends."""
    over = threading.Event()
    timer = threading.Timer(_POLL_SECONDS, over.set)
    timer.name, timer.daemon = "tensorfleet-shards", True
    timer.start()
    try:
        step.wait(over, what)
    finally:
        timer.cancel()
