"""The features of one batch: what the user fed, and what columns made of it, each made once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.control.cond import cond


class Features:
    """A lookup by feature name or by column."""

    _KEYS = '"_FeatureColumn"'

    def __init__(self, features: dict) -> None:
        self._raw = dict(features)
        self._made: dict[Any, Any] = {}
        # What holds the variables of columns, for columns that are asked to take them from there.
        self.state_manager: Any = None

    def with_state(self, state_manager: Any) -> Features:
        """The same features and what was made of them, with variables from `state_manager`."""
        if state_manager is self.state_manager:
            return self
        result = type(self)({})
        result._raw, result._made, result.state_manager = self._raw, self._made, state_manager
        return result

    def get(self, key: Any) -> Any:
        """The tensor of a feature, or what a column makes of its features."""
        if key not in self._made:
            self._made[key] = self._raw_feature(key) if isinstance(key, str) else self._transformed(key)
        return self._made[key]

    def _transformed(self, column: Any) -> Any:
        if not hasattr(column, "transform"):
            raise TypeError(f'"key" must be either a "str" or {self._KEYS}. Provided type: {type(column)}.')
        result = column.transform(self)
        if result is None:
            raise ValueError(f"Column {column.name} is not supported.")
        return result

    def _raw_feature(self, key: str) -> Any:
        if key not in self._raw:
            raise ValueError(f"Feature {key} is not in features dictionary.")
        value = convert_to_tensor_or_sparse_tensor(self._raw[key])
        rank = value.shape.rank
        if rank == 0:
            raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {value}")
        if rank is not None and rank > 1:
            return value
        return _matrix(value) if rank == 1 else _matrix_if_vector(key, value)


class FeatureTransformationCache(Features):
    """The same, for columns that are asked with something that holds their variables."""

    _KEYS = '"FeatureColumn"'

    def get(self, key: Any, state_manager: Any = None) -> Any:
        """The tensor of a feature, or what a column makes of its features."""
        return Features.get(self.with_state(state_manager or self.state_manager), key)


def _matrix_if_vector(key: str, value: Any) -> Any:
    """A feature of which only the run tells how many dimensions it has."""
    sparse = isinstance(value, SparseTensor)
    rank = apply("Size", value.dense_shape) if sparse else apply("Rank", value)
    text = f"Feature (key: {key}) cannot have rank 0. Given: {value}"
    with control_dependencies([apply_op("Assert", apply("Less", np.int32(0), rank), [text])]):
        is_vector = apply("Equal", rank, np.int32(1))
    return cond(is_vector, lambda: _matrix(value), lambda: value)


def _matrix(value: Any) -> Any:
    """A vector as a matrix of one column."""
    from tensorfleet.ops.sparse.arrange import sparse_reshape

    if not isinstance(value, SparseTensor):
        return apply("ExpandDims", value, -1)
    count = apply("Reshape", value.dense_shape, np.array([1], np.int32))
    return sparse_reshape(value, apply("ConcatV2", [count, np.array([1], np.int64)], 0))


def as_sparse(value: Any, ignored: Any = None) -> SparseTensor:
    """Dense features as sparse ones; -1 and empty strings (or `ignored`) stand for nothing."""
    if isinstance(value, SparseTensor):
        return value
    if ignored is None:
        if value.dtype == dtypes.string:
            ignored = b""
        elif value.dtype.is_integer:
            ignored = -1
        else:
            ignored = value.dtype.as_numpy_dtype(0)
    indices = apply("Where", apply("NotEqual", value, _scalar(ignored, value)), name="indices")
    values = apply("GatherNd", value, indices, name="values")
    return SparseTensor(indices, values, shape_of(value, out_type=dtypes.int64, name="dense_shape"))


def _scalar(value: Any, like: Tensor) -> Tensor:
    from tensorfleet.graph.apply import constant

    return constant(value, like.dtype.base_dtype)


def with_values(sparse: SparseTensor, values: Any) -> SparseTensor:
    """The same places with other values."""
    return SparseTensor(sparse.indices, values, sparse.dense_shape)
