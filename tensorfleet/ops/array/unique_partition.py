"""Ops whose result depends on which values occur: unique, partition, stitch, set difference."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.arrays import zeros_of
from tensorfleet.kernels.lanes import Lanes, Order, numbered
from tensorfleet.kernels.packed_strings import Strings, together
from tensorfleet.kernels.sparse import union_of
from tensorfleet.kernels.string_index import first_of_each
from tensorfleet.ops.array.shape import dense_gradient, invalid
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import (
    UNKNOWN,
    check_prefix,
    first_bad,
    ints,
    normal_axis,
    static_value,
    tensor_list,
    vector_of,
)
from tensorfleet.ops.samples import case

# -- unique ------------------------------------------------------------------------------------------


_TABLE_PLACES_PER_VALUE = 64  # a table with so many places for each value costs less than sorting the values
_CACHED_TABLE_PLACES = (
    1 << 16
)  # places of a table that stays in the processor's cache, however few values there are
_MIN_INDEXED_STRINGS = 16384  # of which each takes longer in a dictionary
_MAX_UNSORTED_OTHERS = 64  # values among which others are found without sorting all together


def _first_seen_dense(x: Array, low: int, places: int) -> tuple[Array, Array]:
    """The different values and each one's number, of integers that lie close together."""
    place = (x - np.uint64(low)).astype(np.int64) if x.dtype == np.uint64 else x.astype(np.int64) - low
    kind = np.int32 if x.size < 1 << 31 else np.int64
    first, here = np.empty(places, kind), np.arange(x.size, dtype=kind)
    first[place[::-1]] = here[::-1]  # the last one written, which comes first, stays
    met = first.take(place)
    is_first = met == here
    number = is_first.cumsum(dtype=kind)
    number -= 1
    return x[is_first], number.take(met)


def _first_seen_packed(x: Array, low: int) -> tuple[Array, Array, Array]:
    """The same for integers that leave room for their place in the same word: those are sorted faster than places."""
    bits = x.size.bit_length()
    packed = (x - np.uint64(low)).astype(np.int64) if x.dtype == np.uint64 else x.astype(np.int64) - low
    packed <<= bits
    packed |= np.arange(x.size)
    packed.sort()
    place = packed & ((1 << bits) - 1)
    packed >>= bits
    new = np.ones(x.size, np.bool_)
    np.not_equal(packed[1:], packed[:-1], new[1:])
    firsts = place[new]
    is_first = np.zeros(x.size, np.bool_)
    is_first[firsts] = True
    number = np.cumsum(is_first) - 1
    index = np.empty(x.size, np.int64)
    index[place] = number[firsts][np.cumsum(new) - 1]
    return x[is_first], index, np.bincount(index)


def _first_seen_strings(x: Strings) -> tuple[Array | Strings, Array, Array] | None:
    """The same for many strings; None when some are long."""
    met = first_of_each(x)
    if met is None:
        return None
    is_first = met == np.arange(x.size)
    index = (np.cumsum(is_first) - 1)[met]
    (words,) = x.moved(lambda array: (array[is_first],))
    return words, index, np.bincount(index)


def _first_seen(x: Array | Strings, axis: int) -> tuple[Array | Strings, Array, Array | None]:
    """The distinct values in the order they first occur, each value's number, and, if it fell off, how often it occurs."""
    many = together(x, _MIN_INDEXED_STRINGS) if x.ndim == 1 and x.dtype == object else None
    if many is not None and (result := _first_seen_strings(many)) is not None:
        return result
    x = np.asarray(x)
    if x.ndim == 1 and x.dtype.kind in "iu" and x.size:
        low, high = int(x.min()), int(x.max())
        if high - low < max(_TABLE_PLACES_PER_VALUE * x.size, _CACHED_TABLE_PLACES):
            return *_first_seen_dense(x, low, high - low + 1), None
        if (high - low).bit_length() + x.size.bit_length() < 63:
            return _first_seen_packed(x, low)
    if x.ndim == 1 and x.dtype == object:
        numbers: dict[Any, int] = {}
        index = np.fromiter((numbers.setdefault(v, len(numbers)) for v in x.tolist()), np.int64, x.size)
        return np.fromiter(numbers, object, len(numbers)), index, np.bincount(index, minlength=len(numbers))
    if x.ndim == 1:
        _, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
        )
    else:
        _, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return np.take(x, first[order], axis=axis), rank[inverse.reshape(-1)], counts[order]


