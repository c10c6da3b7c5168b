"""Normal and truncated normal numbers, drawn from a Philox stream exactly as TensorFlow's CPU kernels draw them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.philox import (
    CHUNK,
    RESERVED_PER_OUTPUT,
    blocks,
    filled,
    run_traced,
    unit_double,
    unit_float,
)

#: Outputs that a block makes, and the type they are computed in.
_Group: TypeAlias = tuple[int, type]
_ROUND_BLOCKS = 3  # how many blocks a group of truncated normals takes at once


def _normal_floats(xp: ArrayModule, words: Array) -> Array:
    """Box-Muller on two pairs of words per block: float32[n, 4].

    Transcendentals are computed in double and rounded, so that both lives agree to the last bit;
    the C library's single-precision ones differ from these by one unit in one value of seventy.
    """
    if xp is not np:
        return _normal_floats_traced(xp, words)
    unit = unit_float(words).astype(np.float64)
    log = np.log(np.maximum(unit[:, 0::2], np.float64(np.float32(1e-7)))).astype(np.float32)
    radius = np.sqrt(np.float32(-2) * log)
    angle = (unit[:, 1::2] * (2 * np.pi)).astype(np.float32).astype(np.float64)
    sin, cos = np.sin(angle).astype(np.float32), np.cos(angle).astype(np.float32)
    return np.stack([sin * radius, cos * radius], -1).reshape(-1, 4)


def _normal_floats_traced(xp: ArrayModule, words: Array) -> Array:
    """The same in one loop of vectors; XLA's own functions of doubles go number by number."""
    from tensorfleet.kernels.xla import lax

    pairs = words.reshape(-1, 2, 2)
    units = (unit_float(xp.broadcast_to(pairs[:, :, i : i + 1], pairs.shape).reshape(-1)) for i in (0, 1))
    first, second = units  # of the pair that each of the results comes from
    log = log_traced(xp, xp.maximum(first, np.float32(1e-7)).astype(np.float64)).astype(np.float32)
    # the precision of a float32, which XLA may not optimize away
    angle = lax.reduce_precision(second.astype(np.float64) * (2 * np.pi), exponent_bits=8, mantissa_bits=23)
    wave = sin_traced(xp, angle, xp.arange(len(first), dtype=np.int32) & 1).astype(np.float32)
    return (wave * xp.sqrt(np.float32(-2) * log)).reshape(-1, 4)


def _series(x: Array, coefficients: list[float]) -> Array:
    """The polynomial with these coefficients, the constant one first."""
    total = coefficients[-2] + x * coefficients[-1]
    for c in coefficients[-3::-1]:
        total = c + x * total
    return total


_LOG_SERIES = [1 / k for k in range(3, 18, 2)]
_SIN_SERIES = [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, 7)]
_COS_SERIES = [(-1) ** k / math.factorial(2 * k) for k in range(8)]


def log_traced(xp: ArrayModule, x: Array) -> Array:
    """The natural logarithm of positive normal doubles, to a few units in the last place."""
    bits = x.view(np.int64)
    mantissa = (bits & np.int64((1 << 52) - 1) | np.int64(1023 << 52)).view(np.float64)
    large = mantissa > math.sqrt(2)
    mantissa = xp.where(large, mantissa / 2, mantissa)
    exponent = ((bits >> np.int64(52)) - np.int64(1023) + large).astype(np.float64)
    ratio = (mantissa - 1) / (mantissa + 1)
    square = ratio * ratio
    return exponent * math.log(2) + 2 * (ratio + ratio * square * _series(square, _LOG_SERIES))


def sin_traced(xp: ArrayModule, angle: Array, ahead: Array | int) -> Array:
    """The sine of doubles within one turn, `ahead` quarters of a turn later (1 gives the cosine)."""
    quarter = xp.round(angle * (2 / math.pi))
    rest = angle - quarter * (math.pi / 2)
    square = rest * rest
    sin = rest + rest * square * _series(square, _SIN_SERIES)
    quadrant = quarter.astype(np.int32) + ahead
    wave = xp.where((quadrant & 1) == 1, _series(square, _COS_SERIES), sin)
    return xp.where((quadrant & 2) == 2, -wave, wave)


def _normal_doubles(xp: ArrayModule, words: Array) -> Array:
    """Box-Muller on the two doubles of a block: float64[n, 2]."""
    unit = unit_double(words)
    radius = xp.sqrt(-2.0 * xp.log(xp.maximum(unit[:, 0], 1e-7)))
    angle = unit[:, 1] * (2 * np.pi)
    return xp.stack([xp.sin(angle) * radius, xp.cos(angle) * radius], -1)


def _normal_maker(xp: ArrayModule, dtype: np.dtype[Any]) -> tuple[Callable[[Array], Array], int, type]:
    """(convert, outputs per block, dtype computed in); 16-bit types are rounded from float32."""
    if dtype == np.float64:
        return (lambda words: _normal_doubles(xp, words)), 2, np.float64
    return (lambda words: _normal_floats(xp, words)), 4, np.float32


def random_standard_normal(
    xp: ArrayModule, rng: Array, shape: tuple[int, ...], dtype: np.dtype[Any] | type
) -> Array:
    """RandomStandardNormal of any float type."""
    dtype = np.dtype(dtype)
    convert, per_block, computed = _normal_maker(xp, dtype)
    return filled(xp, rng, shape, computed, per_block, convert).astype(dtype)


