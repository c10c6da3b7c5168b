"""The door of a task: sockets that accept anybody, and let in only those who prove the token in time.

Strangers cost next to nothing: until the first bytes of a connection are right it has no thread, only a place among
a limited number of others that are watched together. Whoever takes too long, says something else, or comes when all
places are taken by newer ones, is shown out.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from tensorfleet import errors
from tensorfleet.cluster import connection, wire

_PLACES = 256  # connections that have not yet said what they are
_PROVING = 32  # those that have, and whose proof is being read
_OPENING = len(connection.PREFACE) + connection.NONCE


class Listener:
    """Accepts connections on some sockets and passes on those that have proved the token."""

    def __init__(
        self,
        sockets: list[socket.socket],
        secret: bytes,
        welcome: Callable[[], dict],
        let_in: Callable[[wire.Channel, dict], None],
        largest: int,
    ) -> None:
        self._sockets = sockets
        self._secret = secret
        self._welcome = welcome
        self._let_in = let_in
        self._largest = largest
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[socket.socket, tuple[float, bytearray]] = {}
        self._proving = threading.Semaphore(_PROVING)
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

    def _serve(self) -> None:
        doors = set(self._sockets)
        try:
            while not self._closed:
                for key, _ in self._selector.select(1.0 if self._waiting else None):
                    sock: Any = key.fileobj
                    if sock in doors:
                        self._accept(sock)
                    elif sock is not self._woken:
                        self._listen(sock)
                self._show_out_the_slow()
        finally:
            for sock in [*self._sockets, *self._waiting, self._wake, self._woken]:
                sock.close()
            self._selector.close()

    def _accept(self, door: socket.socket) -> None:
        try:
            sock, _ = door.accept()
        except OSError:  # gone again, or no file descriptor left: make room
            self._show_out(next(iter(self._waiting), None))
            return
        if len(self._waiting) >= _PLACES:
            self._show_out(next(iter(self._waiting)))
        sock.setblocking(False)
        self._waiting[sock] = time.monotonic() + connection.HANDSHAKE_SECONDS, bytearray()
        self._selector.register(sock, selectors.EVENT_READ)

    def _listen(self, sock: socket.socket) -> None:
        """Reads the first bytes of a connection."""
        _, heard = self._waiting[sock]
        try:
            more = sock.recv(_OPENING - len(heard))
        except BlockingIOError:
            return
        except OSError:
            more = b""
        heard += more
        preface = connection.PREFACE[: len(heard)]
        if not more or heard[: len(preface)] != preface:
            self._show_out(sock)
        elif len(heard) == _OPENING:
            self._take_out(sock)
            if not self._proving.acquire(blocking=False):
                sock.close()
                return
            nonce = bytes(heard[len(connection.PREFACE) :])
            threading.Thread(
                target=self._prove, args=(sock, nonce), name="tensorfleet-serve", daemon=True
            ).start()

    def _prove(self, sock: socket.socket, nonce: bytes) -> None:
        """Reads the proof, then serves the connection in this thread."""
        try:
            channel, hello = connection.accept(sock, nonce, self._secret, self._welcome(), self._largest)
        except (OSError, errors.OpError, ValueError):
            sock.close()
            return
        finally:
            self._proving.release()
        self._let_in(channel, hello)

    def _show_out_the_slow(self) -> None:
        now = time.monotonic()
        for sock, (limit, _) in list(self._waiting.items()):
            if now < limit:
                return  # the others came later
            self._show_out(sock)

    def _take_out(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        del self._waiting[sock]

    def _show_out(self, sock: socket.socket | None) -> None:
        if sock is not None:
            self._take_out(sock)
            sock.close()
