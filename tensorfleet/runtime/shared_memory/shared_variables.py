"""Memory that other processes of the machine can read: large variables of a server are lent to them, not copied.

The value of such a variable lies in memory without a name, whose descriptor a connection passes on (cluster/transport/shared_memory.py). Its
first page has a byte for each loan: 1 from the moment the value is sent until the borrower holds nothing of it any more.
The lender keeps a reference to the array meanwhile, so that whoever wants to change the variable finds it held by somebody and changes
a copy, as always. A borrower that ends without a word may hold it still: that memory is never written again.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import resource
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.kernels.aligned_memory import copied as copied_in_parts
from tensorfleet.runtime.shared_memory import mapping

if TYPE_CHECKING:
    from tensorfleet.base.types import Array

MIN_BYTES = 1 << 18  # to copy fewer costs no more than to lend them
HEAD_BYTES = mmap.PAGESIZE  # one byte for each loan
_MAX_BLOCKS = 64  # pieces of memory at a time: each is two open files
_MAX_SPARE_BYTES = 256 << 20  # bytes that are kept for the next value

_lock = threading.RLock()  # the garbage collector may give a block back while this thread asks for another
_numbers = itertools.count(1)
_spare: list[SharedBlock] = []
_count = 0
_possible = False


def room(size: int) -> int:
    """How much memory a value of so many bytes takes."""
    return mapping.room(HEAD_BYTES + size)


def begin() -> None:
    """Notes that this process serves others from now on: its large variables go where they can be lent."""
    global _possible
    if not _possible and sys.platform == "linux":
        _possible = True
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with contextlib.suppress(OSError, ValueError):  # what was allowed before is enough for most programs
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class SharedBlock:
    """A piece of memory for one value."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.number = next(_numbers)
        self.descriptor, memory = mapping.make(room(size))
        self._memory: Any = memory  # while it is spare; its array has it otherwise
        self.loans: dict[int, Loan] = {}
        self.lost = False
        weakref.finalize(memory, _closed, self.descriptor)

    def array(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """An array in it, which leaves it as spare memory when nobody holds it any more."""
        assert self._memory is not None
        memory, self._memory = self._memory, None
        memory.block = self  # what lies in it leads here
        array = np.ndarray(shape, dtype, memory, HEAD_BYTES)
        self._watch = weakref.ref(array, lambda _: self._left(memory))
        return array

    def _left(self, memory: Any) -> None:
        del self._watch, memory.block  # they lead to each other
        with _lock:
            if not self.lost and sum(h.size for h in _spare) + self.size <= _MAX_SPARE_BYTES:
                self._memory = memory
                _spare.append(self)

    def lend(self, array: np.ndarray) -> Loan | None:
        """Notes that `array`, which lies here, is lent. None when it cannot be."""
        with _lock:
            self.settle()
            place = next((n for n in range(HEAD_BYTES) if n not in self.loans), None)
            if place is None or self.lost or array.nbytes != self.size or not array.flags.c_contiguous:
                return None
            loan = self.loans[place] = Loan(self, place, array)
            loan.memory[place] = 1
            return loan

    def settle(self) -> bool:
        """Forgets the loans that were given back. Whether what lies here may be changed, if nobody else holds it."""
        if self.loans:
            with _lock:
                for loan in [loan for place, loan in self.loans.items() if not loan.memory[place]]:
                    loan.end()
        return not self.lost


class Loan:
    """An array that somebody in another process reads."""

    __slots__ = ("array", "block", "memory", "place")

    def __init__(self, block: SharedBlock, place: int, array: np.ndarray) -> None:
        self.block = block
        self.place = place  # of its byte
        self.array = array
        self.memory = _memory_of(array)

    def is_open(self) -> bool:
        """Whether it has not been given back."""
        self.block.settle()
        return self.block.loans.get(self.place) is self

    def lose(self) -> None:
        """The borrower cannot be asked any more, and may hold the array for ever."""
        with _lock:
            if self.is_open():
                self.block.lost = True
                self.end()

    def end(self) -> None:
        """Holds the array no longer, whoever may have kept the loan itself."""
        del self.block.loans[self.place], self.array, self.memory


def _closed(descriptor: int) -> None:
    global _count
    os.close(descriptor)
    with _lock:
        _count -= 1


def block_of(value: object) -> SharedBlock | None:
    """Where a value lies, if it can be lent."""
    block = getattr(_memory_of(value), "block", None) if type(value) is np.ndarray else None
    return block if type(block) is SharedBlock else None


def _memory_of(array: np.ndarray) -> Any:
    """What an array, or the one it is a view of, lies in."""
    base = array.base
    return base.base if type(base) is np.ndarray else base


def is_lendable(value: Array) -> bool:
    """Whether a value is large enough to be lent, and would be in memory of its own."""
    return _possible and value.nbytes >= MIN_BYTES and not value.dtype.hasobject


def has_room() -> bool:
    """Whether another value could be given memory."""
    return _count - len(_spare) < _MAX_BLOCKS


def copied(value: Array) -> np.ndarray:
    """A copy of a value that can be changed, in C's order; a large one lies where it can be lent."""
    block = _new_block(value.nbytes) if is_lendable(value) else None
    if block is None:
        return copied_in_parts(np.asarray(value))
    copy = block.array(value.shape, value.dtype)
    np.copyto(copy, value)
    return copy


def _new_block(size: int) -> SharedBlock | None:
    global _count
    with _lock:
        for n, block in enumerate(_spare):
            if block.size == size:
                return _spare.pop(n)
        while _spare and _count >= _MAX_BLOCKS:
            _spare.pop(0)
        if _count >= _MAX_BLOCKS:
            return None
        _count += 1
    try:
        return SharedBlock(size)
    except OSError:  # no memory of that kind left, or no descriptors
        with _lock:
            _count -= 1
        return None
