"""Memory shared by the two ends of a connection within one machine: large tensors are copied once, not through a socket.

The sender copies the body of a frame into a segment (memory with no name, whose descriptor goes with the first frame
that uses it) and sends only where it is. The receiver's tensors lie in that very memory. The segment's first byte is 1
from then on until the receiver holds none of those tensors any more, and only then is it filled again. When all
segments are taken the body goes through the socket.

Both ends forget a segment after the same number of frames that did not use it.
"""

from __future__ import annotations

import array
import fcntl
import mmap
import os
import socket
import struct
import sys
import weakref
from typing import Any

import numpy as np

from tensorfleet import errors

LEAST = 1 << 15  # smaller bodies go through the socket
PLACE = struct.Struct("<BQ")  # number and size of the segment
ROOM = socket.CMSG_SPACE(struct.calcsize("i")) if hasattr(socket, "CMSG_SPACE") else 0
_MOST = 4  # segments in each direction of a connection
_MOST_BYTES = 512 << 20
_FORGET = 32  # frames
_HEAD = 64
_TAKEN = 1


def is_possible(sock: Any) -> bool:
    """Whether the other end of a socket is in the same machine and can be given memory."""
    return sys.platform == "linux" and getattr(sock, "family", None) == socket.AF_UNIX


class Segment:
    """One piece of shared memory."""

    def __init__(self, descriptor: int, size: int, used: int) -> None:
        self.memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self.size = size
        self.used = used
        self._laid_out: tuple[list, list] = [], []  # kinds of arrays, and where they were put

    def fill(self, arrays: list[np.ndarray], starts: list[int]) -> None:
        """Copies a body into it."""
        kinds = [(a.dtype, a.shape) for a in arrays]
        if kinds != self._laid_out[0]:  # the same places will do for the same kinds of arrays
            places = [
                np.ndarray(a.shape, a.dtype, self.memory, _HEAD + start)
                for a, start in zip(arrays, starts, strict=True)
            ]
            self._laid_out = kinds, places
        for place, value in zip(self._laid_out[1], arrays, strict=True):
            place[...] = value

    @property
    def is_free(self) -> bool:
        return self.memory[0] != _TAKEN


class _Segments:
    """The segments of one direction, by number."""

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self.frames = 0

    def count(self) -> None:
        """One more frame has used a segment; those that were not used for long are forgotten."""
        self.frames += 1
        for number, segment in list(self.segments.items()):
            if self.frames - segment.used > _FORGET:
                del self.segments[number]


class Outbox(_Segments):
    """The segments one end fills."""

    def put(self, arrays: list[np.ndarray], starts: list[int], total: int) -> tuple[bytes, int | None] | None:
        """Copies a body into a segment: says where, with the descriptor of a new one. None when it cannot."""
        if total > _MOST_BYTES:
            return None
        wanted = _HEAD + total
        number, descriptor = self._free(wanted), None
        if number is None:
            number = self._vacant()
            if number is None:
                return None
            try:
                descriptor = self._make(number, wanted)
            except OSError:  # no memory, or a system without such memory
                return None
        segment = self.segments[number]
        segment.fill(arrays, starts)
        segment.memory[0] = _TAKEN
        segment.used = self.frames + 1
        self.count()
        return PLACE.pack(number, segment.size), descriptor

    def _free(self, wanted: int) -> int | None:
        fitting = [(s.size, n) for n, s in self.segments.items() if s.size >= wanted and s.is_free]
        return min(fitting)[1] if fitting else None

    def _vacant(self) -> int | None:
        """A number for a new segment; one whose segment is too small gives way."""
        return next((n for n in range(_MOST) if n not in self.segments or self.segments[n].is_free), None)

    def _make(self, number: int, wanted: int) -> int:
        step = max(1 << 16, 1 << (wanted.bit_length() - 3))  # room for a body that grows a little
        size = -(-wanted // step) * step
        descriptor = os.memfd_create("tensorfleet", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            self.segments[number] = Segment(descriptor, size, self.frames)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


class Inbox(_Segments):
    """The segments one end reads."""

    def __init__(self) -> None:
        super().__init__()
        self._descriptor: int | None = None
        self._leases: dict[int, Any] = {}

    def keep(self, told: list) -> None:
        """Takes the descriptor that came along with some bytes."""
        for level, kind, data in told:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                for descriptor in array.array("i", data[: len(data) - len(data) % 4]):
                    self.drop()
                    self._descriptor = descriptor

    def drop(self) -> None:
        """Closes a descriptor that no frame has asked for."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def take(self, place: bytes, total: int) -> np.ndarray:
        """The body of a frame; its segment is free again when nothing of it is held any more."""
        number, size = PLACE.unpack(place)
        if self._descriptor is not None:
            self._map(number, size)
        segment = self.segments.get(number)
        if segment is None or segment.size != size or _HEAD + total > size:
            raise _refused("a segment that was never shared")
        segment.used = self.frames + 1
        self.count()
        memory = segment.memory
        body = np.frombuffer(memory, np.uint8, total, _HEAD)

        leases, key = self._leases, self.frames

        def give_back(_: Any) -> None:
            memory[0] = 0
            del leases[key]

        leases[key] = weakref.ref(body, give_back)
        return body

    def _map(self, number: int, size: int) -> None:
        descriptor, self._descriptor = self._descriptor, None
        assert descriptor is not None
        try:
            seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
            if not seals & fcntl.F_SEAL_SHRINK or os.fstat(descriptor).st_size != size or number >= _MOST:
                raise _refused("shared memory that could be taken away")
            self.segments[number] = Segment(descriptor, size, self.frames)
        except (OSError, ValueError):
            raise _refused("shared memory that cannot be mapped") from None
        finally:
            os.close(descriptor)


def _refused(what: str) -> errors.OpError:
    return errors.InvalidArgumentError(None, None, f"A message does not make sense: {what}.")
