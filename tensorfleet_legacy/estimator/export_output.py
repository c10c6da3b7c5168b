"""Outputs of a served model: `tf.estimator.export.PredictOutput` and its relatives, and their signatures."""

from __future__ import annotations

import abc
from typing import Any

from tensorfleet.api.saved_model import names
from tensorfleet.api.saved_model.signatures import (
    classification_signature_def,
    is_valid_signature,
    predict_signature_def,
    regression_signature_def,
)
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.graph.sparse_tensor import SparseTensor

DEFAULT_KEY = names.DEFAULT_SIGNATURE


class ExportOutput(abc.ABC):
    """The outputs of a model under one signature of a SavedModel."""

    __metaclass__ = abc.ABCMeta  # TensorFlow's has this name of Python 2

    @abc.abstractmethod
    def as_signature_def(self, receiver_tensors: dict) -> Any:
        """The `SignatureDef` from these inputs to this output."""


def _only_examples(receiver_tensors: dict, what: str) -> Any:
    if len(receiver_tensors) != 1:
        raise ValueError(
            f"{what} input must be a single string Tensor; got {receiver_tensors}. A model that takes tensors of other "
            "kinds gives a PredictOutput."
        )
    ((_, examples),) = receiver_tensors.items()
    if not isinstance(examples, Tensor) or examples.dtype != dtypes.string:
        raise ValueError(f"{what} input must be a single string Tensor; got {receiver_tensors}")
    return examples


class ClassificationOutput(ExportOutput):
    """Scores, classes or both for each `tf.Example`: `scores` float [batch, n], `classes` strings [batch, n]."""

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        for value, kind, what in ((scores, "floating", "scores"), (classes, "string", "classes")):
            right = isinstance(value, Tensor) and (
                value.dtype.is_floating if kind == "floating" else value.dtype == dtypes.string
            )
            if value is not None and not right:
                raise ValueError(
                    f"Classification {what} must be a {'float32' if kind == 'floating' else kind} Tensor; got {value}"
                )
        self._scores = scores
        self._classes = classes

    scores = readonly("_scores", "The score of each class.")
    classes = readonly("_classes", "The names of the classes.")

    def as_signature_def(self, receiver_tensors: dict) -> Any:
        """A signature to classify serialized `tf.Example`s."""
        return classification_signature_def(
            _only_examples(receiver_tensors, "Classification"), self._classes, self._scores
        )


class RegressionOutput(ExportOutput):
    """A float for each `tf.Example`."""

    def __init__(self, value: Any) -> None:
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self._value = value

    value = readonly("_value", "The float.")

    def as_signature_def(self, receiver_tensors: dict) -> Any:
        """A signature to regress serialized `tf.Example`s."""
        return regression_signature_def(_only_examples(receiver_tensors, "Regression"), self._value)


class PredictOutput(ExportOutput):
    """Any tensors, by name; a single tensor is called "output"."""

    def __init__(self, outputs: Any) -> None:
        outputs = outputs if isinstance(outputs, dict) else {"output": outputs}
        for key, value in outputs.items():
            if not isinstance(key, (str, tuple)):
                raise ValueError(f"Prediction output key must be a string or tuple of strings; got {key}.")
            if not isinstance(value, (Tensor, SparseTensor, Variable)):
                raise ValueError(f"Prediction output value must be a Tensor; got {value}")
        self._outputs = {"/".join(k) if isinstance(k, tuple) else k: v for k, v in outputs.items()}

    outputs = readonly("_outputs", "The tensors by name.")

    def as_signature_def(self, receiver_tensors: dict) -> Any:
        """A signature from any tensors to any tensors."""
        return predict_signature_def(receiver_tensors, self._outputs)


class SupervisedOutput(ExportOutput):
    """The loss, predictions and metrics of a model that is exported to be trained or evaluated.

    Each is one tensor or several by name, a metric a pair of its value and what updates it. The names in the
    signature begin with what they are: "loss", "predictions/x", "metrics/x/value" and "metrics/x/update_op".
    """

    METHOD = ""
    LOSS_NAME, PREDICTIONS_NAME, METRICS_NAME = "loss", "predictions", "metrics"
    METRIC_VALUE_SUFFIX, METRIC_UPDATE_SUFFIX = "value", "update_op"

    def __init__(self, loss: Any = None, predictions: Any = None, metrics: Any = None) -> None:
        self._loss = None if loss is None else _under(self.LOSS_NAME, _tensors(loss, self.LOSS_NAME))
        self._predictions = self._metrics = None
        if predictions is not None:
            result = _tensors(predictions, self.PREDICTIONS_NAME)
            self._predictions = _under(self.PREDICTIONS_NAME, result)
        if metrics is not None:
            self._metrics = _under(self.METRICS_NAME, self._wrap_and_check_metrics(metrics))

    loss = readonly("_loss", "The losses by name.")
    predictions = readonly("_predictions", "The predictions by name.")
    metrics = readonly("_metrics", "The values of metrics and their updates by name.")

    def _wrap_and_check_metrics(self, metrics: Any) -> dict[str, Any]:
        result = {}
        for key, metric in (metrics if isinstance(metrics, dict) else {self.METRICS_NAME: metrics}).items():
            value, update = metric if isinstance(metric, tuple) else (metric.result(), metric.updates[0])
            name = _joined(key, str(key))
            if not isinstance(value, Tensor):
                raise ValueError(f"{key} output value must be a Tensor; got {value}.")
            if not isinstance(update, (Tensor, Operation)):
                raise ValueError(f"{key} update_op must be a Tensor or Operation; got {update}.")
            if isinstance(update, Operation):  # a signature names tensors only
                with control_dependencies([update]):
                    update = find("constant")([], name="metric_op_wrapper")
            result[f"{name}/{self.METRIC_VALUE_SUFFIX}"] = value
            result[f"{name}/{self.METRIC_UPDATE_SUFFIX}"] = update
        return result

    def as_signature_def(self, receiver_tensors: dict) -> Any:
        """A signature of TensorFlow's own kind for training or evaluation."""
        outputs = {**(self._loss or {}), **(self._predictions or {}), **(self._metrics or {})}
        result = predict_signature_def(receiver_tensors, outputs)
        result.method_name = self.METHOD
        return result


