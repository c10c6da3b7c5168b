"""Columns of sequences: features with a time axis after the batch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, like
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast
from tensorfleet_legacy.feature_column import feature_column as making
from tensorfleet_legacy.feature_column.feature_column_inputs import only
from tensorfleet_legacy.feature_column.feature_column_v2 import all_collections
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features, as_sparse
from tensorfleet_legacy.feature_column.feature_column_v2_dense import sequence_lengths
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import (
    CategoricalColumn,
    SequenceDenseColumn,
    Steps,
)


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """A categorical column whose ids have a time axis."""

    categorical_column: CategoricalColumn

    is_sequence = True
    name = readonly("categorical_column.name")
    parse_example_spec = readonly("categorical_column.parse_example_spec")
    num_buckets = readonly("categorical_column.num_buckets")

    def transform(self, features: Features) -> SparseTensor:
        ids, _ = self.categorical_column.ids_and_weights(features)
        rest = apply("Prod", ids.dense_shape[2:], np.array([0], np.int32), keep_dims=True)
        return find("sparse_reshape")(ids, apply("ConcatV2", [ids.dense_shape[:2], rest], 0))


@dataclass(frozen=True)
class SequenceNumericColumn(SequenceDenseColumn):
    """Numbers with a time axis, padded at the end of the shorter sequences."""

    key: str
    shape: tuple
    default_value: float
    dtype: DType
    normalizer_fn: Any

    name = readonly("key")

    @property
    def parse_example_spec(self) -> dict:
        return {self.key: find("VarLenFeature")(self.dtype)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def transform(self, features: Features) -> SparseTensor:
        sparse = as_sparse(features.get(self.key))
        if self.normalizer_fn is not None:
            sparse = self.normalizer_fn(sparse)
        return sparse

    def sequence(self, features: Features, collections: Any = None, trainable: bool = True) -> Steps:
        sparse = features.get(self)
        padded = find("sparse_tensor_to_dense")(sparse, default_value=self.default_value)
        size = [shape_of(padded)[0], np.int32(-1), *(np.int32(d) for d in self.shape)]
        numbers = cast(apply("Reshape", padded, apply("Pack", size)), dtypes.float32)
        elements = math.prod(self.shape) if sparse.shape.rank in (None, 2) else 1
        return Steps(numbers, sequence_lengths(sparse, elements))


def _of_sequences(kind: str, does: str) -> Callable[..., SequenceCategoricalColumn]:
    """A function that makes a categorical column of sequences, with the arguments of the one for single values."""
    make = getattr(making, kind)
    return function(
        like(make), f"sequence_{kind}", lambda given: SequenceCategoricalColumn(make(**given)), does
    )


sequence_categorical_column_with_hash_bucket = _of_sequences(
    "categorical_column_with_hash_bucket", "Sequences of words or integers by their hashes."
)
sequence_categorical_column_with_identity = _of_sequences(
    "categorical_column_with_identity", "Sequences of integers that are ids already."
)
sequence_categorical_column_with_vocabulary_file = _of_sequences(
    "categorical_column_with_vocabulary_file", "Sequences of words by their lines in a file."
)
sequence_categorical_column_with_vocabulary_list = _of_sequences(
    "categorical_column_with_vocabulary_list", "Sequences of words by their places in a list."
)


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: Any = dtypes.float32,
    normalizer_fn: Any = None,
) -> SequenceNumericColumn:
    """Sequences of numbers, `shape` of them in each step."""
    like = making.numeric_column(key, shape, None, dtype, normalizer_fn)
    return SequenceNumericColumn(key, like.shape, default_value, like.dtype, normalizer_fn)


def sequence_input_layer(
    features: dict, feature_columns: Any, weight_collections: Any = None, trainable: bool = True
) -> tuple[Tensor, Tensor]:
    """A tensor [batch, steps, numbers] of all columns in the order of their names, and the lengths."""
    columns = sequences_only(feature_columns)
    batch, parts, lengths = Features(features), [], []
    collections = all_collections(weight_collections)
    with find("variable_scope")(None, default_name="sequence_input_layer", values=list(features.values())):
        for column in columns:
            with find("variable_scope")(None, default_name=column.var_scope_name):
                tensor, length = column.sequence(batch, collections, trainable)
                lengths.append(length)
                size = column.variable_shape.num_elements()
                outer = [*apply_list("Unpack", shape_of(tensor)[:2], num=2), np.int32(size)]
                parts.append(apply("Reshape", tensor, apply("Pack", outer)))
        return find("concat")(parts, -1), _equal(lengths)


def concatenate_context_input(context_input: Any, sequence_input: Any) -> Tensor:
    """Appends what holds for a whole sequence, [batch, numbers], to every step of it, [batch, steps, numbers]."""
    for given, rank, what in ((sequence_input, 3, "sequence_input"), (context_input, 2, "context_input")):
        find("assert_rank")(given, rank, message=f"{what} must have rank {rank}")
        if not given.dtype.is_floating:
            raise ValueError(f"{what} must have dtype float32; got {given.dtype}.")
    steps = shape_of(sequence_input)[1]
    repeated = find("tile")(find("expand_dims")(context_input, 1), find("stack")([1, steps, 1]))
    return find("concat")([sequence_input, repeated], 2)


def sequences_only(feature_columns: Any) -> list:
    """The columns in order; ValueError when one of them is not for sequences."""
    return only(
        feature_columns,
        SequenceDenseColumn,
        "All feature_columns must be of type _SequenceDenseColumn. You can wrap a sequence_categorical_column with an "
        "embedding_column or indicator_column.",
    )


def _equal(lengths: list[Tensor]) -> Tensor:
    if len(lengths) == 1:
        return lengths[0]
    checks = [find("assert_equal")(lengths[0], other) for other in lengths[1:]]
    with find("control_dependencies")(checks):
        return apply("Identity", lengths[0])
