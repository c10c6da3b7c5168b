"""The result of `compile`: losses, metrics, and the tensors that a training or evaluation step runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras import losses as penalties
from tensorfleet_legacy.keras import metrics as metric_module
from tensorfleet_legacy.keras.metrics_base import Mean, MeanMetricWrapper, Metric

_SAME_SHAPE = (
    penalties.mean_squared_error,
    penalties.binary_crossentropy,
    penalties.categorical_crossentropy,
)


class FunctionLoss(penalties.Loss):
    """A function of true and predicted values as a loss."""

    def __init__(self, function: Callable) -> None:
        super().__init__(name=getattr(function, "__name__", None))
        self.function = function

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return self.function(y_true, y_pred)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The mean loss."""
        scope, self.name = self.name, "loss"  # a lambda's name is no name of a scope
        try:
            return super().__call__(y_true, y_pred, sample_weight)
        finally:
            self.name = scope


class Endpoint:
    """An output of the model with its loss and its metrics."""

    def __init__(self, name: str, output: Tensor, loss: Any, weight: float, mode: str | None) -> None:
        self.name, self.output, self.weight = name, output, weight
        given = penalties.get(loss)
        self.loss: Any = given if given is None or isinstance(given, penalties.Loss) else FunctionLoss(given)
        self.function = getattr(self.loss, "function", None)
        self.metrics: dict[str, tuple[Any, bool]] = {}
        self.target: Any = None
        self.sample_weight: Any = None
        self.mode = mode

    def mask(self) -> Any:
        """1 for the steps of the output that count, 0 for others; None: all count."""
        result = getattr(self.output, "_keras_mask", None)
        return None if result is None else find("cast")(result, self.output.dtype)

    def masked_weight(self) -> Any:
        """The weights of the examples, or of their steps where not all count."""
        mask = self.mask()
        if mask is None:
            return self.sample_weight
        weight = self.sample_weight
        for _ in range(len(mask.shape.as_list()) - len(weight.shape.as_list())):
            weight = find("expand_dims")(weight, -1)
        return weight * mask

    def make_placeholders(self, target: Any = None) -> None:
        """For true values and their weights; weights are one unless fed."""
        rank = self.output.shape.ndims
        shape = None if rank is None else [None] * rank
        self.target = target
        if target is None:
            self.target = find("placeholder")(self.output.dtype, shape, name=f"{self.name}_target")
        axes = 2 if self.mode == "temporal" else 1
        ones = np.ones([1] * axes, state.floatx())
        self.sample_weight = find("placeholder_with_default")(
            ones, [None] * axes, name=f"{self.name}_sample_weights"
        )

    def check(self, target: np.ndarray) -> None:
        """ValueError when true values do not have the shape that the loss needs."""
        if self.function not in _SAME_SHAPE or target is None:
            return
        shape, name = self.output.shape, self.function.__name__
        if self.function is penalties.categorical_crossentropy and target.shape[-1] == 1:
            raise ValueError(
                f"You are passing a target array of shape {target.shape} while using as loss `{name}`. `{name}` expects "
                "targets to be binary matrices (1s and 0s) of shape (samples, classes). If your targets are integer "
                "classes, you can convert them with tf.keras.utils.to_categorical, or use the loss function "
                "`sparse_categorical_crossentropy` instead, which does expect integer targets."
            )
        wanted = None if shape.ndims is None else shape.as_list()
        fits = wanted is None or (
            len(wanted) == target.ndim
            and all(w in (None, t) for w, t in zip(wanted[1:], target.shape[1:], strict=True))
        )
        if not fits:
            raise ValueError(
                f"A target array with shape {target.shape} was passed for an output of shape {tuple(wanted or ())} while "
                f"using as loss `{name}`. This loss expects targets to have the same shape as the output."
            )


def per_output(given: Any, names: list[str], what: str, default: Any = None) -> list:
    """One value for each output, from a dictionary by name, a list, or one value for all."""
    if given is None:
        return [default] * len(names)
    if isinstance(given, dict):
        odd = [k for k in given if k not in names]
        if odd:
            raise ValueError(
                f'Unknown entry in {what} dictionary: "{odd[0]}". Only expected following keys: {names}'
            )
        return [given.get(n, default) for n in names]
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ValueError(
                f"When passing a list as {what}, it should have one entry per model output. The model has {len(names)} "
                f"outputs, but you passed {what}={given}"
            )
        return list(given)
    return [given] * len(names)


def _metrics_of(given: Any, names: list[str]) -> list[list]:
    if not given:
        return [[] for _ in names]
    if isinstance(given, dict):
        return [_listed(given.get(n)) for n in names]
    if len(names) > 1 and any(isinstance(m, (list, tuple)) for m in given):
        return [_listed(m) for m in per_output(given, names, "metrics")]
    own = _listed(given)
    if len(names) == 1:
        return [nest.flatten(own)]
    return [[m.from_config(m.get_config()) if isinstance(m, Metric) else m for m in own] for _ in names]


def _listed(value: Any) -> list:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


_ACCURACY, _ENTROPY = ("accuracy", "acc"), ("crossentropy", "ce")


def _by_loss(metric: str, endpoint: Endpoint) -> Callable:
    """The accuracy or the cross entropy that belongs to the loss."""
    dims = endpoint.output.shape
    last = dims[-1].value if dims.ndims else None
    entropy = metric in _ENTROPY
    if last == 1 or endpoint.function is penalties.binary_crossentropy:
        return penalties.binary_crossentropy if entropy else penalties.binary_accuracy
    if endpoint.function is penalties.sparse_categorical_crossentropy:
        return penalties.sparse_categorical_crossentropy if entropy else penalties.sparse_categorical_accuracy
    return penalties.categorical_crossentropy if entropy else penalties.categorical_accuracy


