"""Kinds of feature columns: where their values come from, and what they give a model.

A dense column gives a tensor (`dense`), a categorical one sparse ids with optional weights (`ids_and_weights`).
Columns are values: equal when made with the same arguments, and usable as keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features, as_sparse, with_values
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import CategoricalColumn, DenseColumn


def _elements(shape: tuple) -> int:
    return math.prod(shape)


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """Numbers as they are, or as `normalizer_fn` makes them."""

    key: str
    shape: tuple
    default_value: Any
    dtype: DType
    normalizer_fn: Any

    name = readonly("key")
    parents = property(lambda self: [self.key])

    @property
    def parse_example_spec(self) -> dict:
        return {self.key: find("FixedLenFeature")(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def transform(self, features: Features) -> Tensor:
        value = features.get(self.key)
        if isinstance(value, SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not "
                f"supported. key: {self.key}"
            )
        if self.normalizer_fn is not None:
            value = self.normalizer_fn(value)
        return cast(value, dtypes.float32)


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """The number of the interval that a value lies in: one-hot when dense, an id otherwise."""

    source_column: NumericColumn
    boundaries: tuple

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    parse_example_spec = readonly("source_column.parse_example_spec")
    parents = property(lambda self: [self.source_column])

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([*self.source_column.shape, len(self.boundaries) + 1])

    @property
    def num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def transform(self, features: Features) -> Tensor:
        return apply("Bucketize", features.get(self.source_column), boundaries=list(self.boundaries))

    def dense(self, features: Features, collections: Any = None, trainable: bool = True) -> Tensor:
        depth = len(self.boundaries) + 1
        return apply("OneHot", cast(features.get(self), dtypes.int64), depth, 1.0, 0.0)

    def ids_and_weights(self, features: Features) -> tuple[SparseTensor, None]:
        numbers = features.get(self)
        width = self.source_column.shape[0]
        batch = shape_of(numbers)[0]
        places = apply("Range", 0, batch, 1)
        rows = apply("Reshape", apply("Tile", apply("ExpandDims", places, 1), [1, width]), [-1])
        columns = apply("Tile", apply("Range", 0, width, 1), apply("Reshape", batch, [1]))
        ids = apply("Reshape", numbers, [-1]) + np.int32(len(self.boundaries) + 1) * columns
        indices = cast(apply("Transpose", apply("Pack", [rows, columns]), [1, 0]), dtypes.int64)
        size = cast(apply("Pack", [batch, width]), dtypes.int64)
        return SparseTensor(indices, cast(ids, dtypes.int64), size), None


class KeyedCategorical(CategoricalColumn):
    """Ids made from the values of one feature."""

    key: str
    dtype: DType

    name = readonly("key")
    parents = property(lambda self: [self.key])

    @property
    def parse_example_spec(self) -> dict:
        return {self.key: find("VarLenFeature")(self.dtype)}

    def transform(self, features: Features) -> SparseTensor:
        sparse = as_sparse(features.get(self.key))
        return with_values(sparse, self._ids(sparse.values))

    def _ids(self, values: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} makes no ids.")

    def _check_kind(self, values: Tensor) -> None:
        if values.dtype != dtypes.string and not values.dtype.is_integer:
            raise ValueError(
                f"column_name: {self.key} tensors dtype must be string or integer. dtype: {values.dtype}."
            )
        if (values.dtype == dtypes.string) != (self.dtype == dtypes.string):
            raise ValueError(
                f"Column dtype and SparseTensors dtype must be compatible. key: {self.key}, column dtype: "
                f"{self.dtype}, tensor dtype: {values.dtype}"
            )


@dataclass(frozen=True)
class IdentityCategoricalColumn(KeyedCategorical):
    """Integers that are ids already."""

    key: str
    number_buckets: int
    default_value: Any
    dtype = dtypes.int64

    num_buckets = readonly("number_buckets")

    def _ids(self, values: Tensor) -> Tensor:
        if not values.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {values.dtype}")
        values = cast(values, dtypes.int64, name="values")
        end, zero = np.int64(self.number_buckets), np.int64(0)
        if self.default_value is None:
            checks = [
                find("assert_less")(values, end, data=(values, end), name="assert_less_than_num_buckets"),
                find("assert_greater_equal")(values, zero, data=(values,), name="assert_greater_or_equal_0"),
            ]
            with control_dependencies(checks):
                return apply("Identity", values)
        outside = apply("LogicalOr", values < zero, values >= end, name="out_of_range")
        default = apply("Fill", shape_of(values), np.int64(self.default_value), name="default_values")
        return apply("Select", outside, default, values)


@dataclass(frozen=True)
class HashedCategoricalColumn(KeyedCategorical):
    """Words or integers by their hashes."""

    key: str
    hash_bucket_size: int
    dtype: DType

    num_buckets = readonly("hash_bucket_size")

    def _ids(self, values: Tensor) -> Tensor:
        self._check_kind(values)
        words = values if self.dtype == dtypes.string else find("as_string")(values)
        return find("string_to_hash_bucket_fast")(words, self.hash_bucket_size, name="lookup")


class _Vocabulary(KeyedCategorical):
    """Ids by a table, with hashed ones for words it does not hold."""

    num_oov_buckets: int

    def _ids(self, values: Tensor) -> Tensor:
        self._check_kind(values)
        if values.dtype.is_integer:
            values = cast(values, dtypes.int64)
        return self._table(dtypes.string if self.dtype == dtypes.string else dtypes.int64).lookup(values)

    def _table(self, key_dtype: DType) -> Any:
        raise TypeError(f"{type(self).__name__} has no table.")


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(_Vocabulary):
    """Words by their places in a list."""

    key: str
    vocabulary_list: tuple
    dtype: DType
    default_value: int
    num_oov_buckets: int

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self, key_dtype: DType) -> Any:
        return find("contrib.lookup.index_table_from_tensor")(
            tuple(self.vocabulary_list),
            default_value=self.default_value,
            num_oov_buckets=self.num_oov_buckets,
            dtype=key_dtype,
            name=f"{self.key}_lookup",
        )


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(_Vocabulary):
    """Words by their lines in a file."""

    key: str
    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int
    dtype: DType
    default_value: int

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self, key_dtype: DType) -> Any:
        return find("contrib.lookup.index_table_from_file")(
            vocabulary_file=self.vocabulary_file,
            num_oov_buckets=self.num_oov_buckets,
            vocab_size=self.vocabulary_size,
            default_value=self.default_value,
            key_dtype=key_dtype,
            name=f"{self.key}_lookup",
        )


@dataclass(frozen=True)
class WeightedCategoricalColumn(CategoricalColumn):
    """The ids of another column, weighed by a feature."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict:
        spec = self.categorical_column.parse_example_spec
        if self.weight_feature_key in spec:
            raise ValueError(
                f"Parse config {spec[self.weight_feature_key]} already exists for {self.weight_feature_key}."
            )
        return {**spec, self.weight_feature_key: find("VarLenFeature")(self.dtype)}

    num_buckets = readonly("categorical_column.num_buckets")
    parents = property(lambda self: [self.categorical_column, self.weight_feature_key])

    def transform(self, features: Features) -> tuple[SparseTensor, SparseTensor]:
        weights = features.get(self.weight_feature_key)
        if self.dtype != weights.dtype.base_dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype}, but got {weights.dtype}.")
        sparse = as_sparse(weights, ignored=0.0)
        if sparse.values.dtype.base_dtype != dtypes.float32:
            sparse = with_values(sparse, cast(sparse.values, dtypes.float32))
        return self.categorical_column.ids_and_weights(features)[0], sparse

    def ids_and_weights(self, features: Features) -> tuple[SparseTensor, SparseTensor | None]:
        return features.get(self)


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Hashes of every combination of the values of several features or columns."""

    keys: tuple
    hash_bucket_size: int
    hash_key: int | None

    @property
    def name(self) -> str:
        return "_X_".join(sorted(self._leaf_names()))

    def _leaf_names(self) -> list[str]:
        return [key if isinstance(key, str) else key.name for key in leaf_keys(self)]

    @property
    def parse_example_spec(self) -> dict:
        spec: dict = {}
        for key in self.keys:
            spec.update(
                {key: find("VarLenFeature")(dtypes.string)}
                if isinstance(key, str)
                else key.parse_example_spec
            )
        return spec

    num_buckets = readonly("hash_bucket_size")
    parents = property(lambda self: list(self.keys))

    def transform(self, features: Features) -> SparseTensor:
        crossed = [part for key in self.keys for part in self._parts(key, features)]
        return find("sparse.cross_hashed")(
            inputs=crossed, num_buckets=self.hash_bucket_size, hash_key=self.hash_key
        )

    def _parts(self, key: Any, features: Features) -> list:
        if isinstance(key, str):
            return [features.get(key)]
        if isinstance(key, CrossedColumn):
            return [part for inner in key.keys for part in key._parts(inner, features)]
        ids, weights = key.ids_and_weights(features)
        if weights is not None:
            raise ValueError(
                "crossed_column does not support weight_tensor, but the given column populates "
                f"weight_tensor. Given column: {key.name}"
            )
        return [ids]


def leaf_keys(cross: CrossedColumn) -> list:
    """The features and columns that a cross is of, those of the crosses inside it in place of them."""
    parts = ([key] if not isinstance(key, CrossedColumn) else leaf_keys(key) for key in cross.keys)
    return [key for part in parts for key in part]


def all_collections(asked: Any) -> list:
    """The collections that a column's weights go into."""
    return list(dict.fromkeys([*(asked or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]))
