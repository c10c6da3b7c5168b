"""Serialized Examples walked through in step: the first field of all of them, the second ...

Records written by one program have the same features in the same order, each of any length. One of them is scanned in
Python; then a step of all records at once is to look at the bytes that it tells of, and to go on by the lengths that are
found there. Records in which they are not as expected are left to others.
"""

from __future__ import annotations

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.example_wire import BYTES, FLOATS, INTS, MISSING, Malformed, scan, varints
from tensorfleet.kernels.string_buffers import WORD_MASKS, Buffer, texts_of

Order = tuple[tuple[bytes, int], ...]
# Fewer records than this are scanned one by one.
MIN_WALKED_RECORDS = 12
_MAX_ORDERS = 4
_known: list[Order] = []


class Walked:
    """Records of one order of features: their positions in the batch, and where the values of each feature are."""

    def __init__(self, buffer: Buffer, positions: Array, features: dict[bytes, _Spans]) -> None:
        self._buffer = buffer
        self.positions = positions
        self._features = features

    def kind(self, key: bytes) -> int:
        """Which kind of values a feature has; MISSING when there is none."""
        feature = self._features.get(key)
        return MISSING if feature is None else feature.kind

    def values(self, key: bytes) -> tuple[Array, Array]:
        """The values of a feature, record after record, and how many each has."""
        feature = self._features[key]
        if feature.kind == BYTES:
            return texts_of(Buffer(self._buffer.data, feature.starts, feature.sizes)), feature.counts
        if feature.kind == FLOATS:
            counts = feature.sizes >> 2
            return self._buffer.words(_each(feature.starts, counts, 4), "<f4"), counts
        places = _each(feature.starts, feature.sizes, 1)
        packed = self._buffer.data[places]
        last = packed < 0x80
        if last.all():
            return packed.astype(np.int64), feature.sizes
        before, ends = np.append(0, np.cumsum(last)), np.cumsum(feature.sizes)
        return self._wide(places, packed, last), before[ends] - before[ends - feature.sizes]

    def _wide(self, places: Array, packed: Array, last: Array) -> Array:
        """Numbers of several bytes, each with seven bits; the last of each is known."""
        ends = np.flatnonzero(last)
        widths = np.diff(ends, prepend=-1)
        widest = int(widths.max())
        if widest > 8:
            return varints(packed)
        words = self._buffer.words(places[ends - widths + 1])
        words &= WORD_MASKS[widths]
        value = words & np.uint64(0x7F)
        for i in range(1, widest):
            value |= (words >> np.uint64(8 * i) & np.uint64(0x7F)) << np.uint64(7 * i)
        return value.view(np.int64)


class _Spans:
    """Where the values of a feature start, and how many bytes they have; of strings each, and how many records have."""

    __slots__ = ("counts", "kind", "sizes", "starts")

    def __init__(self, kind: int, starts: Array, sizes: Array, counts: Array | None = None) -> None:
        self.kind = kind
        self.starts = starts
        self.sizes = sizes
        self.counts = np.ones(len(starts), np.int64) if counts is None else counts

    def of(self, chosen: Array) -> _Spans:
        """Those of some records."""
        if self.kind != BYTES:
            return _Spans(self.kind, self.starts[chosen], self.sizes[chosen])
        each = np.repeat(chosen, self.counts)
        return _Spans(self.kind, self.starts[each], self.sizes[each], self.counts[chosen])


def _each(starts: Array, counts: Array, step: int) -> Array:
    """Places from each start on, so many, so far apart."""
    count = int(counts[0]) if len(counts) else 0
    if (counts == count).all():
        return starts if count == 1 else np.add.outer(starts, np.arange(0, count * step, step)).ravel()
    before = np.cumsum(counts) - counts
    result: Array = np.repeat(starts - before * step, counts) + np.arange(0, int(counts.sum()) * step, step)
    return result


def walk(buffer: Buffer, positions: Array) -> tuple[list[Walked], Array]:
    """Walks through the records at some positions; those that are of no common order are left."""
    walked: list[Walked] = []
    orders, new = list(_known), 0
    while len(positions) >= MIN_WALKED_RECORDS and (orders or new < _MAX_ORDERS):
        if orders:
            order = orders.pop(0)
        else:
            try:
                order = tuple((key, f[0]) for key, f in scan(buffer.text(int(positions[0]))).items())
            except Malformed:
                break
            new += 1
        step = _Step(buffer, positions)
        features, ok = step.through(order), step.ok
        if not ok.any():
            continue
        _known[:] = [order, *(o for o in _known if o != order)][:_MAX_ORDERS]
        if not ok.all():
            features = {key: spans.of(ok) for key, spans in features.items()}
        walked.append(Walked(buffer, positions[ok], features))
        positions = positions[~ok]
    return walked, positions


