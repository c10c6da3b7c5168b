"""Sliding windows: the geometry that convolutions and pools share, and reading and writing through it.

A `WindowGrid` describes every axis of a tensor, batch and channels included (there the window is one wide),
so the same code serves any rank and any layout. A *tap* is one position inside the window; tap `t` of all
windows at once is a strided slice of the padded input, shaped like the output.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tensorfleet.base.types import Array, ArrayModule, Dims
from tensorfleet.kernels.aligned_memory import stored

#: Padding before and after, per axis.
Pairs: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class WindowGrid:
    """Where windows fall on a tensor; each field has one entry per axis of it."""

    in_shape: Dims
    size: Dims
    stride: Dims
    dilation: Dims
    pads: Pairs
    out_shape: Dims

    def taps(self) -> Iterator[Dims]:
        """Every position inside the window, in row-major order."""
        return itertools.product(*map(range, self.size))

    def with_batch(self, n: int) -> WindowGrid:
        """The same windows over another number of examples."""
        return replace(self, in_shape=(n, *self.in_shape[1:]), out_shape=(n, *self.out_shape[1:]))

    def with_channels(self, n: int) -> WindowGrid:
        """The same windows over another number of channels, for a channels-last window."""
        return replace(self, in_shape=(*self.in_shape[:-1], n), out_shape=(*self.out_shape[:-1], n))

    def without(self, axis: int) -> WindowGrid:
        """The same windows over a tensor without one of its axes."""
        return WindowGrid(*[(*v[:axis], *v[axis + 1 :]) for v in vars(self).values()])

    def along(self, axis: int, in_shape: Dims) -> WindowGrid:
        """Windows along one axis only, over a tensor of `in_shape`."""

        def only(values: Dims) -> Dims:
            return tuple(v if i == axis else 1 for i, v in enumerate(values))

        pads = tuple(pair if i == axis else (0, 0) for i, pair in enumerate(self.pads))
        out = tuple(self.out_shape[i] if i == axis else n for i, n in enumerate(in_shape))
        return WindowGrid(tuple(in_shape), only(self.size), only(self.stride), only(self.dilation), pads, out)

    def flat(self) -> WindowGrid:
        """The same windows over a tensor that is one wide wherever the window does not slide."""
        slides = [k > 1 or s > 1 for k, s in zip(self.size, self.stride, strict=True)]
        in_shape = tuple(n if w else 1 for n, w in zip(self.in_shape, slides, strict=True))
        out_shape = tuple(n if w else 1 for n, w in zip(self.out_shape, slides, strict=True))
        return replace(self, in_shape=in_shape, out_shape=out_shape)

    @property
    def is_padded(self) -> bool:
        """Whether any side has padding."""
        return any(lo or hi for lo, hi in self.pads)

    @property
    def is_tiled(self) -> bool:
        """Whether windows lie side by side, so that no input is seen by two of them."""
        return self.size == self.stride and set(self.dilation) == {1}

    def offsets(self, tap: Dims) -> Dims:
        """Where a tap's slice starts in the padded input."""
        return tuple(t * d for t, d in zip(tap, self.dilation, strict=True))


def padding_name(padding: bytes | str) -> str:
    """The padding attribute as upper-case text, whether it came as bytes or str."""
    name = (padding.decode() if isinstance(padding, bytes) else str(padding)).upper()
    if name not in ("SAME", "VALID", "EXPLICIT"):
        raise ValueError(f"padding must be SAME, VALID or EXPLICIT, but got {name!r}")
    return name


def format_name(data_format: bytes | str) -> str:
    """The data_format attribute as text."""
    return data_format.decode() if isinstance(data_format, bytes) else data_format


def channel_axis(data_format: bytes | str) -> int:
    """The axis of the channels in a layout such as NHWC or NCDHW."""
    return format_name(data_format).index("C")


