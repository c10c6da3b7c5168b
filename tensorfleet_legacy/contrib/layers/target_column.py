"""`tf.contrib.layers`: what a model's outputs are for, before heads: losses, predictions and metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.learn.model_fn import ProblemType
from tensorfleet_legacy.contrib.losses.loss_ops import hinge_loss


def _column(target: Any) -> Tensor:
    """Targets as [batch, n]."""
    target = to_tensor(target)
    return find("expand_dims")(target, 1) if target.shape.ndims == 1 else target


def _squares(logits: Tensor, target: Any) -> Tensor:
    target = _column(target)
    logits.shape.assert_is_compatible_with(target.shape)
    return find("square")(logits - find("cast")(target, dtypes.float32))


def _of_two_classes(logits: Tensor, target: Any) -> Tensor:
    labels = find("cast")(_column(target), dtypes.float32)
    return find("nn.sigmoid_cross_entropy_with_logits")(labels=labels, logits=logits)


def _of_classes(logits: Tensor, target: Any) -> Tensor:
    target = to_tensor(target)
    if not target.dtype.is_integer:
        raise ValueError(f"Target's dtype should be integer Instead got {target.dtype}.")
    flat = find("squeeze")(target, [1]) if target.shape.ndims == 2 else target
    return find("nn.sparse_softmax_cross_entropy_with_logits")(labels=flat, logits=logits)


def _hinge(logits: Tensor, target: Any) -> Tensor:
    return hinge_loss(logits, find("reshape")(target, [-1, 1]))


class _Target:
    """A loss of logits and targets, weighed by a feature."""

    def __init__(
        self, loss_fn: Callable, columns: int, label_name: Any, weight_column_name: Any, problem_type: int
    ) -> None:
        self._loss_fn, self._num_label_columns = loss_fn, columns
        self._label_name, self._weight_column_name = label_name, weight_column_name
        self._problem_type = problem_type

    label_name = readonly("_label_name", "The key of the labels, if they are a dictionary.")
    weight_column_name = readonly("_weight_column_name", "The feature that weighs examples.")
    num_label_columns = readonly("_num_label_columns", "How many logits an example has.")
    problem_type = readonly("_problem_type", "A value of `ProblemType`.")

    def get_weight_tensor(self, features: Any) -> Tensor | None:
        """The weights of the examples, if there are any."""
        if not self._weight_column_name:
            return None
        return find("reshape")(find("cast")(features[self._weight_column_name], dtypes.float32), [-1])

    def _each(self, logits: Tensor, target: Any, features: Any) -> tuple[Tensor, Tensor | None]:
        target = target[self._label_name] if isinstance(target, dict) else target
        losses, weights = self._loss_fn(to_tensor(logits), target), self.get_weight_tensor(features)
        return (losses if weights is None else find("reshape")(losses, [-1]) * weights), weights

    def training_loss(
        self, logits: Tensor, target: Any, features: Any, name: str = "training_loss"
    ) -> Tensor:
        """The mean of the weighed losses."""
        return find("reduce_mean")(self._each(logits, target, features)[0], name=name)

    def loss(self, logits: Tensor, target: Any, features: Any) -> Tensor:
        """The weighed mean of the losses."""
        losses, weights = self._each(logits, target, features)
        if weights is None:
            return find("reduce_mean")(losses, name="loss")
        return find("div")(find("reduce_sum")(losses), find("reduce_sum")(weights), name="loss")

    def _measured(self, predictions: Tensor, labels: Any, metrics: dict, features: Any) -> dict:
        labels, weights = find("cast")(labels, predictions.dtype), self.get_weight_tensor(features)
        options = {} if weights is None else {"weights": weights}
        return {name: metric(predictions, labels, **options) for name, metric in metrics.items()}


class RegressionTarget(_Target):
    """Numbers."""

    def logits_to_predictions(self, logits: Tensor, proba: bool = False) -> Tensor:
        """The numbers."""
        return find("squeeze")(logits, [1]) if self._num_label_columns == 1 else logits

    def get_eval_ops(self, features: Any, logits: Tensor, labels: Any, metrics: Any = None) -> dict:
        """The mean loss, and metrics of the predictions."""
        result = {"loss": find("metrics.mean")(self.loss(logits, labels, features))}
        predictions = self.logits_to_predictions(logits)
        return {**result, **self._measured(predictions, labels, metrics or {}, features)}


class ClassTarget(_Target):
    """Classes."""

    def _all_logits(self, logits: Tensor) -> Tensor:
        if self._num_label_columns > 1:
            return logits
        return find("concat")([find("zeros_like")(logits), logits], 1)

    def logits_to_predictions(self, logits: Tensor, proba: bool = False) -> Tensor:
        """The likeliest classes, or the probabilities of all."""
        every = self._all_logits(logits)
        return find("nn.softmax")(every) if proba else find("argmax")(every, 1)

    def get_eval_ops(self, features: Any, logits: Tensor, labels: Any, metrics: Any = None) -> dict:
        """The mean loss, the metrics of two classes, and metrics by name or by (name, kind of predictions)."""
        result = {"loss": find("metrics.mean")(self.loss(logits, labels, features))}
        if self._num_label_columns == 1:
            chances, truth = find("sigmoid")(logits), find("cast")(_column(labels), dtypes.float32)
            for name, metric in get_default_binary_metrics_for_eval([0.5]).items():
                result[name] = metric(chances, truth)
        chosen: dict[str, dict] = {"classes": {}, "probabilities": {}}
        asked = {"accuracy": find("contrib.metrics.streaming_accuracy")} if metrics is None else metrics
        for name, metric in asked.items():
            label, kind = name if isinstance(name, tuple) and len(name) == 2 else (name, "classes")
            if not isinstance(label, str) or kind not in chosen:
                raise ValueError(
                    f"Ignoring metric {name}. The 2nd element of its name should be either 'classes' or 'probabilities'."
                )
            chosen[kind][label] = metric
        for kind, some in chosen.items():
            if some:
                predictions = self.logits_to_predictions(logits, proba=kind == "probabilities")
                result.update(self._measured(predictions, labels, some, features))
        return result


class SvmTarget(ClassTarget):
    """Two classes, with a margin between them."""

    def logits_to_predictions(self, logits: Tensor, proba: bool = False) -> Tensor:
        """The classes; there are no probabilities."""
        if proba:
            raise ValueError("logits to probabilities is not supported for _BinarySvmTargetColumn")
        return super().logits_to_predictions(logits)


def regression_target(
    label_name: str | None = None, weight_column_name: str | None = None, label_dimension: int = 1
) -> RegressionTarget:
    """Targets that are numbers, with a squared loss."""
    kind = ProblemType.LINEAR_REGRESSION
    return RegressionTarget(_squares, label_dimension, label_name, weight_column_name, kind)


def multi_class_target(
    n_classes: int, label_name: str | None = None, weight_column_name: str | None = None
) -> ClassTarget:
    """Targets that are classes, with a cross entropy."""
    if n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    loss, columns = (_of_two_classes, 1) if n_classes == 2 else (_of_classes, n_classes)
    return ClassTarget(loss, columns, label_name, weight_column_name, ProblemType.CLASSIFICATION)


def binary_svm_target(label_name: str | None = None, weight_column_name: str | None = None) -> SvmTarget:
    """Targets of two classes, with a hinge loss."""
    return SvmTarget(_hinge, 1, label_name, weight_column_name, ProblemType.CLASSIFICATION)


def get_default_binary_metrics_for_eval(thresholds: Any) -> dict[str, Callable]:
    """Metrics of probabilities and labels of two classes, by name; each takes (predictions, labels, weights)."""

    def streaming(name: str, **more: Any) -> Callable:
        def metric(predictions: Any, labels: Any, weights: Any = None) -> Any:
            return find(f"metrics.{name}")(labels, predictions, weights=weights, **more)

        return metric

    def mean_of(which: int) -> Callable:
        return lambda predictions, labels, weights=None: find("metrics.mean")(
            (predictions, labels)[which], weights=weights
        )

    def at(name: str, threshold: float) -> Callable:
        def metric(predictions: Any, labels: Any, weights: Any = None) -> Any:
            said = find("cast")(predictions >= threshold, dtypes.float32)
            return find(f"metrics.{name}")(labels, said, weights=weights)

        return metric

    result = {
        "labels/prediction_mean": mean_of(0),
        "labels/actual_target_mean": mean_of(1),
        "accuracy/baseline_target_mean": mean_of(1),
        "auc": streaming("auc"),
    }
    for cut in thresholds:
        result[f"accuracy/threshold_{cut:f}_mean"] = at("accuracy", cut)
        result[f"precision/positive_threshold_{cut:f}_mean"] = at("precision", cut)
        result[f"recall/positive_threshold_{cut:f}_mean"] = at("recall", cut)
    return result
