"""Requests in the order in which they are made, in the background, each with a timestamp to wait for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from tensorfleet.base import errors

_MAX_KEPT = 1024  # results of requests that nobody has waited for yet


class Requests:
    """The requests of one worker to one table or one set of parameters. One thread makes them, one after the other."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._pending: dict[int, tuple[str, Future[Any]]] = {}
        self._newest = 0
        self._pool: ThreadPoolExecutor | None = None

    def begin(self, what: str, call: Callable[[], Any]) -> int:
        """Has the background make a request; gives its timestamp."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, f"requests of {self._owner}")
            self._newest = next(self._numbers)
            self._pending[self._newest] = what, self._pool.submit(call)
            full = len(self._pending) > _MAX_KEPT
            oldest = next(iter(self._pending))
        if full:  # the worker is faster than the servers
            self.wait(oldest, None)
        return self._newest

    def done(self) -> int:
        """The timestamp of a request that was made without the background."""
        with self._lock:
            self._newest = next(self._numbers)
            return self._newest

    def is_busy(self) -> bool:
        """Whether a request is under way or has failed, so that the next one has to come behind it."""
        for timestamp, (_, future) in list(self._pending.items()):
            if not future.done():
                return True
            self.wait(timestamp, 0.0)  # raises its error
        return False

    def wait(self, timestamp: int, timeout: float | None) -> Any:
        """The result of a request, or its error. DeadlineExceededError after so many seconds."""
        if isinstance(timestamp, bool) or not isinstance(timestamp, int) or not 0 < timestamp <= self._newest:
            raise ValueError(
                f"timestamp must be a number that a request of '{self._owner}' has returned, not {timestamp!r}."
            )
        with self._lock:
            found = self._pending.get(timestamp)
        if found is None:  # somebody has waited for it already
            return None
        what, future = found
        try:
            return future.result(timeout)
        except FutureTimeoutError:
            if future.done():
                raise  # it is the request's own
            raise errors.DeadlineExceededError(
                None,
                None,
                f"Timed out after {timeout:g} s waiting for {what} of '{self._owner}' (timestamp {timestamp}). Are the "
                "parameter servers running?",
            ) from None
        finally:
            if future.done():
                with self._lock:
                    self._pending.pop(timestamp, None)

    def wait_for_all(self, timeout: float | None) -> None:
        """Waits for all requests made so far."""
        for timestamp in list(self._pending):
            self.wait(timestamp, timeout)

    def close(self) -> None:
        """Makes no more requests. Those that have not begun are cancelled."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
