"""Columns that give a model a tensor for the ids of a categorical column: counts, or rows of a trained table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import find
from tensorfleet.feature_column.columns import CategoricalColumn, DenseColumn
from tensorfleet.feature_column.features import Features
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_collection, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.properties import readonly
from tensorfleet.shapes import TensorShape


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
    """How often (or with which weight) each id occurs in an example."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    parse_example_spec = readonly("categorical_column.parse_example_spec")

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.categorical_column.num_buckets])

    def transform(self, features: Features) -> Tensor:
        ids, weights = self.categorical_column.ids_and_weights(features)
        depth = self.categorical_column.num_buckets
        if weights is not None:
            merged = find("sparse_merge")(sp_ids=ids, sp_values=weights, vocab_size=depth)
            known = find("sparse_slice")(merged, [0, 0], merged.dense_shape)  # an id of -1 is none
            return find("sparse_tensor_to_dense")(known)
        dense = find("sparse_tensor_to_dense")(ids, default_value=-1)
        return apply("Sum", apply("OneHot", dense, depth, 1.0, 0.0), np.array([-2], np.int32))


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn):
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

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform(self, features: Features) -> tuple[SparseTensor, SparseTensor | None]:
        return self.categorical_column.ids_and_weights(features)

    def dense(self, features: Features, collections: Any = None, trainable: bool = True) -> Tensor:
        ids, weights = features.get(self)
        table = self._weights(collections, trainable)
        if self.ckpt_to_load_from is not None:
            to_restore = list(table) if hasattr(table, "_get_variable_list") else table
            find("train.init_from_checkpoint")(self.ckpt_to_load_from, {self.tensor_name_in_ckpt: to_restore})
        return find("nn.safe_embedding_lookup_sparse")(
            table, ids, weights, combiner=self.combiner, name=f"{self.name}_weights", max_norm=self.max_norm
        )

    def _weights(self, collections: Any, trainable: bool) -> Any:
        return find("get_variable")(
            "embedding_weights",
            (self.categorical_column.num_buckets, self.dimension),
            dtypes.float32,
            self.initializer,
            trainable=self.trainable and trainable,
            collections=collections,
        )


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
            made = super()._weights(collections, trainable)
        find("add_to_collection")(self.shared_embedding_collection_name, made)
        return made
