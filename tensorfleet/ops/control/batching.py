"""`tf.nondifferentiable_batch_function`: calls of several steps computed together, as one batch."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.kernels import raise_now
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import UNKNOWN
from tensorfleet.ops.control.function_calls import call_body, called_body

#: The arguments or the results of a call.
Call: TypeAlias = list[Array]
#: Computes several calls: gives the results of each.
Run: TypeAlias = Callable[[list[Call]], list[Call]]


class _Batch:
    """Calls that are computed together, by the thread of the first."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.rows = 0
        self.full = threading.Event()
        self.done = threading.Event()
        self.results: list[Call] = []
        self.error: BaseException | None = None


class _BatchQueue:
    """The batches of one operation: the open one, and those that are being computed."""

    def __init__(self, max_rows: int, threads: int, max_enqueued: int) -> None:
        self._max_rows, self._max_enqueued = max_rows, max_enqueued
        self._lock = threading.Lock()
        self._computing = threading.Semaphore(threads)
        self._open: _Batch | None = None
        self._waiting = 0

    def join(self, call: Call, rows: int) -> tuple[_Batch, int, bool]:
        """A batch with room, the place in it, and whether this call opened it."""
        with self._lock:
            batch = self._open
            if batch is not None and batch.rows + rows > self._max_rows:
                batch.full.set()
                batch = None
            first = batch is None
            if batch is None:
                if self._waiting >= self._max_enqueued:
                    raise errors.UnavailableError(
                        None,
                        None,
                        "The batch scheduling queue to which this task was submitted is full: try again later.",
                    )
                self._waiting += 1
                batch = self._open = _Batch()
            batch.calls.append(call)
            batch.rows += rows
            if batch.rows == self._max_rows:
                batch.full.set()
            return batch, len(batch.calls) - 1, first

    def compute(self, batch: _Batch, timeout: float, run: Run) -> None:
        """Waits for other calls, closes a batch and computes it."""
        batch.full.wait(timeout)
        with self._lock:
            if self._open is batch:
                self._open = None
        with self._computing:
            with self._lock:
                self._waiting -= 1
            try:
                batch.results = run(batch.calls)
            except BaseException as e:
                batch.error = e
            batch.done.set()


def _shapes(op: Operation) -> list[TensorShape]:
    return [UNKNOWN] * len(op._outputs)


@op(
    "BatchFunction",
    "in_tensors: list(Tin), captured_tensors: list(Tcaptured) -> out_tensors: list(Tout)",
    "f: func; num_batch_threads: int; max_batch_size: int; batch_timeout_micros: int; max_enqueued_batches: int = 10; "
    "allowed_batch_sizes: list(int) = []; container: string = ''; shared_name: string = ''; "
    "batching_queue: string = ''; low_priority_max_batch_size: int = 0; low_priority_batch_timeout_micros: int = 0; "
    "low_priority_allowed_batch_sizes: list(int) = []; low_priority_max_enqueued_batches: int = 0; "
    "mixed_priority_policy: string(low_priority_padding_with_max_batch_size | "
    "low_priority_padding_with_next_allowed_batch_size | priority_isolation | priority_merge) = "
    "'low_priority_padding_with_max_batch_size'; "
    "batch_padding_policy: string(PAD_UP | BATCH_DOWN | MINIMIZE_TPU_COST_PER_REQUEST) = 'PAD_UP'; "
    "Tin: list(type) >= 1; Tcaptured: list(type); Tout: list(type) >= 1; enable_large_batch_splitting: bool = false",
    shape=_shapes,
    host=True,
    blocks=True,
    stateful=True,
)
def _batch_function(
    ctx: HostContext,
    inputs: list[Array],
    captured: list[Array],
    *,
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    max_enqueued_batches: int,
    allowed_batch_sizes: list[int],
) -> tuple[Array, ...]:
    sizes = [*allowed_batch_sizes]
    _check_sizes(sizes, max_batch_size)
    call = [np.asarray(value) for value in inputs]
    rows = _rows(call, max_batch_size)

    def make() -> _BatchQueue:
        return _BatchQueue(max_batch_size, num_batch_threads, max_enqueued_batches)

    queue = ctx.resources.get("", "batches", ctx.op.name, make)
    batch, place, first = queue.join(call, rows)
    if first:
        body = called_body(ctx.op, ctx.op._attrs["f"])

        def run(calls: list[Call]) -> list[Call]:
            return _computed(calls, sizes, lambda args: call_body(np, body, [*args, *captured], raise_now))

        queue.compute(batch, batch_timeout_micros / 1e6, run)
    else:
        ctx.step.wait(batch.done, "for the batch that the call is part of")
    if batch.error is not None:
        raise batch.error
    return tuple(batch.results[place])


def _check_sizes(sizes: list[int], max_batch_size: int) -> None:
    if any(a >= b for a, b in itertools.pairwise(sizes)):
        raise errors.invalid("allowed_batch_sizes entries must be monotonically increasing")
    if sizes and sizes[-1] != max_batch_size:
        raise errors.invalid("final entry in allowed_batch_sizes must equal max_batch_size")


def _rows(call: Call, max_batch_size: int) -> int:
    if any(value.ndim == 0 for value in call):
        raise errors.invalid("Batching input tensors must have at least one dimension")
    if len({len(value) for value in call}) > 1:
        raise errors.invalid(
            "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size"
        )
    if len(call[0]) > max_batch_size:
        text = f"Task size {len(call[0])} is larger than maximum input batch size {max_batch_size}"
        raise errors.invalid(text)
    return len(call[0])


def _computed(calls: list[Call], sizes: list[int], run: Callable[[Call], tuple[Array, ...]]) -> list[Call]:
    """The results of each call. Copies of the first row fill the batch up to a size that is allowed."""
    counts = [len(call[0]) for call in calls]
    total = sum(counts)
    wanted = sizes[bisect.bisect_left(sizes, total)] if sizes else total
    joined = []
    for parts in zip(*calls, strict=True):
        whole = np.concatenate(parts)
        joined.append(
            np.concatenate([whole, np.repeat(whole[:1], wanted - total, 0)]) if wanted > total else whole
        )
    results = [np.asarray(value) for value in run(joined)]
    for value in results:
        if value.ndim == 0 or len(value) != wanted:
            raise errors.FailedPreconditionError(
                None,
                None,
                "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input "
                "tensors",
            )
    ends = np.cumsum(counts)
    split = [np.split(value[:total], ends[:-1]) for value in results]
    return [[parts[i] for parts in split] for i in range(len(calls))]


not_differentiable("BatchFunction")
