"""Gamma and Poisson: numbers that are drawn until one is accepted, exactly as TensorFlow's CPU kernels draw them.

Each output has 256 blocks of the stream for its own and takes from them as many as it needs. In numpy those that have
not got their number yet go on together; compiled, the outputs of a small piece go on until the last has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels import philox
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.kernels.philox import RESERVED_PER_OUTPUT
from tensorfleet.kernels.philox_normal import log_traced, sin_traced

_SAMPLES_AT_ONCE = 1 << 13  # in numpy
_PIECE_OUTPUTS = 256  # outputs that wait for each other when compiled
_BLOCKS_PER_OUTPUT = np.uint64(RESERVED_PER_OUTPUT)


def random_gamma(xp: ArrayModule, rng: Array, shape: tuple[int, ...], alpha: Array) -> Array:
    """RandomGamma(alpha) with unit rate, of alpha's type: Marsaglia and Tsang's rejection."""
    alpha = xp.asarray(alpha)
    sample = _filled(_gammas) if xp is np else _gammas_traced
    return _sample_each(xp, rng, shape, alpha, alpha.dtype, sample)


def random_poisson(
    xp: ArrayModule, rng: Array, shape: tuple[int, ...], rate: Array, dtype: np.dtype[Any] | type
) -> Array:
    """RandomPoissonV2 of any number type: Knuth's products below a rate of 10, Hörmann's PTRS above."""
    highest = float(np.finfo(dtype).max if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max)
    sample = _filled(_poissons) if xp is np else _poissons_traced
    return _sample_each(
        xp, rng, shape, xp.asarray(rate), dtype, lambda stream, spread: sample(stream, spread, highest)
    )


def _sample_each(
    xp: ArrayModule,
    rng: Array,
    shape: tuple[int, ...],
    parameters: Array,
    dtype: np.dtype[Any] | type,
    sample: Callable[[Array, Array], Array],
) -> Array:
    """One sample per element of `shape` and per parameter; output shape is shape + parameters.shape."""
    samples = int(np.prod(shape, dtype=np.int64))
    spread = xp.repeat(parameters.astype(np.float64).reshape(-1), samples)
    wide = sample(rng, spread).reshape(parameters.size, samples)
    if np.dtype(dtype).itemsize == 2:  # TensorFlow narrows in two steps, each of which rounds
        wide = wide.astype(np.float32)
    drawn = wide.T.astype(dtype, order="C") if xp is np else wide.T.astype(dtype)
    return drawn.reshape(*shape, *parameters.shape)


# --- in numpy --------------------------------------------------------------------------------------


def _filled(sample: Callable[..., Array]) -> Callable[..., Array]:
    """A function of outputs, called with some of them at a time."""

    def filled(rng: Array, spread: Array, *limits: float) -> Array:
        table = np.empty(spread.size)

        def some(first: int, last: int) -> None:
            for start in range(first, last, _SAMPLES_AT_ONCE):
                stop = min(start + _SAMPLES_AT_ONCE, last)
                outputs = np.arange(start, stop, dtype=np.uint64)
                table[start:stop] = sample(rng, outputs, spread[start:stop], *limits)

        with np.errstate(all="ignore"):
            in_parts(some, spread.size, _SAMPLES_AT_ONCE)
        return table

    return filled


class _Supplies:
    """The stretches of the stream that belong to some outputs: doubles and normals in TensorFlow's order.

    Each output has one of its own. Each kind of number takes whole blocks, two numbers from each, the second
    number first.
    """

    def __init__(self, rng: Array, outputs: Array) -> None:
        self._rng, self._starts = rng, outputs * _BLOCKS_PER_OUTPUT
        self._taken = np.zeros(len(outputs), np.uint64)
        # NaN where an output has no number left: none that is drawn can be one.
        self._spare = {kind: np.full(len(outputs), np.nan) for kind in ("uniform", "normal")}

    def _next_blocks(self, rows: Array) -> Array:
        words = philox.blocks(np, self._rng, self._starts[rows] + self._taken[rows])
        self._taken[rows] += np.uint64(1)
        return philox.unit_double(words)

    def _next(self, kind: str, rows: Array, pairs_of: Callable[[Array], Sequence[Array] | Array]) -> Array:
        """One number for each of these outputs: what is left of its last block, or the first of a new one."""
        spare = self._spare[kind]
        numbers = spare[rows]
        spare[rows] = np.nan
        empty = np.flatnonzero(np.isnan(numbers))
        if len(empty):
            second, first = pairs_of(self._next_blocks(rows[empty]))
            numbers[empty] = first
            spare[rows[empty]] = second
        return numbers

    def uniform(self, rows: Array) -> Array:
        return self._next("uniform", rows, lambda units: units.T)

    def normal(self, rows: Array) -> Array:
        return self._next("normal", rows, _normals)


def _normals(units: Array) -> tuple[Array, Array]:
    radius, angle = np.sqrt(-2 * np.log(np.maximum(units[:, 0], 1e-7))), 2 * math.pi * units[:, 1]
    return np.sin(angle) * radius, np.cos(angle) * radius


def _gammas(rng: Array, outputs: Array, alpha: Array) -> Array:
    supplies = _Supplies(rng, outputs)
    result = np.where(alpha == 0, 0.0, np.nan)
    ones = np.flatnonzero(alpha == 1)
    result[ones] = -np.log1p(-supplies.uniform(ones))
    d = alpha + np.where(alpha < 1, 2.0 / 3, -1.0 / 3)
    c = 1.0 / 3 / np.sqrt(d)
    rows = np.flatnonzero((alpha > 0) & (alpha != 1))
    while len(rows):
        x = supplies.normal(rows)
        v = 1 + c[rows] * x
        tried = np.flatnonzero(v > 0)
        at, x, v = rows[tried], x[tried], v[tried]
        v = v * v * v
        u = supplies.uniform(at)
        good = (u < 1 - 0.0331 * (x * x) * (x * x)) | (u == 0)
        unsure = np.flatnonzero(~good)
        x, w = x[unsure], v[unsure]
        good[unsure] = np.log(u[unsure]) < 0.5 * x * x + d[at[unsure]] * (1 - w + np.log(w))
        result[at[good]] = d[at[good]] * v[good]
        again = np.ones(len(rows), bool)
        again[tried[good]] = False
        rows = rows[again]
    boosted = np.flatnonzero((alpha > 0) & (alpha < 1))
    result[boosted] *= supplies.uniform(boosted) ** (1 / alpha[boosted])
    return result


def _poissons(rng: Array, outputs: Array, rate: Array, highest: float) -> Array:
    result = rate.copy()  # what is infinite or no number stays so
    few, many = (
        np.flatnonzero((rate < 10) & np.isfinite(rate)),
        np.flatnonzero((rate >= 10) & np.isfinite(rate)),
    )
    result[few] = _knuth(rng, outputs[few], rate[few])
    result[many] = _hormann(_Supplies(rng, outputs[many]), rate[many], highest)
    return result


def _knuth(rng: Array, outputs: Array, rate: Array) -> Array:
    """How many products of uniform numbers stay above exp(-rate); all rows take a block, while they do."""
    events, enough = np.zeros(len(rate)), np.exp(-rate)
    rows, product, taken = np.arange(len(rate)), np.ones(len(rate)), np.uint64(0)
    while len(rows):
        units = philox.unit_double(philox.blocks(np, rng, outputs[rows] * _BLOCKS_PER_OUTPUT + taken))
        taken += np.uint64(1)
        first = product * units[:, 1]
        second = first * units[:, 0]
        more = second > enough
        events[rows] += np.add(first > enough, more, dtype=np.int64)
        kept = np.flatnonzero(more)
        rows, product, enough = rows[kept], second[kept], enough[kept]
    return events


def _hat(xp: ArrayModule, rate: Array) -> tuple[Array, Array, Array, Array]:
    """What Hörmann's method knows of a rate."""
    b = 0.931 + 2.53 * xp.sqrt(rate)
    return b, -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)


