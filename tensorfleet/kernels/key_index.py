"""Numbers the different 64-bit keys that come, in the order in which they come: many keys at once, no loop over them."""

from __future__ import annotations

import numpy as np

from tensorfleet.base.types import Array

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIN_BITS = 10
_SLOTS_PER_KEY = 2  # at least: probes stay short


def places_of(keys: Array, bits: int) -> Array:
    """A hash of so many bits for each key. Keys that follow one another are spread."""
    mixed = keys.view(np.uint64) * _MIX
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MIX
    mixed >>= np.uint64(64 - bits)
    result: Array = mixed.view(np.int64)
    return result


class KeyIndex:
    """An index with open addressing: keys whose slot is taken try the next one, all of them in one round."""

    def __init__(self) -> None:
        #: the keys by their numbers; only the first `len(self)` count
        self._keys = np.empty(1 << _MIN_BITS - 2, np.int64)
        self._count = 0
        self._bits = _MIN_BITS
        self._slots = np.full(1 << self._bits, -1, np.int32)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> Array:
        """All keys, in the order of their numbers."""
        return self._keys[: self._count]

    def find(self, keys: Array) -> Array:
        """The number of each key, -1 for one that never came."""
        result = np.full(len(keys), -1, np.int64)
        place = places_of(keys, self._bits)
        first = self._slots[place]
        # Nearly all keys are found in their own slot, or that is free: the others go on alone.
        same = (first >= 0) & (self._keys[first] == keys)
        np.copyto(result, first, where=same)
        left = np.flatnonzero(~same & (first >= 0))
        last = len(self._slots) - 1
        while len(left):
            place_left = place[left] = place[left] + 1 & last
            at = self._slots[place_left]
            taken = at >= 0
            same = taken & (self._keys[at] == keys[left])
            result[left[same]] = at[same]
            left = left[taken & ~same]
        return result

    def add(self, keys: Array) -> Array:
        """The number of each key; those that never came before get the next ones."""
        found = self.find(keys)
        missing = found < 0
        if missing.any():
            lost = keys[missing]
            _, first = np.unique(lost, return_index=True)
            first.sort()  # numbers follow the order of the keys' arrival
            self._append(lost[first])
            found[missing] = self.find(lost)
        return found

    def _append(self, keys: Array) -> None:
        """Takes different keys that are not there yet."""
        begin, self._count = self._count, self._count + len(keys)
        if self._count > len(self._keys):
            grown = np.empty(max(2 * len(self._keys), self._count), np.int64)
            grown[:begin] = self._keys[:begin]
            self._keys = grown
        self._keys[begin : self._count] = keys
        if self._count * _SLOTS_PER_KEY > len(self._slots):
            self._bits = ((_SLOTS_PER_KEY + 1) * self._count - 1).bit_length()
            self._slots = np.full(1 << self._bits, -1, np.int32)
            begin = 0
        self._fill(np.arange(begin, self._count, dtype=np.int32))

    def _fill(self, left: Array) -> None:
        place, last = places_of(self._keys[left], self._bits), len(self._slots) - 1
        while len(left):
            free = self._slots[place] < 0
            self._slots[place[free]] = left[free]
            lost = self._slots[place] != left  # taken before, or by another one of now
            left, place = left[lost], place[lost] + 1 & last