def _unique(
    x: Array | Strings, axis: Array | tuple[()], kind: DType, counted: bool = False
) -> tuple[Array | Strings, ...]:
    if np.size(axis) == 0 and x.ndim != 1:
        raise invalid("unique expects a 1D vector.")
    at = int(np.asarray(axis).ravel()[0]) if np.size(axis) else 0
    if not -x.ndim <= at < x.ndim:
        raise invalid(f"axis has to be between [0, {x.ndim})")
    y, idx, count = _first_seen(x, at % x.ndim)
    idx = idx.astype(kind.np_dtype, copy=False)
    if not counted:
        return y, idx
    count = np.bincount(idx) if count is None else count
    return y, idx, count.astype(kind.np_dtype)


def _unique_shape(op: Operation) -> list[TensorShape]:
    shape = op._inputs[0].shape
    if len(op._inputs) == 1:
        if op.type == "Unique" and shape.rank not in (None, 1):
            raise ValueError(f"Shape must be rank 1 but is rank {shape.rank}")
        shapes = [vector_of(None), shape, vector_of(None)]
    else:
        shapes = [*_unique_along(op, shape), vector_of(None)]
    return shapes[: len(op._outputs)]


def _unique_along(op: Operation, shape: TensorShape) -> tuple[TensorShape, TensorShape]:
    axis = static_value(op, 1)
    if shape._d is None or axis is None:
        return unknown_shape(shape.rank), vector_of(None)
    if axis.ndim != 1:
        raise ValueError("axis expects a 1D vector.")
    if axis.size > 1:
        raise ValueError("axis does not support input tensors larger than 1 elements.")
    place = normal_axis(ints(axis)[0], len(shape._d)) if axis.size else 0
    return unknown_shape(shape.rank), vector_of(shape._d[place])


_NUMBERS = np.array([3, 1, 3, 2, 1], np.int32)
_WORDS = np.array([b"b", b"a", b"b"], object)


def _several(ops: list[Operation], given: Sequence[Lanes]) -> tuple[Lanes, Lanes] | None:
    """The same for several vectors of numbers that lie close together: each one's numbers are put behind the last one's."""
    (vectors,) = given
    kinds = {op._attrs["out_idx"].np_dtype for op in ops}
    if vectors.scalars or vectors.data.ndim != 1 or len(kinds) > 1 or not vectors.sizes.all():
        return None
    (index_kind,) = kinds
    if vectors.order is not Order.ANY:
        return vectors, numbered(vectors.starts, index_kind)
    kind = vectors.data.dtype
    if kind not in _JOINED:
        return None
    x = vectors.data.astype(np.int64)
    low = int(x.min())
    span = int(x.max()) - low + 1
    places = span * vectors.count
    if places >= max(_TABLE_PLACES_PER_VALUE * x.size, _CACHED_TABLE_PLACES):
        return None
    added = np.arange(vectors.count) * span - low
    x += vectors.for_each_row(added)
    y, index = _first_seen_dense(x, 0, places)
    # Each vector begins with a number that has not been there before.
    firsts = index.take(vectors.firsts)
    numbers = [*firsts.tolist(), len(y)]
    y -= np.repeat(added, np.diff(numbers))
    index -= vectors.for_each_row(firsts)
    return (
        Lanes(y.astype(kind, copy=False), numbers, Order.DISTINCT),
        vectors.like(index.astype(index_kind, copy=False)),
    )


_JOINED = {np.dtype(np.int32), np.dtype(np.int64)}


@op(
    "Unique",
    "x: T -> y: T, idx: out_idx",
    "T: type; out_idx: index = int32",
    shape=_unique_shape,
    host=True,
    packed=True,
    joined=_several,
    examples=[case(_NUMBERS), case(_WORDS, out_idx="int64"), case(np.array([], np.float32))],
)
def _unique_v1(ctx: HostContext, x: Array, *, out_idx: DType) -> tuple[Array | Strings, ...]:
    return _unique(x, (), out_idx)


@op(
    "UniqueV2",
    "x: T, axis: Taxis -> y: T, idx: out_idx",
    "T: type; Taxis: index = int64; out_idx: index = int32",
    shape=_unique_shape,
    host=True,
    packed=True,
    examples=[
        case(_NUMBERS, np.array([], np.int64)),
        case(np.array([[1, 2], [1, 2], [0, 1]]), np.array([0])),
    ],
)
def _unique_v2(ctx: HostContext, x: Array, axis: Array, *, out_idx: DType) -> tuple[Array | Strings, ...]:
    return _unique(x, axis, out_idx)


@op(
    "UniqueWithCounts",
    "x: T -> y: T, idx: out_idx, count: out_idx",
    "T: type; out_idx: index = int32",
    shape=_unique_shape,
    host=True,
    packed=True,
    examples=[case(_NUMBERS), case(_WORDS)],
)
def _unique_with_counts(ctx: HostContext, x: Array, *, out_idx: DType) -> tuple[Array | Strings, ...]:
    return _unique(x, (), out_idx, counted=True)


