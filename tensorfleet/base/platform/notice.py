"""Notice of the end: a launched task that gets SIGTERM may save and leave by itself.

Cluster managers send SIGTERM some time before they take a machine away. With `TENSORFLEET_NOTICE_SECONDS` the signal
becomes a wish to stop: `should_stop()` of monitored sessions, supervisors and coordinators gives True, so the training
loop ends as at its last step, and hooks save. A script that does not ask ends when the time is over.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

#: the exit code of a task that left because of the signal, as shells give it
LEFT = 128 + signal.SIGTERM
_received = threading.Event()


def install(seconds: float) -> None:
    """Takes SIGTERM as notice, which gives this process so many seconds. Call it in the main thread."""

    def on_term(_number: int, _frame: FrameType | None) -> None:
        if _received.is_set():
            return
        _received.set()
        os.write(2, b"tensorfleet: got SIGTERM; stopping after this step.\n")
        threading.Thread(target=_end, args=(seconds,), name="tensorfleet-notice", daemon=True).start()

    signal.signal(signal.SIGTERM, on_term)


def received() -> bool:
    """Whether this process has been asked to end."""
    return _received.is_set()


def leave() -> None:
    """Ends a process whose script has ended after notice was given: with an exit code that tells why."""
    if received():
        sys.stdout.flush()
        sys.exit(LEFT)


def _end(seconds: float) -> None:
    if not threading.Event().wait(seconds):
        os.write(
            2, f"tensorfleet: the script did not stop within {seconds:g} s of SIGTERM; ended.\n".encode()
        )
        os._exit(LEFT)
