"""Convolution kernels: 2-D and 3-D, each with the gradients of its input and its filter.

Kernels take the attribute lists of TensorFlow's ops as they are, in the order of `data_format`. Inside,
everything is channels-last and of any spatial rank.

A convolution is a matrix product with the *patches* of its input: one row per window, one column per tap
and input channel. The patches of a whole batch would not fit the cache, so examples are taken a few at a
time. On CPU this is much faster than XLA's own filter gradient. Once compiled, filters 3 or 5 wide over many channels are
faster by Winograd's method (winograd.py), and others by XLA's own convolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels import conv_folded, conv_onednn, conv_phases, winograd
from tensorfleet.kernels.aligned_memory import stored
from tensorfleet.kernels.arrays import total
from tensorfleet.kernels.conv_chunks import map_examples, sum_examples
from tensorfleet.kernels.conv_library import convolve
from tensorfleet.kernels.conv_shapes import ConvAttrs, count_groups
from tensorfleet.kernels.openblas import times
from tensorfleet.kernels.windows import (
    WindowGrid,
    channel_axis,
    cropped,
    explicit_pairs,
    make_window,
    pad,
    scatter,
    take,
)

# How much is made at a time where one product is made of all points of Winograd's method, and where nothing is repeated for each tap.
MAX_POINTS_BYTES = 12 << 20
MAX_TAPLESS_BYTES = 32 << 20
# Above this for a single example, patches are never made: work goes tap by tap, or to XLA's convolution.
MAX_PATCH_BYTES = 24 << 20
# With no more columns than this, patches are made quickly.
MAX_QUICK_COLUMNS = 64
# With fewer channels than this, XLA's convolution is faster than Winograd's method.
MIN_WINOGRAD_CHANNELS = 32
# With fewer channels than this (colours), XLA's convolution is the faster gradient of the filter.
MIN_PATCH_CHANNELS = 8
# With no more windows than this in an image, and more taps, it is gone through window by window.
MAX_LISTED_WINDOWS = 8
# With no more multiplications than this, the time of a convolution is that of the calls.
SMALL_CONVOLUTION = 1 << 16
# From so many channels on, and with stride 1, XLA's convolution is the faster gradient of the input.
MIN_XLA_GRADIENT_CHANNELS = 64
# Taps of a filter that is small, for a convolution with strides.
MAX_SMALL_FILTER_TAPS = 9


def conv2d(xp: ArrayModule, x: Array, w: Array, **attrs: Unpack[ConvAttrs]) -> Array:
    """Conv2D and Conv3D: `x` in `data_format`, filter [..., height, width, in, out]."""
    win = conv_window(x.shape, w.shape, **attrs)
    dtype = x.dtype
    x, w = widened(win, w.shape[-1], x, w)
    x = to_last(xp, x, attrs)
    # Filters may see only some of the channels: each group is a convolution of its own.
    groups = count_groups(x.shape[-1], *w.shape[-2:])
    pairs = zip(xp.split(x, groups, -1), xp.split(w, groups, -1), strict=True)
    y = _join(xp, [_forward(xp, xg, wg, _of_group(win, groups)) for xg, wg in pairs])
    return from_last(xp, y.astype(dtype), attrs)


def conv2d_backprop_input(
    xp: ArrayModule, input_shape: Sequence[int], w: Array, dy: Array, **attrs: Unpack[ConvAttrs]
) -> Array:
    """Conv2DBackpropInput and Conv3DBackpropInputV2: the gradient with respect to `x`, of `input_shape`."""
    win = conv_window(input_shape, w.shape, **attrs)
    dtype = dy.dtype
    w, dy = widened(win, w.shape[-1], w, dy)
    dy = to_last(xp, dy, attrs)
    _check_gradient(win, dy, w.shape[-1])
    groups = count_groups(win.in_shape[-1], *w.shape[-2:])
    pairs = zip(xp.split(w, groups, -1), xp.split(dy, groups, -1), strict=True)
    dx = _join(xp, [_input_gradient(xp, wg, dyg, _of_group(win, groups)) for wg, dyg in pairs])
    return from_last(xp, dx.astype(dtype), attrs)


def conv2d_backprop_filter(
    xp: ArrayModule, x: Array, filter_shape: Sequence[int], dy: Array, **attrs: Unpack[ConvAttrs]
) -> Array:
    """Conv2DBackpropFilter and Conv3DBackpropFilterV2: the gradient with respect to `w`, of `filter_shape`."""
    win = conv_window(x.shape, filter_shape, **attrs)
    dtype = x.dtype
    x, dy = widened(win, filter_shape[-1], x, dy)
    x, dy = to_last(xp, x, attrs), to_last(xp, dy, attrs)
    _check_gradient(win, dy, filter_shape[-1])
    groups = count_groups(x.shape[-1], *filter_shape[-2:])
    pairs = zip(xp.split(x, groups, -1), xp.split(dy, groups, -1), strict=True)
    dw = _join(xp, [_filter_gradient(xp, xg, dyg, _of_group(win, groups)) for xg, dyg in pairs])
    return dw.reshape(tuple(filter_shape)).astype(dtype)


# The rank of the arrays tells the two apart.
conv3d, conv3d_backprop_input, conv3d_backprop_filter = conv2d, conv2d_backprop_input, conv2d_backprop_filter


# --- Layout, precision, groups ------------------------------------------------------------------------


def conv_window(x_shape: Sequence[int], w_shape: Sequence[int], **attrs: Unpack[ConvAttrs]) -> WindowGrid:
    """The WindowGrid of a filter over `x`, with every axis in channels-last order."""
    rank = len(x_shape)
    order = _order_to_last(rank, attrs)
    pairs = explicit_pairs(attrs.get("explicit_paddings", ()), rank)
    dilations = attrs.get("dilations") or (1,) * rank
    return make_window(
        [x_shape[i] for i in order],
        (1, *w_shape[:-2], 1),
        [attrs["strides"][i] for i in order],
        attrs["padding"],
        [p for i in order for p in pairs[i]],
        [dilations[i] for i in order],
    )


def _order_to_last(rank: int, attrs: ConvAttrs) -> list[int]:
    """The axes in the order in which channels come last."""
    axis = channel_axis(attrs["data_format"]) if "data_format" in attrs else rank - 1
    return [i for i in range(rank) if i != axis] + [axis]


def to_last(xp: ArrayModule, x: Array, attrs: ConvAttrs) -> Array:
    """An array of the layout that the attributes name, with its channels last."""
    return xp.transpose(x, _order_to_last(x.ndim, attrs))


def from_last(xp: ArrayModule, y: Array, attrs: ConvAttrs) -> Array:
    """An array with its channels last, in the layout that the attributes name."""
    return xp.transpose(y, np.argsort(_order_to_last(y.ndim, attrs)))


def widened(win: WindowGrid, depth: int, first: Array, second: Array) -> tuple[Array, Array]:
    """16-bit floats as float32: sums over many products need the bits. In small convolutions, float32 as float64.

    There it costs nothing, and numpy and XLA, which sum in other orders, give the same numbers. A step that runs in numpy
    at first and in XLA later would otherwise seem to change by several units in the last place, which is too much for
    gradients that are checked by small steps.
    """
    products = math.prod(win.out_shape[:-1]) * math.prod(win.size) * win.in_shape[-1] * depth
    is_small = products <= SMALL_CONVOLUTION

    def wide(a: Array) -> Array:
        if is_small and a.dtype == np.float32:
            return a.astype(np.float64)
        return a.astype(np.float32) if a.dtype.itemsize == 2 else a

    return wide(first), wide(second)


def _check_gradient(win: WindowGrid, dy: Array, depth: int) -> None:
    """The gradient of the result must have the size of the result."""
    for axis, (given, computed) in enumerate(zip(dy.shape[:-1], win.out_shape[:-1], strict=True)):
        if given != computed:
            raise ValueError(
                f"Size of out_backprop doesn't match computed: actual = {given}, computed = {computed} spatial_dim: "
                f"{axis} input: {win.in_shape[axis]} filter: {win.size[axis]} output: {given} stride: "
                f"{win.stride[axis]} dilation: {win.dilation[axis]}"
            )
    if dy.shape[-1] != depth:
        raise ValueError("filter and out_backprop must have the same out_depth")


def _join(xp: ArrayModule, parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else xp.concatenate(parts, -1)


def _of_group(win: WindowGrid, groups: int) -> WindowGrid:
    return win.with_channels(win.in_shape[-1] // groups)


# --- The products: channels-last, one group, full precision -------------------------------------------


def _forward(xp: ArrayModule, x: Array, w: Array, win: WindowGrid) -> Array:
    example = _patch_bytes(win, x.dtype)
    if _is_pointwise(win):
        # Its patches are its input: one product, with no copy to keep in cache.
        return _dot(xp, take(xp, x, win, (0,) * x.ndim), w)
    if _has_few_windows(win):
        # The filter is nearly as large as the image: a few large slices in place of many small ones.
        return _dot(xp, _window_patches(xp, x, win), w)
    geometry = conv_onednn.planned("forward", x.dtype, win, w.shape[-1])
    if geometry is not None:
        return conv_onednn.convolve(xp, geometry, x, w)
    narrow = min(x.shape[-1], w.shape[-1]) < MIN_WINOGRAD_CHANNELS
    if xp is not np and not narrow and winograd.suits(win, w.shape[-1], x.dtype):
        bytes_ = winograd.example_bytes(win, 1)
        return map_examples(xp, lambda x: winograd.forward(xp, x, w, win), bytes_, x, MAX_TAPLESS_BYTES)
    if xp is not np and conv_folded.suits(win, w.shape[-1]):
        return _folded(xp, x, w, win)
    if xp is not np and x.ndim == 5:
        return _by_planes(xp, x, w, win)
    if xp is not np:
        return _xla_forward(xp, x, w, win)
    if example > MAX_PATCH_BYTES:
        # The patches of one example alone would not fit the cache: add up one product per tap.
        padded = pad(xp, x, win)
        return total(_dot(xp, take(xp, padded, win, tap), w[tap[1:-1]]) for tap in win.taps())
    return map_examples(xp, lambda x: _dot(xp, _patches(xp, x, win), w), example, x)


def _folded(xp: ArrayModule, x: Array, w: Array, win: WindowGrid) -> Array:
    if conv_folded.is_strided(win):
        image, filters, narrow = conv_folded.unstrided(xp, x, w, win)
        return _xla_forward(xp, image, filters, narrow)
    count = conv_folded.neighbours(win, w.shape[-1])
    image, filters = conv_folded.image(xp, x, win, count), conv_folded.filters(xp, w, win, count)
    narrow = conv_folded.window(win, count)
    if math.prod(filters.shape[:-1]) > MAX_QUICK_COLUMNS:
        return conv_folded.result(_xla_forward(xp, image, filters, narrow), win, count)
    bytes_ = _patch_bytes(narrow, image.dtype)
    y = map_examples(
        xp, lambda x: _dot(xp, _patches(xp, x, narrow), filters), bytes_, image, MAX_POINTS_BYTES
    )
    return conv_folded.result(y, win, count)


def _by_planes(xp: ArrayModule, x: Array, w: Array, win: WindowGrid) -> Array:
    """A 3-D convolution as one of planes."""
    planes, flat = _planes(xp, x, win)
    filters = xp.moveaxis(w, 0, 2).reshape(*w.shape[1:3], planes.shape[-1], w.shape[-1])
    return _forward(xp, planes, filters, flat).reshape(*win.out_shape[:-1], w.shape[-1])


def _planes(xp: ArrayModule, x: Array, win: WindowGrid) -> tuple[Array, WindowGrid]:
    """What windows see of planes behind each other become more channels of one plane; and the windows over these."""
    deep = win.along(1, x.shape)
    padded = pad(xp, x, deep)
    seen_planes = _join(xp, [take(xp, padded, deep, tap) for tap in deep.taps()])
    planes = seen_planes.reshape(-1, *seen_planes.shape[2:])
    return planes, win.without(1).with_batch(planes.shape[0]).with_channels(planes.shape[-1])


def _filter_gradient_by_planes(xp: ArrayModule, x: Array, dy: Array, win: WindowGrid) -> Array:
    planes, flat = _planes(xp, x, win)
    dw = _filter_gradient(xp, planes, dy.reshape(-1, *dy.shape[2:]), flat)
    parts = dw.reshape(*win.size[2:-1], win.size[1], -1)
    return xp.moveaxis(parts, 2, 0).reshape(-1, dy.shape[-1])


def _input_gradient(xp: ArrayModule, w: Array, dy: Array, win: WindowGrid) -> Array:
    if _has_few_windows(win):
        turned, shape = _exchanged(win), (dy.shape[0], -1, *win.size[1:-1], win.in_shape[-1])
        seen = _dot(xp, dy, w.reshape(-1, w.shape[-1]).T).reshape(shape)
        return scatter(xp, ((place, seen[:, i]) for i, place in enumerate(turned.taps())), turned)
    geometry = conv_onednn.planned("input", dy.dtype, win, w.shape[-1])
    if geometry is not None and not _is_pointwise(win):
        return conv_onednn.convolve(xp, geometry, dy, w)
    example = _patch_bytes(win, dy.dtype)
    # The gradient of the input is itself a convolution, of `dy` with the filter turned around.
    turned = _turned_window(win, dy.shape[-1])
    if xp is not np and winograd.suits(turned, w.shape[-2], dy.dtype):
        return _forward(xp, dy, _turned(xp, w), turned)
    plain = set(win.stride) == set(win.dilation) == {1} and min(min(pair) for pair in turned.pads) >= 0
    if xp is not np and dy.ndim == 5 and plain:
        return _forward(xp, dy, _turned(xp, w), turned)
    if conv_phases.suits(xp, win) and not _is_pointwise(win):
        if dy.ndim == 4:
            return conv_phases.input_gradient(xp, w, dy, win)
        return conv_phases.volume_gradient(xp, w, dy, win, lambda *planes: _input_gradient(xp, *planes))
    dense = set(win.stride) == {1} and win.in_shape[-1] >= MIN_XLA_GRADIENT_CHANNELS
    if xp is not np and not _is_pointwise(win) and (dense or example > MAX_PATCH_BYTES):
        return _xla_input_gradient(xp, w, dy, win)
    taps, w = list(win.taps()), w.reshape(-1, w.shape[-1])
    if _is_pointwise(win):
        return scatter(xp, [(taps[0], _dot(xp, dy, w.T))], win)

    def spread(dy: Array) -> Array:
        rows = win.with_batch(dy.shape[0])
        cols = _dot(xp, dy, w.T).reshape(*rows.out_shape[:-1], len(taps), win.in_shape[-1])
        return scatter(xp, ((tap, cols[..., i, :]) for i, tap in enumerate(taps)), rows)

    return map_examples(xp, spread, example, dy)


def _filter_gradient(xp: ArrayModule, x: Array, dy: Array, win: WindowGrid) -> Array:
    """The filter's gradient as a matrix [taps * channels in, channels out]."""
    example = _patch_bytes(win, x.dtype)
    if _is_pointwise(win):
        return _dot_rows(xp, take(xp, x, win, (0,) * x.ndim), dy)
    if _has_few_windows(win):
        return _dot_rows(xp, _window_patches(xp, x, win), dy)
    geometry = conv_onednn.planned("filter", x.dtype, win, dy.shape[-1])
    if geometry is not None:
        return conv_onednn.convolve(xp, geometry, x, dy).reshape(-1, dy.shape[-1])
    if xp is not np and winograd.suits(win, dy.shape[-1], x.dtype):
        bytes_ = winograd.example_bytes(win, math.prod(win.size[1:-2]))
        points = sum_examples(
            xp, lambda x, dy: winograd.filter_points(xp, x, dy, win), bytes_, x, dy, MAX_POINTS_BYTES
        )
        return winograd.filter_gradient(xp, points, win)
    if xp is not np and x.shape[-1] == 1 and conv_folded.suits(win, dy.shape[-1]):
        count = conv_folded.neighbours(win, dy.shape[-1])
        image, gradient = conv_folded.image(xp, x, win, count), conv_folded.gradient(xp, dy, win, count)
        folded = _filter_gradient(xp, image, gradient, conv_folded.window(win, count))
        return conv_folded.filter_gradient(folded, win, count).reshape(-1, dy.shape[-1])
    if xp is not np and x.ndim == 4 and x.shape[-1] < MIN_PATCH_CHANNELS:
        return _xla_filter_gradient(xp, x, dy, win).reshape(-1, dy.shape[-1])
    if xp is not np and x.ndim == 5 and x.shape[0]:
        return _filter_gradient_by_planes(xp, x, dy, win)
    if example > MAX_PATCH_BYTES:
        padded = pad(xp, x, win)
        return xp.concatenate([_dot_rows(xp, take(xp, padded, win, tap), dy) for tap in win.taps()])
    return sum_examples(xp, lambda x, dy: _dot_rows(xp, _patches(xp, x, win), dy), example, x, dy)


