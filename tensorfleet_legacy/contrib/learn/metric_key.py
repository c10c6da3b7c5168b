"""Losses and metrics of the heads of `tf.contrib.learn`."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.losses.weights import broadcast_weights
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope


class MetricKey:
    """The names of metrics; some are for a class or a threshold."""

    LOSS = "loss"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    CLASS_AUC = "auc/class%d"
    CLASS_AUC_PR = "auc_precision_recall/class%d"
    PREDICTION_MEAN = "labels/prediction_mean"
    CLASS_PREDICTION_MEAN = "labels/prediction_mean/class%d"
    CLASS_LOGITS_MEAN = "labels/logits_mean/class%d"
    CLASS_PROBABILITY_MEAN = "labels/probability_mean/class%d"
    LABEL_MEAN = "labels/actual_label_mean"
    CLASS_LABEL_MEAN = "labels/actual_label_mean/class%d"
    ACCURACY = "accuracy"
    ACCURACY_BASELINE = "accuracy/baseline_label_mean"
    ACCURACY_MEAN = "accuracy/threshold_%f_mean"
    PRECISION_MEAN = "precision/positive_threshold_%f_mean"
    RECALL_MEAN = "recall/positive_threshold_%f_mean"


def as_float(tensor: Any) -> Any:
    """The tensor in float32; None stays None."""
    return None if tensor is None else find("cast")(tensor, dtypes.float32)


def weights_of(features: dict, name: str | None) -> Tensor | None:
    """The weights of the examples, with a column where they have but one axis."""
    if not name:
        return None
    if name not in features:
        raise ValueError(f"Weights {name} missing from features.")
    weights = as_float(features[name])
    if weights.shape.rank != 1:
        return weights
    logging.warning("Weights %s has shape %s, expanding to make it 2d.", name, weights.shape)
    return find("reshape")(weights, [-1, 1])


def weighed(losses: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """The loss to train with, a mean over the examples, and the one to report, a mean over the weights."""
    with name_scope("loss", values=[losses, weights]) as scope:
        if weights is None:
            mean = find("reduce_mean")(losses, name=scope)
            return mean, mean
        weights = broadcast_weights(weights, losses)
        products = find("multiply")(losses, weights, name="weighted_loss")
        mean = find("reduce_mean")(products, name=scope)
        total = find("reduce_sum")
        return mean, find("div")(total(products), total(weights), name="weighted_average_loss")


def _column(values: Tensor, weights: Any, number: int | None) -> tuple[Tensor, Any]:
    """Values and weights of all classes, or of one."""
    weights = as_float(weights)
    if weights is not None:
        weights = broadcast_weights(weights, values)
    if number is None:
        return values, weights
    return values[:, number], None if weights is None else weights[:, number]


def mean_of(values: Tensor, weights: Any = None, number: int | None = None) -> tuple:
    """The metric of a mean, of all classes or of one."""
    return find("metrics.mean")(*_column(as_float(values), weights, number))


def share_of(classes: Tensor, weights: Any, number: int) -> tuple:
    """The metric of how often a class is among the classes."""
    same = find("equal")(find("cast")(classes, dtypes.int32), number)
    return find("metrics.mean")(find("cast")(same, classes.dtype), weights)


def auc_of(
    predictions: Tensor, labels: Tensor, weights: Any = None, number: int | None = None, curve: str = "ROC"
) -> tuple:
    """The metric of the area under a curve, of all classes or of one."""
    if labels.dtype.base_dtype != dtypes.bool_:
        logging.warning("Casting %s labels to bool.", labels.dtype)
        labels = find("cast")(labels, dtypes.bool_)
    chosen, weights = _column(as_float(predictions), weights, number)
    return find("metrics.auc")(labels if number is None else labels[:, number], chosen, weights, curve=curve)


def at_threshold(predictions: Tensor, labels: Tensor, weights: Any, threshold: float) -> dict[str, tuple]:
    """Accuracy, precision and recall when everything from a threshold on counts as positive."""
    positive = as_float(find("greater_equal")(predictions, threshold))

    def only(kind: str) -> tuple:
        both = find(f"metrics.{kind}_at_thresholds")(labels, predictions, (threshold,), as_float(weights))
        return tuple(find("squeeze")(t) for t in both)

    return {
        MetricKey.ACCURACY_MEAN % threshold: find("metrics.accuracy")(labels, positive, weights),
        MetricKey.PRECISION_MEAN % threshold: only("precision"),
        MetricKey.RECALL_MEAN % threshold: only("recall"),
    }
