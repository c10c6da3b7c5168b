"""Reductions over groups of rows picked by index: the heart of looking up bags of embeddings."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.arrays import all_within, is_numpy
from tensorfleet.ops.common import static_value
from tensorfleet.ops.elementwise import POSITIVE, REAL, wide
from tensorfleet.ops.math.segments import disorder, in_groups, one_each, sums_in_any_order
from tensorfleet.ops.samples import case

_INDICES, _IDS = np.array([0, 2, 1, 2], np.int32), np.array([0, 0, 1, 3], np.int32)
_DATA = np.concatenate([POSITIVE, POSITIVE[:1] * 2])
_TYPES = "Tidx: index = int32; Tsegmentids: index = int32; sparse_gradient: bool = false"
_COUNTED_TYPES = (
    "Tidx: index = int32; Tnumsegments: index = int32; Tsegmentids: index = int32; "
    "sparse_gradient: bool = false"
)


def _shape(op: Operation) -> TensorShape:
    data, indices, ids = (t.shape for t in op._inputs[:3])
    indices.merge_with(ids)
    if data.rank is None:
        return TensorShape(None)
    count = static_value(op, 3) if len(op._inputs) > 3 else None
    if count is not None and int(count) < 0:
        raise ValueError("Cannot specify a negative value for num_segments")
    return TensorShape._of((None if count is None else int(count), *data.as_list()[1:]))


def _picked(name: str, types: str) -> Any:
    """Declares the form whose number of groups depends on the data, hence runs on the host."""
    return op(
        name,
        "data: T[1+], indices: Tidx[1], segment_ids: Tsegmentids[1] -> output: T",
        f"T: {types}; {_TYPES}",
        shape=_shape,
        host=True,
        examples=[case(_DATA, _INDICES, _IDS), case(REAL, _INDICES % 2, _IDS.astype(np.int64))],
    )


def _picked_counted(name: str, types: str) -> Any:
    """Declares the form that is told how many groups there are."""
    return op(
        name,
        "data: T[1+], indices: Tidx[1], segment_ids: Tsegmentids[1], num_segments: Tnumsegments[0] -> output: T",
        f"T: {types}; {_COUNTED_TYPES}",
        shape=_shape,
        static=["num_segments"],
        examples=[case(_DATA, _INDICES, _IDS, np.int32(5))],
    )


def _check(xp: Any, data: Any, indices: Any, ids: Any, count: int | None, check: Any) -> None:
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


def _add_rows(xp: Any, data: Any, rows: Any, places: Any, count: int) -> Any:
    """Some rows of the data, or all, added up at their places."""
    if is_numpy(xp):
        if not sums_in_any_order(data, np.add) and (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            rows, places = order if rows is None else rows[order], places[order]
        return in_groups(data, places, count, np.add, 0, rows)
    return xp.zeros((count, *data.shape[1:]), data.dtype).at[places].add(xp.asarray(data)[rows], mode="drop")


def _divisor(xp: Any, ids: Any, count: int, kind: str, like: Any) -> Any:
    """What each group's sum is divided by: its number of rows, or the square root of it."""
    if is_numpy(xp):
        sizes = np.bincount(ids.clip(0), minlength=count)[:count].astype(like.dtype)
    else:
        sizes = xp.zeros(count, like.dtype).at[ids].add(1, mode="drop")
    sizes = xp.maximum(sizes, like.dtype.type(1))
    sizes = xp.sqrt(sizes) if kind == "sqrt" else sizes
    return sizes.reshape((-1,) + (1,) * (like.ndim - 1))


def _reduced(xp: Any, data: Any, indices: Any, ids: Any, count: int, kind: str) -> Any:
    w = wide(data)
    if is_numpy(xp):
        if len(ids) == count and one_each(ids):
            return data.take(indices, axis=0)
        safe = indices
    else:
        safe = xp.clip(indices, 0, max(data.shape[0] - 1, 0))
    total = _add_rows(xp, w, safe, ids, count)
    if kind != "sum":
        total /= _divisor(xp, ids, count, kind, w)
    return total.astype(data.dtype, copy=False)


def _on_host(data: Any, indices: Any, ids: Any, kind: str) -> Any:
    from tensorfleet.graph.kernels import raise_now

    _check(np, data, indices, ids, None, raise_now)
    return _reduced(np, data, indices, ids, int(ids[-1]) + 1 if ids.size else 0, kind)


def _counted(xp: Any, data: Any, indices: Any, ids: Any, num: Any, check: Any, kind: str) -> Any:
    _check(xp, data, indices, ids, int(num), check)
    return _reduced(xp, data, indices, ids, int(num), kind)


@_picked("SparseSegmentSum", "real")
def _sum(ctx: Any, data: Any, indices: Any, ids: Any) -> Any:
    return _on_host(data, indices, ids, "sum")


@_picked_counted("SparseSegmentSumWithNumSegments", "real")
def _sum_counted(xp: Any, data: Any, indices: Any, ids: Any, num: Any, *, check: Any) -> Any:
    return _counted(xp, data, indices, ids, num, check, "sum")


