"""Accepting connections: anybody may connect, and only clients that authenticate with the token in time are served.

Strangers cost next to nothing. Until a connection has authenticated it has no thread, only one of a limited number of
places that are polled together, and nothing but the proof of the token is read from it. A connection that takes too long,
says something else, or is the oldest when all places are taken, is closed.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors, logging
from tensorfleet.base.platform.exit_threads import started
from tensorfleet.cluster.messages import Hello, Welcome
from tensorfleet.cluster.transport import connection, handshake, wire
from tensorfleet.cluster.transport.handshake import OPENING, PROOF, Refused

if TYPE_CHECKING:
    import ssl

_MAX_PENDING = 256  # connections that have not authenticated yet: each is an open file
_MAX_ACCEPTS_AT_ONCE = 64  # then the connections that are waiting get their turn
# Read and thrown away before a refused connection is closed: with bytes unread, TCP would drop the refusal.
_MAX_DISCARDED_BYTES = 1 << 16


class _PendingConnection:
    """A connection that has not authenticated yet."""

    def __init__(self, sock: socket.socket, secure: bool, host: str, name: str) -> None:
        self.sock: socket.socket = sock
        self.host, self.name = host, name
        self.limit = time.monotonic() + connection.HANDSHAKE_SECONDS
        self.in_tls_handshake = secure
        self.heard = bytearray()
        self.proof: bytes | None = None  # what must come now; before that, the opening

    def listen(self, secret: bytes) -> bool:
        """Reads the bytes that have come; returns whether the client has authenticated. Raises OSError when it never will."""
        if self.in_tls_handshake:
            self._continue_tls()
        while True:
            due = OPENING if self.proof is None else PROOF
            more = self.sock.recv(due - len(self.heard))
            self.heard += more
            if not more:
                raise self._left() or ConnectionError("nobody is there")
            if self.proof is None:
                handshake.check_opening(bytes(self.heard))
            if len(self.heard) < due:
                continue
            if self.proof is not None:
                handshake.check_proof(bytes(self.heard), self.proof)
                return True
            answer, self.proof = handshake.challenge(secret, bytes(self.heard))
            self.heard.clear()
            if self.sock.send(answer) < len(answer):
                raise ConnectionError("it does not read")

    def _continue_tls(self) -> None:
        """Continues the TLS handshake; refuses a client that does not speak TLS in plain text."""
        import ssl

        heard = socket.socket.recv(self.sock, OPENING, socket.MSG_PEEK)
        if heard and not self.heard and not handshake.is_tls(heard):
            raise handshake.refuse_plain(heard)
        self.heard += heard[:1]  # has begun
        try:
            assert isinstance(self.sock, ssl.SSLSocket)
            self.sock.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as e:
            raise Refused(
                f"the TLS handshake failed: {e.reason or e}. Are both certificates of one authority?"
            ) from e
        self.in_tls_handshake = False
        self.heard.clear()

    def _left(self) -> Refused | None:
        return handshake.left_early(bytes(self.heard), self.proof is not None)

    def too_slow(self) -> Refused:
        """Why it is closed when its time is over."""
        return handshake.too_slow(bytes(self.heard), self.proof is not None)

    def answer(self, refused: Refused) -> None:
        """Tells the client why it is refused, if it would understand that and reads it at once."""
        if refused.answer:
            with contextlib.suppress(OSError):
                socket.socket.send(self.sock, refused.answer)
                socket.socket.recv(self.sock, _MAX_DISCARDED_BYTES)


class Listener:
    """Accepts connections on some sockets and serves those that have authenticated."""

    def __init__(
        self,
        sockets: list[socket.socket],
        secret: bytes,
        welcome: Callable[[], Welcome],
        let_in: Callable[[wire.Channel, Hello], None],
        largest: int,
        context: ssl.SSLContext | None = None,
        task: str = "This server",
    ) -> None:
        """With `context`, clients must speak TLS over TCP. `task` is the name of this end in the log."""
        self._sockets = sockets
        self._secret = secret
        self._welcome = welcome
        self._let_in = let_in
        self._largest = largest
        self._context = context
        self._task = task
        self._refusals = handshake.RefusalLog()
        self._selector = selectors.DefaultSelector()
        self._pending: dict[socket.socket, _PendingConnection] = {}
        self._wake, self._woken = socket.socketpair()
        self._closed = False
        self._thread: threading.Thread | None = None
        for sock in (*sockets, self._woken):
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ)

    def start(self) -> None:
        """Begins to accept."""
        self._thread = threading.Thread(target=self._serve, name="tensorfleet-accept", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops accepting, and closes every connection that has not authenticated."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._wake.send(b"\0")
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1.0)  # then the address is free again

    def abandon_after_fork(self) -> None:
        """Closes everything in a forked process. Its parent goes on listening."""
        self._close_all()

    def _close_all(self) -> None:
        for sock in [*self._sockets, *self._pending, self._wake, self._woken]:
            sock.close()
        self._selector.close()

    def _serve(self) -> None:
        doors = set(self._sockets)
        try:
            while not self._closed:
                ready: list[Any] = [
                    k.fileobj for k, _ in self._selector.select(1.0 if self._pending else None)
                ]
                for sock in ready:
                    if sock in self._pending:
                        self._listen(sock)
                for sock in doors.intersection(ready):
                    self._accept(sock)
                self._close_slow()
        finally:
            self._close_all()

    def _accept(self, door: socket.socket) -> None:
        for _ in range(_MAX_ACCEPTS_AT_ONCE):
            try:
                sock, at = door.accept()
            except BlockingIOError:
                return
            except OSError:  # gone again, or no file descriptor left
                if self._pending:
                    self._make_room()
                else:
                    time.sleep(0.05)  # for somebody to leave
                return
            if len(self._pending) >= _MAX_PENDING:
                self._make_room()
            sock.setblocking(False)
            self._receive(sock, at)

    def _receive(self, sock: socket.socket, at: Any) -> None:
        is_local = sock.family == socket.AF_UNIX
        context = None if is_local else self._context
        try:
            host, name = connection.other_end(sock, at)
            connection.tuned(sock)
            if context is not None:
                sock = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError:
            sock.close()
            return
        self._pending[sock] = _PendingConnection(sock, context is not None, host, name)
        self._selector.register(sock, selectors.EVENT_READ)

    def _listen(self, sock: socket.socket) -> None:
        """Reads from a pending connection, and serves it when it has authenticated."""
        pending = self._pending[sock]
        try:
            if not pending.listen(self._secret):
                return
        except OSError as error:
            if not _needs_more(error):
                if isinstance(error, Refused):
                    self._refuse(pending, error)
                self._close(sock)
            return
        self._forget(sock)
        serving = threading.Thread(target=self._enter, args=(sock,), name="tensorfleet-serve", daemon=True)
        if not started(serving):
            sock.close()  # this process is ending

    def _enter(self, sock: socket.socket) -> None:
        """Exchanges the first frames, then serves the connection in this thread."""
        try:
            channel, hello = connection.welcome(sock, self._welcome(), self._largest)
        except (OSError, errors.OpError, ValueError):
            sock.close()
            return
        self._let_in(channel, hello)

    def _refuse(self, pending: _PendingConnection, refused: Refused) -> None:
        pending.answer(refused)
        line = self._refusals.line(pending.host, refused.reason, time.monotonic())
        if line is not None:
            logging.warning("%s refused a connection from %s: %s", self._task, pending.name, line)

    def _close_slow(self) -> None:
        now = time.monotonic()
        for sock, pending in list(self._pending.items()):
            if now < pending.limit:
                return  # in order of arrival: the others came later
            self._refuse(pending, pending.too_slow())
            self._close(sock)

    def _make_room(self) -> None:
        """Closes the oldest connection, if possible one that has not sent a valid opening: a client of ours is nearly done."""
        silent = (s for s, v in self._pending.items() if v.proof is None)
        self._close(next(silent, next(iter(self._pending))))

    def _forget(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        del self._pending[sock]

    def _close(self, sock: socket.socket) -> None:
        self._forget(sock)
        sock.close()


def _needs_more(error: OSError) -> bool:
    """Whether a connection is only waiting for bytes that have not come yet."""
    return isinstance(error, BlockingIOError) or type(error).__name__ in (
        "SSLWantReadError",
        "SSLWantWriteError",
    )
