"""How much has gone over some connections, open or closed by now."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorfleet.cluster.transport.wire import Channel


class Traffic:
    """Requests and bytes of several connections. Each connection counts its own; this adds them up."""

    __slots__ = ("busy_seconds", "received_bytes", "requests", "sent_bytes")

    def __init__(self) -> None:
        self.requests = self.sent_bytes = self.received_bytes = 0
        self.busy_seconds = 0.0

    def add(self, channel: Channel) -> None:
        """Adds what one connection has carried, by its own counts."""
        # The end that asks sends as many frames as there are requests; each side's first one only says who it is.
        self.requests += max(channel.sent if channel.asks else channel.received, 1) - 1
        self.sent_bytes += channel.sent_bytes
        self.received_bytes += channel.received_bytes
        self.busy_seconds += channel.busy_seconds

    def join(self, other: Traffic) -> None:
        """Adds what others have carried."""
        self.requests += other.requests
        self.sent_bytes += other.sent_bytes
        self.received_bytes += other.received_bytes
        self.busy_seconds += other.busy_seconds


class SharedReads:
    """How often some variables were read together from shared memory."""

    __slots__ = ("count", "values")

    def __init__(self, values: Sequence[tuple[str, int]] = ()) -> None:
        self.count = 0
        #: the variable of each value that is read, and its bytes
        self.values = tuple(values)

    @property
    def bytes(self) -> int:
        """The bytes of all these reads."""
        return self.count * sum(size for _, size in self.values)


class ServedTraffic:
    """What others have asked of a server, without questions whether it lives or how it is."""

    def __init__(self, channels: set[Channel], watched: Collection[Channel]) -> None:
        """The connections that are open, and those of them that only tell whether a client lives."""
        self._channels, self._watched = channels, watched
        self._past = Traffic()
        self._lock = threading.Lock()

    def left(self, channel: Channel) -> None:
        """Takes a connection that ends out of those that are open, while it is still known whether it is watched."""
        with self._lock:  # whoever asks finds it among these or those
            self._channels.discard(channel)
            if not (channel.inspects or channel in self._watched):
                self._past.add(channel)

    def so_far(self) -> Traffic:
        """All of it until now."""
        result = Traffic()
        with self._lock:
            result.join(self._past)
            for channel in list(self._channels):
                if not (channel.inspects or channel in self._watched):
                    result.add(channel)
        return result

    def clients(self) -> int:
        """How many processes use the server. One may have several watched connections."""
        return len({channel.owner.partition(".")[0] for channel in list(self._watched)})