def _hormann(supplies: _Supplies, rate: Array, highest: float) -> Array:
    from scipy.special import gammaln

    b, a, inverse_alpha, sure = _hat(np, rate)
    result, rows = np.empty(len(rate)), np.arange(len(rate))
    while len(rows):
        u = supplies.uniform(rows) - 0.5
        v = supplies.uniform(rows)
        edge = 0.5 - np.abs(u)
        k = np.floor((2 * a[rows] / edge + b[rows]) * u + rate[rows] + 0.43)
        possible = (edge != 0) & (k <= highest)
        good = possible & (edge >= 0.07) & (v <= sure[rows])
        unsure = np.flatnonzero(possible & ~good & (k >= 0) & ((edge >= 0.013) | (v <= edge)))
        at, steps, near = rows[unsure], k[unsure], edge[unsure]
        bound = -rate[at] + steps * np.log(rate[at]) - gammaln(steps + 1)
        height = np.log(v[unsure] * inverse_alpha[at] / (a[at] / (near * near) + b[at]))
        good[unsure] = (v[unsure] == 0) | (height <= bound)
        result[rows[good]] = k[good]
        rows = rows[~good]
    return result


# --- compiled --------------------------------------------------------------------------------------
#
# XLA makes a block anew for each array that is computed of it, unless the block comes out of a loop. So the gammas' blocks
# do, and the loops of Poisson carry one array: numbers that tell by their sign, or by not being one, that their output
# goes on.


