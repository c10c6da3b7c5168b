"""The result of a model function: `tf.estimator.EstimatorSpec`, checked as soon as it is made."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorfleet.api.train.scaffold import Scaffold
from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base import nest
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet_legacy.estimator.export_output import checked_outputs


class ModeKeys:
    """The mode that a model is built for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict
    export_outputs: Any
    training_chief_hooks: tuple
    training_hooks: tuple
    scaffold: Scaffold
    evaluation_hooks: tuple
    prediction_hooks: tuple


class EstimatorSpec(_Fields):
    """The tensors and operations that an Estimator runs: what is needed depends on `mode`.

    TRAIN needs `loss` and `train_op`, EVAL `loss` (and has `eval_metric_ops`, a dictionary of what `tf.metrics` functions
    give), PREDICT `predictions`: a tensor or a dictionary of tensors.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        export_outputs: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Scaffold | None = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> EstimatorSpec:
        if train_op is None and mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        if train_op is not None:
            _need(train_op, "train_op", (Tensor, Operation, Variable))
        loss = _checked_loss(loss, mode)
        predictions = _checked_predictions(predictions, mode)
        if mode == ModeKeys.PREDICT:
            export_outputs = checked_outputs(export_outputs, predictions)
        scaffold = Scaffold() if scaffold is None else scaffold
        if not isinstance(scaffold, Scaffold):
            raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")
        return super().__new__(
            cls,
            mode,
            predictions,
            loss,
            train_op,
            _checked_metrics(eval_metric_ops),
            export_outputs,
            checked_hooks(training_chief_hooks),
            checked_hooks(training_hooks),
            scaffold,
            checked_hooks(evaluation_hooks),
            checked_hooks(prediction_hooks),
        )

    def _replace(self, **kwargs: Any) -> EstimatorSpec:
        if kwargs.get("mode", self.mode) != self.mode:
            raise ValueError("mode of EstimatorSpec cannot be changed.")
        return EstimatorSpec(**{**self._asdict(), **kwargs})


def _need(value: Any, what: str, kinds: tuple = (Tensor, Variable, SparseTensor)) -> None:
    """TypeError unless a value is of the kinds; ValueError when it is of another graph."""
    if not isinstance(value, kinds):
        raise TypeError(
            f"{what} must be {'Operation or Tensor' if Operation in kinds else 'Tensor'}, given: {value}"
        )
    if value.graph is not get_default_graph():
        name = getattr(value, "name", value)
        raise ValueError(
            f'{what} with "{name}" must be from the default graph. It was made outside of the graph that the Estimator '
            "calls the model_fn in, or in an earlier call of it: make everything anew inside model_fn."
        )


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        return None
    _need(loss, "loss")
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar, given: {loss}")
    return apply("Reshape", loss, []) if loss.shape.ndims not in (None, 0) else loss


def _checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        return {}
    if isinstance(predictions, dict):
        for key, value in predictions.items():
            _need(value, f"predictions[{key}]")
        return dict(predictions)
    _need(predictions, "predictions")
    return predictions


def _checked_metrics(metrics: Any) -> dict:
    if metrics is None:
        return {}
    if not isinstance(metrics, dict):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
    for key, value in metrics.items():
        if is_metric_object(value):
            if not value.updates:
                raise ValueError(f'Please call update_state(...) on the "{value.name}" metric')
            for variable in value.variables:  # they start anew with each evaluation
                graph = get_default_graph()
                if variable not in graph.get_collection_ref(GraphKeys.LOCAL_VARIABLES):
                    graph.add_to_collection(GraphKeys.LOCAL_VARIABLES, variable)
            continue
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(
                f"Values of eval_metric_ops must be (metric_value, update_op) tuples, given: {value} for key: {key}"
            )
        for part in [*nest.flatten(value[0]), value[1]]:
            _need(part, f"eval_metric_ops[{key}]", (Tensor, Operation, Variable))
    return dict(metrics)


def is_metric_object(value: Any) -> bool:
    """Whether a metric is an object that gives its result and its updates, as Keras's are."""
    return callable(getattr(value, "result", None)) and hasattr(value, "updates")


def checked_hooks(hooks: Any) -> tuple:
    """Hooks as a tuple; TypeError when one is none."""
    hooks = tuple(hooks or ())
    for hook in hooks:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook}")
    return hooks
