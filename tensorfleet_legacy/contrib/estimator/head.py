"""`tf.contrib.estimator.binary_classification_head` and its relatives: heads as functions, from before they were classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.base import arguments
from tensorfleet_legacy.estimator.head import multi_class_head as class_heads
from tensorfleet_legacy.estimator.head import regression_head as number_heads
from tensorfleet_legacy.estimator.head.multi_head import MultiHead

_LABELS = "weight_column=None, {}loss_reduction=MEAN, loss_fn=None, {}name=None"


def _made_by(name: str, head: Callable, text: str) -> Callable:
    """A function that makes a head."""
    signature = arguments.signature_of(text, MEAN=Reduction.SUM_OVER_BATCH_SIZE)
    return arguments.function(signature, name, lambda given: head(**given), head.__doc__)


binary_classification_head = _made_by(
    "binary_classification_head",
    class_heads.BinaryClassHead,
    _LABELS.format("thresholds=None, label_vocabulary=None, ", ""),
)
multi_class_head = _made_by(
    "multi_class_head",
    class_heads.MultiClassHead,
    "n_classes, " + _LABELS.format("label_vocabulary=None, ", ""),
)
multi_label_head = _made_by(
    "multi_label_head",
    class_heads.MultiLabelHead,
    "n_classes, "
    + _LABELS.format("thresholds=None, label_vocabulary=None, ", "classes_for_class_based_metrics=None, "),
)
regression_head = _made_by(
    "regression_head",
    number_heads.RegressionHead,
    _LABELS.format("label_dimension=1, ", "inverse_link_fn=None, "),
)
poisson_regression_head = _made_by(
    "poisson_regression_head",
    number_heads.PoissonRegressionHead,
    "weight_column=None, label_dimension=1, loss_reduction=MEAN, compute_full_loss=True, name=None",
)
logistic_regression_head = _made_by(
    "logistic_regression_head",
    number_heads.LogisticRegressionHead,
    "weight_column=None, loss_reduction=MEAN, name=None",
)


def multi_head(heads: Any, head_weights: Any = None) -> MultiHead:
    """Several heads at the end of one model; each has a name."""
    return MultiHead(heads, head_weights)
