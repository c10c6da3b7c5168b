"""Heads of `tf.contrib.learn`: from the output of a network to its predictions, loss, training, metrics and export."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tensorfleet_legacy.contrib.learn.metric_key import (
    MetricKey,
    as_float,
    at_threshold,
    auc_of,
    mean_of,
    share_of,
    weighed,
    weights_of,
)
from tensorfleet_legacy.contrib.learn.model_fn import ModelFnOps, PredictionKey, ProblemType
from tensorfleet_legacy.contrib.learn.run_config import ModeKeys
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_BIAS_RATE = 0.1


def check_mode(mode: Any) -> None:
    """Refuses what is no mode."""
    if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.INFER):
        raise ValueError(f"mode={mode} unrecognized.")


def key_of(head_name: str | None, key: str) -> str:
    """The name of a metric or summary of a head."""
    return f"{key}/{head_name}" if head_name else key


def report(head_name: str | None, loss: Tensor) -> None:
    """The summary of a loss, outside of all scopes."""
    with name_scope(""):
        scalar(key_of(head_name, MetricKey.LOSS), find("identity")(loss))


class Head(abc.ABC):
    """Makes a model function's result from its logits, or from the layer below them."""

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """The size of the last axis of the logits."""

    @abc.abstractmethod
    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        """The `ModelFnOps` for either `logits` or `logits_input`, which gets one more layer.

        `train_op_fn(loss)` is the operation that trains.
        """


