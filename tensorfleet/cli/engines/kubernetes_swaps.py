"""Tasks that swap their seat for a node, and the seats that are postponed meanwhile.

A task's pod is a new one, so its seat has to go first. The room that it leaves must not go to a seat of the same run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tensorfleet.cli.engines.base import Wanted


class Swaps:
    """Which attempts have no node yet though their task has left its seat, and who waits for a seat until then."""

    def __init__(self) -> None:
        self._swapping: set[str] = set()
        self._postponed: dict[str, Wanted] = {}
        self._released: set[str] = set()
        self._lock = threading.Lock()

    def want(self, label: str) -> None:
        """A task may have seats (again)."""
        with self._lock:
            self._released.discard(label)

    def release(self, label: str) -> None:
        """A task gets no more seats until it is wanted again."""
        with self._lock:
            self._released.add(label)
            self._postponed.pop(label, None)

    def begin(self, attempt: str, label: str) -> None:
        """A task is about to leave its seat."""
        with self._lock:
            self._swapping.add(attempt)
            self._postponed.pop(label, None)  # it has had its seat

    def end(self, attempt: str) -> list[Wanted]:
        """An attempt has a node, or needs none any more. Gives the tasks that may have a seat now."""
        with self._lock:
            self._swapping.discard(attempt)
            again = [] if self._swapping else list(self._postponed.values())
            if again:
                self._postponed = {}
            return again

    def postpone(self, wanted: Wanted) -> None:
        """The task gets a seat later."""
        with self._lock:
            if wanted.label not in self._released:
                self._postponed[wanted.label] = wanted

    def admit(self, wanted: Wanted, add: Callable[[], None]) -> bool:
        """Adds a seat, or postpones it. No task can begin to swap, or be released, between decision and addition."""
        with self._lock:
            if wanted.label in self._released:
                return False
            if self._swapping:
                self._postponed[wanted.label] = wanted
                return False
            add()
            return True
