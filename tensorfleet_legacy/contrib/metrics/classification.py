"""`tf.contrib.metrics`: measures of probabilities at the best threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.metrics.base import collect, metric
from tensorfleet.api.metrics.thresholds import _EPSILON, KINDS, Pair, _evenly, counts_at_thresholds
from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Tensor


def _at_best(
    scope: str,
    labels: Any,
    predictions: Any,
    weights: Any,
    count: int,
    name: str | None,
    compute: Callable,
    kinds: tuple[str, ...] = tuple(KINDS),
) -> Pair:
    """The result of a function of the counts at all thresholds: of the counts so far, and with the update."""
    with find("variable_scope")(name, scope, (predictions, labels, weights)):
        values, updates = counts_at_thresholds(labels, predictions, _evenly(count), weights, kinds)
        return (
            find("identity")(compute(values), name="value"),
            find("identity")(compute(updates), name="update_op"),
        )


def _precision(c: dict) -> Tensor:
    return c["tp"] / (_EPSILON + c["tp"] + c["fp"])


def _recall(c: dict) -> Tensor:
    return c["tp"] / (_EPSILON + c["tp"] + c["fn"])


@export("contrib.metrics.f1_score")
@metric
def f1_score(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200, name: str | None = None
) -> Pair:
    """The best harmonic mean of precision and recall over all thresholds."""

    def best(c: dict) -> Tensor:
        precision, recall = _precision(c), _recall(c)
        return find("reduce_max")(2.0 * precision * recall / (precision + recall + _EPSILON))

    return _at_best("f1", labels, predictions, weights, num_thresholds, name, best, ("tp", "fp", "fn"))


@export("contrib.metrics.precision_at_recall")
@metric
def precision_at_recall(
    labels: Any,
    predictions: Any,
    target_recall: float,
    weights: Any = None,
    num_thresholds: int = 200,
    name: str | None = None,
) -> Pair:
    """The precision at the highest threshold where the recall is at least the one asked for."""
    if target_recall < 0 or target_recall > 1:
        raise ValueError("`target_recall` must be in the range [0, 1].")

    def found(c: dict) -> Tensor:
        # The recall falls as the threshold rises: as many thresholds as reach it come first.
        last = find("reduce_sum")(find("cast")(_recall(c) >= target_recall, "int32")) - 1
        right, wrong = c["tp"][last], c["fp"][last]
        return (right + _EPSILON) / (right + wrong + _EPSILON)

    return _at_best("precision_at_recall", labels, predictions, weights, num_thresholds, name, found)


@export("contrib.metrics.recall_at_precision")
def recall_at_precision(
    labels: Any,
    predictions: Any,
    precision: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
    strict_mode: bool = False,
) -> Pair:
    """The recall at the threshold where the precision is nearest to the one asked for.

    With `strict_mode`, at the one where it is the least of those not below; zero when there is none.
    """
    if not 0 <= precision <= 1:
        raise ValueError("`precision` must be in the range [0, 1].")

    def nearest(c: dict) -> Tensor:
        away = find("abs")(_precision(c) - precision)
        return _recall(c)[find("argmin")(away, output_type="int32")]

    def above(c: dict) -> Tensor:
        result = _precision(c)
        best = find("argmax")(1.0 / (result - precision + _EPSILON), output_type="int32")
        return find("where")(result[best] >= precision, _recall(c)[best], 0.0)

    value, update = _at_best(
        "recall_at_precision",
        labels,
        predictions,
        weights,
        num_thresholds,
        name,
        above if strict_mode else nearest,
    )
    return collect(value, update, metrics_collections, updates_collections)
