"""`tf.TypeSpec` and its kinds: what is known of a value before there is one."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export, publish
from tensorfleet.base.nest import flatten, pack_sequence_as
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue
from tensorfleet.ops.state.tensor_array import TensorArray


@export("TypeSpec")
class TypeSpec(abc.ABC):
    """What is known of a value: a kind of its own for tensors, sparse and ragged ones, datasets, ..."""

    @property
    @abc.abstractmethod
    def value_type(self) -> Any:
        """The Python type of the values."""

    def _parts(self) -> tuple[Any, ...]:
        """What tells two of one kind apart: types, shapes and numbers, and tuples and dictionaries of them.

        A kind of one's own says it in `_serialize`.
        """
        parts: tuple[Any, ...] = self._serialize()  # type: ignore[attr-defined]
        return parts

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or every value that another spec describes, may be one of these."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else spec_of(spec_or_value)
        return type(other) is type(self) and _fits(self._parts(), other._parts())

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The spec that describes the values of both, and as little else as possible."""
        if type(other) is not type(self):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return type(self)._of(_common(self._parts(), other._parts()))

    @classmethod
    def _of(cls, parts: tuple[Any, ...]) -> Self:
        return cls(*parts)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _key(self) -> tuple[Any, ...]:
        return tuple(_comparable(p) for p in self._parts())

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parts()!r}"

    @property
    def _flat_tensor_specs(self) -> list[TypeSpec]:
        return flatten(self._component_specs)  # type: ignore[attr-defined]

    def _to_tensor_list(self, value: Any) -> list[Tensor]:
        """The tensors of a value."""
        if not self.is_compatible_with(value):
            raise ValueError(f"{value!r} is not compatible with {self}")
        return flatten(self._to_components(value))  # type: ignore[attr-defined]

    def _from_tensor_list(self, tensor_list: list[Tensor]) -> Any:
        """The value whose tensors are given."""
        if len(tensor_list) != len(self._flat_tensor_specs):
            raise ValueError("Incompatible input: wrong number of tensors")
        for i, (tensor, spec) in enumerate(zip(tensor_list, self._flat_tensor_specs, strict=True)):
            if not spec.is_compatible_with(tensor):
                raise ValueError(f"Incompatible input: tensor {i} ({tensor}) is incompatible with {spec}")
        return self._from_compatible_tensor_list(tensor_list)

    def _from_compatible_tensor_list(self, tensor_list: list[Tensor]) -> Any:
        whole = pack_sequence_as(self._component_specs, tensor_list)  # type: ignore[attr-defined]
        return self._from_components(whole)  # type: ignore[attr-defined]


@export("python.framework.type_spec.BatchableTypeSpec")
class BatchableTypeSpec(TypeSpec):
    """What is known of a value of which a library says how many of them are one, and one of them alone."""

    @abc.abstractmethod
    def _batch(self, batch_size: int | None) -> Any:
        """What is known of so many such values together."""

    @abc.abstractmethod
    def _unbatch(self) -> Any:
        """What is known of each of the values that one such value holds."""


def _comparable(part: Any) -> Any:
    if isinstance(part, TensorShape):
        return (TensorShape, None if part.rank is None else tuple(part.as_list()))
    if isinstance(part, dict):
        return tuple((k, _comparable(part[k])) for k in sorted(part))
    if isinstance(part, np.ndarray):
        return (np.ndarray, part.shape, part.tobytes())
    return tuple(map(_comparable, part)) if isinstance(part, tuple) else part


def _fits(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, (TensorShape, DType, TypeSpec)):
        return mine.is_compatible_with(theirs)
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(_fits(mine[k], theirs[k]) for k in mine)
    if isinstance(mine, tuple) and isinstance(theirs, tuple):
        return len(mine) == len(theirs) and all(map(_fits, mine, theirs))
    return bool(mine == theirs)


def _common(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, tuple) and isinstance(theirs, tuple) and len(mine) == len(theirs):
        return tuple(map(_common, mine, theirs))
    if isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys():
        return {k: _common(mine[k], theirs[k]) for k in mine}
    if isinstance(mine, TensorShape):
        return mine.most_specific_compatible_shape(theirs)
    if isinstance(mine, TypeSpec):
        return mine.most_specific_compatible_type(theirs)
    if mine != theirs:
        raise ValueError(f"Types are not compatible: {mine!r} vs {theirs!r}")
    return mine


def _is_numpy(components: Sequence[Array | Tensor]) -> bool:
    return all(isinstance(c, (np.ndarray, np.generic)) for c in components)


def _rows_of(shape: TensorShape, begin: int, rows: TensorShape) -> TensorShape:
    """The shape of values whose rows, in place of the first dimensions of a shape, are as many as told."""
    return TensorShape(None) if shape.rank is None else rows.concatenate(shape[begin:])


