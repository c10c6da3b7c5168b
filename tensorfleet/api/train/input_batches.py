"""Batches from single elements: `tf.train.batch`, `tf.train.shuffle_batch` and their relatives.

All of them put elements into a queue, with threads that queue runners start, and take batches out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.input_elements import (
    Element,
    Elements,
    as_given,
    as_list,
    as_lists,
    choose,
    restored,
)
from tensorfleet.api.train.queue_runner import QueueRunner, add_queue_runner
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import ShapeLike, TensorLike
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.basic import no_op
from tensorfleet.ops.array.unique_partition import dynamic_partition
from tensorfleet.ops.math.binary import maximum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.state.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue

# -- the queue ---------------------------------------------------------------------------------------


def _enqueue(queue: QueueBase, elements: list[list[Tensor]], threads: int, many: bool, keep: Tensor) -> None:
    """Adds the runner that fills the queue: `threads` for each of the elements."""
    put = queue.enqueue_many if many else queue.enqueue
    ops: list[Any] = []
    for element in elements:
        # A vector chooses rows of the batch, which a condition cannot: the rows are cut out.
        if keep.shape.rank == 1:
            chosen = cast(keep, dtypes.int32)
            rows = [dynamic_partition(t, chosen, num_partitions=2)[1] for t in element]
            enqueue: Any = put(rows)
        else:
            enqueue = choose(keep, lambda element=element: put(element), no_op)  # type: ignore[misc]
        ops += [enqueue] * threads
    add_queue_runner(QueueRunner(queue, ops))


def _take(queue: QueueBase, batch_size: int | Tensor, smaller: bool, scope: str) -> Any:
    take = queue.dequeue_up_to if smaller else queue.dequeue_many
    return take(batch_size, name=scope)


def _batches(
    default_name: str,
    tensors: Element,
    elements: list[list[Any]],
    keep_input: TensorLike,
    batch_size: int | Tensor,
    num_threads: int,
    capacity: int,
    enqueue_many: bool,
    shapes: Sequence[ShapeLike],
    dynamic_pad: bool,
    allow_smaller_final_batch: bool,
    shared_name: str | None,
    name: str | None,
) -> Any:
    with name_scope(name, default_name, [*(t for e in elements for t in e), keep_input]) as scope:
        batch = Elements(elements, keep_input, enqueue_many, shapes)
        kind: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queue = kind(capacity, batch.types, batch.shapes, shared_name=shared_name)
        _enqueue(queue, batch.lists, num_threads, enqueue_many, batch.keep)
        scalar(f"fraction_of_{capacity}_full", cast(queue.size(), dtypes.float32) * (1.0 / capacity))
        taken = restored(_take(queue, batch_size, allow_smaller_final_batch, scope), batch.infos)
        return as_given(tensors, taken)


def _shuffled_batches(
    default_name: str,
    tensors: Element,
    elements: list[list[Any]],
    keep_input: TensorLike,
    batch_size: int | Tensor,
    num_threads: int,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None,
    enqueue_many: bool,
    shapes: Sequence[ShapeLike],
    allow_smaller_final_batch: bool,
    shared_name: str | None,
    name: str | None,
) -> Any:
    with name_scope(name, default_name, [*(t for e in elements for t in e), keep_input]) as scope:
        if capacity <= min_after_dequeue:
            raise ValueError(
                f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}."
            )
        batch = Elements(elements, keep_input, enqueue_many, shapes)
        queue = RandomShuffleQueue(
            capacity, min_after_dequeue, batch.types, batch.shapes, seed=seed, shared_name=shared_name
        )
        _enqueue(queue, batch.lists, num_threads, enqueue_many, batch.keep)
        room = capacity - min_after_dequeue
        full = cast(maximum(0, queue.size() - min_after_dequeue), dtypes.float32) * (1.0 / room)
        scalar(f"fraction_over_{min_after_dequeue}_of_{room}_full", full)
        taken = restored(_take(queue, batch_size, allow_smaller_final_batch, scope), batch.infos)
        return as_given(tensors, taken)


def _options(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a function below, out of its `locals()`, but for what it makes batches of."""
    return {k: v for k, v in arguments.items() if k not in ("tensors", "tensors_list")}


# -- public functions --------------------------------------------------------------------------------


@export("train.batch")
def batch(
    tensors: Element,
    batch_size: int | Tensor,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[ShapeLike] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of `tensors` (a list or a dictionary), which stand for one element, or, with `enqueue_many`, several.

    `dynamic_pad` pads elements of different sizes; `allow_smaller_final_batch` gives the rest when the input ends.
    """
    return maybe_batch(keep_input=True, **locals())


@export("train.maybe_batch")
def maybe_batch(
    tensors: Element,
    keep_input: TensorLike,
    batch_size: int | Tensor,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[ShapeLike] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `tf.train.batch`, of the elements for which `keep_input` holds."""
    return _batches("batch", tensors, [as_list(tensors)], **_options(locals()))


@export("train.batch_join")
def batch_join(
    tensors_list: Sequence[Element],
    batch_size: int | Tensor,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[ShapeLike] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `tf.train.batch`, from several sources, each read by a thread of its own."""
    return maybe_batch_join(keep_input=True, **locals())


@export("train.maybe_batch_join")
def maybe_batch_join(
    tensors_list: Sequence[Element],
    keep_input: TensorLike,
    batch_size: int | Tensor,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[ShapeLike] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `tf.train.batch_join`, of the elements for which `keep_input` holds."""
    options = _options(locals())
    elements = as_lists(tensors_list)
    return _batches("batch_join", tensors_list[0], elements, num_threads=1, **options)


@export("train.shuffle_batch")
def shuffle_batch(
    tensors: Element,
    batch_size: int | Tensor,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[ShapeLike] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of elements drawn at random from at least `min_after_dequeue` waiting ones."""
    return maybe_shuffle_batch(keep_input=True, **locals())


@export("train.maybe_shuffle_batch")
def maybe_shuffle_batch(
    tensors: Element,
    batch_size: int | Tensor,
    capacity: int,
    min_after_dequeue: int,
    keep_input: TensorLike,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[ShapeLike] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `tf.train.shuffle_batch`, of the elements for which `keep_input` holds."""
    return _shuffled_batches("shuffle_batch", tensors, [as_list(tensors)], **_options(locals()))


@export("train.shuffle_batch_join")
def shuffle_batch_join(
    tensors_list: Sequence[Element],
    batch_size: int | Tensor,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[ShapeLike] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `tf.train.shuffle_batch`, from several sources, each read by a thread of its own."""
    return maybe_shuffle_batch_join(keep_input=True, **locals())


@export("train.maybe_shuffle_batch_join")
def maybe_shuffle_batch_join(
    tensors_list: Sequence[Element],
    batch_size: int | Tensor,
    capacity: int,
    min_after_dequeue: int,
    keep_input: TensorLike,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[ShapeLike] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `tf.train.shuffle_batch_join`, of the elements for which `keep_input` holds."""
    options = _options(locals())
    elements = as_lists(tensors_list)
    return _shuffled_batches("shuffle_batch_join", tensors_list[0], elements, num_threads=1, **options)
