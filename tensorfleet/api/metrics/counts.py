"""True and false, positives and negatives; precision and recall."""

from __future__ import annotations

from collections.abc import Callable

from tensorfleet.api.metrics.base import fitted, metric, metric_variable
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.api.variables.variable import assign_add
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.checks import assert_rank_in
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import where
from tensorfleet.ops.math.reduce_functions import reduce_sum

Pair = tuple[Tensor, Tensor]


def _count(hits: Tensor, weights: TensorLike) -> Pair:
    """How often a condition held in all, each time as much as its weight."""
    count = metric_variable([], dtypes.float32, "count")
    values = cast(hits, dtypes.float32)
    if weights is not None:
        factor = cast(weights, dtypes.float32)
        if factor.shape.ndims is not None and values.shape.ndims is not None:
            assert_rank_in(factor, (0, values.shape.ndims))
        values = apply("Mul", values, factor)
    return apply("Identity", count), assign_add(count, reduce_sum(values))


def _declare(public: str, label: bool, prediction: bool, what: str) -> Callable[..., Pair]:
    """The metric that counts where the label is `label` and the prediction is `prediction`."""

    def made(
        labels: TensorLike, predictions: TensorLike, weights: TensorLike = None, name: str | None = None
    ) -> Pair:
        with variable_scope(name, public, (predictions, labels, weights)):
            p, y, w = fitted(cast(predictions, dtypes.bool_), cast(labels, dtypes.bool_), weights)
            hits = apply("LogicalAnd", apply("Equal", y, label), apply("Equal", p, prediction))
            return _count(hits, w)

    return _published(made, public, what)


def _published(made: Callable[..., Pair], public: str, what: str) -> Callable[..., Pair]:
    made.__name__, made.__doc__ = public, what
    return export(f"metrics.{public}")(metric(made))


true_positives = _declare("true_positives", True, True, "How many were rightly predicted true.")
true_negatives = _declare("true_negatives", False, False, "How many were rightly predicted false.")
false_positives = _declare("false_positives", False, True, "How many were wrongly predicted true.")
false_negatives = _declare("false_negatives", True, False, "How many were wrongly predicted false.")


def _share(hits: Tensor, misses: Tensor, name: str) -> Tensor:
    return where(apply("Greater", hits + misses, 0.0), apply("RealDiv", hits, hits + misses), 0.0, name)


def _declare_share(public: str, others: Callable[..., Pair], what: str) -> Callable[..., Pair]:
    """The metric that is the share of true positives among those and `others`."""

    def made(
        labels: TensorLike, predictions: TensorLike, weights: TensorLike = None, name: str | None = None
    ) -> Pair:
        with variable_scope(name, public, (predictions, labels, weights)):
            p, y, w = fitted(cast(predictions, dtypes.bool_), cast(labels, dtypes.bool_), weights)
            right, new_right = true_positives(y, p, w)
            wrong, new_wrong = others(y, p, w)
            return _share(right, wrong, "value"), _share(new_right, new_wrong, "update_op")

    return _published(made, public, what)


precision = _declare_share(
    "precision", false_positives, "Of all that were predicted true, the share that are."
)
recall = _declare_share("recall", false_negatives, "Of all that are true, the share that were predicted so.")
