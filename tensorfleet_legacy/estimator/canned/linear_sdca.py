"""`tf.estimator.experimental.LinearSDCA` and `tf.contrib.linear_optimizer.SDCAOptimizer`: what trains linear estimators."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet_legacy.contrib.linear_optimizer.sdca_ops import SdcaModel, SparseFeatureColumn
from tensorfleet_legacy.estimator.canned import head as heads
from tensorfleet_legacy.estimator.head import multi_class_head as class_heads
from tensorfleet_legacy.estimator.head import regression_head as number_heads
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import CategoricalColumn, DenseColumn


class _Ascends:
    """The base of both optimizers."""

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int,
        num_table_shards: int | None,
        symmetric_l1_regularization: float,
        symmetric_l2_regularization: float,
        adaptive: bool,
    ) -> None:
        self._example_id_column = example_id_column
        self._num_loss_partitions = num_loss_partitions
        self._num_table_shards = num_table_shards
        self._symmetric_l1_regularization = symmetric_l1_regularization
        self._symmetric_l2_regularization = symmetric_l2_regularization
        self._adaptive = adaptive

    def train_step(
        self, weights: dict, weight_column: Any, loss_type: str, features: dict, targets: Any, step: Any
    ) -> tuple[SdcaModel, Any]:
        """A model whose columns have these weights, and the operation that trains it.

        The weights under "bias" are those of a feature that is always one.
        """
        batch, size = Features(features), find("shape")(targets)[0]
        sparse, sparse_weights, dense, dense_weights = [], [], [], []
        columns = [column for column in weights if column != "bias"]
        for column in sorted(columns, key=lambda c: c.name):
            if isinstance(column, CategoricalColumn):
                sparse.append(_ids_once(*column.ids_and_weights(batch)))
                sparse_weights.append(weights[column])
            elif isinstance(column, DenseColumn):
                if column.variable_shape.ndims != 1:
                    raise ValueError(
                        f"Column {type(column).__name__} has rank {column.variable_shape.ndims}, larger than 1."
                    )
                dense.append(column.dense(batch, None, True))
                dense_weights.append(weights[column])
            else:
                raise ValueError(
                    f"{type(self).__name__} does not support column type {type(column).__name__}."
                )
        if "bias" in weights:
            dense.append(find("ones")([size, 1]))
            dense_weights.append(weights["bias"])
        given = find("ones")([size])
        if weight_column is not None:
            key = weight_column if isinstance(weight_column, str) else weight_column.key
            given = find("cast")(find("reshape")(features[key], [-1]), dtypes.float32)
        examples = {
            "sparse_features": sparse,
            "dense_features": dense,
            "example_labels": find("cast")(find("reshape")(targets, [-1]), dtypes.float32),
            "example_weights": given,
            "example_ids": find("reshape")(features[self._example_id_column], [-1]),
        }
        options = {
            "symmetric_l1_regularization": self._symmetric_l1_regularization,
            "symmetric_l2_regularization": self._symmetric_l2_regularization,
            "adaptive": self._adaptive,
            "num_loss_partitions": self._num_loss_partitions,
            "num_table_shards": self._num_table_shards,
            "loss_type": loss_type,
        }
        variables = {"sparse_features_weights": sparse_weights, "dense_features_weights": dense_weights}
        model = SdcaModel(examples, variables, options)
        return model, model.minimize(step)


def _ids_once(ids: Any, weights: Any) -> SparseFeatureColumn:
    """The ids of each example, each once: what one has twice weighs as much as both."""
    values = find("cast")(find("reshape")(ids.values, [-1]), dtypes.int64)
    examples = ids.indices[:, 0]
    given = find("ones_like")(values, dtypes.float32) if weights is None else weights.values
    known = values >= 0
    mask = find("boolean_mask")
    values, examples, given = mask(values, known), mask(examples, known), mask(given, known)
    length = find("reduce_max")(values) + 1
    both, place = find("unique")(length * examples + values)
    count = find("size")(both)
    owner = find("floordiv")(both, length)
    summed = find("unsorted_segment_sum")(given, place, count)
    return SparseFeatureColumn(owner, both - length * owner, summed)


class LinearSDCA(_Ascends):
    """Trains a `LinearClassifier` of two classes or a `LinearRegressor` of one number, by dual coordinate ascent.

    `example_id_column` is a feature of strings that tell examples apart.
    """

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int = 1,
        num_table_shards: int | None = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = False,
    ) -> None:
        if symmetric_l2_regularization <= 0.0:
            raise ValueError("symmetric_l2_regularization should be positive.")
        if symmetric_l1_regularization < 0.0:
            raise ValueError("symmetric_l1_regularization should be non-negative.")
        _Ascends.__init__(**locals())

    def get_train_step(
        self,
        state_manager: Any,
        weight_column_name: Any,
        loss_type: str,
        feature_columns: Any,
        features: dict,
        targets: Any,
        bias_var: Any,
        global_step: Any,
    ) -> tuple[SdcaModel, Any]:
        """A model and what trains it; `state_manager` gives the weights of each column."""
        weights = {column: state_manager.get_variable(column, "weights") for column in feature_columns}
        weights["bias"] = bias_var
        return self.train_step(weights, weight_column_name, loss_type, features, targets, global_step)


class SDCAOptimizer(_Ascends):
    """`tf.contrib.linear_optimizer.SDCAOptimizer`: the same for `tf.contrib.learn`."""

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int = 1,
        num_table_shards: int | None = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = True,
        partitioner: Any = None,
    ) -> None:
        given = locals()
        self._partitioner = given.pop("partitioner")
        _Ascends.__init__(**given)

    example_id_column = readonly("_example_id_column", "The feature that tells examples apart.")
    num_loss_partitions = readonly("_num_loss_partitions", "How many workers train on parts of the data.")
    num_table_shards = readonly("_num_table_shards", "Over how many tables the examples' state is spread.")
    symmetric_l1_regularization = readonly("_symmetric_l1_regularization", "How strongly weights go to zero.")
    symmetric_l2_regularization = readonly("_symmetric_l2_regularization", "How strongly weights stay small.")
    adaptive = readonly("_adaptive", "Whether the worst examples come first.")
    partitioner = readonly("_partitioner", "How variables are spread over parameter servers.")

    def get_name(self) -> str:
        """Its name."""
        return "SDCAOptimizer"

    def get_train_step(
        self,
        columns_to_variables: dict,
        weight_column_name: Any,
        loss_type: str,
        features: dict,
        targets: Any,
        global_step: Any,
    ) -> tuple[SdcaModel, Any]:
        """A model whose columns have these variables, and what trains it."""
        weights = {column: list(parts) for column, parts in columns_to_variables.items()}
        return self.train_step(weights, weight_column_name, loss_type, features, targets, global_step)


class _Weighs(SessionRunHook):
    """Gives the model its weights after each step."""

    def __init__(self, model: SdcaModel, train_op: Any) -> None:
        self._model, self._train_op = model, train_op

    def begin(self) -> None:
        self._update = self._model.update_weights(self._train_op)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._update)


def is_sdca(optimizer: Any) -> bool:
    """Whether an optimizer trains a linear model by dual coordinate ascent."""
    return isinstance(optimizer, _Ascends)


def check_labels(head: Any, sparse_combiner: str) -> str:
    """The loss of a head that such an optimizer can train; ValueError when there is none."""
    if sparse_combiner != "sum":
        raise ValueError('sparse_combiner must be "sum" when optimizer is a LinearSDCA object.')
    if isinstance(head, (heads.MultiClassHead, class_heads.MultiClassHead)):
        raise ValueError("LinearSDCA cannot be used in a multi-class setting.")
    if isinstance(head, (heads.BinaryClassHead, class_heads.BinaryClassHead)):
        return "logistic_loss"
    if not isinstance(head, (heads.RegressionHead, number_heads.RegressionHead)):
        raise ValueError(f"Unsupported head type: {head}")
    if head.logits_dimension > 1:
        raise ValueError("LinearSDCA can only be used with one-dimensional label.")
    return "squared_loss"


def hook_of(model: SdcaModel, train_op: Any) -> SessionRunHook:
    """A hook that a chief runs with each step of an SDCA optimizer."""
    return _Weighs(model, train_op)
