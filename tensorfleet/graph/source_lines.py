"""The lines of the user's program that made an operation."""

from __future__ import annotations

import os
import sys
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEEPEST_STACK = 24

#: code and line of each call, innermost first
Stack = tuple[tuple[Any, int], ...]


def user_stack() -> Stack:
    """The calling frames outside this package, innermost first, as (code, line) pairs."""
    frame: Any = sys._getframe(2)
    found: list[tuple[Any, int]] = []
    while frame is not None and len(found) < _DEEPEST_STACK:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found.append((code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def user_line() -> tuple[str, int]:
    """File and line of the innermost calling frame outside this package; an empty name if there is none."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and not name.endswith("contextlib.py"):
            return name, frame.f_lineno
        frame = frame.f_back
    return "", 0


def traceback(stack: Stack) -> list[tuple[str, int, str, str]]:
    """(file, line, function, text) of the calls, outermost first."""
    import linecache

    found = []
    for code, line in reversed(stack):
        text = linecache.getline(code.co_filename, line).strip()
        found.append((code.co_filename, line, code.co_name, text))
    return found
