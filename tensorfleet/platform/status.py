"""What tasks and the launcher of their run tell each other: the newest loss, and that the others have ended."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

STATUS = "TENSORFLEET_STATUS"  # the file in which to say so; set by the launcher
ALONE = "TENSORFLEET_ALONE"  # the file that is there when all workers but one have ended; set by the launcher
_EVERY = 0.5  # seconds
_LOOK_EVERY = 0.2
_next = 0.0


def tell(event: Any) -> None:
    """Writes the step and the first scalar whose tag has "loss" in it, now and then."""
    global _next
    path = os.environ.get(STATUS)
    if not path or time.monotonic() < _next:
        return
    for value in event.summary.value:
        if value.HasField("simple_value") and "loss" in value.tag.lower():
            _next = time.monotonic() + _EVERY
            with contextlib.suppress(OSError):
                with open(f"{path}.new", "w") as file:
                    file.write(f"{event.step} {value.simple_value:.6g}")
                os.replace(f"{path}.new", path)
            return


def told(path: Any) -> tuple[int, float] | None:
    """The step and the loss that a task has told last."""
    try:
        with open(path) as file:
            step, loss = file.read().split()
        return int(step), float(loss)
    except (OSError, ValueError):
        return None


def is_alone() -> bool:
    """Whether every other worker of this run has ended."""
    path = os.environ.get(ALONE)
    return bool(path) and os.path.exists(path or "")


def pause(seconds: float) -> None:
    """Sleeps, but no longer than others of the run work."""
    end = time.monotonic() + seconds
    while not is_alone() and (rest := end - time.monotonic()) > 0:
        time.sleep(min(rest, _LOOK_EVERY))
