"""Rows of numbers by unordered 64-bit keys, made when a key is first used."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorfleet.base import errors
from tensorfleet.kernels.key_index import KeyIndex

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.state.recording import ChangeRecorder

#: Gives new rows from the rows of some keys and the values pushed for them.
RowFunction: TypeAlias = "Callable[[Array, Array], Array]"

_MAX_KEY_SETS = 64  # of clients that push and pull the same keys again and again
_MIN_ROWS = 256


@dataclass(frozen=True)
class RowKind:
    """What all programs that use a table must agree on."""

    name: str
    dim: int
    dtype: str
    #: how a pushed value changes a row: "sum", "max", "set", or the digest of a function
    merge: str
    #: the bytes of a row that is new
    initial: bytes

    def differences(self, other: KeyedRows) -> str:
        """How a table differs from this; "" if it does not."""
        pairs = [
            (field, getattr(self, field), getattr(other.kind, field)) for field in ("dim", "dtype", "merge")
        ]
        said = [f"{field}={have!r}, not {want!r}" for field, want, have in pairs if want != have]
        if not said and self.initial != other.kind.initial:
            said = ["another `init`"]
        return ", ".join(said)


class KeyedRows:
    """A table of rows. One request at a time changes it; a pull sees all of a push, or nothing."""

    #: who keeps a copy of it, on a durable server
    recorder: ChangeRecorder | None = None

    def __init__(self, kind: RowKind) -> None:
        self.kind = kind
        self._lock = threading.RLock()
        self._index = KeyIndex()
        self._initial = np.frombuffer(kind.initial, kind.dtype)
        self._rows = np.empty((0, kind.dim), kind.dtype)
        self._sets: OrderedDict[bytes, Array] = OrderedDict()

    def size(self) -> int:
        """How many keys have a row."""
        return len(self._index)

    # -- requests -------------------------------------------------------------------------------------

    def pull(self, keys: Array) -> Array:
        """The rows of keys. A key that has none gets the initial one, and none is made."""
        with self._lock:
            return self._taken(self._index.find(keys))

    def push(self, keys: Array, values: Array, merge: str | RowFunction) -> None:
        """Merges values into the rows of keys; those of a key that comes several times one after the other."""
        with self._lock:
            at = self._made(keys)
            repeats = merge != "set" and _has_repeats(
                at
            )  # of several values for one row numpy leaves the last
            if repeats and merge == "sum":
                np.add.at(self._rows, at, values)
            else:
                for chosen in _rounds(at) if repeats else [slice(None)]:
                    self._merge(at[chosen], values[chosen], merge)
            self._record(keys, at)

    def pull_range(self, first: int, last: int) -> tuple[Array, Array]:
        """The keys from `first` up to and without `last` that have rows, in order, and these rows."""
        with self._lock:
            keys = self._index.keys
            at = np.flatnonzero((keys >= first) & (keys < last))
            found = keys[at]
            order = np.argsort(found)
            return found[order], self._rows[at[order]]

    def run(self, keys: Array, function: Callable[[Array], Sequence[Array]]) -> list[Array]:
        """Gives a function the rows of different keys and puts its first result in their place; gives the others."""
        with self._lock:
            at = self._made(keys)
            if _has_repeats(at):
                raise errors.invalid(
                    f"A server function of table '{self.kind.name}' got a key more than once. Give each key once: sum "
                    "the arguments of equal keys first (numpy.unique with return_inverse finds them)."
                )
            new, *rest = function(self._rows[at])
            if new.shape != (len(at), self.kind.dim) or new.dtype != self._rows.dtype:
                raise errors.invalid(
                    f"A server function of table '{self.kind.name}' gave rows of shape {list(new.shape)} and type "
                    f"{new.dtype}, not {[len(at), self.kind.dim]} and {self._rows.dtype}."
                )
            self._rows[at] = new
            self._record(keys, at)
            return list(rest)

    # -- sets of keys that come again -----------------------------------------------------------------

    def remember(self, keys: Array) -> None:
        """Keeps keys, so that a later request names them by `digest_of` alone."""
        with self._lock:
            # A request lies in memory that the next one overwrites.
            self._sets[digest_of(keys)] = keys.copy()
            if len(self._sets) > _MAX_KEY_SETS:
                self._sets.popitem(last=False)

    def remembered(self, digest: bytes) -> Array | None:
        """The keys with a digest, None if they are not kept (any more)."""
        with self._lock:
            keys = self._sets.get(digest)
            if keys is not None:
                self._sets.move_to_end(digest)
            return keys

    # -- copies ---------------------------------------------------------------------------------------

    def insert(self, keys: Array, rows: Array) -> None:
        """Sets rows, as another server's `called` tells them."""
        with self._lock:
            at = self._made(keys)
            self._rows[at] = rows
            self._record(keys, at)

    def content(self) -> tuple[dict[str, Any], list[Any]]:
        """Its state for a copy."""
        with self._lock:
            return {}, [self._index.keys.copy(), self._rows[: len(self._index)].copy()]

    def restore(self, numbers: dict[str, Any], arrays: Sequence[Any]) -> None:
        """Takes over the state of a copy."""
        keys, rows = arrays
        with self._lock:
            self._forget()
            at = self._made(np.asarray(keys, np.int64))
            self._rows[at] = rows

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._forget()
            if self.recorder is not None:
                self.recorder.changed(self)

    # -- inside ---------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._index = KeyIndex()
        self._sets.clear()
        self._rows = np.empty((0, self.kind.dim), self.kind.dtype)

    def _made(self, keys: Array) -> Array:
        """The numbers of the rows of keys, made where there are none."""
        before = len(self._index)
        at = self._index.add(keys)
        count = len(self._index)
        if count > len(self._rows):
            grown = np.empty((max(_MIN_ROWS, count + count // 2), self.kind.dim), self.kind.dtype)
            grown[:before] = self._rows[:before]
            self._rows = grown
        if count > before:
            self._rows[before:count] = self._initial
        return at

    def _taken(self, at: Array) -> Array:
        missing = at < 0
        if not len(self._index):
            return np.tile(self._initial, (len(at), 1))
        rows = self._rows.take(at, axis=0, mode="wrap")
        if missing.any():
            rows[missing] = self._initial
        return rows

    def _merge(self, at: Array, values: Array, merge: str | RowFunction) -> None:
        rows = self._rows
        if merge == "sum":
            rows[at] += values
        elif merge == "max":
            rows[at] = np.maximum(rows[at], values)
        elif merge == "set":
            rows[at] = values
        elif callable(merge):
            rows[at] = merge(rows[at], values)
        else:
            raise errors.invalid(f"merge must be 'sum', 'max', 'set' or a function, not {merge!r}.")

    def _record(self, keys: Array, at: Array) -> None:
        if self.recorder is not None:
            self.recorder.called(self, "insert", [keys, self._rows[at]])


def digest_of(keys: Array) -> bytes:
    """A short name for a set of keys in an order."""
    return hashlib.blake2b(keys.tobytes(), digest_size=16).digest()


def _has_repeats(at: Array) -> bool:
    ordered = np.sort(at)
    return bool((ordered[1:] == ordered[:-1]).any())


def _rounds(at: Array) -> list[Any]:
    """Positions in groups without a repetition: the first of each number, then the second of each, and so on."""
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[begins, len(at)])
    rank = np.arange(len(at)) - np.repeat(begins, lengths)
    return [order[rank == r] for r in range(int(lengths.max()))]
