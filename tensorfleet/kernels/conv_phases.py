"""The gradient of a strided convolution's input, which is also the transposed convolution, once compiled.

With a stride of 2, say, inputs at even places are seen by some taps only and those at odd places by the others. So the
inputs fall into *phases*, each the result of a small convolution with stride 1, and these are laid between each other.

With the most usual filter, 3 x 3 and a stride of 2, a phase has one or two taps along each axis. Matrix products of all
pixels, and of all pairs of neighbours, take less time than small convolutions, which first gather what they see: what the
rows of a filter give is added up while the phases are laid.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.aligned_memory import stored
from tensorfleet.kernels.arrays import total
from tensorfleet.kernels.conv_library import convolve
from tensorfleet.kernels.windows import WindowGrid, cropped

# With fewer channels, products are slower than convolutions.
MIN_PRODUCT_CHANNELS = 8


def suits(xp: ArrayModule, win: WindowGrid) -> bool:
    """Whether a convolution is strided, and its filter has no gaps."""
    return xp is not np and len(win.stride) in (4, 5) and set(win.stride) != {1} == set(win.dilation)


def input_gradient(xp: ArrayModule, w: Array, dy: Array, win: WindowGrid) -> Array:
    """The gradient of the input of the convolution with the filter `w`, given that of its result."""
    down, across = win.stride[1:3]
    if _suits_products(w, win):
        phases = _products(xp, w, dy, win)
    else:
        phases = [_phase(xp, w, dy, win, (y, x)) for y in range(down) for x in range(across)]
    examples, rows, columns, channels = phases[0].shape
    # XLA joins what is put behind each other, and then moves it, in less time than what is put beside each other.
    grid = xp.stack(phases).reshape(down, across, examples, rows, columns, channels)
    whole = grid.transpose(2, 3, 0, 4, 1, 5).reshape(examples, rows * down, columns * across, channels)
    return whole[:, : win.in_shape[1], : win.in_shape[2]]


def volume_gradient(
    xp: ArrayModule,
    w: Array,
    dy: Array,
    win: WindowGrid,
    of_planes: Callable[[Array, Array, WindowGrid], Array],
) -> Array:
    """The same for volumes: planes of `dy` that an input plane is seen from become channels, one phase after another.

    `of_planes` gives the gradient of planes, from the filter, the gradient of the result and the windows.
    """
    stride, count = win.stride[1], -(-win.in_shape[1] // win.stride[1])
    flat = win.without(1).with_batch(dy.shape[0] * count)
    shape = (dy.shape[0], count, *flat.in_shape[1:])
    phases = []
    for place in range(stride):
        taps, beyond = _seen(win, 1, place)
        if not taps:
            phases.append(xp.zeros(shape, dy.dtype))
            continue
        padded = _moved(dy, 1, beyond[0], dy.shape[1] + sum(beyond))
        seen = xp.concatenate([padded[:, i : i + count] for i in range(len(taps))], -1)
        filters = xp.concatenate([w[tap] for tap in taps], -1)
        phases.append(of_planes(filters, seen.reshape(-1, *seen.shape[2:]), flat).reshape(shape))
    rows = xp.moveaxis(xp.stack(phases), 0, 2).reshape(dy.shape[0], count * stride, *shape[2:])
    return rows[:, : win.in_shape[1]]


def _phase(xp: ArrayModule, w: Array, dy: Array, win: WindowGrid, phase: tuple[int, int]) -> Array:
    (rows, above), (columns, beside) = (
        _seen(win, axis, place) for axis, place in zip((1, 2), phase, strict=True)
    )
    if not rows or not columns:
        size = [-(-win.in_shape[axis] // win.stride[axis]) for axis in (1, 2)]
        return xp.zeros((dy.shape[0], *size, w.shape[2]), dy.dtype)
    taps = xp.stack([xp.stack([w[y, x].T for x in columns]) for y in rows])
    dy, pads = cropped(dy, (above, beside))
    # A phase of one tap is a matrix product: there may be one less.
    return convolve(xp, dy, taps, (1, 1), pads, at_once=math.prod(win.stride) - 1)


def _suits_products(w: Array, win: WindowGrid) -> bool:
    return win.size[1:3] == (3, 3) and win.stride[1:3] == (2, 2) and min(w.shape[2:]) >= MIN_PRODUCT_CHANNELS


def _products(xp: ArrayModule, w: Array, dy: Array, win: WindowGrid) -> list[Array]:
    """The phases of a 3 x 3 filter with stride 2."""
    height, width = (-(-win.in_shape[axis] // win.stride[axis]) for axis in (1, 2))
    beside = [_seen(win, 2, place) for place in (0, 1)]
    sights = [_neighbours(xp, dy, len(columns), before, width) for columns, (before, _) in beside]
    phases = []
    for rows, (above, _) in (_seen(win, 1, place) for place in (0, 1)):
        for (columns, (before, _)), seen in zip(beside, sights, strict=True):
            of_rows = []
            for i, row in enumerate(rows):
                taps = xp.concatenate([w[row, column].T for column in columns])
                parts = [(x.reshape(-1, len(taps)) @ taps).reshape(*x.shape[:3], -1) for x in seen]
                if len(parts) == 1:
                    moved = _moved(parts[0], 2, before, width)
                else:
                    moved = xp.stack(parts, 3).reshape(*dy.shape[:2], -1, taps.shape[-1])[:, :, :width]
                of_rows.append(_moved(moved, 1, above - i, height))
            phases.append(total(of_rows))
    return phases


def _neighbours(xp: ArrayModule, dy: Array, count: int, before: int, width: int) -> list[Array]:
    """The arrays of `dy` to convolve: [examples, rows, columns, channels].

    For `count` 2 these are two: what pairs of neighbouring columns see, those at even places and at odd places,
    with `before` columns of zeros before them.
    """
    if count == 1:
        return [dy]
    pairs = -(-width // 2)
    moved = [_moved(dy, 2, before - place, 2 * pairs) for place in (0, 1)]
    return [stored(xp, x).reshape(*dy.shape[:2], pairs, -1) for x in moved]


def _moved(x: Array, axis: int, before: int, wanted: int) -> Array:
    """So many places of an axis, `before` of them zeros before the first one; or without as many where that is negative."""
    from tensorfleet.kernels.xla import lax

    pads = [(0, 0, 0)] * x.ndim
    pads[axis] = (before, wanted - before - x.shape[axis], 0)
    return lax.pad(x, np.zeros((), x.dtype), pads) if any(pads[axis]) else x


def _seen(win: WindowGrid, axis: int, place: int) -> tuple[list[int], tuple[int, int]]:
    """The taps that see every input at a place within the stride, the last first, and the padding they need."""
    size, stride, first = win.size[axis], win.stride[axis], place + win.pads[axis][0]
    taps = [t for t in reversed(range(size)) if (first - t) % stride == 0]
    if not taps:
        return taps, (0, 0)
    before = (taps[0] - first) // stride
    wanted = -(-win.in_shape[axis] // stride)
    return taps, (before, wanted - win.out_shape[axis] - before + len(taps) - 1)
