"""The connection of a primary to its standby."""

from __future__ import annotations

import contextlib

from tensorfleet.cluster.durability.changes import Changes
from tensorfleet.cluster.messages import FAILED, REPLICATE, Hello, Replicate
from tensorfleet.cluster.transport import peers
from tensorfleet.cluster.transport.connection import connect
from tensorfleet.cluster.transport.token import token

_CONNECT_SECONDS = 5.0


class StandbyLink:
    """Sends changes and waits until the standby has them. One thread at a time uses it."""

    def __init__(self, address: str) -> None:
        self._channel, _ = connect(address, token(), Hello(f"{peers.client()}.copy"), _CONNECT_SECONDS)

    @property
    def sent_bytes(self) -> int:
        """How many bytes were sent so far."""
        return self._channel.sent_bytes

    def send(self, epoch: int, number: int, part: int, changes: Changes) -> None:
        """Sends changes; returns when the standby has received them. Raises what the standby answers, or OSError."""
        fields = Replicate(epoch, number, part, changes.described()).encode()
        self._channel.send(REPLICATE, fields, changes.arrays)
        answer = self._channel.receive()
        if answer.kind == FAILED:
            raise peers.failure(answer)

    def close(self) -> None:
        """Ends the connection, and wakes whoever waits for an answer."""
        with contextlib.suppress(OSError):
            self._channel.close()
