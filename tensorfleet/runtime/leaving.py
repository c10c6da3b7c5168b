"""The end of the process: Python ends other threads wherever they are, and one that is inside XLA aborts them all.

So the end waits for those inside to come out, for some seconds. Then they stay where they are, and nobody else gets in.
"""

from __future__ import annotations

import os
import threading
import time

_PATIENCE = 5.0  # seconds
_MOMENT = 0.03  # in which a thread that has come out lets go of what XLA made
_inside: list[int] = []  # the threads, each as often as it has come in
_seen: set[int] = set()  # all that ever were
_last: list[int] = []  # the one that ends the process


class _Within:
    """Around what calls XLA; may be nested."""

    def __enter__(self) -> None:
        thread = threading.get_ident()
        _inside.append(thread)
        _seen.add(thread)
        if _last:
            self._stop(thread)

    def __exit__(self, *_: object) -> None:
        thread = threading.get_ident()
        if _last:
            self._stop(thread)
        _inside.remove(thread)

    def _stop(self, thread: int) -> None:
        """Comes out, and waits for the end of the process, which ends this thread.

        Not for ever: what is done at the end may need a variable that this thread has locked.
        """
        if thread not in _last:
            _inside.remove(thread)
            threading.Event().wait(_PATIENCE)
            _inside.append(thread)


within_xla = _Within()


def wait_for_others() -> None:
    """Waits until no other thread is inside: for the end of the process."""
    own = threading.get_ident()
    _last.append(own)
    limit = time.monotonic() + _PATIENCE
    while any(thread != own for thread in _inside) and time.monotonic() < limit:
        time.sleep(0.001)
    if any(thread.ident in _seen and thread.ident != own for thread in threading.enumerate()):
        time.sleep(_MOMENT)


def _forked() -> None:
    _inside.clear()
    _seen.clear()


os.register_at_fork(after_in_child=_forked)
