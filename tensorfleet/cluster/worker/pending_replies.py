"""The reply that a client waits for: whether the client is still there, and the elements taken from queues for it.

A stage that ends with a dequeue waits in the thread of its connection. The enqueue could wake that thread to send the
reply; it is quicker to send it from the thread of the enqueue, which is running anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.cluster.messages import NOTHING, OK, Ran
from tensorfleet.cluster.transport import wire

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Operation
    from tensorfleet.runtime.variable_versions import VariableVersions
    from tensorfleet.state.queues import Queue, TakeAttempt

# A socket with room takes so many bytes at once: an enqueue must not wait until another client reads.
_MAX_IMMEDIATE_BYTES = 1 << 12


def told_versions(versions: VariableVersions | None) -> bytes:
    """The fields of a reply that tell what a stage has read and updated, if the client has asked for it."""
    if versions is None or not (versions.read or versions.updated):
        return NOTHING
    return Ran(None, list(versions.read.items()), list(versions.updated.items())).encode()


class PendingReply:
    """The reply to a request for a stage, which the other end of a connection waits for."""

    def __init__(self, channel: wire.Channel) -> None:
        self._channel = channel
        self.taken: list[tuple[Queue, TakeAttempt]] = []
        #: the operation with which the stage ends, if it takes an element from a queue, and which components are the answer
        self.wants: tuple[Operation | None, Sequence[int]] = None, ()
        self._turn = threading.Lock()
        self._is_over = False
        self._answered = False
        #: notes the variables that the stage reads and updates, if the client wants to know
        self.versions: VariableVersions | None = None
        #: how long the stage has waited for others
        self.waited_seconds = 0.0
        #: why the reply could not be sent
        self.lost: ConnectionError | None = None

    def is_gone(self) -> bool:
        """Whether the client has closed the connection."""
        return self._channel.is_closed()

    def give_back(self) -> None:
        """Puts back the elements that were taken: the reply has not arrived."""
        while self.taken:
            queue, attempt = self.taken.pop()
            queue.take_back(attempt)

    def answer_with(self, queue: Queue, attempt: TakeAttempt) -> None:
        """Replies with an element that was taken, unless the thread that waited for it does so already."""
        components = queue.single(attempt.taken)
        values = [components[i] for i in self.wants[1]]
        with self._turn:
            if self._is_over or not _is_short(values) or not self._channel.has_room() or self.is_gone():
                return
            self._answered = True
            self.taken.append((queue, attempt))
            self._channel.handed = self
            try:
                self._channel.send(OK, NOTHING, values)
            except OSError as e:
                self.lost = ConnectionError(str(e))

    def is_answered(self) -> bool:
        """Whether an answer was sent. If not, only the stage itself answers from now on."""
        with self._turn:
            self._is_over = True
            return self._answered

    def is_answered_by(self, op: Operation) -> bool:
        """Whether what this operation took was sent as the answer."""
        return op is self.wants[0] and self.is_answered()


def _is_short(values: Sequence[Any]) -> bool:
    """Whether a reply is short. Of strings that is unknown: their arrays hold pointers."""
    return (
        not any(v.dtype.hasobject for v in values) and sum(v.nbytes for v in values) <= _MAX_IMMEDIATE_BYTES
    )
