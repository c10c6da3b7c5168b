"""A fault at an exact point of a process: at its 17th message, step or write to the file system.

In the process that is to fail:

    fault_points.watch("/tmp/points")

In the test:

    points = FaultPoints("/tmp/points")    # before the process starts
    points.arm(17, "kill")                 # the process is killed at its 17th point from now on
    points.passed                          # how many points it has passed since

A test that arms 1, 2, 3 and so on, until an operation ends without a fault, has tried each moment of it. Points are
before and after each frame that is sent, after each frame that is received, at the beginning and the end of each
`sess.run`, and before each file that is opened for writing, renamed, linked or deleted.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

from tensorfleet.base import errors
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import wire
from tensorfleet.session.session import BaseSession

#: SIGKILL, SIGSTOP, a pause of `SLOW_SECONDS`, or a reset of the connection that the frame belongs to
PointFault = Literal["kill", "stop", "slow", "cut"]
_FAULTS = get_args(PointFault)
SLOW_SECONDS = 0.2

# How many points are left (0: not armed, -1: it has failed), which fault, how many were passed, and the name of the last
# one: once it has failed, of that one.
_NAME_BYTES = 104
_LAYOUT = struct.Struct(f"<qqq{_NAME_BYTES}s")
_WRITES = {
    "os.rename": "renames",
    "os.remove": "deletes",
    "os.link": "links",
    "os.mkdir": "makes",
    "os.rmdir": "deletes",
}
_ANSWERS = {messages.WELCOME: "Welcome", messages.OK: "an answer", messages.FAILED: "Failed"}


class FaultPoints:
    """The points of one process, seen from a test. The file lets both see the same memory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open(self.path, "wb") as file:
            file.write(bytes(_LAYOUT.size))
        self._memory = _mapped(self.path)

    def arm(self, nth: int, fault: PointFault = "kill") -> None:
        """Has the process fail at its `nth` point from now on, the first is 1. It counts from 0 again."""
        if nth < 1 or fault not in _FAULTS:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"arm({nth}, {fault!r}): give a number from 1 on, and one of {', '.join(_FAULTS)}.",
            )
        _LAYOUT.pack_into(self._memory, 0, nth, _FAULTS.index(fault), 0, b"")

    def disarm(self) -> None:
        """Has the process go on, and count from 0 again."""
        _LAYOUT.pack_into(self._memory, 0, 0, 0, 0, b"")

    @property
    def is_armed(self) -> bool:
        """Whether the fault is still to come."""
        return bool(_LAYOUT.unpack_from(self._memory)[0] > 0)

    @property
    def passed(self) -> int:
        """How many points the process has passed since it was armed or disarmed."""
        return int(_LAYOUT.unpack_from(self._memory)[2])

    @property
    def last(self) -> str:
        """The point at which the process failed, or the last one: "before sending Replicate", "writes model.index"."""
        return str(_LAYOUT.unpack_from(self._memory)[3].rstrip(b"\0").decode(errors="replace"))

    def close(self) -> None:
        """Gives the memory back; the file stays."""
        self._memory.close()


def _mapped(path: str) -> mmap.mmap:
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), _LAYOUT.size)


class _Watcher:
    """Counts the points of this process, and carries out the fault at one of them."""

    def __init__(self, path: str) -> None:
        self._memory = _mapped(path)
        self._path = path
        self._lock = threading.Lock()

    def at(self, name: str, channel: wire.Channel | None = None) -> None:
        """The process is at a point; one of a connection if `channel` is given."""
        with self._lock:
            left, number, passed, last = _LAYOUT.unpack_from(self._memory)
            fault = _FAULTS[number]
            if fault == "cut" and channel is None:
                return  # only connections can be cut
            after = left - 1 if left > 1 else -1 if left else 0
            text = last if left < 0 else name.encode()[:_NAME_BYTES]
            _LAYOUT.pack_into(self._memory, 0, after, number, passed + 1, text)
        if left == 1:
            _fail(fault, channel)

    def on_audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The interpreter is about to do something: a point if it changes a file."""
        if event == "open":
            path, mode, flags = arguments
            if not isinstance(path, (str, bytes)) or not flags & (os.O_WRONLY | os.O_RDWR):
                return
            what = "writes"
        elif event in _WRITES:
            path, what = arguments[0], _WRITES[event]
        else:
            return
        name = os.fsdecode(path)
        if name != self._path and not name.startswith(("/dev/", "/proc/")):
            self.at(f"{what} {os.path.basename(name)}")


def _fail(fault: str, channel: wire.Channel | None) -> None:
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "slow":
        time.sleep(SLOW_SECONDS)
    elif channel is not None:
        channel.shut()


def watch(path: str | os.PathLike[str]) -> None:
    """Counts the points of this process, which fails at the one that a test has armed. It lasts as long as the process."""
    watcher = _Watcher(os.fspath(path))
    sys.addaudithook(watcher.on_audit)
    for name in ("send", "send_now"):
        _around(wire.Channel, name, lambda channel, kind, *_: _sending(watcher, channel, kind))
    _behind(wire.Channel, "receive", watcher)
    _around(BaseSession, "run", lambda *_: _stepping(watcher))


def _around(owner: type, name: str, around: Callable[..., contextlib.AbstractContextManager[None]]) -> None:
    method = getattr(owner, name)

    @functools.wraps(method)
    def wrapped(self: object, *arguments: Any, **options: Any) -> object:
        with around(self, *arguments):
            return method(self, *arguments, **options)

    setattr(owner, name, wrapped)


def _behind(owner: type, name: str, watcher: _Watcher) -> None:
    method = getattr(owner, name)

    @functools.wraps(method)
    def wrapped(self: wire.Channel) -> wire.Frame:
        frame: wire.Frame = method(self)
        watcher.at(f"has received {_kind(frame.kind)}", self)
        return frame

    setattr(owner, name, wrapped)


@contextlib.contextmanager
def _sending(watcher: _Watcher, channel: wire.Channel, kind: int) -> Iterator[None]:
    watcher.at(f"before sending {_kind(kind)}", channel)
    yield
    watcher.at(f"has sent {_kind(kind)}", channel)


@contextlib.contextmanager
def _stepping(watcher: _Watcher) -> Iterator[None]:
    watcher.at("a step begins")
    yield
    watcher.at("a step ends")


def _kind(kind: int) -> str:
    request = messages.REQUESTS.get(kind)
    return _ANSWERS.get(kind, str(kind)) if request is None else request.__name__
