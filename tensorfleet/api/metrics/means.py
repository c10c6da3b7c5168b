"""Averages over all that was seen."""

from __future__ import annotations

from tensorfleet.api.losses.weights import broadcast_weights
from tensorfleet.api.metrics.base import fitted, metric, metric_variable, ratio
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.api.variables.variable import assign_add
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet.ops.array.shape import size
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import where
from tensorfleet.ops.math.reduce_functions import reduce_sum

Pair = tuple[Tensor, Tensor]


@export("metrics.mean")
@metric
def mean(values: TensorLike, weights: TensorLike = None, name: str | None = None) -> Pair:
    """The weighted average of all values seen: (its value, the operation that takes in a batch)."""
    with variable_scope(name, "mean", (values, weights)):
        x = cast(values, dtypes.float32)
        total = metric_variable([], dtypes.float32, "total")
        count = metric_variable([], dtypes.float32, "count")
        if weights is None:
            number = cast(size(x), dtypes.float32)
        else:
            x, _, weights = fitted(x, None, weights)
            factor = broadcast_weights(cast(weights, dtypes.float32), x)
            x = apply("Mul", x, factor)
            number = reduce_sum(factor)
        amount = reduce_sum(x)
        new_total = assign_add(total, amount)
        # As in TensorFlow: an error in the values leaves the count as it was, too.
        with control_dependencies([amount]):
            new_count = assign_add(count, number)
        return ratio(total, count, "value"), ratio(new_total, new_count, "update_op")


@export("metrics.mean_tensor")
@metric
def mean_tensor(values: TensorLike, weights: TensorLike = None, name: str | None = None) -> Pair:
    """The weighted average of each element over all batches, which must have one known shape."""
    with variable_scope(name, "mean", (values, weights)):
        x = cast(values, dtypes.float32)
        total = metric_variable(x.shape, dtypes.float32, "total_tensor")
        count = metric_variable(x.shape, dtypes.float32, "count_tensor")
        number = ones_like(x)
        if weights is not None:
            x, _, weights = fitted(x, None, weights)
            factor = broadcast_weights(cast(weights, dtypes.float32), x)
            x, number = apply("Mul", x, factor), apply("Mul", number, factor)
        new_total, new_count = assign_add(total, x), assign_add(count, number)
        return ratio(total, count, "value"), ratio(new_total, new_count, "update_op")


@export("metrics.accuracy")
@metric
def accuracy(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike = None, name: str | None = None
) -> Pair:
    """How often predictions equal labels."""
    p, y, w = fitted(predictions, labels, weights)
    if p.dtype.base_dtype != y.dtype.base_dtype:
        p = cast(p, y.dtype.base_dtype)
    right = cast(apply("Equal", p, y), dtypes.float32)
    return mean(right, w, name=name or "accuracy")


@export("metrics.mean_absolute_error")
@metric
def mean_absolute_error(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike = None, name: str | None = None
) -> Pair:
    """The average distance of predictions from labels."""
    p, y, w = fitted(predictions, labels, weights)
    distance = apply("Abs", apply("Sub", p, y))
    return mean(distance, w, name=name or "mean_absolute_error")


@export("metrics.mean_squared_error")
@metric
def mean_squared_error(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike = None, name: str | None = None
) -> Pair:
    """The average squared distance of predictions from labels."""
    p, y, w = fitted(predictions, labels, weights)
    distance = apply("SquaredDifference", y, p)
    return mean(distance, w, name=name or "mean_squared_error")


@export("metrics.root_mean_squared_error")
@metric
def root_mean_squared_error(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike = None, name: str | None = None
) -> Pair:
    """The square root of the average squared distance of predictions from labels."""
    p, y, w = fitted(predictions, labels, weights)
    squares, update = mean_squared_error(y, p, w, name=name or "root_mean_squared_error")
    return apply("Sqrt", squares), apply("Sqrt", update)


@export("metrics.mean_relative_error")
@metric
def mean_relative_error(
    labels: TensorLike,
    predictions: TensorLike,
    normalizer: TensorLike,
    weights: TensorLike = None,
    name: str | None = None,
) -> Pair:
    """The average distance of predictions from labels, each divided by `normalizer`; 0 where that is 0."""
    p, y, w = fitted(predictions, labels, weights)
    p, by, _ = fitted(p, normalizer, None)
    errors = where(apply("Equal", by, 0.0), zeros_like(y), apply("RealDiv", apply("Abs", y - p), by))
    return mean(errors, w, name=name or "mean_relative_error")


@export("metrics.mean_cosine_distance")
@metric
def mean_cosine_distance(
    labels: TensorLike, predictions: TensorLike, dim: int, weights: TensorLike = None, name: str | None = None
) -> Pair:
    """The average of one minus the product of labels and predictions along `dim`."""
    p, y, w = fitted(predictions, labels, weights)
    products = reduce_sum(apply("Mul", p, y), [dim], keepdims=True)
    average, update = mean(products, w, name=name or "mean_cosine_distance")
    return apply("Sub", 1.0, average), apply("Sub", 1.0, update)


@export("metrics.percentage_below")
@metric
def percentage_below(
    values: TensorLike, threshold: TensorLike, weights: TensorLike = None, name: str | None = None
) -> Pair:
    """The share of values below `threshold`."""
    below = cast(apply("Less", to_tensor(values), threshold), dtypes.float32)
    return mean(below, weights, name=name or "percentage_below_threshold")
