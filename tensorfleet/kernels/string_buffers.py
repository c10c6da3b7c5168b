"""Many strings as one buffer, which numpy works on as a whole: their lengths, their words, numbers read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.parallel_for import in_parts

AT_ONCE = 16000  # strings; the words of so many stay in the processor's cache
_PART = 10 * AT_ONCE  # strings that are worth a thread of their own
# Fewer strings than this are done sooner one by one.
MANY = 256
# Of fewer objects than this, what is cut or rewritten is sooner made as objects again.
WORTH_PACKING = 4096
_LONGEST = 24  # letters of a number that is read in the buffer
ZEROS = bytes(_LONGEST)
WIDEST = 8  # words of a string that is short
WORD_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)  # of so many bytes
_SHORT = 24  # bytes of a string, on average
_MIN_GROUP_STRINGS = 16  # strings of a length: fewer are made one by one
_LONGEST_MADE = 1 << 10
_EXACT = 1 << 53
_TENS = 10 ** np.arange(20, dtype=np.uint64)
_SPELLED_ZEROS = np.uint64(0x3030303030303030)
_NEIGHBOURS = [
    (np.uint64(0x00FF00FF00FF00FF), np.uint64(10), np.uint64(8)),
    (np.uint64(0x0000FFFF0000FFFF), np.uint64(100), np.uint64(16)),
    (np.uint64(0x00000000FFFFFFFF), np.uint64(10000), np.uint64(32)),
]
_POWERS = 10.0 ** np.arange(23)


def lengths_of(texts: Sequence[bytes]) -> Array:
    """How long each string of a list is."""
    try:
        return np.frombuffer(bytes(map(len, texts)), np.uint8).astype(np.int64)
    except ValueError:  # some are longer than a byte can say
        return np.fromiter(map(len, texts), np.int64, len(texts))


def by_length(lengths: Array) -> Iterator[tuple[int, Array]]:
    """Each length that occurs, and the numbers of the strings that have it."""
    # Numbers of a byte or two are sorted by counting them.
    longest = lengths.max(initial=0)
    kind = np.uint8 if longest < 256 else np.uint16 if longest < 65536 else np.int64
    order = np.argsort(lengths.astype(kind), kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if len(order) else []:
        yield int(lengths[rows[0]]), rows


def parts(texts: Array) -> Iterator[tuple[slice, Array]]:
    """A vector in parts of `AT_ONCE`: their places, and the strings there."""
    for at in range(0, len(texts), AT_ONCE):
        yield slice(at, at + AT_ONCE), texts[at : at + AT_ONCE]


def each_part(work: Callable[[slice], None], count: int) -> None:
    """Calls a function with the places of so many strings, `AT_ONCE` of them at a time and side by side."""

    def some(start: int, stop: int) -> None:
        for at in range(start, stop, AT_ONCE):
            work(slice(at, min(at + AT_ONCE, stop)))

    in_parts(some, count, _PART)


class Buffer:
    """Strings in one array, and `ZEROS` behind the last: where each begins, and how long it is.

    If it is `apart`, they are there in order, and between them are zeros: at least one.
    """

    def __init__(self, data: bytes | Array, starts: Array, lengths: Array, apart: bool = False) -> None:
        self.data = np.frombuffer(data, np.uint8)
        self.starts = starts
        self.lengths = lengths
        self.apart = apart

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Buffer:
        """The buffer of a list of strings."""
        data = b"\0".join([*texts, ZEROS])
        # To look for the zeros between short strings is faster than to ask each for its length.
        if len(data) <= _SHORT * len(texts):
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
            if len(ends) == len(texts) + len(ZEROS):
                starts = np.append(0, ends[: len(texts)] + 1)[: len(texts)]
                return cls(data, starts, ends[: len(texts)] - starts, True)
        lengths = lengths_of(texts)
        return cls(data, np.cumsum(lengths + 1) - lengths - 1, lengths, True)

    @classmethod
    def of_columns(cls, columns: Array, lengths: Array) -> Buffer:
        """The buffer of short strings, given as columns of words that have a zero behind the longest."""
        width, count = columns.shape
        data = np.zeros(count * width + len(ZEROS) // 8, np.uint64)
        data[: count * width].reshape(count, width)[:] = columns.T
        return cls(data.view(np.uint8), np.arange(0, 8 * width * count, 8 * width), lengths, True)

    def some(self, which: slice | Array) -> Buffer:
        """Some of the strings, in the same buffer."""
        return Buffer(self.data, self.starts[which], self.lengths[which])

    def text(self, i: int) -> bytes:
        """One of the strings."""
        return self.data[self.starts[i] : self.starts[i] + self.lengths[i]].tobytes()

    def words(self, places: Array, kind: str = "<u8") -> Array:
        """The bytes from some places on, as numbers."""
        size = np.dtype(kind).itemsize
        # A number begins at every byte.
        every = np.ndarray((self.data.size - size + 1,), kind, self.data, strides=(1,))
        return every[places]

    def rows(self, length: int) -> Array:
        """The strings, all of this length, as the rows of a table of bytes: in place, if they are equally far apart."""
        step = int(self.starts[1] - self.starts[0]) if len(self.starts) > 1 else length
        if (np.diff(self.starts) == step).all() and step > 0:
            return np.ndarray((len(self.starts), length), np.uint8, self.data, int(self.starts[0]), (step, 1))
        return self.words(self.starts, f"V{length}").view(np.uint8).reshape(-1, length)

    def letters(self, width: int) -> Array:
        """The first bytes of all strings: a row for each position, zeros behind their ends."""
        if not width:
            return np.zeros((0, len(self.starts)), np.uint8)
        table = self.words(self.starts, f"V{width}").view(np.uint8).reshape(-1, width).T.copy()
        if len(self.lengths) and self.lengths.min() < width:
            table *= np.arange(width)[:, None] < self.lengths
        return table


def texts_of(buffer: Buffer) -> Array:
    """The strings of a buffer as objects."""
    longest = int(buffer.lengths.max(initial=0))
    lengths, result = buffer.lengths, np.empty(len(buffer.lengths), object)
    if 0 < longest <= 8 * WIDEST:
        for places, _ in parts(lengths):
            result[places] = _short_texts(buffer.some(places), longest + 7 >> 3)
        return result
    groups = list(by_length(lengths)) if longest <= _LONGEST_MADE else []
    if len(groups) * _MIN_GROUP_STRINGS > len(lengths) or not groups:
        result[:] = _texts_at(buffer, slice(None))
        return result
    for length, rows in groups:
        result[rows] = objects_of(buffer.words(buffer.starts[rows], f"V{length}")) if length else b""
    return result


def _texts_at(buffer: Buffer, rows: Array | slice) -> list[bytes]:
    """Some of the strings, made one by one."""
    letters, starts = buffer.data.data, buffer.starts[rows]
    ends = starts + buffer.lengths[rows]
    return [bytes(letters[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


def _short_texts(buffer: Buffer, width: int) -> Array:
    """Strings of at most so many words as objects: numpy leaves out the zeros behind the ends of its own strings."""
    starts, lengths = buffer.starts, buffer.lengths
    table = np.empty((len(lengths), width), np.uint64)
    whole = lengths & ~7
    for i in range(width):
        word = buffer.words(starts + np.minimum(whole, 8 * i) if i else starts)
        np.bitwise_and(word, WORD_MASKS.take(lengths - 8 * i, mode="clip"), table[:, i])
    result = table.view(f"S{8 * width}").reshape(-1).astype(object)
    zeros = np.flatnonzero(buffer.data[starts + lengths - 1] == 0)
    zeros = zeros[lengths[zeros] > 0]  # those end in a zero of their own
    if len(zeros):
        result[zeros] = _texts_at(buffer, zeros)
    return result


def strings_of(table: Array) -> Array:
    """The rows of a table of bytes as objects."""
    count, size = table.shape
    if not table.size:
        return np.full(count, b"", object)
    return objects_of(np.ascontiguousarray(table).view(f"V{size}").reshape(-1))


def objects_of(table: Array) -> Array:
    """A vector of strings of one length, of numpy's kind `V`, as objects."""
    size = table.dtype.itemsize
    # Numpy makes strings of its own kind faster, but leaves out zeros at the end.
    ends = np.ndarray(len(table), np.uint8, table, size - 1, (size,))
    return table.view(f"S{size}").astype(object) if ends.all() else table.astype(object)


