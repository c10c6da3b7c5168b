"""`tf.ragged.constant`: nested lists, tuples and arrays whose lengths differ, as the rows of a ragged tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, Dims, DTypeLike
from tensorfleet.graph.convert import make_array, to_tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.ragged.ragged_tensor import RaggedOrDense, RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue

#: Lists, tuples and arrays in each other, or a number.
Nested: TypeAlias = Any


class _NestedRows(NamedTuple):
    """The innermost values, the shape that they get (None: their own), and where the rows of each dimension end."""

    values: Any
    shape: Dims | None
    splits: list[list[int]]


def _is_nested(value: Any) -> bool:
    # Lists first: np.ndim makes an array of them.
    return isinstance(value, (list, tuple)) or np.ndim(value) > 0


@export("python.ops.ragged.ragged_factory_ops._find_scalar_and_max_depth")
def depths(pylist: Nested) -> tuple[int | None, int]:
    """How deep the scalars of nested lists are (None without any), and how deep the lists go."""
    if not _is_nested(pylist):
        return 0, 0
    scalar, deepest = None, 1
    for inside, deep in map(depths, pylist):
        deepest = max(deepest, deep + 1)
        if inside is not None:
            if scalar not in (None, inside + 1):
                raise ValueError("all scalar values must have the same nesting depth")
            scalar = inside + 1
    return scalar, deepest


@export("python.ops.ragged.ragged_factory_ops._default_inner_shape_for_pylist")
def inner_shape_of(pylist: Nested, ragged_rank: int) -> tuple[int, ...]:
    """The shape of the values below that many ragged dimensions; ValueError unless all have the same."""
    inner: Any = pylist
    for dim in range(ragged_rank):
        if not all(map(_is_nested, inner)):
            raise ValueError(
                f"pylist has scalar values depth {dim + 1}, but ragged_rank={ragged_rank} requires scalar value depth "
                f"greater than {ragged_rank}"
            )
        inner = [v for row in inner for v in row]
    shape, first = [], inner
    while _is_nested(first):
        shape.append(len(first))
        if not len(first):
            break
        first = first[0]
    _check_shape(inner, tuple(shape))
    return tuple(shape[1:])


def _check_shape(item: Nested, shape: Dims) -> None:
    if _is_nested(item) != bool(shape) or (shape and len(item) != shape[0]):
        raise ValueError("inner values have inconsistent shape")
    for child in item if shape else ():
        _check_shape(child, shape[1:])


def _rows_of(pylist: Nested, ragged_rank: int | None, inner_shape: Sequence[int] | None) -> _NestedRows:
    if isinstance(pylist, (RaggedTensor, RaggedTensorValue)):
        raise TypeError("pylist may not be a RaggedTensor or RaggedTensorValue.")
    wrong = f"Invalid pylist={pylist!r}: incompatible with"
    if not _is_nested(pylist):
        if ragged_rank:
            raise ValueError(f"{wrong} ragged_rank={ragged_rank}")
        if inner_shape:
            raise ValueError(f"{wrong} dim(inner_shape)={len(inner_shape)}")
        return _NestedRows(pylist, (), [])
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank!r}: must be nonnegative")
    scalar, deepest = depths(pylist)
    if scalar is not None and deepest > scalar:
        raise ValueError(
            f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting"
        )
    if inner_shape is not None and ragged_rank is not None:
        wanted = ragged_rank + len(inner_shape) + 1
        if wanted < deepest if scalar is None else wanted != scalar:
            raise ValueError(f"{wrong} ragged_rank={ragged_rank} and dim(inner_shape)={len(inner_shape)}")
    if ragged_rank == 0 or (ragged_rank is None and deepest - len(inner_shape or ()) < 2):
        return _NestedRows(pylist, None if inner_shape is None else tuple(inner_shape), [])
    if inner_shape is None:
        inner_shape = () if ragged_rank is None else inner_shape_of(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, deepest - 1 if scalar is None else scalar - 1 - len(inner_shape))
    return _split(pylist, ragged_rank, tuple(inner_shape))


def _split(pylist: Nested, ragged_rank: int, inner_shape: Dims) -> _NestedRows:
    rows, splits = pylist, []
    for _ in range(ragged_rank):
        splits.append([0, *np.cumsum([len(r) for r in rows], dtype=np.int64).tolist()])
        rows = [v for r in rows for v in r]
    return _NestedRows(rows, (len(rows), *inner_shape), splits)


@export("ragged.constant")
def constant(
    pylist: Nested,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: Sequence[int] | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> Any:
    """A constant of nested lists whose lengths may differ."""
    with name_scope(name, "RaggedConstant"):
        values, shape, nested = _rows_of(pylist, ragged_rank, inner_shape)
        array = make_array(values, None if dtype is None else dtypes.as_dtype(dtype))
        if shape is not None and array.size != math.prod(shape):
            raise TypeError(f"Expected Tensor's shape: {shape}, got {array.shape}.")
        result: RaggedOrDense = to_tensor(_shaped(array, shape), name="values" if nested else None)
        kind = dtypes.as_dtype(row_splits_dtype).as_numpy_dtype
        for splits in reversed(nested):
            result = RaggedTensor._of(result, to_tensor(np.array(splits, kind)))
        return result


def _shaped(array: Array, shape: Dims | None) -> Array:
    return array if shape is None else np.reshape(array, shape)


@export("ragged.constant_value")
def constant_value(
    pylist: Nested,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: Sequence[int] | None = None,
    row_splits_dtype: DTypeLike = "int64",
) -> Any:
    """A `RaggedTensorValue` (or an array) of nested lists whose lengths may differ."""
    values, shape, nested = _rows_of(pylist, ragged_rank, inner_shape)
    kind: Any = dtype.as_numpy_dtype if isinstance(dtype, DType) else dtype
    result: RaggedTensorValue | Array = _shaped(np.array(values, kind), shape)
    counted_as = dtypes.as_dtype(row_splits_dtype).as_numpy_dtype
    for splits in reversed(nested):
        result = RaggedTensorValue(result, np.array(splits, counted_as))
    return result
