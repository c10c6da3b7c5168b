"""Many strings as one buffer, which numpy works on as a whole: their lengths, their words, numbers read and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tensorfleet.ops.string_memory import AT_ONCE, InMemory, in_memory

# Fewer strings than this are done sooner one by one.
MANY = 256
_LONGEST = 24  # letters of a number that is read in the buffer
ZEROS = bytes(_LONGEST)
_WIDEST = 8  # words of a string that is packed
_EXACT = 1 << 53
_TENS = 10 ** np.arange(20, dtype=np.uint64)
_POWERS = 10.0 ** np.arange(23)


def lengths_of(texts: Sequence[bytes] | np.ndarray) -> np.ndarray:
    """How long each string of a list or a vector is."""
    if isinstance(texts, np.ndarray):
        found = np.empty(len(texts), np.int64)
        for places, some in parts(texts):
            there = in_memory(some)
            found[places] = lengths_of(some.tolist()) if there is None else there.lengths
        return found
    try:
        return np.frombuffer(bytes(map(len, texts)), np.uint8).astype(np.int64)
    except ValueError:  # some are longer than a byte can say
        return np.fromiter(map(len, texts), np.int64, len(texts))


def by_length(lengths: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each length that occurs, and the numbers of the strings that have it."""
    # Numbers of a byte or two are sorted by counting them.
    longest = lengths.max(initial=0)
    kind = np.uint8 if longest < 256 else np.uint16 if longest < 65536 else np.int64
    order = np.argsort(lengths.astype(kind), kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if len(order) else []:
        yield int(lengths[rows[0]]), rows


def parts(texts: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """A vector in parts of `AT_ONCE`: their places, and the strings there."""
    for at in range(0, len(texts), AT_ONCE):
        yield slice(at, at + AT_ONCE), texts[at : at + AT_ONCE]


class Buffer:
    """Strings one behind the other, and `ZEROS` behind the last: where each begins, and how long it is."""

    def __init__(self, data: bytes | np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
        self.data = np.frombuffer(data, np.uint8)
        self.starts = starts
        self.lengths = lengths

    @classmethod
    def of(cls, texts: Sequence[bytes] | np.ndarray) -> Buffer:
        """The buffer of some strings: a list, or a vector, which is best of `AT_ONCE` strings at most."""
        if isinstance(texts, np.ndarray):
            there = in_memory(texts)
            packed = None if there is None else cls._packed(there)
            return cls.of(texts.tolist()) if packed is None else packed
        data = b"\0".join([*texts, ZEROS])
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)  # sooner than to ask each for its length
        if len(ends) == len(texts) + len(ZEROS):
            starts = np.append(0, ends[: len(texts)] + 1)[: len(texts)]
            return cls(data, starts, ends[: len(texts)] - starts)
        lengths = lengths_of(texts)
        return cls(b"".join([*texts, ZEROS]), np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def _packed(cls, there: InMemory) -> Buffer | None:
        """Strings that all have room for the longest, and anything behind their ends; None when that is a long one."""
        count, last = len(there.lengths), there.lengths >> 3
        width = int(last.max()) + 1
        if width > _WIDEST:
            return None
        data = np.zeros(count * width + len(ZEROS) // 8, np.uint64)
        table = data[: count * width].reshape(count, width)
        for i in range(width):
            table[:, i] = there.whole_words(there.starts + (np.minimum(last, i) << 3))
        return cls(data.view(np.uint8), np.arange(count) * (8 * width), there.lengths.copy())

    def every(self, step: int, start: int) -> Buffer:
        """Some of the strings, in the same buffer."""
        return Buffer(self.data, self.starts[start::step], self.lengths[start::step])

    def whole_words(self, places: np.ndarray) -> np.ndarray:
        """Eight bytes each from some places on."""
        return self.words(places)

    def words(self, places: np.ndarray, kind: str = "<u8") -> np.ndarray:
        """The bytes from some places on, as numbers."""
        size = np.dtype(kind).itemsize
        # A number begins at every byte.
        every = np.ndarray((self.data.size - size + 1,), kind, self.data, strides=(1,))
        return every[places]

    def table(self, rows: np.ndarray, length: int) -> np.ndarray:
        """Some strings of one length as the rows of a table of bytes."""
        return self.words(self.starts[rows], f"V{length}").view(np.uint8).reshape(len(rows), length)

    def letters(self, width: int) -> np.ndarray:
        """The first bytes of all strings: a row for each position, zeros behind their ends."""
        table = self.words(self.starts, f"V{width}").view(np.uint8).reshape(-1, width).T.copy()
        if len(self.lengths) and self.lengths.min() < width:
            table *= np.arange(width)[:, None] < self.lengths
        return table


def objects_of(table: np.ndarray) -> np.ndarray:
    """The rows of a table of bytes, or a vector of `V` elements, as strings."""
    if table.dtype == np.uint8:
        table = np.ascontiguousarray(table).view(f"V{table.shape[1]}").ravel()
    size = table.dtype.itemsize
    # Numpy makes strings of its own kind faster, but leaves out zeros at the end.
    ends = np.ndarray(len(table), np.uint8, table, size - 1, (size,)) if len(table) else table
    return table.view(f"S{size}").astype(object) if len(table) and ends.all() else table.astype(object)


def decimals(buffer: Buffer, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that strings spell, and which of them are not read: those that are more than a few digits.

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
        made = value / _POWERS.take(fraction, mode="clip")
        np.negative(made, made, where=negative)
        return made.astype(dtype), np.flatnonzero(~read)
    np.negative(value, value, where=negative)
    limits = np.iinfo(dtype)
    read &= ~points & (value >= limits.min) & (value <= min(limits.max, np.iinfo(np.int64).max))
    return value.astype(dtype), np.flatnonzero(~read)


def spelled(size: np.ndarray, negative: np.ndarray, behind: int = 0) -> np.ndarray:
    """Whole numbers (uint64) written out, each with its sign and a point before so many of its digits."""
    made = np.empty(len(size), object)
    digits = np.maximum(np.searchsorted(_TENS, size, "right"), behind + 1)
    for sign in (0, 1):
        for count in np.unique(digits[negative == sign]).tolist():
            rows = np.flatnonzero((digits == count) & (negative == sign))
            made[rows] = _written(size[rows], count, behind, sign)
    return made


def _written(left: np.ndarray, count: int, behind: int, sign: int) -> np.ndarray:
    """Numbers of so many digits, as an array of strings."""
    width = sign + count + (behind > 0)
    table = np.full((width, len(left)), ord("-"), np.uint8)
    places = [i for i in range(sign, width) if not behind or i != width - behind - 1]
    for place in reversed(places):
        rest = left // np.uint64(10)
        table[place] = left - rest * np.uint64(10) + np.uint64(48)
        left = rest
    if behind:
        table[width - behind - 1] = ord(".")
    return objects_of(table.T)