def _patches(xp: ArrayModule, x: Array, win: WindowGrid) -> Array:
    """[examples, windows..., taps * channels]: what each window sees."""
    win = win.with_batch(x.shape[0])
    padded = pad(xp, x, win)
    return _join(xp, [take(xp, padded, win, tap) for tap in win.taps()])


def _window_patches(xp: ArrayModule, x: Array, win: WindowGrid) -> Array:
    """The same as `_patches`, window by window."""
    padded, turned = pad(xp, x, win), _exchanged(win)
    rows = [take(xp, padded, turned, place).reshape(x.shape[0], -1) for place in turned.taps()]
    return xp.stack(rows, 1).reshape(*win.out_shape[:-1], -1)


def _exchanged(win: WindowGrid) -> WindowGrid:
    """What is seen with windows as taps and taps as windows: the same inputs, since both are added up to a place."""
    size, shape = (1, *win.out_shape[1:-1], 1), (win.in_shape[0], *win.size[1:-1], win.in_shape[-1])
    return replace(win, size=size, stride=win.dilation, dilation=win.stride, out_shape=shape)


def _dot(xp: ArrayModule, x: Array, w: Array) -> Array:
    """The last axis of `x` times the matrix that `w` is once its last axis is kept."""
    w = w.reshape(-1, w.shape[-1])
    return times(xp, x.reshape(-1, x.shape[-1]), w).reshape(*x.shape[:-1], w.shape[-1])