@export("TensorSpec")
class TensorSpec(TypeSpec):
    """The shape and type of a tensor, and a name for it."""

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> None:
        self._shape = as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    shape = readonly("_shape", "The shape, as far as it is known.")
    dtype = readonly("_dtype", "The type of the elements.")
    name = readonly("_name", "The name that was given.")
    value_type = property(lambda self: Tensor, doc="`tf.Tensor`.")

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """Another spec's shape and type, under a name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """A tensor's shape and type, under its own name or another."""
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, or every tensor that another spec describes, may be one of these."""
        shape, dtype = getattr(spec_or_tensor, "shape", None), getattr(spec_or_tensor, "dtype", None)
        if isinstance(spec_or_tensor, TypeSpec) and not isinstance(spec_or_tensor, TensorSpec):
            return False
        return (
            dtype is not None
            and self._dtype.is_compatible_with(dtype)
            and self._shape.is_compatible_with(shape)
        )

    def most_specific_compatible_type(self, other: Any) -> TensorSpec:
        """The spec that describes the tensors of both, and as little else as possible."""
        if not isinstance(other, TensorSpec) or other.dtype != self.dtype:
            raise ValueError(f"Types are not compatible: {self!r} vs {other!r}")
        shape = self._shape.most_specific_compatible_shape(other.shape)
        return TensorSpec(shape, self._dtype, self._name if self._name == other.name else None)

    def _parts(self) -> tuple[TensorShape, DType]:
        return self._shape, self._dtype

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._name

    _component_specs = property(lambda self: self, doc="A tensor is all there is of it.")

    def _to_components(self, value: TensorLike) -> Tensor:
        return to_tensor(value, self._dtype)

    def _from_components(self, components: Tensor) -> Tensor:
        return components

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self._name)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


@export("SparseTensorSpec")
class SparseTensorSpec(TypeSpec):
    """The shape and type of a sparse tensor."""

    def __init__(self, shape: ShapeLike = None, dtype: DTypeLike = dtypes.float32) -> None:
        self._shape = as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)

    shape = readonly("_shape", "The dense shape, as far as it is known.")
    dtype = readonly("_dtype", "The type of the elements.")
    value_type = property(lambda self: SparseTensor, doc="`tf.SparseTensor`.")

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The spec of a sparse tensor, or of its numpy form."""
        if isinstance(value, SparseTensor):
            return cls(value.shape, value.dtype)
        if isinstance(value, SparseTensorValue):
            return cls(list(value.dense_shape), value.values.dtype)
        raise TypeError("Expected SparseTensor or SparseTensorValue")

    def _serialize(self) -> tuple[TensorShape, DType]:
        return self._shape, self._dtype

    @property
    def _component_specs(self) -> list[TensorSpec]:
        rank = self._shape.rank
        return [
            TensorSpec([None, rank], dtypes.int64),
            TensorSpec([None], self._dtype),
            TensorSpec([rank], dtypes.int64),
        ]

    def _to_components(self, value: SparseTensor) -> list[Tensor]:
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, components: list[Array | Tensor]) -> Any:
        return (SparseTensorValue if _is_numpy(components) else SparseTensor)(*components)


@export("RaggedTensorSpec")
class RaggedTensorSpec(TypeSpec):
    """The shape and type of a ragged tensor, and how many of its dimensions are ragged."""

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: DTypeLike = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> None:
        self._shape = as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError("ragged_rank must be an int")
        if rank is not None and ragged_rank >= rank:
            raise ValueError("ragged_rank must be less than rank.")
        self._ragged_rank = ragged_rank

    value_type = property(
        lambda self: RaggedTensor if self._ragged_rank > 0 else Tensor, doc="`tf.RaggedTensor`."
    )

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The spec of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    def _serialize(self) -> tuple[TensorShape, DType, int, DType]:
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype

    @property
    def _component_specs(self) -> list[TensorSpec]:
        if not self._ragged_rank:
            return [TensorSpec(self._shape, self._dtype)]
        rows = None if self._shape.rank is None else self._shape.as_list()[0]
        first = TensorSpec([None if rows is None else rows + 1], self._row_splits_dtype)
        inner = TensorSpec([None], self._row_splits_dtype)
        return [
            TensorSpec(_rows_of(self._shape, self._ragged_rank + 1, TensorShape([None])), self._dtype),
            first,
            *[inner] * (self._ragged_rank - 1),
        ]

    def _to_components(self, value: Any) -> list[Tensor | str]:
        if not isinstance(value, (RaggedTensor, RaggedTensorValue)):
            return [value]
        return [value.flat_values, *value.nested_row_splits]

    def _from_components(self, components: list[Any]) -> Any:
        result, *splits = components
        for one in reversed(splits):
            if _is_numpy(components):
                result = RaggedTensorValue(result, one)
            else:
                result = RaggedTensor.from_row_splits(result, one, validate=False)
        return result


