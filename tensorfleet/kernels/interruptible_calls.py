"""Calling Python functions that can be stopped: a step that was given up leaves none of them running."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.base.platform.exit_threads import beside

_INTERRUPT_SECONDS = 0.1  # seconds in which an interrupted function usually ends


class Interrupted(BaseException):
    """Raised inside a Python function, between any two of its instructions, when its step has been given up.

    Not an `Exception`: functions that go on after any of those end all the same, and `finally` is run.
    """


class Call:
    """A Python function while it is called; another thread may interrupt it. Of one that waits in C, Python hears later."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        self._function = function
        self._args = args
        self._lock = threading.Lock()
        self._thread: int | None = (
            None  # in which the function runs; what the thread does afterwards is not ours
        )
        self._raised = False

    def run(self) -> Any:
        """Calls the function; raises `Interrupted` if it was."""
        self._thread = threading.get_ident()
        try:
            return self._function(*self._args)
        finally:
            self._leave()

    def _leave(self) -> None:
        while True:
            try:
                with self._lock:
                    if self._raised and self._thread is not None:
                        _raise_in(self._thread, None)  # what has not come yet must not come later
                    self._thread = None
                return
            except Interrupted:
                continue  # it came here instead

    def set(self) -> None:
        """Interrupts the function, if it is still running. Named as that of an event: a cancelled step sets what waits."""
        with self._lock:
            if self._thread is not None and not self._raised:
                self._raised = True
                _raise_in(self._thread, Interrupted)


class Background:
    """A call in a thread of its own, for those who may not wait until it returns."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], name: str) -> None:
        self.done = threading.Event()
        self._call = Call(function, args)
        self._outcome: tuple[Any, BaseException | None] = None, None
        beside(self._attempt, (), f"tensorfleet-{name}")

    def _attempt(self) -> None:
        try:
            self._outcome = self._call.run(), None
        except BaseException as e:
            self._outcome = None, e
        self.done.set()

    def outcome(self) -> Any:
        """What the function returned; raises what it raised."""
        result, error = self._outcome
        if error is not None:
            raise error
        return result

    def stop(self) -> None:
        """Interrupts the function and gives it a moment to end."""
        self._call.set()
        self.done.wait(_INTERRUPT_SECONDS)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Makes an exception come up in a thread; with None, one that has not come up yet never does."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error) if error is not None else None
    )
