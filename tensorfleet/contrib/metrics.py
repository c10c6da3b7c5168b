"""`tf.contrib.metrics`: streaming metrics, which take the predictions first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api import export, find, publish

# What comes after `predictions, labels` where arguments may be given by position.
_LAST = ("weights", "metrics_collections", "updates_collections", "name")
_PAIRS: dict[str, tuple[str, tuple[str, ...]]] = {
    "accuracy": ("accuracy", _LAST),
    "precision": ("precision", _LAST),
    "recall": ("recall", _LAST),
    "true_positives": ("true_positives", _LAST),
    "false_positives": ("false_positives", _LAST),
    "true_negatives": ("true_negatives", _LAST),
    "false_negatives": ("false_negatives", _LAST),
    "mean_absolute_error": ("mean_absolute_error", _LAST),
    "mean_squared_error": ("mean_squared_error", _LAST),
    "root_mean_squared_error": ("root_mean_squared_error", _LAST),
    "mean_cosine_distance": ("mean_cosine_distance", ("dim", *_LAST)),
    "mean_relative_error": ("mean_relative_error", ("normalizer", *_LAST)),
    "mean_iou": ("mean_iou", ("num_classes", *_LAST)),
    "auc": (
        "auc",
        ("weights", "num_thresholds", "metrics_collections", "updates_collections", "curve", "name"),
    ),
    "precision_at_thresholds": ("precision_at_thresholds", ("thresholds", *_LAST)),
    "recall_at_thresholds": ("recall_at_thresholds", ("thresholds", *_LAST)),
    "sensitivity_at_specificity": (
        "sensitivity_at_specificity",
        ("specificity", "weights", "num_thresholds", *_LAST[1:]),
    ),
    "specificity_at_sensitivity": (
        "specificity_at_sensitivity",
        ("sensitivity", "weights", "num_thresholds", *_LAST[1:]),
    ),
    "sparse_precision_at_k": ("precision_at_k", ("k", "class_id", *_LAST)),
    "sparse_recall_at_k": ("recall_at_k", ("k", "class_id", *_LAST)),
    "sparse_average_precision_at_k": ("average_precision_at_k", ("k", *_LAST)),
}
_VALUES = {"mean": "mean", "mean_tensor": "mean_tensor", "percentage_less": "percentage_below"}


def _predictions_first(name: str, order: tuple[str, ...]) -> Callable:
    def metric(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        return find(f"metrics.{name}")(labels=labels, predictions=predictions, **given)

    metric.__name__ = metric.__qualname__ = f"streaming_{name}"
    metric.__doc__ = f"`tf.metrics.{name}` with the predictions before the labels."
    return metric


for _old, (_new, _order) in _PAIRS.items():
    publish(_predictions_first(_new, _order), f"contrib.metrics.streaming_{_old}")
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