@export("IndexedSlicesSpec")
class IndexedSlicesSpec(TypeSpec):
    """The shapes and types of `IndexedSlices`."""

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: DTypeLike = dtypes.float32,
        indices_dtype: DTypeLike = dtypes.int64,
        dense_shape_dtype: DType | None = None,
        indices_shape: ShapeLike = None,
    ) -> None:
        self._shape = as_shape(shape)
        self._values_dtype = dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = as_shape(indices_shape).with_rank(1)

    value_type = property(lambda self: IndexedSlices, doc="`tf.IndexedSlices`.")

    def _serialize(self) -> tuple[DType | TensorShape | None, ...]:
        kinds = self._values_dtype, self._indices_dtype, self._dense_shape_dtype
        return (self._shape, *kinds, self._indices_shape)

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        values = TensorSpec(_rows_of(self._shape, 1, self._indices_shape), self._values_dtype)
        indices = TensorSpec(self._indices_shape, self._indices_dtype)
        if self._dense_shape_dtype is None:
            return values, indices
        return values, indices, TensorSpec([self._shape.rank], self._dense_shape_dtype)

    def _to_components(self, value: IndexedSlices) -> tuple[Tensor, ...]:
        if value.dense_shape is None:
            return value.values, value.indices
        return value.values, value.indices, value.dense_shape

    def _from_components(self, components: Sequence[Any]) -> Any:
        if not _is_numpy(components):
            return IndexedSlices(*components)
        return IndexedSlicesValue(*components, *[None] * (3 - len(components)))


@export("TensorArraySpec")
class TensorArraySpec(TypeSpec):
    """The type of a `TensorArray`'s elements, their shape, and whether it grows."""

    def __init__(
        self,
        element_shape: ShapeLike = None,
        dtype: DTypeLike = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = as_shape(element_shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = dynamic_size
        self._infer_shape = infer_shape

    value_type = property(lambda self: TensorArray, doc="`tf.TensorArray`.")

    @staticmethod
    def from_value(value: Any) -> TensorArraySpec:
        """The spec of a `TensorArray`."""
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but got: {type(value)}")
        return TensorArraySpec(dtype=value.dtype, element_shape=value.element_shape)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether an array, or every array that another spec describes, may be one of these."""
        if not isinstance(other, TypeSpec):
            other = spec_of(other)
        return (
            isinstance(other, TensorArraySpec)
            and self._dtype.is_compatible_with(other._dtype)
            and self._element_shape.is_compatible_with(other._element_shape)
            and self._dynamic_size == other._dynamic_size
        )

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape


def spec_of(value: Any) -> TypeSpec | None:
    """The spec of a value; None when it is of no kind that has one."""
    if isinstance(spec := getattr(value, "_type_spec", None), TypeSpec):
        return spec
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        return SparseTensorSpec.from_value(value)
    if isinstance(value, (RaggedTensor, RaggedTensorValue)):
        return RaggedTensorSpec.from_value(value)
    if isinstance(value, TensorArray):
        return TensorArraySpec.from_value(value)
    if isinstance(value, IndexedSlices):
        kind = None if value.dense_shape is None else value.dense_shape.dtype
        first = value.indices.shape
        return IndexedSlicesSpec(TensorShape(None), value.values.dtype, value.indices.dtype, kind, first)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return TensorSpec(value.shape, value.dtype)
    return None


publish(TypeSpec, "data.experimental.Structure")


@export("data.experimental.TensorStructure")
def tensor_structure(dtype: DTypeLike, shape: ShapeLike) -> TensorSpec:
    """The older name of `tf.TensorSpec`, with the type first."""
    return TensorSpec(shape, dtype)


@export("data.experimental.SparseTensorStructure")
def sparse_tensor_structure(dtype: DTypeLike, shape: ShapeLike) -> SparseTensorSpec:
    """The older name of `tf.SparseTensorSpec`, with the type first."""
    return SparseTensorSpec(shape, dtype)


@export("data.experimental.RaggedTensorStructure")
def ragged_tensor_structure(dtype: DTypeLike, shape: ShapeLike, ragged_rank: int) -> RaggedTensorSpec:
    """The older name of `tf.RaggedTensorSpec`, with the type first."""
    return RaggedTensorSpec(shape, dtype, ragged_rank)


@export("data.experimental.TensorArrayStructure")
def tensor_array_structure(
    dtype: DTypeLike, element_shape: ShapeLike, dynamic_size: bool, infer_shape: bool
) -> TensorArraySpec:
    """The older name of `tf.TensorArraySpec`, with the type first."""
    return TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)