@op(
    "UniqueWithCountsV2",
    "x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx",
    "T: type; Taxis: index = int64; out_idx: index = int32",
    shape=_unique_shape,
    host=True,
    packed=True,
    examples=[case(np.array([[1, 1, 2], [3, 3, 4]]), np.array([1]))],
)
def _unique_with_counts_v2(
    ctx: HostContext, x: Array, axis: Array, *, out_idx: DType
) -> tuple[Array | Strings, ...]:
    return _unique(x, axis, out_idx, counted=True)


class Unique(NamedTuple):
    """What `tf.unique` gives."""

    y: Any
    idx: Any


# A field called like a method of tuples: only the function makes such a type.
UniqueWithCounts = namedtuple("UniqueWithCounts", ["y", "idx", "count"])


@export("unique")
def unique(x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct values of a 1-D tensor in the order they occur, and each element's value's number."""
    return Unique(*apply_list("Unique", x, out_idx=out_idx, name=name))


@export("unique_with_counts")
def unique_with_counts(
    x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """`tf.unique`, with how often each value occurs."""
    return UniqueWithCounts(*apply_list("UniqueWithCounts", x, out_idx=out_idx, name=name))


def _two_vectors(op: Operation) -> TensorShape:
    for tensor in op._inputs:
        if tensor.shape.rank not in (None, 1):
            raise ValueError(f"Shape must be rank 1 but is rank {tensor.shape.rank}")
    return vector_of(None)


@op(
    "ListDiff",
    "x: T, y: T -> out: T, idx: out_idx",
    "T: type; out_idx: index = int32",
    shape=_two_vectors,
    host=True,
    examples=[case(_NUMBERS, np.array([1], np.int32)), case(_WORDS, np.array([b"a"], object))],
)
def _list_diff(ctx: HostContext, x: Array, y: Array, *, out_idx: DType) -> tuple[Array, Array]:
    if x.ndim != 1 or y.ndim != 1:
        raise invalid("x and y should be 1D vectors.")
    idx = np.flatnonzero(~_among(x, y)) if x.size else np.zeros(0, np.int64)
    return x[idx], idx.astype(out_idx.np_dtype)


def _among(x: Array, y: Array) -> Array:
    """Which elements of one vector are in another."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize > 4 or len(y) < _MAX_UNSORTED_OTHERS:
        return np.isin(x, y)
    least = int(np.iinfo(x.dtype).min)  # what is sorted together with its number must not be negative
    union, which = union_of(np.concatenate([x, y]).astype(np.int64) - least)
    there = np.zeros(len(union), np.bool_)
    there[which[len(x) :]] = True
    return there[which[: len(x)]]


not_differentiable("ListDiff")


class ListDiff(NamedTuple):
    """What `tf.setdiff1d` gives: the elements and their positions."""

    out: Any
    idx: Any


@export("setdiff1d")
def setdiff1d(
    x: TensorLike, y: TensorLike, index_dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> ListDiff:
    """The elements of `x` that are not in `y`, in order, with their positions."""
    return ListDiff(*apply_list("ListDiff", x, y, out_idx=index_dtype, name=name))


# -- partition and stitch ----------------------------------------------------------------------------


# With more parts than this, sorting costs less than looking for each.
_MAX_SCANNED_PARTS = 64


def _partition_shape(op: Operation) -> list[TensorShape]:
    data, parts = op._inputs[0].shape, op._inputs[1].shape
    one = UNKNOWN
    if data._d is not None and parts._d is not None:
        n = len(parts._d)
        check_prefix(data, parts)
        one = TensorShape._of((None, *data._d[n:]))
    return [one] * op._attrs["num_partitions"]


@op(
    "DynamicPartition",
    "data: T, partitions: int32 -> outputs: num_partitions * T",
    "num_partitions: int >= 1; T: type",
    shape=_partition_shape,
    host=True,
    examples=[
        case(np.arange(6, dtype=np.float32).reshape(3, 2), np.array([1, 0, 1], np.int32), num_partitions=2),
        case(_WORDS, np.array([0, 0, 0], np.int32), num_partitions=2),
    ],
)
def _dynamic_partition(
    ctx: HostContext, data: Array, partitions: Array, *, num_partitions: int
) -> tuple[Array, ...]:
    n = partitions.ndim
    if data.shape[:n] != partitions.shape:
        raise invalid(
            f"data.shape must start with partitions.shape, got data.shape = {list(data.shape)}, "
            f"partitions.shape = {list(partitions.shape)}"
        )
    ok = (partitions >= 0) & (partitions < num_partitions)
    if not np.all(ok):
        where, value = first_bad(ok, partitions)
        raise invalid(f"partitions{where} = {value} is not in [0, {num_partitions})")
    rows, flat = data.reshape((partitions.size, *data.shape[n:])), partitions.reshape(-1)
    if num_partitions > _MAX_SCANNED_PARTS:
        order = np.argsort(flat, kind="stable")
        ends = np.cumsum(np.bincount(flat, minlength=num_partitions))
        return tuple(rows[some] for some in np.split(order, ends[:-1]))
    return tuple(rows.take(np.flatnonzero(flat == i), 0) for i in range(num_partitions))


@gradient("DynamicPartition")
def _dynamic_partition_grad(op: Operation, *grads: Any) -> tuple[Tensor, None]:
    data, partitions = op._inputs
    size = shape_of(partitions)
    places = apply("Reshape", apply("Range", 0, apply("Prod", size, [0]), 1), size)
    parts = apply_list("DynamicPartition", places, partitions, num_partitions=op._attrs["num_partitions"])
    whole = apply("ParallelDynamicStitch", parts, [dense_gradient(g) for g in grads])
    return apply("Reshape", whole, shape_of(data)), None


@export("dynamic_partition")
def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Sorts the slices of `data` into `num_partitions` tensors, by the number `partitions` gives each."""
    return apply_list("DynamicPartition", data, partitions, num_partitions=num_partitions, name=name)


def _stitch_shape(op: Operation) -> TensorShape:
    indices, data = tensor_list(op, 0), tensor_list(op, 1)
    tail, highest = UNKNOWN, -1
    for position, (i, d) in enumerate(zip(indices, data, strict=True)):
        if i.shape._d is not None and d.shape._d is not None:
            n = len(i.shape._d)
            if not TensorShape._of(d.shape._d[:n]).is_compatible_with(i.shape):
                raise ValueError(f"Dimensions of data[{position}] {d.shape} must start with {i.shape}")
            tail = tail.merge_with(TensorShape._of(d.shape._d[n:]))
        values = static_value(op, position)
        highest = -2 if values is None or highest == -2 else max(highest, int(values.max(initial=-1)))
    return vector_of(None if highest == -2 else highest + 1).concatenate(tail)


def _stitch(xp: ArrayModule, indices: list[Array], data: list[Array]) -> Array:
    flat = np.concatenate([np.asarray(i).reshape(-1) for i in indices])
    tail = data[0].shape[indices[0].ndim :]
    for k, (i, d) in enumerate(zip(indices, data, strict=True)):
        if tuple(d.shape) != (*i.shape, *tail):
            raise invalid(
                f"data[{k}].shape = {list(d.shape)} does not start with indices[{k}].shape = {list(i.shape)}"
            )
    if flat.size and flat.min() < 0:
        raise invalid(f"indices[{int(np.argmin(flat))}] is out of range")
    count = int(flat.max(initial=-1)) + 1
    source = np.full(count, flat.size, np.int64)  # the row of zeros put last, for places nobody fills
    source[flat] = np.arange(flat.size)
    rows = [d.reshape((i.size, *tail)) for i, d in zip(indices, data, strict=True)]
    blank = zeros_of((1, *tail), np.dtype(data[0].dtype))
    return xp.concatenate([*rows, blank])[source]


_STITCH = [
    case(
        [np.array([2, 0], np.int32), np.array(1, np.int32)],
        [np.ones((2, 3), np.float32), np.zeros(3, np.float32)],
    ),
    case(
        [np.array([0, 1], np.int32), np.array([1], np.int32)],
        [np.array([1.0, 2.0]), np.array([5.0])],
        grad=False,
    ),
]


@op(
    "DynamicStitch",
    "indices: N * int32, data: N * T -> merged: T",
    "N: int; T: type",
    shape=_stitch_shape,
    static=["indices"],
    examples=_STITCH,
)
def _dynamic_stitch(xp: ArrayModule, indices: list[Array], data: list[Array]) -> Array:
    return _stitch(xp, [np.asarray(i) for i in indices], data)


@op(
    "ParallelDynamicStitch",
    "indices: N * int32, data: N * T -> merged: T",
    "N: int; T: type",
    shape=_stitch_shape,
    static=["indices"],
    examples=_STITCH[:1],
)
def _parallel_dynamic_stitch(xp: ArrayModule, indices: list[Array], data: list[Array]) -> Array:
    return _stitch(xp, [np.asarray(i) for i in indices], data)


@gradient("DynamicStitch", "ParallelDynamicStitch")
def _stitch_grad(op: Operation, dy: Tensor) -> list[Tensor | None]:
    indices = tensor_list(op, 0)
    dy = dense_gradient(dy)
    return [None] * len(indices) + [apply("GatherV2", dy, i, 0) for i in indices]


@export("dynamic_stitch")
def dynamic_stitch(
    indices: Sequence[TensorLike], data: Sequence[TensorLike], name: str | None = None
) -> Tensor:
    """One tensor whose row `indices[m][i]` is `data[m][i]`; the last of equal indices wins."""
    return apply("DynamicStitch", list(indices), list(data), name=name)