def truncated_normal(
    xp: ArrayModule, rng: Array, shape: tuple[int, ...], dtype: np.dtype[Any] | type
) -> Array:
    """TruncatedNormal of any float type: normals redrawn until within two deviations.

    A group of outputs (as many as a block makes) owns the blocks set aside for it and takes the first
    values in range from them, whatever the other groups do.
    """
    dtype = np.dtype(dtype)
    convert, per_group, computed = _normal_maker(xp, dtype)
    size = int(np.prod(shape, dtype=np.int64))
    groups = -(-size // per_group)
    stride = np.uint64(per_group * RESERVED_PER_OUTPUT // 4)
    fill = _truncated_on_host if xp is np else _truncated_traced
    values = fill(xp, rng, groups, stride, convert, (per_group, computed))
    return values.reshape(-1)[:size].reshape(shape).astype(dtype)


def _truncated_on_host(
    xp: ArrayModule,
    rng: Array,
    groups: int,
    stride: np.uint64,
    convert: Callable[[Array], Array],
    group: _Group,
) -> Array:
    width, dtype = group

    def draw(offsets: Array, drawn: int) -> tuple[Array, int]:
        # A few rows cost the calls, not the numbers: take enough blocks to be done in one pass.
        wanted = np.arange(drawn, drawn + (4 if len(offsets) < 512 else 1), dtype=np.uint64)
        fresh = convert(blocks(np, rng, (offsets[:, None] + wanted).reshape(-1)))
        return fresh.reshape(len(offsets), -1), drawn + len(wanted)

    values: Array = np.empty((groups, width), dtype)
    for start in range(0, groups, CHUNK):
        offsets = np.arange(start, min(start + CHUNK, groups), dtype=np.uint64) * stride
        part = values[start : start + len(offsets)]
        candidates, drawn = draw(offsets, 0)
        part[:] = candidates[:, :width]
        rows = np.flatnonzero((abs(part) >= 2).view(f"u{width}"))  # any() of so few is slow
        candidates = candidates[rows]
        while len(rows):
            inside = abs(candidates) < 2
            place = np.cumsum(inside, 1)
            full = place[:, -1] >= width
            kept = inside & (place <= width) & full[:, None]
            part[rows[full]] = candidates[kept].reshape(-1, width)
            rows, candidates = rows[~full], candidates[~full]
            if len(rows):
                fresh, drawn = draw(offsets[rows], drawn)
                candidates = np.concatenate([candidates, fresh], 1)
    return values


def _truncated_traced(
    xp: ArrayModule,
    rng: Array,
    groups: int,
    stride: np.uint64,
    convert: Callable[[Array], Array],
    group: _Group,
) -> Array:
    if groups <= CHUNK:
        return _redrawn_traced(xp, rng, xp.arange(groups, dtype=np.uint64) * stride, convert, group)
    # At most 17 groups in 100 miss at first, and among so many never more than a quarter (that would
    # be a hundred deviations): only so many rows are drawn anew. Surplus ones point past the end.
    values = convert(run_traced(xp, rng, groups, lambda i: i * stride))
    rows = xp.nonzero((abs(values) >= 2).any(1), size=groups // 4, fill_value=groups)[0]
    redrawn = _redrawn_traced(xp, rng, rows.astype(np.uint64) * stride, convert, group)
    from tensorfleet.kernels.xla import at

    return at(values, rows).set(redrawn, mode="drop")


def _redrawn_traced(
    xp: ArrayModule, rng: Array, offsets: Array, convert: Callable[[Array], Array], group: _Group
) -> Array:
    """The groups that begin at `offsets`, filled in rounds of a few blocks; there is hardly ever a second."""
    from tensorfleet.kernels.xla import lax

    (width, dtype), count, each = group, len(offsets), np.uint64(_ROUND_BLOCKS)

    def keep(carry: tuple[Array, Array], fresh: Array) -> tuple[tuple[Array, Array], None]:
        values, filled = carry
        return _keep_in_range(xp, values, filled, fresh), None

    def draw(carry: tuple[Array, tuple[Array, Array]]) -> tuple[Array, tuple[Array, Array]]:
        drawn, kept = carry
        words = run_traced(xp, rng, count * _ROUND_BLOCKS, lambda i: offsets[i // each] + drawn + i % each)
        fresh = convert(words).reshape(count, _ROUND_BLOCKS, width).swapaxes(0, 1)
        return drawn + each, lax.scan(keep, kept, fresh)[0]

    empty = (xp.zeros((count, width), dtype), xp.zeros(count, np.int32))
    state = lax.while_loop(lambda carry: (carry[1][1] < width).any(), draw, (xp.uint64(0), empty))
    values: Array = state[1][0]
    return values


def _keep_in_range(xp: ArrayModule, values: Array, filled: Array, candidates: Array) -> tuple[Array, Array]:
    """Put each row's in-range candidates into its free places, in order."""
    columns = list(values.T)
    for candidate in candidates.T:
        inside = abs(candidate) < 2
        for j, column in enumerate(columns):
            columns[j] = xp.where(inside & (filled == j), candidate, column)
        filled = filled + inside
    return xp.stack(columns, 1), filled
