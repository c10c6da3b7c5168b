"""Pooling kernels: maximum and average over windows of any rank and layout, with their gradients.

Attribute lists are those of TensorFlow's ops, in the order of the tensor's axes. A window may also span
channels (`ksize[3] > 1`): no axis is special here, so `data_format` only matters to indices of the maximum.

XLA's own gradient of a maximum over windows is slow on CPU. Here one tap of all windows at a time is
compared with the maxima. Among equal values the first in row-major order is the maximum, as in TensorFlow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from tensorfleet.base.types import Array, ArrayModule, Dims
from tensorfleet.kernels.aligned_memory import stored
from tensorfleet.kernels.arrays import total
from tensorfleet.kernels.windows import (
    WindowGrid,
    look_up,
    make_window,
    pad,
    padding_name,
    require_rank,
    scatter,
    seen,
    spread,
    take,
    windowed_shape,
)


class PoolAttrs(TypedDict, total=False):
    """The attributes of a pool, in the order of the tensor's axes."""

    ksize: Sequence[int]
    strides: Sequence[int]
    padding: bytes | str
    data_format: bytes | str
    explicit_paddings: Sequence[int]


# Windows with more taps than this are reduced along one axis after the other.
MAX_TAPS_AT_ONCE = 9


def max_pool(xp: ArrayModule, x: Array, **attrs: Unpack[PoolAttrs]) -> Array:
    """MaxPool, and MaxPool3D with five-element lists."""
    win = _window(x.shape, attrs)
    return _reduce(xp, xp.maximum, x, win, _lowest(x.dtype))


def max_pool_grad(
    xp: ArrayModule, orig_input: Array, orig_output: Array, grad: Array, **attrs: Unpack[PoolAttrs]
) -> Array:
    """MaxPoolGrad: each window's `grad` goes to its maximum, the first of them if there are several."""
    win = _window(orig_input.shape, attrs)
    if _is_whole(win):
        first = _first_of_all(xp, orig_input, orig_output, win)
        return xp.where(first, grad, xp.zeros((), grad.dtype))
    # A window's first maximum is in the first of its rows that have it: along one axis after the other, as the maxima.
    parts = _parts(win)
    stages = [orig_input]
    for part in parts[:-1]:
        stages.append(_reduce(xp, xp.maximum, stages[-1], part, _lowest(orig_input.dtype)))
    stages.append(orig_output)
    for i in reversed(range(len(parts))):
        grad = _to_first_maxima(xp, stages[i], stages[i + 1], grad, parts[i])
    return grad


def _to_first_maxima(xp: ArrayModule, x: Array, y: Array, grad: Array, win: WindowGrid) -> Array:
    zero = xp.zeros((), grad.dtype)
    if xp is np:
        firsts = _first_maxima(xp, x, y, win)
        return scatter(xp, ((tap, xp.where(first, grad, zero)) for tap, first in firsts), win)
    # XLA is fast where it reads: each input looks up the windows that see it.
    first_tap = _first_tap(xp, x, stored(xp, y), win)
    return look_up(xp, win, (first_tap, grad), (-1, 0), lambda i, first, g: xp.where(first == i, g, zero))


def max_pool3d_grad(
    xp: ArrayModule, orig_input: Array, orig_output: Array, grad: Array, **attrs: Unpack[PoolAttrs]
) -> Array:
    """MaxPool3DGrad: unlike MaxPoolGrad, TensorFlow gives `grad` to every input that equals the maximum."""
    win = _window(orig_input.shape, attrs)
    zero = xp.zeros((), grad.dtype)
    if xp is np or win.is_tiled:
        maxima = _maxima(xp, orig_input, orig_output, win)
        return scatter(xp, ((tap, xp.where(is_maximum, grad, zero)) for tap, is_maximum in maxima), win)
    maximum, spread_grad = spread(orig_output, win), spread(grad, win)
    return total(
        xp.where(orig_input == seen(maximum, win, tap), seen(spread_grad, win, tap), zero)
        for tap in win.taps()
    )


def max_pool_grad_grad(
    xp: ArrayModule, orig_input: Array, orig_output: Array, grad: Array, **attrs: Unpack[PoolAttrs]
) -> Array:
    """MaxPoolGradGrad and MaxPool3DGradGrad: `grad`, of the input's shape, at each window's maximum."""
    win = _window(orig_input.shape, attrs)
    padded = pad(xp, grad, win)
    zero = xp.zeros((), grad.dtype)
    firsts = _first_maxima(xp, orig_input, orig_output, win)
    return total(xp.where(first, take(xp, padded, win, tap), zero) for tap, first in firsts)


