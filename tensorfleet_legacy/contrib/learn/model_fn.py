"""Results of model functions of `tf.contrib.learn`, named metrics of an evaluation, and serving inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.sparse_tensor import convert_to_tensor_or_sparse_tensor
from tensorfleet_legacy.contrib.learn.run_config import ModeKeys
from tensorfleet_legacy.estimator.estimator_metrics import ReportedLoss
from tensorfleet_legacy.estimator.export import ServingInputReceiver, TensorServingInputReceiver
from tensorfleet_legacy.estimator.export_output import (
    DEFAULT_KEY,
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec
from tensorfleet_legacy.internals.util.tf_decorator import fn_args


class PredictionKey:
    """The names of predictions."""

    CLASSES = "classes"
    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    LOGISTIC = "logistic"
    SCORES = "scores"
    TOP_K = "top_k"
    GENERIC = "output"


class ProblemType:
    """The type of problem that a model solves, and so how it is served."""

    UNSPECIFIED = 0
    CLASSIFICATION = 1
    LINEAR_REGRESSION = 2
    LOGISTIC_REGRESSION = 3


class _Fields(NamedTuple):
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    output_alternatives: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    mode: str


class ModelFnOps(_Fields):
    """The result of a model function: the older `EstimatorSpec`, with `output_alternatives` for export.

    These are a dictionary of names to pairs of a `ProblemType` and a dictionary of tensors.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        output_alternatives: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
    ) -> ModelFnOps:
        ModeKeys.validate(mode)
        if train_op is None and mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        if train_op is not None and not isinstance(train_op, Operation):
            train_op = to_tensor(train_op).op
        if predictions is None and mode != ModeKeys.TRAIN:
            raise ValueError("Missing predictions.")
        if eval_metric_ops is not None and not isinstance(eval_metric_ops, dict):
            raise ValueError("eval_metric_ops must be a dict.")
        for hook in (*(training_hooks or ()), *(training_chief_hooks or ())):
            if not isinstance(hook, SessionRunHook):
                raise TypeError(
                    "All hooks returned from model_fn must be SessionRunHook instances, got instance of "
                    f"{type(hook)}: {hook}"
                )
        return super().__new__(
            cls,
            _all_tensors(predictions),
            _scalar(loss, mode),
            train_op,
            eval_metric_ops or {},
            output_alternatives,
            training_chief_hooks or [],
            training_hooks or [],
            scaffold,
            mode,
        )

    def estimator_spec(self, default_serving_output_alternative_key: Any = None) -> EstimatorSpec:
        """The same for `tf.estimator`; the key is that of the alternative that is served where none is named."""
        outputs = dict(self.output_alternatives or {})
        if len(outputs) > 1 and DEFAULT_KEY not in outputs:
            outputs[DEFAULT_KEY] = outputs[default_serving_output_alternative_key]
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            self.train_op,
            {k: v for k, v in self.eval_metric_ops.items() if k != "loss"},
            {key: _Alternative(*pair).typed() for key, pair in outputs.items()} or None,
            self.training_chief_hooks,
            self.training_hooks,
            self.scaffold,
        )


def _all_tensors(predictions: Any) -> Any:
    if isinstance(predictions, dict):
        return {k: convert_to_tensor_or_sparse_tensor(v) for k, v in predictions.items()}
    return None if predictions is None else convert_to_tensor_or_sparse_tensor(predictions)


