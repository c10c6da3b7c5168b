"""Waiting for what other threads and processes do."""

import threading
import time

SECONDS = 120  # for what takes less than one on a quiet machine


def until(condition, what="it", every=0.01):
    """Returns when a condition holds; AssertionError when it still does not in time."""
    never = threading.Event()
    limit = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < limit, f"{what} did not happen in {SECONDS} s"
        never.wait(every)
