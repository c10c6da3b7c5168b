"""Measures of predictions that are probabilities, cut at thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.api.losses.weights import broadcast_weights
from tensorfleet.api.metrics.base import collect, fitted, metric, metric_variable, ratio
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.api.variables.variable import assign_add
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.checks import assert_greater_equal, assert_less_equal
from tensorfleet.ops.array.constructors import ones_like
from tensorfleet.ops.array.shape import reshape
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import where
from tensorfleet.ops.math.reduce_functions import argmax, argmin, reduce_min, reduce_sum
from tensorfleet.ops.math.scans import cumsum

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import CollectionKeys

Pair = tuple[Tensor, Tensor]
KINDS = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}
# Keeps a division by an empty class finite, and puts the outer thresholds beyond 0 and 1. TensorFlow's
# number.
_EPSILON = 1e-7

#: By kind, a number for each threshold: variables, or the tensors that their updates give.
Counts: TypeAlias = dict[str, Any]


def counts_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: list[float],
    weights: TensorLike,
    which: tuple[str, ...],
) -> tuple[Counts, Counts]:
    """For each kind in `which`, how many there are at each threshold: as values, and as updates."""
    unknown = [kind for kind in which if kind not in KINDS]
    if unknown:
        raise ValueError(f"Invalid key: {unknown[0]}.")
    p = cast(predictions, dtypes.float32)
    message = "predictions must be in [0, 1]"
    checks = [assert_greater_equal(p, 0.0, message=message), assert_less_equal(p, 1.0, message=message)]
    with control_dependencies(checks):
        p, y, w = fitted(p, cast(labels, dtypes.bool_), weights)
    # One row per threshold: all counts come from one comparison of a column with a row.
    cuts = constant([[t] for t in thresholds], dtypes.float32)
    if w is not None:
        w = reshape(broadcast_weights(cast(w, dtypes.float32), p), [1, -1])
    positive = apply("Greater", reshape(p, [1, -1]), cuts)
    truth = reshape(y, [1, -1])
    values, updates = {}, {}
    for kind in which:
        said = positive if kind in ("tp", "fp") else apply("LogicalNot", positive)
        real = truth if kind in ("tp", "fn") else apply("LogicalNot", truth)
        variable = metric_variable([len(thresholds)], dtypes.float32, KINDS[kind])
        hits = cast(apply("LogicalAnd", real, said), dtypes.float32)
        hits = hits if w is None else apply("Mul", hits, w)
        values[kind], updates[kind] = variable, assign_add(variable, reduce_sum(hits, 1))
    return values, updates


def _declare(kind: str, what: str) -> Callable[..., Pair]:
    """The metric that counts one kind at each threshold."""

    def made(
        labels: TensorLike,
        predictions: TensorLike,
        thresholds: Iterable[float],
        weights: TensorLike = None,
        name: str | None = None,
    ) -> Pair:
        with variable_scope(name, KINDS[kind], (predictions, labels, weights)):
            values, updates = counts_at_thresholds(labels, predictions, list(thresholds), weights, (kind,))
            return apply("Identity", values[kind]), updates[kind]

    made.__name__, made.__doc__ = f"{KINDS[kind]}_at_thresholds", what
    return export(f"metrics.{made.__name__}")(metric(made))


true_positives_at_thresholds = _declare("tp", "How many were rightly predicted true, at each threshold.")
true_negatives_at_thresholds = _declare("tn", "How many were rightly predicted false, at each threshold.")
false_positives_at_thresholds = _declare("fp", "How many were wrongly predicted true, at each threshold.")
false_negatives_at_thresholds = _declare("fn", "How many were wrongly predicted false, at each threshold.")


@export("metrics.precision_at_thresholds")
@metric
def precision_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Iterable[float],
    weights: TensorLike = None,
    name: str | None = None,
) -> Pair:
    """Of all predicted true at each threshold, the share that are."""
    with variable_scope(name, "precision_at_thresholds", (predictions, labels, weights)):
        values, updates = counts_at_thresholds(labels, predictions, list(thresholds), weights, ("tp", "fp"))
        value, update = (
            apply("RealDiv", c["tp"], _EPSILON + c["tp"] + c["fp"], name=f"precision_{n}")
            for c, n in ((values, "value"), (updates, "update_op"))
        )
        return value, update


@export("metrics.recall_at_thresholds")
@metric
def recall_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Iterable[float],
    weights: TensorLike = None,
    name: str | None = None,
) -> Pair:
    """Of all that are true, the share predicted so at each threshold."""
    with variable_scope(name, "recall_at_thresholds", (predictions, labels, weights)):
        values, updates = counts_at_thresholds(labels, predictions, list(thresholds), weights, ("tp", "fn"))
        value, update = (
            apply("RealDiv", c["tp"], _EPSILON + c["tp"] + c["fn"], name=f"recall_{n}")
            for c, n in ((values, "value"), (updates, "update_op"))
        )
        return value, update


def _evenly(count: int) -> list[float]:
    """Thresholds from just below 0 to just above 1."""
    inner = [(i + 1) * 1.0 / (count - 1) for i in range(count - 2)]
    return [0.0 - _EPSILON, *inner, 1.0 + _EPSILON]


@export("metrics.auc")
def auc(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = None,
    num_thresholds: int = 200,
    metrics_collections: CollectionKeys | None = None,
    updates_collections: CollectionKeys | None = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Iterable[float] | None = None,
) -> Pair:
    """The area under the curve of true against false positives (ROC), or of precision against recall (PR)."""
    with variable_scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
        cuts = _evenly(num_thresholds)
        if thresholds is not None:
            cuts = [cuts[0], *sorted(thresholds), cuts[-1]]
        # Precision is not linear in recall between two thresholds: the trapezoid is too large.
        if curve == "PR" and summation_method == "trapezoidal":
            logging.warning(
                "Trapezoidal rule is known to produce incorrect PR-AUCs; please switch to "
                '"careful_interpolation" instead.'
            )
        values, updates = counts_at_thresholds(labels, predictions, cuts, weights, tuple(KINDS))
        value, update = (
            _area(c, curve, summation_method, n) for c, n in ((values, "value"), (updates, "update_op"))
        )
        return collect(value, update, metrics_collections, updates_collections)


def _area(counts: Counts, curve: str, method: str, name: str) -> Tensor:
    tp, fn, tn, fp = (counts[k] for k in ("tp", "fn", "tn", "fp"))
    epsilon = 1.0e-6  # keeps empty classes from dividing by zero
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated(tp, fp, fn)
    recall = (tp + epsilon) / (tp + fn + epsilon)
    if curve == "ROC":
        x, y = fp / (fp + tn + epsilon), recall
    else:
        x, y = recall, (tp + epsilon) / (tp + fp + epsilon)
    width, left, right = x[:-1] - x[1:], y[:-1], y[1:]
    if method in ("trapezoidal", "careful_interpolation"):
        height = (left + right) / 2.0
    elif method == "minoring":
        height = apply("Minimum", left, right)
    elif method == "majoring":
        height = apply("Maximum", left, right)
    else:
        raise ValueError(f"Invalid summation_method: {method}")
    return reduce_sum(apply("Mul", width, height), name=name)


def _interpolated(tp: Tensor, fp: Tensor, fn: Tensor) -> Tensor:
    """The area under precision and recall when true and false positives grow linearly between thresholds."""
    gained = tp[:-1] - tp[1:]
    all_positive = tp + fp
    slope = ratio(gained, all_positive[:-1] - all_positive[1:], "prec_slope")
    intercept = tp[1:] - apply("Mul", slope, all_positive[1:])
    before, after = all_positive[:-1], all_positive[1:]
    growing = apply("LogicalAnd", apply("Greater", before, 0.0), apply("Greater", after, 0.0))
    growth = where(growing, ratio(before, after, "recall_relative_ratio"), ones_like(after))
    gain = slope * (gained + intercept * apply("Log", growth))
    return reduce_sum(ratio(gain, tp[1:] + fn[1:], "pr_auc_increment"), name="interpolate_pr_auc")


def _at_fraction(
    kind: str,
    fraction: float,
    compute: Callable[[Counts, str], Tensor],
    arguments: tuple[TensorLike, TensorLike, TensorLike],
    num_thresholds: int,
    name: str | None,
) -> Pair:
    """A metric at the threshold where another one, named last in `kind`, is `fraction`."""
    if fraction < 0 or fraction > 1:
        raise ValueError(f"`{kind.rpartition('_')[2]}` must be in the range [0, 1].")
    labels, predictions, weights = arguments
    with variable_scope(name, kind, (predictions, labels, weights)):
        cuts = _evenly(num_thresholds)
        values, updates = counts_at_thresholds(labels, predictions, cuts, weights, tuple(KINDS))
        return compute(values, "value"), compute(updates, "update_op")


@export("metrics.sensitivity_at_specificity")
@metric
def sensitivity_at_specificity(
    labels: TensorLike,
    predictions: TensorLike,
    specificity: float,
    weights: TensorLike = None,
    num_thresholds: int = 200,
    name: str | None = None,
) -> Pair:
    """The share of true ones found, at the threshold where the share of false ones kept out is as asked."""

    def compute(c: Counts, name: str) -> Tensor:
        kept_out = c["tn"] / (c["tn"] + c["fp"] + _EPSILON)
        i = cast(argmin(apply("Abs", kept_out - specificity), 0), dtypes.int32)
        return apply("RealDiv", c["tp"][i], c["tp"][i] + c["fn"][i] + _EPSILON, name=name)

    arguments = (labels, predictions, weights)
    return _at_fraction("sensitivity_at_specificity", specificity, compute, arguments, num_thresholds, name)


@export("metrics.specificity_at_sensitivity")
@metric
def specificity_at_sensitivity(
    labels: TensorLike,
    predictions: TensorLike,
    sensitivity: float,
    weights: TensorLike = None,
    num_thresholds: int = 200,
    name: str | None = None,
) -> Pair:
    """The share of false ones kept out, at the last threshold where the share of true ones found is as asked."""

    def compute(c: Counts, name: str) -> Tensor:
        away = apply("Abs", c["tp"] / (c["tp"] + c["fn"] + _EPSILON) - sensitivity)
        nearest = cast(apply("Equal", away, reduce_min(away)), dtypes.int64)
        i = cast(argmax(cumsum(nearest), 0), dtypes.int32)
        return apply("RealDiv", c["tn"][i], c["tn"][i] + c["fp"][i] + _EPSILON, name=name)

    arguments = (labels, predictions, weights)
    return _at_fraction("specificity_at_sensitivity", sensitivity, compute, arguments, num_thresholds, name)
