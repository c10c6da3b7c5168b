"""Heads of ready-made models: a loss, predictions, metrics and signatures, by the kind of label."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from tensorfleet.api.losses.losses import Reduction, compute_weighted_loss
from tensorfleet.api.metrics.means import accuracy, mean
from tensorfleet.api.metrics.thresholds import auc
from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_collection, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.estimator.export_output import (
    DEFAULT_KEY,
    ClassificationOutput,
    PredictOutput,
    RegressionOutput,
)
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.feature_column.feature_column_v2 import NumericColumn
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features


class Head(abc.ABC):
    """The end of a model, from `logits_dimension` numbers for each example on."""

    logits_dimension = 1

    def __init__(self, weight_column: Any, loss_reduction: str) -> None:
        if loss_reduction not in Reduction.all() or loss_reduction == Reduction.NONE:
            raise ValueError(f"Invalid loss_reduction: {loss_reduction}")
        if weight_column is not None and not isinstance(weight_column, (str, NumericColumn)):
            raise TypeError(
                f"Weight column must be either a string or NumericColumn. Given type: {type(weight_column)}."
            )
        self._weight_column = weight_column
        self._loss_reduction = loss_reduction

    def create_estimator_spec(
        self,
        features: dict,
        mode: str,
        logits: Tensor,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
    ) -> EstimatorSpec:
        """The model in a mode; an optimizer, or what `train_op_fn(loss)` gives, trains it."""
        with name_scope("head"):
            predictions = self._predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions, export_outputs=self._outputs(predictions))
            labels = self._labels(_dense(labels, logits, self._label_dimension()))
            losses = self._losses(labels, logits)
            weights = self._weights(features, logits)
            reduction = self._loss_reduction
            loss = compute_weighted_loss(losses, weights, reduction=reduction)
            if mode == ModeKeys.EVAL:
                with name_scope("metrics"):
                    metrics = self._metrics(predictions, labels, weights, losses)
                return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
            if train_op_fn is None:
                train_op = optimizer.minimize(loss, global_step=get_global_step())
            else:
                train_op = train_op_fn(loss)
            updates = get_collection(GraphKeys.UPDATE_OPS)
            train_op = group(train_op, *updates) if updates else train_op
            average = _average(loss, losses, weights, reduction)
        scalar("loss", loss)
        if average is not None:
            scalar("average_loss", average)
        return EstimatorSpec(mode, predictions, loss, train_op)

    def _weights(self, features: dict, logits: Tensor) -> Any:
        """One weight for each example, [batch, 1]; 1 without a column of weights."""
        if self._weight_column is None:
            return 1.0
        column = self._weight_column
        if isinstance(column, str):
            column = find("feature_column.numeric_column")(column, shape=(1,))
        weights = column.dense(Features(features), None, False)
        return find("cast")(find("reshape")(weights, [-1, 1]), dtypes.float32)

    def _label_dimension(self) -> int:
        return 1

    def _labels(self, labels: Tensor) -> Tensor:
        return labels

    @abc.abstractmethod
    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor: ...

    @abc.abstractmethod
    def _predictions(self, logits: Tensor) -> dict: ...

    @abc.abstractmethod
    def _outputs(self, predictions: dict) -> dict: ...

    @abc.abstractmethod
    def _metrics(self, predictions: dict, labels: Tensor, weights: Any, losses: Tensor) -> dict: ...


def _dense(labels: Any, logits: Tensor, dimension: int) -> Tensor:
    """Labels as a tensor [batch, dimension]."""
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that your data contains "
            "your label feature. Check that your input_fn properly parses and returns labels."
        )
    if isinstance(labels, SparseTensor):
        raise ValueError(
            "SparseTensor labels are not supported. Labels must be a Tensor of shape [D0, D1, ..., DN, N]."
        )
    labels = find("convert_to_tensor")(labels)
    if labels.shape.ndims is not None and labels.shape.ndims == (logits.shape.ndims or 2) - 1:
        labels = find("expand_dims")(labels, -1)
    result = None if labels.shape.ndims is None else labels.shape.as_list()[-1]
    if result is not None and result != dimension:
        raise ValueError(
            f"Mismatched label shape. Expected labels dimension={dimension}.  Received {result}. Suggested Fix: If your "
            "classifier expects one-hot encoding label, check your n_classes argument to the estimator and/or the shape of "
            "your label. Otherwise, check the shape of your label."
        )
    return labels


def _average(loss: Tensor, losses: Tensor, weights: Any, reduction: str) -> Tensor | None:
    """The loss of a mean example, where `loss` is a sum."""
    if reduction == Reduction.SUM:
        return loss / find("reduce_sum")(weights * find("ones_like")(losses))
    return loss if reduction == Reduction.SUM_BY_NONZERO_WEIGHTS else None


class RegressionHead(Head):
    """Numbers, with the squared error."""

    def __init__(self, label_dimension: int, weight_column: Any, loss_reduction: str) -> None:
        super().__init__(weight_column, loss_reduction)
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        self.logits_dimension = label_dimension

    def _label_dimension(self) -> int:
        return self.logits_dimension

    def _labels(self, labels: Tensor) -> Tensor:
        return find("cast")(labels, dtypes.float32)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        return find("squared_difference")(logits, labels)

    def _predictions(self, logits: Tensor) -> dict:
        return {"predictions": find("cast")(logits, dtypes.float32)}

    def _outputs(self, predictions: dict) -> dict:
        value = RegressionOutput(predictions["predictions"])
        return {DEFAULT_KEY: value, "regression": value, "predict": PredictOutput(predictions)}

    def _metrics(self, predictions: dict, labels: Tensor, weights: Any, losses: Tensor) -> dict:
        return {
            "average_loss": mean(losses, weights, name="average_loss"),
            "prediction/mean": mean(predictions["predictions"], weights, name="prediction/mean"),
            "label/mean": mean(labels, weights, name="label/mean"),
        }


class _ClassHead(Head):
    """The base of heads for two and more classes: class names, and labels that are class names."""

    n_classes = 2

    def __init__(self, label_vocabulary: Any, weight_column: Any, loss_reduction: str) -> None:
        super().__init__(weight_column, loss_reduction)
        if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
            raise ValueError(
                f"label_vocabulary should be a list or a tuple. Given type: {type(label_vocabulary)}"
            )
        self._vocabulary = None if label_vocabulary is None else list(label_vocabulary)

    def _labels(self, labels: Tensor) -> Tensor:
        """The number of each class, [batch, 1]."""
        if self._vocabulary is not None:
            if labels.dtype != dtypes.string:
                raise ValueError(
                    f"Labels dtype should be string if there is a vocabulary. Instead got {labels.dtype}"
                )
            table = find("contrib.lookup.index_table_from_tensor")(self._vocabulary, name="class_id_lookup")
            labels = table.lookup(labels)
        elif not (labels.dtype.is_integer or (self.n_classes == 2 and labels.dtype.is_floating)):
            raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        highest = self.n_classes - 1
        checks = [
            find("assert_less_equal")(
                labels, find("cast")(highest, labels.dtype), message=f"Labels must be <= {highest}"
            ),
            find("assert_non_negative")(labels, message="Labels must be >= 0"),
        ]
        with control_dependencies(checks):
            return find("identity")(labels)

    def _classes(self, ids: Tensor) -> Tensor:
        if self._vocabulary is None:
            return find("as_string")(ids, name="str_classes")
        table = find("contrib.lookup.index_to_string_table_from_tensor")(
            self._vocabulary, name="class_string_lookup"
        )
        return table.lookup(ids)

    def _class_predictions(self, scores: Tensor, logits: Tensor) -> dict:
        """The classes with the best score, and all that there are, for each example."""
        ids = find("expand_dims")(find("argmax")(scores, axis=-1, name="classes"), -1)
        size = find("shape")(logits)[0]
        every = find("range")(self.n_classes)
        names = self._vocabulary or [str(i) for i in range(self.n_classes)]
        return {
            "class_ids": ids,
            "classes": self._classes(ids),
            "all_class_ids": find("tile")(find("expand_dims")(every, 0), [size, 1]),
            "all_classes": find("tile")(find("expand_dims")(find("constant")(names), 0), [size, 1]),
        }

    def _outputs(self, predictions: dict) -> dict:
        classes = ClassificationOutput(predictions["probabilities"], predictions["all_classes"])
        return {DEFAULT_KEY: classes, "classification": classes, "predict": PredictOutput(predictions)}


class BinaryClassHead(_ClassHead):
    """Two classes, with the cross entropy of a sigmoid."""

    def _labels(self, labels: Tensor) -> Tensor:
        return find("cast")(super()._labels(labels), dtypes.float32)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        return find("nn.sigmoid_cross_entropy_with_logits")(labels=labels, logits=logits)

    def _predictions(self, logits: Tensor) -> dict:
        logistic = find("sigmoid")(logits, name="logistic")
        both = find("concat")([find("zeros_like")(logits), logits], -1, name="two_class_logits")
        return {
            "logits": logits,
            "logistic": logistic,
            "probabilities": find("nn.softmax")(both, name="probabilities"),
            **self._class_predictions(both, logits),
        }

    def _outputs(self, predictions: dict) -> dict:
        return {**super()._outputs(predictions), "regression": RegressionOutput(predictions["logistic"])}

    def _metrics(self, predictions: dict, labels: Tensor, weights: Any, losses: Tensor) -> dict:
        logistic, ids = predictions["logistic"], predictions["class_ids"]
        labels_mean = mean(labels, weights, name="label/mean")
        weights = None if isinstance(weights, float) else weights
        return {
            "average_loss": mean(losses, weights, name="average_loss"),
            "accuracy": accuracy(labels, ids, weights, name="accuracy"),
            "precision": find("metrics.precision")(labels, ids, weights, name="precision"),
            "recall": find("metrics.recall")(labels, ids, weights, name="recall"),
            "prediction/mean": mean(logistic, weights, name="prediction/mean"),
            "label/mean": labels_mean,
            "accuracy_baseline": tuple(find("maximum")(value, 1 - value) for value in labels_mean),
            "auc": auc(labels, logistic, weights, name="auc"),
            "auc_precision_recall": auc(
                labels,
                logistic,
                weights,
                curve="PR",
                name="auc_precision_recall",
                summation_method="careful_interpolation",
            ),
        }


class MultiClassHead(_ClassHead):
    """More than two classes, with the cross entropy of a softmax."""

    def __init__(
        self, n_classes: int, label_vocabulary: Any, weight_column: Any, loss_reduction: str
    ) -> None:
        super().__init__(label_vocabulary, weight_column, loss_reduction)
        self.n_classes = self.logits_dimension = n_classes

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        losses = find("nn.sparse_softmax_cross_entropy_with_logits")(
            labels=find("squeeze")(labels, [-1]), logits=logits
        )
        return find("expand_dims")(losses, -1)

    def _predictions(self, logits: Tensor) -> dict:
        probabilities = find("nn.softmax")(logits, name="probabilities")
        return {"logits": logits, "probabilities": probabilities, **self._class_predictions(logits, logits)}

    def _metrics(self, predictions: dict, labels: Tensor, weights: Any, losses: Tensor) -> dict:
        weights = None if isinstance(weights, float) else weights
        return {
            "average_loss": mean(losses, weights, name="average_loss"),
            "accuracy": accuracy(labels, predictions["class_ids"], weights, name="accuracy"),
        }


def class_head(n_classes: int, label_vocabulary: Any, weight_column: Any, loss_reduction: str) -> Head:
    """The head for so many classes."""
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1: {n_classes}.")
    if label_vocabulary is not None and len(label_vocabulary) != n_classes:
        raise ValueError(
            f'"label_vocabulary" does not have "n_classes" items. n_classes={n_classes}, label_vocabulary={label_vocabulary}'
        )
    if n_classes == 2:
        return BinaryClassHead(label_vocabulary, weight_column, loss_reduction)
    return MultiClassHead(n_classes, label_vocabulary, weight_column, loss_reduction)
