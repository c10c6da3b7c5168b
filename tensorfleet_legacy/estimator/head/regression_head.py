"""Heads that give numbers: `tf.estimator.RegressionHead`, `PoissonRegressionHead`, `LogisticRegressionHead`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.estimator.export_output import RegressionOutput
from tensorfleet_legacy.estimator.head import base_head_checks as head_checks
from tensorfleet_legacy.estimator.head.base_head import ReadyHead, broadcast, default
from tensorfleet_legacy.keras import metrics as measures


class RegressionHead(ReadyHead):
    """Numbers, with the squared error; `inverse_link_fn` makes predictions of logits."""

    _weights_for_logits = True

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Any = None,
        inverse_link_fn: Callable | None = None,
        name: str | None = None,
    ) -> None:
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        super().__init__(weight_column, loss_reduction, loss_fn, name)
        self._logits_dimension = self._losses_of_one = label_dimension
        self._inverse_link_fn = inverse_link_fn

    def _processed(self, labels: Any, logits: Tensor) -> Tensor:
        labels = head_checks.checked_labels(labels, logits, self._logits_dimension)
        return find("cast")(labels, dtypes.float32)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        return find("squared_difference")(logits, labels)

    def predictions(self, logits: Any) -> dict:  # type: ignore[override]
        """The numbers, and the logits when they are others."""
        logits = head_checks.checked_logits(logits, self._logits_dimension)
        with name_scope("predictions", values=(logits,)):
            if self._inverse_link_fn is None:
                return {"predictions": logits}
            return {"predictions": self._inverse_link_fn(logits), "logits": logits}

    def _exported(self, predictions: dict) -> dict:
        output = RegressionOutput(predictions["predictions"])
        return default(output, regression=output)

    def _measures(self) -> dict:
        return {key: measures.Mean(name=key) for key in ("prediction/mean", "label/mean")}

    def _update(self, metrics: dict, labels: Tensor, logits: Tensor, weights: Any, given: Any) -> None:
        metrics["label/mean"].update_state(given, sample_weight=weights)
        predictions = self.predictions(logits)["predictions"]
        metrics["prediction/mean"].update_state(predictions, sample_weight=broadcast(weights, predictions))


class PoissonRegressionHead(RegressionHead):
    """Counts: the loss is that of Poisson's distribution, whose mean is the exponential of the logits."""

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        self._compute_full_loss = compute_full_loss
        super().__init__(
            label_dimension, weight_column, loss_reduction, self._poisson_loss, find("exp"), name
        )

    def _poisson_loss(self, labels: Any, logits: Any) -> Tensor:
        full = self._compute_full_loss
        return find("nn.log_poisson_loss")(targets=labels, log_input=logits, compute_full_loss=full)


class LogisticRegressionHead(RegressionHead):
    """A probability: labels lie between 0 and 1, and the loss is the cross entropy of a sigmoid."""

    def __init__(
        self,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(1, weight_column, loss_reduction, self._logistic_loss, find("sigmoid"), name)

    def _logistic_loss(self, labels: Any, logits: Any) -> Tensor:
        labels = head_checks.in_range(labels, 2, "Labels must be in range [0, 1]")
        return find("nn.sigmoid_cross_entropy_with_logits")(labels=labels, logits=logits)
