"""`tf.nn.ctc_loss` and the decoders: sequences of labels without an alignment in time."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export, find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.kernels import ctc as ctc_kernels
from tensorfleet.kernels import ctc_beams
from tensorfleet.ops.argument_order import takes_old_order
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.constructors import ones_like, sequence_mask
from tensorfleet.ops.array.gather import gather_nd
from tensorfleet.ops.array.indexing import boolean_mask
from tensorfleet.ops.array.pad import pad
from tensorfleet.ops.array.scatter import scatter_nd
from tensorfleet.ops.array.shape import shape as tf_shape
from tensorfleet.ops.array.shape import size as tf_size
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.array.transpose import transpose
from tensorfleet.ops.array.unique_partition import unique as tf_unique
from tensorfleet.ops.control.functional import map_fn
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import logical_and, not_equal, where
from tensorfleet.ops.math.reduce_functions import reduce_max, reduce_sum


def _check_lengths(inputs: Array, lengths: Array) -> None:
    if inputs.ndim != 3:
        raise errors.invalid("inputs is not a 3-Tensor")
    if lengths.shape != (inputs.shape[1],):
        raise errors.FailedPreconditionError(
            None,
            None,
            f"len(sequence_length) != batch_size.  len(sequence_length):  {lengths.size} batch_size: {inputs.shape[1]}",
        )
    for b, length in enumerate(lengths.tolist()):
        if length > inputs.shape[0]:
            raise errors.FailedPreconditionError(
                None, None, f"sequence_length({b}) <= {inputs.shape[0]} is violated: it is {length}"
            )


def _loss_shape(op: Operation) -> list[TensorShape]:
    x = op._inputs[0].shape
    batch = x.as_list()[1] if x.rank == 3 else None
    return [TensorShape([batch]), x if x.rank is not None else TensorShape([None] * 3)]


@op(
    "CTCLoss",
    "inputs: T[3], labels_indices: int64[2], labels_values: int32[1], sequence_length: int32[1] -> loss: T, gradient: T",
    "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; "
    "ignore_longer_outputs_than_inputs: bool = false; T: {float, double} = float",
    shape=_loss_shape,
    host=True,
)
def _ctc_loss(
    ctx: HostContext,
    inputs: Array,
    indices: Array,
    values: Array,
    lengths: Array,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> tuple[Array, Array]:
    _check_lengths(inputs, lengths)
    steps, batch, classes = inputs.shape
    if not batch:
        raise errors.invalid("batch_size must not be 0")
    targets = _targets(indices, values, batch)
    lengths = lengths.astype(np.int64)
    skipped = []
    odd = len(values) > 0 and (values.min() < 0 or values.max() >= classes - 1)
    for b, target in enumerate(targets):
        if odd:
            _check_labels(b, target, classes)
        if not target and lengths[b] >= 0 and not len(values):
            raise errors.invalid("Labels length is zero in batch " + str(b))
        if preprocess_collapse_repeated:
            targets[b] = [x for i, x in enumerate(target) if i == 0 or x != target[i - 1]]
        if len(targets[b]) > lengths[b]:
            if not ignore_longer_outputs_than_inputs:
                raise errors.invalid(
                    f"Not enough time for target transition sequence (required: {len(targets[b])}, available: "
                    f"{lengths[b]}){b}You can turn this error into a warning by using the flag "
                    "ignore_longer_outputs_than_inputs"
                )
            skipped.append(b)
            targets[b] = []
    with np.errstate(all="ignore"):
        loss, grad = ctc_kernels.loss_and_gradient(inputs, targets, lengths, ctc_merge_repeated)
    loss[skipped], grad[:, skipped] = 0, 0
    return loss, grad


def _targets(indices: Array, values: Array, batch: int) -> list[list[int]]:
    """The labels of each example."""
    if len(indices) != len(values):
        raise errors.invalid("labels_indices and labels_values must contain the same number of rows")
    targets: list[list[int]] = [[] for _ in range(batch)]
    for (b, _), label in zip(indices.tolist(), values.tolist(), strict=True):
        if b >= batch:
            raise errors.invalid(f"labels batch must be between 0 and {batch} but saw: {b}")
        targets[b].append(label)
    return targets


def _check_labels(b: int, target: list[int], classes: int) -> None:
    for i, label in enumerate(target):
        if label < 0:
            raise errors.invalid(f"All labels must be nonnegative integers, batch: {b} labels: {target}")
        if label < classes - 1 and i and target[i - 1] >= classes - 1:
            raise errors.invalid(
                f"Saw a non-null label (index >= num_classes - 1) following a null label, batch: {b} "
                f"num_classes: {classes} labels: {target}"
            )


@gradient("CTCLoss")
def _ctc_loss_grad(op: Operation, dy: Tensor, _: Tensor) -> list[Tensor | None]:
    known = apply(
        "PreventGradient",
        op._outputs[1],
        message="Currently there is no way to take the second  derivative of ctc_loss due to the fused "
        "implementation's interaction with tf.gradients()",
    )
    return [apply("ExpandDims", dy, -1) * known, None, None, None]


def _decoded_shapes(op: Operation) -> list[TensorShape]:
    x = op._inputs[0].shape
    batch = x.as_list()[1] if x.rank == 3 else None
    paths = op._attrs.get("top_paths", 1)
    places, values = [TensorShape([None, 2])] * paths, [TensorShape([None])] * paths
    return [*places, *values, *[TensorShape([2])] * paths, TensorShape([batch, paths])]


def _sparse(decoded: list[list[int]]) -> tuple[Array, Array, Array]:
    counts = np.array([len(labels) for labels in decoded], np.int64)
    values = np.fromiter(chain.from_iterable(decoded), np.int64, int(counts.sum()))
    places = np.empty((len(values), 2), np.int64)
    places[:, 0] = np.repeat(np.arange(len(counts)), counts)
    places[:, 1] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places, values, np.array([len(decoded), counts.max(initial=0)], np.int64)


@op(
    "CTCGreedyDecoder",
    "inputs: T[3], sequence_length: int32[1] -> decoded_indices: int64, decoded_values: int64, decoded_shape: int64, "
    "log_probability: T",
    "merge_repeated: bool = false; blank_index: int = -1; T: {float, double} = float",
    shape=_decoded_shapes,
    host=True,
)
def _ctc_greedy_decoder(
    ctx: HostContext, inputs: Array, lengths: Array, *, merge_repeated: bool, blank_index: int
) -> tuple[Array, Array, Array, Array]:
    _check_lengths(inputs, lengths)
    blank = blank_index if blank_index >= 0 else inputs.shape[2] + blank_index
    decoded, scores = ctc_kernels.greedy(inputs, lengths, merge_repeated, blank)
    return (*_sparse(decoded), scores)


@op(
    "CTCBeamSearchDecoder",
    "inputs: T[3], sequence_length: int32[1] -> decoded_indices: top_paths * int64, decoded_values: top_paths * int64, "
    "decoded_shape: top_paths * int64, log_probability: T",
    "beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; T: {float, double} = float",
    shape=_decoded_shapes,
    host=True,
)
def _ctc_beam_search_decoder(
    ctx: HostContext, inputs: Array, lengths: Array, *, beam_width: int, top_paths: int, merge_repeated: bool
) -> tuple[Array, ...]:
    _check_lengths(inputs, lengths)
    if top_paths > beam_width:
        raise errors.invalid("Requested more paths than the beam width.")
    with np.errstate(all="ignore"):
        decoded, scores = ctc_beams.beam_search(inputs, lengths, beam_width, top_paths, merge_repeated)
    columns = zip(*(_sparse(path) for path in decoded), strict=True)
    return (*(array for column in columns for array in column), scores)


not_differentiable("CTCGreedyDecoder", "CTCBeamSearchDecoder")


@export("nn.ctc_loss")
@takes_old_order(
    "nn.ctc_loss",
    "inputs labels sequence_length preprocess_collapse_repeated ctc_merge_repeated",
    lambda *args: len(args) > 1 and isinstance(args[1], SparseTensor),
)
def ctc_loss(
    labels: TensorLike,
    inputs: TensorLike = None,
    sequence_length: TensorLike = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: TensorLike = None,
) -> Tensor:
    """The negative log probability of label sequences (a SparseTensor) under `inputs`, [time, batch, classes].

    The last class is the blank that separates labels.
    """
    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    scores = to_tensor(logits if inputs is None else inputs)
    if not time_major:
        scores = transpose(scores, [1, 0, 2])
    loss, _ = apply_list(
        "CTCLoss",
        scores,
        labels.indices,
        labels.values,
        sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )
    return loss


@export("nn.ctc_loss_v2")
def ctc_loss_v2(
    labels: TensorLike,
    logits: TensorLike,
    label_length: TensorLike,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: TensorLike = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Like `ctc_loss`, with dense labels [batch, length] too, and any class as the blank (the first, if dense)."""
    with name_scope(name, "ctc_loss_v2" if isinstance(labels, SparseTensor) else "ctc_loss_dense"):
        logits = to_tensor(logits)
        if isinstance(labels, SparseTensor):
            if blank_index is None:
                raise ValueError("blank_index must be given when using SparseTensor labels.")
            places, values = labels.indices, labels.values
            shape = labels.dense_shape
        else:
            blank_index = blank_index or 0
            dense = to_tensor(labels, dtypes.int32 if not isinstance(labels, Tensor) else None)
            mask = sequence_mask(label_length, tf_shape(dense)[1])
            places = where(mask)
            values = cast(gather_nd(dense, places), dtypes.int32)
            shape = tf_shape(dense, out_type=dtypes.int64)
        classes = logits.shape.as_list()[-1]
        if classes is None:
            raise ValueError("The number of classes must be known.")
        if blank_index < 0:
            blank_index += classes
        if blank_index != classes - 1:
            parts = [
                logits[..., :blank_index],
                logits[..., blank_index + 1 :],
                logits[..., blank_index : blank_index + 1],
            ]
            logits = concat(parts, 2)
            values = where(values < blank_index, values, values - 1)
        return ctc_loss(
            SparseTensor(places, values, shape), logits, logit_length, time_major=logits_time_major
        )


