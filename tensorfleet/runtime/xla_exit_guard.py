"""The end of the process: Python ends other threads wherever they are, and one that is inside XLA aborts them all.

So the end waits for those inside to come out, for some seconds; and no other thread begins anything meanwhile.
"""

from __future__ import annotations

import os
import threading
import time

_GRACE_SECONDS = 5.0
_START_GRACE_SECONDS = (
    60.0  # XLA takes seconds to start where many processes do, and is ended by nothing else
)
_MOMENT_SECONDS = (
    0.03  # in which a thread that has come out lets go of what XLA made, or one that has begun gets in
)
_ENDS_WITHIN_SECONDS = 600.0
_inside: list[int] = []  # the threads, each as often as it has come in
_seen: set[int] = set()  # all that ever were
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
    """Where a thread that holds nothing begins something: it goes no further when the process is about to end."""
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
