"""Feature columns as objects that are called with features: each call uses the same variables."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.feature_column.feature_column_inputs import (
    checked,
    dense_only,
    joined,
    summed,
    weighable,
)
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features, FeatureTransformationCache


def transform_features(features: dict, feature_columns: Any) -> dict:
    """The tensor of each column for a batch of features, by column."""
    return _transformed(Features(features), features, feature_columns)


def transform_features_v2(features: dict, feature_columns: Any, state_manager: Any) -> dict:
    """`transform_features`, for columns whose variables `state_manager` holds."""
    batch = FeatureTransformationCache(features).with_state(state_manager)
    return _transformed(batch, features, feature_columns)


def _transformed(batch: Features, features: dict, feature_columns: Any) -> dict:
    result = {}
    with name_scope(None, default_name="transform_features", values=list(features.values())):
        for column in checked(feature_columns):
            with name_scope(None, default_name=column.name):
                result[column] = batch.get(column)
    return result


class _Layer:
    """A function of features and columns with variables that are made in its first call."""

    def __init__(self, name: str, function: Any, create_scope_now: bool = True) -> None:
        self._name = name
        self._template = find("make_template")(name, function, create_scope_now_=create_scope_now)

    name = readonly("_name", "The name of its variable scope.")
    variables = readonly("_template.variables", "All its variables.")
    weights = readonly("_template.variables", "All its variables.")
    trainable_variables = readonly("_template.trainable_variables", "Those that are trained.")
    trainable_weights = readonly("_template.trainable_variables", "Those that are trained.")
    non_trainable_variables = readonly("_template.non_trainable_variables", "Those that are not trained.")
    non_trainable_weights = readonly("_template.non_trainable_variables", "Those that are not trained.")

    def __call__(self, features: dict) -> Tensor:
        """The tensor of the columns for a batch of features."""
        return self._template(features)


class InputLayer(_Layer):
    """`input_layer` with variables of its own."""

    def __init__(
        self,
        feature_columns: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        cols_to_vars: dict | None = None,
        name: str = "feature_column_input_layer",
        create_scope_now: bool = True,
    ) -> None:
        def layer(features: dict) -> Tensor:
            columns = dense_only(feature_columns)
            return joined(features, columns, weight_collections, trainable, cols_to_vars, None)

        super().__init__(name, layer, create_scope_now)


class LinearModel(_Layer):
    """`linear_model` with variables of its own."""

    def __init__(
        self,
        feature_columns: Any,
        units: int = 1,
        sparse_combiner: str = "sum",
        weight_collections: Any = None,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        columns = weighable(feature_columns)
        self._made: dict[Any, list] = {}

        def model(features: dict) -> Tensor:
            to_vars = None if self._made else self._made
            return summed(features, columns, units, sparse_combiner, weight_collections, trainable, to_vars)

        super().__init__(name or "linear_model", model)

    def cols_to_vars(self) -> dict:
        """The variables of each column, and "bias"."""
        return dict(self._made)
