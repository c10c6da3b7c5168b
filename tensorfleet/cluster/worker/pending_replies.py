"""Who asked for a stage: whether it is still there, what was taken from queues for it, and an answer that need not wait.

A stage that ends by taking an element from a queue waits in a thread of its connection. Whoever puts the element in could wake that thread, which
would answer; it is quicker to answer at once, from the thread that is running anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.cluster.messages import NOTHING, OK
from tensorfleet.cluster.transport import wire

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Operation
    from tensorfleet.state.queues import Queue, Take

# Bytes that a connection with room takes at once: nobody waits for somebody else's client to read.
_MOST = 1 << 12


class Asker:
    """The other end of a connection, which waits for a stage to end."""

    def __init__(self, channel: wire.Channel) -> None:
        self._channel = channel
        self.taken: list[tuple[Queue, Take]] = []
        #: the operation with which the stage ends, if it takes an element from a queue, and which components are the answer
        self.wants: tuple[Operation | None, Sequence[int]] = None, ()
        self._turn = threading.Lock()
        self._is_over = False
        self._answered = False
        #: why the answer did not get away
        self.lost: ConnectionError | None = None

    def is_gone(self) -> bool:
        """Whether nobody waits any more."""
        return self._channel.is_closed()

    def give_back(self) -> None:
        """Puts back what was taken: it has not got there."""
        while self.taken:
            queue, attempt = self.taken.pop()
            queue.take_back(attempt)

    def answer_with(self, queue: Queue, attempt: Take) -> None:
        """Answers with an element that was taken, unless the thread that waited for it has noticed already."""
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
    """Whether an answer fits; how long strings are, their arrays do not tell."""
    return not any(v.dtype.hasobject for v in values) and sum(v.nbytes for v in values) <= _MOST
