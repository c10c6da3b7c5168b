"""Winograd's convolution: fewer multiplications than one per tap, for compiled filters 3 or 5 wide.

Along the last spatial axis the outputs fall into *tiles* of a few neighbours. A tile's outputs and the
inputs they see are polynomials, of which only the values at six *points* are multiplied: combinations of
inputs times combinations of taps, then combinations of the products. Tiles of 2 for 5 taps take 6
products in place of 10, tiles of 4 for 3 taps take 6 in place of 12. Across the other axes the taps stay
what they are, columns of a matrix product. With these points float32 loses no more than the plain sum.

Everything is channels-last and traced; `win` is the Window of the convolution.
"""

import functools
import itertools

import numpy as np

# The last point is infinity. Of all small sets tried this one rounds least.
POINTS = (0, 1, -1, 0.5, -2)
# The products are too thin to pay when a pixel has fewer channels than this, before or after.
CHANNELS = 16
# In a narrower image too much of the last tile lies outside.
NARROW = 8


def suits(win, out_channels, dtype):
    """Whether a convolution can be, and is better, done this way."""
    return (
        dtype == np.float32
        and win.size[-2] in (3, 5)
        and set(win.stride) == set(win.dilation) == {1}
        and min(win.in_shape[-1], out_channels) >= CHANNELS
        and win.out_shape[-2] >= NARROW
        and min(min(pair) for pair in win.pads) >= 0
    )


def example_bytes(win):
    """What one example takes while it is worked on, all points together."""
    rows = np.prod(win.out_shape[1:-2]) * _tiles(win)
    return int(rows * np.prod(win.size[1:-2]) * win.in_shape[-1]) * (len(POINTS) + 1) * 4


def forward(xp, x, w, win):
    """The convolution of `x` with the filter `w` [..., width, in, out]."""
    products = [
        rows @ taps for rows, taps in zip(_input_rows(xp, x, win), _filter_points(xp, w), strict=True)
    ]
    tiles = xp.stack(list(_combine(_matrices(win.size[-2])[0], products)), 1)
    shape = (x.shape[0], *win.out_shape[1:-2], _tiles(win) * _tile(win), w.shape[-1])
    return tiles.reshape(shape)[..., : win.out_shape[-2], :]


def filter_points(xp, x, dy, win):
    """The gradient of the filter at each point: sums over examples, to be given to `filter_gradient`."""
    size = _tile(win)
    missing = _tiles(win) * size - dy.shape[-2]
    dy = xp.pad(dy, [(0, 0)] * (dy.ndim - 2) + [(0, missing), (0, 0)])
    outputs = [dy[..., i::size, :].reshape(-1, dy.shape[-1]) for i in range(size)]
    at_points = _combine(_matrices(win.size[-2])[0].T, outputs)
    return xp.stack([rows.T @ d for rows, d in zip(_input_rows(xp, x, win), at_points, strict=True)])


def filter_gradient(xp, points, win):
    """The gradient of the filter as a matrix [taps * channels in, channels out]."""
    evaluate = _matrices(win.size[-2])[1].astype(np.float32)
    points = points.reshape(len(POINTS) + 1, -1, win.in_shape[-1], points.shape[-1])
    return xp.einsum("pk,phco->hkco", evaluate, points).reshape(-1, points.shape[-1])


def _tile(win):
    return len(POINTS) + 2 - win.size[-2]


def _tiles(win):
    return -(-win.out_shape[-2] // _tile(win))


def _input_rows(xp, x, win):
    """For each point a matrix [tiles, taps of the other axes * channels] of the input's combinations."""
    size, count = _tile(win), _tiles(win)
    low, high = win.pads[-2]
    needed = count * size + win.size[-2] - 1
    pads = [*win.pads[:-2], (low, max(high, needed - low - x.shape[-2])), (0, 0)]
    x = xp.pad(x, pads)
    seen = [x[..., i : i + (count - 1) * size + 1 : size, :] for i in range(len(POINTS) + 1)]
    for at_point in _combine(_matrices(win.size[-2])[2], seen):
        yield _patches(xp, at_point, win).reshape(-1, np.prod(win.size[1:-2], dtype=int) * x.shape[-1])


def _patches(xp, x, win):
    """What each window sees along the axes before the last one."""
    parts = []
    for tap in itertools.product(*map(range, win.size[1:-2])):
        inner = (slice(t, t + n) for t, n in zip(tap, win.out_shape[1:-2], strict=True))
        parts.append(x[(slice(None), *inner)])
    return xp.concatenate(parts, -1)


def _filter_points(xp, w):
    """For each point the matrix [taps of the other axes * channels in, channels out]."""
    evaluate = _matrices(w.shape[-3])[1].astype(np.float32)
    points = xp.einsum("pk,...kco->p...co", evaluate, w)
    return points.reshape(len(POINTS) + 1, -1, w.shape[-1])


def _combine(matrix, parts):
    """The sums of `parts` that the rows of `matrix` describe."""
    for row in matrix:
        terms = [part if c == 1 else part * np.float32(c) for c, part in zip(row, parts, strict=True) if c]
        yield functools.reduce(lambda a, b: a + b, terms)


@functools.cache
def _matrices(taps):
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