def max_pool_with_argmax(
    xp: ArrayModule,
    x: Array,
    *,
    index_dtype: np.dtype[Any] | type = np.int64,
    include_batch_in_index: bool = False,
    **attrs: Unpack[PoolAttrs],
) -> tuple[Array, Array]:
    """MaxPoolWithArgmax: the maxima, and where each is in the flattened example (or the whole batch)."""
    win = _window(x.shape, attrs)
    y = _reduce(xp, xp.maximum, x, win, _lowest(x.dtype))
    places = np.arange(math.prod(x.shape), dtype=index_dtype).reshape(x.shape)
    if not include_batch_in_index:
        # Places are the same in every example: those of one broadcast.
        places = places[:1]
    index_window = win.with_batch(places.shape[0])
    places = pad(np, places, index_window)
    zero = np.zeros((), index_dtype)
    index = total(
        xp.where(first, take(np, places, index_window, tap), zero)
        for tap, first in _first_maxima(xp, x, y, win)
    )
    return y, index.astype(index_dtype)


def max_pool_grad_with_argmax(
    xp: ArrayModule, x: Array, grad: Array, argmax: Array, *, include_batch_in_index: bool = False
) -> Array:
    """MaxPoolGradWithArgmax: each window's `grad` goes to the place that `argmax` names."""
    if not include_batch_in_index:
        examples = np.arange(x.shape[0]).reshape(-1, *(1,) * (x.ndim - 1))
        argmax = argmax + (examples * math.prod(x.shape[1:])).astype(argmax.dtype)
    zeros = xp.zeros(math.prod(x.shape), grad.dtype)
    if xp is np:
        np.add.at(zeros, argmax.reshape(-1), grad.reshape(-1))
        return zeros.reshape(x.shape)
    from tensorfleet.kernels.xla import at

    return at(zeros, argmax.reshape(-1)).add(grad.reshape(-1)).reshape(x.shape)


def avg_pool(xp: ArrayModule, x: Array, **attrs: Unpack[PoolAttrs]) -> Array:
    """AvgPool, and AvgPool3D with five-element lists. Padding does not count towards the average."""
    win = _window(x.shape, attrs)
    y = _reduce(xp, xp.add, _widen(x), win, 0)
    return (y / _counts(win, y.dtype)).astype(x.dtype)


def avg_pool_grad(
    xp: ArrayModule, input_shape: tuple[int, ...], grad: Array, **attrs: Unpack[PoolAttrs]
) -> Array:
    """AvgPoolGrad: each window's `grad` shared out among the inputs it averaged."""
    win = _window(input_shape, attrs)
    share = _widen(grad)
    share = share / _counts(win, share.dtype)
    # Back along the axes in the opposite order.
    for part in reversed(_axis_windows(win)):
        if xp is np:
            share = scatter(xp, ((tap, share) for tap in part.taps()), part)
        else:
            share = look_up(xp, part, (share,), (0,), lambda _, s: s)
    return share.astype(grad.dtype)


def pool_shape(x_shape: Sequence[int | None] | None, **attrs: Unpack[PoolAttrs]) -> tuple[int | None, ...]:
    """The shape a pool gives; dimensions, or all of it, may be None. Errors are in TensorFlow's words."""
    rank, ksize = len(attrs.get("data_format", "NHWC")), attrs["ksize"]
    require_rank(x_shape, rank)
    for name, values in (("ksize", ksize), ("stride", attrs["strides"])):
        if len(values) != rank:
            raise ValueError(
                f"Pooling requires the {name} attribute to contain {rank} values, but got: {len(values)}"
            )
    if min(ksize) < 1:
        raise ValueError(f"Sliding window ksize values must be positive, got: {list(ksize)}")
    dims = (None,) * rank if x_shape is None else x_shape
    return windowed_shape(dims, ksize, attrs["strides"], attrs["padding"], attrs.get("explicit_paddings", ()))


# --- How --------------------------------------------------------------------------------------------


