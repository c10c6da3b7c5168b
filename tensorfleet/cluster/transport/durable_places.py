"""Which server leads a durable task: where it may be, in which order to ask, and what an answer means.

Decisions only, without sockets and clocks: leader_search.py connects and waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tensorfleet.base import errors
from tensorfleet.cluster.messages import GIVEN_UP, Welcome
from tensorfleet.cluster.transport import moved_addresses

if TYPE_CHECKING:
    from tensorfleet.cluster.transport.wire import Channel

# A server that hangs accepts connections and says nothing: the others are not to wait for it long, at first.
_FIRST_ANSWER_SECONDS, _MAX_ANSWER_SECONDS = 0.25, 2.0
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.01, 0.05
_FORGOTTEN = "Session handle is not found"


class NotLeadingError(ConnectionError):
    """A server of a durable task has answered that does not lead it."""


class Places:
    """The places of one durable task, as its servers have told. No other task has any."""

    def __init__(self, address: str) -> None:
        #: the address in the ClusterSpec
        self._address = address
        #: where a server has led the task that this process has used
        self.leading = address
        #: of the last decision that was heard of: no server with an earlier one is used
        self.epoch = 0
        #: the newest list that a server told; nothing for a task that is not durable
        self.told: tuple[str, ...] = ()
        #: of the state that the server has which leads; 0 before one was heard of
        self.lineage = 0

    def learn(self, welcome: Welcome, place: str) -> None:
        """Takes in who answered at a place. Raises NotLeadingError when it does not lead the task."""
        if welcome.places:
            self.told = tuple(welcome.places)
        if welcome.stands_by:
            raise NotLeadingError(f"the server at {place} is a standby")
        if welcome.epoch < self.epoch:
            raise NotLeadingError(
                f"the server at {place} has missed decision {self.epoch}: it knows {welcome.epoch}"
            )
        self.epoch, self.lineage = welcome.epoch, welcome.lineage
        self.leading = place

    def is_newer(self, welcome: Welcome) -> bool:
        """Whether a server that answered leads by a later decision than was heard of so far."""
        return not welcome.stands_by and welcome.epoch > self.epoch

    def in_order(self) -> list[str]:
        """All places, each once, the one that was lost last at the end."""
        by_current = {moved_addresses.current(a): a for a in (*self.told, self._address, self.leading)}
        lost = by_current.pop(moved_addresses.current(self.leading))
        return [*by_current.values(), lost]

    def others(self) -> list[str]:
        """All places but the one that leads, as far as is known."""
        return self.in_order()[:-1]


class Patience:
    """How long one search waits for an answer, and between two rounds: more in each round."""

    def __init__(self) -> None:
        self.answer, self.pause = _FIRST_ANSWER_SECONDS, _FIRST_PAUSE_SECONDS

    def grow(self) -> None:
        """A round was in vain."""
        self.answer = min(self.answer * 1.5, _MAX_ANSWER_SECONDS)
        self.pause = min(self.pause * 1.5, _MAX_PAUSE_SECONDS)


class Overdue:
    """Which requests of a task stay unanswered from look to look."""

    def __init__(self) -> None:
        self._seen: frozenset[tuple[int, int]] = frozenset()

    def look(self, busy: Iterable[Channel]) -> bool:
        """Whether a request was under way at the last look too."""
        now = frozenset((id(channel), channel.sent) for channel in busy if channel.sent > channel.received)
        was, self._seen = self._seen, now
        return not was.isdisjoint(now)


def says_given_up(error: errors.OpError) -> bool:
    """Whether an error says that the server does not lead its task any more."""
    return isinstance(error, errors.AbortedError) and error.message.startswith(GIVEN_UP)


def says_forgotten(error: errors.OpError) -> bool:
    """Whether an error says that the server does not know the session, or not yet all of it."""
    if isinstance(error, errors.InvalidArgumentError):
        return error.message.startswith("Stage ") and " is not registered" in error.message
    return isinstance(error, errors.AbortedError) and error.message.startswith(_FORGOTTEN)


def not_found(lost: str, places: Collection[str], seconds: float, why: str) -> str:
    """The sentences about a search in vain for the server of a task that was `lost`, as it says."""
    return (
        f"{lost} Looked for a server that leads it at {', '.join(places)} for {seconds:.0f} s: {why}. Is its standby running? "
        "Start it, or raise TENSORFLEET_FAILOVER_SECONDS."
    )
