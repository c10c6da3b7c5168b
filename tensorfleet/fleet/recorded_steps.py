"""Which events of servers belong to the recorded steps of sessions: the others are left out of the trace.

A server runs stages for steps that began before the recording, and for those that come after the last recorded one of
their session. Their other half is missing, so they would only distract.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import Any

_Step = tuple[str, int]


def recorded_steps(events: Iterable[Sequence[Any]]) -> set[_Step]:
    """The steps of sessions that were recorded where the session is."""
    return {
        (args["session"], args["step"]) for kind, *_, args in events if kind == "step" and "session" in args
    }


def without_other_steps(events: Sequence[Sequence[Any]], steps: set[_Step]) -> list[Sequence[Any]]:
    """The events of a task, less those of steps of the same sessions that were not recorded there."""
    sessions = {session for session, _ in steps}

    def is_other(args: dict[str, Any]) -> bool:
        return args.get("session") in sessions and (args["session"], args.get("step")) not in steps

    spans: dict[int, list[tuple[int, int]]] = {}
    for kind, _, began, ended, thread, args in events:
        if kind == "stage" and is_other(args):
            spans.setdefault(thread, []).append((began, ended))
    for of_thread in spans.values():
        of_thread.sort()
    return [event for event in events if not is_other(event[5]) and not _is_inside(event, spans)]


def _is_inside(event: Sequence[Any], spans: dict[int, list[tuple[int, int]]]) -> bool:
    """Whether an event is part of a stage; those of one thread come one after the other."""
    _, _, began, ended, thread, _ = event
    of_thread = spans.get(thread)
    if not of_thread:
        return False
    i = bisect.bisect_right(of_thread, began, key=lambda span: span[0]) - 1
    return i >= 0 and ended <= of_thread[i][1]
