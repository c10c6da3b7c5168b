"""Sums and other reductions over groups of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check, HostContext, Kernel
from tensorfleet.graph.kernels import raise_now
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.lane_kernels import LaneKernel
from tensorfleet.kernels.lanes import Lanes, Order, globally, within
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.kernels.rows import NARROW, accumulate, add_groups, adds_rows
from tensorfleet.ops.common import check_prefix, first_bad, static_value
from tensorfleet.ops.elementwise import INTS, POSITIVE, REAL, bracketed, constant_like, is_whole, where, wide
from tensorfleet.ops.samples import case

_ROWS = np.concatenate([REAL, REAL * 2])
_IDS = np.array([0, 0, 1, 3], np.int32)
_MIXED = np.array([2, 0, -1, 2], np.int32)

# -- groups that come sorted: how many there are depends on the data, so these run on the host --------


def _sorted_shape(op: Operation) -> TensorShape:
    data, ids = op._inputs[0].shape, op._inputs[1].shape
    if ids.rank not in (None, 1):
        raise ValueError(f"Shape must be rank 1 but is rank {ids.rank}")
    if data.rank == 0:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if data.rank is None:
        return TensorShape(None)
    return TensorShape._of((None, *data.as_list()[1:]))


def _sorted(name: str, types: str = "number") -> Callable[[Kernel], Kernel]:
    examples = [case(_ROWS, _IDS), case(_ROWS[:, 0].astype(np.float64), _IDS.astype(np.int64))]
    if name != "SegmentMean":
        examples.append(case(INTS, np.array([0, 2], np.int32)))
    return op(
        name,
        "data: T, segment_ids: Tindices -> output: T",
        f"T: {types}; Tindices: index",
        shape=_sorted_shape,
        host=True,
        examples=examples,
    )


def _check_sorted(data: Array, ids: Array) -> int:
    """How many groups there are; raises unless the ids fit the rows and grow."""
    if ids.ndim != 1 or ids.shape[0] != data.shape[0]:
        raise errors.invalid(
            f"segment_ids should be the same size as dimension 0 of input: "
            f"{bracketed(ids.shape)} for data of shape {bracketed(data.shape)}."
        )
    if ids.size == 0:
        return 0
    if ids[0] < 0 or np.any(ids[1:] < ids[:-1]):
        raise errors.invalid(disorder(ids))
    return int(ids[-1]) + 1


def disorder(ids: Array) -> str:
    """What is wrong with ids of groups that do not grow from zero: what TensorFlow, going through them, meets first."""
    count = int(ids[-1]) + 1
    if count <= 0:
        return "segment ids must be >= 0"
    for here, following in pairwise(ids.tolist()):
        if following < here:
            return "segment ids are not increasing"
        if following > here and not 0 <= here < count:
            break
    reason = "possibly because 'segment_ids' input is not sorted."
    return f"Segment id {here} out of range [0, {count}), {reason}"


def _by_group(data: Array, ids: Array, ufunc: np.ufunc, empty: int) -> Array:
    """`ufunc` over the rows of each group; `empty` for groups without rows."""
    return in_groups(wide(data), ids, _check_sorted(data, ids), ufunc, empty).astype(data.dtype, copy=False)


def in_groups(
    data: Array, ids: Array, count: int, ufunc: np.ufunc, empty: int, rows: Array | None = None
) -> Array:
    """`ufunc` over the rows of each of `count` groups, whose ids grow; `rows` tells which of the data they are.

    Ids need not grow where `sums_in_any_order` says so.
    """
    if len(ids) == count and one_each(ids):
        return data.copy() if rows is None else data.take(rows, axis=0)
    if sums_in_any_order(data, ufunc):
        out = np.full((count, *data.shape[1:]), empty, data.dtype)
        if rows is not None and ufunc is np.add and adds_rows(data) and (ids[1:] >= ids[:-1]).all():
            add_groups(out, ids, data, rows)
        else:
            accumulate(ufunc, out, ids, data if rows is None else data.take(rows, axis=0))
        return out
    starts = np.flatnonzero(np.concatenate([[len(ids) > 0], ids[1:] != ids[:-1]]))
    if len(starts) == count > 0:
        return reduced(data, starts, ufunc, rows)
    out = np.full((count, *data.shape[1:]), empty, data.dtype)
    if len(starts):
        out[ids[starts]] = reduced(data, starts, ufunc, rows)
    return out


def sums_in_any_order(data: Array, ufunc: np.ufunc) -> bool:
    """Whether rows are added one after the other to where they belong, which is the fastest way."""
    narrow = math.prod(data.shape[1:]) <= NARROW
    return (ufunc is np.add and (narrow or adds_rows(data))) or (ufunc is np.multiply and narrow)


_ROWS_AT_ONCE = 64  # rows of each group that are joined with the same rows of all others at once
_ELEMENTS_PER_THREAD = (
    1 << 21
)  # elements that are worth a thread of their own: steps of fewer wait for each other


def reduced(data: Array, starts: Array, ufunc: np.ufunc, rows: Array | None = None) -> Array:
    """`ufunc` over the rows from each start to the next; `rows` tells which of the data they are."""
    count = len(data if rows is None else rows)
    if len(starts) == count:  # one row each
        return data.copy() if rows is None else data.take(rows, axis=0)
    lengths = np.diff(np.append(starts, count))
    out = np.empty((len(starts), *data.shape[1:]), data.dtype)

    def some(first: int, last: int) -> None:
        _reduce(data, starts[first:last], lengths[first:last], ufunc, rows, out[first:last])

    elements = count * math.prod(data.shape[1:])
    in_parts(some, len(starts), len(starts) * _ELEMENTS_PER_THREAD // max(elements, 1) + 1)
    return out


def _reduce(
    data: Array, starts: Array, lengths: Array, ufunc: np.ufunc, rows: Array | None, out: Array
) -> None:
    """The first rows of all groups, then the second ...

    `ufunc.reduceat` along the first axis walks the columns one by one, ten times as slow.
    """
    places: Callable[[Any], Any] = (lambda at: at) if rows is None else rows.__getitem__
    # The longest first: groups that have a k-th row are then the first ones, one slice.
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    joined = np.take(data, places(starts), axis=0)
    others = np.empty_like(joined)
    longer = np.searchsorted(
        -lengths, -np.arange(_ROWS_AT_ONCE + 1)
    ).tolist()  # groups longer than k come first
    for k in range(1, min(int(lengths[0]), _ROWS_AT_ONCE)):
        active = longer[k]
        some = joined[:active]
        np.take(data, places(starts[:active] + k), axis=0, out=others[:active], mode="clip")
        ufunc(some, others[:active], out=some)
    for i in range(longer[_ROWS_AT_ONCE]):
        rest = data[places(slice(starts[i] + _ROWS_AT_ONCE, starts[i] + lengths[i]))]
        joined[i] = ufunc(joined[i], ufunc.reduce(rest, axis=0))
    out[order] = joined


@_sorted("SegmentSum")
def _segment_sum(ctx: HostContext, data: Array, ids: Array) -> Array:
    return _by_group(data, ids, np.add, 0)


gradient("SegmentSum")(lambda op, dy: (apply("GatherV2", dy, op.inputs[1], np.int32(0)), None))


@_sorted("SegmentMean")
def _segment_mean(ctx: HostContext, data: Array, ids: Array) -> Array:
    total = _by_group(wide(data), ids, np.add, 0)
    counts = np.maximum(np.bincount(ids, minlength=len(total)), 1).reshape((-1,) + (1,) * (data.ndim - 1))
    if is_whole(data):
        result: Array = np.trunc(total / counts).astype(data.dtype)
        return result
    total /= counts.astype(total.dtype)
    return total.astype(data.dtype, copy=False)


@gradient("SegmentMean")
def _segment_mean_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    data, ids = op.inputs
    ones = apply("OnesLike", apply("Cast", ids, DstT=dy.dtype.base_dtype))
    counts = apply("SegmentSum", ones, ids)
    scaled = apply("GatherV2", dy, ids, np.int32(0)) / _column(
        apply("GatherV2", counts, ids, np.int32(0)), data
    )
    return scaled, None


def _column(vector: Tensor, like: Tensor) -> Tensor:
    """A tensor whose axes are the first of `like`, with axes of size 1 for the rest."""
    if like.shape.rank is not None and vector.shape.rank is not None:
        extra = like.shape.rank - vector.shape.rank
        if extra == 0:
            return vector
        ones: Any = np.ones(extra, np.int32)
    else:
        ones = apply("Fill", apply("ExpandDims", apply("Rank", like) - apply("Rank", vector), 0), np.int32(1))
    return apply("Reshape", vector, apply("ConcatV2", [apply("Shape", vector), ones], np.int32(0)))


@_sorted("SegmentProd")
def _segment_prod(ctx: HostContext, data: Array, ids: Array) -> Array:
    return _by_group(data, ids, np.multiply, 1)


@gradient("SegmentProd")
def _segment_prod_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    # With one zero in a group only that element has a gradient; with two, none has.
    data, ids = op.inputs
    zero = apply("Equal", data, constant_like(0, data))
    zeros = apply("SegmentSum", apply("Cast", zero, DstT=np.int32), ids)
    dy = where(apply("Greater", zeros, 1), 0, dy)
    nonzero = where(zero, 1, data)
    without = apply("GatherV2", apply("SegmentProd", nonzero, ids), ids, np.int32(0))
    product: Any = apply("GatherV2", op.outputs[0], ids, np.int32(0))
    partial = where(zero, without, product / nonzero)
    return apply("GatherV2", dy, ids, np.int32(0)) * partial, None


@_sorted("SegmentMax", "real")
def _segment_max(ctx: HostContext, data: Array, ids: Array) -> Array:
    return _by_group(data, ids, np.maximum, 0)


@_sorted("SegmentMin", "real")
def _segment_min(ctx: HostContext, data: Array, ids: Array) -> Array:
    return _by_group(data, ids, np.minimum, 0)


@gradient("SegmentMax", "SegmentMin")
def _segment_extreme_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    data, ids = op.inputs
    zero = np.int32(0)
    chosen = apply("Equal", data, apply("GatherV2", op.outputs[0], ids, zero))
    ties = apply("SegmentSum", apply("Cast", chosen, DstT=dy.dtype.base_dtype), ids)
    share = apply("GatherV2", dy / ties, ids, zero)
    return where(chosen, share, 0), None


def _public(kind: str, public: str, what: str) -> Callable[..., Tensor]:
    def reduce(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
        return apply(kind, data, segment_ids, name=name)

    reduce.__name__ = reduce.__qualname__ = public
    reduce.__doc__ = f"{what} of the rows of each group; `segment_ids` must grow."
    return export(f"math.{public}", public)(reduce)


segment_sum = _public("SegmentSum", "segment_sum", "The sum")
segment_mean = _public("SegmentMean", "segment_mean", "The mean")
segment_prod = _public("SegmentProd", "segment_prod", "The product")
segment_max = _public("SegmentMax", "segment_max", "The largest")
segment_min = _public("SegmentMin", "segment_min", "The smallest")

# -- groups in any order, their number given ---------------------------------------------------------


def _unsorted_shape(op: Operation) -> TensorShape:
    data, ids = op._inputs[0].shape, op._inputs[1].shape
    count = static_value(op, 2)
    if data.rank is None or ids.rank is None:
        return TensorShape(None)
    check_prefix(data, ids)
    first = None if count is None else int(count)
    if first is not None and first < 0:
        raise ValueError(f"Dimension size, given by scalar input 2, must be non-negative but is {first}")
    return TensorShape._of((first, *data.as_list()[ids.rank :]))


def _unsorted(
    name: str, types: str = "number", tindices: str = "index", joined: LaneKernel | None = None
) -> Callable[[Kernel], Kernel]:
    three = np.array(3, np.int32)
    return op(
        name,
        "data: T, segment_ids: Tindices, num_segments: Tnumsegments[0] -> output: T",
        f"T: {types}; Tindices: {tindices}; Tnumsegments: index = int32",
        shape=_unsorted_shape,
        static=["num_segments"],
        joined=joined,
        examples=[
            case(_ROWS, _MIXED, three),
            case(INTS, np.array([[0, 1, 1], [2, 0, 1]], np.int64), three),
            case(POSITIVE, np.array([1, 0], np.int32), np.array(2, np.int64)),
            case(POSITIVE[:, :0], np.array([1, 0], np.int32), three, grad=False),
        ],
    )


def _scatter(
    xp: ArrayModule, data: Array, ids: Array, num: Array, kind: str, start: float, check: Check
) -> Array:
    """Rows gathered into `num` groups by numpy's or jax's indexed update; negative ids are dropped."""
    count = int(num)
    if data.shape[: ids.ndim] != ids.shape:
        shapes = bracketed(data.shape), bracketed(ids.shape)
        text = "data.shape = {} does not start with segment_ids.shape = {}".format(*shapes)
        raise errors.invalid(text)
    if is_numpy(xp) and ids.shape == (count,) and count and ids[-1] == count - 1 and one_each(ids):
        return data  # as where indices without duplicates are summed up
    ok = ids < count
    check(xp.all(ok), lambda: "segment_ids{} = {} is out of range [0, {})".format(*first_bad(ok, ids), count))
    w = wide(data)
    rows = w.reshape((ids.size, *data.shape[ids.ndim :]))
    # One group more than asked for takes the rows to be dropped.
    places = xp.where((ids < 0) | ~ok, count, ids).reshape(-1).astype(np.int64)
    shape = (count + 1, *data.shape[ids.ndim :])
    if is_numpy(xp):
        out = np.full(shape, start, w.dtype)
        combine = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
        if places.size:
            accumulate(combine, out, places, rows)
    else:
        from tensorfleet.kernels.xla import at

        out = getattr(at(xp.full(shape, start, w.dtype), places), kind)(rows)
    return out[:count].astype(data.dtype, copy=False)


def one_each(ids: Array) -> bool:
    """Whether the rows are in groups of their own, one after the other."""
    return bool((ids == np.arange(len(ids))).all())


def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the largest number of a type."""
    from ml_dtypes import finfo, iinfo

    limits: Any = (iinfo if dtype.kind in "iu" else finfo)(dtype)
    return limits.min, limits.max