def _gammas_traced(rng: Array, alpha: Array) -> Array:
    from tensorfleet.kernels.xla import at, lax
    from tensorfleet.kernels.xla import jnp as xp

    real = xp.where(alpha > 0, alpha, 1.0)
    size = max(_PIECE_OUTPUTS, alpha.size // 16)  # outputs that go on at once; hardly ever more have to

    def rest(drawn: Array) -> Array:
        rows = xp.nonzero(xp.isnan(drawn), size=size, fill_value=alpha.size)[0]
        again = _gammas_tried(xp, rng, rows.astype(np.uint64), real[rows])
        return at(drawn, rows).set(again, mode="drop")

    first = _gammas_at_first(xp, rng, real)
    gammas = lax.while_loop(lambda gammas: xp.isnan(gammas).any(), rest, first)
    return xp.where(alpha > 0, gammas, xp.where(alpha == 0, 0.0, np.nan))


def _normals_traced(xp: ArrayModule, first: Array, second: Array) -> list[Array]:
    radius, angle = xp.sqrt(-2 * log_traced(xp, xp.maximum(first, 1e-7))), 2 * math.pi * second
    return [radius * sin_traced(xp, angle, ahead) for ahead in (1, 0)]


def _tried(xp: ArrayModule, d: Array, x: Array, v: Array, u: Array) -> tuple[Array, Array]:
    """Whether a normal and a uniform number are accepted, and what they make."""
    cube = v * v * v
    good = (u < 1 - 0.0331 * (x * x) * (x * x)) | (u == 0)
    good |= log_traced(xp, u) < 0.5 * x * x + d * (1 - cube + log_traced(xp, cube))
    return good & (v > 0), d * cube


def _slopes(xp: ArrayModule, alpha: Array) -> tuple[Array, Array]:
    d = alpha + xp.where(alpha < 1, 2.0 / 3, -1.0 / 3)
    return d, 1.0 / 3 / xp.sqrt(d)


def _boosted(xp: ArrayModule, alpha: Array, drawn: Array, u: Array) -> Array:
    """The number for alpha, given that of alpha + 1 where alpha is below 1, and one more uniform number."""
    # The power of u; the two functions together take a fifth of the time of the one.
    less = xp.where(alpha < 1, drawn * xp.exp(log_traced(xp, u) / alpha), drawn)
    return xp.where(alpha == 1, -log_traced(xp, 1 - u), xp.where((alpha < 1) & (u == 0), 0.0, less))


def _gammas_at_first(xp: ArrayModule, rng: Array, alpha: Array) -> Array:
    """What the first two blocks of each output make; no number where they are not enough."""
    one = np.uint64(1)
    words = philox.run_traced(xp, rng, 2 * alpha.size, lambda i: (i >> one) * _BLOCKS_PER_OUTPUT + (i & one))
    normals, uniforms = (philox.doubles_of(words.reshape(-1, 2, 4)[:, i].T) for i in (0, 1))
    (x1, x2), (u2, u1), (d, c) = _normals_traced(xp, *normals), uniforms, _slopes(xp, alpha)
    v1, v2 = 1 + c * x1, 1 + c * x2
    good1, made1 = _tried(xp, d, x1, v1, u1)
    good2, made2 = _tried(xp, d, x2, v2, xp.where(v1 > 0, u2, u1))
    short = ~good1 & (v1 > 0) & (alpha < 1)  # both uniform numbers are taken
    sample = xp.where(good1, made1, xp.where(good2 & ~short, made2, np.nan))
    # Where alpha is 1, a uniform number is all that is drawn.
    return _boosted(xp, alpha, sample, xp.where(alpha == 1, normals[1], u2))


def _gammas_tried(xp: ArrayModule, rng: Array, outputs: Array, alpha: Array) -> Array:
    """Two tries at a time: they take the two normals of a block, and a uniform number each unless v is negative."""
    from tensorfleet.kernels.xla import lax

    starts, (d, c) = outputs * _BLOCKS_PER_OUTPUT, _slopes(xp, alpha)

    def draw(state: list[Array]) -> list[Array]:
        samples, open_, taken, spare = (
            state  # of the last block of uniform numbers; below 0 when none is left
        )
        words = lax.map(lambda i: philox.blocks(xp, rng, starts + taken + i), xp.arange(2, dtype=np.uint64))
        normals, uniforms = (philox.doubles_of(w.T) for w in words)
        (x1, x2), (u2, u1) = _normals_traced(xp, *normals), uniforms
        v1, v2 = 1 + c * x1, 1 + c * x2
        kept = spare >= 0
        next1, next2 = xp.where(kept, spare, u1), xp.where(kept, u1, u2)
        good1, made1 = _tried(xp, d, x1, v1, next1)
        good2, made2 = _tried(xp, d, x2, v2, xp.where(v1 > 0, next2, next1))
        used = (v1 > 0).astype(np.int32) + (~good1 & (v2 > 0))
        new = used > kept
        # Two of a new block and one that was left, less those used: never more than one.
        rest = xp.where(kept + 2 * new - used == 1, xp.where(new, u2, spare), -1.0)
        further = taken + np.uint64(1) + new.astype(np.uint64)
        now = (xp.where(good1, made1, made2), open_ & ~good1 & ~good2, further, rest)
        return [xp.where(open_, a, b) for a, b in zip(now, state, strict=True)]

    nothing = xp.zeros(alpha.shape)
    start = [nothing, alpha != 1, nothing.astype(np.uint64), nothing - 1]
    samples, _, taken, spare = lax.while_loop(lambda state: state[1].any(), draw, start)
    fresh = philox.doubles_traced(rng, starts + taken)[1]
    return _boosted(xp, alpha, samples, xp.where(spare >= 0, spare, fresh))


def _poissons_traced(rng: Array, rate: Array, highest: float) -> Array:
    from tensorfleet.kernels.xla import jnp as xp
    from tensorfleet.kernels.xla import lax

    few, many = (rate < 10) & xp.isfinite(rate), (rate >= 10) & xp.isfinite(rate)
    pieces = -(-rate.size // _PIECE_OUTPUTS)
    starts = xp.arange(pieces * _PIECE_OUTPUTS, dtype=np.uint64) * _BLOCKS_PER_OUTPUT

    def sample(piece: list[Array]) -> Array:
        starts, rate, many = piece
        samples = xp.where(many, np.nan, _knuth_traced(xp, rng, starts, xp.where(many, 0.0, rate)))
        return _hormann_traced(xp, rng, starts, rate, samples, highest)

    given = [xp.pad(x, (0, len(starts) - rate.size)) for x in (xp.where(few | many, rate, 0.0), many)]
    samples = lax.map(sample, [x.reshape(pieces, _PIECE_OUTPUTS) for x in (starts, *given)])
    return xp.where(few | many, samples.reshape(-1)[: rate.size], rate)


def _knuth_traced(xp: ArrayModule, rng: Array, starts: Array, rate: Array) -> Array:
    """The products while they are large enough: those who go on have all had two events for each block."""
    from tensorfleet.kernels.xla import lax

    enough = xp.exp(-rate)

    def draw(state: tuple[Array, Array]) -> tuple[Array, Array]:
        taken, product = state
        for _ in range(2):  # a turn of the loop costs as much as a block
            second, first = philox.doubles_traced(rng, starts + taken)
            first = product * first
            second = first * second
            events = 2.0 * taken.astype(np.float64) + (first > enough)
            now = xp.where(second > enough, second, -events)
            taken, product = taken + np.uint64(1), xp.where(product > 0, now, product)
        return taken, product

    start = (np.uint64(0), xp.where(enough < 1, 1.0, 0.0))
    products: Array = lax.while_loop(lambda state: (state[1] > 0).any(), draw, start)[1]
    return -products


def _hormann_traced(
    xp: ArrayModule, rng: Array, starts: Array, rate: Array, drawn: Array, highest: float
) -> Array:
    """Fills in what is no number yet."""
    from tensorfleet.kernels.xla import lax

    b, a, inverse_alpha, sure = _hat(xp, rate)

    def draw(state: tuple[Array, Array]) -> tuple[Array, Array]:
        taken, samples = state
        v, u = philox.doubles_traced(rng, starts + taken)
        u = u - 0.5
        edge = 0.5 - xp.abs(u)
        k = xp.floor((2 * a / edge + b) * u + rate + 0.43)
        possible = (edge != 0) & (k <= highest)
        good = possible & (edge >= 0.07) & (v <= sure)
        unsure = possible & (k >= 0) & ((edge >= 0.013) | (v <= edge))
        bound = -rate + k * log_traced(xp, rate) - _log_factorial(xp, k)
        height = log_traced(xp, v * inverse_alpha / (a / (edge * edge) + b))
        good |= unsure & ((v == 0) | (height <= bound))
        return taken + np.uint64(1), xp.where(xp.isnan(samples) & good, k, samples)

    filled: Array = lax.while_loop(lambda state: xp.isnan(state[1]).any(), draw, (np.uint64(0), drawn))[1]
    return filled


_STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360]


def _log_factorial(xp: ArrayModule, k: Array) -> Array:
    """The logarithm of k!, by Stirling's series; of small numbers that of (k + 8)! without the last eight factors."""
    small = k < 16
    product = (k + 1) * (k + 2) * (k + 3) * (k + 4) * (k + 5) * (k + 6) * (k + 7) * (k + 8)
    x = xp.where(small, k + 9, k + 1)
    series = xp.zeros_like(x)
    for term in reversed(_STIRLING):
        series = series / (x * x) + term
    whole = (x - 0.5) * log_traced(xp, x) - x + 0.5 * math.log(2 * math.pi) + series / x
    return whole - log_traced(xp, xp.where(small, xp.abs(product), 1.0))
