"""Model inputs from feature columns: an input tensor, a linear model, a parsing specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet_legacy.feature_column.feature_column_v2 import all_collections
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
)


def checked(feature_columns: Any) -> list:
    """The columns as a list in the order of their names; ValueError when there are none, or two of one name."""
    if isinstance(feature_columns, FeatureColumn):
        feature_columns = [feature_columns]
    if isinstance(feature_columns, Iterator):
        feature_columns = list(feature_columns)
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    columns = list(feature_columns)
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"Items of feature_columns must be a _FeatureColumn. Given: {column}.")
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    seen: dict[str, Any] = {}
    for column in columns:
        if column.name in seen:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and {seen[column.name]}. This "
                "usually means that these columns refer to same base feature. Either one must be discarded or "
                "a duplicated but renamed item must be inserted in features dict."
            )
        seen[column.name] = column
    return sorted(columns, key=lambda c: c.name)


def _new_variables(before: int) -> list:
    return find("global_variables")()[before:]


def input_layer(
    features: dict,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict | None = None,
    cols_to_output_tensors: dict | None = None,
) -> Tensor:
    """A dense tensor [batch, numbers] of all columns, in the order of their names."""
    columns = dense_only(feature_columns)
    with find("variable_scope")(None, default_name="input_layer", values=list(features.values())):
        return joined(features, columns, weight_collections, trainable, cols_to_vars, cols_to_output_tensors)


def only(feature_columns: Any, kinds: type | tuple[type, ...], wanted: str) -> list:
    """The columns in order; ValueError, which says what is wanted, when one of them is of another kind."""
    columns = checked(feature_columns)
    for column in columns:
        if not isinstance(column, kinds):
            raise ValueError(f"{wanted} Given: {column}")
    return columns


def dense_only(feature_columns: Any) -> list:
    """The columns in order; ValueError when one of them gives no dense tensor."""
    return only(
        feature_columns,
        DenseColumn,
        "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an embedding_column or "
        "indicator_column.",
    )


def joined(
    features: dict, columns: list, weight_collections: Any, trainable: bool, to_vars: Any, to_tensors: Any
) -> Tensor:
    """The tensors of the columns side by side; with variables in the current scope."""
    collections, batch, parts = all_collections(weight_collections), Features(features), []
    for column in columns:
        with find("variable_scope")(None, default_name=column.var_scope_name):
            before = len(find("global_variables")())
            tensor = column.dense(batch, collections, trainable)
            size = column.variable_shape.num_elements()
            flat = apply("Reshape", tensor, apply("Pack", [shape_of(tensor)[0], size]))
            parts.append(flat)
            if to_vars is not None:
                to_vars[column] = _new_variables(before)
            if to_tensors is not None:
                to_tensors[column] = flat
    check_batch_sizes(parts, columns)
    return find("concat")(parts, 1)


def check_batch_sizes(tensors: list, columns: list) -> None:
    """ValueError when columns are known to have different numbers of examples."""
    known = [(c.name, t.shape.as_list()[0]) for c, t in zip(columns, tensors, strict=True) if t.shape.rank]
    known = [(name, size) for name, size in known if size is not None]
    for name, size in known:
        if size != known[0][1]:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. Batch size of columns "
                f"({known[0][0]}, {name}): ({known[0][1]}, {size})"
            )


def linear_model(
    features: dict,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict | None = None,
) -> Tensor:
    """The weighted sum [batch, units] of all columns, with a bias; weights begin at zero."""
    columns = weighable(feature_columns)
    with find("variable_scope")(None, default_name="linear_model", values=list(features.values())):
        return summed(features, columns, units, sparse_combiner, weight_collections, trainable, cols_to_vars)


def weighable(feature_columns: Any) -> list:
    """The columns in order; ValueError when one of them gives nothing that has weights."""
    wanted = "Items of feature_columns must be either a _DenseColumn or _CategoricalColumn."
    return only(feature_columns, (DenseColumn, CategoricalColumn), wanted)


def summed(
    features: dict, columns: list, units: int, combiner: str, collections: Any, trainable: bool, to_vars: Any
) -> Tensor:
    """The weighted sum of what columns make of features, with a bias; with variables in the current scope."""
    options: dict[str, Any] = dict(trainable=trainable, collections=all_collections(collections))
    batch, sums = Features(features), []
    for column in columns:
        with find("variable_scope")(None, default_name=column.var_scope_name):
            before = len(find("global_variables")())
            sums.append(_weighted_sum(column, batch, units, combiner, options))
            if to_vars is not None:
                to_vars[column] = _new_variables(before)
    check_batch_sizes(sums, columns)
    total = find("add_n")(sums, name="weighted_sum_no_bias")
    before = len(find("global_variables")())
    zeros = find("zeros_initializer")()
    bias = find("get_variable")("bias_weights", [units], dtypes.float32, zeros, **options)
    if to_vars is not None:
        to_vars["bias"] = _new_variables(before)
    return find("nn.bias_add")(total, bias, name="weighted_sum")


def combiner_of(column: Any) -> str | None:
    """How a column of `tf.contrib.layers` wants its weights to be combined; None: as its model says."""
    return getattr(column, "_own_combiner", None)


def _weighted_sum(column: Any, batch: Features, units: int, combiner: str, options: dict) -> Tensor:
    zeros = find("zeros_initializer")()
    if isinstance(column, CategoricalColumn):
        ids, weights = column.ids_and_weights(batch)
        table = find("get_variable")("weights", (column.num_buckets, units), dtypes.float32, zeros, **options)
        rank = ids.dense_shape.shape.as_list()[0]
        if rank != 2:
            flat = apply("Pack", [ids.dense_shape[0], np.int64(-1)])
            ids = find("sparse_reshape")(ids, flat)
            weights = None if weights is None else find("sparse_reshape")(weights, flat)
        return find("nn.safe_embedding_lookup_sparse")(
            table, ids, sparse_weights=weights, combiner=combiner_of(column) or combiner, name="weighted_sum"
        )
    size = column.variable_shape.num_elements()
    kernel = find("get_variable")("weights", [size, units], dtypes.float32, zeros, **options)
    tensor = column.dense(batch, options["collections"], options["trainable"])
    flat = apply("Reshape", tensor, apply("Pack", [shape_of(tensor)[0], size]))
    return find("matmul")(flat, kernel, name="weighted_sum")


def make_parse_example_spec(feature_columns: Any) -> dict:
    """The `tf.parse_example` specification of all features that the columns use."""
    spec: dict = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"All feature_columns must be _FeatureColumn instances. Given: {column}")
        for key, value in column.parse_example_spec.items():
            if key in spec and spec[key] != value:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. Given {value} and {spec[key]}"
                )
            spec[key] = value
    return spec
