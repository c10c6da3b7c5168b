"""Reductions over groups of rows picked by index: the heart of looking up bags of embeddings."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import Check, HostContext
from tensorfleet.graph.kernels import raise_now
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.arrays import all_within, is_numpy
from tensorfleet.kernels.lanes import Lanes, Order, globally, within
from tensorfleet.ops.common import static_value
from tensorfleet.ops.elementwise import POSITIVE, REAL, wide
from tensorfleet.ops.math.segments import disorder, in_groups, one_each, sums_in_any_order
from tensorfleet.ops.samples import case

_INDICES, _IDS = np.array([0, 2, 1, 2], np.int32), np.array([0, 0, 1, 3], np.int32)
_DATA = np.concatenate([POSITIVE, POSITIVE[:1] * 2])
_SPARSE = "sparse_gradient: bool = false"


def _shape(op: Operation) -> TensorShape:
    data, indices, ids = (t.shape for t in op._inputs[:3])
    indices.merge_with(ids)
    if data.rank is None:
        return TensorShape(None)
    count = static_value(op, 3) if len(op._inputs) > 3 else None
    if count is not None and int(count) < 0:
        raise ValueError("Cannot specify a negative value for num_segments")
    return TensorShape._of((None if count is None else int(count), *data.as_list()[1:]))


def _check(xp: ArrayModule, data: Array, indices: Array, ids: Array, count: int | None, check: Check) -> None:
    if indices.shape != ids.shape:
        raise errors.invalid("segment_ids and indices should have same size.")
    rows = data.shape[0]

    def outside() -> str:
        at, value = _first_outside(indices, rows)
        return f"Bad: indices[{at}] == {value} out of range [0, {rows})"

    check(all_within(xp, indices, rows), outside)
    if count is None:
        if ids.size and (ids[0] < 0 or not (ids[1:] >= ids[:-1]).all()):
            raise errors.invalid(disorder(ids))
    else:
        check(xp.all(ids[1:] >= ids[:-1]), lambda: "segment ids are not increasing")
        check(xp.all(ids >= 0), lambda: "segment ids must be >= 0")
        check(xp.all(ids < count), lambda: "segment ids must be < num_segments")


def _add_rows(xp: ArrayModule, data: Array, rows: Array | None, places: Array, count: int) -> Array:
    """Some rows of the data, or all, added up at their places."""
    if is_numpy(xp):
        # Float sums depend on their order: the rows of a place are added in the order in which they come.
        if not sums_in_any_order(data, np.add) and (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            rows, places = order if rows is None else rows[order], places[order]
        return in_groups(data, places, count, np.add, 0, rows)
    blank: Any = xp.zeros((count, *data.shape[1:]), data.dtype)  # of JAX, which has `at`
    total: Array = blank.at[places].add(xp.asarray(data)[rows], mode="drop")
    return total


def _divisor(xp: ArrayModule, ids: Array, count: int, kind: str, like: Array) -> Array:
    """The divisor of each group's sum: its number of rows, or the square root of it."""
    if is_numpy(xp):
        sizes = np.bincount(ids.clip(0), minlength=count)[:count].astype(like.dtype)
    else:
        blank: Any = xp.zeros(count, like.dtype)
        sizes = blank.at[ids].add(1, mode="drop")
    sizes = xp.maximum(sizes, like.dtype.type(1))
    sizes = xp.sqrt(sizes) if kind == "sqrt" else sizes
    return sizes.reshape((-1,) + (1,) * (like.ndim - 1))


def _reduced(xp: ArrayModule, data: Array, indices: Array, ids: Array, count: int, kind: str) -> Array:
    w: Array = wide(data)
    if is_numpy(xp):
        if len(ids) == count and one_each(ids):  # one row in each group: nothing to add up
            return data.take(indices, axis=0)
        safe = indices
    else:
        safe = xp.clip(indices, 0, max(data.shape[0] - 1, 0))
    total = _add_rows(xp, w, safe, ids, count)
    if kind != "sum":
        total /= _divisor(xp, ids, count, kind, w)
    return total.astype(data.dtype, copy=False)


