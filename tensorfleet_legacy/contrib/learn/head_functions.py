"""`tf.contrib.learn.multi_class_head` and its relatives; several heads as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.basic import no_op
from tensorfleet_legacy.contrib.learn.head import (
    BinaryLogisticHead,
    BinarySvmHead,
    Head,
    MultiClassHead,
    MultiLabelHead,
    RegressionHead,
    check_mode,
    own_loss,
    poisson,
    report,
    squared,
)
from tensorfleet_legacy.contrib.learn.model_fn import ModelFnOps
from tensorfleet_legacy.contrib.learn.run_config import ModeKeys


def _common(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that all heads take, of a function's `locals()`."""
    return {n: given[n] for n in ("label_name", "weight_column_name", "enable_centered_bias", "head_name")}


def regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    link_fn: Callable | None = None,
) -> Head:
    """A head for numbers, with the squares of their distances; `link_fn` makes predictions of logits."""
    return RegressionHead(
        squared,
        link_fn or find("identity"),
        logits_dimension=label_dimension,
        **_common(locals()),
    )


def poisson_regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
) -> Head:
    """A head for counts; the logits are the logarithms of their means."""
    return RegressionHead(
        poisson,
        find("exp"),
        logits_dimension=label_dimension,
        **_common(locals()),
    )


def multi_class_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Callable | None = None,
    label_keys: Any = None,
) -> Head:
    """A head for one of several classes; for two of them, it has one logit."""
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    common = {**_common(locals()), "thresholds": thresholds, "loss_fn": own_loss(loss_fn)}
    if n_classes > 2:
        common.update(metric_class_ids=metric_class_ids, label_keys=label_keys)
        return MultiClassHead(logits_dimension=n_classes, **common)
    if metric_class_ids:
        raise ValueError("metric_class_ids invalid for n_classes==2.")
    if label_keys:
        raise ValueError("label_keys is not supported for n_classes=2.")
    return BinaryLogisticHead(logits_dimension=1, **common)


def binary_svm_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
) -> Head:
    """A head for two classes with a hinge loss. It has no metrics that `thresholds` would be for."""
    return BinarySvmHead(1, label_name, weight_column_name, enable_centered_bias, head_name)


def multi_label_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Callable | None = None,
) -> Head:
    """A head for examples that may have several classes, or none."""
    if n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    return MultiLabelHead(
        logits_dimension=n_classes,
        **_common(locals()),
        thresholds=thresholds,
        metric_class_ids=metric_class_ids,
        loss_fn=own_loss(loss_fn),
    )


def no_op_train_fn(loss: Any) -> Operation:
    """Trains nothing: for those who make the training operation themselves."""
    return no_op()


def loss_only_head(loss_fn: Callable, head_name: str | None = None) -> Head:
    """A head that only adds losses to those of others: `loss_fn()` gives one, or a list of them."""
    return LossOnlyHead(loss_fn, head_name)


class LossOnlyHead(Head):
    """A head without logits, labels and predictions."""

    def __init__(self, loss_fn: Callable, head_name: str | None = None) -> None:
        self._loss_fn = loss_fn
        self.head_name = head_name or "loss_only_head"

    logits_dimension = 0

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
        check_mode(mode)
        if mode == ModeKeys.INFER:
            return ModelFnOps(mode, predictions={})
        with variable_scope(scope, default_name=self.head_name):
            loss = self._loss_fn()
            loss = find("add_n")(loss) if isinstance(loss, list) else loss
            report(self.head_name, loss)
            if mode == ModeKeys.EVAL:
                return ModelFnOps(mode, {}, loss)
            if train_op_fn is None:
                raise ValueError("train_op_fn can not be None in TRAIN mode")
            with name_scope("train_op", values=[loss]):
                return ModelFnOps(mode, {}, loss, train_op_fn(loss))


def multi_head(heads: list, loss_weights: list | None = None) -> Head:
    """Several heads on one network; their losses are added, each times its weight."""
    if loss_weights and len(loss_weights) != len(heads):
        raise ValueError("heads and loss_weights must have same size")
    return MultiHead(heads, loss_weights)


class MultiHead(Head):
    """Several heads: the predictions are named by (head, prediction), the metrics end with the head's name."""

    def __init__(self, heads: list, loss_weights: list | None = None) -> None:
        for head in heads:
            if not head.head_name:
                raise ValueError("Members of MultiHead must have names.")
        self._heads = heads
        self._logits_dimension = sum(head.logits_dimension for head in heads)
        self._loss_weights = loss_weights

    logits_dimension = readonly("_logits_dimension", "The sizes of all heads' logits together.")

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
        """See `Head`. `logits` are those of all heads side by side, or a dictionary of them by the heads' names."""
        check_mode(mode)
        parts = self._parts(logits, logits_input)
        by_name = {
            head.head_name: head.create_model_fn_ops(
                features=features,
                mode=mode,
                labels=labels,
                train_op_fn=no_op_train_fn,
                logits=part,
                logits_input=logits_input,
                scope=scope,
            )
            for head, part in zip(self._heads, parts, strict=True)
        }
        if mode == ModeKeys.INFER:
            alternatives = {
                name: m.output_alternatives for name, m in by_name.items() if m.output_alternatives
            }
            return ModelFnOps(
                mode,
                predictions=_named(by_name),
                output_alternatives={name: item[name] for name, item in alternatives.items()},
            )
        loss = self._merged([m.loss for m in by_name.values()])
        metrics = {k: v for m in by_name.values() for k, v in (m.eval_metric_ops or {}).items()}
        if mode == ModeKeys.EVAL:
            return ModelFnOps(mode, predictions=_named(by_name), loss=loss, eval_metric_ops=metrics)
        if train_op_fn is None:
            raise ValueError("train_op_fn can not be None in TRAIN mode.")
        train = find("group")(train_op_fn(loss), *(m.train_op for m in by_name.values()))
        return ModelFnOps(mode, loss=loss, train_op=train, eval_metric_ops=metrics)

    def _parts(self, logits: Any, logits_input: Any) -> list:
        """The logits of each head."""
        if logits is None:
            return [None] * len(self._heads)
        if isinstance(logits, dict):
            return [logits[h.head_name] if h.logits_dimension else None for h in self._heads]
        result, begin = [], 0
        for head in self._heads:
            result.append(find("slice")(logits, [0, begin], [-1, head.logits_dimension]))
            begin += head.logits_dimension
        return result

    def _merged(self, losses: list) -> Tensor:
        if self._loss_weights:
            losses = [find("multiply")(a, b) for a, b in zip(losses, self._loss_weights, strict=True)]
        return find("add_n")(losses)


def _named(made: dict[str, ModelFnOps]) -> dict:
    return {(name, k): v for name, m in made.items() for k, v in m.predictions.items()}
