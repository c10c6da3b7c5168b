"""Winograd's convolution: fewer multiplications than one per tap, for compiled filters 3 or 5 wide.

Along the last spatial axis the outputs fall into *tiles* of a few neighbours. A tile's outputs and the
inputs they see are polynomials, of which only the values at six *points* are multiplied: combinations of
inputs times combinations of taps, then combinations of the products. Tiles of 2 for 5 taps take 6
products in place of 10, tiles of 4 for 3 taps take 6 in place of 12. Across the other axes it stays
a convolution. With these points float32 loses no more than the plain sum.

Everything is channels-last and traced; `win` is the WindowGrid of the convolution.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.aligned_memory import stored
from tensorfleet.kernels.conv_library import convolve
from tensorfleet.kernels.windows import WindowGrid

# The last point is infinity. Of all small sets tried this one rounds least.
POINTS = (0, 1, -1, 0.5, -2)
# The products are too thin to pay when a pixel has fewer channels than this, before or after.
MIN_CHANNELS = 16
# In a narrower image too much of the last tile lies outside.
MIN_WIDTH = 8


def suits(win: WindowGrid, out_channels: int, dtype: np.dtype[Any]) -> bool:
    """Whether a convolution can be, and is better, done this way."""
    return (
        dtype == np.float32
        and win.size[-2] in (3, 5)
        and set(win.stride) == set(win.dilation) == {1}
        and min(win.in_shape[-1], out_channels) >= MIN_CHANNELS
        and win.out_shape[-2] >= MIN_WIDTH
        and min(min(pair) for pair in win.pads) >= 0
    )


def example_bytes(win: WindowGrid, taps: int) -> int:
    """What one example takes while it is worked on, all points together, with so many taps of the other axes side by side."""
    rows = np.prod(win.out_shape[1:-2]) * _tiles(win)
    return int(rows * taps * win.in_shape[-1]) * (len(POINTS) + 1) * 4


def forward(xp: ArrayModule, x: Array, w: Array, win: WindowGrid) -> Array:
    """The convolution of `x` with the filter `w` [..., width, in, out]."""
    others = [(0, 0)] * (x.ndim - 2)
    points, filters = _input_points(xp, x, win, others), _filter_points(xp, w)
    products = [_along_others(xp, p, f, win) for p, f in zip(points, filters, strict=True)]
    tiles = stored(xp, xp.stack(list(_combine(_matrices(win.size[-2])[0], products)), -2))
    shape = (x.shape[0], *win.out_shape[1:-2], _tiles(win) * _tile(win), w.shape[-1])
    return tiles.reshape(shape)[..., : win.out_shape[-2], :]


def _along_others(xp: ArrayModule, x: Array, w: Array, win: WindowGrid) -> Array:
    """The convolution of one point along the axes before the last one: XLA's, which never stores what windows see."""
    from tensorfleet.kernels.xla import lax

    if x.ndim == 4:
        # XLA's own is as fast here, where the library does not do the rest of the program.
        across = (win.pads[1], (0, 0))
        return stored(xp, convolve(xp, x, w, win.stride[1:-1], across, joining=True))
    spatial = "DHW"[5 - x.ndim :]
    layouts = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    padding = [*win.pads[1:-2], (0, 0)]
    return lax.conv_general_dilated(x, w, win.stride[1:-1], padding, dimension_numbers=layouts)


def filter_points(xp: ArrayModule, x: Array, dy: Array, win: WindowGrid) -> Array:
    """The gradient of the filter at each point: sums over examples, to be given to `filter_gradient`."""
    size = _tile(win)
    missing = _tiles(win) * size - dy.shape[-2]
    dy = xp.pad(dy, [(0, 0)] * (dy.ndim - 2) + [(0, missing), (0, 0)])
    at_points = _combine(_matrices(win.size[-2])[0].T, [dy[..., i::size, :] for i in range(size)])
    # One product for all points: XLA does these side by side.
    left = stored(xp, xp.stack(list(at_points)))
    right = stored(xp, xp.stack([_patches(xp, p, win) for p in _input_points(xp, x, win, win.pads[:-2])]))
    rows = (len(POINTS) + 1, math.prod(left.shape[1:-1]))
    left = left.reshape(*rows, left.shape[-1])
    right = right.reshape(*rows, math.prod(right.shape[-2:]))
    return xp.einsum("pro,pri->poi", left, right)


def filter_gradient(xp: ArrayModule, points: Array, win: WindowGrid) -> Array:
    """The gradient of the filter as a matrix [taps * channels in, channels out]."""
    evaluate = _matrices(win.size[-2])[1].astype(np.float32)
    points = points.reshape(len(POINTS) + 1, points.shape[1], -1, win.in_shape[-1])
    return xp.einsum("pk,pohc->hkco", evaluate, points).reshape(-1, points.shape[1])


def _tile(win: WindowGrid) -> int:
    return len(POINTS) + 2 - win.size[-2]


def _tiles(win: WindowGrid) -> int:
    return -(-win.out_shape[-2] // _tile(win))


def _input_points(
    xp: ArrayModule, x: Array, win: WindowGrid, others: Sequence[tuple[int, int]]
) -> list[Array]:
    """The input's combinations at each point, [examples, ..., tiles, channels]; `others` pads the axes before the last."""
    size, count = _tile(win), _tiles(win)
    low, high = win.pads[-2]
    needed = count * size + win.size[-2] - 1
    x = xp.pad(x, [*others, (low, max(high, needed - low - x.shape[-2])), (0, 0)])
    seen = [x[..., i : i + (count - 1) * size + 1 : size, :] for i in range(len(POINTS) + 1)]
    return [stored(xp, at_point) for at_point in _combine(_matrices(win.size[-2])[2], seen)]


def _patches(xp: ArrayModule, x: Array, win: WindowGrid) -> Array:
    """What each window sees along the axes before the last one: [examples, ..., tiles, taps, channels]."""
    parts = []
    for tap in itertools.product(*map(range, win.size[1:-2])):
        inner = (slice(t, t + n) for t, n in zip(tap, win.out_shape[1:-2], strict=True))
        parts.append(x[(slice(None), *inner)])
    return xp.stack(parts, -2)


def _filter_points(xp: ArrayModule, w: Array) -> Array:
    """For each point the filter along the axes before the last one, [..., 1, channels in, channels out]."""
    evaluate = _matrices(w.shape[-3])[1].astype(np.float32)
    return xp.einsum("pk,...kco->p...co", evaluate, w)[..., None, :, :]


def _combine(matrix: Array, parts: list[Array]) -> Iterator[Array]:
    """The sums of `parts` that the rows of `matrix` describe."""
    for row in matrix:
        terms = [part if c == 1 else part * np.float32(c) for c, part in zip(row, parts, strict=True) if c]
        yield functools.reduce(lambda a, b: a + b, terms)


@functools.cache
def _matrices(taps: int) -> tuple[Array, Array, Array]:
    """From products to outputs, from taps to points, and from inputs to points."""
    points = len(POINTS) + 1
    outputs = np.zeros((points + 1 - taps, points))
    filters = np.zeros((points, taps))
    inputs = np.zeros((points, points))
    for i, a in enumerate(POINTS):
        others = [b for b in POINTS if b != a]
        outputs[:, i] = a ** np.arange(len(outputs), dtype=float)
        filters[i] = a ** np.arange(taps, dtype=float) / np.prod([a - b for b in others])
        inputs[i, :-1] = np.poly(others)[::-1]
    outputs[-1, -1] = filters[-1, -1] = 1
    inputs[-1] = np.poly(POINTS)[::-1]
    return outputs, filters, inputs
