"""The lines of the user's program that made an operation."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

from tensorfleet.base.packages import FOLDERS

if TYPE_CHECKING:
    from types import FrameType

    from tensorfleet.graph.operation import Operation

# Per operation: deep recursion in a script would otherwise keep thousands of pairs for each of them.
_MAX_FRAMES = 24

#: code and line of each call, innermost first
Stack = tuple[tuple[Any, int], ...]


def user_stack() -> Stack:
    """The calling frames outside our packages, innermost first, as (code, line) pairs."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - Python's own
    frames: list[tuple[Any, int]] = []
    while frame is not None and len(frames) < _MAX_FRAMES:
        code = frame.f_code
        if not code.co_filename.startswith(FOLDERS):
            frames.append((code, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


def user_line() -> tuple[str, int]:
    """File and line of the innermost calling frame outside our packages; an empty name if there is none."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - Python's own
    while frame is not None:
        name = frame.f_code.co_filename
        # `with tf.device(...)` enters through contextlib, which is not the user's code.
        if not name.startswith(FOLDERS) and not name.endswith("contextlib.py"):
            return name, frame.f_lineno
        frame = frame.f_back
    return "", 0


def traceback(stack: Stack) -> list[tuple[str, int, str, str]]:
    """(file, line, function, text) of the calls, outermost first."""
    import linecache

    result = []
    for code, line in reversed(stack):
        text = linecache.getline(code.co_filename, line).strip()
        result.append((code.co_filename, line, code.co_name, text))
    return result


class TraceableObject:
    """An object, and the line of the program it comes from."""

    SUCCESS, HEURISTIC_USED, FAILURE = range(3)

    def __init__(self, obj: object, filename: str | None = None, lineno: int | None = None) -> None:
        self.obj = obj
        self.filename = filename
        self.lineno = lineno

    def set_filename_and_line_from_caller(self, offset: int = 0) -> int:
        """Takes the line of the caller, or of so many callers above it; tells whether there are so many."""
        frames = inspect.stack()
        place = offset + 1
        result = self.SUCCESS if place < len(frames) else self.HEURISTIC_USED
        frame = frames[min(place, len(frames) - 1)]
        self.filename, self.lineno = frame.filename, frame.lineno
        return result

    def copy_metadata(self) -> TraceableObject:
        """The same line without the object."""
        return TraceableObject(None, self.filename, self.lineno)


def device_lines(op: Operation) -> list[TraceableObject]:
    """The devices that blocks around an operation name, with their lines, the innermost first."""
    devices, _ = op.graph._lines.get(op, ((), {}))
    return [TraceableObject(_shown(d), file, line) for d, file, line in reversed(devices)]


def colocation_lines(op: Operation) -> dict[str, TraceableObject]:
    """The operations that an operation was to be beside, with the lines that said so."""
    _, beside = op.graph._lines.get(op, ((), {}))
    return {name: TraceableObject(None, file, line) for name, (file, line) in beside.items()}


def _shown(device: Any) -> str:
    """A device as it was given; a user's function by its name and line."""
    code = getattr(device, "__code__", None)
    if code is not None:
        return f"{device.__name__}<{code.co_filename}, {code.co_firstlineno}>"
    return device.to_string() if hasattr(device, "to_string") else str(device)
