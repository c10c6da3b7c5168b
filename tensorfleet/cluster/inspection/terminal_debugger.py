"""pdb in the main thread of this task, over the connection of whoever asks.

A signal brings the main thread into the debugger, at the innermost line of the user's own. While it is there the other
threads go on. It lets the thread go when it is left, and when nobody has asked for some time.
"""

from __future__ import annotations

import io
import pdb
import queue
import secrets
import sys
import threading
import time
from types import FrameType
from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.platform.thread_frames import is_users
from tensorfleet.cluster.inspection import signal_report

_LEASE_SECONDS = 30.0


class TerminalDebugger:
    """One debugging session."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(16)
        self.ended = False
        self._lines: queue.Queue[str] = queue.Queue()
        self._changed = threading.Condition()
        self._output = ""
        self._is_asking = self._leaves = False
        self._heard = time.monotonic()
        self._pdb = _Pdb(self)

    def interrupt(self) -> None:
        """Brings the main thread here, as soon as it runs Python code."""
        if not signal_report.interrupt(self._enter):
            self.ended = True
            text = "The script has a handler of its own for SIGUSR1, by which --pdb would interrupt it. Use debugpy instead."
            raise errors.FailedPreconditionError(None, None, text)

    def _enter(self, frame: FrameType) -> None:
        """In the main thread."""
        own: FrameType | None = frame
        while own is not None and not is_users(own.f_code.co_filename):
            own = own.f_back
        try:
            self._pdb.set_trace_at(own or frame)
        except Exception as error:  # whatever the debugger does, the program goes on
            self._pdb.release()
            self.write(f"The debugger has failed: {type(error).__name__}: {error}\n")
            self.end()

    # -- the side of who asks -------------------------------------------------------------------------

    def say(self, line: str) -> None:
        """A command."""
        with self._changed:
            # Between two breakpoints nobody reads commands. It must be able to leave there too.
            self._leaves = self._leaves or (not self._is_asking and line.strip() == "quit")
            self._is_asking = False
        self._lines.put(line.rstrip("\n") + "\n")

    def hear(self, seconds: float) -> dict[str, Any]:
        """What it has said, after at most so many seconds, or as soon as it asks for a command."""
        limit = time.monotonic() + seconds
        self._heard = time.monotonic()
        with self._changed:
            while (
                not (self._output or self._is_asking or self.ended) and (left := limit - time.monotonic()) > 0
            ):
                self._changed.wait(left)
            output, self._output = self._output, ""
            return {"output": output, "asks": self._is_asking, "ended": self.ended}

    def is_left(self) -> bool:
        """Whether whoever asked has left, or asks no more."""
        return self._leaves or time.monotonic() - self._heard > _LEASE_SECONDS

    # -- the side of the main thread ------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Output of the debugger."""
        with self._changed:
            self._output += text
            self._changed.notify_all()

    def readline(self) -> str:
        """The next command; `quit` if nobody is there any more."""
        with self._changed:
            self._is_asking = True
            self._changed.notify_all()
        while time.monotonic() - self._heard < _LEASE_SECONDS:
            try:
                return self._lines.get(timeout=1.0)
            except queue.Empty:
                continue
        return "quit\n"

    def end(self) -> None:
        """The debugger lets the thread go for good."""
        with self._changed:
            self.ended = True
            self._is_asking = False
            self._changed.notify_all()


class _Input(io.TextIOBase):
    def __init__(self, terminal: TerminalDebugger) -> None:
        self._terminal = terminal

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        return self._terminal.readline()


class _Output(io.TextIOBase):
    def __init__(self, terminal: TerminalDebugger) -> None:
        self._terminal = terminal

    def write(self, text: str, /) -> int:
        self._terminal.write(text)
        return len(text)


class _Pdb(pdb.Pdb):
    """pdb that never ends the program: `quit` lets it run on."""

    def __init__(self, terminal: TerminalDebugger) -> None:
        super().__init__(stdin=_Input(terminal), stdout=_Output(terminal), nosigint=True, readrc=False)  # type: ignore[arg-type]
        self.use_rawinput = False
        self._terminal = terminal

    def set_trace_at(self, frame: FrameType) -> None:
        """Asks for commands at a frame of the current thread that has not been traced."""
        self.reset()
        outer: FrameType | None = frame
        while outer is not None:
            outer.f_trace = self.trace_dispatch
            self.botframe = outer
            outer = outer.f_back
        self.interaction(frame, None)
        if not self._terminal.ended:  # traced only now, or it would stop in itself
            sys.settrace(self.trace_dispatch)

    def trace_dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Stops at breakpoints. Nobody stays traced, which is slow, for somebody who has left."""
        if self._terminal.is_left():
            self.do_quit("")
            return None
        return super().trace_dispatch(frame, event, arg)

    def release(self) -> None:
        """Stops tracing, and forgets the breakpoints."""
        self.clear_all_breaks()
        super().set_continue()

    def do_quit(self, arg: str) -> bool:
        """Lets the program run on, without breakpoints."""
        self.release()
        self._terminal.end()
        return True

    do_q = do_exit = do_EOF = do_quit

    def do_run(self, arg: str) -> None:
        """Not here: pdb would end what runs to start it again."""
        self.error("A running task cannot be started again from here.")

    do_restart = do_run

    def do_continue(self, arg: str) -> bool | None:
        """Goes on until the next breakpoint; without one, the debugger ends."""
        if not self.breaks:
            return self.do_quit(arg)
        return super().do_continue(arg)

    do_c = do_cont = do_continue