def output_size(
    size: int | None,
    window: int | None,
    stride: int,
    padding: bytes | str,
    dilation: int = 1,
    explicit: tuple[int, int] = (0, 0),
) -> int | None:
    """How many windows fit along one axis; None when the size or the window is unknown."""
    if stride <= 0:
        raise ValueError(f"Stride must be > 0, but got {stride}")
    if dilation <= 0:
        raise ValueError(f"Dilation rate must be > 0, but got {dilation}")
    name = padding_name(padding)
    # With SAME the result depends on the stride alone, so the window may be unknown.
    if name == "SAME" and size is not None:
        return -(-size // stride)
    if size is None or window is None:
        return None
    size += sum(explicit) if name == "EXPLICIT" else 0
    extent = (window - 1) * dilation + 1
    if extent == 1 and stride == 1:
        return size  # also of an empty batch, over which nothing slides
    if extent > size:
        raise ValueError(f"Negative dimension size caused by subtracting {extent} from {size}")
    return (size - extent + stride) // stride


def pad_amounts(
    size: int,
    window: int,
    stride: int,
    padding: bytes | str,
    dilation: int = 1,
    explicit: tuple[int, int] = (0, 0),
) -> tuple[int, int]:
    """Padding (before, after) along one axis. SAME puts the odd cell after, as TensorFlow does."""
    name = padding_name(padding)
    if name == "VALID":
        return (0, 0)
    if name == "EXPLICIT":
        return explicit
    extent = (window - 1) * dilation + 1
    total = max((-(-size // stride) - 1) * stride + extent - size, 0)
    return (total // 2, total - total // 2)


def explicit_pairs(explicit_paddings: Sequence[int], rank: int) -> Pairs:
    """The flat explicit_paddings attribute as one (before, after) pair per axis."""
    flat = tuple(int(p) for p in explicit_paddings)
    if not flat:
        return ((0, 0),) * rank
    if len(flat) != 2 * rank:
        raise ValueError(f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(flat)}")
    if min(flat) < 0:
        raise ValueError("All elements of explicit_paddings must be nonnegative")
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def make_window(
    in_shape: Sequence[int],
    size: Sequence[int],
    strides: Sequence[int],
    padding: bytes | str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] | None = None,
) -> WindowGrid:
    """The WindowGrid of an op over a tensor of `in_shape`; all lists follow that tensor's layout."""
    rank = len(in_shape)
    steps = tuple(dilations or (1,) * rank)
    axes = list(zip(in_shape, size, strides, steps, explicit_pairs(explicit_paddings, rank), strict=True))
    pads = tuple(pad_amounts(n, k, s, padding, d, e) for n, k, s, d, e in axes)
    out = tuple(output_size(n, k, s, padding, d, e) or 0 for n, k, s, d, e in axes)  # none is unknown here
    return WindowGrid(tuple(in_shape), tuple(size), tuple(strides), steps, pads, out)


def windowed_shape(
    in_shape: Sequence[int | None],
    size: Sequence[int | None],
    strides: Sequence[int],
    padding: bytes | str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] | None = None,
) -> tuple[int | None, ...]:
    """The shape of one value per window; None where a dimension is unknown."""
    rank = len(in_shape)
    explicit = explicit_pairs(explicit_paddings, rank)
    axes = zip(in_shape, size, strides, dilations or (1,) * rank, explicit, strict=True)
    return tuple(output_size(n, k, s, padding, d, e) for n, k, s, d, e in axes)


def require_rank(shape: Sequence[int | None] | None, rank: int) -> None:
    """Refuses a shape of another rank, in TensorFlow's words; an unknown shape passes."""
    if shape is not None and len(shape) != rank:
        raise ValueError(f"Shape must be rank {rank} but is rank {len(shape)}")


def cropped(x: Array, pads: Sequence[tuple[int, int]]) -> tuple[Array, Pairs]:
    """A channels-last `x` without what negative padding of its spatial axes takes away, and the padding that is left.

    XLA's convolution with negative padding reads what lies behind the array.
    """
    axes = zip(x.shape[1:-1], pads, strict=True)
    inner = [slice(max(-low, 0), n + min(high, 0)) for n, (low, high) in axes]
    return x[(slice(None), *inner)], tuple((max(low, 0), max(high, 0)) for low, high in pads)


def pad(xp: ArrayModule, x: Array, win: WindowGrid, value: float = 0) -> Array:
    """The input with the window's padding around it."""
    return xp.pad(x, win.pads, constant_values=value) if win.is_padded else x


def take(xp: ArrayModule, padded: Array, win: WindowGrid, tap: Dims) -> Array:
    """One tap of all windows: a strided slice of the padded input, shaped like the output."""
    start = win.offsets(tap)
    limit = [
        b + (n - 1) * s + 1 if n else b for b, n, s in zip(start, win.out_shape, win.stride, strict=True)
    ]
    if xp is np:
        return padded[tuple(map(slice, start, limit, win.stride))]
    from tensorfleet.kernels.xla import lax

    return lax.slice(padded, start, limit, win.stride)


def scatter(xp: ArrayModule, parts: Iterable[tuple[Dims, Array]], win: WindowGrid) -> Array:
    """The transpose of `take`: adds (tap, values) pairs into a tensor of the input's shape."""
    if xp is np:
        return _scatter_numpy(parts, win)
    if win.is_tiled:
        # Nothing overlaps, so XLA only has to move values. Adding would read and write the input once per tap.
        return _interleave_jax(xp, [values for _, values in parts], win)
    return functools.reduce(operator.add, (_place_jax(xp, values, win, tap) for tap, values in parts))


def _scatter_numpy(parts: Iterable[tuple[Dims, Array]], win: WindowGrid) -> Array:
    total: Array = np.empty(0)
    for i, (tap, values) in enumerate(parts):
        if i == 0:
            shape = [lo + n + hi for n, (lo, hi) in zip(win.in_shape, win.pads, strict=True)]
            total = np.zeros(shape, values.dtype)
        take(np, total, win, tap)[...] += values
    return total[tuple(slice(lo, lo + n) for n, (lo, _) in zip(win.in_shape, win.pads, strict=True))]


def spread(values: Array, win: WindowGrid, fill: int = 0) -> Array:
    """A traced value per window, put where `seen` finds it; `fill` where there is no window."""
    from tensorfleet.kernels.xla import lax

    config = []
    sizes = zip(win.size, win.dilation, win.stride, win.pads, win.in_shape, win.out_shape, strict=True)
    for k, d, s, (lo, _), n, m in sizes:
        config.append(((k - 1) * d - lo, n + lo - ((m - 1) * s + 1), s - 1))
    return lax.pad(values, np.asarray(fill, values.dtype), config)


def seen(spread_values: Array, win: WindowGrid, tap: Dims) -> Array:
    """For each input the value, out of `spread`, of the window that sees it as this tap."""
    from tensorfleet.kernels.xla import lax

    start = [(k - 1 - t) * d for k, t, d in zip(win.size, tap, win.dilation, strict=True)]
    return lax.slice(spread_values, start, [a + n for a, n in zip(start, win.in_shape, strict=True)])


def look_up(
    xp: ArrayModule,
    win: WindowGrid,
    arrays: Sequence[Array] | Array,
    fills: Sequence[int],
    value: Callable[..., Array],
) -> Array:
    """For each input the sum of what the windows that see it have for it, traced.

    `arrays` have an element per window, and `fills` are what they have where there is none; `value` gets the number of a
    tap and elements of the arrays. Inputs fall into phases by their place within the stride: all inputs of one phase are
    seen as the same taps.
    """
    from tensorfleet.kernels.xla import lax

    sizes = zip(win.size, win.stride, win.dilation, win.pads, strict=True)
    axes = [_phases(*axis) for axis in sizes]
    counts = [-(-n // s) for n, s in zip(win.in_shape, win.stride, strict=True)]
    offsets = [[offset for phase in axis for _, offset in phase] or [0] for axis in axes]
    # Padding as far as any phase looks: no slice leaves the arrays.
    around = [
        (max(0, -min(some)), max(0, max(some) + count - n), 0)
        for some, count, n in zip(offsets, counts, win.out_shape, strict=True)
    ]
    padded = [
        stored(xp, lax.pad(a, np.asarray(fill, a.dtype), around))
        for a, fill in zip(arrays, fills, strict=True)
    ]
    parts = []
    for phase in itertools.product(*axes):
        values = []
        for places in itertools.product(*phase):
            number = np.ravel_multi_index([tap for tap, _ in places], win.size)
            start = [offset + low for (_, offset), (low, _, _) in zip(places, around, strict=True)]
            limit = [begin + count for begin, count in zip(start, counts, strict=True)]
            values.append(value(int(number), *[lax.slice(a, start, limit) for a in padded]))
        parts.append(sum(values[1:], values[0]) if values else xp.zeros(counts, arrays[-1].dtype))
    none = ((0, 0),) * len(counts)
    return _interleave_jax(xp, parts, replace(win, size=win.stride, pads=none))


def _phases(size: int, stride: int, dilation: int, pads: tuple[int, int]) -> list[list[tuple[int, int]]]:
    """For each place within the stride along one axis: the taps that see inputs there, and of which window from there."""
    return [
        [
            (tap, (place + pads[0] - tap * dilation) // stride)
            for tap in range(size)
            if (place + pads[0] - tap * dilation) % stride == 0
        ]
        for place in range(stride)
    ]


def _place_jax(xp: ArrayModule, values: Array, win: WindowGrid, tap: Dims) -> Array:
    """`values` spread out to their places in the unpadded input; what falls into padding is cropped."""
    from tensorfleet.kernels.xla import lax

    config = []
    for begin, (lo, _), n, m, s in zip(
        win.offsets(tap), win.pads, win.in_shape, win.out_shape, win.stride, strict=True
    ):
        low = begin - lo
        config.append((low, n - (low + (m - 1) * s + 1), s - 1))
    return lax.pad(values, xp.zeros((), values.dtype), config)


def _interleave_jax(xp: ArrayModule, parts: list[Array], win: WindowGrid) -> Array:
    """All taps of windows that lie side by side, woven together: nothing has to be added."""
    from tensorfleet.kernels.xla import lax

    for axis in reversed(range(len(win.size))):
        k = win.size[axis]
        if k > 1:
            groups = [xp.stack(parts[i : i + k], axis + 1) for i in range(0, len(parts), k)]
            parts = [g.reshape(*g.shape[:axis], g.shape[axis] * k, *g.shape[axis + 2 :]) for g in groups]
    (woven,) = parts
    sizes = zip(win.in_shape, woven.shape, win.pads, strict=True)
    return lax.pad(woven, xp.zeros((), woven.dtype), [(-lo, n - m + lo, 0) for n, m, (lo, _) in sizes])
