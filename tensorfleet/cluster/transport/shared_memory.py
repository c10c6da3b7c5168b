"""Memory shared by the two ends of a connection within one machine: large tensors are copied once, not through a socket.

The sender copies the body of a frame into a segment (anonymous memory, whose descriptor goes with the first frame that
uses it) and sends only where it is. The receiver's tensors lie in that very memory. The segment's first byte is 1 from
then on until the receiver holds none of those tensors any more, and only then is it filled again. When all segments are
taken, the body goes through the socket.

Tensors that lie in memory which can be lent (runtime/shared_memory/shared_variables.py), as the large variables of a server do, are not copied at all: the
receiver is told where they are, and gives them back by clearing the byte of the loan.

Both ends forget a segment, and memory that was lent, after the same number of frames that did not use it.
"""

from __future__ import annotations

import array
import fcntl
import itertools
import os
import socket
import struct
import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.runtime.shared_memory import mapping, shared_variables

if TYPE_CHECKING:
    from tensorfleet.base.types import Array, Dims

MIN_BYTES = 1 << 15  # bytes: smaller bodies are sent through the socket sooner than placed
PLACE = struct.Struct("<BBQ")  # number of the segment, whether its descriptor comes along, its size
# Which tensor, the byte of the loan; of its block: whether the descriptor comes along, the number and size.
LOAN = struct.Struct("<HHBQQ")
MAX_LOANS = 32  # in a frame
ROOM = socket.CMSG_SPACE((1 + MAX_LOANS) * struct.calcsize("i")) if hasattr(socket, "CMSG_SPACE") else 0
_MAX_SEGMENTS = 4  # in each direction of a connection
_MAX_BODY_BYTES = 512 << 20
_FORGET_AFTER_FRAMES = 32  # that used other memory: both ends count the same frames
_HEAD_BYTES = 64
_TAKEN = 1


def is_possible(sock: socket.socket) -> bool:
    """Whether the other end of a socket is in the same machine and can be given memory."""
    return sys.platform == "linux" and getattr(sock, "family", None) == socket.AF_UNIX


class SharedSegment:
    """One piece of shared memory."""

    def __init__(self, memory: Any, used: int) -> None:
        self.memory = memory
        self.size = len(memory)
        self.used = used
        self._laid_out: tuple[list[tuple[np.dtype[Any], Dims]], list[Array]] = (
            [],
            [],
        )  # kinds of arrays, and where they were put

    def fill(self, arrays: list[np.ndarray], starts: list[int]) -> None:
        """Copies a body into it."""
        kinds = [(a.dtype, a.shape) for a in arrays]
        if kinds != self._laid_out[0]:  # the same places will do for the same kinds of arrays
            places = [
                np.ndarray(a.shape, a.dtype, self.memory, _HEAD_BYTES + start)
                for a, start in zip(arrays, starts, strict=True)
            ]
            self._laid_out = kinds, places
        for place, value in zip(self._laid_out[1], arrays, strict=True):
            place[...] = value

    @property
    def is_free(self) -> bool:
        """Whether the reader has given the memory back."""
        is_free: bool = self.memory[0] != _TAKEN
        return is_free


class _Segments:
    """The memory of one direction: segments by number, and what was lent."""

    def __init__(self) -> None:
        self.segments: dict[int, SharedSegment] = {}
        self.lent: dict[
            int, list[Any]
        ] = {}  # by number: when it was used last, and (for a borrower) the memory
        self.frames = 0

    def count(self) -> None:
        """One more frame has used shared memory; what was not used for long is forgotten."""
        self.frames += 1
        for number, segment in list(self.segments.items()):
            if self.frames - segment.used > _FORGET_AFTER_FRAMES:
                del self.segments[number]
        for number, (used, _) in list(self.lent.items()):
            if self.frames - used > _FORGET_AFTER_FRAMES:
                del self.lent[number]


