"""Fractional pooling: windows of two sizes in random order, so that an image shrinks by any ratio."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels import philox
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.ops.common import shape_given_by, vector_of
from tensorfleet.ops.nn.shapes import of_rank

_ATTRS = "pooling_ratio: list(float); pseudo_random: bool = false; overlapping: bool = false; "
_ATTRS += "deterministic: bool = false; seed: int = 0; seed2: int = 0; T: {float, double, int32, int64}"
_ELEMENTS_PER_THREAD = 1 << 17  # elements that are worth a thread of their own
_POOLED = "value: T -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64"


def _pooled(op: Operation) -> list[TensorShape]:
    ratios = op._attrs["pooling_ratio"]
    if len(ratios) != 4:
        raise ValueError(f"pooling_ratio must have 4 elements, not {len(ratios)}")
    for ratio in ratios:
        if ratio < 1:
            raise ValueError(f"pooling_ratio cannot be smaller than 1, got: {ratio:g}")
    dims = of_rank(op._inputs[0].shape, 4).as_list()
    sizes = [None if d is None else math.floor(d / r) for d, r in zip(dims, ratios, strict=True)]
    return [TensorShape(sizes), vector_of(None), vector_of(None)]


def _limits(stream: Array, size: int, count: int, pseudo_random: bool) -> Array:
    """Where each window starts, and where the last one ends."""
    if pseudo_random:
        ratio = size / count
        k = size // count
        most = min((k + 2) / ratio - 1, (size + 1 - k) / ratio - (count - 1))
        shift = float(philox.random_uniform(np, stream, (1,), np.dtype(np.float64))[0]) * most
        inner = [math.ceil(ratio * (i + shift)) - 1 for i in range(1, count)]
        return np.array([0, *inner, size], np.int64)
    widths = np.full(count, size // count)
    widths[: size % count] += 1
    order = philox.random_shuffle(np, stream, count) if count > 1 else np.arange(count)
    return np.concatenate([[0], np.cumsum(widths[order])]).astype(np.int64)


def _windows(limits: Array, overlapping: bool, size: int) -> tuple[Array, Array]:
    """Where the windows start and end."""
    limits = np.asarray(limits)
    return limits[:-1], np.minimum(limits[1:] + int(overlapping), size)


def _along(x: Array, axis: int, windows: tuple[Array, Array], order: Array, combine: np.ufunc) -> Array:
    """The elements of each window along an axis combined: the first of all windows, then the second ones ...

    The windows come in that order, the longest first.
    """
    starts, ends = windows
    result = np.take(x, starts[order], axis)
    for k in range(1, int((ends - starts).max())):
        some = order[: np.count_nonzero(ends - starts > k)]
        part = result[(slice(None),) * axis + (slice(len(some)),)]
        combine(part, np.take(x, starts[some] + k, axis), out=part)
    return result


def _extent(windows: tuple[Array, Array]) -> int:
    """The size of the largest window."""
    return int((windows[1] - windows[0]).max())


def _containing(windows: tuple[Array, Array], size: int) -> Iterator[tuple[Array, Array, Array]]:
    """For each place of an axis a window that it is in, which place of the window it is, and if there is one.

    What overlaps is in several windows: in their first, then in their second ...
    """
    starts, ends = windows
    places = np.arange(size)
    first, last = np.searchsorted(ends, places, "right"), np.searchsorted(starts, places, "right") - 1
    for k in range(int((last - first).max(initial=0)) + 1):
        window = np.minimum(first + k, len(starts) - 1)
        yield window, places - starts[window], first + k <= last


def _in_windows(
    rows: tuple[Array, Array], columns: tuple[Array, Array], dims: tuple[int, ...]
) -> Iterator[tuple[Array, Array, Array]]:
    """The same for the places of an image, row by row."""
    for row, high, in_row in _containing(rows, dims[1]):
        for column, wide, in_column in _containing(columns, dims[2]):
            window = np.add.outer(row * len(columns[0]), column).ravel()
            place = np.add.outer(high * _extent(columns), wide).ravel()
            yield window, place, np.logical_and.outer(in_row, in_column).ravel()


def _unrolled(x: Array) -> Array:
    """Images with their pixels in one axis."""
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], x.shape[3])


def _sequences(ctx: HostContext, shape: tuple[int, ...]) -> tuple[Array, Array]:
    attrs = ctx.op._attrs
    for axis in (0, 3):
        if attrs["pooling_ratio"][axis] != 1:
            text = "Fractional pooling is not yet supported on the batch or the channel dimension."
            raise errors.UnimplementedError(None, None, text)
    stream = philox.initial_state(attrs["seed"], attrs["seed2"])
    if not (attrs["deterministic"] or attrs["seed"] or attrs["seed2"]):
        stream = ctx.random(512)
    limits = []
    for axis in (1, 2):
        count = math.floor(shape[axis] / attrs["pooling_ratio"][axis])
        if not count:
            text = "Pooling ratio is higher than input dimension size for dimension"
            raise errors.invalid(
                f"{text} {axis}. Input dim size: {shape[axis]} pooling ratio: {attrs['pooling_ratio'][axis]}"
            )
        limits.append(_limits(philox.skip(stream, 256 * axis), shape[axis], count, attrs["pseudo_random"]))
    return limits[0], limits[1]


def _reduced(
    ctx: HostContext, x: Array, combine: np.ufunc, averaged: bool = False
) -> tuple[Array, tuple[Array, Array]]:
    if x.ndim != 4:
        raise errors.invalid(f"value must be 4-dimensional, got {list(x.shape)}")
    limits = _sequences(ctx, x.shape)
    windows = [
        _windows(a, ctx.op._attrs["overlapping"], n) for a, n in zip(limits, x.shape[1:3], strict=True)
    ]
    rows, columns = windows
    out = np.empty((len(x), len(rows[0]), len(columns[0]), x.shape[3]), x.dtype)

    orders = [np.argsort(starts - ends, kind="stable") for starts, ends in windows]
    back = np.add.outer(np.argsort(orders[0]) * len(columns[0]), np.argsort(orders[1])).ravel()

    def some(start: int, stop: int) -> None:
        by_row = _along(x[start:stop], 1, rows, orders[0], combine)
        pooled = _along(by_row, 2, columns, orders[1], combine)
        np.take(_unrolled(pooled), back, 1, out=_unrolled(out[start:stop]), mode="clip")
        if averaged:
            _shares(out[start:stop], rows, columns, out[start:stop])

    in_parts(some, len(x), _ELEMENTS_PER_THREAD // max(x[:1].size, 1) + 1)
    return out, limits


@op("FractionalMaxPool", _POOLED, _ATTRS, shape=_pooled, host=True, stateful=True)
def _max_pool(ctx: HostContext, x: Array) -> tuple[Array, Array, Array]:
    pooled, limits = _reduced(ctx, np.asarray(x), np.maximum)
    return pooled, *limits


@op("FractionalAvgPool", _POOLED, _ATTRS, shape=_pooled, host=True, stateful=True)
def _avg_pool(ctx: HostContext, x: Array) -> tuple[Array, Array, Array]:
    kind = np.asarray(x).dtype
    values = np.asarray(x, kind if kind.kind == "f" else np.float64)
    pooled, limits = _reduced(ctx, values, np.add, averaged=True)
    return pooled.astype(kind, copy=False), *limits


def _shares(
    x: Array, rows: tuple[Array, Array], columns: tuple[Array, Array], out: Array | None = None
) -> Array:
    """What belongs to the windows divided by how many elements each has."""
    areas = np.multiply.outer(rows[1] - rows[0], columns[1] - columns[0]).ravel()
    flat, parts = x.reshape(len(x), math.prod(x.shape[1:])), np.repeat(areas.astype(x.dtype), x.shape[3])
    result: Array = np.divide(flat, parts, out=out if out is None else out.reshape(flat.shape)).reshape(
        x.shape
    )
    return result


@gradient("FractionalMaxPool")
def _max_pool_gradient(op: Operation, dy: Tensor, *_: Any) -> Tensor:
    y, rows, columns = op.outputs
    overlapping = op.get_attr("overlapping")
    return apply("FractionalMaxPoolGrad", op.inputs[0], y, dy, rows, columns, overlapping=overlapping)


@gradient("FractionalAvgPool")
def _avg_pool_gradient(op: Operation, dy: Tensor, *_: Any) -> Tensor:
    rows, columns = op.outputs[1:]
    shape = apply("Shape", op.inputs[0], out_type="int64")
    return apply("FractionalAvgPoolGrad", shape, dy, rows, columns, overlapping=op.get_attr("overlapping"))


@op(
    "FractionalMaxPoolGrad",
    "orig_input: T[4], orig_output: T, out_backprop: T, row_pooling_sequence: int64, col_pooling_sequence: int64 -> "
    "output: T",
    "overlapping: bool = false; T: {float, double, int32, int64}",
    shape=lambda op: op._inputs[0].shape,
    host=True,
)
def _max_pool_grad(
    ctx: HostContext, x: Array, y: Array, dy: Array, rows: Array, columns: Array, *, overlapping: bool
) -> Array:
    x, dy = np.asarray(x), np.asarray(dy)
    both = _windows(rows, overlapping, x.shape[1]), _windows(columns, overlapping, x.shape[2])
    chosen, out = _maxima(x, np.asarray(y), *both), np.zeros((len(x), math.prod(x.shape[1:])), dy.dtype)
    for window, place, inside in _in_windows(*both, x.shape):
        wanted = np.repeat(np.where(inside, _extent(both[0]) * _extent(both[1]) - place, -1), x.shape[3])
        hit = np.take(chosen, window, 1).reshape(out.shape) == wanted.astype(chosen.dtype)
        out += _where(hit, np.take(_unrolled(dy), window, 1).reshape(out.shape))
    return out.reshape(x.shape)


def _maxima(x: Array, y: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]) -> Array:
    """Which place of its window, counted from the last one, is the first that has the window's maximum."""
    high, wide = _extent(rows), _extent(columns)
    y = _unrolled(y)
    result = np.zeros(y.shape, np.min_scalar_type(-high * wide - 1))
    # Where a window is smaller, its own last row or column stands for what it lacks.
    for place in range(high * wide):
        row = np.minimum(rows[0] + place // wide, rows[1] - 1)
        column = np.minimum(columns[0] + place % wide, columns[1] - 1)
        there = np.take(_unrolled(x), np.add.outer(row * x.shape[2], column).ravel(), 1)
        number = result.dtype.type(high * wide - place)
        np.maximum(result, ((there == y) | (there != there)) * number, out=result)
    return result


def _where(chosen: Array, x: Array) -> Array:
    """What is chosen, zeros elsewhere: their bits, for `np.where` is slow when there is no order in it."""
    bits = x.view(f"i{x.dtype.itemsize}")
    return (bits & -chosen.view(np.int8)).view(x.dtype)


@op(
    "FractionalAvgPoolGrad",
    "orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, col_pooling_sequence: int64 -> "
    "output: T",
    "overlapping: bool = false; T: {float, double, int32, int64}",
    shape=lambda op: shape_given_by(op, 0),
    host=True,
)
def _avg_pool_grad(
    ctx: HostContext, shape: Array, dy: Array, rows: Array, columns: Array, *, overlapping: bool
) -> Array:
    dims, kind = tuple(np.asarray(shape).tolist()), np.asarray(dy).dtype
    out = np.zeros((dims[0], math.prod(dims[1:])))
    both = _windows(rows, overlapping, dims[1]), _windows(columns, overlapping, dims[2])
    share = _unrolled(_shares(np.asarray(dy, np.float64), *both))
    for window, _, inside in _in_windows(*both, dims):
        out += _where(np.repeat(inside, dims[3]), np.take(share, window, 1).reshape(out.shape))
    return out.reshape(dims).astype(kind)


not_differentiable("FractionalMaxPoolGrad", "FractionalAvgPoolGrad")


class FractionalPool(NamedTuple):
    """What fractional pooling gives: the pooled values, and where its windows began."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


def _declare(kind: str) -> Any:
    def pool(
        value: TensorLike,
        pooling_ratio: Sequence[float],
        pseudo_random: bool = False,
        overlapping: bool = False,
        deterministic: bool = False,
        seed: int = 0,
        seed2: int = 0,
        name: str | None = None,
    ) -> FractionalPool:
        attrs: dict[str, Any] = dict(pooling_ratio=pooling_ratio, pseudo_random=pseudo_random)
        attrs.update(overlapping=overlapping, deterministic=deterministic, seed=seed, seed2=seed2)
        return FractionalPool(*apply_any(f"Fractional{kind}Pool", value, name=name, **attrs))

    what = "Maxima" if kind == "Max" else "Averages"
    pool.__name__ = pool.__qualname__ = f"fractional_{kind.lower()}_pool"
    pool.__doc__ = f"{what} over windows of two sizes in random order, which shrink an image by any ratio."
    return export(f"nn.{pool.__name__}")(pool)


fractional_max_pool = _declare("Max")
fractional_avg_pool = _declare("Avg")
