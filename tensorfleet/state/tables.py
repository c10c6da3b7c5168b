"""Lookup tables of a session: filled once, mutable, or in buckets."""

from __future__ import annotations

import threading
from array import array as numbers
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.kernels.arrays import zeros_of
from tensorfleet.kernels.hashing import murmur64
from tensorfleet.kernels.packed_strings import Strings, together
from tensorfleet.kernels.string_index import StringIndex

if TYPE_CHECKING:
    from tensorfleet.state.recording import ChangeRecorder

#: Keys or values, one or an array of them. Strings may come packed.
_Values: TypeAlias = "np.ndarray | Strings"


def invalid(message: str) -> Exception:
    """The error for arguments that do not fit a table."""
    return errors.invalid(message)


class Table:
    """Keys with their values, each a single element or a row of a fixed shape."""

    #: who keeps a copy of it, on a durable server
    recorder: ChangeRecorder | None = None

    def __init__(
        self,
        key_dtype: DType,
        value_dtype: DType,
        value_shape: tuple[int, ...] = (),
        key_shape: tuple[int, ...] = (),
    ) -> None:
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self.value_shape = value_shape
        self.key_shape = key_shape
        self.entries: dict[Any, Any] = {}
        self.lock = threading.Lock()

    def check_types(self, keys: _Values, values: _Values | None = None) -> None:
        """InvalidArgumentError unless keys and values are of the table's types."""
        given = _dtype(keys), self.value_dtype if values is None else _dtype(values)
        if given != (self.key_dtype, self.value_dtype):
            raise invalid(
                f"Conflicting key/value dtypes {given[0].name}->{given[1].name} with {self.key_dtype.name}-"
                f"{self.value_dtype.name} for table"
            )

    def rows(self, keys: _Values) -> list[Any]:
        """Keys in the form that the dictionary holds."""
        array = np.asarray(keys)
        if not self.key_shape:
            return array.ravel().tolist()
        return [tuple(k) for k in array.reshape(-1, int(np.prod(self.key_shape))).tolist()]

    def outer(self, keys: _Values) -> tuple[int, ...]:
        """The shape of an array of keys without that of a single one."""
        shape = np.shape(keys)
        return shape[: len(shape) - len(self.key_shape)]

    def find(self, keys: _Values, default: _Values) -> np.ndarray:
        """The values of keys, `default` for missing ones."""
        default = np.asarray(default)
        rows = self.rows(keys)
        fallback = default if self.value_shape else default.item()
        if self.value_dtype == dtypes.string and not self.value_shape:
            fallback = np.asarray(default, object).item()
        kind = self.value_dtype.np_dtype
        with self.lock:
            get = self.entries.get
            if not self.value_shape:
                values: list[Any] = list(map(get, rows, repeat(fallback)))
                # Numpy would take the numbers out of the list one by one.
                whole = kind == np.int64 and values
                vector = np.array(numbers("q", values)) if whole else np.fromiter(values, kind, len(rows))
                return vector.reshape(self.outer(keys))
            rows_found = np.empty((len(rows), *self.value_shape), kind)
            for i, key in enumerate(rows):
                rows_found[i] = get(key, fallback)
        return rows_found.reshape((*self.outer(keys), *self.value_shape))

    def pairs(self, keys: _Values, values: _Values) -> list[tuple[Any, Any]]:
        """(key, value) for each row of two arrays."""
        array, wanted = np.asarray(values), (*self.outer(keys), *self.value_shape)
        if array.shape != wanted:
            raise invalid(f"Expected shape {list(wanted)} for value, got {list(array.shape)}")
        rows = array.reshape(-1, *self.value_shape) if self.value_shape else array.ravel().tolist()
        return list(zip(self.rows(keys), rows, strict=True))

    def size(self) -> int:
        """How many keys there are."""
        return len(self.entries)

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys and all values."""
        with self.lock:
            entries = list(self.entries.items())
        keys = np.empty((len(entries), *self.key_shape), self.key_dtype.np_dtype)
        values = np.empty((len(entries), *self.value_shape), self.value_dtype.np_dtype)
        for i, (k, v) in enumerate(entries):
            keys[i], values[i] = k, v
        return keys, values

    def content(self) -> tuple[dict[str, Any], list[Any]]:
        """Its state for a copy: numbers, and arrays of keys and values."""
        keys, values = Table.export(self)
        return {}, [keys, values]

    def restore(self, numbers: dict[str, Any], arrays: Sequence[Any]) -> None:
        """Takes over the state of a copy."""
        keys, values = arrays
        self.entries = dict(self.pairs(keys, values))

    def remove(self, keys: _Values) -> None:
        """Removes keys; missing ones are ignored."""
        raise errors.UnimplementedError(None, None, "Cannot remove from this type of lookup table.")


def _dtype(value: object) -> DType:
    return dtypes.as_dtype(value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype)


class StaticTable(Table):
    """A table that is filled once."""

    initialized = False
    _index: tuple[StringIndex, np.ndarray] | None = None  # of short strings
    _asked = False  # whether there is one: it is made when many strings are looked up

    def fill(self, pairs: Iterator[tuple[Any, Any]]) -> None:
        """Takes the entries; when it has them already, they must be the same."""
        entries: dict[Any, Any] = {}
        for key, value in pairs:
            if entries.setdefault(key, value) != value:
                raise errors.FailedPreconditionError(
                    None,
                    None,
                    f"HashTable has different value for same key. Key {_told(key)} has {_told(entries[key])} and trying "
                    f"to add value {_told(value)}",
                )
        with self.lock:
            if self.initialized and entries != self.entries:
                raise errors.FailedPreconditionError(
                    None, None, "Table already initialized. It was filled with different data."
                )
            self.entries, self.initialized = entries, True
            self._asked, self._index = False, None
            if self.recorder is not None:
                self.recorder.changed(self)

    def find(self, keys: _Values, default: _Values) -> np.ndarray:
        """The values of keys; FailedPreconditionError before the table is filled."""
        if not self.initialized:
            raise errors.FailedPreconditionError(None, None, "Table not initialized.")
        # One vectorized search in an index of short strings, in place of a dictionary look-up for each word.
        many = together(keys) if self.key_dtype == dtypes.string else None
        index = None if many is None else self._indexed()
        if index is None or many is None:
            return super().find(keys, default)
        strings, values = index
        places = strings.find(many)
        result = values.take(places, mode="clip")  # the first one where there is none
        missing = places < 0
        if missing.any():
            result[missing] = np.asarray(default, values.dtype).item()
        return result.reshape(np.shape(keys))

    def content(self) -> tuple[dict[str, Any], list[Any]]:
        """Its state for a copy."""
        return {"initialized": self.initialized}, super().content()[1]

    def restore(self, numbers: dict[str, Any], arrays: Sequence[Any]) -> None:
        """Takes over the state of a copy."""
        super().restore(numbers, arrays)
        self.initialized, self._asked, self._index = numbers["initialized"], False, None

    def _indexed(self) -> tuple[StringIndex, np.ndarray] | None:
        """The keys, if they are some short strings, and their values."""
        if not self._asked:
            keys, values = self.export()
            index = StringIndex.of(Strings.of(keys)) if len(keys) else None
            self._index = None if index is None else (index, values)
            self._asked = True
        return self._index

    def insert(self, keys: _Values, values: _Values) -> None:
        """Refused: a static table does not grow."""
        raise errors.UnimplementedError(None, None, "Insert not supported by InitializableLookupTable.")

    def replace(self, keys: _Values, values: _Values) -> None:
        """Fills the table."""
        self.fill(iter(self.pairs(keys, values)))


def _told(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


class MutableTable(Table):
    """A table whose entries come and go."""

    def insert(self, keys: _Values, values: _Values) -> None:
        """Adds entries, or gives keys new values."""
        pairs = self.pairs(keys, values)
        with self.lock:
            self.entries.update(pairs)
            if self.recorder is not None:
                self.recorder.called(self, "insert", [np.asarray(keys), np.asarray(values)])

    def remove(self, keys: _Values) -> None:
        """Removes keys; one that is not in the table is skipped."""
        with self.lock:
            for key in self.rows(keys):
                self.entries.pop(key, None)
            if self.recorder is not None:
                self.recorder.called(self, "remove", [np.asarray(keys)])

    def replace(self, keys: _Values, values: _Values) -> None:
        """These entries instead of all others."""
        pairs = self.pairs(keys, values)
        with self.lock:
            self.entries = dict(pairs)
            if self.recorder is not None:
                self.recorder.changed(self)

    def clear(self) -> None:
        """Forgets everything."""
        with self.lock:
            self.entries = {}
            if self.recorder is not None:
                self.recorder.changed(self)


class DenseTable(MutableTable):
    """A mutable table that is exported as TensorFlow keeps it: buckets, of which many are empty."""

    def __init__(
        self, *args: Any, empty_key: _Values, deleted_key: _Values, buckets: int, load: float
    ) -> None:
        super().__init__(*args)
        if buckets < 4 or buckets & (buckets - 1):
            raise invalid(f"Number of buckets must be at least 4 and a power of 2, got: {buckets}")
        if np.shape(empty_key) != np.shape(deleted_key):
            shapes = f"{list(np.shape(empty_key))} and {list(np.shape(deleted_key))}"
            raise invalid(f"Empty and deleted keys must have same shape, got shapes: {shapes}")
        if np.array_equal(empty_key, deleted_key):
            raise invalid("Empty and deleted keys cannot be equal")
        self.empty, self.deleted = self.rows(empty_key)[0], self.rows(deleted_key)[0]
        self.buckets, self.load = buckets, load
        self.holes: list[Any] = []  # what is left in buckets whose key was removed

    def _check(self, given: _Values) -> None:
        shape = np.shape(given)
        wanted = (shape[0] if shape else 1, *self.key_shape)
        if np.prod(shape) != np.prod(wanted):
            raise invalid(f"Expected key shape {list(wanted)} got {list(shape)}")
        keys = self.rows(given)
        for what, special in (("empty", self.empty), ("deleted", self.deleted)):
            if special in keys:
                raise invalid(f"Using the {what}_key as a table key is not allowed")

    def find(self, keys: _Values, default: _Values) -> np.ndarray:
        """The values of keys, with a default for missing ones."""
        self._check(keys)
        return super().find(keys, default)

    def insert(self, keys: _Values, values: _Values) -> None:
        """Sets the values of keys; grows the buckets when they are too full."""
        self._check(keys)
        # Every key counts as a new one.
        wanted = self.size() + len(self.rows(keys))
        while wanted > self.buckets * self.load:
            self.buckets, self.holes = self.buckets * 2, []
        super().insert(keys, values)

    def remove(self, keys: _Values) -> None:
        """Removes keys; their rows become holes."""
        self._check(keys)
        with self.lock:
            self.holes += [self.entries[k] for k in dict.fromkeys(self.rows(keys)) if k in self.entries]
        super().remove(keys)

    def replace(self, keys: _Values, values: _Values) -> None:
        """The entries of exported buckets instead of all others."""
        keys = np.asarray(keys)
        flat = keys.reshape(len(keys), -1).tolist()
        rows = [tuple(k) if self.key_shape else k[0] for k in flat]
        kept = [i for i, k in enumerate(rows) if k not in (self.empty, self.deleted)]
        array = np.asarray(values).reshape(len(keys), *self.value_shape)[kept]
        with self.lock:
            members = array if self.value_shape else array.tolist()
            self.entries = dict(zip([rows[i] for i in kept], members, strict=True))
            self.buckets, self.holes = max(len(keys), 4), []
            if self.recorder is not None:
                self.recorder.changed(self)

    def content(self) -> tuple[dict[str, Any], list[Any]]:
        """Its state for a copy, with the number of its buckets and what is left in those of removed keys."""
        holes = np.empty((len(self.holes), *self.value_shape), self.value_dtype.np_dtype)
        for i, value in enumerate(self.holes):
            holes[i] = value
        return {"buckets": self.buckets}, [*super().content()[1], holes]

    def restore(self, numbers: dict[str, Any], arrays: Sequence[Any]) -> None:
        """Takes over the state of a copy."""
        super().restore(numbers, arrays[:2])
        self.buckets, self.holes = numbers["buckets"], list(arrays[2])

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        """All buckets: their keys, and their values (zero where the key is empty, the last one where it is deleted)."""
        own, held = super().export()
        width = int(np.prod(self.key_shape, dtype=np.int64))
        # The layout of the buckets is part of TensorFlow's checkpoints, so hashes and probing follow its implementation.
        keys = np.empty((self.buckets, width), own.dtype)
        keys[:] = np.array([self.empty], own.dtype).reshape(1, width)
        values = zeros_of((self.buckets, int(np.prod(self.value_shape, dtype=np.int64))), held.dtype)
        taken = np.zeros(self.buckets, np.bool_)
        for row, hashed in enumerate(_hashes(own.reshape(len(own), width))):
            at = _free_bucket(taken, hashed)
            keys[at], values[at] = own[row], held[row]
        for at, left in zip(np.flatnonzero(~taken).tolist(), self.holes, strict=False):
            keys[at], values[at] = np.array(self.deleted, own.dtype).reshape(width), left
        return keys, values


def _hashes(keys: np.ndarray) -> list[int]:
    """The hash of each row of keys, which says where in the buckets it is looked for."""
    if keys.dtype == object:
        parts = murmur64(keys.ravel()).reshape(keys.shape)
    else:
        parts = keys.astype(np.int64).view(np.uint64)
    if keys.shape[-1] == 1:
        return parts.ravel().tolist()
    result = []
    for row in parts.tolist():
        value = 0
        for part in row:
            value ^= (part + 0x9E3779B97F4A7800 + (value << 10) + (value >> 4)) % 2**64
        result.append(value)
    return result


def _free_bucket(taken: np.ndarray, hashed: int) -> int:
    """The first free bucket for a hash, taken: further and further steps from where it belongs."""
    at, step = hashed % len(taken), 0
    while taken[at]:
        step += 1
        at = (at + step) % len(taken)
    taken[at] = True
    return at
