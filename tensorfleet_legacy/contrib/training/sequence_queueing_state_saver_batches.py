"""`tf.contrib.training.batch_sequences_with_states`: batches of segments, filled by queue runners."""

from __future__ import annotations

import numbers
from typing import Any

from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.queue_runner import QueueRunner, add_queue_runner
from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export, find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tensorfleet.ops.sparse.tensors_map import (
    add_many_sparse_to_tensors_map,
    take_many_sparse_from_tensors_map,
)
from tensorfleet_legacy.contrib.training.sequence_queueing_state_saver import (
    NextQueuedSequenceBatch,
    SequenceQueueingStateSaver,
)
from tensorfleet_legacy.contrib.training.sequence_queueing_state_saver_checks import (
    assured,
    multiple_of,
    text_of,
)

_PLACE = "contrib.training.python.training.sequence_queueing_state_saver"
# A sparse tensor of a whole sequence travels among the sequences, under this name.
_CONTEXT = "_context_in_seq_"
_MAX_KEY_SUFFIX = 100_000_000


@export("contrib.training.batch_sequences_with_states")
def batch_sequences_with_states(
    input_key: Any,
    input_sequences: dict,
    input_context: dict,
    input_length: Any,
    initial_states: dict,
    num_unroll: int,
    batch_size: Any,
    num_threads: int = 3,
    capacity: int = 1000,
    allow_small_batch: bool = True,
    pad: bool = True,
    make_keys_unique: bool = False,
    make_keys_unique_seed: int | None = None,
    name: str | None = None,
) -> NextQueuedSequenceBatch:
    """Batches of segments of `num_unroll` steps of sequences, with a state that goes from each to the next.

    A `SequenceQueueingStateSaver` with its queue runner. With `pad` the sequences are filled up to a multiple of
    `num_unroll`, and `input_length` may be None. With `make_keys_unique` a random number is put behind the key.
    """
    values = [*input_sequences.values(), *input_context.values(), *initial_states.values()]
    with name_scope(name, "batch_sequences_with_states", values):
        if pad:
            length, sequences = padding(input_sequences, num_unroll)
            input_length = length if input_length is None else input_length
        else:
            sequences = {k: _whole(k, v, num_unroll) for k, v in input_sequences.items()}
        context = dict(input_context)
        _context_out(context, sequences, num_unroll)
        sequences, keys, keepers = _by_number(sequences)
        if make_keys_unique:
            more = find("random_uniform")((), 0, _MAX_KEY_SUFFIX, dtypes.int32, seed=make_keys_unique_seed)
            input_key = text_of(to_tensor(input_key), more)
        saver = SequenceQueueingStateSaver(
            batch_size,
            num_unroll,
            input_length=input_length,
            input_key=input_key,
            input_sequences=sequences,
            input_context=context,
            initial_states=initial_states,
            capacity=capacity,
            allow_small_batch=allow_small_batch,
        )
        ready = find("cast")(saver.barrier.ready_size(), dtypes.float32)
        scalar(f"queue/{saver.barrier.name}/ready_segment_batches_", ready)
        ends = (errors.OutOfRangeError, errors.CancelledError)
        prefetch: list[Any] = [saver.prefetch_op] * num_threads
        add_queue_runner(QueueRunner(saver, prefetch, queue_closed_exception_types=ends))
        batch = saver.next_batch
        _sparse_again(batch.sequences, keys, keepers, batch_size, num_unroll)
        _context_again(batch.context, batch.sequences)
        return batch


# -- lengths -----------------------------------------------------------------------------------------


@export(f"{_PLACE}._padding")
def padding(sequences: dict, num_unroll: int) -> tuple[Any, dict]:
    """The length of some sequences, and all of them filled up with zeros to a multiple of `num_unroll`."""
    if not isinstance(num_unroll, numbers.Integral):
        raise ValueError(f"Unsupported num_unroll expected int, got: {num_unroll}")
    if not isinstance(sequences, dict):
        raise TypeError(f"Unsupported sequences expected dict, got: {sequences}")
    for key in sequences:
        if not isinstance(key, str):
            raise TypeError(f"Unsupported sequences key expected string, got: {key}")
    if not sequences:
        return 0, {}
    tensors = {k: _tensor(sequences[k]) for k in sorted(sequences)}
    length = _common_length(tensors)
    padded = length + (num_unroll - length % num_unroll) % num_unroll
    return length, {k: _padded(v, padded) for k, v in tensors.items()}


def _tensor(value: Any) -> Any:
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return value if isinstance(value, SparseTensor) else to_tensor(value)


def _common_length(tensors: dict) -> Tensor:
    lengths = [find("shape")(t)[0] for t in tensors.values() if isinstance(t, Tensor)]
    if not lengths:
        sizes = [t.dense_shape[0] for t in tensors.values()]
        return find("reduce_max")(find("cast")(sizes, dtypes.int32))
    words = text_of("All sequence lengths must match, but received lengths: ", find("stack")(lengths))
    return assured(lengths[0], [(find("equal")(n, lengths[0]), [words]) for n in lengths])