def _reduced_lanes(data: Lanes, indices: Lanes, ids: Lanes, kind: str) -> tuple[Lanes] | None:
    """The same for several operations: their groups are put behind each other."""
    if not indices.alike(ids) or not within(indices, data.sizes) or not ids.sizes.all():
        return None
    rows = globally(indices, data.firsts)
    if ids.order is Order.COUNTING:
        return (ids.like(data.data.take(rows, axis=0)),)
    counts = ids.data.take(np.asarray(ids.starts[1:]) - 1) + 1
    starts = [0, *np.cumsum(counts).tolist()]
    groups = globally(ids, np.array(starts[:-1]))
    if ids.data.min() < 0 or not (groups[1:] >= groups[:-1]).all():
        return None
    return (Lanes(_reduced(np, data.data, rows, groups, starts[-1], kind), starts),)


def _declare(name: str, types: str, kind: str) -> None:
    """Declares both forms of an op: the number of groups comes from the data, hence on the host, or is an input."""

    def on_host(ctx: HostContext, data: Array, indices: Array, ids: Array) -> Array:
        _check(np, data, indices, ids, None, raise_now)
        return _reduced(np, data, indices, ids, int(ids[-1]) + 1 if ids.size else 0, kind)

    def counted(
        xp: ArrayModule, data: Array, indices: Array, ids: Array, num: Array, *, check: Check
    ) -> Array:
        _check(xp, data, indices, ids, int(num), check)
        return _reduced(xp, data, indices, ids, int(num), kind)

    def several(ops: list[Operation], given: Sequence[Lanes]) -> tuple[Lanes] | None:
        data, indices, ids = given
        return _reduced_lanes(data, indices, ids, kind)

    inputs = "data: T[1+], indices: Tidx[1], segment_ids: Tsegmentids[1]"
    op(
        name,
        f"{inputs} -> output: T",
        f"T: {types}; Tidx: index = int32; Tsegmentids: index = int32; {_SPARSE}",
        shape=_shape,
        host=True,
        joined=several,
        examples=[case(_DATA, _INDICES, _IDS), case(REAL, _INDICES % 2, _IDS.astype(np.int64))],
    )(on_host)
    op(
        f"{name}WithNumSegments",
        f"{inputs}, num_segments: Tnumsegments[0] -> output: T",
        f"T: {types}; Tidx: index = int32; Tnumsegments: index = int32; Tsegmentids: index = int32; {_SPARSE}",
        shape=_shape,
        static=["num_segments"],
        examples=[case(_DATA, _INDICES, _IDS, np.int32(5))],
    )(counted)


_declare("SparseSegmentSum", "real", "sum")
_declare("SparseSegmentMean", "floating", "mean")
_declare("SparseSegmentSqrtN", "floating", "sqrt")


