"""Columns that give a model a tensor for the ids of a categorical column: counts, or rows of a trained table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_collection, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.math.cast import cast
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import (
    CategoricalColumn,
    DenseColumn,
    SequenceDenseColumn,
    Steps,
)


def _need(column: Any, kind: str, sequence: bool) -> None:
    """ValueError unless the ids of a column have a time axis, or have none."""
    inner = column.categorical_column
    if inner.is_sequence == sequence:
        return
    given = f"Given (type {type(inner)}): {inner}"
    if sequence:
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must be of type SequenceCategoricalColumn to use "
            f"SequenceFeatures. Suggested fix: Use one of sequence_categorical_column_with_*. {given}"
        )
    raise ValueError(
        f"In {kind}: {column.name}. categorical_column must not be of type SequenceCategoricalColumn. Suggested fix "
        "A: If you wish to use DenseFeatures, use a non-sequence categorical_column_with_*. Suggested fix B: If you "
        f"wish to create sequence input, use SequenceFeatures instead of DenseFeatures. {given}"
    )


def _lengths(column: Any, features: Features) -> Tensor:
    return sequence_lengths(column.categorical_column.categorical_column.ids_and_weights(features)[0])


def sequence_lengths(sparse: SparseTensor, elements: int = 1) -> Tensor:
    """How many steps each sequence has, given that a step takes so many values."""
    rows, last = sparse.indices[:, 0], sparse.indices[:, 1] + np.int64(1)
    ends = apply("UnsortedSegmentMax", last, rows, cast(sparse.dense_shape[0], dtypes.int32))
    steps = apply("Maximum", ends, np.int64(0)) + np.int64(elements - 1)
    return apply("FloorDiv", steps, np.int64(elements), name="sequence_length")


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn, SequenceDenseColumn):
    """How often (or with which weight) each id occurs in an example."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    parse_example_spec = readonly("categorical_column.parse_example_spec")
    parents = property(lambda self: [self.categorical_column])

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([1, self.categorical_column.num_buckets])

    def transform(self, features: Features) -> Tensor:
        ids, weights = self.categorical_column.ids_and_weights(features)
        depth = self.categorical_column.num_buckets
        if weights is not None:
            merged = find("sparse_merge")(sp_ids=ids, sp_values=weights, vocab_size=depth)
            known = find("sparse_slice")(merged, [0, 0], merged.dense_shape)  # an id of -1 is none
            return find("sparse_tensor_to_dense")(known)
        dense = find("sparse_tensor_to_dense")(ids, default_value=-1)
        return apply("Sum", apply("OneHot", dense, depth, 1.0, 0.0), np.array([-2], np.int32))

    def dense(self, features: Features, collections: Any = None, trainable: bool = True) -> Tensor:
        _need(self, "indicator_column", sequence=False)
        return features.get(self)

    def sequence(self, features: Features, collections: Any = None, trainable: bool = True) -> Steps:
        _need(self, "indicator_column", sequence=True)
        return Steps(features.get(self), _lengths(self, features))


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn, SequenceDenseColumn):
    """The rows of a trained table at an example's ids, combined."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    parse_example_spec = readonly("categorical_column.parse_example_spec")
    parents = property(lambda self: [self.categorical_column])

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform(self, features: Features) -> Any:
        return features.get(self.categorical_column)

    def dense(self, features: Features, collections: Any = None, trainable: bool = True) -> Tensor:
        _need(self, "embedding_column", sequence=False)
        return self._looked_up(features, collections, trainable)

    def sequence(self, features: Features, collections: Any = None, trainable: bool = True) -> Steps:
        _need(self, "embedding_column", sequence=True)
        result = self._looked_up(features, collections, trainable)
        return Steps(result, _lengths(self, features))

    def _looked_up(self, features: Features, collections: Any, trainable: bool) -> Tensor:
        ids, weights = self.categorical_column.ids_and_weights(features)
        if features.state_manager is not None:
            table = features.state_manager.get_variable(self, name="embedding_weights")
        else:
            table = self._weights(collections, trainable)
        if self.ckpt_to_load_from is not None:
            to_restore = list(table) if hasattr(table, "_get_variable_list") else table
            find("train.init_from_checkpoint")(self.ckpt_to_load_from, {self.tensor_name_in_ckpt: to_restore})
        return find("nn.safe_embedding_lookup_sparse")(
            table, ids, weights, combiner=self.combiner, name=f"{self.name}_weights", max_norm=self.max_norm
        )

    def create_state(self, state_manager: Any) -> None:
        """Makes the table."""
        state_manager.create_variable(
            self,
            name="embedding_weights",
            shape=(self.categorical_column.num_buckets, self.dimension),
            dtype=dtypes.float32,
            trainable=self.trainable,
            use_resource=True,
            initializer=self.initializer,
        )

    def _weights(self, collections: Any, trainable: bool) -> Any:
        result = find("get_variable")(
            "embedding_weights",
            (self.categorical_column.num_buckets, self.dimension),
            dtypes.float32,
            self.initializer,
            trainable=self.trainable and trainable,
        )
        others = [c for c in collections or () if c != GraphKeys.GLOBAL_VARIABLES]
        for part in result if hasattr(result, "_get_variable_list") else [result]:
            find("add_to_collections")(others, part)
        return result


@dataclass(frozen=True)
class SharedEmbeddingColumn(EmbeddingColumn):
    """An embedding whose table other columns use too."""

    shared_embedding_collection_name: str = ""

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_shared_embedding"

    var_scope_name = readonly("shared_embedding_collection_name")

    def _weights(self, collections: Any, trainable: bool) -> Any:
        shared = get_collection(self.shared_embedding_collection_name)
        if shared:
            if len(shared) > 1:
                raise ValueError(
                    f"Collection {shared} can only contain one variable. Suggested fix A: Choose a unique name "
                    "for this collection. Suggested fix B: Do not add any variables to this collection."
                )
            wanted = [self.categorical_column.num_buckets, self.dimension]
            if shared[0].shape.as_list() != wanted:
                raise ValueError(
                    f"Shared embedding collection {self.shared_embedding_collection_name} contains variable "
                    f"{shared[0].name} of unexpected shape {shared[0].shape}. Expected shape is {wanted}."
                )
            return shared[0]
        with name_scope(None):
            result = super()._weights(collections, trainable)
        find("add_to_collection")(self.shared_embedding_collection_name, result)
        return result