def _several_sums(ops: list[Operation], given: Sequence[Lanes | Array]) -> tuple[Lanes] | None:
    """The same for the rows of several operations, none of which are to be dropped."""
    data, ids, num = given
    if not (isinstance(data, Lanes) and isinstance(ids, Lanes) and ids.data.ndim == 1 and data.alike(ids)):
        return None
    counts = num.data if isinstance(num, Lanes) else np.full(len(ops), num)
    if ids.order is Order.COUNTING and (counts == ids.sizes).all():
        return (data,)
    if data.scalars or not within(ids, counts):
        return None
    starts = [0, *np.cumsum(counts).tolist()]
    places = globally(ids, np.array(starts[:-1]))
    return (Lanes(_scatter(np, data.data, places, np.array(starts[-1]), "add", 0, raise_now), starts),)


@_unsorted("UnsortedSegmentSum", tindices="{int16, int32, int64}", joined=_several_sums)
def _unsorted_sum(xp: ArrayModule, data: Array, ids: Array, num: Array, *, check: Check) -> Array:
    return _scatter(xp, data, ids, num, "add", 0, check)


gradient("UnsortedSegmentSum")(lambda op, dy: (_gather_or_zero(dy, op.inputs[1], op.inputs[0]), None, None))


def _gather_or_zero(rows: Tensor, ids: Tensor, like: Tensor) -> Tensor:
    """The row of each id; zeros where the id is negative."""
    gathered = apply("GatherV2", rows, apply("Maximum", ids, constant_like(0, ids)), np.int32(0))
    there = apply("GreaterEqual", ids, constant_like(0, ids))
    return where(_column(there, like), gathered, 0)


