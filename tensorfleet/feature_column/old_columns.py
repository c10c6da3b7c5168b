"""Feature columns under the names of `tf.contrib.layers`, made of those of `tf.feature_column`."""

from __future__ import annotations

from typing import Any

from tensorfleet import dtypes
from tensorfleet.api import find
from tensorfleet.feature_column import making, using
from tensorfleet.feature_column.columns import BucketizedColumn, CategoricalColumn
from tensorfleet.graph.operation import Tensor

SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 0xDECAFCAFFE
bucketized_column = making.bucketized_column


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: Any = dtypes.float32,
    normalizer: Any = None,
) -> Any:
    """Numbers: `dimension` of them in each example. See `tf.feature_column.numeric_column`."""
    return making.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.string
) -> Any:
    """Words or integers by their hashes. See `tf.feature_column.categorical_column_with_hash_bucket`."""
    return making.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.int64
) -> Any:
    """Integers that are ids already. See `tf.feature_column.categorical_column_with_identity`."""
    return making.categorical_column_with_identity(column_name, bucket_size)


def sparse_column_with_keys(
    column_name: str, keys: Any, default_value: int = -1, combiner: str = "sum", dtype: Any = dtypes.string
) -> Any:
    """Words by their places in a list. See `tf.feature_column.categorical_column_with_vocabulary_list`."""
    return making.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value)


def weighted_sparse_column(
    sparse_id_column: CategoricalColumn, weight_column_name: str, dtype: Any = dtypes.float32
) -> Any:
    """A column's ids weighed by a feature. See `tf.feature_column.weighted_categorical_column`."""
    return making.weighted_categorical_column(sparse_id_column, weight_column_name, dtype)


def one_hot_column(sparse_id_column: CategoricalColumn) -> Any:
    """A column's ids as counts. See `tf.feature_column.indicator_column`."""
    return making.indicator_column(sparse_id_column)


def old_crossed_column(
    columns: Any,
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> Any:
    """Combinations of the values of several columns, hashed. See `tf.feature_column.crossed_column`."""
    keys = [c if isinstance(c, BucketizedColumn) or not hasattr(c, "key") else c.key for c in columns]
    return making.crossed_column(keys, hash_bucket_size, hash_key)


def old_embedding_column(
    sparse_id_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: Any = None,
    trainable: bool = True,
) -> Any:
    """Rows of a trained table at a column's ids. See `tf.feature_column.embedding_column`."""
    return making.embedding_column(
        sparse_id_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def create_feature_spec_for_parsing(feature_columns: Any) -> dict:
    """What `tf.parse_example` needs to read the features of the columns."""
    return using.make_parse_example_spec(feature_columns)


def input_from_feature_columns(
    columns_to_tensors: dict,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: dict | None = None,
) -> Tensor:
    """A dense tensor of all columns. See `tf.feature_column.input_layer`."""
    with find("variable_scope")(scope, default_name="input_from_feature_columns"):
        return using.input_layer(
            columns_to_tensors,
            feature_columns,
            weight_collections,
            trainable,
            cols_to_output_tensors=cols_to_outs,
        )


def weighted_sum_from_feature_columns(
    columns_to_tensors: dict,
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Tensor, dict, Any]:
    """The weighted sum of all columns, the variables of each column, and the bias."""
    variables: dict = {}
    with find("variable_scope")(scope, default_name="weighted_sum_from_feature_columns"):
        total = using.linear_model(
            columns_to_tensors,
            feature_columns,
            units=num_outputs,
            weight_collections=weight_collections,
            trainable=trainable,
            cols_to_vars=variables,
        )
    bias = variables.pop("bias")[0]
    return total, variables, bias