def _scalar(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode != ModeKeys.INFER:
            raise ValueError("Missing loss.")
        return None
    loss = to_tensor(loss)
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar: {loss}.")
    return loss if loss.shape.is_compatible_with([]) else find("reshape")(loss, [])


class InputFnOps(NamedTuple):
    """The result of a serving input function: the model's features, no labels, and the tensors to feed."""

    features: Any
    labels: Any
    default_inputs: Any


def build_parsing_serving_input_fn(
    feature_spec: dict, default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A serving input function: the model is fed serialized `tf.Example`s."""

    def input_fn() -> InputFnOps:
        examples = find("placeholder")(dtypes.string, [default_batch_size], name="input_example_tensor")
        features = find("io.parse_example")(examples, feature_spec)
        return InputFnOps(features, None, {"examples": examples})

    return input_fn


def receiver_of(made: Any) -> Any:
    """The result of a serving input function in the form that estimators take."""
    if not isinstance(made, InputFnOps):
        return made
    kind = ServingInputReceiver if isinstance(made.features, dict) else TensorServingInputReceiver
    return kind(made.features, made.default_inputs)


class _Alternative(ExportOutput):
    """Outputs that are served as the problem's type says where the input allows it, else simply by name."""

    def __init__(self, problem: int, outputs: dict) -> None:
        self._problem = problem
        self._outputs = outputs

    def as_signature_def(self, receiver_tensors: dict) -> Any:
        try:
            return self.typed().as_signature_def(receiver_tensors)
        except (ValueError, KeyError):
            return PredictOutput(self._outputs).as_signature_def(receiver_tensors)

    def typed(self) -> ExportOutput:
        """The value for the problem's type."""
        outputs = self._outputs
        if self._problem in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
            classes = outputs.get(PredictionKey.CLASSES)
            scores = outputs.get(PredictionKey.SCORES, outputs.get(PredictionKey.PROBABILITIES))
            if classes is not None and classes.dtype != dtypes.string:
                classes = None
            return ClassificationOutput(scores, classes)
        if self._problem == ProblemType.LINEAR_REGRESSION:
            (value,) = outputs.values()
            return RegressionOutput(value)
        return PredictOutput(outputs)


class MetricSpec:
    """A metric of an evaluation: a function of predictions and labels, and which of several it is about."""

    def __init__(
        self,
        metric_fn: Callable,
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self.metric_fn = metric_fn
        self.prediction_key = prediction_key
        self.label_key = label_key
        self.weight_key = weight_key

    def __str__(self) -> str:
        function = getattr(self.metric_fn, "func", self.metric_fn)
        return (
            f"MetricSpec(metric_fn={getattr(function, '__name__', function)}, prediction_key={self.prediction_key}, "
            f"label_key={self.label_key}, weight_key={self.weight_key})"
        )

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """The metric's value and its update."""
        given = {
            "labels": _one("label", labels, self.label_key),
            "predictions": _one("prediction", predictions, self.prediction_key),
        }
        names = fn_args(self.metric_fn)
        if "targets" in names:
            given["targets"] = given.pop("labels")
        if not {"predictions"} & set(names):
            return self.metric_fn(given["predictions"], given.get("labels", given.get("targets")))
        if self.weight_key is not None:
            given["weights"] = inputs[self.weight_key]
        return self.metric_fn(**given)


def _one(what: str, tensors: Any, key: str | None) -> Any:
    """The tensor of a key, or the only one."""
    if key:
        if not isinstance(tensors, dict):
            raise ValueError(
                f"MetricSpec with {what}_key specified requires {what}s dict, got {tensors}.\nYou must not provide a "
                f"{what}_key if you only have a single Tensor as {what}s."
            )
        if key not in tensors:
            raise KeyError(f"Key '{key}' missing from {tensors.keys()}.")
        return tensors[key]
    if not isinstance(tensors, dict):
        return tensors
    if len(tensors) != 1:
        raise ValueError(
            f"MetricSpec without specified {what}_key requires {what}s tensor or single element dict, got {tensors}"
        )
    return next(iter(tensors.values()))


def metric_ops(metrics: Any, features: Any, labels: Any, predictions: Any) -> dict:
    """The operations of metrics by name: `MetricSpec`s or functions; (name, key) is about one of the predictions."""
    result = {}
    for name, metric in (metrics or {}).items():
        key = None
        if isinstance(name, tuple):
            name, key = name
        spec = metric if isinstance(metric, MetricSpec) else MetricSpec(metric, prediction_key=key)
        output = spec.create_metric_ops(features, labels, predictions)
        result[name] = tuple(output) if isinstance(output, (list, tuple)) else (output, output)
    return result


def spec_of(result: Any, mode: str, features: Any, labels: Any, metrics: Any) -> EstimatorSpec:
    """The result of a model function, in any of its forms, as an EstimatorSpec."""
    if isinstance(result, EstimatorSpec):
        extra = metric_ops(metrics, features, labels, result.predictions)
        return result._replace(eval_metric_ops={**result.eval_metric_ops, **extra}) if extra else result
    if not isinstance(result, ModelFnOps):
        if not (isinstance(result, (list, tuple)) and len(result) == 3):
            raise ValueError("Unrecognized value returned by model_fn, please return ModelFnOps.")
        result = ModelFnOps(mode, *result)
    ops = dict(result.eval_metric_ops or {})
    if mode == ModeKeys.EVAL:
        ops.update(metric_ops(metrics, features, labels, result.predictions))
    outputs: Any = None
    if result.output_alternatives and mode == ModeKeys.INFER:
        outputs = {
            key or DEFAULT_KEY: _Alternative(*pair) for key, pair in result.output_alternatives.items()
        }
    if "loss" in ops:
        ops["loss"] = ReportedLoss(*ops["loss"])
    return EstimatorSpec(
        mode,
        result.predictions,
        result.loss if mode != ModeKeys.INFER else None,
        result.train_op if mode == ModeKeys.TRAIN else None,
        ops,
        outputs,
        result.training_chief_hooks,
        result.training_hooks,
        result.scaffold,
    )
