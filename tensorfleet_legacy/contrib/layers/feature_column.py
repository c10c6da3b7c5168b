"""Feature columns under the names of `tf.contrib.layers`, made of those of `tf.feature_column`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.feature_column import feature_column as making
from tensorfleet_legacy.feature_column.feature_column_inputs import combiner_of
from tensorfleet_legacy.feature_column.feature_column_v2 import (
    BucketizedColumn,
    CrossedColumn,
    HashedCategoricalColumn,
    KeyedCategorical,
    NumericColumn,
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
    WeightedCategoricalColumn,
)
from tensorfleet_legacy.feature_column.feature_column_v2_dense import EmbeddingColumn, IndicatorColumn
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import CategoricalColumn, FeatureColumn

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
    return _combining(
        making.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype), combiner
    )


def _combining(column: Any, combiner: str | None) -> Any:
    """A column that says itself how a model adds up its weights."""
    if combiner is not None:
        object.__setattr__(column, "_own_combiner", combiner)
    return column


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.int64
) -> Any:
    """Integers that are ids already, taken modulo the number of ids."""
    kind = dtypes.as_dtype(dtype)
    if not kind.is_integer:
        raise ValueError(f"dtype must be an integer. dtype is {kind.name}, column_name: {column_name}")
    return _combining(IntegerizedColumn(column_name, bucket_size, kind), combiner)


@dataclass(frozen=True)
class IntegerizedColumn(KeyedCategorical):
    """Integers modulo the number of buckets."""

    key: str
    bucket_size: int
    dtype: DType

    num_buckets = readonly("bucket_size")

    def _ids(self, values: Tensor) -> Tensor:
        if not values.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {values.dtype}")
        return find("mod")(find("cast")(values, dtypes.int64), np.int64(self.bucket_size))


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = dtypes.string,
) -> Any:
    """Words by their lines in a file. See `tf.feature_column.categorical_column_with_vocabulary_file`."""
    if vocab_size is None:
        raise ValueError(f"vocab_size should be defined. column_name: {column_name}")
    default = None if num_oov_buckets else default_value
    result = making.categorical_column_with_vocabulary_file(
        column_name, vocabulary_file, vocab_size, num_oov_buckets, default, dtype
    )
    return _combining(result, combiner)


def sparse_column_with_keys(
    column_name: str, keys: Any, default_value: int = -1, combiner: str = "sum", dtype: Any = dtypes.string
) -> Any:
    """Words by their places in a list. See `tf.feature_column.categorical_column_with_vocabulary_list`."""
    result = making.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value)
    return _combining(result, combiner)


def weighted_sparse_column(
    sparse_id_column: CategoricalColumn, weight_column_name: str, dtype: Any = dtypes.float32
) -> Any:
    """A column's ids weighed by a feature. See `tf.feature_column.weighted_categorical_column`."""
    result = making.weighted_categorical_column(sparse_id_column, weight_column_name, dtype)
    return _combining(result, combiner_of(sparse_id_column))


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
    return _combining(making.crossed_column(keys, hash_bucket_size, hash_key), combiner)


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
    return making.embedding_column(*locals().values())


def old_shared_embedding_columns(
    sparse_id_columns: Any,
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: Any = None,
    trainable: bool = True,
) -> list:
    """Embeddings of several columns from one table. See `tf.feature_column.shared_embedding_columns`."""
    if not isinstance(sparse_id_columns, (list, tuple)) or not sparse_id_columns:
        raise TypeError("sparse_id_columns must be a non-empty list of sparse columns.")
    return making.shared_embedding_columns(
        sparse_id_columns,
        dimension,
        combiner,
        initializer,
        shared_embedding_name,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


# The classes that columns have inside of TensorFlow, for those who ask by isinstance.
CLASSES: dict[str, type] = {
    "_EmbeddingColumn": EmbeddingColumn,
    "_OneHotColumn": IndicatorColumn,
    "_WeightedSparseColumn": WeightedCategoricalColumn,
    "_CrossedColumn": CrossedColumn,
    "_BucketizedColumn": BucketizedColumn,
    "_RealValuedColumn": NumericColumn,
    "_SparseColumnHashed": HashedCategoricalColumn,
    "_SparseColumnIntegerized": IntegerizedColumn,
    "_SparseColumnKeys": VocabularyListCategoricalColumn,
    "_SparseColumnVocabulary": VocabularyFileCategoricalColumn,
    "_SparseColumn": KeyedCategorical,
    "_FeatureColumn": FeatureColumn,
}


def described(column: Any) -> str:
    """How the description of a column begins in TensorFlow; models join columns in the order of these texts."""
    if isinstance(column, str):
        return f"_SparseColumnHashed(column_name={column!r}"
    label = next(name for name, kind in CLASSES.items() if isinstance(column, kind))
    if isinstance(column, CrossedColumn):
        return f"{label}(columns=({', '.join(map(described, column.keys))}"
    if isinstance(column, BucketizedColumn):
        return f"{label}(source_column={described(column.source_column)}"
    if hasattr(column, "categorical_column"):
        return f"{label}(sparse_id_column={described(column.categorical_column)}"
    return f"{label}(column_name={getattr(column, 'key', column.name)!r}"