@_unsorted("UnsortedSegmentMax", "real")
def _unsorted_max(xp: ArrayModule, data: Array, ids: Array, num: Array, *, check: Check) -> Array:
    return _scatter(xp, data, ids, num, "max", _limits(data.dtype)[0], check)


@_unsorted("UnsortedSegmentMin", "real")
def _unsorted_min(xp: ArrayModule, data: Array, ids: Array, num: Array, *, check: Check) -> Array:
    return _scatter(xp, data, ids, num, "min", _limits(data.dtype)[1], check)


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def _unsorted_extreme_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
    data, ids, num = op.inputs
    there = _column(apply("GreaterEqual", ids, constant_like(0, ids)), data)
    chosen = apply("LogicalAnd", apply("Equal", data, _gather_or_zero(op.outputs[0], ids, data)), there)
    ties = apply("UnsortedSegmentSum", apply("Cast", chosen, DstT=dy.dtype.base_dtype), ids, num)
    return where(chosen, _gather_or_zero(dy / ties, ids, data), 0), None, None


@_unsorted("UnsortedSegmentProd")
def _unsorted_prod(xp: ArrayModule, data: Array, ids: Array, num: Array, *, check: Check) -> Array:
    return _scatter(xp, data, ids, num, "multiply", 1, check)


