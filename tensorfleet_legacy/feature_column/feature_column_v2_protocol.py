"""The interface of feature columns, ours and those of users.

Columns here answer `transform`, `dense` and `ids_and_weights`. TensorFlow asked them by other names, at first with an
underscore (`_get_dense_tensor(builder)`), then with an object that holds the variables
(`get_dense_tensor(cache, state_manager)`). Both still work: on columns that are made here, and as what a class of a
user's own defines.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features


def _defines(column: Any, name: str, base: type) -> bool:
    """Whether a column's class has a method or property of its own."""
    return getattr(type(column), name) is not getattr(base, name)


class FeatureColumn:
    """The base of all columns."""

    _is_v2_column = True

    @property
    def name(self) -> str:
        """The name that variables of this column go by, unique in a model."""
        raise TypeError(f"{type(self).__name__} has no name.")

    @property
    def parse_example_spec(self) -> dict:
        """The `tf.parse_example` specification of the column's features."""
        if _defines(self, "_parse_example_spec", FeatureColumn):
            return self._parse_example_spec
        raise TypeError(f"{type(self).__name__} reads no features.")

    def transform(self, features: Features) -> Any:
        """The column's transformed features, before a model uses them."""
        if _defines(self, "_transform_feature", FeatureColumn):
            return self._transform_feature(features)
        if _defines(self, "transform_feature", FeatureColumn):
            return self.transform_feature(features, features.state_manager)
        raise TypeError(f"{type(self).__name__} transforms nothing.")

    @property
    def parents(self) -> list:
        """The columns and the names of features that this one reads."""
        raise TypeError(f"{type(self).__name__} does not tell what it reads.")

    _parse_example_spec = readonly("parse_example_spec")
    _var_scope_name = readonly("var_scope_name")
    var_scope_name = readonly("name", "The variable scope of the column's weights.")

    def _transform_feature(self, inputs: Features) -> Any:
        return self.transform(inputs)

    def transform_feature(self, transformation_cache: Features, state_manager: Any) -> Any:
        """`transform`, with variables from `state_manager`."""
        return self.transform(transformation_cache.with_state(state_manager))

    def create_state(self, state_manager: Any) -> None:
        """Makes the column's variables, if it has any."""

    def __lt__(self, other: Any) -> bool:
        return str(self) < str(other)  # dictionaries by columns and names are sorted

    def __gt__(self, other: Any) -> bool:
        return str(self) > str(other)


class DenseColumn(FeatureColumn):
    """A column that gives a dense tensor."""

    @property
    def variable_shape(self) -> TensorShape:
        """The shape of what one example gets."""
        if _defines(self, "_variable_shape", DenseColumn):
            return as_shape(self._variable_shape)
        raise TypeError(f"{type(self).__name__} has no shape.")

    def dense(self, features: Features, collections: Any = None, trainable: bool = True) -> Tensor:
        """The tensor of a batch, made with the weights of the current variable scope."""
        if _defines(self, "_get_dense_tensor", DenseColumn):
            return self._get_dense_tensor(features, weight_collections=collections, trainable=trainable)
        if _defines(self, "get_dense_tensor", DenseColumn):
            return self.get_dense_tensor(features, features.state_manager)
        return features.get(self)

    _variable_shape = readonly("variable_shape")

    def _get_dense_tensor(
        self, inputs: Features, weight_collections: Any = None, trainable: bool | None = None
    ) -> Tensor:
        return self.dense(inputs, weight_collections, trainable is not False)

    def get_dense_tensor(self, transformation_cache: Features, state_manager: Any) -> Tensor:
        """`dense`, with variables from `state_manager`."""
        return self.dense(transformation_cache.with_state(state_manager))


class Steps(NamedTuple):
    """A tensor [batch, steps, numbers], and the number of steps of each sequence."""

    dense_tensor: Tensor
    sequence_length: Tensor


class SequenceDenseColumn(FeatureColumn):
    """A column that gives a dense tensor for every step of sequences."""

    TensorSequenceLengthPair = Steps

    def sequence(self, features: Features, collections: Any = None, trainable: bool = True) -> Steps:
        """The tensor of a batch of sequences, and their lengths."""
        if _defines(self, "_get_sequence_dense_tensor", SequenceDenseColumn):
            options = {"weight_collections": collections, "trainable": trainable}
            return self._get_sequence_dense_tensor(features, **options)
        if _defines(self, "get_sequence_dense_tensor", SequenceDenseColumn):
            return self.get_sequence_dense_tensor(features, features.state_manager)
        raise TypeError(f"{type(self).__name__} has no sequences.")

    def _get_sequence_dense_tensor(
        self, inputs: Features, weight_collections: Any = None, trainable: bool | None = None
    ) -> Steps:
        return self.sequence(inputs, weight_collections, trainable is not False)

    def get_sequence_dense_tensor(self, transformation_cache: Features, state_manager: Any) -> Steps:
        """`sequence`, with variables from `state_manager`."""
        return self.sequence(transformation_cache.with_state(state_manager))


class Ids(NamedTuple):
    """Sparse ids, and how much each counts (None: all alike)."""

    id_tensor: SparseTensor
    weight_tensor: SparseTensor | None


class CategoricalColumn(FeatureColumn):
    """A column that gives ids below `num_buckets`."""

    IdWeightPair = Ids
    is_sequence = False  # whether the ids have a time axis

    @property
    def num_buckets(self) -> int:
        """How many ids there can be."""
        if _defines(self, "_num_buckets", CategoricalColumn):
            return self._num_buckets
        raise TypeError(f"{type(self).__name__} has no buckets.")

    def ids_and_weights(self, features: Features) -> tuple[SparseTensor, SparseTensor | None]:
        """The ids of a batch, and how much each counts (None: all alike)."""
        if _defines(self, "_get_sparse_tensors", CategoricalColumn):
            return self._get_sparse_tensors(features)
        if _defines(self, "get_sparse_tensors", CategoricalColumn):
            return self.get_sparse_tensors(features, features.state_manager)
        return features.get(self), None

    _num_buckets = readonly("num_buckets")

    def _get_sparse_tensors(
        self, inputs: Features, weight_collections: Any = None, trainable: bool | None = None
    ) -> Ids:
        return Ids(*self.ids_and_weights(inputs))

    def get_sparse_tensors(self, transformation_cache: Features, state_manager: Any) -> Ids:
        """`ids_and_weights`, with variables from `state_manager`."""
        return Ids(*self.ids_and_weights(transformation_cache.with_state(state_manager)))


class _SideBySide(abc.ABCMeta):
    """Of a protocol under several names: a class may have all of them as bases, and a column of one is one of each."""

    def __instancecheck__(cls, instance: Any) -> bool:
        protocol = cls.__dict__.get("_protocol")
        return super().__instancecheck__(instance) if protocol is None else isinstance(instance, protocol)

    def __subclasscheck__(cls, subclass: type) -> bool:
        protocol = cls.__dict__.get("_protocol")
        return super().__subclasscheck__(subclass) if protocol is None else issubclass(subclass, protocol)


def _under_another_name(protocol: type, name: str) -> type:
    described = {"_protocol": protocol, "__doc__": protocol.__doc__, "__module__": __name__}
    return _SideBySide(name, (protocol,), described)


#: the classes of columns as libraries derive theirs from them, often from the old and the new one of a kind at once
NAMED = {
    name: _under_another_name(protocol, name)
    for protocol in (FeatureColumn, DenseColumn, SequenceDenseColumn, CategoricalColumn)
    for name in (protocol.__name__, f"_{protocol.__name__}")
}
