"""Waiting for what other threads and processes do."""

import threading
import time
from concurrent.futures import Future

SECONDS = 120  # for what takes less than one on a quiet machine


def until(condition, what="it", every=0.01):
    """Returns when a condition holds; AssertionError when it still does not in time."""
    never = threading.Event()
    limit = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < limit, f"{what} did not happen in {SECONDS} s"
        never.wait(every)


def in_background(function, *args, **kwargs):
    """Calls a function in a thread of its own: a future of what it gives or raises."""
    future = Future()

    def call():
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as e:
            future.set_exception(e)

    threading.Thread(target=call, daemon=True).start()
    return future


def together(*functions):
    """What functions give that are called at the same time; raises what one of them raises."""
    futures = [in_background(function) for function in functions]
    return [future.result(SECONDS) for future in futures]
