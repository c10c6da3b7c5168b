"""Many short strings found among others at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorfleet.ops.string_buffers import ZEROS, Buffer, parts
from tensorfleet.ops.string_memory import InMemory, in_memory

LONGEST = len(ZEROS)  # of the strings among which others are found
_WORD = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)


class StringIndex:
    """One or more different strings of at most `LONGEST` bytes, as numbers of eight bytes each, by a hash of these.

    Those with the same hash take the next free slots.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        buffer = Buffer.of(keys)
        self._lengths = buffer.lengths
        self._width = max(1, -(-int(buffer.lengths.max(initial=0)) // _WORD))
        self._keys = self._words(buffer)
        self._bits = max(4, (4 * len(keys)).bit_length())
        self._slots = np.full(1 << self._bits, -1, np.int32)
        left, place = np.arange(len(keys), dtype=np.int32), self._place(self._keys)
        while len(left):
            free = self._slots[place] < 0
            self._slots[place[free]] = left[free]
            lost = self._slots[place] != left
            left, place = left[lost], place[lost] + 1 & len(self._slots) - 1

    def _words(self, source: InMemory | Buffer) -> np.ndarray:
        """The strings as numbers: a row for each eight bytes, zeros behind their ends."""
        last, made = source.lengths >> 3, np.empty((self._width, len(source.lengths)), np.uint64)
        for i, row in enumerate(made):
            inside = source.lengths - i * _WORD
            word = source.whole_words(source.starts + (np.minimum(last, i) << 3))
            np.bitwise_and(word, _MASKS.take(inside, mode="clip"), row)
        return made

    def _place(self, words: np.ndarray) -> np.ndarray:
        mixed = words[0] * _MIX
        for word in words[1:]:
            mixed = (mixed ^ mixed >> np.uint64(29) ^ word) * _MIX
        return (mixed >> np.uint64(64 - self._bits)).astype(np.int64)

    def find(self, texts: np.ndarray) -> np.ndarray:
        """The number of each string of a vector among the keys; -1 where it is none of them."""
        found = np.empty(len(texts), np.int32)
        further = []  # those that are not in their first slot, if anywhere
        for places, some in parts(texts):
            source = in_memory(some) or Buffer.of(some.tolist())
            words = self._words(source)
            further.append(self._look(found[places], words, source.lengths, self._place(words), places.start))
        rest = [np.concatenate(of_parts, -1) for of_parts in zip(*further, strict=True)]
        while rest and len(rest[0]):
            numbers, words, lengths, place = rest
            keys = np.empty(len(numbers), np.int32)
            on, *rest = self._look(keys, words, lengths, place + 1 & len(self._slots) - 1)
            found[numbers] = keys
            rest = [numbers[on], *rest]
        return found

    def _look(
        self, found: np.ndarray, words: np.ndarray, lengths: np.ndarray, place: np.ndarray, first: int = 0
    ) -> tuple[np.ndarray, ...]:
        """Fills in the keys that are in some slots; gives what must be looked up further on, counted from `first`."""
        key = self._slots[place]
        taken = key >= 0
        same = taken & (self._lengths[key] == lengths)
        for mine, their in zip(words, self._keys, strict=True):
            same &= mine == their[key]
        found[:] = np.where(same, key, -1)
        on = np.flatnonzero(taken & ~same)
        return on + first, words[:, on], lengths[on], place[on]


_MASKS = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)], np.uint64)
