"""The functions that make feature columns, and what they refuse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import find
from tensorfleet_legacy.feature_column.feature_column_v2 import (
    BucketizedColumn,
    CrossedColumn,
    HashedCategoricalColumn,
    IdentityCategoricalColumn,
    NumericColumn,
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
    WeightedCategoricalColumn,
)
from tensorfleet_legacy.feature_column.feature_column_v2_dense import (
    EmbeddingColumn,
    IndicatorColumn,
    SharedEmbeddingColumn,
)
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import CategoricalColumn


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = dtypes.float32,
    normalizer_fn: Any = None,
) -> NumericColumn:
    """Numbers: `shape` of them in each example, through `normalizer_fn` if there is one."""
    _check_key(key)
    dims = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    for d in dims:
        if not isinstance(d, (int, np.integer)):
            raise TypeError(f"shape dimensions must be integer. shape: {shape}, key: {key}")
        if d < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}, key: {key}")
    kind = dtypes.as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    return NumericColumn(key, dims, _default(dims, default_value, kind, key), kind, normalizer_fn)


def _default(shape: tuple, value: Any, dtype: DType, key: str) -> Any:
    """A default value as nested tuples of the column's shape."""
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or (dtype.is_integer and array.dtype.kind == "f"):
        raise TypeError(
            f"default_value must be compatible with dtype. default_value: {value}, dtype: {dtype}, key: {key}"
        )
    if array.ndim == 0:
        array = np.full(shape, array)
    if array.shape != shape:
        raise ValueError(
            f"The shape of default_value must be equal to given shape. default_value: {value}, shape: "
            f"{shape}, key: {key}"
        )
    return _nested(array.astype(dtype.as_numpy_dtype).tolist())


def _nested(value: Any) -> Any:
    return tuple(map(_nested, value)) if isinstance(value, list) else value


def bucketized_column(source_column: NumericColumn, boundaries: Any) -> BucketizedColumn:
    """The interval between `boundaries` (the lower end belongs to it) that a number lies in."""
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            f"source_column must be a column generated with numeric_column(). Given: {source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    if not isinstance(boundaries, (list, tuple)):
        raise ValueError("boundaries must be a sorted list.")
    if any(a >= b for a, b in itertools.pairwise(boundaries)):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


def _check_words(key: str, dtype: DType, what: str = "dtype") -> None:
    if dtype != dtypes.string and not dtype.is_integer:
        raise ValueError(f"column_name: {key} {what} must be string or integer. dtype: {dtype}.")


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = dtypes.string
) -> HashedCategoricalColumn:
    """Words or integers by their hashes, for vocabularies that are not known."""
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    _check_key(key)
    kind = dtypes.as_dtype(dtype)
    _check_words(key, kind)
    return HashedCategoricalColumn(key, hash_bucket_size, kind)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: Any = None
) -> IdentityCategoricalColumn:
    """Integers that are ids already; others are `default_value`, or an error."""
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    _check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Any,
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListCategoricalColumn:
    """Words by their places in a list; others by `default_value`, or hashed into `num_oov_buckets` more."""
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    result = dtypes.as_dtype(np.array(vocabulary_list).dtype)
    _check_oov(key, num_oov_buckets, default_value, -1)
    _check_words(key, result, "vocabulary dtype")
    kind = result if dtype is None else dtypes.as_dtype(dtype)
    if kind.is_integer != result.is_integer:
        raise ValueError(f"dtype {kind} and vocabulary dtype {result} do not match, column_name: {key}")
    _check_words(key, kind)
    _check_key(key)
    return VocabularyListCategoricalColumn(key, tuple(vocabulary_list), kind, default_value, num_oov_buckets)


def _check_oov(key: str, num_oov_buckets: int, default_value: Any, none: Any) -> None:
    if not num_oov_buckets:
        return
    if default_value != none:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: Any = None,
    dtype: Any = dtypes.string,
) -> VocabularyFileCategoricalColumn:
    """Words by their lines in a file; others by `default_value` (-1), or hashed into `num_oov_buckets` more."""
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        if not find("gfile.Exists")(vocabulary_file):
            raise ValueError(f"vocabulary_file in {key} does not exist.")
        with find("gfile.GFile")(vocabulary_file, "rb") as f:
            vocabulary_size = sum(1 for _ in f)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_oov(key, num_oov_buckets, default_value, None)
    kind = dtypes.as_dtype(dtype)
    _check_words(key, kind)
    _check_key(key)
    default = -1 if default_value is None else default_value
    return VocabularyFileCategoricalColumn(
        key, vocabulary_file, vocabulary_size, num_oov_buckets, kind, default
    )


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = dtypes.float32
) -> WeightedCategoricalColumn:
    """A categorical column whose ids count as much as the feature `weight_feature_key` says."""
    kind = dtypes.as_dtype(dtype) if dtype is not None else None
    if kind is None or not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, kind)


def crossed_column(keys: Any, hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Every combination of the values of several features or categorical columns, hashed."""
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before crossing will "
                f"increase probability of collision. Instead, use the feature name as a string. Given: {key}"
            )
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column except "
                f"HashedCategoricalColumn. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """The ids of a categorical column as counts, one place for each id."""
    return IndicatorColumn(categorical_column)


def _check_embedding(
    dimension: Any, ckpt: Any, tensor: Any, initializer: Any, what: str = "initializer"
) -> Any:
    """The initializer; ValueError for what an embedding cannot be."""
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt is None) != (tensor is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"{what} must be callable if specified.")
    if initializer is None:
        return find("truncated_normal_initializer")(mean=0.0, stddev=1 / math.sqrt(dimension))
    return initializer


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: Any = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """The rows of a trained table at the ids of a categorical column, combined into one."""
    result = _check_embedding(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer)
    return EmbeddingColumn(
        categorical_column,
        dimension,
        combiner,
        result,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def shared_embedding_columns(
    categorical_columns: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: Any = None,
    trainable: bool = True,
) -> list[SharedEmbeddingColumn]:
    """An embedding for each of the categorical columns, all from one table."""
    result = _check_embedding(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer)
    ordered = sorted(categorical_columns, key=lambda c: c.name)
    kinds = [_unweighted(c) for c in ordered]
    for column in kinds[1:]:
        if type(column) is not type(kinds[0]):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, or be "
                "weighted_categorical_column or sequence column of the same type. Given column: "
                f"{kinds[0]} of type: {type(kinds[0])} does not match given column: {column} of type: "
                f"{type(column)}"
            )
        if column.num_buckets != kinds[0].num_buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same number of "
                f"buckets. Given column: {kinds[0]} with buckets: {kinds[0].num_buckets} does  not match "
                f"column: {column} with buckets: {column.num_buckets}"
            )
    name = shared_embedding_collection_name or "_".join(c.name for c in ordered) + "_shared_embedding"
    rest = (dimension, combiner, result, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable, name)
    return [SharedEmbeddingColumn(c, *rest) for c in categorical_columns]


def _unweighted(column: Any) -> Any:
    while isinstance(column, WeightedCategoricalColumn):
        column = column.categorical_column
    return column