@gradient("UnsortedSegmentProd")
def _unsorted_prod_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
    # With one zero in a group only that element has a gradient; with two, none has.
    data, ids, num = op.inputs
    zero = apply("Equal", data, constant_like(0, data))
    zeros = apply("UnsortedSegmentSum", apply("Cast", zero, DstT=np.int32), ids, num)
    dy = where(apply("Greater", zeros, 1), 0, dy)
    others = apply("UnsortedSegmentProd", where(zero, 1, data), ids, num)
    safe_ids = apply("Maximum", ids, constant_like(0, ids))
    without = apply("GatherV2", others, safe_ids, np.int32(0))
    product = apply("GatherV2", op.outputs[0], safe_ids, np.int32(0))
    partial = where(zero, without, product / where(zero, 1, data))
    return _gather_or_zero(dy, ids, data) * partial, None, None


def _public_unsorted(kind: str, public: str, what: str) -> Callable[..., Tensor]:
    def reduce(
        data: TensorLike,
        segment_ids: TensorLike,
        num_segments: int,
        name: str | None = None,
    ) -> Tensor:
        return apply(kind, data, segment_ids, num_segments, name=name)

    reduce.__name__ = reduce.__qualname__ = public
    reduce.__doc__ = f"{what} of the elements of each of `num_segments` groups; negative ids are left out."
    return export(f"math.{public}", public)(reduce)


