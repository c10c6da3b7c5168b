"""The end of the process: Python ends other threads wherever they are, and one that is inside XLA aborts them all.

So the end waits for those inside to come out, for some seconds; and no other thread begins anything meanwhile.
"""

from __future__ import annotations

import os
import threading
import time

_GRACE_SECONDS = 5.0
# XLA takes seconds to start where many processes start it at once, and the start cannot be interrupted.
_START_GRACE_SECONDS = 60.0
# In this time a thread that has left XLA frees its arrays, or one that is about to call XLA gets in.
_MOMENT_SECONDS = 0.03
_ENDS_WITHIN_SECONDS = 600.0
_inside: list[int] = []  # the threads in XLA, each as often as it has entered
_seen: set[int] = set()  # all threads that ever were
_starting: list[int] = []  # the thread that starts XLA
_last: list[int] = []  # the one that ends the process


class _Within:
    """Around what calls XLA; may be nested."""

    def __enter__(self) -> None:
        thread = threading.get_ident()
        _inside.append(thread)
        _seen.add(thread)

    def __exit__(self, *_: object) -> None:
        _inside.remove(threading.get_ident())


within_xla = _Within()


class _Starting(_Within):
    """Around the start of XLA."""

    def __enter__(self) -> None:
        super().__enter__()
        _starting.append(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        _starting.clear()
        super().__exit__()


starting_xla = _Starting()


def stay_outside() -> None:
    """Blocks a thread that is about to begin a part of a step, and holds no lock, when the process is ending."""
    if _last and threading.get_ident() not in _last:
        threading.Event().wait(_ENDS_WITHIN_SECONDS)


def wait_for_others() -> None:
    """Waits until no other thread is inside: for the end of the process."""
    own = threading.get_ident()
    _last.append(own)
    began = time.monotonic()
    limit = began + _GRACE_SECONDS
    while True:
        while any(thread != own for thread in _inside):
            # One look at the clock for both: on a busy machine a long time passes between two.
            now = time.monotonic()
            if _starting and _starting != [own]:
                limit = min(now + _GRACE_SECONDS, began + _START_GRACE_SECONDS)
            if now >= limit:
                break
            time.sleep(0.001)
        if any(thread.ident in _seen and thread.ident != own for thread in threading.enumerate()):
            time.sleep(_MOMENT_SECONDS)
        if all(thread == own for thread in _inside) or time.monotonic() > limit:
            return


def _forked() -> None:
    _inside.clear()
    _starting.clear()
    _seen.clear()


os.register_at_fork(after_in_child=_forked)
