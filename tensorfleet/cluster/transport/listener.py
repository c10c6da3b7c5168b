"""The door of a task: sockets that accept anybody, and let in only those who prove the token in time.

Strangers cost next to nothing: until a connection has proved the token it has no thread, only a place among a limited
number of others that are watched together, and nothing but the proof is read from it. Whoever takes too long, says
something else, or comes when all places are taken by newer ones, is shown out.
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
from tensorfleet.cluster.transport import connection, wire
from tensorfleet.cluster.transport import handshake as greeting
from tensorfleet.cluster.transport.handshake import OPENING, PROOF, Refused

if TYPE_CHECKING:
    import ssl

_PLACES = 256  # connections that have not proved the token yet
_AT_ONCE = 64  # connections accepted before others get their turn
_UNREAD = (
    1 << 16
)  # bytes that are read and thrown away before a connection is closed: else its refusal might get lost


class _Visitor:
    """A connection that has not proved the token yet."""

    def __init__(self, sock: socket.socket, secure: bool, host: str, name: str) -> None:
        self.sock: socket.socket = sock
        self.host, self.name = host, name
        self.limit = time.monotonic() + connection.HANDSHAKE_SECONDS
        self.greeting = secure  # TLS comes first
        self.heard = bytearray()
        self.proof: bytes | None = None  # what must come now; before that, the opening

    def listen(self, secret: bytes) -> bool:
        """Takes in what has come; whether the token is proved. Raises OSError when it never will be."""
        if self.greeting:
            self._greet()
        while True:
            due = OPENING if self.proof is None else PROOF
            more = self.sock.recv(due - len(self.heard))
            self.heard += more
            if not more:
                raise self._left() or ConnectionError("nobody is there")
            if self.proof is None:
                greeting.check_opening(bytes(self.heard))
            if len(self.heard) < due:
                continue
            if self.proof is not None:
                greeting.check_proof(bytes(self.heard), self.proof)
                return True
            answer, self.proof = greeting.challenge(secret, bytes(self.heard))
            self.heard.clear()
            if self.sock.send(answer) < len(answer):
                raise ConnectionError("it does not read")

    def _greet(self) -> None:
        """Goes on with the beginning of TLS, which somebody who does not speak it would not understand."""
        import ssl

        heard = socket.socket.recv(self.sock, OPENING, socket.MSG_PEEK)
        if heard and not self.heard and not greeting.is_tls(heard):
            raise greeting.refuse_plain(heard)
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
        self.greeting = False
        self.heard.clear()

    def _left(self) -> Refused | None:
        return greeting.left_early(bytes(self.heard), self.proof is not None)

    def refusal_of_the_slow(self) -> Refused:
        """Why it is shown out when its time is over."""
        return greeting.too_slow(bytes(self.heard), self.proof is not None)

    def answer(self, refused: Refused) -> None:
        """Tells why it is not let in, as far as it would understand that and reads it at once."""
        if refused.answer:
            with contextlib.suppress(OSError):
                socket.socket.send(self.sock, refused.answer)
                socket.socket.recv(self.sock, _UNREAD)


class Listener:
    """Accepts connections on some sockets and passes on those that have proved the token."""

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
        """With `context`, those who come over TCP must speak TLS. `task` is who refuses, in the log."""
        self._sockets = sockets
        self._secret = secret
        self._welcome = welcome
        self._let_in = let_in
        self._largest = largest
        self._context = context
        self._task = task
        self._refusals = greeting.RefusalLog()
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[socket.socket, _Visitor] = {}
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
        """Stops accepting, and shows out everybody who has not been let in."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._wake.send(b"\0")
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1.0)  # then the address is free again

    def forsake(self) -> None:
        """Lets go of everything in a forked process: the one that forked it listens on."""
        self._close_all()

    def _close_all(self) -> None:
        for sock in [*self._sockets, *self._waiting, self._wake, self._woken]:
            sock.close()
        self._selector.close()

    def _serve(self) -> None:
        doors = set(self._sockets)
        try:
            while not self._closed:
                ready: list[Any] = [
                    k.fileobj for k, _ in self._selector.select(1.0 if self._waiting else None)
                ]
                for sock in ready:
                    if sock in self._waiting:
                        self._listen(sock)
                for sock in doors.intersection(ready):
                    self._accept(sock)
                self._show_out_the_slow()
        finally:
            self._close_all()

    def _accept(self, door: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                sock, at = door.accept()
            except BlockingIOError:
                return
            except OSError:  # gone again, or no file descriptor left
                if self._waiting:
                    self._make_room()
                else:
                    time.sleep(0.05)  # for somebody to leave
                return
            if len(self._waiting) >= _PLACES:
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
        self._waiting[sock] = _Visitor(sock, context is not None, host, name)
        self._selector.register(sock, selectors.EVENT_READ)

    def _listen(self, sock: socket.socket) -> None:
        """Hears a visitor, and lets it in when it has proved the token."""
        visitor = self._waiting[sock]
        try:
            if not visitor.listen(self._secret):
                return
        except OSError as error:
            if not _needs_more(error):
                if isinstance(error, Refused):
                    self._refuse(visitor, error)
                self._show_out(sock)
            return
        self._take_out(sock)
        serving = threading.Thread(target=self._enter, args=(sock,), name="tensorfleet-serve", daemon=True)
        if not started(serving):
            sock.close()  # this process is ending

    def _enter(self, sock: socket.socket) -> None:
        """Exchanges welcomes, then serves the connection in this thread."""
        try:
            channel, hello = connection.welcome(sock, self._welcome(), self._largest)
        except (OSError, errors.OpError, ValueError):
            sock.close()
            return
        self._let_in(channel, hello)

    def _refuse(self, visitor: _Visitor, refused: Refused) -> None:
        visitor.answer(refused)
        line = self._refusals.line(visitor.host, refused.reason, time.monotonic())
        if line is not None:
            logging.warning("%s refused a connection from %s: %s", self._task, visitor.name, line)

    def _show_out_the_slow(self) -> None:
        now = time.monotonic()
        for sock, visitor in list(self._waiting.items()):
            if now < visitor.limit:
                return  # the others came later
            self._refuse(visitor, visitor.refusal_of_the_slow())
            self._show_out(sock)

    def _make_room(self) -> None:
        """Shows out whoever has waited longest, of those who have said nothing if there are any."""
        silent = (s for s, v in self._waiting.items() if v.proof is None)
        self._show_out(next(silent, next(iter(self._waiting))))

    def _take_out(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        del self._waiting[sock]

    def _show_out(self, sock: socket.socket) -> None:
        self._take_out(sock)
        sock.close()


def _needs_more(error: OSError) -> bool:
    """Whether a connection is only waiting for bytes that have not come yet."""
    return isinstance(error, BlockingIOError) or type(error).__name__ in (
        "SSLWantReadError",
        "SSLWantWriteError",
    )
