"""Heads that tell classes apart: `tf.estimator.BinaryClassHead`, `MultiClassHead`, `MultiLabelHead`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet_legacy.estimator.export_output import ClassificationOutput, RegressionOutput
from tensorfleet_legacy.estimator.head import base_head_checks as head_checks
from tensorfleet_legacy.estimator.head.base_head import ReadyHead, broadcast, default
from tensorfleet_legacy.keras import metrics as measures
from tensorfleet_legacy.keras import metrics_confusion as counting

_CLASS_KEYS = ["class_ids", "classes", "all_class_ids", "all_classes"]


# The metrics at a threshold, from their name and the threshold.
_LIMITED: dict[str, Callable[[str, float], Any]] = {
    "accuracy": lambda name, limit: measures.BinaryAccuracy(name=name, threshold=limit),
    "precision": lambda name, limit: counting.Precision(name=name, thresholds=limit),
    "recall": lambda name, limit: counting.Recall(name=name, thresholds=limit),
}


def _at_thresholds(thresholds: tuple) -> dict[str, tuple[Callable, float]]:
    """The functions of the metrics at thresholds other than one half, by their key."""
    return {
        f"{name}/positive_threshold_{limit:g}": (kind, limit)
        for limit in thresholds
        for name, kind in _LIMITED.items()
    }


class _ClassHead(ReadyHead):
    """The base of heads for classes: the names of the classes."""

    _n_classes = 2

    def __init__(
        self, vocabulary: Any, weight_column: Any, loss_reduction: str, loss_fn: Any, name: str | None
    ) -> None:
        self._label_vocabulary = head_checks.checked_vocabulary(vocabulary)
        super().__init__(weight_column, loss_reduction, loss_fn, name)

    def _ids(self, labels: Tensor) -> Tensor:
        table = find("contrib.lookup.index_table_from_tensor")(
            tuple(self._label_vocabulary), name="class_id_lookup"
        )
        return table.lookup(labels)

    def _every_class(self, logits: Tensor) -> Tensor:
        """The names of all classes, for each example."""
        names = self._label_vocabulary or find("as_string")(find("range")(self._n_classes))
        return self._repeated(names, logits)

    def _repeated(self, values: Any, logits: Tensor) -> Tensor:
        return find("tile")(find("expand_dims")(values, 0), [find("shape")(logits)[0], 1])

    def _class_predictions(self, scores: Tensor, logits: Tensor) -> dict:
        """The class with the best score, and all that there are, for each example."""
        ids = find("expand_dims")(find("argmax")(scores, axis=-1, name="class_ids"), -1)
        if self._label_vocabulary is None:
            classes = find("as_string")(ids, name="str_classes")
        else:
            classes = find("contrib.lookup.index_to_string_table_from_tensor")(
                self._label_vocabulary, name="class_string_lookup"
            ).lookup(ids)
        every = self._repeated(find("range")(self._n_classes), logits)
        result = (ids, classes, every, self._every_class(logits))
        return dict(zip(_CLASS_KEYS, result, strict=True))

    def _exported(self, predictions: dict) -> dict:
        scores = predictions["probabilities"]
        output = ClassificationOutput(scores, self._every_class(scores))
        return default(output, classification=output)


class _BaselineAccuracy(measures.Mean):
    """The accuracy of always giving the class that is more frequent: of the mean of the labels."""

    def __init__(self, labels_mean: Any, name: str) -> None:
        measures.Metric.__init__(self, name=name)
        self.labels_mean = labels_mean

    @property
    def updates(self) -> list:
        """The keys of the mean that it is computed from."""
        return self.labels_mean.updates

    def result(self) -> Any:
        """The share of the class that is more frequent, so far."""
        total, count = self.labels_mean.total.value(), self.labels_mean.count.value()
        return find("div_no_nan")(find("maximum")(total, count - total), count)


class BinaryClassHead(_ClassHead):
    """Two classes, with the cross entropy of a sigmoid; metrics at `thresholds` besides those at one half."""

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Any = None,
        name: str | None = None,
    ) -> None:
        self._thresholds = tuple(thresholds or ())
        super().__init__(label_vocabulary, weight_column, loss_reduction, loss_fn, name)
        if any(limit <= 0 or limit >= 1 for limit in self._thresholds):
            raise ValueError(f"thresholds not in (0, 1): {(self._thresholds,)}.")

    def _processed(self, labels: Any, logits: Tensor) -> Tensor:
        labels = head_checks.checked_labels(labels, logits, 1)
        labels = labels if self._label_vocabulary is None else self._ids(labels)
        return head_checks.in_range(find("cast")(labels, dtypes.float32), 2)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        return find("nn.sigmoid_cross_entropy_with_logits")(labels=labels, logits=logits)

    def predictions(self, logits: Any, keys: Any = None) -> dict:
        """Logits, the probability of class 1, those of both, and the class: those of them that `keys` names."""
        asked = head_checks.only_known(keys, ["logits", "logistic", "probabilities", *_CLASS_KEYS])
        logits = head_checks.checked_logits(logits, 1)
        with name_scope("predictions", values=(logits,)):
            both = find("concat")([find("zeros_like")(logits), logits], -1, name="two_class_logits")
            by_name = {
                "logits": logits,
                "logistic": find("sigmoid")(logits, name="logistic"),
                "probabilities": find("nn.softmax")(both, name="probabilities"),
            }
            if set(asked) & set(_CLASS_KEYS):
                by_name.update(self._class_predictions(both, logits))
        return {key: by_name[key] for key in asked}

    def _exported(self, predictions: dict) -> dict:
        return {**super()._exported(predictions), "regression": RegressionOutput(predictions["logistic"])}

    def _measures(self) -> dict:
        labels_mean = measures.Mean(name="label/mean")
        return {
            "accuracy": measures.Accuracy(name="accuracy"),
            "precision": counting.Precision(name="precision"),
            "recall": counting.Recall(name="recall"),
            "prediction/mean": measures.Mean(name="prediction/mean"),
            "label/mean": labels_mean,
            "accuracy_baseline": _BaselineAccuracy(labels_mean, name="accuracy_baseline"),
            "auc": counting.AUC(name="auc"),
            "auc_precision_recall": counting.AUC(curve="PR", name="auc_precision_recall"),
            **{key: kind(key, limit) for key, (kind, limit) in _at_thresholds(self._thresholds).items()},
        }

    def _update(self, metrics: dict, labels: Tensor, logits: Tensor, weights: Any, given: Any) -> None:
        predictions = self.predictions(logits, ["logistic", "class_ids"])
        ids, logistic = predictions["class_ids"], predictions["logistic"]
        for key in ("accuracy", "precision", "recall"):
            metrics[key].update_state(labels, ids, sample_weight=weights)
        metrics["prediction/mean"].update_state(logistic, sample_weight=broadcast(weights, logistic))
        metrics["label/mean"].update_state(labels, sample_weight=broadcast(weights, labels))
        for key in ("auc", "auc_precision_recall", *_at_thresholds(self._thresholds)):
            metrics[key].update_state(labels, logistic, sample_weight=broadcast(weights, logistic))


class MultiClassHead(_ClassHead):
    """More than two classes, with the cross entropy of a softmax."""

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Any = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None:
            raise ValueError("n_classes cannot be None")
        super().__init__(label_vocabulary, weight_column, loss_reduction, loss_fn, name)
        if label_vocabulary is not None and len(label_vocabulary) != n_classes:
            raise ValueError(
                f'"label_vocabulary" does not have "n_classes" items. len(label_vocabulary)={len(label_vocabulary)}, '
                f"n_classes={n_classes}, label_vocabulary={label_vocabulary}"
            )
        if n_classes <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        self._n_classes = self._logits_dimension = n_classes

    def _processed(self, labels: Any, logits: Tensor) -> Tensor:
        labels = head_checks.checked_labels(labels, logits, 1)
        if self._label_vocabulary is None:
            if not labels.dtype.is_integer:
                raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        elif labels.dtype != dtypes.string:
            raise ValueError(
                f"Labels dtype should be string if there is a vocabulary. Instead got {labels.dtype}"
            )
        else:
            labels = self._ids(labels)
        return head_checks.in_range(labels, self._n_classes)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        labels = find("squeeze")(labels, [-1])
        losses = find("nn.sparse_softmax_cross_entropy_with_logits")(labels=labels, logits=logits)
        return find("expand_dims")(losses, -1)

    def predictions(self, logits: Any, keys: Any = None) -> dict:
        """Logits, probabilities and the class: those of them that `keys` names."""
        asked = head_checks.only_known(keys, ["logits", "probabilities", *_CLASS_KEYS])
        logits = head_checks.checked_logits(logits, self._n_classes)
        with name_scope("predictions", values=(logits,)):
            by_name = {"logits": logits, "probabilities": find("nn.softmax")(logits, name="probabilities")}
            if set(asked) & set(_CLASS_KEYS):
                by_name.update(self._class_predictions(logits, logits))
        return {key: by_name[key] for key in asked}

    def _measures(self) -> dict:
        return {"accuracy": measures.Accuracy(name="accuracy")}

    def _update(self, metrics: dict, labels: Tensor, logits: Tensor, weights: Any, given: Any) -> None:
        ids = self.predictions(logits, ["class_ids"])["class_ids"]
        metrics["accuracy"].update_state(labels, ids, sample_weight=weights)


class MultiLabelHead(_ClassHead):
    """Any number of classes for each example, with the cross entropy of a sigmoid for each class.

    Labels are rows of zeros and ones, or a sparse tensor of the classes that an example has.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Any = None,
        classes_for_class_based_metrics: Any = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None or n_classes < 2:
            raise ValueError(f"n_classes must be > 1 for multi-label classification. Given: {n_classes}")
        self._thresholds = tuple(thresholds or ())
        for limit in self._thresholds:
            if limit <= 0 or limit >= 1:
                raise ValueError(f"thresholds must be in (0, 1) range. Given: {limit}")
        if label_vocabulary is not None:
            if not isinstance(label_vocabulary, (list, tuple)):
                raise ValueError(
                    f"label_vocabulary must be a list or tuple. Given type: {type(label_vocabulary)}"
                )
            if len(label_vocabulary) != n_classes:
                raise ValueError(
                    f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(label_vocabulary)}"
                )
        super().__init__(label_vocabulary, weight_column, loss_reduction, loss_fn, name)
        self._n_classes = self._logits_dimension = n_classes
        self._measured = _class_numbers(classes_for_class_based_metrics, n_classes, label_vocabulary)

    def _processed(self, labels: Any, logits: Tensor) -> Tensor:
        if labels is None:
            raise ValueError(head_checks.NO_LABELS)
        if isinstance(labels, SparseTensor):
            labels = find("cast")(self._indicators(labels), dtypes.int64)
        else:
            message = "labels must be an integer indicator Tensor with values in [0, 1]"
            labels = head_checks.in_range(find("convert_to_tensor")(labels), 2, message)
        return head_checks.checked_labels(labels, logits, self._n_classes)

    def _indicators(self, labels: SparseTensor) -> Tensor:
        """The classes of each example."""
        if labels.dtype == dtypes.string:
            ids = SparseTensor(labels.indices, self._ids(labels.values), labels.dense_shape)
            return find("sparse_to_indicator")(ids, self._n_classes)
        if not labels.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        message = f"labels must be an integer SparseTensor with values in [0, {self._n_classes})"
        with control_dependencies([head_checks.in_range(labels.values, self._n_classes, message)]):
            return find("sparse_to_indicator")(labels, self._n_classes)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        labels = find("cast")(labels, logits.dtype)
        losses = find("nn.sigmoid_cross_entropy_with_logits")(labels=labels, logits=logits)
        return find("reduce_mean")(losses, axis=-1, keepdims=True)

    def predictions(self, logits: Any, keys: Any = None) -> dict:
        """Logits and the probability of each class: those of them that `keys` names."""
        asked = head_checks.only_known(keys, ["logits", "probabilities"])
        logits = head_checks.checked_logits(logits, self._n_classes)
        with name_scope("predictions", values=(logits,)):
            by_name = {"logits": logits, "probabilities": find("sigmoid")(logits, name="probabilities")}
        return {key: by_name[key] for key in asked}

    def _called(self, number: int) -> str:
        """The end of the names of the metrics of one class."""
        return f"class{number}" if self._label_vocabulary is None else self._label_vocabulary[number]

    def _measures(self) -> dict:
        result = {
            "auc": counting.AUC(name="auc"),
            "auc_precision_recall": counting.AUC(curve="PR", name="auc_precision_recall"),
            **{key: kind(key, limit) for key, (kind, limit) in _at_thresholds(self._thresholds).items()},
        }
        for number in self._measured:
            called = self._called(number)
            result[f"probability_mean/{called}"] = measures.Mean(name=f"probability_mean/{called}")
            result[f"auc/{called}"] = counting.AUC(name=f"auc/{called}")
            pr = f"auc_precision_recall/{called}"
            result[pr] = counting.AUC(curve="PR", name=pr)
        return result

    def _update(self, metrics: dict, labels: Tensor, logits: Tensor, weights: Any, given: Any) -> None:
        predictions = self.predictions(logits, ["probabilities"])["probabilities"]
        for key in ("auc", "auc_precision_recall", *_at_thresholds(self._thresholds)):
            metrics[key].update_state(labels, predictions, sample_weight=weights)
        for number in self._measured:
            called = self._called(number)
            mine, true = predictions[..., number : number + 1], labels[..., number : number + 1]
            metrics[f"probability_mean/{called}"].update_state(mine, sample_weight=broadcast(weights, mine))
            for key in (f"auc/{called}", f"auc_precision_recall/{called}"):
                metrics[key].update_state(true, mine, sample_weight=weights)


def _class_numbers(classes: Any, n_classes: int, vocabulary: Any) -> tuple[int, ...]:
    """The classes that have metrics of their own, given by number or by name."""
    classes = tuple(classes or ())
    if classes and isinstance(classes[0], str):
        if not vocabulary:
            raise ValueError(
                "label_vocabulary must be provided when classes_for_class_based_metrics are sting."
            )
        return tuple(vocabulary.index(name) for name in classes)
    for number in classes:
        if number < 0 or number >= n_classes:
            raise ValueError(
                f"All classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. Given: {number}"
            )
    return classes
