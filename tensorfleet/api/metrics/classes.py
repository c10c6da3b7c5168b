"""Measures over all classes."""

from __future__ import annotations

from tensorfleet.api.metrics.base import fitted, metric, metric_variable, ratio
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.api.variables.variable import Variable, assign_add
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.constructors import ones, ones_like
from tensorfleet.ops.array.diagonals import diag_part
from tensorfleet.ops.array.shape import reshape, size
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import where
from tensorfleet.ops.math.histograms import confusion_matrix
from tensorfleet.ops.math.reduce_functions import reduce_mean, reduce_sum
from tensorfleet.ops.state.scatter_variables import scatter_add


def _flat(value: TensorLike) -> Tensor:
    tensor = to_tensor(value)
    return tensor if tensor.shape.ndims == 1 else reshape(tensor, [-1])


@export("metrics.mean_iou")
@metric
def mean_iou(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Intersection over union, averaged over the classes seen. The update gives the confusion matrix."""
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        p, y = to_tensor(predictions), to_tensor(labels)
        p.shape.assert_is_compatible_with(y.shape)
        counts = metric_variable([num_classes, num_classes], dtypes.float64, "total_confusion_matrix")
        p, y = _flat(cast(p, dtypes.int64)), _flat(cast(y, dtypes.int64))
        factor = None if weights is None else _flat(weights)
        update = assign_add(counts, confusion_matrix(y, p, num_classes, weights=factor, dtype=dtypes.float64))
        return _mean_iou(counts), update


def _mean_iou(counts: Variable) -> Tensor:
    by_row = cast(reduce_sum(counts, 0), dtypes.float32)
    by_column = cast(reduce_sum(counts, 1), dtypes.float32)
    both = cast(diag_part(counts), dtypes.float32)
    either = by_row + by_column - both
    # Classes without labels and predictions do not count in the mean.
    present = reduce_sum(cast(apply("NotEqual", either, 0.0), dtypes.float32))
    each = both / where(apply("Greater", either, 0.0), either, ones_like(either))
    return where(apply("Greater", present, 0.0), reduce_sum(each, name="mean_iou") / present, 0.0)


@export("metrics.mean_per_class_accuracy")
@metric
def mean_per_class_accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How often each class is recognized, averaged over the classes. The update gives one number each."""
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        p, y, factor = fitted(predictions, cast(labels, dtypes.int64), weights)
        p, y = _flat(p), _flat(y)
        total = metric_variable([num_classes], dtypes.float32, "total")
        count = metric_variable([num_classes], dtypes.float32, "count")
        all_ones = ones(apply("Pack", [size(y)]), dtypes.float32)
        right = cast(apply("Equal", cast(p, y.dtype), y), dtypes.float32)
        if factor is not None:
            factor = cast(_flat(factor), dtypes.float32)
            right, all_ones = right * factor, all_ones * factor
        new_total, new_count = scatter_add(total, y, all_ones), scatter_add(count, y, right)
        value = reduce_mean(ratio(count, total, None), name="mean_accuracy")
        update = ratio(new_count, new_total, "update_op")
        return value, update
