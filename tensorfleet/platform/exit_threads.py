"""Threads at the end of the program: Python 3.12 starts none any more once the main thread has returned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any


def started(thread: threading.Thread) -> bool:
    """Starts a thread. Returns False where Python refuses because the program is ending, in an `atexit` function."""
    try:
        thread.start()
    except RuntimeError:
        if threading.main_thread().is_alive():
            raise  # the system has no thread left: another matter
        return False
    return True


def beside(target: Callable[..., object], args: Sequence[Any], name: str) -> None:
    """Calls `target(*args)` in a daemon thread. At the end of the program, calls it here instead.

    For work that ends by itself: a caller in an `atexit` function waits for it.
    """
    if not started(threading.Thread(target=target, args=args, name=name, daemon=True)):
        target(*args)
