"""Queues that give strings, numbers or rows of tensors again and again: `tf.train.string_input_producer` & co."""

from __future__ import annotations

from collections.abc import Sequence

from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.queue_runner import QueueRunner, add_queue_runner
from tensorfleet.api.variables.base import Variable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import ShapeLike, TensorLike
from tensorfleet.graph.apply import constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, name_scope
from tensorfleet.graph.sparse_tensor import convert_to_tensor_or_sparse_tensor
from tensorfleet.ops.array.basic import identity
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.array.constructors import range_
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.shape import size
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import greater
from tensorfleet.ops.random.ops import random_shuffle
from tensorfleet.ops.state.queues import FIFOQueue, QueueBase


@export("train.limit_epochs")
def limit_epochs(tensor: Tensor, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """`tensor`, which can be read `num_epochs` times and then raises `tf.errors.OutOfRangeError`.

    The count is a local variable: run `tf.local_variables_initializer()` first.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        zero = constant(0, dtypes.int64)
        epochs = Variable(zero, name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        with control_dependencies([epochs.count_up_to(num_epochs)]):
            limited: Tensor = identity(tensor, name=scope)
        return limited


@export("train.input_producer")
def input_producer(
    input_tensor: TensorLike,
    element_shape: ShapeLike = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:
    """A queue with the rows of `input_tensor`, over and over; its runner joins `QUEUE_RUNNERS`."""
    with name_scope(name, "input_producer", [input_tensor]):
        rows = to_tensor(input_tensor, name="input_tensor")
        element = rows.shape[1:].merge_with(element_shape)
        if not element.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype.base_dtype], [element], shared_name=shared_name, name=name)  # type: ignore[arg-type]
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            scalar(summary_name, cast(queue.size(), dtypes.float32) * (1.0 / capacity))
        return queue


@export("train.string_input_producer")
def string_input_producer(
    string_tensor: TensorLike,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:
    """A queue with the strings of a vector (file names, mostly), over and over."""
    empty = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, Tensor) and hasattr(string_tensor, "__len__") and not len(string_tensor):
        raise ValueError(empty)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = to_tensor(string_tensor, dtypes.string)
        # Checked at run time, since a tensor of file names may come out of a glob that found nothing.
        with control_dependencies([Assert(greater(size(strings), 0), [empty])]):
            strings = identity(strings)
        summary = f"fraction_of_{capacity}_full"
        options = (num_epochs, shuffle, seed, capacity, shared_name, summary, scope, cancel_op)
        return input_producer(strings, [], *options)


@export("train.range_input_producer")
def range_input_producer(
    limit: TensorLike,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """A queue with the numbers from 0 to `limit` - 1, over and over."""
    with name_scope(name, "input_producer", [limit]) as scope:
        numbers = range_(limit)
        summary = f"fraction_of_{capacity}_full"
        return input_producer(numbers, [], num_epochs, shuffle, seed, capacity, shared_name, summary, scope)


@export("train.slice_input_producer")
def slice_input_producer(
    tensor_list: Sequence[TensorLike],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each tensor in `tensor_list`, the same for all; another at each run."""
    with name_scope(name, "input_producer", tensor_list):
        tensors = [convert_to_tensor_or_sparse_tensor(t) for t in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        count = shape_of(tensors[0])[0]
        queue = range_input_producer(count, num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [gather(t, index) for t in tensors]
