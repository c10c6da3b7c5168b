"""Watches the head of a Ray cluster: Ray's library would end this process, without a word of ours, a minute after its loss."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

_LOOK_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
_GONE_SECONDS = 30.0  # a head that keeps its state in Redis may come back until then


class HeadSilence:
    """Decides when a head that does not answer is gone. No clock, no sockets."""

    def __init__(self, limit: float = _GONE_SECONDS) -> None:
        self._limit = limit
        self._since: float | None = None

    def look(self, answers: bool, now: float) -> float | None:
        """What follows from a look: how long it has been silent, if that is too long."""
        if answers:
            self._since = None
            return None
        self._since = now if self._since is None else self._since
        silent = now - self._since
        return silent if silent >= self._limit else None


class HeadWatch:
    """Looks for the head until it is gone, or until the run is over."""

    def __init__(self, address: str, closed: threading.Event, on_gone: Callable[[str], None]) -> None:
        """`on_gone` is called once, with a sentence for the user."""
        host, _, port = address.rpartition(":")
        self._place = host.strip("[]"), int(port)
        self._address = address
        self._closed = closed
        self._on_gone = on_gone

    def start(self) -> None:
        """Begins to look, in a thread of its own."""
        threading.Thread(target=self._go, name="head of the Ray cluster", daemon=True).start()

    def _go(self) -> None:
        silence = HeadSilence()
        while not self._closed.wait(_LOOK_SECONDS):
            silent = silence.look(self._answers(), time.monotonic())
            if silent is not None:
                self._on_gone(
                    f"The head of the Ray cluster at {self._address} has not answered for {silent:.0f} s. Start the "
                    "cluster again, then this run, which goes on from its last checkpoint."
                )
                return

    def _answers(self) -> bool:
        try:
            socket.create_connection(self._place, _ANSWER_SECONDS).close()
        except OSError:
            return False
        return True