class SingleHead(Head):
    """One head: kinds of it say what its labels, predictions, losses and metrics are."""

    _scope: str
    _problem: int

    def __init__(
        self,
        logits_dimension: int,
        label_name: str | None = None,
        weight_column_name: str | None = None,
        enable_centered_bias: bool = False,
        head_name: str | None = None,
    ) -> None:
        if logits_dimension is None or logits_dimension < 1:
            raise ValueError(f"Invalid logits_dimension {logits_dimension}.")
        self._logits_dimension = logits_dimension
        self._label_name = label_name
        self._weight_column_name = weight_column_name
        self._enable_centered_bias = enable_centered_bias
        self._head_name = head_name

    logits_dimension = readonly("_logits_dimension", "The size of the last axis of the logits.")
    label_name = readonly("_label_name", "Which of the labels are this head's.")
    weight_column_name = readonly("_weight_column_name", "The feature that is the examples' weights.")
    head_name = readonly("_head_name", "The head's name, behind those of its metrics and summaries.")

    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        """See `Head`."""
        known = None if mode == ModeKeys.INFER or labels is None else self._tensor_of(labels)
        values = [*features.values(), logits, logits_input]
        with variable_scope(scope, default_name=self.head_name or self._scope, values=values):
            logits = self._logits(logits, logits_input)
            check_mode(mode)
            bias = None
            if self._enable_centered_bias:
                bias = self._bias()
                logits = find("nn.bias_add")(logits, bias)
            with name_scope("predictions", values=[logits]):
                predictions = self._predictions(logits)
            by_name: dict[str, Any] = {
                "mode": mode,
                "predictions": predictions,
                "output_alternatives": self._alternatives(predictions),
            }
            if known is None:
                return ModelFnOps(**by_name)
            weights = weights_of(features, self.weight_column_name)
            ids = self._ids(known)
            loss, reported = self._loss(ids, logits, weights)
            report(self.head_name, reported)
            train = None
            if mode == ModeKeys.TRAIN:
                train = self._train(loss, ids, logits, weights, bias, train_op_fn)
            with name_scope("metrics", values=[reported, weights]):
                metrics = {
                    MetricKey.LOSS: find("metrics.mean")(reported),
                    **self._metrics(predictions, known, weights),
                }
            named = {key_of(self.head_name, k): m for k, m in metrics.items()}
            return ModelFnOps(**by_name, loss=loss, train_op=train, eval_metric_ops=named)

    def _tensor_of(self, labels: Any) -> Any:
        labels = convert_to_tensor_or_sparse_tensor(
            labels[self._label_name] if isinstance(labels, dict) else labels
        )
        if isinstance(labels, SparseTensor):
            raise ValueError("SparseTensor is not supported.")
        return labels

    def _logits(self, logits: Any, below: Any) -> Tensor:
        if logits is None:
            if below is None:
                raise ValueError("Neither logits nor logits_input supplied.")
            return find("contrib.layers.linear")(below, self.logits_dimension, scope="logits")
        if below is not None:
            raise ValueError("Both logits and logits_input supplied.")
        logits = to_tensor(logits, name="logits")
        if logits.shape.rank is not None:
            logits.shape.dims[-1].assert_is_compatible_with(self.logits_dimension)
        return logits

    def _bias(self) -> Any:
        """A bias that is trained beside the model, which learns what is left."""
        zeros = find("zeros")([self.logits_dimension])
        bias = find("Variable")(zeros, name="centered_bias_weight")
        for i in range(self.logits_dimension):
            scalar(key_of(self.head_name, f"centered_bias/bias_{i}"), bias[i])
        return bias

    def _train(
        self, loss: Tensor, labels: Any, logits: Tensor, weights: Any, bias: Any, train_op_fn: Any
    ) -> Operation:
        if train_op_fn is None:
            raise ValueError("train_op_fn can not be None in TRAIN mode")
        with name_scope("train_op", values=[loss]):
            train = train_op_fn(loss)
        if bias is None:
            return train
        alone = find("zeros_like")(logits) + bias
        with name_scope("centered_bias", values=[alone]):
            bias_loss = find("reduce_mean")(self._loss(labels, alone, weights), name="training_loss")
        step = find("train.AdagradOptimizer")(_BIAS_RATE).minimize(
            bias_loss, var_list=[bias], name="centered_bias_step"
        )
        return find("group")(train, step)

    def _ids(self, labels: Tensor) -> Tensor:
        """Labels as the loss wants them."""
        return labels

    def _alternatives(self, predictions: dict) -> dict:
        """The exported output: a problem's type and tensors, by the head's name."""
        return {self.head_name: (self._problem, predictions)}

    @abc.abstractmethod
    def _loss(self, labels: Tensor, logits: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
        """The loss to train with, and the one to report."""

    @abc.abstractmethod
    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """The predictions by name."""

    def _metrics(self, predictions: dict, labels: Tensor, weights: Any) -> dict[str, tuple]:
        return {}


def _in_columns(tensor: Any) -> Tensor:
    tensor = to_tensor(tensor)
    return find("expand_dims")(tensor, 1) if tensor.shape.rank == 1 else tensor


def squared(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    """The squares of the distances."""
    labels, logits = _in_columns(labels), _in_columns(logits)
    logits.shape.assert_is_compatible_with(labels.shape)
    return weighed(find("squared_difference")(logits, as_float(labels)), weights)


def poisson(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    """How unlikely counts are, where the logits are the logarithms of their means."""
    labels, logits = _in_columns(labels), _in_columns(logits)
    logits.shape.assert_is_compatible_with(labels.shape)
    return weighed(find("nn.log_poisson_loss")(as_float(labels), logits, compute_full_loss=True), weights)


def sigmoids(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    """The cross entropy of each class with itself."""
    labels = as_float(labels)
    return weighed(find("nn.sigmoid_cross_entropy_with_logits")(labels=labels, logits=logits), weights)


def _two_classes(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    return sigmoids(_in_columns(labels), logits, weights)


def _softmax(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    labels = to_tensor(labels)
    if not labels.dtype.is_integer:
        raise ValueError(f"Labels dtype should be integer Instead got {labels.dtype}.")
    columns = labels.shape.rank == 2
    ids = find("squeeze")(labels, [1]) if columns else labels
    losses = find("nn.sparse_softmax_cross_entropy_with_logits")(labels=ids, logits=logits)
    return weighed(find("expand_dims")(losses, 1) if columns else losses, weights)


def own_loss(loss_fn: Callable | None) -> Callable | None:
    """A loss of the caller's, `loss_fn(labels, logits, weights)`, as heads have them."""
    if loss_fn is None:
        return None
    for name in ("labels", "logits", "weights"):
        if name not in fn_args(getattr(loss_fn, "func", loss_fn)):
            raise ValueError(f"Argument {name} not found in loss_fn.")

    def both(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
        loss = loss_fn(labels, logits) if weights is None else loss_fn(labels, logits, weights)
        return loss, loss

    return both


class RegressionHead(SingleHead):
    """Numbers."""

    _scope, _problem = "regression_head", ProblemType.LINEAR_REGRESSION

    def __init__(self, loss_fn: Callable, link_fn: Callable, **common: Any) -> None:
        super().__init__(**common)
        self._loss_fn, self._link_fn = loss_fn, link_fn

    def _loss(self, labels: Tensor, logits: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
        return self._loss_fn(labels, logits, weights)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        key = PredictionKey.SCORES
        return {
            key: self._link_fn(
                find("squeeze")(logits, [1], name=key) if self.logits_dimension == 1 else logits
            )
        }


class _Classes(SingleHead):
    """Heads of classes, which are exported as texts beside their probabilities."""

    _usual_loss: Callable

    def __init__(
        self,
        thresholds: Any = None,
        metric_class_ids: Any = None,
        loss_fn: Callable | None = None,
        label_keys: Any = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self._thresholds = thresholds or (0.5,)
        self._loss_fn = loss_fn or type(self)._usual_loss
        self._metric_class_ids = tuple(metric_class_ids or ())
        self._label_keys = label_keys
        for number in self._metric_class_ids:
            if not 0 <= number < self.logits_dimension:
                raise ValueError(f"Class ID {number} not in [0, {self.logits_dimension}).")

    def _loss(self, labels: Tensor, logits: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
        return self._loss_fn(labels, logits, weights=weights)

    def _alternatives(self, predictions: dict) -> dict:
        probabilities = predictions[PredictionKey.PROBABILITIES]
        size = find("shape")(probabilities)
        names = self._label_keys or find("as_string")(find("range")(size[1]))
        classes = find("tile")(find("expand_dims")(names, 0), [size[0], 1], name="classes_tensor")
        exported = {PredictionKey.PROBABILITIES: probabilities, PredictionKey.CLASSES: classes}
        return {self.head_name: (self._problem, exported)}


def _with_zeros(logits: Tensor) -> Tensor:
    """The logits of two classes from those of the second."""
    return find("concat")([find("zeros_like")(logits), logits], 1)


class BinaryLogisticHead(_Classes):
    """Two classes by one logit."""

    _scope, _problem = "binary_logistic_head", ProblemType.LOGISTIC_REGRESSION
    _usual_loss = staticmethod(_two_classes)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        two = _with_zeros(logits)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.LOGISTIC: find("sigmoid")(logits, name=PredictionKey.LOGISTIC),
            PredictionKey.PROBABILITIES: find("nn.softmax")(two, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: find("argmax")(two, 1, name=PredictionKey.CLASSES),
        }

    def _metrics(self, predictions: dict, labels: Tensor, weights: Any) -> dict[str, tuple]:
        logistic, classes = predictions[PredictionKey.LOGISTIC], predictions[PredictionKey.CLASSES]
        result = {
            MetricKey.ACCURACY: find("metrics.accuracy")(labels, classes, weights),
            MetricKey.PREDICTION_MEAN: mean_of(logistic, weights),
            MetricKey.LABEL_MEAN: mean_of(labels, weights),
            MetricKey.ACCURACY_BASELINE: mean_of(labels, weights),
            MetricKey.AUC: auc_of(logistic, labels, weights),
            MetricKey.AUC_PR: auc_of(logistic, labels, weights, curve="PR"),
        }
        for threshold in self._thresholds:
            result.update(at_threshold(logistic, labels, weights, threshold))
        return result


class MultiClassHead(_Classes):
    """One of several classes; with `label_keys` labels and classes are texts."""

    _scope, _problem = "multi_class_head", ProblemType.CLASSIFICATION
    _usual_loss = staticmethod(_softmax)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.logits_dimension <= 2:
            raise ValueError(f"n_classes must be > 2: {self.logits_dimension}.")
        if self._label_keys and len(self._label_keys) != self.logits_dimension:
            raise ValueError("Length of label_keys must equal n_classes.")

    def _ids(self, labels: Tensor) -> Tensor:
        if not self._label_keys:
            return labels
        return find("contrib.lookup.index_table_from_tensor")(
            self._label_keys, name="label_id_lookup"
        ).lookup(labels)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        classes = find("argmax")(logits, 1, name=PredictionKey.CLASSES)
        if self._label_keys:
            names = find("contrib.lookup.index_to_string_table_from_tensor")(
                self._label_keys, name="class_string_lookup"
            )
            classes = names.lookup(classes)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: find("nn.softmax")(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: classes,
        }

    def _metrics(self, predictions: dict, labels: Tensor, weights: Any) -> dict[str, tuple]:
        classes = predictions[PredictionKey.CLASSES]
        result = {MetricKey.ACCURACY: find("metrics.accuracy")(labels, classes, weights)}
        for i in () if self._label_keys else self._metric_class_ids:
            result[MetricKey.CLASS_PREDICTION_MEAN % i] = share_of(classes, weights, i)
            result[MetricKey.CLASS_LABEL_MEAN % i] = share_of(labels, weights, i)
            for key, name in _MEANS.items():
                result[name % i] = mean_of(predictions[key], weights, i)
        return result


# The means of classes that all heads with several of them have.
_MEANS = {
    PredictionKey.PROBABILITIES: MetricKey.CLASS_PROBABILITY_MEAN,
    PredictionKey.LOGITS: MetricKey.CLASS_LOGITS_MEAN,
}


class MultiLabelHead(_Classes):
    """Any number of several classes: labels are ones and zeros, or sparse numbers of classes."""

    _scope, _problem = "multi_label_head", ProblemType.CLASSIFICATION
    _usual_loss = staticmethod(sigmoids)

    def _tensor_of(self, labels: Any) -> Tensor:
        labels = labels[self._label_name] if isinstance(labels, dict) else labels
        result = convert_to_tensor_or_sparse_tensor(labels)
        if not isinstance(result, SparseTensor):
            return result
        if self.logits_dimension < 2:
            raise ValueError("Must set num_classes >= 2 when passing labels as a SparseTensor.")
        return find("cast")(find("sparse_to_indicator")(result, self.logits_dimension), dtypes.int64)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        positive = find("greater")(logits, 0)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: find("sigmoid")(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: find("cast")(positive, dtypes.int64, name=PredictionKey.CLASSES),
        }

    def _metrics(self, predictions: dict, labels: Tensor, weights: Any) -> dict[str, tuple]:
        classes, likely = predictions[PredictionKey.CLASSES], predictions[PredictionKey.PROBABILITIES]
        result = {
            MetricKey.ACCURACY: find("metrics.accuracy")(labels, classes, weights),
            MetricKey.AUC: auc_of(likely, labels, weights),
            MetricKey.AUC_PR: auc_of(likely, labels, weights, curve="PR"),
        }
        for i in self._metric_class_ids:
            result[MetricKey.CLASS_PREDICTION_MEAN % i] = mean_of(classes, weights, i)
            result[MetricKey.CLASS_LABEL_MEAN % i] = mean_of(labels, weights, i)
            for key, name in _MEANS.items():
                result[name % i] = mean_of(predictions[key], weights, i)
            result[MetricKey.CLASS_AUC % i] = auc_of(likely, labels, weights, i)
            result[MetricKey.CLASS_AUC_PR % i] = auc_of(likely, labels, weights, i, curve="PR")
        return result


class BinarySvmHead(SingleHead):
    """Two classes by one logit, with the hinge loss of a support vector machine."""

    _scope, _problem = "binary_svm_head", ProblemType.LOGISTIC_REGRESSION

    def _loss(self, labels: Tensor, logits: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
        few = find("less_equal")(find("rank")(labels), 2)
        check = find("Assert")(few, ["labels shape should be either [batch_size, 1] or [batch_size]"])
        with control_dependencies([check]):
            columns = find("reshape")(labels, [-1, 1])
        return weighed(find("losses.hinge_loss")(columns, logits, reduction="none"), weights)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        key = PredictionKey.CLASSES
        return {PredictionKey.LOGITS: logits, key: find("argmax")(_with_zeros(logits), 1, name=key)}

    def _metrics(self, predictions: dict, labels: Tensor, weights: Any) -> dict[str, tuple]:
        classes = predictions[PredictionKey.CLASSES]
        return {MetricKey.ACCURACY: find("metrics.accuracy")(labels, classes, weights)}
