"""The names that estimators give predictions and metrics, where libraries look them up inside of TensorFlow."""

from __future__ import annotations

from tensorfleet.api import export, find, publish_lazily

_CANNED = "python.estimator.canned"
# The class that TensorFlow 1.15 has below its `Estimator`, with the same methods.
publish_lazily(lambda _: find("estimator.Estimator"), "python.estimator.estimator.EstimatorV2")


@export(f"{_CANNED}.prediction_keys.PredictionKeys")
class PredictionKeys:
    """What a model predicts, by its key."""

    CLASSES = "classes"
    CLASS_IDS = "class_ids"
    ALL_CLASSES = "all_classes"
    ALL_CLASS_IDS = "all_class_ids"
    LOGISTIC = "logistic"
    LOGITS = "logits"
    PREDICTIONS = "predictions"
    PROBABILITIES = "probabilities"
    TOP_K = "top_k"


@export(f"{_CANNED}.metric_keys.MetricKeys")
class MetricKeys:
    """What an evaluation measures, by its key."""

    LOSS = "loss"
    LOSS_MEAN = "average_loss"
    LOSS_REGULARIZATION = "regularization_loss"
    ACCURACY = "accuracy"
    PRECISION = "precision"
    RECALL = "recall"
    ACCURACY_BASELINE = "accuracy_baseline"
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
