"""`tf.estimator.MultiHead`: several heads at the end of one model, each with labels and logits of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.estimator.export_output import DEFAULT_KEY, PredictOutput
from tensorfleet_legacy.estimator.head.base_head import (
    LOSS,
    LOSS_OF_WEIGHTS,
    Head,
    summarize_loss,
    train_op_of,
)
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.keras import metrics as measures


class MultiHead(Head):
    """Heads with different names; the loss is the sum of theirs, weighted by `head_weights`.

    Labels are a dictionary by the names of the heads; logits too, or one tensor that is split among them.
    """

    def __init__(self, heads: Any, head_weights: Any = None) -> None:
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                f"heads and head_weights must have the same size. Given len(heads): {len(heads)}. Given "
                f"len(head_weights): {len(head_weights)}."
            )
        for head in heads:
            if head.name is None:
                raise ValueError(f"All given heads must have name specified. Given: {head}")
        self._heads = tuple(heads)
        self._head_weights = tuple(head_weights or ())

    @property
    def name(self) -> str:
        """The names of all heads."""
        return "_".join(head.name for head in self._heads)

    @property
    def logits_dimension(self) -> int:
        """The logits of all heads."""
        return sum(head.logits_dimension for head in self._heads)

    @property
    def loss_reduction(self) -> str:
        """How losses become one, the same for all heads."""
        items = [head.loss_reduction for head in self._heads]
        if len(set(items)) > 1:
            raise ValueError(f"The loss_reduction must be the same for different heads. Given: {items}")
        return items[0]

    def _split(self, logits: Any) -> dict:
        """The logits of each head, from a tensor with those of all."""
        sizes = [head.logits_dimension for head in self._heads]
        with name_scope("split_logits", values=[logits]):
            logits = find("convert_to_tensor")(logits)
            last = logits.shape.as_list()[-1]
            if last is not None and last != sum(sizes):
                raise ValueError(
                    f"Could not split logits of shape {logits.shape.as_list()!r} among the heads with individual logits "
                    f"dimensions: {sizes!r}. The last dimension of the logits tensor should equal {sum(sizes)} but is {last}."
                )
            parts = find("split")(logits, sizes, axis=-1)
        return {head.name: part for head, part in zip(self._heads, parts, strict=True)}

    def _by_head(self, logits: Any, labels: Any = None) -> dict:
        """The logits of each head, where there are logits and labels for all of them."""
        names = [head.name for head in self._heads]
        if isinstance(logits, dict):
            if missing := [name for name in names if name not in logits]:
                raise ValueError(f"logits has missing values for head(s): {missing}")
        else:
            logits = self._split(logits)
        if labels is not None:
            if not isinstance(labels, dict):
                raise ValueError(f"labels must be a dict. Given: {labels}")
            if missing := [name for name in names if name not in labels]:
                raise ValueError(f"labels has missing values for head(s): {missing}")
        return logits

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Any = None,
    ) -> Tensor:
        """The weighted sum of the heads' losses, and the loss of the weights."""
        return self._merged_loss(self._losses(labels, logits, features, mode), regularization_losses)

    def _losses(self, labels: Any, logits: Any, features: Any, mode: str | None) -> list[Tensor]:
        parts = self._by_head(logits, labels)
        return [
            head.loss(labels=labels[head.name], logits=parts[head.name], features=features, mode=mode)
            for head in self._heads
        ]

    def _merged_loss(self, losses: list[Tensor], regularization_losses: Any) -> Tensor:
        with name_scope("merge_losses"):
            if self._head_weights:
                pairs = zip(losses, self._head_weights, strict=True)
                losses = [find("multiply")(loss, weight) for loss, weight in pairs]
            merged = find("add_n")(losses)
            return merged if regularization_losses is None else merged + find("add_n")(regularization_losses)

    def predictions(self, logits: Any, keys: Any = None) -> dict:
        """The predictions of each head, by the head's name and the prediction's."""
        parts = self._by_head(logits)
        with name_scope("merge_pred"):
            return {
                (head.name, key): value
                for head in self._heads
                for key, value in head.predictions(logits=parts[head.name]).items()
            }

    def metrics(self, regularization_losses: Any = None) -> dict:
        """The mean loss of each head; their own metrics come with the first batch."""
        keys = [f"{LOSS}/{head.name}" for head in self._heads]
        with name_scope("merge_eval"):
            result = {key: measures.Mean(name=key) for key in keys}
        if regularization_losses is not None:
            result[self._summary_key(LOSS_OF_WEIGHTS)] = measures.Mean(name=LOSS_OF_WEIGHTS)
        return result

    def update_metrics(  # type: ignore[override]
        self,
        eval_metrics: dict,
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Any = None,
    ) -> dict:
        """The metrics of all heads with a batch added."""
        parts = self._by_head(logits, labels)
        if regularization_losses is not None:
            regularization = find("add_n")(regularization_losses)
            eval_metrics[self._summary_key(LOSS_OF_WEIGHTS)].update_state(regularization)
        for head in self._heads:
            mine, true = parts[head.name], labels[head.name]
            loss = head.loss(labels=true, logits=mine, features=features)
            eval_metrics[f"{LOSS}/{head.name}"].update_state(loss)
            eval_metrics.update(head.update_metrics(head.metrics(), features, mine, true) or {})
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
        with name_scope(self.name, "multi_head"):
            parts = self._by_head(logits, labels)
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                specs = [head.create_estimator_spec(features, mode, parts[head.name]) for head in self._heads]
                return EstimatorSpec(mode, predictions, export_outputs=self._merged(specs))
            losses = self._losses(labels, logits, features, mode)
            loss = self._merged_loss(losses, regularization_losses)
            if mode == ModeKeys.EVAL:
                metrics = self.metrics(regularization_losses)
                metrics = self.update_metrics(metrics, features, logits, labels, regularization_losses)
                return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
            if mode != ModeKeys.TRAIN:
                raise ValueError(f"mode={mode} unrecognized")
            reduction = self.loss_reduction
            train_op = train_op_of(loss, reduction, optimizer, trainable_variables, train_op_fn, update_ops)
            for head, part in zip(self._heads, losses, strict=True):
                summarize_loss(part, None, head._summary_key)
            summarize_loss(loss, regularization_losses, str)
            return EstimatorSpec(mode, predictions, loss, train_op)

    def _merged(self, specs: list[EstimatorSpec]) -> dict:
        """The outputs of all heads under their names; the first head's default is that of all."""
        first = specs[0].export_outputs
        if DEFAULT_KEY not in first:
            raise ValueError(
                f"{self._heads[0].name} did not specify default export_outputs. Given: {first} Suggested fix: Use one of the "
                f"heads in tf.estimator, or include key {DEFAULT_KEY} in export_outputs."
            )
        outputs, predicted = {DEFAULT_KEY: first[DEFAULT_KEY]}, {}
        for head, spec in zip(self._heads, specs, strict=True):
            for key, output in spec.export_outputs.items():
                outputs[head.name if key == DEFAULT_KEY else f"{head.name}/{key}"] = output
                if key == "predict" and isinstance(output, PredictOutput):
                    predicted.update({f"{head.name}/{name}": v for name, v in output.outputs.items()})
        outputs["predict"] = PredictOutput(predicted)
        return outputs
