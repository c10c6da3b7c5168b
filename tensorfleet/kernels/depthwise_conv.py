"""Depthwise convolution kernels: each channel with filters of its own; with the gradients of input and filter.

Attributes and layout are as in conv.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.aligned_memory import stored
from tensorfleet.kernels.arrays import total
from tensorfleet.kernels.conv import conv_window, from_last, to_last, widened
from tensorfleet.kernels.conv_chunks import sum_examples
from tensorfleet.kernels.conv_shapes import ConvAttrs
from tensorfleet.kernels.windows import WindowGrid, look_up, pad, scatter, take

# With fewer channels than this, rows of pixels are gone through as a whole.
MIN_PIXELWISE_CHANNELS = 16


def depthwise_conv2d(xp: ArrayModule, x: Array, w: Array, **attrs: Unpack[ConvAttrs]) -> Array:
    """DepthwiseConv2dNative: filter [height, width, channels, multiplier]."""
    win = conv_window(x.shape, w.shape, **attrs)
    dtype = x.dtype
    x, w = widened(win, w.shape[-1], x, w)
    padded = pad(xp, to_last(xp, x, attrs), win)
    if xp is not np and w.shape[-1] == 1 == win.stride[-2] and w.shape[-2] < MIN_PIXELWISE_CHANNELS:
        y = _depthwise_rows(xp, padded, w, win)
    else:
        w = stored(xp, w)
        y = total(take(xp, padded, win, tap)[..., None] * w[tap[1:-1]] for tap in win.taps())
    return from_last(xp, y.reshape(*win.out_shape[:-1], math.prod(w.shape[-2:])).astype(dtype), attrs)


def _depthwise_rows(xp: ArrayModule, padded: Array, w: Array, win: WindowGrid) -> Array:
    """Rows of pixels as rows of numbers, which XLA goes through faster than through the channels of each pixel."""
    _, height, width, channels = win.out_shape
    rows = padded.reshape(*padded.shape[:2], padded.shape[2] * channels)
    filters = stored(xp, xp.tile(w[..., 0], (1, 1, width)))
    (_, down, _, _), products = win.stride, []
    for tap in win.taps():
        _, y, x, _ = win.offsets(tap)
        seen = rows[:, y : y + (height - 1) * down + 1 : down, x * channels : (x + width) * channels]
        products.append(seen * filters[tap[1:-1]])
    return stored(xp, total(products))  # or XLA would go through pixels again, in each loop that reads it


def depthwise_conv2d_backprop_input(
    xp: ArrayModule, input_shape: Sequence[int], w: Array, dy: Array, **attrs: Unpack[ConvAttrs]
) -> Array:
    """DepthwiseConv2dNativeBackpropInput: the gradient with respect to `x`, of `input_shape`."""
    win = conv_window(input_shape, w.shape, **attrs)
    dtype = dy.dtype
    dy, w = widened(win, w.shape[-1], dy, w)
    dy = to_last(xp, dy, attrs)
    dy = dy.reshape(*dy.shape[:-1], *w.shape[-2:])
    if xp is np:
        dx = scatter(xp, ((tap, (dy * w[tap[1:-1]]).sum(-1)) for tap in win.taps()), win)
    else:  # XLA is fast where it reads: each input looks up the windows that see it
        taps = stored(xp, xp.moveaxis(w, -1, 0).reshape(w.shape[-1], -1, w.shape[-2]))
        parts, zeros = xp.moveaxis(dy, -1, 0), [0] * w.shape[-1]
        dx = look_up(xp, win, parts, zeros, lambda i, *seen: total(map(operator.mul, seen, taps[:, i])))
    return from_last(xp, dx.astype(dtype), attrs)


def depthwise_conv2d_backprop_filter(
    xp: ArrayModule, x: Array, filter_shape: Sequence[int], dy: Array, **attrs: Unpack[ConvAttrs]
) -> Array:
    """DepthwiseConv2dNativeBackpropFilter: the gradient with respect to `w`, of `filter_shape`."""
    win = conv_window(x.shape, filter_shape, **attrs)
    dtype = x.dtype
    x, dy = widened(win, filter_shape[-1], x, dy)
    x, dy = to_last(xp, x, attrs), to_last(xp, dy, attrs)
    dy = dy.reshape(*dy.shape[:-1], *filter_shape[-2:])
    windows = tuple(range(dy.ndim - 2))

    def summed(x: Array, dy: Array) -> Array:
        """Multiplier by multiplier, so that the sums run along all channels at once."""
        rows = win.with_batch(x.shape[0])
        padded, parts = pad(xp, x, rows), xp.moveaxis(dy, -1, 0)
        views = [take(xp, padded, rows, tap) for tap in rows.taps()]
        return xp.stack([xp.stack([(view * part).sum(windows) for view in views]) for part in parts], -1)

    example = (math.prod(x.shape[1:]) + math.prod(dy.shape[1:])) * x.dtype.itemsize
    return sum_examples(xp, summed, example, x, dy).reshape(tuple(filter_shape)).astype(dtype)