unsorted_segment_sum = _public_unsorted("UnsortedSegmentSum", "unsorted_segment_sum", "The sum")
unsorted_segment_prod = _public_unsorted("UnsortedSegmentProd", "unsorted_segment_prod", "The product")
unsorted_segment_max = _public_unsorted("UnsortedSegmentMax", "unsorted_segment_max", "The largest")
unsorted_segment_min = _public_unsorted("UnsortedSegmentMin", "unsorted_segment_min", "The smallest")


def _counted(data: Tensor, ids: Tensor, num: TensorLike) -> tuple[Tensor, Tensor]:
    """The sum of each group and how many elements it has (at least 1), shaped to divide one by the other."""
    ones = apply("Fill", apply("Shape", ids), constant_like(1, data))
    counts = apply("UnsortedSegmentSum", ones, ids, num)
    total = apply("UnsortedSegmentSum", data, ids, num)
    return total, apply("Maximum", _column(counts, total), constant_like(1, data))


@export("math.unsorted_segment_mean", "unsorted_segment_mean")
def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The mean of the elements of each group; 0 for an empty one."""
    with name_scope(name, "UnsortedSegmentMean"):
        total, count = _counted(to_tensor(data), to_tensor(segment_ids), num_segments)
        return total / count


@export("math.unsorted_segment_sqrt_n", "unsorted_segment_sqrt_n")
def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The sum of the elements of each group, divided by the square root of their number."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        total, count = _counted(to_tensor(data), to_tensor(segment_ids), num_segments)
        return total / apply("Sqrt", count)
