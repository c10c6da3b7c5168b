"""Which Python lock a thread waits for, and which thread has it.

The interpreter does not tell: a blocked `acquire` leaves no Python frame. The line of the innermost frame does, read as
`with EXPRESSION:` or `EXPRESSION.acquire()`. Expressions are only looked up, never called.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import linecache
import re
import threading
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tensorfleet.base.packages import FOLDERS
from tensorfleet.base.platform.thread_frames import ThreadFrames

_LOCK_TYPES = (type(threading.Lock()), type(threading.RLock()))
_OWNER = re.compile(r"owner=(\d+)")


@dataclass(frozen=True, slots=True)
class LockWait:
    """A thread that waits for a lock."""

    expression: str
    #: the name and the line of the thread that has it, None where that cannot be seen
    holder: str | None

    def __str__(self) -> str:
        return f"lock `{self.expression}`" + (f", held by {self.holder}" if self.holder else "")


def lock_waits(threads: list[ThreadFrames]) -> dict[int, LockWait]:
    """By thread: the lock that it waits for."""
    result = {}
    for thread in threads:
        awaited = _awaited(thread.frames[-1]) if thread.frames else None
        if awaited is not None:
            expression, lock = awaited
            result[thread.id] = LockWait(expression, _holder(lock, thread, threads))
    return result


def _awaited(frame: FrameType) -> tuple[str, Any] | None:
    """The lock that the innermost frame of a thread is acquiring, with the expression of it."""
    if frame.f_code.co_filename.startswith(FOLDERS) or frame.f_code.co_filename == threading.__file__:
        return None  # the lock inside of an event, a condition and the like: their callers say more
    operation = dis.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""
    enters = operation == "BEFORE_WITH"
    if not enters and "CALL" not in operation:
        return None
    for node in _nodes(frame.f_code.co_filename):
        if isinstance(node, ast.With) and (enters or operation == "CALL"):
            expressions = [item.context_expr for item in node.items]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not enters:
            expressions = [node.func.value] if node.func.attr == "acquire" else []
        else:
            continue
        for expression in expressions:
            if expression.lineno == frame.f_lineno:
                lock = _lock_of(_value(expression, frame))
                if lock is not None and _is_taken(lock):
                    return ast.unparse(expression), lock
    return None


def _is_taken(lock: Any) -> bool:
    return repr(lock).startswith("<locked")


def _holder(lock: Any, waiting: ThreadFrames, threads: Iterable[ThreadFrames]) -> str | None:
    owner = _OWNER.search(repr(lock))
    for thread in threads:
        if owner is not None and int(owner[1]) == thread.id:
            return f"thread {thread.name}"
        if owner is None and thread is not waiting:
            for frame in thread.frames:
                if any(_lock_of(_value(e, frame)) is lock for e in _entered(frame)):
                    line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                    return f"thread {thread.name}, which is at {line}"
    return None


def _entered(frame: FrameType) -> Iterator[ast.expr]:
    """The expressions of the `with` blocks that a frame is inside of."""
    code, line = frame.f_code, frame.f_lineno or 0
    for node in _nodes(code.co_filename):
        if not isinstance(node, ast.With) or node.lineno < code.co_firstlineno:
            continue
        if node.body[0].lineno <= line <= (node.end_lineno or 0):
            yield from (item.context_expr for item in node.items)


@functools.lru_cache(maxsize=64)
def _nodes(file: str) -> list[ast.With | ast.Call]:
    """The `with` statements and calls of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.With, ast.Call))]


def _lock_of(value: Any) -> Any:
    """The lock itself, also of a condition."""
    if isinstance(value, threading.Condition):
        value = vars(value).get("_lock")
    return value if isinstance(value, _LOCK_TYPES) else None


def _value(expression: ast.expr, frame: FrameType) -> Any:
    """The value of names, attributes and constant subscripts; None for anything that would have to be computed."""
    match expression:
        case ast.Name(id=name):
            local = frame.f_locals
            return local[name] if name in local else frame.f_globals.get(name)
        case ast.Attribute(value=of, attr=name):
            value = inspect.getattr_static(_value(of, frame), name, None)
            owner = _value(of, frame)
            return value.__get__(owner) if isinstance(value, types.MemberDescriptorType) else value
        case ast.Subscript(value=of, slice=ast.Constant(value=key)):
            container = _value(of, frame)
            is_plain = type(container) in (list, tuple, dict)
            try:
                return container[key] if is_plain else None
            except (LookupError, TypeError):
                return None
    return None