@gradient("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def _sum_grad(op: Operation, dy: Any) -> list:
    data, indices, ids = op.inputs[:3]
    rows = apply("GatherV2", dy, ids, np.int32(0))
    total = apply("UnsortedSegmentSum", rows, indices, _first_size(data))
    return [total] + [None] * (len(op.inputs) - 1)


def _first_size(data: Tensor) -> Any:
    rows = data.shape.as_list()[0] if data.shape.rank else None
    if rows is not None:
        return np.int32(rows)
    return apply("GatherV2", apply("Shape", data), np.int32(0), np.int32(0))


@_picked("SparseSegmentMean", "floating")
def _mean(ctx: Any, data: Any, indices: Any, ids: Any) -> Any:
    return _on_host(data, indices, ids, "mean")


@_picked_counted("SparseSegmentMeanWithNumSegments", "floating")
def _mean_counted(xp: Any, data: Any, indices: Any, ids: Any, num: Any, *, check: Any) -> Any:
    return _counted(xp, data, indices, ids, num, check, "mean")


@_picked("SparseSegmentSqrtN", "floating")
def _sqrt_n(ctx: Any, data: Any, indices: Any, ids: Any) -> Any:
    return _on_host(data, indices, ids, "sqrt")


@_picked_counted("SparseSegmentSqrtNWithNumSegments", "floating")
def _sqrt_n_counted(xp: Any, data: Any, indices: Any, ids: Any, num: Any, *, check: Any) -> Any:
    return _counted(xp, data, indices, ids, num, check, "sqrt")


@gradient("SparseSegmentMean", "SparseSegmentMeanWithNumSegments")
def _mean_grad(op: Operation, dy: Any) -> list:
    return _grad_by("SparseSegmentMeanGrad", op, dy)


@gradient("SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments")
def _sqrt_n_grad(op: Operation, dy: Any) -> list:
    return _grad_by("SparseSegmentSqrtNGrad", op, dy)


def _grad_by(kind: str, op: Operation, dy: Any) -> list:
    data, indices, ids = op.inputs[:3]
    return [apply_any(kind, dy, indices, ids, _first_size(data))] + [None] * (len(op.inputs) - 1)


def _grad_shape(op: Operation) -> TensorShape:
    rows, grad = static_value(op, 3), op._inputs[0].shape
    op._inputs[2].shape.merge_with(op._inputs[1].shape)
    if rows is not None and int(rows) < 0:
        raise ValueError("Cannot specify a negative value for output_dim0")
    if grad.rank is None:
        return TensorShape(None)
    return TensorShape._of((None if rows is None else int(rows), *grad.as_list()[1:]))


def _gradient_kernel(name: str) -> Any:
    rows = np.concatenate([POSITIVE, POSITIVE * 2])
    return op(
        name,
        "grad: T[1+], indices: Tidx[1], segment_ids: Tsegmentids, output_dim0: int32[0] -> output: T",
        "T: floating; Tidx: index = int32; Tsegmentids: index = int32",
        shape=_grad_shape,
        static=["output_dim0"],
        examples=[case(rows, _INDICES, _IDS, np.int32(3), grad=False)],
    )


def _scattered(xp: Any, grad: Any, indices: Any, ids: Any, rows: Any, check: Any, kind: str) -> Any:
    if ids.size:
        # The groups are numbered up to the last one, and each has a row of the gradient.
        check(ids[-1] < grad.shape[0], lambda: "Invalid number of segments")
    for what, places, size in (("Index", indices, int(rows)), ("Segment id", ids, grad.shape[0])):
        check(all_within(xp, places, size), functools.partial(_outside, what, places, size))
    w = wide(grad)
    alone = is_numpy(xp) and len(ids) == len(w) and one_each(ids)
    share = w if kind == "sum" or alone else w / _divisor(xp, ids, grad.shape[0], kind, w)
    return _add_rows(xp, share, None if alone else ids, indices, int(rows)).astype(grad.dtype, copy=False)


def _first_outside(places: Any, size: int) -> tuple[int, Any]:
    places = np.asarray(places)
    at = int(np.argmax((places < 0) | (places >= size)))
    return at, places[at]


def _outside(what: str, places: Any, size: int) -> str:
    return f"{what} {_first_outside(places, size)[1]} out of range [0, {size})."


@_gradient_kernel("SparseSegmentSumGrad")
def _sum_grad_kernel(xp: Any, grad: Any, indices: Any, ids: Any, rows: Any, *, check: Any) -> Any:
    return _scattered(xp, grad, indices, ids, rows, check, "sum")


@_gradient_kernel("SparseSegmentMeanGrad")
def _mean_grad_kernel(xp: Any, grad: Any, indices: Any, ids: Any, rows: Any, *, check: Any) -> Any:
    return _scattered(xp, grad, indices, ids, rows, check, "mean")


@_gradient_kernel("SparseSegmentSqrtNGrad")
def _sqrt_n_grad_kernel(xp: Any, grad: Any, indices: Any, ids: Any, rows: Any, *, check: Any) -> Any:
    return _scattered(xp, grad, indices, ids, rows, check, "sqrt")


not_differentiable("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")


def _call(kind: str, data: Any, indices: Any, ids: Any, name: str | None, num: Any) -> Tensor:
    if num is None:
        return apply_any(kind, data, indices, ids, name=name)
    return apply_any(f"{kind}WithNumSegments", data, indices, ids, num, name=name)


@export("sparse.segment_sum", "sparse_segment_sum")
def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """The sum of `data[indices]` over each group that `segment_ids` names."""
    return _call("SparseSegmentSum", data, indices, segment_ids, name, num_segments)


@export("sparse.segment_mean", "sparse_segment_mean")
def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """The mean of `data[indices]` over each group that `segment_ids` names."""
    return _call("SparseSegmentMean", data, indices, segment_ids, name, num_segments)


@export("sparse.segment_sqrt_n", "sparse_segment_sqrt_n")
def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """The sum of `data[indices]` over each group, divided by the square root of its size."""
    return _call("SparseSegmentSqrtN", data, indices, segment_ids, name, num_segments)