class Outbox(_Segments):
    """The segments one end fills, and the loans it has given."""

    def __init__(self) -> None:
        super().__init__()
        self._loans: list[shared_variables.Loan] = []

    def lend(self, arrays: list[np.ndarray]) -> tuple[list[int], bytes, list[int]]:
        """Lends what can be lent of some tensors: their places, what to say of them, and descriptors to send along."""
        places: list[int] = []
        loans: list[bytes] = []
        descriptors: list[int] = []
        for i, value in enumerate(arrays):
            block = shared_variables.block_of(value) if value.nbytes >= shared_variables.MIN_BYTES else None
            loan = block.lend(value) if block is not None and len(places) < MAX_LOANS else None
            if block is None or loan is None:
                continue
            self._loans.append(loan)
            fresh = block.number not in self.lent
            if fresh:
                descriptors.append(os.dup(block.descriptor))
            self.lent[block.number] = [self.frames + 1, None]
            places.append(i)
            loans.append(LOAN.pack(i, loan.place, fresh, block.number, block.size))
        if places:
            self._loans = [loan for loan in self._loans if loan.is_open()]
            self.count()
        return places, b"".join(loans), descriptors

    def abandon(self) -> None:
        """Gives up the borrower: its loans may be held for ever."""
        # Taken out first: `__del__` may call this again.
        loans, self._loans = self._loans, []
        for loan in loans:
            loan.lose()

    __del__ = abandon

    def put(self, arrays: list[np.ndarray], starts: list[int], total: int) -> tuple[bytes, int | None] | None:
        """Copies a body into a segment: says where, with the descriptor of a new one. None when it cannot."""
        if total > _MAX_BODY_BYTES:
            return None
        wanted = _HEAD_BYTES + total
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
        return PLACE.pack(number, descriptor is not None, segment.size), descriptor

    def _free(self, wanted: int) -> int | None:
        fitting = [(s.size, n) for n, s in self.segments.items() if s.size >= wanted and s.is_free]
        return min(fitting)[1] if fitting else None

    def _vacant(self) -> int | None:
        """A number for a new segment; one whose segment is too small gives way."""
        return next(
            (n for n in range(_MAX_SEGMENTS) if n not in self.segments or self.segments[n].is_free), None
        )

    def _make(self, number: int, wanted: int) -> int:
        # Up to a quarter more: a body that grows a little fits the next time.
        step = max(1 << 16, 1 << (wanted.bit_length() - 3))
        descriptor, memory = mapping.make(mapping.room(-(-wanted // step) * step))
        self.segments[number] = SharedSegment(memory, self.frames)
        return descriptor


class Inbox(_Segments):
    """The segments one end reads, and what it has borrowed."""

    def __init__(self) -> None:
        super().__init__()
        self._descriptors: list[int] = []
        self._leases: dict[int, Any] = {}
        self._numbers = itertools.count()

    def keep(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        """Takes the descriptors that came along with some bytes."""
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._descriptors.extend(array.array("i", data[: len(data) - len(data) % 4]))

    def drop(self) -> None:
        """Closes descriptors that no frame has asked for."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def take(self, place: bytes, total: int) -> np.ndarray:
        """The body of a frame; its segment is free again when nothing of it is held any more."""
        number, fresh, size = PLACE.unpack(place)
        if fresh:
            if number >= _MAX_SEGMENTS:
                raise _refused("too many segments")
            self.segments[number] = SharedSegment(self.map_whole(size), self.frames)
        segment = self.segments.get(number)
        if segment is None or segment.size != size or _HEAD_BYTES + total > size:
            raise _refused("a segment that was never shared")
        segment.used = self.frames + 1
        self.count()
        return self._leased(segment.memory, 0, total, _HEAD_BYTES)

    def borrow(self, loans: bytes) -> list[tuple[int, np.ndarray]]:
        """Which tensors of a frame are lent, with their bytes: each is given back when nothing of it is held any more."""
        result = []
        for i, byte, fresh, number, size in LOAN.iter_unpack(loans):
            whole = shared_variables.room(size)
            if fresh:
                self.lent[number] = [0, self.map_whole(whole)]
            used = self.lent.get(number)
            if used is None or byte >= shared_variables.HEAD_BYTES or len(used[1]) != whole:
                raise _refused("memory that was never lent")
            used[0] = self.frames + 1
            body = self._leased(used[1], byte, size, shared_variables.HEAD_BYTES)
            result.append((i, body))
        self.count()
        return result

    def map_whole(self, size: int) -> Any:
        """Memory of that size whose descriptor came next."""
        if not self._descriptors:
            raise _refused("shared memory without its descriptor")
        descriptor = self._descriptors.pop(0)
        try:
            seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
            real = os.fstat(descriptor).st_size
            # Memory that could shrink would kill this process with SIGBUS when it reads.
            if not seals & fcntl.F_SEAL_SHRINK or real != size or mapping.room(size) != size:
                raise _refused("shared memory that could be taken away")
            memory = mapping.mapped(descriptor, size)
            # Nobody writes to it while something of it is held: kernels/aligned_memory.py looks for this.
            memory.is_received = True
            return memory
        except (OSError, ValueError):
            raise _refused("shared memory that cannot be mapped") from None
        finally:
            os.close(descriptor)

    def _leased(self, memory: Any, byte: int, total: int, start: int) -> np.ndarray:
        body = np.frombuffer(memory, np.uint8, total, start)
        body.flags.writeable = False
        leases, key = self._leases, next(self._numbers)

        def give_back(_: object) -> None:
            memory[byte] = 0
            del leases[key]

        leases[key] = weakref.ref(body, give_back)
        return body


def _refused(what: str) -> errors.OpError:
    return errors.InvalidArgumentError(None, None, f"A message does not make sense: {what}.")
