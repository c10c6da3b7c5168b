"""Losses that look at a sample of the classes instead of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorfleet.api.nn.embedding import embedding_lookup, parts_of
from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.argument_order import is_tensor_of, takes_old_order
from tensorfleet.ops.array.constructors import ones, ones_like, zeros_like
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.nn.losses import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2
from tensorfleet.ops.nn.sampling import compute_accidental_hits, log_uniform_candidate_sampler
from tensorfleet.ops.sparse.dense import sparse_to_dense


def _inputs_before_labels(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike = None,
    inputs: TensorLike = None,
    *others: TensorLike,
) -> bool:
    """Whether the inputs, which are fractions, stand in the place of the labels, which are classes."""
    return is_tensor_of(labels, "floating") and is_tensor_of(inputs, "integer")


_OLD_ORDER = """
    weights biases inputs labels num_sampled num_classes num_true sampled_values remove_accidental_hits
    partition_strategy name
"""


def _concat(values: Sequence[TensorLike], axis: int) -> Tensor:
    return apply("ConcatV2", values, axis, name="concat")


def _sum_rows(x: Tensor) -> Tensor:
    """The sum of each row, as a product: its gradient is one too."""
    column = ones(stack([shape(x)[1], 1]), x.dtype.base_dtype)
    return apply("Reshape", apply("MatMul", x, column), [-1])


def compute_sampled_logits(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[Tensor] | None = None,
    subtract_log_q: bool = True,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = None,
    seed: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Logits of the true and of the sampled classes, corrected (unless told otherwise) by how likely each was sampled.

    Gives ([batch, num_true + num_sampled] logits, labels of the same shape).
    """
    parts = parts_of(weights)
    with name_scope(name, "compute_sampled_logits", [*parts, biases, inputs, labels]):
        classes, x = to_tensor(labels), to_tensor(inputs)
        if classes.dtype.base_dtype != dtypes.int64:
            classes = cast(classes, dtypes.int64)
        flat = apply("Reshape", classes, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                classes, num_true, num_sampled, True, num_classes, seed=seed
            )
        sampled, true_count, sampled_count = (apply("StopGradient", s) for s in sampled_values)
        sampled = cast(sampled, dtypes.int64)
        ids = _concat([flat, sampled], 0)
        table = (parts, biases, partition_strategy)
        true_logits, sampled_logits = _all_logits(table, ids, flat, x, num_true)
        if remove_accidental_hits:
            hits = _accidental(classes, sampled, num_true, num_sampled, sampled_logits.dtype.base_dtype)
            sampled_logits = sampled_logits + hits
        # A class that is drawn often would count too much: its logit is lowered by the logarithm of how often.
        if subtract_log_q:
            true_logits = true_logits - apply("Log", true_count)
            sampled_logits = sampled_logits - apply("Log", sampled_count)
        logits = _concat([true_logits, sampled_logits], 1)
        targets = _concat([ones_like(true_logits) / num_true, zeros_like(sampled_logits)], 1)
        return logits, targets


def _all_logits(
    table: tuple[list[Any], TensorLike, str], ids: Tensor, flat: Tensor, x: Tensor, num_true: int
) -> tuple[Tensor, Tensor]:
    """Logits of the true classes [batch, num_true] and of the sampled ones [batch, num_sampled]."""
    parts, biases, strategy = table
    kind = x.dtype.base_dtype
    rows = cast(embedding_lookup(parts, ids, partition_strategy=strategy), kind)
    true_w = apply("Slice", rows, [0, 0], stack([shape(flat)[0], -1]))
    sampled_w = apply("Slice", rows, stack([shape(flat)[0], 0]), [-1, -1])
    sampled_logits = apply("MatMul", x, sampled_w, transpose_b=True)
    offsets = cast(embedding_lookup(biases, ids, partition_strategy=strategy), kind)
    true_b = apply("Slice", offsets, [0], shape(flat))
    sampled_b = apply("Slice", offsets, shape(flat), [-1])
    depth = shape(true_w)[1:2]
    per_row = _concat([[-1, num_true], depth], 0)
    dots = apply("Mul", apply("ExpandDims", x, 1), apply("Reshape", true_w, per_row))
    matrix = apply("Reshape", dots, _concat([[-1], depth], 0))
    true_logits = apply("Reshape", _sum_rows(matrix), [-1, num_true])
    true_logits = true_logits + apply("Reshape", true_b, [-1, num_true])
    return true_logits, sampled_logits + sampled_b


def _accidental(classes: Tensor, sampled: Tensor, num_true: int, num_sampled: int, kind: DType) -> Tensor:
    """The correction of sampled logits that keeps a row's own classes from counting as wrong ones."""
    rows, places, weights = compute_accidental_hits(classes, sampled, num_true)
    across = apply("Reshape", rows, [-1, 1])
    down = apply("Reshape", cast(places, dtypes.int32), [-1, 1])
    where = apply("ConcatV2", [across, down], 1, name="sparse_indices")
    dims = _concat([shape(classes)[:1], apply("ExpandDims", num_sampled, 0)], 0)
    result: Tensor = sparse_to_dense(where, dims, cast(weights, kind), 0.0, validate_indices=False)
    return result


@export("nn.nce_loss")
@takes_old_order("nn.nce_loss", _OLD_ORDER, _inputs_before_labels)
def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[Tensor] | None = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """The noise-contrastive estimation loss of each row of `inputs`: true classes against sampled noise."""
    logits, targets = compute_sampled_logits(**locals())
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return _sum_rows(losses)


@export("nn.sampled_softmax_loss")
@takes_old_order("nn.sampled_softmax_loss", _OLD_ORDER, _inputs_before_labels)
def sampled_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[Tensor] | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """The softmax cross entropy of each row of `inputs` over its true classes and a sample of the others.

    For training with many classes; evaluate with the full softmax.
    """
    logits, targets = compute_sampled_logits(**locals())
    fixed = apply("StopGradient", targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(fixed, logits)
