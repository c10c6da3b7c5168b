"""Compiles programs beside the steps: one job at a time, in a thread that ends when there is nothing left to do.

The steps and the thread share Python's interpreter lock. A thread that gives it up, as one that imports JAX does for each
file, gets it back when the other has had its turn: 5 ms by default, and JAX has thousands of files. So turns are shorter
while there is a job, and steps that wait for its result leave it half of the time.

Python's garbage collector stops all threads. Tracing a large segment makes so many objects that it looks at every object
of the graph again, 0.4 s for 50,000 operations. So automatic collections wait until the jobs are done.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import deque
from collections.abc import Callable

from tensorfleet.runtime.xla_exit_guard import stay_outside

# To import JAX beside a chain of 100 operations took 1.6 s with turns of 5 ms, 0.9 s with 0.5 ms, 0.6 s with this.
_TURN_SECONDS = 1e-4
_jobs: deque[Callable[[], None]] = deque()
_lock = threading.Lock()
_worker: threading.Thread | None = None


def start(job: Callable[[], None]) -> None:
    """Has a job done soon, after those before it. It must not raise."""
    global _worker
    with _lock:
        _jobs.append(job)
        if _worker is None:
            # A daemon: the end of the process waits for it while it is inside XLA, and no longer (xla_exit_guard.py).
            _worker = threading.Thread(target=_work, name="tensorfleet-compile", daemon=True)
            _worker.start()


def wait(seconds: float) -> bool:
    """Waits until all jobs are done; False if they were not within these seconds."""
    with _lock:
        worker = _worker
    if worker is None:
        return True
    worker.join(seconds)
    return not worker.is_alive()


def _work() -> None:
    global _worker
    with _lock:
        usual = sys.getswitchinterval()
        sys.setswitchinterval(min(usual, _TURN_SECONDS))
        collects = gc.isenabled()  # the program may have turned it off
        gc.disable()
    while True:
        with _lock:
            if not _jobs:
                sys.setswitchinterval(usual)
                if collects:
                    gc.enable()
                _worker = None
                return
            job = _jobs.popleft()
        stay_outside()
        job()


def _forked() -> None:
    """A child process has no such thread. What it was to do stays undone: those steps go on in numpy."""
    global _worker, _lock
    _lock = threading.Lock()
    _worker = None
    _jobs.clear()


os.register_at_fork(after_in_child=_forked)
