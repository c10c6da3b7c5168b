"""Topics `trace_start` and `trace_take`: this task records what it does, and gives it away (fleet/tracing.py merges it)."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorfleet.base import counters, errors
from tensorfleet.cluster.inspection.topics import Options, Report, chosen
from tensorfleet.cluster.master.master import steps_under_way
from tensorfleet.runtime import recording

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

MAX_SECONDS = 3600.0
MAX_STEPS = 1_000_000
_PIECE_EVENTS = 4000  # in one answer: about a megabyte


@dataclass(frozen=True, slots=True)
class StartOptions:
    """What to record: so many steps of each session's process, for so long at most."""

    steps: int = 20
    seconds: float = 10.0
    by_op: bool = False
    #: the identity of the trace; tasks of one process that are asked for the same one share a recording
    id: str | None = None
    #: the steps of this process's sessions wait for `go`: whoever serves them must record first
    hold: bool = False


@dataclass(frozen=True, slots=True)
class TakeOptions:
    """Which recording to tell of; with `end` it is over at once. `start` is the first event wanted."""

    id: str = ""
    end: bool = False
    start: int = 0
    #: nobody wants the events any more
    drop: bool = False
    #: the steps of this process's sessions are recorded from now on
    go: bool = False


def start(server: Server | None, options: Options) -> Report:
    """Begins to record. Raises FailedPreconditionError when another trace is under way."""
    wanted = chosen(StartOptions, options)
    _check(wanted)
    try:
        begun = recording.start(
            wanted.steps, float(wanted.seconds), wanted.by_op, wanted.id, bool(wanted.hold)
        )
    except recording.Busy as busy:
        task = server.task if server is not None else f"Process {os.getpid()}"
        raise errors.FailedPreconditionError(
            None,
            None,
            f"{task} is being traced already: that trace {busy}. Wait until it has ended, then start yours again.",
        ) from None
    about = {"host": socket.gethostname(), "pid": os.getpid(), "process": recording.PROCESS}
    return Report({"id": begun.id, **about})


def _check(wanted: StartOptions) -> None:
    if not 1 <= wanted.steps <= MAX_STEPS:
        raise errors.invalid(
            f"steps must be a whole number from 1 to {MAX_STEPS}, not {str(wanted.steps)[:40]}."
        )
    if not 0 < wanted.seconds <= MAX_SECONDS:
        raise errors.invalid(
            f"seconds must be a number above 0 and at most {MAX_SECONDS:.0f}, not {str(wanted.seconds)[:40]}."
        )
    if wanted.id is not None and not 0 < len(wanted.id) <= 64:
        raise errors.invalid("id must be a text of at most 64 characters.")


def take(server: Server | None, options: Options) -> Report:
    """How far a recording is, and once it is over a piece of its events. The last piece ends it for good."""
    wanted = chosen(TakeOptions, options)
    if wanted.start < 0:
        raise errors.invalid(f"start must be a whole number of 0 or more, not {str(wanted.start)[:40]}.")
    known = recording.last(wanted.id)
    if known is None:
        raise errors.NotFoundError(
            None,
            None,
            "There is no such trace: it was taken already, or dropped because nobody took it for "
            f"{recording.KEPT_SECONDS:.0f} s after its end.",
        )
    if wanted.drop:
        recording.drop(known)
        return Report({"done": True, "events": [], "left": 0})
    if wanted.go:
        known.holds_back = False
    if wanted.end:
        known.end()
    content = {
        "done": known.is_over,
        "steps": known.finished,
        "begun": known.begun,
        "served": len(known.served),
        "under_way": steps_under_way(),
        "has_run": counters.steps.count > 0,
        "events": [],
    }
    if not known.is_over:
        return Report(content)
    events, left = known.piece(wanted.start, _PIECE_EVENTS)
    about = {
        "began_ns": known.began,
        "ended_ns": known.ended,
        "dropped": known.dropped,
        "threads": {str(ident): name for ident, name in known.threads.items()},
    }
    return Report({**content, **about, "events": events, "left": left})