class TrainOutput(SupervisedOutput):
    """The outputs of a model during training."""

    METHOD = "tensorflow/supervised/training"


class EvalOutput(SupervisedOutput):
    """The outputs of a model during evaluation."""

    METHOD = "tensorflow/supervised/eval"


def _joined(key: Any, what: str) -> str:
    name = "/".join(key) if isinstance(key, tuple) else key
    if not isinstance(name, str):
        raise ValueError(f"{what} output key must be a string; got {name}.")
    return name


def _tensors(outputs: Any, what: str) -> dict[str, Any]:
    result = {}
    for key, value in (outputs if isinstance(outputs, dict) else {what: outputs}).items():
        if not isinstance(value, Tensor):
            raise ValueError(f"{what} output value must be a Tensor; got {value}.")
        result[_joined(key, what)] = value
    return result


def _under(what: str, outputs: dict[str, Any]) -> dict[str, Any]:
    return {key if key.startswith(what) else f"{what}/{key}": value for key, value in outputs.items()}


def outputs_for_mode(
    mode: str,
    serving_export_outputs: Any = None,
    predictions: Any = None,
    loss: Any = None,
    metrics: Any = None,
) -> dict:
    """The outputs of a model in a mode of Keras or of estimators, by the key of their signature."""
    if mode == "train":
        return {"train": TrainOutput(loss, predictions, metrics)}
    if mode in ("test", "eval"):
        return {"eval": EvalOutput(loss, predictions, metrics)}
    if mode in ("predict", "infer"):
        return checked_outputs(serving_export_outputs, predictions)
    raise ValueError(f"Export output type not found for mode: {mode}. Expected train, test or predict.")


def checked_outputs(outputs: Any, predictions: Any) -> dict:
    """The outputs of a model that predicts, one of them under the default key."""
    if outputs is None:
        outputs = {DEFAULT_KEY: PredictOutput(predictions)}
    if not isinstance(outputs, dict):
        raise TypeError(f"export_outputs must be dict, given: {outputs}")
    for value in outputs.values():
        if not isinstance(value, ExportOutput):
            raise TypeError(f"Values in export_outputs must be ExportOutput objects. Given: {outputs}")
    if len(outputs) == 1:
        ((_, value),) = outputs.items()
        outputs.setdefault(DEFAULT_KEY, value)
    elif DEFAULT_KEY not in outputs:
        raise ValueError(
            "Multiple export_outputs were provided, but none of them is specified as the default. Do this by naming one "
            "of them with signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY."
        )
    return outputs


def signatures(receiver_tensors: Any, outputs: dict, alternatives: Any, serving: bool) -> dict:
    """The signatures of a model: one for each output, and for each output with each alternative of the inputs."""
    if not isinstance(outputs, dict):
        raise ValueError(f"export_outputs must be a dict and not {type(outputs)}")
    inputs = receiver_tensors if isinstance(receiver_tensors, dict) else {"input": receiver_tensors}
    result, refused = {}, {}
    for key, output in outputs.items():
        name = key or "None"
        try:
            signature = output.as_signature_def(inputs)
        except ValueError as e:
            refused[name] = str(e)
            continue
        result[name] = signature
    if alternatives is not None:
        if not isinstance(alternatives, dict):
            raise ValueError(
                "receiver_tensors_alternatives must be a dict {alternative_name: receiver_tensors}"
            )
        for alternative, tensors in alternatives.items():
            given = tensors if isinstance(tensors, dict) else {"input": tensors}
            for key, output in outputs.items():
                name = f"{alternative}:{key or 'None'}"
                try:
                    result[name] = output.as_signature_def(given)
                except ValueError as e:
                    refused[name] = str(e)
    for name, reason in refused.items():
        logging.warning("Signature %s is left out of the exported model: %s", name, reason)
    if not serving:
        return result
    return {name: signature for name, signature in result.items() if is_valid_signature(signature)}