def decimals(buffer: Buffer, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The numbers that strings spell, and which of them are not read: those that are more than a few digits."""
    if dtype.kind == "f" or buffer.lengths.max(initial=0) > 8:
        return _letter_by_letter(buffer, dtype)
    value, read = _eight_digits(buffer.words(buffer.starts), buffer.lengths)
    limit = np.iinfo(dtype).max
    numbers, rest = value.astype(dtype), np.flatnonzero(~read | (value > limit) if limit < 10**8 else ~read)
    if len(rest):
        numbers[rest], unread = _letter_by_letter(
            Buffer(buffer.data, buffer.starts[rest], buffer.lengths[rest]), dtype
        )
        rest = rest[unread]
    return numbers, rest


def _eight_digits(words: Array, lengths: Array) -> tuple[Array, Array]:
    """Whole numbers of at most eight digits, and which of the strings are such numbers."""
    bits = lengths.astype(np.uint64) << np.uint64(3)
    # The digits to the upper end of their word, and zeros before them.
    words <<= np.uint64(64) - bits
    words |= _SPELLED_ZEROS >> bits
    wrong = words + np.uint64(0x4646464646464646)  # from ":" on
    words -= _SPELLED_ZEROS
    wrong |= words
    read = (wrong & np.uint64(0x8080808080808080) == 0) & (lengths > 0)
    # Of each two neighbours, then pairs, then fours, the first counts ten, a hundred, ten thousand times.
    for mask, times, by in _NEIGHBOURS:
        low = words & mask
        low *= times
        words >>= by
        words &= mask
        words += low
    return words, read


def _letter_by_letter(buffer: Buffer, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The numbers that strings spell, and which of them are not read.

    A number is read as a whole one and divided by a power of ten. Both are exact, so the result is the nearest there is.
    """
    count = len(buffer.lengths)
    value = np.zeros(count, np.int64)
    width = min(int(buffer.lengths.max(initial=0)), _LONGEST)
    digits = np.zeros(count, np.int8)
    behind = np.zeros(count, np.int8)  # letters from the point on
    table = buffer.letters(width)
    signed = (table[0] == ord("-")) | (table[0] == ord("+")) if width else np.zeros(count, np.bool_)
    for letters in table:
        digit = letters - np.uint8(48)
        is_digit = digit < 10
        if is_digit.all():
            value *= 10
            value += digit
            digits += np.int8(1)
        else:
            value = np.where(is_digit, value * 10 + digit, value)
            digits += is_digit
        behind += (letters == ord(".")) | (behind > 0)
    points = behind > 0
    # Had there been a second point, or anything else, there would be fewer digits than this.
    read = (digits == buffer.lengths - signed - points) & (digits > 0) & (digits <= 18)
    negative = table[0] == ord("-") if width else signed
    if dtype.kind == "f":
        read &= value <= _EXACT
        fraction = np.where(points, buffer.lengths - 1 - width + behind, 0)
        numbers = value / _POWERS.take(fraction, mode="clip")
        np.negative(numbers, numbers, where=negative)
        return numbers.astype(dtype), np.flatnonzero(~read)
    np.negative(value, value, where=negative)
    limits = np.iinfo(dtype)
    read &= ~points & (value >= limits.min) & (value <= min(limits.max, np.iinfo(np.int64).max))
    return value.astype(dtype), np.flatnonzero(~read)


def spelled(size: Array, negative: Array, behind: int = 0) -> Buffer:
    """Whole numbers (uint64) written out, each with its sign and a point before so many of its digits."""
    largest = int(size.max())
    left: Any = size.astype(np.uint32 if largest < 1 << 32 else np.uint64)
    most = max(len(str(largest)), behind + 1)
    digits = np.full(len(size), behind + 1)
    for ten in _TENS[behind + 1 : most].astype(left.dtype):
        digits += left >= ten
    width = 1 + most + (behind > 0)  # there is room for a sign
    table = np.empty((width, len(size)), np.uint8)
    ten = left.dtype.type(10)
    for place in range(width - 1, 0, -1):
        if behind and place == width - behind - 1:
            table[place] = ord(".")
            continue
        rest = left // ten
        left -= rest * ten
        np.add(left, 48, table[place], casting="unsafe")
        left = rest
    data = np.zeros(table.size + len(ZEROS), np.uint8)
    lengths = digits + (behind > 0)
    rows = np.flatnonzero(negative)
    table[width - 1 - lengths[rows], rows] = ord("-")
    lengths += negative
    data[: table.size].reshape(-1, width)[:] = table.T
    return Buffer(data, np.arange(width, table.size + 1, width) - lengths, lengths)