def _decoded(
    op_type: str, inputs: TensorLike, lengths: TensorLike, **attrs: Any
) -> tuple[list[SparseTensor], Tensor]:
    places, values, shapes, scores = apply_any(op_type, inputs, lengths, **attrs)
    if not isinstance(places, list):
        places, values, shapes = [places], [values], [shapes]
    return [SparseTensor(*parts) for parts in zip(places, values, shapes, strict=True)], scores


@export("nn.ctc_greedy_decoder")
def ctc_greedy_decoder(
    inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The best label of every step without blanks: ([SparseTensor of labels], negated sums of scores)."""
    return _decoded("CTCGreedyDecoder", inputs, sequence_length, merge_repeated=merge_repeated)


@export("nn.ctc_beam_search_decoder")
def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable label sequences: (a SparseTensor for each of the `top_paths`, log probabilities)."""
    return _decoded(
        "CTCBeamSearchDecoder",
        inputs,
        sequence_length,
        beam_width=beam_width,
        top_paths=top_paths,
        merge_repeated=merge_repeated,
    )


@export("nn.ctc_beam_search_decoder_v2")
def ctc_beam_search_decoder_v2(
    inputs: TensorLike, sequence_length: TensorLike, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """`ctc_beam_search_decoder` that leaves repeated labels as they are."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


@export("nn.ctc_unique_labels")
def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> tuple[Tensor, ...]:
    """For each row of `labels` its distinct labels, padded with zeros, and where each label is among them."""
    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = to_tensor(labels, name="labels")

        def one(row: Tensor) -> list[Tensor]:
            distinct = tf_unique(row)
            count = tf_size(row) - tf_size(distinct.y)
            padded = pad(cast(distinct.y, dtypes.int64), [[0, count]])
            padded.set_shape(row.shape)
            return [padded, distinct.idx]

        return tuple(map_fn(one, labels, dtype=[dtypes.int64, dtypes.int32]))


@export("nn.collapse_repeated")
def collapse_repeated(
    labels: TensorLike, seq_length: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Rows of labels without immediate repetitions, padded with zeros, and their new lengths."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels, seq_length = to_tensor(labels, name="labels"), to_tensor(seq_length, name="seq_length")
        width = tf_shape(labels)[1]
        first = ones_like(labels[:, :1], dtype=dtypes.as_dtype("bool"))
        changed = concat([first, not_equal(labels[:, 1:], labels[:, :-1])], 1)
        kept = logical_and(changed, sequence_mask(seq_length, width))
        lengths = reduce_sum(cast(kept, dtypes.int32), axis=1)
        longest = reduce_max(lengths)
        values = boolean_mask(labels, kept)
        places = where(sequence_mask(lengths, longest))
        size = stack(
            [
                find(
                    "shape",
                )(labels)[0],
                longest,
            ]
        )
        spread = scatter_nd(places, values, cast(size, dtypes.int64))
        return spread, cast(lengths, seq_length.dtype)
