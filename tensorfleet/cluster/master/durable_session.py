"""What a session keeps for tasks that are durable: its registrations, for the next server of a task, and its open steps."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.transport.durable_places import says_forgotten
from tensorfleet.cluster.transport.peers import failover

if TYPE_CHECKING:
    from tensorfleet.cluster.messages import Register
    from tensorfleet.cluster.transport.peers import Peer

_PAUSE_SECONDS = 0.02


class DurableSession:
    """The part of a session that outlives the servers of durable tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registrations: dict[Peer, Registrations] = {}
        self._steps: dict[int, None] = {}  # under way, in the order of their numbers

    def clear(self) -> None:
        """Forgets the registrations: the session begins anew."""
        with self._lock:
            self._registrations.clear()

    def of(self, at: Peer) -> Registrations:
        """What is registered with a task."""
        with self._lock:
            result = self._registrations.get(at)
            if result is None:
                result = self._registrations[at] = Registrations(at)
            return result

    def begin(self, numbers: itertools.count[int]) -> int:
        """The number of a new step. It counts as under way from the moment on in which it exists."""
        with self._lock:
            number = next(numbers)
            self._steps[number] = None
            return number

    def end(self, number: int) -> None:
        """A step is over."""
        with self._lock:
            self._steps.pop(number, None)

    def oldest(self) -> int:
        """The lowest number of a step under way; 0 when there is none."""
        with self._lock:
            return next(iter(self._steps), 0)


class Registrations:
    """The messages by which a durable task has learned of a session, in order, and which server has got them."""

    def __init__(self, at: Peer) -> None:
        self._at = at
        self._lock = threading.Lock()
        self._messages: list[tuple[Register, Sequence[Any]]] = []
        self._sent = 0  # to the server that leads now, as far as is known
        self._times_lost = 0
        self._lineage = 0  # of the state that the session has used
        self._complete_at = -1  # the loss since which all of them were sent
        #: how often the session began anew at a server: what it kept there for its steps is gone each time
        self.life = 0

    def is_complete(self) -> bool:
        """Whether the server at the other end of the newest connections knows all that was registered."""
        return self._complete_at == self._at.times_lost

    def add(
        self, message: Register, values: Sequence[Any], deadline: float | None, waits: bool = False
    ) -> None:
        """Registers something more."""
        with self._lock:
            self._messages.append((message, values))
            try:
                self._catch_up(deadline, waits)
            except BaseException:
                del self._messages[-1]  # it is the caller's turn again, and would send it twice
                self._sent = min(self._sent, len(self._messages))
                raise

    def renew(
        self, deadline: float | None, ended: Callable[[], object], lost: str, forgotten_in: int | None
    ) -> int:
        """Finds the server that leads a task that was `lost`, and registers with it what it does not know. Gives the life.

        `forgotten_in` is the life in which a server did not know the session.
        """
        self._at.find(deadline, ended, lost)
        with self._lock:
            if forgotten_in == self.life:
                self._begin_anew()
            self._catch_up(deadline)
            return self.life

    def _need_same_state(self) -> None:
        lineage = self._at.lineage
        if self._lineage and lineage and lineage != self._lineage:
            text = (
                f"{self._at.name} has lost its state: the servers that had it are gone, and it was started again. Make a new "
                "session, and restore a checkpoint. MonitoredTrainingSession does both."
            )
            raise errors.AbortedError(None, None, text)
        self._lineage = lineage

    def _begin_anew(self) -> None:
        self._sent, self._complete_at = 0, -1
        self._times_lost = self._at.times_lost
        self.life += 1

    def _catch_up(self, deadline: float | None, waits: bool = False) -> None:
        """Sends the server that leads what it has not got."""
        until = time.monotonic() + failover()
        while True:
            if self._times_lost != self._at.times_lost:
                self._begin_anew()
            self._need_same_state()
            if self._sent >= len(self._messages):
                self._complete_at = self._times_lost
                return
            message, values = self._messages[self._sent]
            try:
                self._at.call(message, deadline, waits, values)
            except errors.AbortedError as e:
                if not says_forgotten(e) or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_SECONDS)
                self._begin_anew()
                continue
            self._sent += 1