def _window(shape: Sequence[int], attrs: PoolAttrs) -> WindowGrid:
    explicit = attrs.get("explicit_paddings", ()) if padding_name(attrs["padding"]) == "EXPLICIT" else ()
    return make_window(shape, attrs["ksize"], attrs["strides"], attrs["padding"], explicit)


def _lowest(dtype: np.dtype[Any]) -> float:
    """The identity of maximum."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return -np.inf


def _widen(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _reduce(
    xp: ArrayModule, combine: Callable[[Array, Array], Array], x: Array, win: WindowGrid, fill: float
) -> Array:
    """All taps of each window combined; a large window along one axis after the other."""
    for part in _parts(win):
        padded = pad(xp, x, part, fill)
        x = functools.reduce(combine, (take(xp, padded, part, tap) for tap in part.taps()))
    return x


def _parts(win: WindowGrid) -> list[WindowGrid]:
    """The windows to go through one after the other: large ones along one axis each."""
    return _axis_windows(win) if math.prod(win.size) > MAX_TAPS_AT_ONCE else [win]


def _axis_windows(win: WindowGrid) -> list[WindowGrid]:
    """The same windows as a sequence of windows along one axis each, the last axis first: together they give the same."""
    shape, parts = win.in_shape, []
    for axis in reversed(range(len(shape))):
        if win.size[axis] == win.stride[axis] == 1:
            continue
        part = win.along(axis, shape)
        parts.append(part)
        shape = part.out_shape
    return parts


def _counts(win: WindowGrid, dtype: np.dtype[Any]) -> Array:
    """How many inputs each window covers: it broadcasts against the output."""
    counts: Array = np.ones((1,) * len(win.size), dtype)
    for part in _axis_windows(win):
        line = part.flat()
        ones = pad(np, np.ones(line.in_shape, dtype), line)
        counts = counts * total(take(np, ones, line, tap) for tap in line.taps())
    return counts


def _maxima(xp: ArrayModule, x: Array, y: Array, win: WindowGrid) -> Iterator[tuple[Dims, Array]]:
    """For each tap, in row-major order: (tap, where it equals the window's maximum)."""
    padded, line = pad(xp, x, win, _lowest(x.dtype)), win.flat()  # as for the maxima: XLA does it once
    inside = pad(np, np.ones(line.in_shape, bool), line)
    for tap in win.taps():
        is_maximum = take(xp, padded, win, tap) == y
        # A maximum that equals the padding must not be found there.
        valid = take(np, inside, line, tap)
        yield tap, is_maximum if valid.all() else is_maximum & valid


def _first_maxima(xp: ArrayModule, x: Array, y: Array, win: WindowGrid) -> Iterator[tuple[Dims, Array]]:
    """For each tap, in row-major order: (tap, where it is the window's first maximum)."""
    taken = None
    for tap, is_maximum in _maxima(xp, x, y, win):
        yield tap, is_maximum if taken is None else is_maximum & ~taken
        taken = is_maximum if taken is None else is_maximum | taken


def _first_tap(xp: ArrayModule, x: Array, y: Array, win: WindowGrid) -> Array:
    """The number of the tap that is each window's first maximum."""
    maxima = list(_maxima(xp, x, y, win))
    # A byte for each window is a quarter of the memory to go through.
    number = np.int8 if len(maxima) < 127 else np.int32
    first = xp.full(y.shape, len(maxima), number)
    # Backward, so that of equal taps the first is written last.
    for i in reversed(range(len(maxima))):
        first = xp.where(maxima[i][1], number(i), first)
    return first


def _is_whole(win: WindowGrid) -> bool:
    """One window that covers all of every axis it spans, with many taps: a global pool."""
    if win.is_padded or math.prod(win.size) <= MAX_TAPS_AT_ONCE:
        return False
    return all(
        k == n if k > 1 else s == 1 for k, n, s in zip(win.size, win.in_shape, win.stride, strict=True)
    )


def _first_of_all(xp: ArrayModule, x: Array, y: Array, win: WindowGrid) -> Array:
    """Where `x` is the first maximum `y` of a global pool."""
    places = np.arange(math.prod(win.size), dtype=np.int32).reshape(win.size)
    axes = tuple(i for i, k in enumerate(win.size) if k > 1)
    never = np.int32(places.size)
    result: Array = places == xp.where(x == y, places, never).min(axes, keepdims=True)
    return result
