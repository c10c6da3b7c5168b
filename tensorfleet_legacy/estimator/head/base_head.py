"""`tf.estimator.Head`: the end of a model as programs give it to `DNNEstimator` and its relatives, or write it themselves."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from tensorfleet.api.distribute import context as distribution
from tensorfleet.api.losses.losses import Reduction, compute_weighted_loss
from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_collection, name_scope
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.estimator.export_output import DEFAULT_KEY, PredictOutput
from tensorfleet_legacy.estimator.head import base_head_checks as head_checks
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.keras import metrics as measures
from tensorfleet_legacy.keras.optimizer_v2.optimizer_v2 import Optimizer as KerasOptimizer

LOSS, LOSS_MEAN, LOSS_OF_WEIGHTS = "loss", "average_loss", "regularization_loss"


class Head(abc.ABC):
    """The end of a model: its loss, its predictions and its metrics, from the logits on."""

    @property
    @abc.abstractmethod
    def name(self) -> str | None:
        """The name that distinguishes its metrics."""

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """The size of the last dimension of the logits."""

    @property
    @abc.abstractmethod
    def loss_reduction(self) -> str:
        """How losses become one."""

    @abc.abstractmethod
    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Any = None,
    ) -> Tensor:
        """The loss that training lowers."""

    @abc.abstractmethod
    def predictions(self, logits: Any, keys: Any = None) -> dict:
        """The model's predictions, by name."""

    @abc.abstractmethod
    def metrics(self, regularization_losses: Any = None) -> dict:
        """The metrics of an evaluation, before the first batch."""

    @abc.abstractmethod
    def update_metrics(
        self,
        eval_metrics: dict,
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Any = None,
    ) -> dict:
        """The metrics with a batch added."""

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Callable | None = None,
        update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:
        """The result of a model function. Subclasses define it."""
        raise NotImplementedError(
            "Subclasses of Head must implement `create_estimator_spec()` or _create_tpu_estimator_spec()."
        )

    def _summary_key(self, key: str) -> str:
        return f"{key}/{self.name}" if self.name else key


def train_op_of(
    loss: Tensor, reduction: str, optimizer: Any, variables: Any, train_op_fn: Any, update_ops: Any
) -> Any:
    """The operation that trains a model, with the updates that belong to a step."""
    if update_ops is not None and not isinstance(update_ops, (list, tuple)):
        raise ValueError(f"update_ops should be a list or a tuple. Given type: {type(update_ops)}.")
    with name_scope(""), name_scope("training"):
        if optimizer is not None and train_op_fn is not None:
            raise ValueError("train_op_fn and optimizer cannot both be set.")
        if optimizer is not None:
            result = _optimized(loss, reduction, optimizer, variables)
        elif train_op_fn is not None:
            result = train_op_fn(loss)
        else:
            raise ValueError("train_op_fn and optimizer cannot both be None.")
        updates = get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else update_ops
        return group(result, *updates) if updates else result


def _optimized(loss: Tensor, reduction: str, optimizer: Any, variables: Any) -> Any:
    """A step of an optimizer: of Keras's for the variables that are named, of `tf.train` for all."""
    if isinstance(optimizer, Optimizer):
        return optimizer.minimize(loss, global_step=get_global_step(), var_list=variables)
    if not isinstance(optimizer, KerasOptimizer):
        raise ValueError(
            f"The given optimizer is not a tf.keras.optimizers.Optimizer instance. Given: {optimizer}"
        )
    if variables is None:
        raise ValueError(f"trainable_variables cannot be None. Given {variables}")
    if not isinstance(variables, (list, tuple)):
        raise ValueError(f"trainable_variables should be a list or a tuple. Given type: {type(variables)}.")
    replicas = distribution.get_strategy().num_replicas_in_sync
    if reduction == "sum_over_batch_size" and replicas > 1:
        loss = loss * (1.0 / replicas)
    return optimizer.get_updates(loss, variables)[0]


def summarize_loss(loss: Tensor, regularization: Any, key: Callable[[str], str]) -> None:
    """The loss for TensorBoard."""
    with name_scope(""):
        scalar(key(LOSS), loss)
        if regularization is not None:
            scalar(key(LOSS_OF_WEIGHTS), find("add_n")(regularization))


def _reduced(losses: Tensor, weights: Any, reduction: str) -> Tensor:
    """One loss of all: their sum, or their mean over the batch, unless it is one of the older ways of `tf.losses`."""
    if reduction in Reduction.all():
        return compute_weighted_loss(losses, weights, loss_collection=None, reduction=reduction)
    losses = losses * weights
    loss = find("reduce_sum")(losses)
    if reduction == "sum":
        return loss
    return find("div_no_nan")(loss, find("cast")(find("size")(losses), loss.dtype))


