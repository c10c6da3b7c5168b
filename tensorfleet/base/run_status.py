"""The messages between the tasks of a run and its launcher: loss, steps per second, and that the other workers have ended."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from tensorfleet.base import settings

if TYPE_CHECKING:
    from tensorfleet.base.protos import Event
    from tensorfleet.base.types import PathLike

STATUS, ALONE = settings.STATUS.name, settings.ALONE.name
#: the end of the name of a machine that stands for none: no such name resolves (RFC 2606)
UNPLACED = ".unplaced.invalid"
_WRITE_SECONDS = 0.5  # seconds
_POLL_SECONDS = 0.2
_UNKNOWN = "-"
_next = 0.0
_runs, _runs_before, _since = 0, 0, 0.0


@functools.cache
def _path() -> str:
    """Where this task's status goes. The launcher sets it before the task starts, and every step asks for it."""
    return settings.STATUS()


class TaskStatus(NamedTuple):
    """The last status of a task; unknown fields are None."""

    step: int | None = None
    loss: float | None = None
    rate: float | None = None  # its own steps per second


_own = TaskStatus()


def report_event(event: Event) -> None:
    """Writes the step and the first scalar whose tag has "loss" in it, now and then."""
    global _next, _own
    if not _path() or time.monotonic() < _next:
        return
    for value in event.summary.value:
        if value.HasField("simple_value") and "loss" in value.tag.lower():
            _next = time.monotonic() + _WRITE_SECONDS
            _own = _own._replace(step=event.step, loss=value.simple_value)
            _write()
            return


def count_run() -> None:
    """Counts a step of this task's training, and writes how many it makes in a second, now and then."""
    global _runs, _runs_before, _since, _own
    if not _path():
        return
    _runs += 1
    now = time.monotonic()
    if not _since:
        _since, _runs_before = now, _runs
    elif now - _since >= _WRITE_SECONDS:
        _own = _own._replace(rate=(_runs - _runs_before) / (now - _since))
        _since, _runs_before = now, _runs
        _write()


def _write() -> None:
    path = _path()
    fields = [_UNKNOWN if field is None else f"{field:.6g}" for field in _own[1:]]
    with contextlib.suppress(OSError):
        with open(f"{path}.new", "w") as file:
            file.write(" ".join([_UNKNOWN if _own.step is None else str(_own.step), *fields]))
        # In one move: the launcher reads the file at any time.
        os.replace(f"{path}.new", path)


def read_status(path: PathLike) -> TaskStatus:
    """The last status that a task wrote; all None when there is none."""
    try:
        with open(path) as file:
            fields = [None if field == _UNKNOWN else field for field in file.read().split()]
        step, loss, rate = [*fields, None][:3]
        return TaskStatus(step and int(step), loss and float(loss), rate and float(rate))  # type: ignore[arg-type]
    except (OSError, ValueError):
        return TaskStatus()


def is_alone() -> bool:
    """Whether every other worker of this run has ended."""
    path = settings.ALONE()
    return bool(path) and os.path.exists(path or "")


def pause(seconds: float) -> None:
    """Sleeps, but no longer than others of the run work."""
    end = time.monotonic() + seconds
    while not is_alone() and (rest := end - time.monotonic()) > 0:
        time.sleep(min(rest, _POLL_SECONDS))
