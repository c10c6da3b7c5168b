"""Strings read where Python keeps them: their lengths and letters by address, without a call for each.

CPython's `bytes` begin with a reference count, the address of their type, their length and a hash, eight bytes each; the
letters follow, and a zero. An array of objects is an array of their addresses. So numpy can fetch a word of each of many
strings at once from one array that stands for all of the process's memory.

Two rules keep this safe. The strings are held by an array that nobody changes meanwhile, as nobody changes any argument of
a kernel: arrays of strings that are fed, or that Python functions return, are copied before. And a word is read only if it
lies within a string, or at a multiple of eight and has a byte of the string, or the zero behind it, in it: such a word does
not cross into another page of memory.

Where Python is not laid out like this, `usable` says so, and strings are joined into a buffer instead.
"""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache

import numpy as np

_HEADER = 32  # bytes before the first letter
_WORD = 8  # bytes; every object starts at a multiple of it


class _Region:
    """Some memory for numpy to look at."""

    def __init__(self, address: int, count: int, kind: str, step: int) -> None:
        self.__array_interface__ = {
            "data": (address, True),
            "shape": (count,),
            "typestr": kind,
            "strides": (step,),
            "version": 3,
        }


def _memory(kind: str, step: int, start: int = _WORD) -> np.ndarray:
    """All memory that a program can have, but for the first bytes: numpy takes address 0 for none."""
    return np.asarray(_Region(start, 1 << 56, kind, step))


AT_ONCE = 16000  # strings; what is fetched of so many stays in the processor's cache


class InMemory:
    """Strings where they are: the addresses they start at, and how long they are."""

    def __init__(self, held: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
        self._held = held
        self.starts = starts
        self.lengths = lengths

    def words(self, places: np.ndarray, kind: str = "<u8") -> np.ndarray:
        """The bytes from some addresses on, as numbers: only such that lie within a string."""
        return _memory(kind, 1)[places - _WORD]

    def whole_words(self, places: np.ndarray) -> np.ndarray:
        """Eight bytes each from addresses that are multiples of eight; what is behind a string's end is anything."""
        return _memory("<u8", _WORD)[(places >> 3) - 1]


def in_memory(strings: np.ndarray) -> InMemory | None:
    """Where the strings of a vector are; None where that cannot be told, or some are no `bytes`."""
    return _found(strings) if usable() else None


def _found(strings: np.ndarray) -> InMemory | None:
    held = np.ascontiguousarray(strings)
    if not held.size:
        return None
    objects = np.asarray(_Region(held.__array_interface__["data"][0], held.size, "<i8", _WORD))
    if np.bitwise_or.reduce(objects) % _WORD or not objects.all():  # numpy shows an address of 0 as None
        return None
    # The type and the length of each, as one number of 16 bytes.
    heads = _memory("<c16", _WORD)[objects >> 3].view(np.int64)
    if (heads[::2] != id(bytes)).any():
        return None
    return InMemory(held, objects + _HEADER, heads[1::2])


@lru_cache
def usable() -> bool:
    """Whether this Python keeps strings as described above: asked of some that are known."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if bytes.__basicsize__ != _HEADER + 1 or sys.maxsize != 2**63 - 1 or sys.byteorder != "little":
        return False
    return _as_expected([b"", b"a", b"length", b"of letters", bytes(range(256)), b"last" * 1000])


def _as_expected(known: list[bytes]) -> bool:
    array = np.fromiter(known, object, len(known))
    addresses = np.array([id(s) for s in known])
    if np.bitwise_or.reduce(addresses) % _WORD:
        return False
    found = _found(array)
    if found is None or (found.starts != addresses + _HEADER).any():
        return False
    if found.lengths.tolist() != [len(s) for s in known]:
        return False
    first = found.whole_words(found.starts).tolist()
    last = found.words(found.starts[1:] + found.lengths[1:] - 1, "u1").tolist()
    masks = [(1 << 8 * min(len(s), _WORD)) - 1 for s in known]
    begin = [word & mask for word, mask in zip(first, masks, strict=True)]
    return last == [s[-1] for s in known[1:]] and begin == [
        int.from_bytes(s[:_WORD], "little") for s in known
    ]