class ReadyHead(Head):
    """The base of the ready-made heads. Each defines its labels, losses, predictions and metrics."""

    _logits_dimension = 1
    # Weights for each number of an example, besides those for examples.
    _weights_for_logits = False

    def __init__(self, weight_column: Any, loss_reduction: str, loss_fn: Any, name: str | None) -> None:
        self._weight_column = weight_column
        self._loss_reduction = head_checks.checked_reduction(loss_reduction)
        self._loss_fn = head_checks.checked_loss_fn(loss_fn)
        self._name = name

    name = readonly("_name", "What its metrics are told apart by.")
    logits_dimension = readonly("_logits_dimension", "The size of the last dimension of the logits.")
    loss_reduction = readonly("_loss_reduction", "How losses become one.")

    @abc.abstractmethod
    def _processed(self, labels: Any, logits: Tensor) -> Tensor:
        """Labels as the loss takes them."""

    @abc.abstractmethod
    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """A loss for each example, [D0, ..., DN, `_losses_of_one`]."""

    _losses_of_one = 1

    @abc.abstractmethod
    def _measures(self) -> dict:
        """The metrics besides the mean loss, by their key."""

    @abc.abstractmethod
    def _update(self, metrics: dict, labels: Tensor, logits: Tensor, weights: Any, given: Any) -> None:
        """Adds a batch to those metrics; `given` are the labels as the program gave them."""

    @abc.abstractmethod
    def _exported(self, predictions: dict) -> dict:
        """The outputs of an exported model, but for all predictions."""

    def _weighted(self, labels: Any, logits: Any, features: Any) -> tuple[Tensor, Tensor, Tensor, Any]:
        """Logits, labels, losses and weights, all checked."""
        logits = head_checks.checked_logits(logits, self.logits_dimension)
        labels = self._processed(labels, logits)
        if self._loss_fn:
            losses = head_checks.called_loss_fn(
                self._loss_fn, labels, logits, features or {}, self._losses_of_one
            )
        else:
            losses = self._losses(labels, logits)
        weights = head_checks.weights_of(features, self._weight_column, logits, self._weights_for_logits)
        return logits, labels, losses, weights

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Any = None,
    ) -> Tensor:
        """The loss that training lowers, that of the weights included."""
        with name_scope("losses"):
            _, _, losses, weights = self._weighted(labels, logits, features)
            loss = _reduced(losses, weights, self._loss_reduction)
            return loss if regularization_losses is None else loss + find("add_n")(regularization_losses)

    def metrics(self, regularization_losses: Any = None) -> dict:
        """Keras's metrics, by their key."""
        with name_scope("metrics"):
            by_name = {LOSS_MEAN: measures.Mean(name=LOSS_MEAN), **self._measures()}
            if regularization_losses is not None:
                by_name[LOSS_OF_WEIGHTS] = measures.Mean(name=LOSS_OF_WEIGHTS)
        return {self._summary_key(key): metric for key, metric in by_name.items()}

    def update_metrics(  # type: ignore[override]
        self,
        eval_metrics: dict,
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Any = None,
    ) -> dict:
        """The metrics with a batch added."""
        given = labels
        logits, labels, losses, weights = self._weighted(labels, logits, features)
        suffix = self._summary_key("")
        mine = {key.removesuffix(suffix): metric for key, metric in eval_metrics.items()}
        mine[LOSS_MEAN].update_state(losses, sample_weight=weights)
        self._update(mine, labels, logits, weights, given)
        if regularization_losses is not None:
            mine[LOSS_OF_WEIGHTS].update_state(find("add_n")(regularization_losses))
        return eval_metrics

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Callable | None = None,
        update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:
        """The result of a model function."""
        with name_scope(self._name, "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = {**self._exported(predictions), "predict": PredictOutput(predictions)}
                return EstimatorSpec(mode, predictions, export_outputs=outputs)
            loss = self.loss(labels, logits, features, mode, regularization_losses)
            if mode == ModeKeys.EVAL:
                metrics = self.update_metrics(
                    self.metrics(regularization_losses), features, logits, labels, regularization_losses
                )
                return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
            train_op = train_op_of(
                loss, self._loss_reduction, optimizer, trainable_variables, train_op_fn, update_ops
            )
        summarize_loss(loss, regularization_losses, self._summary_key)
        return EstimatorSpec(mode, predictions, loss, train_op)


def default(output: Any, **others: Any) -> dict:
    """Outputs, one of which is the default."""
    return {DEFAULT_KEY: output, **others}


def broadcast(weights: Any, values: Tensor) -> Tensor:
    """A weight for each value."""
    return weights * find("ones_like")(values)
