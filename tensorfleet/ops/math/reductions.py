"""Reductions over axes: sums, means, extremes, logic, and where the extremes are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels import lane_kernels
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.lane_kernels import LaneKernel
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.ops.common import ints, static_value
from tensorfleet.ops.elementwise import (
    COMPLEX,
    INTS,
    POSITIVE,
    REAL,
    bracketed,
    conj,
    constant_like,
    is_float,
    is_whole,
    wide,
)
from tensorfleet.ops.samples import case

_ALL = np.array([0, 1], np.int32)
_FIRST = np.array(0, np.int32)
_LAST = np.array([-1], np.int64)
_REAL_CASES = [
    case(REAL, _ALL),
    case(POSITIVE, _FIRST, keep_dims=True),
    case(INTS, _LAST),
    case(REAL, np.array([], np.int32)),
    case(REAL[:, :0], np.array(1, np.int32), grad=False),
]
_CASES = [*_REAL_CASES, case(COMPLEX, _FIRST)]


def reduction_shape(op: Operation) -> TensorShape:
    """The shape left when `reduction_indices` are gone, or 1 under `keep_dims`."""
    x, keep = op._inputs[0].shape, op._attrs["keep_dims"]
    axes_rank = op._inputs[1].shape.rank
    if axes_rank is not None and axes_rank > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {axes_rank}")
    value = static_value(op, 1)
    if value is None:
        if keep:
            return unknown_shape(x.rank)
        axes_shape = op._inputs[1].shape
        everything = x.rank is not None and axes_shape.rank == 1 and axes_shape.as_list()[0] == x.rank
        return TensorShape(()) if everything or _all_axes(op._inputs[1], op._inputs[0]) else TensorShape(None)
    if x.rank is None:
        return TensorShape(None)
    gone = set()
    for axis in ints(value):
        if not -x.rank <= axis < x.rank:
            raise ValueError(f"Invalid reduction dimension {axis} for input with {x.rank} dimensions.")
        gone.add(axis % x.rank)
    dims = [1 if i in gone else d for i, d in enumerate(x.as_list()) if keep or i not in gone]
    return TensorShape._of(tuple(dims))


def _all_axes(axes: Tensor, x: Tensor) -> bool:
    """Whether `axes` is the range up to the rank of `x`, so that everything is reduced."""
    if axes.op.type != "Range":
        return False
    start, limit, step = axes.op._inputs
    bounds = [t.op._attrs["value"] for t in (start, step) if t.op.type == "Const"]
    return limit.op.type == "Rank" and limit.op._inputs[0] is x and [int(b) for b in bounds] == [0, 1]


def _reduction(
    name: str,
    types: str = "number",
    examples: Sequence[case] | None = None,
    joined: LaneKernel | None = None,
) -> Callable[[Kernel], Kernel]:
    signature = "input: T, reduction_indices: Tidx -> output: T"
    attrs = f"keep_dims: bool = false; T: {types}; Tidx: index = int32"
    if types == "bool":
        signature = "input: bool, reduction_indices: Tidx -> output: bool"
        attrs = "keep_dims: bool = false; Tidx: index = int32"
    return op(
        name,
        signature,
        attrs,
        shape=reduction_shape,
        static=["reduction_indices"],
        joined=joined,
        examples=_CASES if examples is None else examples,
    )


def _axes(x: Array, indices: Array) -> tuple[int, ...]:
    """The axes to reduce, each once and not negative."""
    axes = ints(indices)
    if len(axes) == 1 and 0 <= axes[0] < x.ndim:
        return axes
    distinct: list[int] = []
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            raise errors.invalid(f"Invalid reduction dimension ({axis} for input with {x.ndim} dimension(s)")
        if axis % x.ndim not in distinct:
            distinct.append(axis % x.ndim)
    return tuple(distinct)


def _count(x: Array, axes: tuple[int, ...]) -> int:
    return math.prod([x.shape[a] for a in axes])


@_reduction("Sum")
def _sum(xp: ArrayModule, x: Array, indices: Array, *, keep_dims: bool) -> Array:
    w = wide(x)
    total = w.sum(axis=_axes(x, indices), dtype=w.dtype, keepdims=keep_dims)
    result: Array = total if w is x else total.astype(x.dtype)
    return result


@gradient("Sum")
def _sum_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    return spread(op, dy), None


def spread(op: Operation, dy: Tensor) -> Tensor:
    """A tensor of the reduced shape repeated to the shape of what was reduced."""
    x, indices = op.inputs[0], op.inputs[1]
    axes = static_value(op, 1)
    if x.shape.rank is not None and axes is not None:
        rank, sizes = x.shape.rank, x.shape.as_list()
        gone = {a % rank for a in ints(axes)} if rank else set()
        if len(gone) == rank:
            ones = apply("Reshape", dy, np.ones(rank, np.int32))
            multiples: Any = np.array(sizes, np.int32) if None not in sizes else apply("Shape", x)
            return apply("Tile", ones, multiples)
        if None not in sizes:
            kept = np.array([1 if i in gone else d for i, d in enumerate(sizes)], np.int32)
            repeats = np.array([d if i in gone else 1 for i, d in enumerate(sizes)], np.int32)
            return apply("Tile", apply("Reshape", dy, kept), repeats)
    shape = apply("Shape", x)
    return apply("BroadcastTo", apply("Reshape", dy, kept_shape(x, indices, shape)), shape)


def kept_shape(x: Tensor, indices: Tensor, shape: Tensor) -> Array | Tensor:
    """The shape of `x` with 1 in place of every reduced axis."""
    axes = constant_value(indices)
    if x.shape.is_fully_defined() and axes is not None:
        sizes = x.shape.as_list()
        gone = {a % len(sizes) for a in ints(axes)} if sizes else set()
        return np.array([1 if i in gone else d for i, d in enumerate(sizes)], np.int32)
    indices = (
        apply("Cast", indices, DstT=dtypes.int32) if indices.dtype.base_dtype != dtypes.int32 else indices
    )
    rank = apply("Size", shape)
    positive = (indices + rank) % rank
    ones = apply("Fill", apply("Shape", positive), np.int32(1))
    places = apply("Range", np.int32(0), rank, np.int32(1))
    return apply("DynamicStitch", [places, positive], [shape, ones])


@_reduction("Mean")
def _mean(xp: ArrayModule, x: Array, indices: Array, *, keep_dims: bool) -> Array:
    axes = _axes(x, indices)
    if is_whole(x):
        total = xp.sum(x, axis=axes, dtype=np.int64, keepdims=keep_dims)
        count = max(_count(x, axes), 1)
        result: Array = (xp.sign(total) * (xp.abs(total) // count)).astype(x.dtype)
        return result
    w = wide(x)
    total = xp.sum(w, axis=axes, dtype=w.dtype, keepdims=keep_dims)
    return xp.divide(total, np.asarray(_count(x, axes)).astype(w.dtype)).astype(x.dtype)


@gradient("Mean")
def _mean_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    x, y = op.inputs[0], op.outputs[0]
    whole = spread(op, dy)
    before, after = x.shape.num_elements(), y.shape.num_elements()
    if before is not None and after is not None:
        return whole / constant_like(before // max(after, 1), dy), None
    count = apply("Prod", _reduced_sizes(op), np.array([0], np.int32))
    return whole / apply("Cast", count, DstT=dy.dtype.base_dtype), None


def _reduced_sizes(op: Operation) -> Tensor:
    """The sizes of the reduced axes, as a vector."""
    shape = apply("Shape", op.inputs[0])
    flat = apply("Reshape", op.inputs[1], np.array([-1], np.int32))
    rank = apply("Cast", apply("Size", shape), DstT=flat.dtype.base_dtype)
    return apply("GatherV2", shape, (flat + rank) % rank, np.int32(0))


@_reduction("Prod", examples=_CASES[:4], joined=lane_kernels.prod)
def _prod(xp: ArrayModule, x: Array, indices: Array, *, keep_dims: bool) -> Array:
    w = wide(x)
    return xp.prod(w, axis=_axes(x, indices), dtype=w.dtype, keepdims=keep_dims).astype(x.dtype)


@gradient("Prod")
def _prod_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    # Not y / x, which fails at zeros: the product of everything before times everything after.
    x, indices = op.inputs
    shape = apply("Shape", x)
    flat = apply("Reshape", indices, np.array([-1], np.int32))
    flat = apply("Cast", flat, DstT=dtypes.int32) if flat.dtype.base_dtype != dtypes.int32 else flat
    rank = apply("Rank", x)
    reduced = (flat + rank) % rank
    others, _ = apply_list("ListDiff", apply("Range", np.int32(0), rank, np.int32(1)), reduced)
    order = apply("ConcatV2", [reduced, others], np.int32(0))
    zero = np.array([0], np.int32)
    rows = apply("Prod", apply("GatherV2", shape, reduced, np.int32(0)), zero)
    columns = apply("Prod", apply("GatherV2", shape, others, np.int32(0)), zero)
    moved = apply("Transpose", x, order)
    table = apply("Reshape", moved, apply("Pack", [rows, columns]))
    before = apply("Cumprod", table, np.int32(0), exclusive=True)
    after = apply("Cumprod", table, np.int32(0), exclusive=True, reverse=True)
    product = apply("Reshape", conj(before) * conj(after), apply("Shape", moved))
    back = apply("Transpose", product, apply("InvertPermutation", order))
    return apply("Reshape", spread(op, dy) * back, shape), None


def _lowest(dtype: np.dtype[Any]) -> float:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _highest(dtype: np.dtype[Any]) -> float:
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


@_reduction("Max", "real", examples=_REAL_CASES)
def _max(xp: ArrayModule, x: Array, indices: Array, *, keep_dims: bool) -> Array:
    axes = _axes(x, indices)
    if x.size:
        # The function behind x.max(), which costs as much again to reach.
        result: Array = (
            np.maximum.reduce(x, axes, None, None, keep_dims) if xp is np else x.max(axes, keepdims=keep_dims)
        )
        return result
    return xp.max(x, axis=axes, keepdims=keep_dims, initial=_lowest(x.dtype))


@_reduction("Min", "real", examples=_REAL_CASES)
def _min(xp: ArrayModule, x: Array, indices: Array, *, keep_dims: bool) -> Array:
    axes = _axes(x, indices)
    if x.size:
        result: Array = (
            np.minimum.reduce(x, axes, None, None, keep_dims) if xp is np else x.min(axes, keepdims=keep_dims)
        )
        return result
    return xp.min(x, axis=axes, keepdims=keep_dims, initial=_highest(x.dtype))


@gradient("Max", "Min")
def _extreme_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    x, indices = op.inputs
    kept = kept_shape(x, indices, apply("Shape", x))
    y = apply("Reshape", op.outputs[0], kept)
    chosen = apply("Cast", apply("Equal", y, x), DstT=dy.dtype.base_dtype)
    ties = apply("Reshape", apply("Sum", chosen, indices), kept)
    return chosen / ties * apply("Reshape", dy, kept), None


_TRUTH = np.array([[True, False, True], [False, False, True]])
_LOGIC = [case(_TRUTH, _ALL), case(_TRUTH, _FIRST, keep_dims=True), case(_TRUTH[:0], _FIRST)]


@_reduction("All", "bool", examples=_LOGIC)
def _all(xp: ArrayModule, x: Array, indices: Array, *, keep_dims: bool) -> Array:
    return xp.all(x, axis=_axes(x, indices), keepdims=keep_dims)


@_reduction("Any", "bool", examples=_LOGIC)
def _any(xp: ArrayModule, x: Array, indices: Array, *, keep_dims: bool) -> Array:
    return xp.any(x, axis=_axes(x, indices), keepdims=keep_dims)


not_differentiable("All", "Any")


@_reduction("EuclideanNorm", examples=_CASES[:3])
def _euclidean_norm(xp: ArrayModule, x: Array, indices: Array, *, keep_dims: bool) -> Array:
    w = x.astype(np.float64) if is_whole(x) else wide(x)
    squares = xp.abs(w) ** 2 if w.dtype.kind == "c" else w * w
    return xp.sqrt(xp.sum(squares, axis=_axes(x, indices), keepdims=keep_dims)).astype(x.dtype)


@gradient("EuclideanNorm")
def _euclidean_norm_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    x, indices = op.inputs
    y = op.outputs[0]
    if not op.get_attr("keep_dims"):
        kept = kept_shape(x, indices, apply("Shape", x))
        y, dy = apply("Reshape", y, kept), apply("Reshape", dy, kept)
    return x / (y / dy), None


# -- where the extremes are --------------------------------------------------------------------------

# Elements that one of several threads goes through: along the last axis numpy is ten times faster than along another.
_WORTH_SEARCHING, _WORTH_SEARCHING_ACROSS = 1 << 21, 1 << 21


def _arg_shape(op: Operation) -> TensorShape:
    x = op._inputs[0].shape
    axis = static_value(op, 1)
    if x.rank is None:
        return TensorShape(None)
    if x.rank <= 1:
        return TensorShape(())
    if axis is None:
        return unknown_shape(x.rank - 1)
    if not -x.rank <= int(axis) < x.rank:
        raise ValueError(
            f"Dimension ({int(axis)}) must be in the range [{-x.rank}, {x.rank}), where {x.rank} is the number of "
            "dimensions in the input."
        )
    dims = x.as_list()
    del dims[int(axis) % x.rank]
    return TensorShape._of(tuple(dims))


def _arg(name: str, tidx: str, kinds: str) -> Callable[[Kernel], Kernel]:
    types = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, bool}"
    return op(
        name,
        "input: T, dimension: Tidx[0] -> output: output_type",
        f"T: {types}; Tidx: {tidx} = int32; output_type: {kinds} = int64",
        shape=_arg_shape,
        static=["dimension"],
        examples=[
            case(REAL, _FIRST),
            case(INTS, np.array(-1, np.int64), output_type=dtypes.int32),
            case(np.array([1.0, 3.0, 3.0], np.float32), _FIRST),
        ],
    )


def _arg_axis(x: Array, dimension: Array) -> int:
    axis = int(dimension)
    if not -x.ndim <= axis < x.ndim:
        raise errors.invalid(f"Expected dimension in the range [{-x.ndim}, {x.ndim}), but got {axis}")
    axis %= x.ndim
    if x.shape[axis] == 0:
        raise errors.invalid(f"Reduction axis {axis} is empty in shape {bracketed(x.shape)}")
    return axis


def _first(xp: ArrayModule, x: Array, axis: int, which: str) -> Array:
    """Where along an axis the least ("min") or the greatest ("max") comes first; a NaN is neither."""
    never: Any = np.array(-np.inf if which == "max" else np.inf, x.dtype) if is_float(x) else None
    if is_numpy(xp):
        if x.dtype.kind != "f":
            return _searched(x if never is None else np.where(np.isnan(x), never, x), axis, which)
        positions = _searched(x, axis, which)  # numpy finds the first NaN, if there is one
        if np.isnan(np.take_along_axis(x, np.expand_dims(positions, axis), axis)).any():
            positions = _searched(np.where(np.isnan(x), never, x), axis, which)
        return positions
    x = x if never is None else xp.where(xp.isnan(x), never, x)
    # XLA's own search carries value and place together, element by element; two plain reductions use whole registers.
    best = getattr(xp, which)(x, axis=axis, keepdims=True)
    count = x.shape[axis]
    places = np.arange(count, dtype=np.int32).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    result: Array = xp.where(x == best, places, np.int32(count - 1)).min(axis=axis)
    return result


def _searched(x: Array, axis: int, which: str) -> Array:
    """What numpy finds, in parts of the first axis if it is not the one to search along."""
    search = getattr(np, f"arg{which}")
    if axis == 0 or not x.size:
        result: Array = search(x, axis=axis)
        return result
    positions = np.empty(x.shape[:axis] + x.shape[axis + 1 :], np.intp)
    worth = _WORTH_SEARCHING if axis == x.ndim - 1 else _WORTH_SEARCHING_ACROSS
    work = lambda start, stop: search(x[start:stop], axis=axis, out=positions[start:stop])  # noqa: E731
    in_parts(work, len(x), -(-worth * len(x) // x.size))
    return positions


@_arg("ArgMax", "{int16, int32, int64}", "{int16, uint16, int32, int64}")
def _arg_max(xp: ArrayModule, x: Array, dimension: Array, *, output_type: dtypes.DType) -> Array:
    return _first(xp, x, _arg_axis(x, dimension), "max").astype(output_type.np_dtype)


@_arg("ArgMin", "index", "index")
def _arg_min(xp: ArrayModule, x: Array, dimension: Array, *, output_type: dtypes.DType) -> Array:
    return _first(xp, x, _arg_axis(x, dimension), "min").astype(output_type.np_dtype)


not_differentiable("ArgMax", "ArgMin")