def _dot_rows(xp: ArrayModule, x: Array, dy: Array) -> Array:
    """Sum over all examples and windows of the outer product of their rows."""
    x, dy = (a.reshape(-1, a.shape[-1]) for a in (x, dy))
    if xp is np or x.shape[1] < 2 * dy.shape[1]:
        return times(xp, x.T, dy)
    # XLA is faster with a wide result than with a high one; unless it is stored, the two transpositions cancel out.
    return stored(xp, dy.T @ x).T


def _patch_bytes(win: WindowGrid, dtype: np.dtype[Any]) -> int:
    """Size of the patches of one example."""
    return math.prod(win.out_shape[1:-1]) * math.prod(win.size) * win.in_shape[-1] * dtype.itemsize


def _is_pointwise(win: WindowGrid) -> bool:
    return math.prod(win.size) == 1 and not win.is_padded


def _has_few_windows(win: WindowGrid) -> bool:
    """Whether an image has so few windows that it is gone through by them: the filter is about as large as it."""
    return win.in_shape[0] > 0 and 0 < math.prod(win.out_shape[1:-1]) <= min(
        MAX_LISTED_WINDOWS, math.prod(win.size) - 1
    )


# --- XLA's own convolution ----------------------------------------------------------------------------


def _xla_forward(
    xp: ArrayModule, x: Array, w: Array, win: WindowGrid, padding: Sequence[tuple[int, int]] | None = None
) -> Array:
    if x.shape[-1] > 1 and x.shape[-1] % 2:
        # An odd number of channels (the three colours) makes it several times slower.
        missing = [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 4)]
        x, w = xp.pad(x, missing), xp.pad(w, [*missing[1:], (0, 0)])
    # A small filter with strides gains nothing from parts, and what follows it would wait for them to be joined.
    joining = max(win.stride) > 1 and math.prod(win.size) <= MAX_SMALL_FILTER_TAPS
    pads = padding or win.pads[1:-1]
    return stored(xp, convolve(xp, x, w, win.stride[1:-1], pads, win.dilation[1:-1], joining=joining))


