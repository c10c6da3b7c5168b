"""Checks of the labels, logits, weights and loss functions that heads are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet_legacy.feature_column.feature_column_v2 import NumericColumn
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

# Keras's ways to make one loss of many, and those of `tf.losses`, which `tf.contrib.estimator` takes.
_REDUCTIONS = {"auto", "sum", "sum_over_batch_size", *Reduction.all()} - {Reduction.NONE}
NO_LABELS = (
    "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that your data contains "
    "your label feature. Check that your input_fn properly parses and returns labels."
)


def checked_reduction(reduction: str) -> str:
    """A way to make one loss of many."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"Invalid loss_reduction: {reduction}. See `tf.losses.Reduction` for valid options.")
    return reduction


def checked_loss_fn(loss_fn: Callable | None) -> Callable | None:
    """A function of labels and logits, and perhaps of features."""
    if not loss_fn:
        return None
    names = fn_args(loss_fn)
    for needed in ("labels", "logits"):
        if needed not in names:
            raise ValueError(f"loss_fn must contain argument: {needed}. Given arguments: {names}")
    wrong = sorted(set(names) - {"labels", "logits", "features", "loss_reduction"})
    if wrong:
        raise ValueError(f"loss_fn has unexpected args: {wrong}")
    return loss_fn


def checked_vocabulary(vocabulary: Any) -> Any:
    """Names of classes, in their order."""
    if vocabulary is not None and not isinstance(vocabulary, (list, tuple)):
        raise ValueError(f"label_vocabulary should be a list or a tuple. Given type: {type(vocabulary)}")
    return vocabulary


def checked_logits(logits: Any, dimension: int) -> Tensor:
    """Logits as floats, with so many numbers in the last dimension."""
    wrong = "logits shape must be [D0, D1, ... DN, logits_dimension]"
    with name_scope("logits", values=(logits,)):
        logits = find("cast")(logits, dtypes.float32)
        shape = find("shape")(logits)
        rank = find("assert_rank_at_least")(logits, 2, data=[shape], message=wrong)
        with control_dependencies([rank]):
            known = logits.shape.ndims is not None and logits.shape.as_list()[-1]
            if known:
                if known != dimension:
                    raise ValueError(f"{wrong}, got {logits.shape}.")
                return logits
            equal = find("assert_equal")(dimension, shape[-1], data=[shape], message=wrong)
            with control_dependencies([equal]):
                return find("identity")(logits)


def checked_labels(labels: Any, logits: Tensor, dimension: int) -> Tensor:
    """Dense labels of the shape of the logits, but for the last dimension."""
    if labels is None:
        raise ValueError(NO_LABELS)
    wrong = (
        f"labels shape must be [D0, D1, ... DN, {dimension}]. Suggested Fix: check your n_classes argument to the head "
        "and/or the shape of your label."
    )
    with name_scope("labels", values=(labels, logits)):
        if isinstance(labels, SparseTensor):
            raise ValueError(
                f"SparseTensor labels are not supported. Labels must be a Tensor of shape [D0, D1, ..., DN, {dimension}], "
                f"e.g. [batch_size, {dimension}]. Suggested Fix (1): Check the label feature in your data. Each example must "
                f"contain {dimension} value(s). If not, your choice of label was probably incorrect. Suggested Fix (2): In "
                "your input_fn, use tf.sparse_tensor_to_dense() to turn labels into a Tensor."
            )
        labels = find("convert_to_tensor")(labels)
        if _one_less(labels, logits):
            labels = find("expand_dims")(labels, -1)
        rank = find("assert_rank_at_least")(labels, 2, message=wrong)
        with control_dependencies([rank]):
            result = None if labels.shape.ndims is None else labels.shape.as_list()[-1]
            if result not in (None, dimension):
                raise ValueError(
                    f"Mismatched label shape. Expected labels dimension={dimension}.  Received {result}. Suggested Fix: If your "
                    "classifier expects one-hot encoding label, check your n_classes argument to the estimator and/or the "
                    "shape of your label. Otherwise, check the shape of your label."
                )
            expected = find("concat")([find("shape")(logits)[:-1], [dimension]], 0)
            shape = find("shape")(labels)
            data = ["expected_labels_shape: ", expected, "labels_shape: ", shape]
            equal = find("assert_equal")(expected, shape, message=wrong, data=data)
            with control_dependencies([equal]):
                return find("identity")(labels)


