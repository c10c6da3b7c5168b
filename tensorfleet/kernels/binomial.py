"""How many of some trials succeed, each with a probability.

Where ten successes or more are to be expected, the numbers are those that TensorFlow's CPU kernel draws; below, others of
the same distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.types import Array
from tensorfleet.kernels import philox

_MIN_HORMANN_SUCCESSES = (
    10  # expected; with fewer, adding up geometric numbers is faster than Hormann's method
)
# Tails of Stirling's series, for small numbers.
_TAILS = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.010411265261972,
    0.00925546218271273,
    0.00833056343336287,
)


def binomials(
    stream: Array, shape: tuple[int, ...], counts: Array, probs: Array, dtype: np.dtype[Any]
) -> Array:
    """One number for each pair of a count and a probability, and as many as the shape has in front of those."""
    batch = np.broadcast_shapes(counts.shape, probs.shape)
    if shape[len(shape) - len(batch) :] != batch:
        raise errors.invalid(
            f"Shape passed in must end with broadcasted shape: got {list(shape)} for {list(batch)}"
        )
    pairs = list(
        zip(
            *(np.broadcast_to(v, batch).ravel().astype(np.float64).tolist() for v in (counts, probs)),
            strict=True,
        )
    )
    samples = int(np.prod(shape[: len(shape) - len(batch)], dtype=np.int64))
    drawn = np.zeros((samples, len(pairs)))
    for i, (count, prob) in enumerate(pairs):
        for j in range(samples):
            units = _units(stream, (i * samples + j) * philox.RESERVED_PER_OUTPUT)
            drawn[j, i] = _drawn(units, count, prob)
    return drawn.reshape(shape).astype(dtype)


def _units(stream: Array, start: int) -> Iterator[float]:
    """Numbers between 0 and 1; of the two of a block the second comes first."""
    at = start
    while True:
        words = philox.blocks(np, stream, np.array([at], np.uint64))
        first, second = philox.unit_double(words).ravel().tolist()
        yield second
        yield first
        at += 1


def _drawn(units: Iterator[float], count: float, prob: float) -> float:
    if math.isnan(count) or math.isnan(prob) or count < 0 or prob > 1:
        return math.nan
    if count <= 0 or prob <= 0:
        return 0.0
    if prob == 1:
        return count
    less = prob if prob <= 0.5 else 1 - prob
    successes = (
        _by_tries(units, count, less)
        if count * less < _MIN_HORMANN_SUCCESSES
        else _by_rejection(units, count, less)
    )
    return successes if prob <= 0.5 else count - successes


def _by_tries(units: Iterator[float], count: float, prob: float) -> float:
    """Sums the tries up to each success until there are more than allowed."""
    tries, successes = 0.0, 0
    while True:
        tries += math.ceil(math.log(next(units)) / math.log1p(-prob))
        if tries > count:
            return successes
        successes += 1


def _by_rejection(units: Iterator[float], count: float, prob: float) -> float:
    """Hormann's transformed rejection with squeeze."""
    spread = math.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c = count * prob + 0.5
    v_r = 0.92 - 4.2 / b
    ratio = prob / (1 - prob)
    alpha = (2.83 + 5.1 / b) * spread
    m = math.floor((count + 1) * prob)
    while True:
        u = next(units) - 0.5
        v = next(units)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or k > count:
            continue
        v = math.log(v * alpha / (a / (us * us) + b))
        limit = (
            (m + 0.5) * math.log((m + 1) / (ratio * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(ratio * (count - k + 1) / (k + 1))
            + _tail(m)
            + _tail(count - m)
            - _tail(k)
            - _tail(count - k)
        )
        if v <= limit:
            return k


def _tail(k: float) -> float:
    if k < len(_TAILS):
        return _TAILS[int(k)]
    square = (k + 1) ** 2
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
