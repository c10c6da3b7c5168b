"""Many short strings found among others, or among themselves, at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.packed_strings import Strings
from tensorfleet.kernels.string_buffers import each_part

_MIX = np.uint64(0x9E3779B97F4A7C15)


def _places(columns: Array, bits: int) -> Array:
    """A hash of so many bits for each string."""
    mixed = columns[0] * _MIX
    for word in columns[1:]:
        mixed ^= mixed >> np.uint64(29)
        mixed ^= word
        mixed *= _MIX
    mixed >>= np.uint64(64 - bits)
    result: Array = mixed.view(np.int64)
    return result


def first_of_each(strings: Strings) -> Array | None:
    """For each string the number of the first that is equal; None when some are long.

    All go into slots by their hash. Those that are not equal to the first one there try the next slot.
    """
    columns, lengths = strings.columns(), strings.lengths
    if columns is None:
        return None
    bits = max(4, (2 * len(lengths)).bit_length())
    slots = np.full(1 << bits, -1, np.int32)
    result = np.arange(len(lengths), dtype=np.int32)
    left, place = result[::-1], _places(columns, bits)[::-1]
    while len(left):
        free = slots[place] < 0
        slots[place[free]] = left[free]  # of several the last to come, which has the lowest number
        first = slots[place]
        same = (lengths[first] == lengths[left]) & _equal(columns, first, left)
        result[left[same]] = first[same]
        left, place = left[~same], place[~same] + 1 & len(slots) - 1
    return result


def _equal(columns: Array, some: Array, others: Array) -> Array:
    same: Array = columns[0][some] == columns[0][others]
    for word in columns[1:]:
        same &= word[some] == word[others]
    return same


class StringIndex:
    """One or more different short strings as columns of words, by a hash of these.

    Those with the same hash take the next free slots.
    """

    def __init__(self, columns: Array, lengths: Array) -> None:
        self._columns, self._lengths = columns, lengths.astype(np.int32)
        self._bits = max(4, (4 * len(lengths)).bit_length())
        self._slots = np.full(1 << self._bits, -1, np.int32)
        left, place = np.arange(len(lengths), dtype=np.int32), _places(columns, self._bits)
        while len(left):
            free = self._slots[place] < 0
            self._slots[place[free]] = left[free]
            lost = self._slots[place] != left
            left, place = left[lost], place[lost] + 1 & len(self._slots) - 1

    @classmethod
    def of(cls, strings: Strings) -> StringIndex | None:
        """The index of different strings; None when some are long."""
        columns = strings.columns()
        return None if columns is None else cls(columns, strings.lengths)

    def find(self, texts: Strings) -> Array:
        """The number of each string among the keys, -1 where it is none of them."""
        columns = texts.first_words(len(self._columns))
        result = np.empty(texts.size, np.int32)
        lengths = texts.lengths

        def some(places: slice) -> None:
            self._find(result[places], columns[:, places], lengths[places])

        each_part(some, texts.size)
        return result

    def _find(self, keys: Array, columns: Array, lengths: Array) -> None:
        place = _places(columns, self._bits)
        left: Any = slice(None)
        while True:
            key = self._slots.take(place)
            # `take` is faster than brackets, and clips what is no key: its slot is free.
            at = key.astype(np.int64)
            same = self._lengths.take(at, mode="clip") == lengths
            for mine, their in zip(columns, self._columns, strict=True):
                same &= their.take(at, mode="clip") == mine
            taken = key >= 0
            same &= taken
            keys[left] = np.where(same, key, -1)
            on = np.flatnonzero(taken & ~same)
            if not len(on):
                return
            left = on if isinstance(left, slice) else left[on]
            columns, lengths, place = columns[:, on], lengths[on], place[on] + 1 & len(self._slots) - 1