@gradient("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def _sum_grad(op: Operation, dy: Tensor) -> list[Tensor | None]:
    data, indices, ids = op.inputs[:3]
    rows = apply("GatherV2", dy, ids, np.int32(0))
    total = apply("UnsortedSegmentSum", rows, indices, _first_size(data))
    return [total] + [None] * (len(op.inputs) - 1)


def _first_size(data: Tensor) -> TensorLike:
    rows = data.shape.as_list()[0] if data.shape.rank else None
    if rows is not None:
        return np.int32(rows)
    return apply("GatherV2", apply("Shape", data), np.int32(0), np.int32(0))


@gradient(
    "SparseSegmentMean",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtN",
    "SparseSegmentSqrtNWithNumSegments",
)
def _divided_grad(op: Operation, dy: Tensor) -> list[Tensor | None]:
    data, indices, ids = op.inputs[:3]
    grad = apply(op.type.removesuffix("WithNumSegments") + "Grad", dy, indices, ids, _first_size(data))
    return [grad] + [None] * (len(op.inputs) - 1)


def _grad_shape(op: Operation) -> TensorShape:
    rows, grad = static_value(op, 3), op._inputs[0].shape
    op._inputs[2].shape.merge_with(op._inputs[1].shape)
    if rows is not None and int(rows) < 0:
        raise ValueError("Cannot specify a negative value for output_dim0")
    if grad.rank is None:
        return TensorShape(None)
    return TensorShape._of((None if rows is None else int(rows), *grad.as_list()[1:]))


def _scattered(
    xp: ArrayModule, grad: Array, indices: Array, ids: Array, rows: int, check: Check, kind: str
) -> Array:
    if ids.size:
        # The groups are numbered up to the last one, and each has a row of the gradient.
        check(ids[-1] < grad.shape[0], lambda: "Invalid number of segments")
    for what, places, size in (("Index", indices, rows), ("Segment id", ids, grad.shape[0])):
        check(all_within(xp, places, size), functools.partial(_outside, what, places, size))
    w: Array = wide(grad)
    alone = is_numpy(xp) and len(ids) == len(w) and one_each(ids)
    share = w if kind == "sum" or alone else w / _divisor(xp, ids, grad.shape[0], kind, w)
    return _add_rows(xp, share, None if alone else ids, indices, rows).astype(grad.dtype, copy=False)


def _scattered_lanes(
    grad: Lanes, indices: Lanes, ids: Lanes, rows: Lanes | Array, kind: str
) -> tuple[Lanes] | None:
    """The same for several operations: their rows are put behind each other."""
    counts = rows.data if isinstance(rows, Lanes) else np.full(grad.count, rows)
    if not (indices.alike(ids) and within(indices, counts) and within(ids, grad.sizes)):
        return None
    starts = [0, *np.cumsum(counts).tolist()]
    places, groups = globally(indices, np.array(starts[:-1])), globally(ids, grad.firsts)
    sums = _scattered(np, grad.data, places, groups, starts[-1], raise_now, kind)
    return (Lanes(sums, starts),)


def _first_outside(places: Array, size: int) -> tuple[int, Any]:
    places = np.asarray(places)
    at = int(np.argmax((places < 0) | (places >= size)))
    return at, places[at]


def _outside(what: str, places: Array, size: int) -> str:
    return f"{what} {_first_outside(places, size)[1]} out of range [0, {size})."


def _declare_gradient(name: str, kind: str) -> None:
    def kernel(
        xp: ArrayModule, grad: Array, indices: Array, ids: Array, rows: Array, *, check: Check
    ) -> Array:
        return _scattered(xp, grad, indices, ids, int(rows), check, kind)

    def several(ops: list[Operation], given: Sequence[Any]) -> tuple[Lanes] | None:
        grad, indices, ids, rows = given
        return _scattered_lanes(grad, indices, ids, rows, kind)

    rows = np.concatenate([POSITIVE, POSITIVE * 2])
    op(
        name,
        "grad: T[1+], indices: Tidx[1], segment_ids: Tsegmentids, output_dim0: int32[0] -> output: T",
        "T: floating; Tidx: index = int32; Tsegmentids: index = int32",
        shape=_grad_shape,
        static=["output_dim0"],
        joined=several,
        examples=[case(rows, _INDICES, _IDS, np.int32(3), grad=False)],
    )(kernel)


_declare_gradient("SparseSegmentSumGrad", "sum")
_declare_gradient("SparseSegmentMeanGrad", "mean")
_declare_gradient("SparseSegmentSqrtNGrad", "sqrt")
not_differentiable("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")


def _call(
    kind: str, data: TensorLike, indices: TensorLike, ids: TensorLike, name: str | None, num: TensorLike
) -> Tensor:
    if num is None:
        return apply(kind, data, indices, ids, name=name)
    return apply(f"{kind}WithNumSegments", data, indices, ids, num, name=name)


@export("sparse.segment_sum", "sparse_segment_sum")
def sparse_segment_sum(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike = None,
) -> Tensor:
    """The sum of `data[indices]` over each group that `segment_ids` names."""
    return _call("SparseSegmentSum", data, indices, segment_ids, name, num_segments)


@export("sparse.segment_mean", "sparse_segment_mean")
def sparse_segment_mean(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike = None,
) -> Tensor:
    """The mean of `data[indices]` over each group that `segment_ids` names."""
    return _call("SparseSegmentMean", data, indices, segment_ids, name, num_segments)


@export("sparse.segment_sqrt_n", "sparse_segment_sqrt_n")
def sparse_segment_sqrt_n(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike = None,
) -> Tensor:
    """The sum of `data[indices]` over each group, divided by the square root of its size."""
    return _call("SparseSegmentSqrtN", data, indices, segment_ids, name, num_segments)
