"""Convolutions of planes for the library that XLA may hand them to, in parts that run side by side.

That library needs less processor time than XLA's own convolution but does each one in a single thread. XLA runs operations
of a program side by side when more than a few of them are ready at the same time, so a large convolution is made of so
many parts: some rows of the result each. Every part is given the whole image, and negative padding leaves out what it
does not see: nothing is copied before, and XLA has no loops to compile for it.

XLA's own convolution reads past the image when padding is negative. So this is done only where a program is traced in
`offered`, by somebody who sees to it that all of it goes to the library.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tensorfleet.base.types import Array, ArrayModule, Dims

# XLA divides what is ready among its threads when more than 8 operations wait behind the one that it takes.
PARTS = 10
# Fewer multiplications are done before a second thread has begun.
MIN_DIVIDED_PRODUCTS = 12_000_000
# The library leaves convolutions of no more channels than this, before and after, to XLA.
MAX_XLA_CHANNELS = 16

#: Along one axis: inputs, taps, stride, padding and dilation.
_Axis: TypeAlias = tuple[int, int, int, tuple[int, int], int]
_LAYOUT = ("NHWC", "HWIO", "NHWC")
_of_thread = threading.local()


class Offer:
    """What a program that is being traced may use; `taken` tells whether it does."""

    def __init__(self) -> None:
        self.taken = False


@contextlib.contextmanager
def offered(is_offered: bool = True) -> Iterator[Offer]:
    """Lets what is traced inside use parts of images, which only the library can do."""
    # A trace may start another: each sees its own offer, and the outer one comes back after.
    before = getattr(_of_thread, "offer", None)
    _of_thread.offer = offer = Offer()
    if not is_offered:
        _of_thread.offer = None
    try:
        yield offer
    finally:
        _of_thread.offer = before


def convolve(
    xp: ArrayModule,
    x: Array,
    w: Array,
    stride: Dims,
    pads: Sequence[tuple[int, int]],
    dilation: Dims = (1, 1),
    at_once: int = 1,
    across: int = 1,
    joining: bool = False,
) -> Array:
    """The convolution of `x`, channels last, with the filter `w` [height, width, in, out].

    `at_once` tells how many of the kind a program has side by side anyway, and `across` into how many parts of its columns
    the result may be divided when it has few rows. One that is `joining` is divided only if something in the program was
    before: all convolutions of a program are the library's or none is. More than one loop should read it only when it is `stored`: each would
    look up for every element which part that is in.
    """
    from tensorfleet.kernels.xla import lax

    geometry = list(zip(x.shape[1:3], w.shape[:2], stride, pads, dilation, strict=True))
    counts = [_windows(*axis) for axis in geometry]
    offer = getattr(_of_thread, "offer", None)
    parts = [1, 1]
    if offer is not None and (offer.taken or not joining) and _suits(x, w, geometry, counts):
        parts = _division(x, w, counts, at_once, across, any(map(any, pads)))
        offer.taken |= parts != [1, 1]
    if parts == [1, 1] and w.shape[1] > 1 and not any(map(any, pads)):
        # XLA takes twice as long where nothing is padded: one window more on the right, which is cut off again.
        wider = (pads[0], (0, stride[1]))
        y = lax.conv_general_dilated(x, w, stride, wider, rhs_dilation=dilation, dimension_numbers=_LAYOUT)
        return y[:, :, : counts[1]]
    if parts == [1, 1]:
        return lax.conv_general_dilated(x, w, stride, pads, rhs_dilation=dilation, dimension_numbers=_LAYOUT)
    cuts = [_cut(*axis, n, count) for axis, n, count in zip(geometry, counts, parts, strict=True)]
    rows = []
    for down in cuts[0]:
        pieces = [
            lax.conv_general_dilated(
                x, w, stride, (down, side), rhs_dilation=dilation, dimension_numbers=_LAYOUT
            )
            for side in cuts[1]
        ]
        rows.append(pieces[0] if len(pieces) == 1 else xp.concatenate(pieces, 2))
    return rows[0] if len(rows) == 1 else xp.concatenate(rows, 1)


def _windows(seen: int, taps: int, stride: int, pads: tuple[int, int], dilation: int) -> int:
    """How many windows there are along an axis."""
    return (seen + sum(pads) - (taps - 1) * dilation - 1) // stride + 1


def _suits(x: Array, w: Array, geometry: list[_Axis], counts: list[int]) -> bool:
    """Whether the library takes a convolution, whatever its padding; and each of its windows sees some of the image."""
    return (
        str(x.dtype) == "float32"
        and x.size > 0
        and math.prod(w.shape[:2]) > 1  # or it is a matrix product
        and max(w.shape[2:]) > MAX_XLA_CHANNELS
        and all(
            0 < n <= seen and taps <= seen and min(pads) >= 0 and max(pads) <= (taps - 1) * dilation
            for (seen, taps, _, pads, dilation), n in zip(geometry, counts, strict=True)
        )
    )


def _division(x: Array, w: Array, counts: list[int], at_once: int, across: int, is_padded: bool) -> list[int]:
    """Into how many parts the rows and the columns of a result are divided."""
    work = x.shape[0] * math.prod(counts) * math.prod(w.shape)
    wanted = -(-PARTS // at_once) if work * at_once >= MIN_DIVIDED_PRODUCTS else 1
    if wanted == 1 and not is_padded:
        wanted = 2  # the library is slow where nothing is padded
    if counts[0] >= wanted:
        return [wanted, 1]
    if counts[1] >= wanted and counts[0] == 1:
        return [1, wanted]
    if counts[0] * across >= wanted:
        return [-(-wanted // across), across]
    return [1, 1]


def _cut(
    seen: int, taps: int, stride: int, pads: tuple[int, int], dilation: int, windows: int, count: int
) -> list[tuple[int, int]]:
    """The padding of each of so many parts along an axis."""
    reach, ends = (taps - 1) * dilation + 1, [windows * i // count for i in range(count + 1)]
    return [
        (pads[0] - begin * stride, (end - 1) * stride + reach - pads[0] - seen)
        for begin, end in itertools.pairwise(ends)
    ]
