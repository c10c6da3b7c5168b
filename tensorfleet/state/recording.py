"""What a resource tells of its changes, on a server that keeps a copy of its state elsewhere (cluster/durability/).

Most servers have no recorder, and a resource tells nobody. With one, all changes are made one after the other by the
stages that want them: a stage that waits for a queue is woken when it is worth another look, and makes its change itself.
Without one, whoever changes a queue also serves those that wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tensorfleet.state.queues import Attempt, Element, Queue


class ChangeRecorder(Protocol):
    """Notes what changes, and later sends it to the copy."""

    def changed(self, resource: Any) -> None:
        """A resource has another value, and the whole of it is to be copied."""

    def rows_changed(self, resource: Any, indices: Any) -> None:
        """Some rows of a variable have other values."""

    def put(self, queue: Queue, element: Element) -> None:
        """An element was added to a queue."""

    def attempted(self, queue: Any, attempt: Attempt) -> None:
        """A stage begins an attempt on a queue. An attempt that a lost server had begun goes on where it was."""

    def called(self, table: Any, method: str, arrays: Sequence[Any]) -> None:
        """A method that changes a table was called."""


def wait_in_turn(
    queue: Any, attempt: Attempt, wait: Callable[[], None], abandon: Callable[[BaseException], None]
) -> None:
    """Completes an attempt on a queue with a recorder: tries, waits until it is woken, and tries again.

    `abandon` is called with the exception that ends a wait. It raises, unless the attempt is complete after all.
    """
    queue.recorder.attempted(queue, attempt)
    while not queue.try_now(attempt):
        try:
            wait()
        except BaseException as e:
            abandon(e)
            return