def weights_of(features: Any, column: Any, logits: Tensor, for_each_logit: bool = False) -> Any:
    """The weight of each example, or of each of its numbers; 1 without a column of weights."""
    if column is None:
        return 1.0
    wrong = "weights shape must be [D0, D1, ... DN]" + (
        ", [D0, D1, ... DN, 1] or [D0, D1, ... DN, logits_dimension]"
        if for_each_logit
        else " or [D0, D1, ... DN, 1]"
    )
    with name_scope("weights"):
        if isinstance(column, str):
            column = find("feature_column.numeric_column")(key=column, shape=(1,))
        if not isinstance(column, NumericColumn):
            raise TypeError(
                f"Weight column must be either a string or NumericColumn. Given type: {type(column)}."
            )
        weights = find("cast")(column.dense(Features(features), None, False), dtypes.float32)
        shape, logits_shape = find("shape")(weights), find("shape")(logits)
        data = ["logits_shape: ", logits_shape, "weights_shape: ", shape]
        if _one_less(weights, logits):
            check = find("assert_equal")(logits_shape[:-1], shape, message=wrong, data=data)
            with control_dependencies([check]):
                return find("expand_dims")(weights, -1)
        one = find("concat")([logits_shape[:-1], [1]], 0)
        right = [_same(shape, one)] + ([_same(shape, logits_shape)] if for_each_logit else [])
        check = find("Assert")(find("reduce_any")(right), [wrong, *data])
        with control_dependencies([check]):
            return find("identity")(weights)


def _one_less(values: Tensor, logits: Tensor) -> bool:
    """Whether values lack the last dimension of the logits."""
    rank, full = values.shape.ndims, logits.shape.ndims
    return rank is not None and full is not None and rank == full - 1


def _same(shape: Tensor, other: Tensor) -> Tensor:
    return find("reduce_all")(find("equal")(shape, other))


def in_range(labels: Tensor, classes: int, message: str | None = None) -> Tensor:
    """Labels that are numbers of classes."""
    with name_scope("check_label_range", values=(labels,)):
        checks = [
            find("assert_less_equal")(
                labels,
                find("cast")(classes - 1, labels.dtype),
                message=message or "Labels must be <= n_classes - 1",
            ),
            find("assert_non_negative")(labels, message=message or "Labels must be >= 0"),
        ]
        with control_dependencies(checks):
            return find("identity")(labels)


def called_loss_fn(loss_fn: Callable, labels: Any, logits: Tensor, features: Any, dimension: int) -> Tensor:
    """The losses of a user's own function: `dimension` losses for each example."""
    given = {"features": features} if "features" in fn_args(loss_fn) else {}
    with name_scope("call_loss_fn"):
        losses = loss_fn(labels=labels, logits=logits, **given)
        shape, logits_shape = find("shape")(losses), find("shape")(logits)
        expected = find("concat")([logits_shape[:-1], [dimension]], 0)
        message = f"loss_fn must return Tensor of shape [D0, D1, ... DN, {dimension}]. "
        data = [message, "logits_shape: ", logits_shape, "loss_shape: ", shape]
        check = find("Assert")(_same(shape, expected), data, name="check_loss_shape")
        with control_dependencies([check]):
            return find("identity")(losses)


def only_known(keys: Any, known: list[str]) -> list[str]:
    """The predictions that are asked for: all without a choice."""
    for key in keys or ():
        if key not in known:
            raise ValueError(
                f"Prediction key must be in PredictionKeys, given: {key}.Valid prediction keys include {known}."
            )
    return list(keys or known)
