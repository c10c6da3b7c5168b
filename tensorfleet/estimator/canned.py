"""Ready-made models: `tf.estimator.DNNClassifier`, `LinearRegressor`, `DNNLinearCombinedClassifier`, ..."""

from __future__ import annotations

from typing import Any

from tensorfleet import dtypes
from tensorfleet.api import find
from tensorfleet.estimator.estimator import Estimator
from tensorfleet.estimator.heads import RegressionHead, class_head
from tensorfleet.estimator.models import (
    baseline_model_fn,
    combined_model_fn,
    dnn_model_fn,
    linear_model_fn,
)
from tensorfleet.feature_column.columns import NumericColumn
from tensorfleet.feature_column.using import make_parse_example_spec
from tensorfleet.losses.losses import Reduction

_relu = find("nn.relu")
_SUM = Reduction.SUM


class DNNClassifier(Estimator):
    """A deep network over feature columns that tells classes apart."""

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = _relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        function = dnn_model_fn(
            head,
            feature_columns,
            hidden_units,
            optimizer,
            activation_fn,
            dropout,
            batch_norm,
            input_layer_partitioner,
        )
        super().__init__(function, model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    """A deep network over feature columns that gives numbers."""

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = _relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        function = dnn_model_fn(
            head,
            feature_columns,
            hidden_units,
            optimizer,
            activation_fn,
            dropout,
            batch_norm,
            input_layer_partitioner,
        )
        super().__init__(function, model_dir, config, warm_start_from=warm_start_from)


class LinearClassifier(Estimator):
    """A linear model over feature columns that tells classes apart."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        function = linear_model_fn(head, feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(function, model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    """A linear model over feature columns that gives numbers."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        function = linear_model_fn(head, feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(function, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(Estimator):
    """A linear model and a deep network side by side (wide and deep) that tell classes apart."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = _relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        function = combined_model_fn(
            class_head(n_classes, label_vocabulary, weight_column, loss_reduction),
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
            input_layer_partitioner,
            linear_sparse_combiner,
        )
        super().__init__(function, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedRegressor(Estimator):
    """A linear model and a deep network side by side (wide and deep) that give numbers."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = _relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        function = combined_model_fn(
            RegressionHead(label_dimension, weight_column, loss_reduction),
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
            input_layer_partitioner,
            linear_sparse_combiner,
        )
        super().__init__(function, model_dir, config, warm_start_from=warm_start_from)


class BaselineClassifier(Estimator):
    """Gives each class its frequency, whatever the features: what another model must surpass."""

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = _SUM,
    ) -> None:
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        super().__init__(baseline_model_fn(head, optimizer), model_dir, config)


class BaselineRegressor(Estimator):
    """Gives the labels' mean, whatever the features: what another model must surpass."""

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = _SUM,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(baseline_model_fn(head, optimizer), model_dir, config)


def _with_label(columns: Any, key: str, label: Any, weight_column: Any) -> dict:
    """What `tf.parse_example` needs for the columns, the label and the weight."""
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
    """What `tf.parse_example` needs to read the examples of a classifier, the label among them."""
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
    """What `tf.parse_example` needs to read the examples of a regressor, the label among them."""
    label = find("FixedLenFeature")((label_dimension,), label_dtype, label_default)
    return _with_label(feature_columns, label_key, label, weight_column)
