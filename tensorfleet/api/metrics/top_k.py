"""Measures of the k best predictions: how many of them are among the labels."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.losses.weights import broadcast_weights, check_broadcastable
from tensorfleet.api.metrics.base import metric, metric_variable
from tensorfleet.api.variables.variable import assign_add
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tensorfleet.ops.array.constructors import range_
from tensorfleet.ops.array.shape import expand_dims, shape, size
from tensorfleet.ops.math.binary import div_no_nan
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_any, reduce_sum
from tensorfleet.ops.math.scans import cumsum
from tensorfleet.ops.math.sorting import top_k
from tensorfleet.ops.sparse.dense import sparse_tensor_to_dense

Pair = tuple[Tensor, Tensor]

#: fills up items of sparse labels that have fewer labels than others
_NO_LABEL = -(1 << 63)


def _name(what: str, k: int | None, class_id: int | None) -> str:
    name = f"{what}_at_{k}" if k is not None else f"{what}_at_k"
    return name if class_id is None else f"{name}_class{class_id}"


def _inputs(labels: TensorLike, predictions_idx: TensorLike) -> Pair:
    """Labels, with an axis for several of them added if it is missing, and predictions; both int64.

    Sparse labels are filled up to the most that an item has.
    """
    p = cast(predictions_idx, dtypes.int64)
    labels_or_sparse = convert_to_tensor_or_sparse_tensor(labels)
    if isinstance(labels_or_sparse, SparseTensor):
        values = cast(labels_or_sparse.values, dtypes.int64)
        sparse = SparseTensor(labels_or_sparse.indices, values, labels_or_sparse.dense_shape)
        y = sparse_tensor_to_dense(sparse, _NO_LABEL, validate_indices=False)
    else:
        y = cast(labels_or_sparse, dtypes.int64)
    if y.shape.ndims is not None and p.shape.ndims is not None and y.shape.ndims == p.shape.ndims - 1:
        y = expand_dims(y, -1)
    return y, p


def _same(a: Tensor, b: Tensor) -> Tensor:
    """[..., i, j]: whether item i of `a` is item j of `b`."""
    return apply("Equal", expand_dims(a, -1), expand_dims(b, -2))


def _hits(labels: Tensor, predictions: Tensor) -> Tensor:
    """Which predictions are among the labels."""
    return reduce_any(_same(predictions, labels), -1)


def _of_class(chosen: Tensor, items: Tensor, class_id: int | None) -> Tensor:
    if class_id is None:
        return chosen
    return apply("LogicalAnd", chosen, apply("Equal", items, to_tensor(class_id, dtypes.int64)))


def _missed(labels: Tensor, predictions: Tensor) -> Tensor:
    """Which labels are not predicted; of equal labels only the first counts."""
    order = range_(apply("Shape", labels)[-1])
    earlier = apply("Less", expand_dims(order, 0), expand_dims(order, 1))
    repeated = reduce_any(apply("LogicalAnd", _same(labels, labels), earlier), -1)
    covered = apply("LogicalOr", repeated, _hits(predictions, labels))
    there = apply("NotEqual", labels, to_tensor(_NO_LABEL, dtypes.int64))
    return apply("LogicalAnd", there, apply("LogicalNot", covered))


def _streaming(what: str, k: int | None, class_id: int | None, chosen: Tensor, weights: TensorLike) -> Pair:
    """A variable that counts the chosen elements, and its update."""
    with name_scope(_name(what, k, class_id)) as scope:
        counts = reduce_sum(cast(chosen, dtypes.float64), -1)
        if weights is not None:
            with control_dependencies(check_broadcastable(weights, counts)):
                counts = apply("Mul", counts, cast(weights, dtypes.float64))
        total = reduce_sum(counts)
        variable = metric_variable([], dtypes.float64, scope)
        return variable, assign_add(variable, total, name="update")  # type: ignore[return-value]


def _fraction(hits: Pair, misses: Pair, scope: str) -> Pair:
    value = apply("RealDiv", hits[0], apply("AddV2", hits[0], misses[0]), name=scope)
    update = apply("RealDiv", hits[1], apply("AddV2", hits[1], misses[1]), name="update")
    return value, update


@export("metrics.precision_at_top_k")
@metric
def precision_at_top_k(
    labels: TensorLike,
    predictions_idx: TensorLike,
    k: int | None = None,
    class_id: int | None = None,
    weights: TensorLike = None,
    name: str | None = None,
) -> Pair:
    """Of the k classes predicted for each item, or of one class among them, the share that are labels."""
    with name_scope(name, _name("precision", k, class_id), (predictions_idx, labels, weights)) as scope:
        y, p = _inputs(labels, predictions_idx)
        right = _hits(y, p)
        wrong = apply("LogicalNot", right)
        hits = _streaming("true_positive", k, class_id, _of_class(right, p, class_id), weights)
        misses = _streaming("false_positive", k, class_id, _of_class(wrong, p, class_id), weights)
        return _fraction(hits, misses, scope)


@export("metrics.precision_at_k", "metrics.sparse_precision_at_k")
@metric
def precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: TensorLike = None,
    name: str | None = None,
) -> Pair:
    """Of the k classes with the highest predictions, or of one class among them, the share that are labels."""
    with name_scope(name, _name("precision", k, class_id), (predictions, labels, weights)) as scope:
        best = top_k(predictions, k).indices
        return precision_at_top_k(labels, best, k, class_id, weights, name=scope)


@export("metrics.recall_at_top_k")
@metric
def recall_at_top_k(
    labels: TensorLike,
    predictions_idx: TensorLike,
    k: int | None = None,
    class_id: int | None = None,
    weights: TensorLike = None,
    name: str | None = None,
) -> Pair:
    """Of the labels of each item, or of one class, the share among the k classes predicted."""
    with name_scope(name, _name("recall", k, class_id), (predictions_idx, labels, weights)) as scope:
        y, p = _inputs(labels, predictions_idx)
        right = _of_class(_hits(y, p), p, class_id)
        missed = _of_class(_missed(y, p), y, class_id)
        hits = _streaming("true_positive", k, class_id, right, weights)
        misses = _streaming("false_negative", k, class_id, missed, weights)
        return _fraction(hits, misses, scope)


@export("metrics.recall_at_k")
@metric
def recall_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: TensorLike = None,
    name: str | None = None,
) -> Pair:
    """Of the labels of each item, or of one class, the share among the k classes with the highest predictions."""
    with name_scope(name, _name("recall", k, class_id), (predictions, labels, weights)) as scope:
        best = top_k(predictions, k).indices
        return recall_at_top_k(labels, best, k, class_id, weights, name=scope)


@export("metrics.average_precision_at_k", "metrics.sparse_average_precision_at_k")
@metric
def average_precision_at_k(
    labels: TensorLike, predictions: TensorLike, k: int, weights: TensorLike = None, name: str | None = None
) -> Pair:
    """The precision at each of the first k ranks that holds a label, averaged over labels and items."""
    if k < 1:
        raise ValueError(f"Invalid k={k}.")
    with name_scope(name, _name("average_precision", k, None), (predictions, labels, weights)) as scope:
        best = top_k(predictions, k).indices
        return average_precision_at_top_k(labels, best, weights, name=scope)


@metric
def average_precision_at_top_k(
    labels: TensorLike, predictions_idx: TensorLike, weights: TensorLike = None, name: str | None = None
) -> Pair:
    """`average_precision_at_k` of predictions that are given by their classes, the best first."""
    with name_scope(name, "average_precision_at_top_k", (predictions_idx, labels, weights)) as scope:
        each = _average_precision(*_inputs(labels, predictions_idx))
        number = cast(size(each, out_type=dtypes.int64), dtypes.float64)
        if weights is not None:
            factor = broadcast_weights(cast(weights, dtypes.float64), each)
            each, number = apply("Mul", each, factor), reduce_sum(factor)
        count, new_count = _added("max", number)
        total, new_total = _added("total", reduce_sum(each))
        value = div_no_nan(total, count, name="mean")
        update = div_no_nan(new_total, new_count, name=scope)
        return value, update


def _average_precision(labels: Tensor, predictions: Tensor) -> Tensor:
    with name_scope("average_precision"):
        if predictions.shape.ndims == 0:
            raise ValueError("The rank of predictions_idx must be at least 1.")
        if predictions.shape.ndims is not None and predictions.shape[-1].value is None:
            raise ValueError("The last dimension of predictions_idx must be set.")
        k = cast(shape(predictions)[-1], dtypes.int64)
        relevant = cast(_hits(labels, predictions), dtypes.float64)
        ranks = cast(range_(to_tensor(1, dtypes.int64), k + 1), dtypes.float64)
        total: Tensor = reduce_sum(cumsum(relevant, -1) / ranks * relevant, -1)
        known = apply("GreaterEqual", labels, to_tensor(0, dtypes.int64))
        count = apply("Minimum", reduce_sum(cast(known, dtypes.int64), -1), k)
        precision: Tensor = total / cast(count, dtypes.float64)
        return precision


def _added(name: str, amount: Tensor) -> tuple[Any, Tensor]:
    with name_scope(name) as scope:
        variable = metric_variable([], dtypes.float64, scope)
        return variable, assign_add(variable, amount, name="update")
