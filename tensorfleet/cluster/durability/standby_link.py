"""The connection of a primary to its standby.

A commit cannot be lost any more when the standby has it. Over a network it says so. Within one machine a commit is in
the standby's hands as soon as it is sent: what was sent over a local socket waits there for the standby, also when the
sender is killed, and a standby that takes over takes all of it first (`Replica._cut_off`). From then on nothing more can
be sent, so a server that was given up is told at once.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable

from tensorfleet.base import errors
from tensorfleet.cluster.durability.changes import Changes
from tensorfleet.cluster.messages import FAILED, QUIET, REPLICATE, Hello, Replicate
from tensorfleet.cluster.transport import peers, wire
from tensorfleet.cluster.transport.connection import connect
from tensorfleet.cluster.transport.token import token

_CONNECT_SECONDS, _ASK_SECONDS = 1.0, 0.5
_SEND_AGAIN_SECONDS, _PAUSE_SECONDS = 1.0, 0.02
_ANSWER_SECONDS = 10  # the guard gives up a silent standby long before, and closes the connection
# So many commits may wait for a standby on this machine. Large ones are fewer: they lie in shared memory, of which a
# connection has four pieces (transport/shared_memory.py).
_MAX_UNANSWERED, _MAX_LARGE_UNANSWERED = 48, 3
_LARGE_BYTES = 1 << 15


class StandbyLink:
    """Sends changes and returns when the standby has them. One thread at a time uses it."""

    def __init__(self, address: str) -> None:
        """Without a connection, which `reconnect` opens."""
        self._address = address
        self._channel: wire.Channel | None = None
        self._is_local = False
        self._unanswered = self._large = 0  # commits since the last answer, and those of them that are large

    @property
    def sent_bytes(self) -> int:
        """How many bytes were sent so far."""
        return 0 if self._channel is None else self._channel.sent_bytes

    def reconnect(self) -> None:
        """Opens a connection, in place of one that was cut. Raises OSError when that fails."""
        self.close()
        self._channel = self._connect()
        self._is_local = self._channel.sock.family == socket.AF_UNIX
        self._unanswered = self._large = 0

    def _connect(self) -> wire.Channel:
        channel, _ = connect(self._address, token(), Hello(f"{peers.client()}.copy"), _CONNECT_SECONDS)
        # A time limit of Python's would end the busy-waiting for answers (transport/wire.py).
        limit = struct.pack("ll", _ANSWER_SECONDS, 0)
        channel.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        channel.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        return channel

    def send(self, epoch: int, number: int, part: int, changes: Changes, wants_answer: bool = False) -> None:
        """Sends changes; returns when the standby has them. Raises what the standby answers, or OSError."""
        channel = self._channel
        if channel is None:
            raise ConnectionError(f"there is no connection to {self._address}")
        self._unanswered += 1
        self._large += sum(a.nbytes for a in changes.arrays) >= _LARGE_BYTES
        is_quiet = (
            self._is_local
            and not (part or wants_answer)
            and self._unanswered <= _MAX_UNANSWERED
            and self._large <= _MAX_LARGE_UNANSWERED
        )
        fields = Replicate(epoch, number, QUIET if is_quiet else part, changes.described()).encode()
        channel.send(REPLICATE, fields, changes.arrays)
        if is_quiet:
            return
        self._unanswered = self._large = 0
        answer = channel.receive()
        if answer.kind == FAILED:
            raise peers.failure(answer)

    def send_again(self, goes_on: Callable[[], bool], epoch: int, number: int, changes: Changes) -> bool:
        """Sends a commit over a new connection: the old one was cut. False if the standby cannot be reached either.

        Raises FailedPreconditionError if the standby lacks earlier commits: they were lost with their connection.
        """
        limit, lacks_commits = time.monotonic() + _SEND_AGAIN_SECONDS, None
        while goes_on() and time.monotonic() < limit:
            try:
                self.reconnect()
                self.send(epoch, number, 0, changes, wants_answer=True)
                return True
            except errors.AbortedError:
                return False  # it leads, as the caller finds
            except errors.FailedPreconditionError as error:
                lacks_commits = error  # or it is still at what came before the cut
            except (OSError, errors.OpError):
                lacks_commits = None  # it is not reached yet
            time.sleep(_PAUSE_SECONDS)
        if lacks_commits is not None and goes_on():
            raise lacks_commits
        return False

    def leads_in(self) -> int:
        """The epoch in which the server at the other end leads by now; 0 if it does not, or cannot be asked."""
        try:
            channel, welcome = connect(self._address, token(), Hello(f"{peers.client()}.ask"), _ASK_SECONDS)
        except (OSError, errors.OpError):
            return 0
        channel.close()
        return welcome.epoch

    def close(self) -> None:
        """Ends the connection, and wakes whoever waits for an answer."""
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.close()
