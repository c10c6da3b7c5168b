"""Ready-made models: `tf.estimator.DNNClassifier`, `LinearRegressor`, `DNNLinearCombinedClassifier`, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet_legacy.estimator.canned.dnn import (
    baseline_model_fn,
    combined_model_fn,
    dnn_model_fn,
    linear_model_fn,
)
from tensorfleet_legacy.estimator.canned.head import RegressionHead, class_head
from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.feature_column.feature_column_inputs import make_parse_example_spec
from tensorfleet_legacy.feature_column.feature_column_v2 import NumericColumn
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

# What the models are given about their labels, and about the rest.
_CLASSES = "n_classes=2, weight_column=None, label_vocabulary=None"
_NUMBERS = "label_dimension=1, weight_column=None"
_DNN = (
    "hidden_units, feature_columns, model_dir=None, {labels}, optimizer='Adagrad', activation_fn=relu, dropout=None, "
    "input_layer_partitioner=None, config=None, warm_start_from=None, loss_reduction=SUM, batch_norm=False"
)
_LINEAR = (
    "feature_columns, model_dir=None, {labels}, optimizer='Ftrl', config=None, partitioner=None, warm_start_from=None, "
    "loss_reduction=SUM, sparse_combiner='sum'"
)
_COMBINED = (
    "model_dir=None, linear_feature_columns=None, linear_optimizer='Ftrl', dnn_feature_columns=None, "
    "dnn_optimizer='Adagrad', dnn_hidden_units=None, dnn_activation_fn=relu, dnn_dropout=None, {labels}, "
    "input_layer_partitioner=None, config=None, warm_start_from=None, loss_reduction=SUM, batch_norm=False, "
    "linear_sparse_combiner='sum'"
)
_DNN_WITH_HEAD = (
    "head, hidden_units, feature_columns, model_dir=None, optimizer='Adagrad', activation_fn=relu, dropout=None, "
    "input_layer_partitioner=None, config=None, warm_start_from=None, batch_norm=False"
)
_LINEAR_WITH_HEAD = "head, feature_columns, model_dir=None, optimizer='Ftrl', config=None, partitioner=None, sparse_combiner='sum'"
_COMBINED_WITH_HEAD = (
    "head, model_dir=None, linear_feature_columns=None, linear_optimizer='Ftrl', dnn_feature_columns=None, "
    "dnn_optimizer='Adagrad', dnn_hidden_units=None, dnn_activation_fn=relu, dnn_dropout=None, "
    "input_layer_partitioner=None, config=None, linear_sparse_combiner='sum'"
)
_BASELINE_WITH_HEAD = "head, model_dir=None, optimizer='Ftrl', config=None"
_BASELINE = "model_dir=None, {labels}, optimizer='Ftrl', config=None, loss_reduction=SUM"


def _made_of(network: Callable, arguments: str, head: Callable | None = None, labels: str = "") -> Any:
    """A constructor: the network's scores go to the head, which is an argument unless a function makes it.

    Each takes those of the arguments that it names.
    """
    signature = signature_of(arguments.format(labels=labels), relu=find("nn.relu"), SUM=Reduction.SUM)

    def make(self: Any, given: dict[str, Any]) -> None:
        def called(function: Callable) -> Any:
            return function(**{name: given[name] for name in fn_args(function) if name in given})

        if head is not None:
            given["head"] = called(head)
        function = called(network)
        start = given.get("warm_start_from")
        Estimator.__init__(self, function, given["model_dir"], given["config"], warm_start_from=start)

    return taking(signature)(make)


class DNNClassifier(Estimator):
    """A deep network over feature columns that tells classes apart."""

    __init__ = _made_of(dnn_model_fn, _DNN, class_head, _CLASSES)


class DNNRegressor(Estimator):
    """A deep network over feature columns that gives numbers."""

    __init__ = _made_of(dnn_model_fn, _DNN, RegressionHead, _NUMBERS)


class LinearClassifier(Estimator):
    """A linear model over feature columns that tells classes apart."""

    __init__ = _made_of(linear_model_fn, _LINEAR, class_head, _CLASSES)


class LinearRegressor(Estimator):
    """A linear model over feature columns that gives numbers."""

    __init__ = _made_of(linear_model_fn, _LINEAR, RegressionHead, _NUMBERS)


class DNNLinearCombinedClassifier(Estimator):
    """A linear model and a deep network side by side (wide and deep) that tell classes apart."""

    __init__ = _made_of(combined_model_fn, _COMBINED, class_head, _CLASSES)


class DNNLinearCombinedRegressor(Estimator):
    """A linear model and a deep network side by side (wide and deep) that give numbers."""

    __init__ = _made_of(combined_model_fn, _COMBINED, RegressionHead, _NUMBERS)


class BaselineClassifier(Estimator):
    """Gives each class its frequency, whatever the features: what another model must surpass."""

    __init__ = _made_of(baseline_model_fn, _BASELINE, class_head, _CLASSES)


class BaselineRegressor(Estimator):
    """Gives the labels' mean, whatever the features: what another model must surpass."""

    __init__ = _made_of(baseline_model_fn, _BASELINE, RegressionHead, _NUMBERS)


class DNNEstimator(Estimator):
    """A deep network over feature columns, with any head at its end."""

    __init__ = _made_of(dnn_model_fn, _DNN_WITH_HEAD)


class LinearEstimator(Estimator):
    """A linear model over feature columns, with any head at its end."""

    __init__ = _made_of(linear_model_fn, _LINEAR_WITH_HEAD)


class DNNLinearCombinedEstimator(Estimator):
    """A linear model and a deep network side by side (wide and deep), with any head at their end."""

    __init__ = _made_of(combined_model_fn, _COMBINED_WITH_HEAD)


class BaselineEstimator(Estimator):
    """Looks at no feature, with any head at its end: what another model must surpass."""

    __init__ = _made_of(baseline_model_fn, _BASELINE_WITH_HEAD)


def _with_label(columns: Any, key: str, label: Any, weight_column: Any) -> dict:
    """The `tf.parse_example` specification of the columns, the label and the weight."""
    spec = make_parse_example_spec(columns)
    if key in spec:
        raise ValueError(f"label should not be used as feature. label_key: {key}, features: {list(spec)}")
    spec[key] = label
    if weight_column is None:
        return spec
    if isinstance(weight_column, str):
        weight_column = find("feature_column.numeric_column")(weight_column)
    if not isinstance(weight_column, NumericColumn):
        raise ValueError(
            f"weight_column should be an instance of tf.feature_column.numeric_column. Given: {weight_column}"
        )
    if weight_column.key in spec:
        raise ValueError(f"weight_column should not be used as feature. weight_column: {weight_column.key}")
    return {**spec, **weight_column.parse_example_spec}


def classifier_parse_example_spec(
    feature_columns: Any,
    label_key: str,
    label_dtype: Any = dtypes.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict:
    """The `tf.parse_example` specification of a classifier's examples, including the label."""
    label = find("FixedLenFeature")((1,), label_dtype, label_default)
    return _with_label(feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Any,
    label_key: str,
    label_dtype: Any = dtypes.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict:
    """The `tf.parse_example` specification of a regressor's examples, including the label."""
    label = find("FixedLenFeature")((label_dimension,), label_dtype, label_default)
    return _with_label(feature_columns, label_key, label, weight_column)
