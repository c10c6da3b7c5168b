"""Sums and the like along the dimensions of ragged tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.basic import identity
from tensorfleet.ops.array.checks import assert_equal
from tensorfleet.ops.array.constructors import ones_like
from tensorfleet.ops.math.binary import divide
from tensorfleet.ops.ragged.broadcasting import elementwise
from tensorfleet.ops.ragged.ragged_tensor import RaggedOrDense, RaggedTensor
from tensorfleet.ops.ragged.rows import expand_dims

#: A function of ragged rows with the arguments of the public function of its name.
Reduction: TypeAlias = Callable[..., RaggedOrDense]


def within_rows(data: RaggedTensor) -> Tensor:
    """The place of each value in its row."""
    kind = data.row_splits.dtype.base_dtype
    rows = data.value_rowids()
    count = apply("Size", rows, out_type=kind)
    places = apply(
        "Range", np.zeros((), kind.as_numpy_dtype), count, np.ones((), kind.as_numpy_dtype), Tidx=kind
    )
    return places - apply("GatherV2", data.row_starts(), rows, 0)


def segments(op_type: str, data: RaggedOrDense, rows: Tensor, count: Tensor) -> RaggedOrDense:
    """Rows with the same number brought together by a segment op, element by element."""
    if not isinstance(data, RaggedTensor):
        return apply(op_type, data, rows, count)
    kind = data.row_splits.dtype.base_dtype
    longest = apply("UnsortedSegmentMax", data.row_lengths(), rows, count)
    lengths = apply("Maximum", longest, np.zeros((), kind.as_numpy_dtype))
    ends = apply("Cumsum", lengths, 0)
    splits = apply("ConcatV2", [np.zeros(1, kind.as_numpy_dtype), ends], 0)
    starts = apply("GatherV2", splits, apply("GatherV2", rows, data.value_rowids(), 0), 0)
    inner = segments(op_type, data.values, starts + within_rows(data), splits[-1])
    return RaggedTensor._of(inner, splits)


def _along(
    op_type: str, data: RaggedOrDense, axis: int, dense: Callable[[Tensor, int], Tensor]
) -> RaggedOrDense:
    """Reduces one dimension."""
    if not isinstance(data, RaggedTensor):
        return dense(data, axis)
    if axis == 0:
        kind = data.row_splits.dtype.base_dtype
        zero = np.zeros((), kind.as_numpy_dtype)
        lengths = apply("ConcatV2", [data.row_lengths(), np.zeros(1, kind.as_numpy_dtype)], 0)
        widest = apply("Maximum", apply("Max", lengths, [0]), zero)
        return segments(op_type, data.values, within_rows(data), widest)
    if axis == 1:
        return segments(op_type, data.values, data.value_rowids(), data.nrows())
    return data.with_values(_along(op_type, data.values, axis - 1, dense))


def _axes(axis: TensorLike, rank: int | None) -> list[int] | None:
    if axis is None:
        return None
    known = constant_value(to_tensor(axis)) if not isinstance(axis, (int, list, tuple)) else axis
    if known is None:
        raise ValueError("axis must be known at graph construction time.")
    positions = []
    for a in np.asarray(known).ravel().tolist():
        if a < 0:
            if rank is None:
                raise ValueError("axis may only be negative if ndims is statically known.")
            a += rank
        if rank is not None and not 0 <= a < rank:
            raise ValueError(f"axis={a} out of bounds: expected {-rank}<=axis<{rank}")
        positions.append(int(a))
    return sorted(set(positions), reverse=True)  # from behind: those before keep their numbers


def _reduced(
    data: RaggedTensor, axis: TensorLike, keepdims: bool | None, kind: str, op_type: str
) -> RaggedOrDense:
    axes = _axes(axis, data.shape.rank)
    if axes is None:
        flat = data.flat_values
        every = apply("Range", 0, apply("Rank", flat), 1)
        total = apply(kind, flat, every)
        rank = data.shape.rank
        return apply("Reshape", total, [1] * rank) if keepdims and rank else total

    def dense(x: Tensor, a: int) -> Tensor:
        return apply(kind, x, [a])

    result: RaggedOrDense = data
    for a in axes:
        result = _along(op_type, result, a, dense)
        if keepdims:
            result = (
                expand_dims(result, a) if isinstance(result, RaggedTensor) else apply("ExpandDims", result, a)
            )
    return result


def _declare(name: str, kind: str, op_type: str) -> Reduction:
    def reduce(
        input_tensor: RaggedTensor,
        axis: TensorLike = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: TensorLike = None,
        keep_dims: bool | None = None,
    ) -> RaggedOrDense:
        with name_scope(name, f"RaggedReduce{kind}"):
            along = reduction_indices if axis is None else axis
            return _reduced(input_tensor, along, keep_dims if keepdims is None else keepdims, kind, op_type)

    reduce.__name__ = name
    reduce.__doc__ = f"`tf.{name}` of a ragged tensor."
    return reduce


reduce_sum = _declare("reduce_sum", "Sum", "UnsortedSegmentSum")
reduce_prod = _declare("reduce_prod", "Prod", "UnsortedSegmentProd")
reduce_max = _declare("reduce_max", "Max", "UnsortedSegmentMax")
reduce_min = _declare("reduce_min", "Min", "UnsortedSegmentMin")


def reduce_mean(
    input_tensor: RaggedTensor,
    axis: TensorLike = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike = None,
    keep_dims: bool | None = None,
) -> RaggedOrDense:
    """`tf.reduce_mean` of a ragged tensor."""
    with name_scope(name, "RaggedReduceMean"):
        given = (axis, keepdims, None, reduction_indices, keep_dims)
        total: Any = reduce_sum(input_tensor, *given)
        ones = input_tensor.with_flat_values(apply("OnesLike", input_tensor.flat_values))
        count: Any = reduce_sum(ones, *given)
        if isinstance(total, RaggedTensor):
            return total.with_flat_values(total.flat_values / count.flat_values)
        mean: Tensor = total / count
        return mean


def _logical(name: str, number: Reduction) -> Reduction:
    def reduce(
        input_tensor: RaggedTensor,
        axis: TensorLike = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: TensorLike = None,
        keep_dims: bool | None = None,
    ) -> RaggedOrDense:
        with name_scope(name, "RaggedReduceLogical"):
            numbers = input_tensor.with_flat_values(
                apply("Cast", input_tensor.flat_values, DstT=dtypes.int32)
            )
            count = number(numbers, axis, keepdims, None, reduction_indices, keep_dims)
            if isinstance(count, RaggedTensor):
                return count.with_flat_values(apply("Cast", count.flat_values, DstT=dtypes.bool_))
            return apply("Cast", count, DstT=dtypes.bool_)

    reduce.__name__ = name
    reduce.__doc__ = f"`tf.{name}` of a ragged tensor."
    return reduce


reduce_all = _logical("reduce_all", reduce_prod)
reduce_any = _logical("reduce_any", reduce_sum)


def _by_segment(name: str, op_type: str) -> Reduction:
    def segment(
        data: RaggedOrDense, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
    ) -> RaggedOrDense:
        with name_scope(name, f"Ragged{op_type}"):
            if isinstance(segment_ids, RaggedTensor):
                return segment(*_inside(data, segment_ids), num_segments)
            rows = to_tensor(segment_ids)
            return segments(op_type, data, rows, apply("Cast", to_tensor(num_segments), DstT=rows.dtype))

    segment.__name__ = name
    segment.__doc__ = f"`tf.{name}` of ragged rows."
    return segment


def _inside(data: RaggedOrDense, segment_ids: RaggedTensor) -> tuple[RaggedOrDense, RaggedOrDense]:
    """The values of ragged rows, and the segments they belong to."""
    if not isinstance(data, RaggedTensor):
        raise ValueError("If segment_ids is ragged, then data must be ragged.")
    message = "segment_ids.shape must be a prefix of data.shape"
    check = assert_equal(segment_ids.row_splits, data.row_splits, message=message)
    with control_dependencies([check]):
        rows = segment_ids.values
        return data.values, rows if isinstance(rows, RaggedTensor) else identity(rows)


def _averaged(name: str, divisor: str) -> Reduction:
    """A sum by segments over how many there were, or over the root of that."""
    total_of = _by_segment(name, "UnsortedSegmentSum")

    def segment(
        data: RaggedOrDense, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
    ) -> RaggedOrDense:
        with name_scope(name, f"Ragged{divisor}"):
            total = total_of(data, segment_ids, num_segments)
            ones = elementwise(ones_like, data)
            count = total_of(ones, segment_ids, num_segments)
            if divisor == "SegmentSqrtN":
                count = elementwise(lambda values: apply("Sqrt", values), count)
            return elementwise(divide, total, count)

    segment.__name__ = name
    segment.__doc__ = f"`tf.{name}` of ragged rows."
    return segment


SEGMENTS = {
    name: _by_segment(name, op_type)
    for name, op_type in {
        "unsorted_segment_sum": "UnsortedSegmentSum",
        "unsorted_segment_prod": "UnsortedSegmentProd",
        "unsorted_segment_max": "UnsortedSegmentMax",
        "unsorted_segment_min": "UnsortedSegmentMin",
    }.items()
}
SEGMENTS["unsorted_segment_mean"] = _averaged("unsorted_segment_mean", "SegmentMean")
SEGMENTS["unsorted_segment_sqrt_n"] = _averaged("unsorted_segment_sqrt_n", "SegmentSqrtN")