def _xla_input_gradient(xp: ArrayModule, w: Array, dy: Array, win: WindowGrid) -> Array:
    """A convolution of the spread-out `dy` with the filter turned around."""
    from tensorfleet.kernels.xla import lax

    padding = []
    for i in range(1, dy.ndim - 1):
        low = (win.size[i] - 1) * win.dilation[i] - win.pads[i][0]
        spread = (win.out_shape[i] - 1) * win.stride[i] + 1
        padding.append((low, win.in_shape[i] + win.pads[i][0] - spread))
    if set(win.stride) == {1}:
        dy, padding[:] = cropped(dy, padding)
    if set(win.stride) == {1} and dy.ndim == 4:
        return _xla_forward(xp, dy, _turned(xp, w), win, padding)
    spatial = "DHW"[5 - dy.ndim :]
    return lax.conv_general_dilated(
        dy,
        _turned(xp, w),
        window_strides=(1,) * len(spatial),
        padding=padding,
        lhs_dilation=win.stride[1:-1],
        rhs_dilation=win.dilation[1:-1],
        dimension_numbers=(f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"),
    )


def _xla_filter_gradient(xp: ArrayModule, x: Array, dy: Array, win: WindowGrid) -> Array:
    """A convolution of the input with `dy`, in which examples are what channels are otherwise."""
    examples = [(0, -x.shape[0] % 4 if x.shape[0] % 2 and x.shape[0] > 1 else 0)]  # an odd number is slow
    x, dy = (xp.pad(a, examples + [(0, 0)] * (a.ndim - 1)) for a in (x, dy))
    padding = []
    for i in range(1, x.ndim - 1):
        reach = (win.size[i] - 1) * win.dilation[i] + 1 + (win.out_shape[i] - 1) * win.stride[i]
        padding.append((win.pads[i][0], reach - win.in_shape[i] - win.pads[i][0]))
    x, pads = cropped(x, padding)
    x, dy = xp.transpose(x, (3, 1, 2, 0)), xp.transpose(dy, (1, 2, 0, 3))
    dw = convolve(xp, x, dy, win.dilation[1:-1], pads, win.stride[1:-1], across=2)
    return xp.transpose(dw, (1, 2, 0, 3))


def _turned(xp: ArrayModule, w: Array) -> Array:
    """The filter that takes gradients of outputs back to inputs."""
    return xp.swapaxes(xp.flip(w, tuple(range(w.ndim - 2))), -1, -2)


def _turned_window(win: WindowGrid, channels: int) -> WindowGrid:
    """The windows of that filter over `channels` outputs of a convolution with stride 1."""
    axes = zip(win.size, win.in_shape, win.out_shape, win.pads, strict=True)
    pads = [(size - 1 - low, seen + low - outputs) for size, seen, outputs, (low, _) in axes]
    pads[0] = pads[-1] = (0, 0)
    in_shape, out_shape = (*win.out_shape[:-1], channels), (*win.in_shape[:-1], channels)
    return replace(win, in_shape=in_shape, out_shape=out_shape, pads=tuple(pads))
