"""Whether another server of a durable task has taken over while the one in use leaves requests unanswered.

The watch of a peer (peers.py) looks for that between its pings. A server that was stopped looks like one that is slow, and
one that others have given up may not know it: only the server that leads now can tell.
"""

from __future__ import annotations

import select
import threading
import time
from typing import TYPE_CHECKING

from tensorfleet.cluster.transport.durable_places import Overdue

if TYPE_CHECKING:
    from tensorfleet.cluster.transport import wire
    from tensorfleet.cluster.transport.peers import Peer

# A request may wait long, for an element of a queue: while its task answers pings, the others are asked less and less often.
_LOOK_SECONDS, _MAX_LOOK_SECONDS = 0.3, 2.0


class SuccessorWatch:
    """Looks at one peer, from the thread that pings it."""

    def __init__(self, at: Peer) -> None:
        self._at = at
        self._overdue = Overdue()
        self._due, self._every = 0.0, _LOOK_SECONDS
        self._event = threading.Event()

    def until_answer(self, control: wire.Channel, silent: float) -> None:
        """Waits until a ping is answered, or for too long."""
        limit = time.monotonic() + silent
        number = control.fileno()
        if number < 0:
            raise ConnectionError("the connection was closed")
        poll = select.poll()
        poll.register(number, select.POLLIN)
        while not control.buffered and not poll.poll(_LOOK_SECONDS * 1000):
            self._every = _LOOK_SECONDS
            self._look(is_silent=True)
            if time.monotonic() > limit:
                raise TimeoutError

    def pause(self, control: wire.Channel, seconds: float) -> None:
        """Lets some time go by until the next ping."""
        if not self._at.places:
            self._event.wait(seconds)
            return
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self._at.is_watched_on(control):
            self._event.wait(min(left, _LOOK_SECONDS))
            self._look(is_silent=False)

    def _look(self, is_silent: bool) -> None:
        is_overdue = self._overdue.look(self._at.busy())
        if not is_overdue:
            self._every = _LOOK_SECONDS
        now = time.monotonic()
        if (is_overdue or is_silent) and now >= self._due:
            self._at.has_moved_on()
            self._due = time.monotonic() + self._every
            self._every = min(self._every * 1.5, _MAX_LOOK_SECONDS)
