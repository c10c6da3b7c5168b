"""Frames on a connection: a small header, a few fields, then raw tensor bytes.

    header   magic, kind, where the body is, number of tensors, which frame of this direction it is, length of the fields, length of the
             tensor descriptors, length of the body
    fields   what the message says (messages.py)
    tensors  one descriptor each (element type, dimensions, bytes)
    loans    of tensors that lie in lent memory: their descriptors, and where they are (shared.py)
    body     the other tensors' bytes, each starting at a multiple of 64; or where they are in shared memory

Tensors are sent straight from their memory and received straight into memory that XLA can use without a copy.
Every length is checked against a limit before anything is allocated. Nothing is ever unpickled. A frame that comes
twice, or out of its turn, ends the connection: nothing is done twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import struct
import sys
import termios
import threading
import time
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tensorfleet.cluster.messages import Message
from tensorfleet.cluster.transport import shared_memory as shared
from tensorfleet.cluster.transport.tensor_bytes import (
    ALIGNMENT,
    as_array,
    describe,
    layout_of,
    malformed,
    pieces_of,
    read_strings,
)

_HEADER = struct.Struct("<4sBBHIIIQ")
HEADER_BYTES = _HEADER.size
_MAX_NUMBER = 0xFFFFFFFF  # of a frame; then they begin again
_MAGIC = b"TFLT"
# The fields and the descriptors of a frame may be this long: far above any real graph, far below what hurts a server.
_MAX_TEXT_BYTES = 64 << 20
# Memory for a body of this size is kept for the next one: to ask the system for fresh pages takes longer than to fill them.
_MIN_SPARE_BYTES = 1 << 20
_SHARED, _LENT = 1, 2  # the body is in shared memory; some tensors are in lent memory
_LOANS = struct.Struct("<HI")  # how many tensors are lent, length of their descriptors
# As plain numbers: to combine the enumerated ones takes longer than to look for a message.
_DONT_WAIT = int(socket.MSG_DONTWAIT)
_PEEK = int(socket.MSG_PEEK) | _DONT_WAIT
_CLOSED_IN_CHILDREN = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))
# How long to busy-wait for a frame before going to sleep. An answer on one machine takes 20 to 500 us; to be woken up
# takes 50 us and more. The next request of a client comes later than that as a rule, so a server waits less.
_ANSWER_SPIN_SECONDS, REQUEST_SPIN_SECONDS = 1e-3, 3e-4
_PREEMPTED_SECONDS = 2e-4  # a look takes longer than this only when another thread had the core meanwhile
_CROWDED_SECONDS = 0.02
# Of the stages whose answers were slow to come; a client with more of them forgets all and learns again.
_MAX_REMEMBERED = 1000
_SEVERAL_CORES = hasattr(os, "sched_yield") and (os.cpu_count() or 1) > 1
# To lend a connection (worker/short_requests.py) and give it back takes about 100 us, as long as several short requests.
_MIN_SHORT_REQUESTS = 8
_MAX_JOINED_BYTES = 1 << 14  # copied into one piece: for fewer, a second one takes longer
_MAX_PIECES = 512  # sendmsg takes at most IOV_MAX (1024 on Linux) at once
_Seen = TypeVar("_Seen")
_Message = TypeVar("_Message", bound=Message)


class Frame:
    """A message received."""

    __slots__ = ("fields", "kind", "tensors")

    def __init__(self, kind: int, fields: bytes, tensors: list[Any]) -> None:
        self.kind = kind
        self.fields = fields
        self.tensors = tensors

    def read(self, message: type[_Message]) -> _Message:
        """What it says, as one of the messages. Raises InvalidArgumentError when it is no such message."""
        if self.kind != message.kind:
            raise malformed(f"it is of kind {self.kind}, where {message.__name__} was expected")
        result = message.decode(self.fields)
        due = result.carries()
        if due is not None and len(self.tensors) != due:
            raise malformed(f"{message.__name__} comes with {len(self.tensors)} tensors, not {due}")
        return result


# -- busy-waiting -------------------------------------------------------------------------------------

_watching = threading.Lock()
_crowded_until = 0.0  # others wanted this core a moment ago


def busy_wait(
    look: Callable[[], _Seen | None], seconds: float = _ANSWER_SPIN_SECONDS, gives_way: bool = False
) -> _Seen | None:
    """Calls `look` until it gives something or the time is over; None then, and the caller goes to sleep.

    Most answers come within a millisecond, and a sleeping thread takes a good part of one to wake up. Other threads that
    could run go first, and only one thread of a process busy-waits at a time. With `gives_way` it stops when another
    thread wants its core, and does not begin again for a while: the system moves threads to idle cores only.
    """
    global _crowded_until
    seen, watching = look(), _watching
    if seen is not None or not _SEVERAL_CORES or not watching.acquire(blocking=False):
        return seen
    try:
        now = time.monotonic()
        until = now + seconds
        if gives_way and now < _crowded_until:
            return None
        while seen is None and now < until:
            os.sched_yield()
            seen = look()
            before, now = now, time.monotonic()
            if gives_way and now - before > _PREEMPTED_SECONDS:
                _crowded_until = now + _CROWDED_SECONDS
                break
        return seen
    finally:
        watching.release()


# -- sending and receiving ----------------------------------------------------------------------------


class Channel:
    """A connected socket that sends and receives frames. One thread at a time uses it."""

    def __init__(self, sock: socket.socket, largest: int = 1 << 40, asks: bool = True) -> None:
        """`asks` at the end that sends questions; at the other the next one may be long in coming."""
        self.sock = sock
        self.largest = largest
        self.asks = asks
        self._moment = _ANSWER_SPIN_SECONDS if asks else REQUEST_SPIN_SECONDS
        self.owner = ""  # whose it is, where it was accepted
        #: what the last reply on it took from queues, until it is known to have arrived
        self.handed: Any = None
        #: what was asked or answered last: it tells how soon the next frame comes
        self.after: Any = None
        #: of a connection that was accepted: how many short requests have come in a row, and how many make it worth a loan
        self.short_requests, self.due_before_loan = 0, _MIN_SHORT_REQUESTS
        self._slow: set[Any] = set()  # after these it took longer than is worth watching
        self._secure = hasattr(sock, "pending")  # speaks TLS
        self.sent = self.received = 0  # frames
        self.sent_bytes = self.received_bytes = 0  # with those in shared memory
        #: of a connection that was accepted: how long its requests took, and whether they are questions about the task
        self.busy_seconds, self.inspects = 0.0, False
        self._buffer = bytearray(1 << 16)
        self._view = memoryview(self._buffer)
        self._begin = self._end = 0
        self.spare: np.ndarray | None = None
        possible = shared.is_possible(sock)
        self._outbox = shared.Outbox() if possible else None
        self._inbox = shared.Inbox() if possible else None

    def fileno(self) -> int:
        """The file descriptor, for `poll`."""
        return self.sock.fileno()

    @property
    def buffered(self) -> bool:
        """Whether bytes of the next frame have arrived already."""
        return self._begin < self._end or (self._secure and self.sock.pending() > 0)  # type: ignore[attr-defined]

    def is_closed(self) -> bool:
        """Whether the other side has closed the connection, as far as is known here."""
        try:
            return socket.socket.recv(self.sock, 1, _PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def is_quiet(self) -> bool:
        """Whether the connection is open and nothing has come that nobody asked for."""
        if self._secure:
            return not self.is_closed()  # TLS says things of its own
        try:
            self.sock.recv(1, _PEEK)
        except BlockingIOError:
            return not self.buffered
        except OSError:
            pass
        return False

    def has_room(self) -> bool:
        """Whether a short frame can be sent without waiting for the other side to read."""
        poll = select.poll()
        try:
            poll.register(self.sock.fileno(), select.POLLOUT)
        except ValueError:  # it was closed here
            return False
        return bool(poll.poll(0))

    def is_unread(self) -> bool:
        """Whether the other side has ended without reading all that was sent to it, as far as the system can tell."""
        try:
            waiting = fcntl.ioctl(self.sock.fileno(), termios.TIOCOUTQ, bytes(4))
            return any(waiting) or self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
        except (OSError, ValueError):  # a system that does not tell, or it was closed here
            return False

    def shut(self) -> None:
        """Ends the connection and wakes whoever uses it, whose part it is to close it."""
        with contextlib.suppress(OSError):  # the other side may have been quicker
            socket.socket.shutdown(
                self.sock, socket.SHUT_RDWR
            )  # without the goodbyes of TLS, which could wait

    def close(self) -> None:
        """Closes the connection and wakes whoever is reading from it."""
        self.shut()
        self.abandon()

    def abandon(self) -> None:
        """Closes the connection, which nobody else uses: the other side is told if anything was left unread."""
        self.sock.close()
        if self._inbox is not None and self._outbox is not None:
            self._inbox.drop()
            self._outbox.abandon()

    def send(
        self, kind: int, fields: bytes = b"", values: Sequence[Any] = (), along: Sequence[int] = ()
    ) -> None:
        """Sends one frame, and descriptors of memory `along` with it: they are closed here."""
        if not values and not along:  # most requests and many answers: nothing to describe, lend or place
            self.sock.sendall(self._bare(kind, fields))
            return
        self._send_all(self._pieces(kind, fields, values, along))

    def send_now(self, kind: int, fields: bytes, values: Sequence[Any]) -> list[Any]:
        """Sends one frame, or as much as the other end has room for; gives the rest, for `send_rest`."""
        pieces = self._pieces(kind, fields, values, ()) if values else [self._bare(kind, fields)]
        if len(pieces) > 1:
            views = [memoryview(p).cast("B") for p in pieces]
            if sum(map(len, views)) > _MAX_JOINED_BYTES:
                return pieces
            pieces = [b"".join(views)]
        try:
            sent = self.sock.send(pieces[0], _DONT_WAIT)
        except BlockingIOError:
            return pieces
        return [] if sent == len(pieces[0]) else [memoryview(pieces[0])[sent:]]

    def send_rest(self, pieces: list[Any]) -> None:
        """Sends what `send_now` could not."""
        self._send_all(pieces)

    def _bare(self, kind: int, fields: bytes) -> bytes:
        """A frame without tensors."""
        header = _HEADER.pack(_MAGIC, kind, 0, 0, self.sent & _MAX_NUMBER, len(fields), 0, 0)
        self.sent += 1
        self.sent_bytes += HEADER_BYTES + len(fields)
        return header + fields

    def _pieces(self, kind: int, fields: bytes, values: Sequence[Any], along: Sequence[int]) -> list[Any]:
        """What a frame consists of; descriptors are sent, with the first bytes."""
        arrays, loans, descriptors = self._lend([as_array(v) for v in values])
        descriptors += along
        blob, starts, total, arrays = describe(arrays)
        placed = None
        if self._outbox is not None and total >= shared.MIN_BYTES:
            placed = self._outbox.put(arrays, starts, total)
        where = (_SHARED if placed else 0) | (_LENT if loans else 0)
        number = self.sent & _MAX_NUMBER
        header = _HEADER.pack(_MAGIC, kind, where, len(arrays), number, len(fields), len(blob), total)
        self.sent += 1
        text, pieces = header + fields + blob + loans, []
        self.sent_bytes += len(text) + total
        if placed is None:
            pieces = pieces_of(arrays)
        else:
            text += placed[0]
            descriptors += [placed[1]] if placed[1] is not None else []
        if descriptors:
            text = self._send_along(text, descriptors)
        return [text, *pieces]

    def _lend(self, arrays: list[np.ndarray]) -> tuple[list[np.ndarray], bytes, list[int]]:
        """The tensors to send the bytes of, what to say of those that are lent, and descriptors to send along."""
        if self._outbox is None:
            return arrays, b"", []
        places, loans, descriptors = self._outbox.lend(arrays)
        if not places:
            return arrays, b"", descriptors
        blob = describe([arrays[i] for i in places])[0]
        self.sent_bytes += sum(arrays[i].nbytes for i in places)
        rest = [a for i, a in enumerate(arrays) if i not in places]
        return rest, _LOANS.pack(len(places), len(blob)) + blob + loans, descriptors

    def say(self, message: Message, values: Sequence[Any] = (), along: Sequence[int] = ()) -> None:
        """Sends a message, with tensors and descriptors of memory."""
        self.send(message.kind, message.encode(), values, along)

    def _send_along(self, text: bytes, descriptors: list[int]) -> bytes:
        """Sends descriptors of memory that the other end does not know yet with some bytes; gives those that are left."""
        try:
            return text[socket.send_fds(self.sock, [text], descriptors) :]
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _send_all(self, pieces: list[Any]) -> None:
        if len(pieces) == 1 or self._secure:
            for piece in pieces:
                self.sock.sendall(piece)
            return
        views = [memoryview(p) for p in pieces]
        while views:
            sent = self.sock.sendmsg(views[:_MAX_PIECES])
            while views and sent >= len(views[0]):
                sent -= len(views.pop(0))
            if sent:
                views[0] = views[0][sent:]

    @property
    def can_be_polled(self) -> bool:
        """Whether the system can tell when a frame has come: TLS has a buffer of its own."""
        return not self._secure

    def receive_whole(self) -> Frame | None:
        """The next frame if all of it has come; None otherwise, and `receive` gives it later. Never waits."""
        if self._begin == self._end:
            self._begin = self._end = 0
        got = self._receive_now(self._view[self._end :]) if self._end < len(self._buffer) else None
        if got == 0:
            raise ConnectionError("the connection was closed")
        self._end += got or 0
        have = self._end - self._begin
        if have < _HEADER.size:
            return None
        _, _, where, _, _, *sizes = _HEADER.unpack_from(self._buffer, self._begin)
        if where & _SHARED:
            sizes[-1] = shared.PLACE.size
        return self.receive() if not where & _LENT and have >= _HEADER.size + sum(sizes) else None

    def receive(self) -> Frame:
        """The next frame; raises ConnectionError when the other side has gone."""
        self._have(_HEADER.size)
        magic, kind, where, count, number, fields_size, blob_size, size = _HEADER.unpack_from(
            self._buffer, self._begin
        )
        self._begin += _HEADER.size
        if magic != _MAGIC:
            raise malformed("it does not begin as one")
        if number != self.received & _MAX_NUMBER:
            raise malformed(f"it is number {number} where {self.received & _MAX_NUMBER} was due")
        self.received += 1
        if fields_size + blob_size > _MAX_TEXT_BYTES or size > self.largest:
            raise malformed(f"it claims {size} bytes; at most {self.largest} are accepted")
        fields = self._take(fields_size) if fields_size else b""
        if not count and (size or blob_size):
            raise malformed("bytes of tensors, but no tensor")
        layout, total = layout_of(self._take(blob_size), count) if count else ([], 0)
        if total != size:
            raise malformed("the tensors are not as long as the frame")
        lent = self._borrowed() if where & _LENT else ()
        self.received_bytes += HEADER_BYTES + fields_size + blob_size + size
        tensors: list[np.ndarray] = []
        if count:
            body = self._shared_body(size) if where & _SHARED else self._body(size)
            for dtype, shape, start, length in layout:
                if dtype is None:
                    tensors.append(read_strings(body[start : start + length], shape))
                else:
                    tensors.append(np.ndarray(shape, dtype, body, start))
        for i, tensor in lent:
            tensors.insert(i, tensor)
        return Frame(kind, fields, tensors)

    @property
    def shares_memory(self) -> bool:
        """Whether the other end is in the same machine."""
        return self._inbox is not None

    def mapped(self, size: int) -> Any:
        """Memory whose descriptor has come along with the last frame."""
        if self._inbox is None:
            raise malformed("shared memory over a network")
        return self._inbox.map_whole(size)

    def _borrowed(self) -> list[tuple[int, np.ndarray]]:
        """The tensors of a frame that lie in lent memory, and which they are."""
        if self._inbox is None:
            raise malformed("shared memory over a network")
        count, blob_size = _LOANS.unpack(self._take(_LOANS.size))
        if count > shared.MAX_LOANS or blob_size > _MAX_TEXT_BYTES:
            raise malformed(f"it claims {count} lent tensors, described by {blob_size} bytes")
        layout, _ = layout_of(self._take(blob_size), count)
        result = []
        for (dtype, shape, _, size), (i, body) in zip(
            layout, self._inbox.borrow(self._take(count * shared.LOAN.size)), strict=True
        ):
            if dtype is None or size != body.size:
                raise malformed("a lent tensor of another size than its memory")
            result.append((i, np.ndarray(shape, dtype, body)))
            self.received_bytes += size
        return result

    def _take(self, size: int) -> bytes:
        """`size` bytes, through the buffer."""
        if size > len(self._buffer):
            return self._take_long(size)
        self._have(size)
        result = bytes(self._view[self._begin : self._begin + size])
        self._begin += size
        return result

    def _have(self, size: int) -> None:
        """Waits until the buffer has `size` bytes, which fit into it."""
        while self._end - self._begin < size:
            if self._end - self._begin == 0:
                self._begin = self._end = 0
            if self._begin + size > len(self._buffer):
                kept = self._view[self._begin : self._end].tobytes()
                self._view[: len(kept)] = kept
                self._begin, self._end = 0, len(kept)
            got = self._read(self._view[self._end :])
            if not got:
                raise ConnectionError("the connection was closed")
            self._end += got

    def _read(self, view: memoryview) -> int:
        """Reads some bytes, as soon as there are any. It does not busy-wait for answers that were slow last time."""
        if self._secure or self.sock.gettimeout() is not None:
            return self._receive(view, 0)
        began = time.monotonic()
        got = None
        if self.after not in self._slow:
            if self.asks and _SEVERAL_CORES:
                os.sched_yield()  # no answer is there at once, and to look in vain takes longer
            got = busy_wait(lambda: self._receive_now(view), self._moment, gives_way=not self.asks)
        if got is None:
            got = self._receive(view, 0)
            if time.monotonic() - began > self._moment:
                if len(self._slow) > _MAX_REMEMBERED:
                    self._slow.clear()
                self._slow.add(self.after)
            else:
                self._slow.discard(self.after)
        return got

    def _receive_now(self, view: memoryview) -> int | None:
        try:
            return self._receive(view, _DONT_WAIT)
        except BlockingIOError:
            return None

    def _receive(self, view: memoryview, flags: int) -> int:
        """Some bytes, and the descriptor that may come with them."""
        if self._inbox is None:
            return self.sock.recv_into(view, 0, flags)
        got, ancillary, _, _ = self.sock.recvmsg_into([view], shared.ROOM, flags | _CLOSED_IN_CHILDREN)
        if ancillary:
            self._inbox.keep(ancillary)
        return got

    def _take_long(self, size: int) -> bytes:
        data = np.empty(size, np.uint8)
        self._fill(data)
        return data.tobytes()

    def _shared_body(self, size: int) -> np.ndarray:
        if self._inbox is None:
            raise malformed("shared memory over a network")
        return self._inbox.take(self._take(shared.PLACE.size), size)

    def _body(self, size: int) -> np.ndarray:
        """Fresh memory, aligned, with the next `size` bytes in it."""
        # Large memory is used again when nobody holds any of the tensors that were in it: fresh pages cost time.
        held = _holders_of_spare(self) > _NOBODY_ELSE
        raw = self.spare
        if held or raw is None or raw.size != size + ALIGNMENT:
            raw = np.empty(size + ALIGNMENT, np.uint8)
            if size >= _MIN_SPARE_BYTES:
                self.spare = raw
        shift = -raw.ctypes.data % ALIGNMENT
        body = raw[shift : shift + size]
        self._fill(body)
        return body

    def _fill(self, target: np.ndarray) -> None:
        view = memoryview(target)  # type: ignore[arg-type]
        have = min(self._end - self._begin, len(view))
        view[:have] = self._view[self._begin : self._begin + have]
        self._begin += have
        while have < len(view):
            got = self.sock.recv_into(view[have:])
            if not got:
                raise ConnectionError("the connection was closed in the middle of a message")
            have += got


def _holders_of_spare(channel: Any) -> int:
    return sys.getrefcount(channel.spare)


_NOBODY_ELSE = _holders_of_spare(types.SimpleNamespace(spare=object()))
