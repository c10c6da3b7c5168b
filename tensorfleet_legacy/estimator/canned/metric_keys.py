"""Names of the predictions and metrics of ready-made estimators."""

from __future__ import annotations

from tensorfleet_legacy.estimator.head.base_head import LOSS as _LOSS
from tensorfleet_legacy.estimator.head.base_head import LOSS_MEAN as _MEAN
from tensorfleet_legacy.estimator.head.base_head import LOSS_OF_WEIGHTS as _OF_WEIGHTS


class MetricKeys:
    """Names of metrics; those with a % take a threshold, the number of a class or its name."""

    LOSS = _LOSS
    LOSS_MEAN = _MEAN
    LOSS_REGULARIZATION = _OF_WEIGHTS
    ACCURACY = "accuracy"
    ACCURACY_BASELINE = "accuracy_baseline"
    PRECISION = "precision"
    RECALL = "recall"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    LABEL_MEAN = "label/mean"
    PREDICTION_MEAN = "prediction/mean"
    ACCURACY_AT_THRESHOLD = "accuracy/positive_threshold_%g"
    PRECISION_AT_THRESHOLD = "precision/positive_threshold_%g"
    RECALL_AT_THRESHOLD = "recall/positive_threshold_%g"
    PRECISION_AT_RECALL = "precision_at_recall/%g"
    RECALL_AT_PRECISION = "recall_at_precision/%g"
    PROBABILITY_MEAN_AT_CLASS = "probability_mean/class%d"
    AUC_AT_CLASS = "auc/class%d"
    AUC_PR_AT_CLASS = "auc_precision_recall/class%d"
    PROBABILITY_MEAN_AT_NAME = "probability_mean/%s"
    AUC_AT_NAME = "auc/%s"
    AUC_PR_AT_NAME = "auc_precision_recall/%s"


class PredictionKeys:
    """Names of predictions."""

    LOGITS = "logits"
    LOGISTIC = "logistic"
    PROBABILITIES = "probabilities"
    CLASS_IDS = "class_ids"
    CLASSES = "classes"
    ALL_CLASS_IDS = "all_class_ids"
    ALL_CLASSES = "all_classes"
    PREDICTIONS = "predictions"
    TOP_K = "top_k"
