"""Batches of elements that are alike: `tf.contrib.training.bucket` and `bucket_by_sequence_length`.

Each bucket is a queue; full batches of all buckets go into one more queue, from which they are taken.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.input_elements import (
    Element,
    Elements,
    as_list,
    as_original_type,
    choose,
    restored,
)
from tensorfleet.api.train.queue_runner import QueueRunner, add_queue_runner
from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import ShapeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.basic import group, no_op
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.state.queues import FIFOQueue, PaddingFIFOQueue, QueueBase

_END_OF_INPUT = (errors.OutOfRangeError, errors.CancelledError)


@export("contrib.training.bucket")
def bucket(
    tensors: Element,
    which_bucket: TensorLike,
    batch_size: int | Tensor | Sequence[int],
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[ShapeLike] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: TensorLike = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of elements that came with the same number in `which_bucket`; this number, and the batch.

    `batch_size` and `bucket_capacities` may be lists with one entry for each bucket. Threads that queue runners
    start fill the buckets. `dynamic_pad` pads the elements of a batch to the longest of it.
    """
    sizes = list(batch_size) if isinstance(batch_size, (list, tuple)) else [batch_size] * num_buckets
    room = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    for given, what in ((sizes, "batch_size"), (room, "bucket_capacities")):
        if len(given) != num_buckets:
            raise ValueError(
                f"The list {what} ({given}) must have exactly num_buckets ({num_buckets}) elements."
            )
    listed = as_list(tensors)
    with name_scope(name, "bucket", listed):
        elements = Elements([listed], keep_input, False, shapes)
        which = to_tensor(which_bucket, dtypes.int32)
        kind: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queues = [
            kind(
                n,
                elements.types,
                elements.shapes,
                shared_name=shared_name and f"{shared_name}_{i}",
                name="queue",
            )
            for i, n in enumerate(room)
        ]
        _fill(queues, elements, which, num_threads)
        done = FIFOQueue(capacity, [dtypes.int32, *elements.types], shared_name=shared_name, name="top_queue")
        _collect(queues, done, sizes, allow_smaller_final_batch)
        scalar(f"fraction_of_{capacity}_full", cast(done.size(), dtypes.float32) * (1.0 / capacity))
        number, *batch = done.dequeue(name="dequeue_top")
        number.set_shape([])
        known = not allow_smaller_final_batch and all(n == sizes[0] for n in sizes)
        first = [sizes[0] if known and isinstance(sizes[0], int) else None]
        for tensor, shape in zip(batch, elements.shapes, strict=True):
            tensor.set_shape(TensorShape(first).concatenate(as_shape(shape)))
        return number, as_original_type(tensors, restored(batch, elements.infos))


def _fill(queues: list[QueueBase], elements: Elements, which: Tensor, threads: int) -> None:
    """Adds the runner that puts each element into its bucket."""
    (element,) = elements.lists

    def put() -> Operation:
        enqueues = [functools.partial(q.enqueue, element) for q in queues]
        return group(*(choose(apply("Equal", which, i), e, no_op) for i, e in enumerate(enqueues)))

    enqueue = choose(elements.keep, put, no_op)
    close = group(*(q.close() for q in queues))
    cancel = group(*(q.close(cancel_pending_enqueues=True) for q in queues))
    add_queue_runner(QueueRunner(queues[0], [enqueue] * threads, close, cancel, _END_OF_INPUT))


def _collect(queues: list[QueueBase], done: FIFOQueue, sizes: list[Any], smaller: bool) -> None:
    """Adds the runner that takes batches out of the buckets, a thread for each bucket."""
    ops = []
    for i, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        taken = (queue.dequeue_up_to if smaller else queue.dequeue_many)(size, name=f"dequeue_{i}")
        ops.append(done.enqueue([to_tensor(i), *(taken if isinstance(taken, list) else [taken])]))
    add_queue_runner(QueueRunner(done, ops, queue_closed_exception_types=_END_OF_INPUT))


@export("contrib.training.bucket_by_sequence_length")
def bucket_by_sequence_length(
    input_length: TensorLike,
    tensors: Element,
    batch_size: int | Tensor | Sequence[int],
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[ShapeLike] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: TensorLike = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of elements of about the same length; the lengths, and the batch.

    A bucket holds the lengths from one of `bucket_boundaries` up to, but not including, the next.
    """
    _check_boundaries(bucket_boundaries)
    count = len(bucket_boundaries) + 1
    listed = as_list(tensors)
    with name_scope(name, "bucket_by_sequence_length", [input_length, *listed]) as scope:
        length = to_tensor(input_length, dtypes.int32)
        reached = apply("GreaterEqual", length, to_tensor(list(bucket_boundaries), dtypes.int32))
        which = apply("Sum", cast(reached, dtypes.int32), [0])
        _, (lengths, *batch) = bucket(
            [length, *listed],
            which,
            batch_size,
            count,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [(), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
            scope,
        )
    return lengths, as_original_type(tensors, batch)


def _check_boundaries(boundaries: Sequence[int]) -> None:
    if not isinstance(boundaries, (list, tuple)):
        raise TypeError(f"bucket_boundaries must be a list or tuple, but received: {boundaries}")
    if not boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for one, following in zip(boundaries, [*boundaries[1:], None], strict=True):
        if not isinstance(one, int):
            raise TypeError(f"bucket boundaries must be integers, but saw: {one}")
        if following is not None and one >= following:
            raise ValueError(
                f"Buckets must contain sequential increasing lengths, but saw: {one} before {following}"
            )
