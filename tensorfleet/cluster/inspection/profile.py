"""Topic `profile`: which functions this task spends its time in, as collapsed stacks and as a flame graph.

py-spy samples from outside, native code too. Where it is missing or may not look into processes, a thread of the task
samples the Python frames.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from tensorfleet.base import errors
from tensorfleet.base.formats.flame_graph import flame_graph, parsed
from tensorfleet.cluster.inspection.topics import Options, Report, chosen

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

_MAX_SECONDS = 600.0
_STARTING_SECONDS = 30.0  # for py-spy to read the symbols of all libraries
_PR_SET_PTRACER, _ANY = 0x59616D61, -1
#: the innermost function of a collapsed stack, with its file
_PYTHON_FRAME = re.compile(r"(\w+) \((?:[^()]*/)?([^()/]+):\d+\)$")
_one_at_a_time = threading.Lock()
#: where threads wait: no time is spent there
_WAITING = {
    ("threading.py", "wait"),
    ("selectors.py", "select"),
    ("queue.py", "get"),
    ("wire.py", "_receive"),
}
_WAITING |= {
    ("threading.py", "join"),
    ("threading.py", "_wait_for_tstate_lock"),
    ("signal_report.py", "_read"),
}
_WAITING |= {("socket.py", "accept"), ("step_driver.py", "_poll"), ("queues.py", "wait")}


@dataclass
class _Wanted:
    seconds: float = 10.0
    native: bool = False
    rate: int = 100


def report(server: Server | None, options: Options) -> Report:
    """Samples for some seconds."""
    wanted: _Wanted = chosen(_Wanted, options)
    seconds, rate = min(max(wanted.seconds, 0.1), _MAX_SECONDS), min(max(wanted.rate, 1), 1000)
    if not _one_at_a_time.acquire(blocking=False):
        raise errors.ResourceExhaustedError(
            None, None, "This task is being profiled already. Wait for the end of that."
        )
    try:
        collapsed, why = _by_py_spy(seconds, rate, wanted.native)
        tool = "py-spy"
        if why:
            tool, collapsed = "sampler", _by_thread(seconds, rate)
    finally:
        _one_at_a_time.release()
    note = f"Sampled by a thread of the task: {why} Python frames only." if why else None
    name = server.task if server is not None else f"process {os.getpid()}"
    return Report(
        {
            "tool": tool,
            "note": note,
            "samples": sum(count for _, count in parsed(collapsed)),
            "collapsed": collapsed,
            "flamegraph_svg": flame_graph(collapsed, f"{name}, {seconds:g} s, {tool}"),
        }
    )


def _by_py_spy(seconds: float, rate: int, native: bool) -> tuple[str, str]:
    """Collapsed stacks, or why there are none."""
    beside = Path(sys.executable).with_name("py-spy")
    program = str(beside) if beside.exists() else shutil.which("py-spy")
    if program is None:
        return "", "py-spy is not installed here (pip install 'tensorfleet[debug]')."
    with tempfile.TemporaryDirectory(prefix="tensorfleet-profile-") as folder:
        path = Path(folder) / "stacks"
        command = [program, "record", "--pid", str(os.getpid()), "--format", "raw", "--output", str(path)]
        command += ["--duration", str(math.ceil(seconds)), "--rate", str(rate)]
        command += ["--native"] if native else []
        try:
            with _traceable():
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=seconds + _STARTING_SECONDS,
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            return "", f"py-spy failed: {error}."
        text = path.read_text(errors="replace") if path.exists() else ""
        if not text.strip():
            said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            return "", f"py-spy gave no stacks ({said[-1].strip() if said else 'it said nothing'})."
        return _without_waits(text), ""


def _without_waits(collapsed: str) -> str:
    """The stacks that do not end in a wait: py-spy takes some threads for busy that wake up now and again."""
    kept = []
    for line in collapsed.splitlines(keepends=True):
        innermost = _PYTHON_FRAME.search(line.rpartition(" ")[0])
        if innermost is None or (innermost[2], innermost[1]) not in _WAITING:
            kept.append(line)
    return "".join(kept)


@contextlib.contextmanager
def _traceable() -> collections.abc.Iterator[None]:
    """Lets a child look into this process, where the kernel allows that to parents alone."""
    prctl = None
    with contextlib.suppress(OSError, AttributeError):
        prctl = ctypes.CDLL(None).prctl
        prctl(_PR_SET_PTRACER, ctypes.c_ulong(_ANY), 0, 0, 0)
    try:
        yield
    finally:
        if prctl is not None:
            prctl(_PR_SET_PTRACER, 0, 0, 0, 0)


def _by_thread(seconds: float, rate: int) -> str:
    """Collapsed stacks of all threads but this one, without those that wait."""
    counts: collections.Counter[str] = collections.Counter()
    own, limit = threading.get_ident(), time.monotonic() + seconds
    pause = threading.Event()
    while (left := limit - time.monotonic()) > 0:
        _count(counts, own)
        pause.wait(min(1 / rate, left))
    return "".join(f"{stack} {count}\n" for stack, count in counts.items())


def _count(counts: collections.Counter[str], own: int) -> None:
    """Takes one sample. By itself, so that no frame, and no array in it, outlives it during the pause."""
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 - Python's own
        if ident != own and not _waits(frame):
            counts[_collapsed(frame)] += 1


def _waits(frame: FrameType) -> bool:
    return (os.path.basename(frame.f_code.co_filename), frame.f_code.co_name) in _WAITING


def _collapsed(frame: FrameType | None) -> str:
    names = []
    while frame is not None:
        code = frame.f_code
        place = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
        names.append(f"{code.co_qualname} ({place})".replace(";", ","))
        frame = frame.f_back
    return ";".join(names[::-1])
