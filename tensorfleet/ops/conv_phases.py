"""The gradient of a strided convolution's input, which is also the transposed convolution, once compiled.

With a stride of 2, say, inputs at even places are seen by some taps only and those at odd places by the others. So the
inputs fall into *phases*, each the result of a small convolution with stride 1, and these are laid between each other.
"""

import math

import numpy as np

from tensorfleet.ops.conv_library import convolve
from tensorfleet.ops.windows import Window, cropped


def suits(xp, win):
    """Whether a convolution is strided, and its filter has no gaps."""
    return xp is not np and len(win.stride) in (4, 5) and set(win.stride) != {1} == set(win.dilation)


def input_gradient(xp, w, dy, win):
    """The gradient of the input of the convolution with the filter `w`, given that of its result."""
    down, across = win.stride[1:3]
    phases = [_phase(xp, w, dy, win, (y, x)) for y in range(down) for x in range(across)]
    examples, rows, columns, channels = phases[0].shape
    # XLA joins what is put behind each other, and then moves it, in less time than what is put beside each other.
    made = xp.stack(phases).reshape(down, across, examples, rows, columns, channels)
    whole = made.transpose(2, 3, 0, 4, 1, 5).reshape(examples, rows * down, columns * across, channels)
    return whole[:, : win.in_shape[1], : win.in_shape[2]]


def volume_gradient(xp, w, dy, win, of_planes):
    """The same for volumes: planes of `dy` that an input plane is seen from become channels, one phase after another.

    `of_planes` gives the gradient of planes, from the filter, the gradient of the result and the windows.
    """
    stride, count = win.stride[1], -(-win.in_shape[1] // win.stride[1])
    rest = {name: (values[0], *values[2:]) for name, values in vars(win).items()}
    flat = Window(**rest).with_batch(dy.shape[0] * count)
    shape = (dy.shape[0], count, *flat.in_shape[1:])
    phases = []
    for place in range(stride):
        taps, beyond = _seen(win, 1, place)
        if not taps:
            phases.append(xp.zeros(shape, dy.dtype))
            continue
        padded = _padded(dy, beyond)
        seen = xp.concatenate([padded[:, i : i + count] for i in range(len(taps))], -1)
        filters = xp.concatenate([w[tap] for tap in taps], -1)
        phases.append(of_planes(filters, seen.reshape(-1, *seen.shape[2:]), flat).reshape(shape))
    made = xp.moveaxis(xp.stack(phases), 0, 2).reshape(dy.shape[0], count * stride, *shape[2:])
    return made[:, : win.in_shape[1]]


def _padded(dy, beyond):
    """`dy` with so many planes of zeros before and after it, or without as many where that is negative."""
    from jax import lax

    return lax.pad(dy, np.zeros((), dy.dtype), [(0, 0, 0), (*beyond, 0)] + [(0, 0, 0)] * (dy.ndim - 2))


def _phase(xp, w, dy, win, phase):
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


def _seen(win, axis, place):
    """The taps that see every input at a place within the stride, the last first, and the padding they need."""
    size, stride, first = win.size[axis], win.stride[axis], place + win.pads[axis][0]
    taps = [t for t in reversed(range(size)) if (first - t) % stride == 0]
    if not taps:
        return taps, (0, 0)
    before = (taps[0] - first) // stride
    wanted = -(-win.in_shape[axis] // stride)
    return taps, (before, wanted - win.out_shape[axis] - before + len(taps) - 1)
