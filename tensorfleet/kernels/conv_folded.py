"""Convolutions of images with few channels (colours), compiled: neighbours along the last axis become channels.

A few neighbouring outputs are made at a time, from all inputs that any of them sees: these inputs are the channels of a
narrower image, and those outputs the channels of its result. Such a filter has zeros where an output does not see an
input, which are multiplied in vain; but XLA works on many channels at once and takes long to gather single ones. Where
the convolution is strided, the inputs of a stride are channels enough.

Everything is channels-last; `win` is the WindowGrid of the convolution.
"""

from __future__ import annotations

from dataclasses import replace

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.aligned_memory import stored
from tensorfleet.kernels.arrays import total
from tensorfleet.kernels.windows import WindowGrid

# With so many channels, nothing is gained.
MAX_INPUT_CHANNELS = 8
# Neighbours are taken together until the result has so many channels, but no more than these.
MAX_RESULT_CHANNELS = 128
MAX_NEIGHBOURS = 4
# With so many channels once the stride is folded into them, that is enough.
MIN_STRIDE_CHANNELS = 6


def suits(win: WindowGrid, out_channels: int) -> bool:
    """Whether a convolution of the plane is better done this way."""
    return (
        len(win.size) == 4
        and win.in_shape[-1] < MAX_INPUT_CHANNELS
        and win.size[-2] > 1
        and win.dilation[-2] == 1
        and min(min(pair) for pair in win.pads) >= 0
        and (is_strided(win) or neighbours(win, out_channels) > 1)
    )


def is_strided(win: WindowGrid) -> bool:
    """Whether inputs a stride apart are better the channels: no output is made with zeros then."""
    return (
        win.out_shape[-2] > 0
        and win.stride[-2] > 1
        and win.stride[-2] * win.in_shape[-1] >= MIN_STRIDE_CHANNELS
    )


def unstrided(xp: ArrayModule, x: Array, w: Array, win: WindowGrid) -> tuple[Array, Array, WindowGrid]:
    """The image whose channels are the inputs of a stride, with the filter and the windows over it.

    The image is the same memory read otherwise, where its width is a multiple of the stride.
    """
    stride, low = win.stride[-2], win.pads[-2][0]
    before = -(-low // stride)
    shift = before * stride - low
    taps = -(-(shift + win.size[-2]) // stride)
    outputs = win.out_shape[-2]
    # What no window sees on the right is cut off, or what is missing added.
    groups = min(-(-x.shape[-2] // stride), outputs + taps - 1 - before)
    x = xp.pad(x, [(0, 0), (0, 0), (0, max(0, groups * stride - x.shape[-2])), (0, 0)])
    image = x[:, :, : groups * stride].reshape(*x.shape[:2], groups, stride * x.shape[-1])
    w = xp.pad(w, [(0, 0), (shift, taps * stride - shift - win.size[-2]), (0, 0), (0, 0)])
    filters = w.reshape(w.shape[0], taps, image.shape[-1], w.shape[-1])
    narrow = replace(
        win,
        size=(*win.size[:-2], taps, 1),
        stride=(*win.stride[:-2], 1, 1),
        in_shape=image.shape,
        out_shape=(*win.out_shape[:-1], image.shape[-1]),
        pads=(*win.pads[:-2], (before, outputs + taps - 1 - before - groups), (0, 0)),
    )
    return image, filters, narrow


def neighbours(win: WindowGrid, out_channels: int) -> int:
    """How many neighbouring outputs are made at a time."""
    return min(MAX_NEIGHBOURS, -(-MAX_RESULT_CHANNELS // out_channels), win.out_shape[-2])


def window(win: WindowGrid, count: int) -> WindowGrid:
    """The windows over the narrower image."""
    groups = -(-win.out_shape[-2] // count)
    channels = _span(win, count) * win.in_shape[-1]
    return replace(
        win,
        size=(*win.size[:-2], 1, 1),
        stride=(*win.stride[:-2], 1, 1),
        in_shape=(*win.in_shape[:-2], groups, channels),
        out_shape=(*win.out_shape[:-2], groups, channels),
        pads=(*win.pads[:-2], (0, 0), (0, 0)),
    )


def image(xp: ArrayModule, x: Array, win: WindowGrid, count: int) -> Array:
    """The narrower image: [examples, height, groups, inputs seen by a group * channels]."""
    groups, step, span = -(-win.out_shape[-2] // count), count * win.stride[-2], _span(win, count)
    low, high = win.pads[-2]
    needed = (groups - 1) * step + span
    x = xp.pad(x, [(0, 0), (0, 0), (low, max(high, needed - low - x.shape[-2])), (0, 0)])
    parts = [x[:, :, i : i + (groups - 1) * step + 1 : step] for i in range(span)]
    return stored(xp, xp.concatenate(parts, -1))


def filters(xp: ArrayModule, w: Array, win: WindowGrid, count: int) -> Array:
    """The filter over the narrower image: [height, 1, inputs seen by a group * channels, neighbours * filters]."""
    places = [i * win.stride[-2] for i in range(count)]
    rest = _span(win, count) - w.shape[1]
    parts = [xp.pad(w, [(0, 0), (place, rest - place), (0, 0), (0, 0)]) for place in places]
    return xp.stack(parts, 3).reshape(w.shape[0], 1, -1, count * w.shape[-1])


def result(y: Array, win: WindowGrid, count: int) -> Array:
    """The result of the convolution, from that of the narrower image."""
    wide = y.reshape(*y.shape[:2], y.shape[2] * count, y.shape[3] // count)
    return wide[:, :, : win.out_shape[-2]]


def gradient(xp: ArrayModule, dy: Array, win: WindowGrid, count: int) -> Array:
    """The gradient of the narrower image's result, from that of the convolution's."""
    groups = -(-win.out_shape[-2] // count)
    dy = xp.pad(dy, [(0, 0), (0, 0), (0, groups * count - dy.shape[-2]), (0, 0)])
    return dy.reshape(*dy.shape[:2], groups, count * dy.shape[-1])


def filter_gradient(dw: Array, win: WindowGrid, count: int) -> Array:
    """The gradient of the filter as [height, width, channels in, channels out], from that of the narrower image's."""
    span, stride, width = _span(win, count), win.stride[-2], win.size[-2]
    dw = dw.reshape(win.size[1], span, win.in_shape[-1], count, -1)
    return total(dw[:, i * stride : i * stride + width, :, i] for i in range(count))


def _span(win: WindowGrid, count: int) -> int:
    """How many inputs along the last axis the outputs of a group see."""
    return (count - 1) * win.stride[-2] + win.size[-2]