def _named_metric(metric: Any, endpoint: Endpoint, weighted: bool, several: bool) -> tuple[str, Any]:
    prefix = f"{endpoint.name}_" if several else ""
    if metric in _ACCURACY or metric in _ENTROPY:
        name = ("weighted_" if weighted else "") + ("acc" if metric in _ACCURACY else "ce")
        return prefix + name, MeanMetricWrapper(_by_loss(metric, endpoint), name=prefix + name)
    result = metric_module.get(metric)
    if isinstance(result, Metric):
        return prefix + result.name, result
    name = result.name if hasattr(result, "name") else getattr(result, "__name__", type(result).__name__)
    name = prefix + ("weighted_" if weighted else "") + name
    return name, MeanMetricWrapper(result, name="".join(c if c.isalnum() else "_" for c in name).strip("_"))


class Compiled:
    """A model with its losses and metrics, in a graph."""

    def __init__(self, model: Any, options: dict[str, Any]) -> None:
        self.model, self.optimizer = model, model.optimizer
        # Those of now: what becomes trainable or not later counts when the model is compiled again.
        self.weights = model.trainable_weights
        names = model.output_names
        losses = per_output(options["loss"], names, "loss")
        weights = per_output(options["loss_weights"], names, "loss_weights", 1.0)
        modes = per_output(options["sample_weight_mode"], names, "sample_weight_mode")
        self.endpoints = [
            Endpoint(*parts) for parts in zip(names, model.outputs, losses, weights, modes, strict=True)
        ]
        self.trained = [e for e in self.endpoints if e.loss is not None]
        targets = per_output(options["target_tensors"], names, "target_tensors")
        for endpoint, target in zip(self.endpoints, targets, strict=True):
            if endpoint.loss is not None:
                endpoint.make_placeholders(target)
        self._collect(options["metrics"], False)
        self._collect(options["weighted_metrics"], True)
        self._build()
        self._train: Any = None
        self._reset: Any = None

    def _collect(self, given: Any, weighted: bool) -> None:
        names = [e.name for e in self.endpoints]
        for endpoint, wanted in zip(self.endpoints, _metrics_of(given, names), strict=True):
            if endpoint.loss is None:
                continue
            with name_scope("metrics"):
                for metric in wanted:
                    name, result = _named_metric(metric, endpoint, weighted, len(names) > 1)
                    endpoint.metrics[name] = (result, weighted)

    def _build(self) -> None:
        """The loss, and what is shown beside it, in the order of `metrics_names`."""
        losses, parts = [], []
        several = len(self.endpoints) > 1
        with name_scope("loss"):
            for endpoint in self.trained:
                value = endpoint.loss(
                    endpoint.target, endpoint.output, sample_weight=endpoint.masked_weight()
                )
                losses.append(value if endpoint.weight == 1.0 else value * endpoint.weight)
                parts.append((f"{endpoint.name}_loss", value))
            losses += self.model._losses_to_train()
            if not losses:
                raise ValueError(
                    "The model cannot be compiled because it has no loss to optimize. Pass `loss` to `compile`, or "
                    "add one with `add_loss`."
                )
            self.total_loss = sum(losses[1:], losses[0])
        self.metrics: list[Any] = []
        # Scripts append to both what they want to see besides.
        self.names = ["loss"]
        self.metrics_tensors: list[Any] = []
        with name_scope("metrics"):
            for name, value in parts if several else ():
                mean = Mean(name=name)
                self.metrics.append(mean)
                self._show(name, mean(value))
            for endpoint in self.trained:
                for name, (metric, weighted) in endpoint.metrics.items():
                    weight = endpoint.masked_weight() if weighted else endpoint.mask()
                    self.metrics.append(metric)
                    self._show(name, metric(endpoint.target, endpoint.output, sample_weight=weight))
        for layer_metric, name in self.model._metrics_of_layers():
            self.metrics.append(layer_metric)
            self._show(name, layer_metric._keras_value)

    def _show(self, name: str, value: Any) -> None:
        self.names.append(name)
        self.metrics_tensors.append(value)

    @property
    def test_fetches(self) -> list:
        """The loss and the metrics."""
        return [self.total_loss, *self.metrics_tensors]

    @property
    def train_fetches(self) -> list:
        """The loss, the metrics, and the operation that trains."""
        if self._train is None:
            optimizer = self.optimizer
            if not self.weights:
                raise ValueError(
                    "The model has no weights to train: its layers have none, or all have `trainable=False`."
                )
            with self.model._in_scope(), name_scope("training"), name_scope(optimizer._name):
                updates = optimizer.get_updates(self.total_loss, self.weights)
                updates = [*updates, *self.model._updates_to_run()]
            result = group(*[u if hasattr(u, "control_inputs") else u.op for u in updates], name="train")
            self._train = [*self.test_fetches, result]
        return self._train

    def reset(self) -> None:
        """Starts the metrics over, in one run."""
        if not self.metrics:
            return
        session = state.get_session()
        if self._reset is None:
            with session.graph.as_default():
                ops = [m._reset_op() for m in self.metrics]
            plain = [op for op in ops if op is not None]
            with session.graph.as_default():
                together = group(*plain) if plain else None
            self._reset = (together, [m for m, op in zip(self.metrics, ops, strict=True) if op is None])
        together, others = self._reset
        if together is not None:
            session.run(together)
        for metric in others:
            metric.reset_states()
