"""Boards: where other processes of the machine read small variables of a server without asking it.

A board has a place for each of the variables that somebody reads together. Whoever changes one of them writes the new value to its
places, too, before anybody is told that it has changed. A place has a count, odd while it is written: a reader copies the whole board,
and has what it wanted if the counts were even before and are the same after that. A reader also sets the first
byte; when nobody has done so for many changes, the board is taken down, and whoever comes later asks the server again.

That writes are seen in the order they were made in is a promise of x86 processors. On others there are no boards.
"""

from __future__ import annotations

import math
import os
import platform
import sys
import threading
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.runtime.shared_memory import mapping
from tensorfleet.runtime.variable_packs import WriterLocks, layout, release

if TYPE_CHECKING:
    from tensorfleet.base.types import Array, Dims

MAX_BYTES = 1 << 20  # of all values: to copy more takes longer than a message (decision 11)
_MAX_BOARDS = 64  # in a process: each is two open files
_ALIGNMENT = 64
_COUNTS = 64  # where the counts begin; the first byte tells whether anybody reads
_DOWN = (1 << 64) - 1  # the count of a place that nobody writes to any more
_MAX_UNREAD_CHANGES = 16  # of each value on average; then the board is taken down
_MAX_TRIES = 8  # copies of a board that changes meanwhile; then the server is asked

_lock = threading.RLock()  # of the lists of boards that stores have, and of those below
_up: dict[tuple[int, ...], VariableBoard] = {}


def are_possible() -> bool:
    """Whether this machine can have boards."""
    return sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")


def head_of(places: int) -> int:
    """How many bytes of a board come before its values."""
    return -(-(_COUNTS + 8 * places) // _ALIGNMENT) * _ALIGNMENT


def board_of(stores: Sequence[Any]) -> VariableBoard | None:
    """The board with the values of some variables, in this order; None when there can be none, or not now."""
    key = tuple(map(id, stores))
    with _lock:
        board = _up.get(key)
        if board is None and len(_up) < _MAX_BOARDS and are_possible():
            board = _put_up(stores)
            if board is not None:
                _up[key] = board
        return board


def _put_up(stores: Sequence[Any]) -> VariableBoard | None:
    held: list[Any] = []
    try:
        if not WriterLocks(stores).acquire_soon(held):
            return None
        values = [None if s.value is None else np.asarray(s.value) for s in stores]
        sizes = [0 if v is None or v.dtype.hasobject else v.nbytes for v in values]
        if not all(sizes) or sum(sizes) > MAX_BYTES:
            return None
        return VariableBoard(stores, values)
    except OSError:  # no memory of that kind left, or no descriptors
        return None
    finally:
        release(held)


def _forked() -> None:
    """Leaves the boards to the process that forked this one: it goes on writing to them."""
    global _lock
    _lock = threading.RLock()
    for board in _up.values():
        board.leave()
    _up.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class VariableBoard:
    """The values of some variables, as their server shows them."""

    def __init__(self, stores: Sequence[Any], values: Sequence[Any]) -> None:
        """The caller holds the locks of all stores."""
        self.values = values  # what their types and shapes are
        #: of each variable its place, its number, and its version before the first change that is shown
        self.versions = [(i, store.order, store.updates) for i, store in enumerate(stores)]
        head = head_of(len(stores))
        starts, size = [], head
        for value in values:
            starts.append(size)
            size += -(-value.nbytes // _ALIGNMENT) * _ALIGNMENT
        self.size = size
        self._stores = list(stores)
        self.descriptor, self._memory = mapping.make(size)
        self._counts = np.frombuffer(self._memory, np.uint64, len(stores), _COUNTS)
        self._places = [
            np.ndarray(v.shape, v.dtype, self._memory, start) for v, start in zip(values, starts, strict=True)
        ]
        self._now = [0] * len(stores)
        self._unread = 0
        for place, value in zip(self._places, values, strict=True):
            place[...] = value
        for i, store in enumerate(stores):
            store.boards = (*store.boards, (self, i))
        layout.change()  # packs look again which of their variables are shown

    def opened(self) -> int | None:
        """A descriptor of the memory for somebody else; None when the board has been taken down."""
        with _lock:
            return os.dup(self.descriptor) if self.descriptor >= 0 else None

    def post(self, i: int, value: Array | None) -> None:
        """Shows a new value. The caller holds the lock of the variable."""
        if self._memory[0]:
            self._memory[0] = self._unread = 0
        else:
            self._unread += 1
        place = self._places[i]
        fits = value is not None and value.shape == place.shape and value.dtype == place.dtype
        if not fits or self._unread > _MAX_UNREAD_CHANGES * len(self._places):
            self.take_down()
            return
        # Odd while it is written, then the next even number: readers compare counts before and after their copy.
        now = self._now[i]
        self._counts[i] = now + 1
        place[...] = value
        self._counts[i] = self._now[i] = now + 2

    def take_down(self) -> None:
        """Shows nothing any more: readers ask the server again."""
        with _lock:
            if self.descriptor < 0:
                return
            _up.pop(tuple(map(id, self._stores)), None)
            self._counts[:] = _DOWN
            self.leave()

    def leave(self) -> None:
        """Has nothing more to do with its memory."""
        for store in self._stores:
            store.boards = tuple(entry for entry in store.boards if entry[0] is not self)
        os.close(self.descriptor)
        self.descriptor = -1


class BoardReader:
    """A board that another process has put up."""

    def __init__(self, memory: Any, layout: list[tuple[np.dtype[Any], Dims, int]]) -> None:
        """`layout` has the type and shape of each value, and where it begins behind the head."""
        self._memory = memory
        self._layout = layout
        self._counts = slice(_COUNTS, _COUNTS + 8 * len(layout))
        self._body = np.frombuffer(memory, np.uint8, offset=head_of(len(layout)))
        self._lock = threading.Lock()
        #: of each value that a read gives
        self.value_bytes = [dtype.itemsize * math.prod(shape) for dtype, shape, _ in layout]
        self.spare: np.ndarray | None = None

    def read(self, counts: list[np.ndarray] | None = None) -> list[np.ndarray] | None:
        """The values, all of one moment. None when the board is down, or is changed too often.

        Adds to `counts` those of the places: each goes up by two with every change since the board was put up.
        """
        memory = self._memory
        memory[0] = 1  # tells the server that somebody reads
        with self._lock:
            copy = self._room()
            for _ in range(_MAX_TRIES):
                before = memory[self._counts]
                if not (np.frombuffer(before, np.uint64) & _ODD).any():
                    copy[:] = self._body
                    if memory[self._counts] == before:
                        if counts is not None:
                            counts.append(np.frombuffer(before, np.uint64))
                        return [np.ndarray(shape, dtype, copy, start) for dtype, shape, start in self._layout]
                os.sched_yield()
        return None

    def _room(self) -> np.ndarray:
        """Memory for a copy, the one used before if nobody holds any of it: fresh pages cost time."""
        raw = self.spare
        if raw is None or _holders_of_spare(self) > _NOBODY_ELSE:
            raw = self.spare = np.empty(self._body.size + _ALIGNMENT, np.uint8)
        shift = -raw.ctypes.data % _ALIGNMENT
        return raw[shift : shift + self._body.size]


def _holders_of_spare(reader: BoardReader | types.SimpleNamespace) -> int:
    return sys.getrefcount(reader.spare)


def _one_more_holder() -> int:
    raw = object()
    return _holders_of_spare(types.SimpleNamespace(spare=raw))


_ODD = np.uint64(1)
_NOBODY_ELSE = _one_more_holder()
