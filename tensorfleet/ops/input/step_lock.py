"""A lock for readers and iterators, which steps wait for in line."""

from __future__ import annotations

import threading
from collections import deque

from tensorfleet.graph.kernel_types import HostContext


class StepLock:
    """Lets one step at a time use a reader or an iterator; the others wait in line and can be cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._line: deque[threading.Event] = deque()

    def acquire(self, ctx: HostContext) -> None:
        """Waits for its turn."""
        with self._lock:
            if not self._busy:
                self._busy = True
                return
            event = threading.Event()
            self._line.append(event)
        try:
            ctx.step.wait(event, "for another step to finish reading")
        except BaseException:
            with self._lock:
                granted = event not in self._line  # the turn came just when the wait was cancelled
                if not granted:
                    self._line.remove(event)
            if granted:
                self.release()
            raise

    def release(self) -> None:
        """Lets the next one in."""
        with self._lock:
            if self._line:
                self._line.popleft().set()
            else:
                self._busy = False
