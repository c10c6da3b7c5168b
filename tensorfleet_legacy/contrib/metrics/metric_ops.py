"""`tf.contrib.metrics`: streaming metrics, which take the predictions first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.naming import export, find, publish

# What comes after `predictions, labels`.
_LAST = "weights=None, metrics_collections=None, updates_collections=None, name=None"
_CUT = "weights=None, num_thresholds=200, metrics_collections=None, updates_collections=None"
# The metrics by their names here: their names in `tf.metrics` where these differ, and their arguments.
_PAIRS: dict[str, tuple[str, str]] = {
    "mean_cosine_distance": ("", f"dim, {_LAST}"),
    "mean_relative_error": ("", f"normalizer, {_LAST}"),
    "mean_iou": ("", f"num_classes, {_LAST}"),
    "auc": ("", f"{_CUT}, curve='ROC', name=None"),
    "precision_at_thresholds": ("", f"thresholds, {_LAST}"),
    "recall_at_thresholds": ("", f"thresholds, {_LAST}"),
    "sensitivity_at_specificity": ("", f"specificity, {_CUT}, name=None"),
    "specificity_at_sensitivity": ("", f"sensitivity, {_CUT}, name=None"),
    "sparse_precision_at_k": ("precision_at_k", f"k, class_id=None, {_LAST}"),
    "sparse_recall_at_k": ("recall_at_k", f"k, class_id=None, {_LAST}"),
    "sparse_average_precision_at_k": ("average_precision_at_k", f"k, {_LAST}"),
}
_PLAIN = """
    accuracy precision recall true_positives false_positives true_negatives false_negatives mean_absolute_error
    mean_squared_error root_mean_squared_error
"""
for _name in _PLAIN.split():
    _PAIRS[_name] = "", _LAST
_VALUES = {"mean": "mean", "mean_tensor": "mean_tensor", "percentage_less": "percentage_below"}


def _predictions_first(name: str, arguments: str) -> Callable:
    own = signature_of(f"predictions, labels, {arguments}")
    does = f"`tf.metrics.{name}` with the predictions before the labels."
    return function(own, f"streaming_{name}", lambda given: find(f"metrics.{name}")(**given), does)


for _old, (_new, _arguments) in _PAIRS.items():
    publish(_predictions_first(_new or _old, _arguments), f"contrib.metrics.streaming_{_old}")
for _old, _new in _VALUES.items():
    publish(find(f"metrics.{_new}"), f"contrib.metrics.streaming_{_old}")


@export("contrib.metrics.aggregate_metrics")
def aggregate_metrics(*value_update_tuples: Any) -> tuple[list, list]:
    """The values of several metrics, and their updates."""
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


@export("contrib.metrics.aggregate_metric_map")
def aggregate_metric_map(names_to_tuples: dict[str, tuple]) -> tuple[dict, dict]:
    """Metrics by name: their values, and their updates."""
    values = {name: pair[0] for name, pair in names_to_tuples.items()}
    return values, {name: pair[1] for name, pair in names_to_tuples.items()}


@export("contrib.metrics.accuracy")
def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The share of predictions that are right, of this batch alone."""
    if labels.dtype != predictions.dtype:
        raise ValueError(f"dtypes should match. Given {predictions.dtype} and {labels.dtype}.")
    with find("name_scope")(name, "accuracy", [predictions, labels]):
        right = find("cast")(find("equal")(predictions, labels), find("float32"))
        if weights is None:
            return find("reduce_mean")(right)
        return find("div")(
            find("reduce_sum")(right * weights), find("reduce_sum")(find("ones_like")(right) * weights)
        )