def _padded(value: Any, length: Tensor) -> Any:
    concat = find("concat")
    if isinstance(value, SparseTensor):
        shape = concat([[find("cast")(length, dtypes.int64)], value.dense_shape[1:]], 0)
        return SparseTensor(value.indices, value.values, shape)
    size = find("shape")(value)
    rows = concat([[length - size[0]], size[1:]], 0)
    nothing = find("constant")("" if value.dtype == dtypes.string else 0, value.dtype)
    static = value.shape
    result = concat([value, find("fill")(rows, nothing)], 0)
    result.set_shape([None, *static[1:]])
    return result


def _whole(key: str, value: Any, num_unroll: int) -> Any:
    """A sequence, which can only be had when its length is a multiple of `num_unroll`."""
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        sparse = _tensor(value)
        label = f"SparseTensor {key} first dimension"
        check = [multiple_of(sparse.dense_shape[0], num_unroll, label)]
        parts = (sparse.indices, sparse.values, sparse.dense_shape)
        return SparseTensor(*(assured(part, check, "multiple_of_checked") for part in parts))
    try:
        tensor = to_tensor(value)
    except TypeError as e:
        raise TypeError(
            f"Unsupported input_sequences expected Tensor or SparseTensor values, got: {type(value)} for key {key}"
        ) from e
    length = find("shape")(tensor)[0]
    check = [multiple_of(length, num_unroll, f"Tensor {key} first dimension")]
    return assured(tensor, check, "multiple_of_checked")


# -- sparse tensors ----------------------------------------------------------------------------------


def _is_sparse(value: Any) -> bool:
    return isinstance(value, (SparseTensor, SparseTensorValue))


@export(f"{_PLACE}._move_sparse_tensor_out_context")
def _context_out(input_context: dict, input_sequences: dict, num_unroll: int) -> None:
    """Moves sparse tensors of whole sequences among the sequences: each at the first step of every segment."""
    length: Any = find("constant")(1, dtypes.int64)
    if input_sequences:
        first = next(iter(input_sequences.values()))
        size = first.dense_shape if _is_sparse(first) else find("shape")(first)
        length = find("cast")(size[0], dtypes.int64)
    for key in sorted(k for k, v in input_context.items() if _is_sparse(v)):
        value = _tensor(input_context.pop(key))
        input_sequences[_CONTEXT + key] = _at_segments(value, length, num_unroll)


def _at_segments(value: SparseTensor, length: Tensor, num_unroll: int) -> SparseTensor:
    starts = find("range")(find("constant")(0, dtypes.int64), length, num_unroll)
    times, rows = find("size")(starts), find("shape")(value.indices)
    tile, expand, concat = find("tile"), find("expand_dims"), find("concat")
    where = tile(expand(value.indices, 0), [times, 1, 1])
    when = tile(find("reshape")(starts, [-1, 1, 1]), [1, rows[0], 1])
    indices = find("reshape")(concat([when, where], 2), [rows[0] * times, rows[1] + 1])
    shape = concat([expand(length, 0), value.dense_shape], 0)
    return SparseTensor(indices, tile(value.values, [times]), shape)


@export(f"{_PLACE}._move_sparse_tensor_in_context")
def _context_again(context: dict, sequences: dict) -> None:
    """The other way: of a batch, and without the time."""
    for key in sorted(k for k in sequences if k.startswith(_CONTEXT)):
        sparse = sequences.pop(key)
        sizes = sparse.dense_shape
        concat = find("concat")
        one_step = concat([sizes[:1], find("constant")([1], dtypes.int64), sizes[2:]], 0)
        whole = SparseTensor(sparse.indices, sparse.values, one_step)
        context[key.removeprefix(_CONTEXT)] = find("sparse_reshape")(whole, concat([sizes[:1], sizes[2:]], 0))


@export(f"{_PLACE}._deconstruct_sparse_tensor_seq")
def _by_number(input_sequence: dict, shared_name: str | None = None) -> tuple[dict, list, list]:
    """Sequences with a number in place of each row of a sparse one; which those are, and what keeps their rows."""
    keys = [k for k in sorted(input_sequence) if _is_sparse(input_sequence[k])]
    kept = {k: add_many_sparse_to_tensors_map(input_sequence[k], shared_name=shared_name) for k in keys}
    return {**input_sequence, **kept}, keys, [item.op for item in kept.values()]


@export(f"{_PLACE}._reconstruct_sparse_tensor_seq")
def _sparse_again(
    sequence: dict, sparse_tensor_keys: Any, tensor_op_list: list, batch_size: Any, num_unroll: int
) -> None:
    """Puts the rows in place of their numbers: sparse tensors [batch_size, num_unroll, ...]."""
    cast, concat = find("cast"), find("concat")
    steps = find("constant")(num_unroll, dtypes.int64)
    for key, keeper in zip(sparse_tensor_keys or (), tensor_op_list, strict=False):
        flat = take_many_sparse_from_tensors_map(keeper, find("reshape")(sequence[key], [-1]))
        row = flat.indices[:, :1]
        indices = concat([row // steps, row % steps, flat.indices[:, 1:]], 1)
        sizes = find("stack")([cast(batch_size, dtypes.int64), steps])
        sequence[key] = SparseTensor(indices, flat.values, concat([sizes, flat.dense_shape[1:]], 0))
