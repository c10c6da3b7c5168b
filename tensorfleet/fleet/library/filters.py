"""Filters of pushes: what is sent now, in how many bits, and what is kept for the next push.

A filter sees the rows of a push, to which what earlier pushes kept back was added. It says which rows are sent and in
which form. What the servers then lack is kept, and added to the next push of the same rows (error feedback).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.types import Array
from tensorfleet.fleet.checking import positive_number, whole_number

_NO_SCALES = np.zeros(0, np.float32)


@dataclass(frozen=True)
class Sent:
    """Rows as they are sent: which ones, their values, and a scale for each row if the values are small numbers."""

    which: Array
    values: Array
    scales: Array

    def received(self, dtype: np.dtype[Any]) -> Array:
        """What the server makes of them."""
        full = self.values.astype(dtype, copy=False)
        if not self.scales.size:
            return full
        result: Array = full * self.scales.reshape(-1, 1).astype(dtype, copy=False)
        return result


class Filter:
    """A step of the way from rows to what is sent."""

    def chosen(self, rows: Array) -> Array:
        """The positions of the rows that are sent."""
        return np.arange(len(rows))

    def encoded(self, rows: Array) -> tuple[Array, Array]:
        """Rows in fewer bits, and the scale of each row, none if they have none."""
        return rows, _NO_SCALES


@export("fleet.Significant")
class Significant(Filter):
    """Sends only rows with a value of at least `threshold`, whatever its sign; the others add up until they have one."""

    def __init__(self, threshold: float) -> None:
        self.threshold = positive_number("threshold", threshold)

    def chosen(self, rows: Array) -> Array:
        """The positions of the rows that have changed significantly."""
        return np.flatnonzero(np.abs(rows).max(axis=1, initial=0) >= self.threshold)


@export("fleet.TopK")
class TopK(Filter):
    """Sends only the `count` rows with the largest sums of squares; the others add up until they are among them."""

    def __init__(self, count: int) -> None:
        self.count = whole_number("count", count, 1)

    def chosen(self, rows: Array) -> Array:
        """The positions of the largest rows, in order."""
        if len(rows) <= self.count:
            return np.arange(len(rows))
        sizes = np.square(rows, dtype=np.float64).sum(axis=1)
        return np.sort(np.argpartition(-sizes, self.count - 1)[: self.count])


@export("fleet.Bits")
class Bits(Filter):
    """Sends values in 16 or 8 bits. What is lost by rounding is added to the next push of the same rows."""

    def __init__(self, bits: int) -> None:
        if bits not in (8, 16):
            raise ValueError(f"bits must be 8 or 16, not {bits!r}.")
        self.bits = int(bits)

    def encoded(self, rows: Array) -> tuple[Array, Array]:
        """16 bits: halves with a scale for each row, so that none overflows. 8 bits: whole numbers with such a scale."""
        most = 127.0 if self.bits == 8 else 1024.0
        scales = (np.abs(rows).max(axis=1, initial=0) / most).astype(np.float32)
        scales[scales == 0] = 1
        scaled = rows / scales[:, None]
        if self.bits == 16:
            return scaled.astype(np.float16), scales
        return np.rint(scaled).astype(np.int8), scales


def select(filters: Sequence[Filter], rows: Array) -> Sent:
    """The rows that all filters let pass, as the last one that encodes them sends them."""
    which = np.arange(len(rows))
    for one in filters:
        which = which[one.chosen(rows[which])]
    values, scales = rows[which], _NO_SCALES
    for one in filters:
        if isinstance(one, Bits):
            values, scales = one.encoded(values)
    return Sent(which, values, scales)


def check(filters: object) -> tuple[Filter, ...]:
    """Filters as a tuple; TypeError for anything that is none, ValueError for two that encode."""
    given = tuple(filters) if isinstance(filters, (list, tuple)) else (filters,)
    for one in given:
        if not isinstance(one, Filter):
            raise TypeError(
                f"filters must be a list of tf.fleet.Significant, tf.fleet.TopK and tf.fleet.Bits, not {one!r}."
            )
    if sum(isinstance(one, Bits) for one in given) > 1:
        raise ValueError("filters has two tf.fleet.Bits: values are sent in one form. Leave one out.")
    return given
