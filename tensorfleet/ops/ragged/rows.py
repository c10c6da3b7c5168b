"""Rows of ragged tensors: chosen by number, by slices, and under new dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.checks import assert_equal
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.ragged.ragged_tensor import RaggedOrDense, RaggedTensor


def gather_rows(data: RaggedOrDense, numbers: Tensor) -> RaggedOrDense:
    """The rows with these numbers, a vector."""
    if not isinstance(data, RaggedTensor):
        return apply("GatherV2", data, numbers, 0)
    starts = apply("GatherV2", data.row_starts(), numbers, 0)
    limits = apply("GatherV2", data.row_limits(), numbers, 0)
    return ranges_of(data, starts, limits, 1)


def ranges_of(data: RaggedTensor, starts: Tensor, limits: Tensor, step: TensorLike) -> RaggedTensor:
    """Rows made of the values between places among them."""
    kind = data.row_splits.dtype.base_dtype
    splits, places = apply_list(
        "RaggedRange", starts, limits, to_tensor(step, kind) if isinstance(step, int) else step, Tsplits=kind
    )
    return RaggedTensor._of(gather_rows(data.values, places), splits)


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: int | None = None,
    batch_dims: int = 0,
) -> RaggedOrDense:
    """`tf.gather` where the rows or their numbers are ragged."""
    if axis not in (None, 0):
        raise ValueError("axis != 0 is not supported for ragged gather yet.")
    if batch_dims:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    with name_scope(name, "RaggedGather"):
        if isinstance(indices, RaggedTensor):
            return indices.with_values(gather(params, indices.values))
        numbers = to_tensor(indices, name="indices", preferred=dtypes.int64)
        if not isinstance(params, RaggedTensor):
            return apply("GatherV2", to_tensor(params, name="params"), numbers, 0)
        rank = numbers.shape.rank
        if rank is None:
            raise ValueError("indices.shape.ndims must be known statically")
        if rank == 0:
            return row_of(params, numbers)
        if rank == 1:
            return gather_rows(params, numbers)
        return _under(RaggedTensor.from_tensor(numbers, ragged_rank=rank - 1), params)


def _under(rows: RaggedTensor, params: RaggedTensor) -> RaggedTensor:
    inner = rows.values
    return rows.with_values(
        _under(inner, params) if isinstance(inner, RaggedTensor) else gather_rows(params, inner)
    )


def batch_gather(params: RaggedOrDense, indices: TensorLike, name: str | None = None) -> RaggedOrDense:
    """`tf.batch_gather` of ragged rows: from each row the values whose places in it are given."""
    with name_scope(name, "RaggedBatchGather"):
        numbers = indices if isinstance(indices, RaggedTensor) else to_tensor(indices, preferred=dtypes.int64)
        rank = numbers.shape.rank
        if rank is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        if rank == 0:
            raise ValueError("indices.rank must be at least 1.")
        if rank == 1:
            return gather(params, numbers)
        rows, places = (
            x if isinstance(x, RaggedTensor) else RaggedTensor.from_tensor(x) for x in (params, numbers)
        )
        outer = rank > 2
        sizes = (rows.row_splits, places.row_splits) if outer else (rows.nrows(), places.nrows())
        check = assert_equal(*sizes, message="batch shape from indices does not match params shape")
        with control_dependencies([check]):
            if outer:
                return places.with_values(batch_gather(rows.values, places.values))
            starts = apply("GatherV2", rows.row_starts(), places.value_rowids(), 0)
        values = gather(rows.values, starts + apply("Cast", places.values, DstT=starts.dtype))
        if isinstance(numbers, RaggedTensor) or isinstance(values, RaggedTensor):
            return places.with_values(values)
        return apply("Reshape", values, apply("ConcatV2", [shape_of(numbers), shape_of(values)[1:]], 0))


def gather_nd(
    params: RaggedOrDense, indices: TensorLike, batch_dims: int = 0, name: str | None = None
) -> RaggedOrDense:
    """`tf.gather_nd` of ragged rows: each index goes down one dimension."""
    if batch_dims:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    with name_scope(name, "RaggedGatherNd"):
        if isinstance(indices, RaggedTensor):
            return indices.with_values(gather_nd(params, indices.values))
        numbers = to_tensor(indices, name="indices", preferred=dtypes.int64)
        rank = numbers.shape.rank
        if rank is None:
            raise ValueError("indices.rank be statically known.")
        if rank == 0:
            raise ValueError("indices.rank must be at least 1.")
        depth = numbers.shape.as_list()[-1]
        if depth is None:
            raise ValueError("indices.shape[-1] must be statically known.")
        if rank == 1:
            return row_of(gather_nd(params, apply("ExpandDims", numbers, 0)), 0)
        if rank > 2:
            outer = RaggedTensor.from_tensor(numbers)
            return outer.with_values(gather_nd(params, outer.values))
        return _down(params, [numbers[:, i] for i in range(depth)])


def _down(params: RaggedOrDense, numbers: list[Tensor]) -> RaggedOrDense:
    first, *rest = numbers
    while rest and isinstance(params, RaggedTensor):
        kind = params.row_splits.dtype
        starts = apply("GatherV2", params.row_starts(), first, 0)
        first, params = starts + apply("Cast", rest.pop(0), DstT=kind), params.values
    if not rest:
        return gather(params, first)
    places = [apply("Cast", n, DstT=dtypes.int64) for n in (first, *rest)]
    return apply("GatherNd", params, apply("Pack", places, axis=1))


def row_of(data: RaggedOrDense, number: Tensor | int) -> RaggedOrDense:
    """One row, of ragged or of dense ones."""
    if not isinstance(data, RaggedTensor):
        return data[number]
    first = data.row_starts()[number]
    following = data.row_limits()[number]
    return rows_between(data.values, first, following)


def rows_between(data: RaggedOrDense, first: Tensor, end: Tensor) -> RaggedOrDense:
    """Neighbouring rows."""
    if not isinstance(data, RaggedTensor):
        return data[first:end]
    kind = data.row_splits.dtype.base_dtype
    return gather_rows(data, apply("Range", first, end, np.ones((), kind.as_numpy_dtype), Tidx=kind))


# -- new dimensions ----------------------------------------------------------------------------------


def expand_dims(
    input: RaggedOrDense, axis: Any = None, name: str | None = None, dim: int | None = None
) -> RaggedOrDense:
    """`tf.expand_dims` of a ragged tensor."""
    axis = dim if axis is None else axis
    with name_scope(name, "RaggedExpandDims"):
        rank = input.shape.rank if isinstance(input, RaggedTensor) else None
        if axis < 0:
            if rank is None:
                raise ValueError("axis < 0 needs a known rank")
            axis += rank + 1
        return _expanded(input, axis)


def _expanded(data: RaggedOrDense, axis: int) -> RaggedOrDense:
    if not isinstance(data, RaggedTensor):
        return apply("ExpandDims", data, axis)
    kind = data.row_splits.dtype.base_dtype
    one, zero = np.ones((), kind.as_numpy_dtype), np.zeros((), kind.as_numpy_dtype)
    if axis == 0:
        return RaggedTensor._of(data, apply("Pack", [zero, data.nrows()]))
    if axis == 1:
        return RaggedTensor._of(data, apply("Range", zero, data.nrows() + one, one, Tidx=kind))
    return data.with_values(_expanded(data.values, axis - 1))


# -- square brackets ---------------------------------------------------------------------------------


def getitem(data: RaggedTensor, key: Any) -> RaggedOrDense:
    """`data[key]`: numbers and slices of rows, slices within rows, new dimensions."""
    with name_scope(None, "RaggedGetItem"):
        keys = list(key) if isinstance(key, tuple) else [key]
        return _outer(data, _spelled_out(data, keys))


def _spelled_out(data: RaggedTensor, keys: list[Any]) -> list[Any]:
    """The keys with the ellipsis replaced by whole slices."""
    places = [i for i, k in enumerate(keys) if k is Ellipsis]
    if not places:
        return keys
    if len(places) > 1:
        raise ValueError("Only one ellipsis is allowed.")
    if data.shape.rank is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    used = len([k for k in keys if k is not None and k is not Ellipsis])
    return [
        *keys[: places[0]],
        *[slice(None)] * max(data.shape.rank - used, 0),
        *keys[places[0] + 1 :],
    ]


def _outer(data: RaggedOrDense, keys: list[Any]) -> RaggedOrDense:
    if not keys:
        return data
    if not isinstance(data, RaggedTensor):
        return data[tuple(keys)]
    key, *rest = keys
    if key is None:
        return _expanded(_outer(data, rest), 0)
    if isinstance(key, slice):
        return _inner(_sliced_rows(data, key), rest)
    return _outer(row_of(data, key), rest)


def _is_whole(key: slice) -> bool:
    return key.start is None and key.stop is None and key.step is None


def _sliced_rows(data: RaggedTensor, key: slice) -> RaggedTensor:
    if _is_whole(key):
        return data
    return ranges_of(data, data.row_starts()[key], data.row_limits()[key], 1)


def _inner(data: RaggedOrDense, keys: list[Any]) -> RaggedOrDense:
    """The keys from the second dimension on."""
    if not keys:
        return data
    if not isinstance(data, RaggedTensor):
        return data[(slice(None), *keys)]
    key, *rest = keys
    if key is None:
        return _expanded(_inner(data, rest), 1)
    if not isinstance(key, slice):
        raise ValueError("Cannot index into an inner ragged dimension.")
    cut = _sliced_columns(data, key)
    return cut.with_values(_inner(cut.values, rest))


def _sliced_columns(data: RaggedTensor, key: slice) -> RaggedTensor:
    """Each row sliced as a list is."""
    if _is_whole(key):
        return data
    kind = data.row_splits.dtype.base_dtype
    step = 1 if key.step is None else key.step
    if not isinstance(step, int):
        raise TypeError("The step of a slice of ragged rows must be a number.")
    if step == 0:
        raise ValueError("slice step cannot be zero")
    lengths, starts = data.row_lengths(), data.row_starts()
    low, high = (0, None) if step > 0 else (-1, -1)

    def place(value: TensorLike, default: Tensor) -> Tensor:
        if value is None:
            return default
        number = apply("Cast", to_tensor(value), DstT=kind)
        zero = np.zeros((), kind.as_numpy_dtype)
        number = apply("SelectV2", apply("Less", number, zero), number + lengths, number + 0 * lengths)
        limit = lengths if high is None else lengths + high
        return apply("Minimum", apply("Maximum", number, to_tensor(low, kind)), limit)

    first = place(key.start, 0 * lengths if step > 0 else lengths - 1)
    end = place(key.stop, lengths if step > 0 else 0 * lengths - 1)
    return ranges_of(data, starts + first, starts + end, step)


def size(input: RaggedTensor, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """`tf.size`: how many values there are."""
    with name_scope(name, "RaggedSize"):
        return apply("Size", input.flat_values, out_type=out_type)


def rank(input: RaggedTensor, name: str | None = None) -> Tensor:
    """`tf.rank`: the number of dimensions, ragged ones included."""
    with name_scope(name, "RaggedRank"):
        return apply("Rank", input.flat_values) + input.ragged_rank


def row_count(data: RaggedOrDense) -> Tensor:
    """The number of rows, as int64."""
    if isinstance(data, RaggedTensor):
        return data.nrows(dtypes.int64)
    return shape_of(data, out_type=dtypes.int64)[0]


def squeeze(
    input: RaggedTensor,
    axis: int | Sequence[int] | None = None,
    name: str | None = None,
    squeeze_dims: int | Sequence[int] | None = None,
) -> RaggedOrDense:
    """`tf.squeeze` of ragged rows: dimensions all of whose rows have one value."""
    axis = squeeze_dims if axis is None else axis
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    with name_scope(name, "RaggedSqueeze"):
        axes = [axis] if isinstance(axis, int) else list(axis)
        gone = sorted({a + len(input.shape) if a < 0 else a for a in axes}, reverse=True)
        lengths, flat = list(input.nested_row_lengths()), input.flat_values
        inner = [a - len(lengths) for a in gone if a > len(lengths)]
        flat = apply("Squeeze", flat, squeeze_dims=inner) if inner else flat
        checks = []
        for a in (a for a in gone if a <= len(input.nested_row_splits)):
            sizes = input.nrows() if a == 0 else lengths[a - 1]
            message = f"the given axis (axis = {a}) is not squeezable!"
            checks.append(assert_equal(sizes, apply("OnesLike", sizes), message=message))
            del lengths[max(a - 1, 0)]
        with control_dependencies(checks):
            flat = apply("Identity", flat)
        return RaggedTensor.from_nested_row_lengths(flat, lengths, validate=False) if lengths else flat
