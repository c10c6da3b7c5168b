"""Many short strings found among others at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorfleet.ops.string_buffers import ZEROS, Buffer, parts

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
        self._bits = max(4, (2 * len(keys)).bit_length())
        self._slots = np.full(1 << self._bits, -1, np.int32)
        left, place = np.arange(len(keys), dtype=np.int32), self._place(self._keys)
        while len(left):
            free = self._slots[place] < 0
            self._slots[place[free]] = left[free]
            lost = self._slots[place] != left
            left, place = left[lost], place[lost] + 1 & len(self._slots) - 1

    def _words(self, buffer: Buffer) -> np.ndarray:
        """The strings as numbers: a row for each eight bytes, zeros behind their ends."""
        rows = []
        for i in range(self._width):
            word = buffer.words(np.minimum(buffer.starts + i * _WORD, len(buffer.data) - _WORD))
            inside = np.clip(buffer.lengths - i * _WORD, 0, _WORD)
            rows.append(word & _MASKS[inside])
        return np.stack(rows)

    def _place(self, words: np.ndarray) -> np.ndarray:
        mixed = words[0] * _MIX
        for word in words[1:]:
            mixed = (mixed ^ mixed >> np.uint64(29) ^ word) * _MIX
        return (mixed >> np.uint64(64 - self._bits)).astype(np.int64)

    def find(self, texts: np.ndarray) -> np.ndarray:
        """The number of each string of a vector among the keys; -1 where it is none of them."""
        found = np.empty(len(texts), np.int32)
        for places, some in parts(texts):
            found[places] = self._find(some)
        return found

    def _find(self, texts: np.ndarray) -> np.ndarray:
        buffer = Buffer.of(texts)
        words, lengths = self._words(buffer), buffer.lengths
        found, left, place = np.full(len(texts), -1, np.int32), np.arange(len(texts)), self._place(words)
        while len(left):
            key = self._slots[place]
            same = (key >= 0) & (self._lengths[key] == lengths)
            for mine, their in zip(words, self._keys, strict=True):
                same &= mine == their[key]
            found[left[same]] = key[same]
            on = np.flatnonzero((key >= 0) & ~same)
            left, words, lengths = left[on], words[:, on], lengths[on]
            place = place[on] + 1 & len(self._slots) - 1
        return found


_MASKS = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)], np.uint64)
