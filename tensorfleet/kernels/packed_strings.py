"""A tensor of many strings, in whichever forms somebody has asked for.

Python's objects are one form. To make a hundred thousand of them takes longer than most operations do, so an operation on many
strings gives them as places in one buffer, and the next takes them as such; objects are made where somebody needs
objects. A third form is the first bytes of all strings as columns of words, for what compares or hashes short ones.

None of the forms ever changes, so what was made of one once is kept with it, and tensors that differ only in their shape
share it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.string_buffers import (
    MANY,
    WIDEST,
    WORD_MASKS,
    Buffer,
    lengths_of,
    parts,
    texts_of,
)


class _StringForms:
    """The strings of a tensor, one behind the other: at least one of objects and buffer is there."""

    __slots__ = ("buffer", "columns", "lengths", "objects")

    def __init__(self, objects: Array | None, buffer: Buffer | None) -> None:
        self.objects = objects
        self.buffer = buffer
        self.lengths: Array | None = None if buffer is None else buffer.lengths
        self.columns: Array | None = None


class Strings:
    """`MANY` strings or more, of some shape. Numpy takes it for an array of `bytes`."""

    __slots__ = ("_forms", "shape")
    dtype = np.dtype(object)

    def __init__(self, forms: _StringForms, shape: Sequence[int]) -> None:
        self._forms = forms
        self.shape = tuple(shape)

    @classmethod
    def of(cls, array: Array) -> Strings:
        """The strings of an array that nobody changes any more."""
        return cls(_StringForms(array.reshape(-1), None), array.shape)

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many strings there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """What an array of the objects takes, as numpy counts it."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
        array = self.objects.reshape(self.shape)
        return array.copy() if copy else array

    @property
    def objects(self) -> Array:
        """All strings as a vector of `bytes`, for nobody to change."""
        forms = self._forms
        if forms.objects is None:
            assert forms.buffer is not None
            forms.objects = texts_of(forms.buffer)
        return forms.objects

    @property
    def lengths(self) -> Array:
        """How long each string is."""
        forms = self._forms
        if forms.lengths is None:
            forms.lengths = lengths_of(self.objects.tolist())
        return forms.lengths

    @property
    def buffer(self) -> Buffer:
        """All strings in one buffer."""
        forms = self._forms
        if forms.buffer is None:
            forms.buffer = self._apart()
            forms.lengths = forms.buffer.lengths
        return forms.buffer

    def apart(self) -> Buffer:
        """A buffer in which they lie in order, with at least one zero and nothing else between them."""
        result = self.buffer
        if not result.apart:
            result = self._forms.buffer = self._apart()
        return result

    def _apart(self) -> Buffer:
        columns = self._forms.columns
        if columns is None:
            return Buffer.of(self.objects.tolist())
        return Buffer.of_columns(columns, self.lengths)

    def columns(self) -> Array | None:
        """The strings as numbers of eight bytes: a row for each eight, zeros behind the ends. None when some are long.

        There is a zero behind the longest, too.
        """
        forms = self._forms
        if forms.columns is None:
            width = (int(self.lengths.max()) >> 3) + 1
            if width > WIDEST:
                return None
            forms.columns = self._columns(width)
        return forms.columns

    def first_words(self, width: int) -> Array:
        """So many columns of words, however long the strings are."""
        columns = self.columns()
        if columns is None:
            return self._columns(width)
        missing = width - len(columns)
        return np.pad(columns, ((0, missing), (0, 0))) if missing > 0 else columns[:width]

    def _columns(self, width: int) -> Array:
        result = np.empty((width, len(self.lengths)), np.uint64)
        if self._forms.buffer is None:
            _fill_from_objects(result, self.objects)
        else:
            for places, source in self.sources():
                _fill(result[:, places], source)
        return result

    def sources(self) -> Iterator[tuple[slice, Buffer]]:
        """The strings in buffers, `AT_ONCE` of them at a time."""
        forms = self._forms
        if forms.buffer is not None:
            for places, _ in parts(forms.buffer.starts):
                yield places, forms.buffer.some(places)
            return
        # One buffer of all would not stay in the processor's cache: hashing long strings took three times as long.
        for places, some in parts(self.objects):
            yield places, Buffer.of(some.tolist())

    def reshaped(self, shape: Sequence[int]) -> Strings:
        """The same strings in another shape."""
        return Strings(self._forms, shape)

    def moved(self, move: Callable[[Array], Sequence[Array]]) -> tuple[Array | Strings, ...]:
        """What is left of the strings when their elements are moved, by a function of any array of this shape."""
        forms = self._forms
        if forms.objects is not None:
            return tuple(self._as_moved(forms.objects, pairs) for pairs in move(np.asarray(self)))
        buffer = self.buffer
        starts, lengths = (move(a.reshape(self.shape)) for a in (buffer.starts, buffer.lengths))
        pairs = zip(starts, lengths, strict=True)
        return tuple(
            self.reshaped(a.shape)
            if _in_place(buffer.starts, a)
            else strings_in(Buffer(buffer.data, a.ravel(), n.ravel()), a.shape)
            for a, n in pairs
        )

    def _as_moved(self, objects: Array, moved: Array) -> Strings | Array:
        return self.reshaped(moved.shape) if _in_place(objects, moved) else moved


def _in_place(flat: Array, moved: Array) -> bool:
    """Whether an array is another in another shape."""
    return (
        moved.size == flat.size
        and moved.flags.c_contiguous
        and moved.__array_interface__["data"] == flat.__array_interface__["data"]
    )


def _fill_from_objects(columns: Array, objects: Array) -> None:
    """Numpy copies objects into strings of one size in one call, cut off or with zeros behind."""
    for places, some in parts(objects):
        table = some.astype(f"S{8 * len(columns)}").view("<u8")
        columns[:, places] = table.reshape(len(some), len(columns)).T


def _fill(columns: Array, source: Buffer) -> None:
    last = source.lengths >> 3
    for i, row in enumerate(columns):
        word = source.words(source.starts + (np.minimum(last, i) << 3))
        np.bitwise_and(word, WORD_MASKS.take(source.lengths - 8 * i, mode="clip"), row)


def together(value: Array | Strings, least: int = MANY) -> Strings | None:
    """The strings of a tensor, to be worked on all at once; None when they are objects, and fewer than `least`."""
    if type(value) is Strings:
        return value
    return Strings.of(value) if isinstance(value, np.ndarray) and value.size >= least else None


def strings_in(buffer: Buffer, shape: Sequence[int]) -> Strings | Array:
    """A tensor of the strings in a buffer: of objects, when they are few."""
    if len(buffer.lengths) < MANY:
        return texts_of(buffer).reshape(shape)
    return Strings(_StringForms(None, buffer), shape)


__all__ = ["Strings", "strings_in", "together"]
