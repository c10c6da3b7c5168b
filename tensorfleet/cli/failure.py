"""The last thing a failed run says: which task failed first, with which error, at which line of the script."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tensorfleet.base import packages
from tensorfleet.base.log_lines import own_words
from tensorfleet.cli.policy import Failure

_FRAME = re.compile(r'^  File "(.+)", line (\d+)(?:, in (.+))?$')
_START = "Traceback (most recent call last):"
_LOST = re.compile(r"/job:(\w+)/replica:\d+/task:(\d+) \([^)]*\) was lost")
_ERROR_LINES = 8


@dataclass(frozen=True)
class Reason:
    """What a task's output says about its end."""

    error: str = ""
    place: str = ""  # file:line of the script's own
    code: str = ""
    is_last_line: bool = False  # there is no traceback: the error is the last line, whatever that was


def reason_in(lines: Iterable[str], script: str) -> Reason:
    """The last traceback among a task's lines: its error, and the innermost line of the script's own folder."""
    text = list(lines)
    # What the script printed last may have had no end of line.
    starts = [i for i, line in enumerate(text) if line.rstrip().endswith(_START)]
    if not starts:
        last = [line for line in own_words(text) if line.strip()]
        return Reason(error=last[-1].strip() if last else "", is_last_line=bool(last))
    block = text[starts[-1] + 1 :]
    end = next((i for i, line in enumerate(block) if line and not line.startswith(" ")), len(block))
    error = [line for line in block[end : end + _ERROR_LINES] if line.strip()]
    return _with_place(block[:end], Reason("\n".join(error)), Path(script).resolve().parent)


def lost_in(error: str) -> str | None:
    """The task whose loss an error tells of: its own end is the reason, also where it took longer."""
    match = _LOST.search(error)
    return f"{match[1]}/{match[2]}" if match else None


def _with_place(frames: list[str], reason: Reason, home: Path) -> Reason:
    for i, line in reversed(list(enumerate(frames))):
        match = _FRAME.match(line)
        if match and _is_own(Path(match[1]), home):
            code = frames[i + 1].strip() if i + 1 < len(frames) else ""
            return Reason(reason.error, f"{match[1]}:{match[2]}", code)
    return reason


def _is_own(path: Path, home: Path) -> bool:
    path = path if path.is_absolute() else home / path.name
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return path.is_relative_to(home) and not installed and not str(path).startswith(packages.FOLDERS)


def report(
    failure: Failure,
    reason: Reason,
    now: float,
    log: Path | None,
    others: list[str],
    node: str | None = None,
    advice: Iterable[str] = (),
) -> str:
    """The block to print. `advice` is what the engine knows of the exit code."""
    where = f" on {node}" if node else ""
    lines = [f"FAILED: {failure.label}{where} {_ended(failure.code)}, {_ago(now - failure.at)}"]
    lines += [f"  {line}" for line in advice]
    if reason.is_last_line:
        lines.append(f"  Last line of its log: {reason.error}")
    else:
        lines += [f"  {line}" for line in reason.error.splitlines()]
    if reason.place:
        lines.append(f"  at {reason.place}" + (f":  {reason.code}" if reason.code else ""))
    if others:
        lines.append(f"  Failed later: {', '.join(others)}.")
    if log is not None:
        lines.append(f"  Log: {log}")
    return "\n".join(lines)


def _ended(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


def _ago(seconds: float) -> str:
    if seconds < 1:
        return "just now"
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