class _Step:
    """Where all records have been read up to, and which of them were as expected."""

    def __init__(self, buffer: Buffer, positions: Array) -> None:
        self._buffer = buffer
        self._last = buffer.data.size - 8  # where a word begins
        self._at = buffer.starts[positions]  # a copy
        self._end = self._at + buffer.lengths[positions]
        self.ok = np.ones(len(positions), np.bool_)

    def through(self, order: Order) -> dict[bytes, _Spans]:
        """Reads features in that order, and nothing else."""
        self.ok &= self._field(b"\x0a") == self._end
        result = {}
        for key, kind in order:
            name = b"\x0a" + _written(len(key)) + key + b"\x12"
            spans = self._short(name, kind)
            if spans is None:
                stop = self._field(b"\x0a")
                self.ok &= self._field(name) == stop
                if kind != MISSING:
                    self.ok &= self._field(bytes([kind << 3 | 2])) == stop
                    spans = self._strings(stop) if kind == BYTES else self._packed(kind, stop)
                self.ok &= self._at == stop
            if spans is not None:
                result[key] = spans
            if not self.ok.any():
                break
        self.ok &= self._at == self._end
        return result

    def _short(self, name: bytes, kind: int) -> _Spans | None:
        """A feature of at most 127 bytes, of numbers or one string; None when it is not such a one in all records.

        Then a byte for the length of all, the name, and a byte each for the lengths of the feature, of its list, and of
        its values: the first tells what the others must be. A list of no numbers has no values.
        """
        head = self._words(0)
        fine = head & _number(b"\xff\x80" + b"\xff" * len(name[:6])) == _number(b"\x0a\0" + name[:6])
        for i in range(6, len(name), 8):
            part = name[i : i + 8]
            fine &= self._words(2 + i) & WORD_MASKS[len(part)] == _number(part)
        size = head >> np.uint64(8) & np.uint64(0x7F)
        over = len(name) + 3  # what is no value, if there is none
        stop, inside = self._at + 2 + size.view(np.int64), size.view(np.int64) - over
        fine &= (stop <= self._end) & (inside >= 0)
        lengths = self._words(2 + len(name))
        wanted = size * np.uint64(0x0100010001) + _number(bytes([0, kind << 3 | 2, 0, 10]))
        wanted -= np.uint64(over - 2 | over << 16 | over + 2 << 32)
        empty = inside == 0
        fine &= (lengths ^ wanted) & np.where(empty, WORD_MASKS[3], WORD_MASKS[5]) == 0
        if kind == MISSING or (kind == BYTES and empty.any()) or not (fine | ~self.ok).all():
            return None
        self._at += np.where(empty, 0, 2)
        self._at += over + 2
        return self._numbers(kind, stop) if kind != BYTES else self._one_string(stop)

    def _one_string(self, stop: Array) -> _Spans:
        at, self._at = self._at, stop
        return _Spans(BYTES, at, stop - at)

    def _field(self, expected: bytes) -> Array:
        """Reads bytes that are expected and the length behind them: goes on there, and gives where that ends."""
        whole = 0
        while len(expected) - whole > 4:  # the rest and the length are in one word
            part = expected[whole : whole + 8]
            self.ok &= self._words(whole) & WORD_MASKS[len(part)] == _number(part)
            whole += len(part)
        word, bits = self._words(whole), 8 * (len(expected) - whole)
        if bits:
            self.ok &= word & WORD_MASKS[bits // 8] == _number(expected[whole:])
            word >>= np.uint64(bits)
        length, size = self._length(word)
        self._at = self._at + (size + len(expected))
        stop = self._at + length
        self.ok &= stop <= self._end
        # Nobody reads behind the end of a record, whatever it says.
        self._at = np.minimum(self._at, self._end)
        end: Array = np.minimum(stop, self._end)
        return end

    def _words(self, further: int) -> Array:
        return self._buffer.words(np.minimum(self._at + further, self._last))

    def _length(self, word: Array) -> tuple[Array, Array | int]:
        """The number that a word begins with, and how many bytes that has: at most four."""
        more = word >> np.uint64(7) & np.uint64(1)
        value = word & np.uint64(0x7F)
        if not more.any():
            return value.view(np.int64), 1
        size = more + np.uint64(1)
        for i in range(1, 4):
            value |= (word >> np.uint64(8 * i) & np.uint64(0x7F)) * more << np.uint64(7 * i)
            more &= word >> np.uint64(8 * i + 7)
            size += more
        self.ok &= size <= 4
        return value.view(np.int64), size.view(np.int64)

    def _packed(self, kind: int, stop: Array) -> _Spans:
        """Packed numbers up to there, or none."""
        start, before = self._at, self.ok
        self.ok = before.copy()
        self.ok &= self._field(b"\x0a") == stop
        empty = start == stop
        if empty.any():
            self._at, self.ok = np.where(empty, stop, self._at), np.where(empty, before, self.ok)
        return self._numbers(kind, stop)

    def _numbers(self, kind: int, stop: Array) -> _Spans:
        """Numbers up to there, if they can be."""
        spans = _Spans(kind, self._at, stop - self._at)
        if kind == INTS:
            self.ok &= (self._buffer.data[np.minimum(stop, self._end) - 1] < 0x80) | (spans.sizes == 0)
        else:
            self.ok &= spans.sizes & 3 == 0
        self._at = stop
        return spans

    def _strings(self, stop: Array) -> _Spans:
        """One string after the other up to there."""
        starts, sizes, which = [], [], []
        counts = np.zeros(len(stop), np.int64)
        while (left := (self._at < stop) & self.ok).any():
            at, before = self._at, self.ok
            self.ok = before.copy()
            end = self._field(b"\x0a")
            starts.append(self._at[left])
            sizes.append((end - self._at)[left])
            which.append(np.flatnonzero(left))
            counts += left
            self._at, self.ok = np.where(left, end, at), np.where(left, self.ok, before)
        if len(which) == 1:
            return _Spans(BYTES, starts[0], sizes[0], counts)
        order = np.argsort(np.concatenate(which), kind="stable") if which else np.zeros(0, np.int64)
        there, long = (np.concatenate([*a, order[:0]])[order] for a in (starts, sizes))
        return _Spans(BYTES, there, long, counts)


def _number(part: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(part, "little"))


def _written(length: int) -> bytes:
    """A number as messages have it."""
    data = b""
    while length > 0x7F:
        data, length = data + bytes([length & 0x7F | 0x80]), length >> 7
    return data + bytes([length])
