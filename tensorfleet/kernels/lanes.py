"""The values of several like operations as one: twenty columns of words are one buffer of twenty lanes.

A model with many columns does the same to each. On a few hundred elements most of a call of numpy is its way there, so
operations of one type are called once for all columns. `Lanes` is what passes between such calls. Its lanes lie one
behind the other in one array, and are cut apart only for an operation that is called by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.packed_strings import Strings

# Elements per lane up to which arrays are joined. Measured with four vectors of strings to hash: half the time with 512
# each, the same with 8,192, several times slower with 32,768 (the copy).
_MAX_LANE_ELEMENTS = 1 << 13


class Order(IntEnum):
    """What is known about the elements of each lane. Each form implies those before it."""

    #: nothing
    ANY = 0
    #: no two elements of a lane are equal
    DISTINCT = 1
    #: the rows of a lane are 0, 1, 2 and so on; further columns are 0
    COUNTING = 2


class Lanes:
    """Arrays of one type and rank that differ in their first dimension only, one behind the other.

    Of scalars, `data` has one element for each.
    """

    def __init__(
        self, data: Array, starts: Sequence[int], order: Order = Order.ANY, scalars: bool = False
    ) -> None:
        self.data = data
        #: where in `data` each lane begins, and where the last ends
        self.starts = starts
        self.order = order
        self.scalars = scalars

    @classmethod
    def of(cls, arrays: Sequence[Any]) -> Lanes | None:
        """Joins arrays; None if they differ in more than their length, or are so large that the copy costs more."""
        if type(arrays[0]) is not np.ndarray:  # XLA's, or numpy's scalars
            arrays = [a if type(a) is Strings else np.asarray(a) for a in arrays]
        first = arrays[0]
        kind, rest = first.dtype, first.shape[1:]
        for a in arrays:
            if type(a) is not np.ndarray or a.dtype != kind or a.ndim != first.ndim or a.shape[1:] != rest:
                return None
        if sum([a.size for a in arrays]) > _MAX_LANE_ELEMENTS * len(arrays):
            return None
        if not first.ndim:
            return cls(np.stack(arrays), range(len(arrays) + 1), scalars=True)
        return cls(np.concatenate(arrays), [0, *accumulate(map(len, arrays))])

    @classmethod
    def scalar(cls, data: Array) -> Lanes:
        """A scalar in each lane."""
        return cls(data, range(len(data) + 1), scalars=True)

    @classmethod
    def even(cls, matrix: Array) -> Lanes:
        """Vectors of one length, given as the rows of a matrix."""
        count, length = matrix.shape
        return cls(matrix.reshape(-1), range(0, count * length + 1, length) if length else [0] * (count + 1))

    def like(self, data: Array, order: Order = Order.ANY) -> Lanes:
        """Other elements in the same lanes."""
        result = Lanes(data, self.starts, order, self.scalars)
        if "sizes" in self.__dict__:
            result.sizes = self.sizes
        return result

    @property
    def count(self) -> int:
        """How many lanes there are."""
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> Array:
        """The length of each lane."""
        return np.diff(np.asarray(self.starts))

    @cached_property
    def places(self) -> Array:
        """The position of each row within its lane."""
        return np.arange(self.starts[-1]) - self.for_each_row(self.firsts)

    @property
    def firsts(self) -> Array:
        """Where each lane begins."""
        return np.asarray(self.starts[:-1])

    def for_each_row(self, numbers: Array) -> Array:
        """A number for each lane, repeated for every row of the lane."""
        return np.repeat(numbers, self.sizes)

    def as_matrix(self) -> Array | None:
        """Vectors of one length as the rows of a matrix; None if they are not that."""
        count, total = self.count, self.starts[-1]
        if self.scalars or self.data.ndim != 1 or total % count:
            return None
        length = total // count
        even = type(self.starts) is range or (self.sizes == length).all()
        return self.data.reshape(count, length) if even else None

    def alike(self, other: Lanes) -> bool:
        """Whether the lanes of another have the same lengths."""
        return self.starts is other.starts or list(self.starts) == list(other.starts)

    def pick(self, numbers: Sequence[int]) -> Lanes:
        """Some of the lanes, in this order."""
        if self.scalars:
            return Lanes.scalar(self.data.take(numbers))
        parts = [self.data[self.starts[n] : self.starts[n + 1]] for n in numbers]
        return Lanes(np.concatenate(parts), [0, *accumulate(map(len, parts))], self.order)

    def split(self) -> list[Array]:
        """The arrays, as views."""
        data, starts = self.data, self.starts
        if self.scalars:
            return [data[i : i + 1].reshape(()) for i in range(len(data))]
        return [data[a:b] for a, b in pairwise(starts)]


def numbered(starts: Sequence[int], dtype: Any = np.int64) -> Lanes:
    """Lanes that count their rows."""
    lanes = Lanes(np.empty(0), starts, Order.COUNTING)
    lanes.data = lanes.places.astype(dtype, copy=False)
    return lanes


def within(indices: Lanes, sizes: Array) -> bool:
    """Whether the indices of each lane are in [0, its size)."""
    if not indices.data.size:
        return True
    if indices.data.min() < 0:
        return False
    limits = indices.for_each_row(sizes)
    return bool((indices.data < limits).all())


def globally(indices: Lanes, firsts: Array) -> Array:
    """Indices into lanes as indices into all of them."""
    placed: Array = indices.data + indices.for_each_row(firsts)
    return placed
