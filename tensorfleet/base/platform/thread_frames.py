"""The threads of this process, and the calls that each of them is in."""

from __future__ import annotations

import linecache
import sys
import sysconfig
import threading
from dataclasses import dataclass
from types import FrameType

from tensorfleet.base.packages import FOLDERS

_MAX_FRAMES = 200  # of a thread: a recursion that runs away would otherwise fill the report
_PATHS = sysconfig.get_paths()
_LIBRARIES = (_PATHS["stdlib"], _PATHS["platstdlib"], _PATHS["purelib"], _PATHS["platlib"], "<", *FOLDERS)


@dataclass(frozen=True, slots=True)
class ThreadCall:
    """One call that a thread is in."""

    file: str
    line: int
    function: str
    #: the source line, empty where the file is not there
    code: str
    #: whether it is the user's own: not Python's, not a library's, not ours
    is_users: bool


@dataclass(frozen=True, slots=True)
class ThreadFrames:
    """A thread and its frames, innermost last."""

    name: str
    id: int
    frames: list[FrameType]

    def calls(self) -> list[ThreadCall]:
        """The frames as text, innermost last."""
        return [_call(frame) for frame in self.frames[-_MAX_FRAMES:]]


def threads() -> list[ThreadFrames]:
    """All threads that are in Python code, the main thread first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    main = threading.main_thread().ident
    current = sys._current_frames()  # noqa: SLF001 - Python's own
    order = sorted(current, key=lambda ident: (ident != main, names.get(ident, "")))
    return [ThreadFrames(names.get(i, f"thread {i}"), i, _chain(current[i])) for i in order]


def is_users(file: str) -> bool:
    """Whether a file is the user's own: not Python's, not a library's, not ours."""
    return not file.startswith(_LIBRARIES) and "site-packages" not in file


def _chain(frame: FrameType | None) -> list[FrameType]:
    result = []
    while frame is not None:
        result.append(frame)
        frame = frame.f_back
    return result[::-1]


def _call(frame: FrameType) -> ThreadCall:
    code, line = frame.f_code, frame.f_lineno or 0
    text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
    return ThreadCall(code.co_filename, line, code.co_qualname, text, is_users(code.co_filename))
