"""Topic `stacks`: all threads of this task, the step each is in, what it waits for and since when.

The same goes to the log at SIGUSR1 (signal_report.py). A thread answers that runs nothing of the program, so it answers
while all others wait or compute; only native code that keeps Python's lock can hold it up.
"""

from __future__ import annotations

import os
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tensorfleet.base.platform.lock_waits import lock_waits
from tensorfleet.base.platform.thread_frames import is_users, threads
from tensorfleet.cluster.inspection.thread_waits import doing, seconds_since
from tensorfleet.cluster.inspection.topics import NoOptions, Options, Report, chosen

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

# Threads that only listen or look now and again: they are last in the report, and never what the program waits for.
_SERVING = ("tensorfleet-accept", "tensorfleet-watch", "tensorfleet-signals")


def report(server: Server | None, options: Options) -> Report:
    """The threads of this process as plain data."""
    chosen(NoOptions, options)
    return Report({"pid": os.getpid(), "task": server.task if server else None, "threads": stacks()})


def stacks() -> list[dict[str, Any]]:
    """The threads of this process but for the one that asks."""
    running = [t for t in threads() if t.id != threading.get_ident()]
    locks = lock_waits(running)
    result = []
    for thread in running:
        does = doing(thread.frames)
        waits_for = None if does.wait is None else does.wait.what
        since = seconds_since(does.wait)
        if thread.id in locks and (does.wait is None or is_users(thread.frames[-1].f_code.co_filename)):
            waits_for, since = str(locks[thread.id]), None
        result.append(
            {
                "name": thread.name,
                "id": thread.id,
                "step": does.described(),
                "waits_for": waits_for,
                "since_seconds": since,
                "frames": [asdict(call) for call in thread.calls()],
            }
        )
    return sorted(result, key=lambda t: t["step"] is None and str(t["name"]).startswith(_SERVING))


def as_text(stacks: list[dict[str, Any]], every_frame: bool = False) -> str:
    """Threads as people read them. Frames of ours and of libraries are left out unless `every_frame`, but for the last."""
    return "\n\n".join(_thread_text(one, every_frame) for one in stacks)


def _thread_text(one: dict[str, Any], every_frame: bool) -> str:
    lines = [f"Thread {one['name']} ({one['id']})"]
    if one["step"]:
        lines.append(f"  in {one['step']}")
    if one["waits_for"]:
        since = one["since_seconds"]
        lines.append(
            f"  waits for {one['waits_for']}" + (f", for {since:.1f} s" if since is not None else "")
        )
    frames = one["frames"]
    left_out = 0
    for i, call in enumerate(frames):
        if not (every_frame or call["is_users"] or i == len(frames) - 1):
            left_out += 1
            continue
        if left_out:
            lines.append(f"      ({left_out} calls of libraries)")
            left_out = 0
        mark = ">" if call["is_users"] else " "
        lines.append(f"  {mark} {call['file']}:{call['line']} in {call['function']}")
        if call["code"]:
            lines.append(f"      {call['code']}")
    return "\n".join(lines)
