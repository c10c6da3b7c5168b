"""SIGUSR1: the stacks of this task into its log. Without this the signal would end the task."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from tensorfleet.base.platform.exit_threads import started

#: what the main thread is to do at the next signal, instead of a report
_interruption: Callable[[FrameType], None] | None = None
#: signals that the reader is to leave alone for that reason
_not_to_report = 0
_pipe: tuple[int, int] | None = None
#: held by whoever writes: the signal is heard in two ways
_writing = threading.Lock()


def install() -> None:
    """Has SIGUSR1 write the stacks into the log, unless the script has a handler of its own. Only in the main thread."""
    global _pipe
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGUSR1"):
        return
    if signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL:
        return
    signal.signal(signal.SIGUSR1, _handle)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # Python calls handlers in the main thread alone, which may compute for long. Its C handler writes here at once.
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=_read, args=(reader,), name="tensorfleet-signals", daemon=True)
    if before != -1 or not started(thread):  # taken by an event loop: then the main thread writes
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
        return
    _pipe = reader, writer


def interrupt(call: Callable[[FrameType], None]) -> bool:
    """Has the main thread call `call(frame)` when it next runs Python code. False if the script handles SIGUSR1 itself."""
    global _interruption, _not_to_report
    if signal.getsignal(signal.SIGUSR1) is not _handle:
        return False
    _interruption = call
    _not_to_report += _pipe is not None
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGUSR1)  # a real one: it ends system calls that wait
    return True


def _handle(number: int, frame: FrameType | None) -> None:
    """In the main thread: nothing to do where the reader has been woken by the same signal."""
    global _interruption
    call, _interruption = _interruption, None
    if call is not None:
        if frame is not None:
            call(frame)
        return
    reads = -1 if _pipe is None else signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    if _pipe is None or reads != _pipe[1]:  # an event loop has taken the other way, and given it back or not
        if _pipe is not None:
            signal.set_wakeup_fd(reads)
        # In a thread, which sees the main thread as it was: the handler interrupts it.
        started(threading.Thread(target=write, name="tensorfleet-signals", daemon=True))


def _read(reader: int) -> None:
    global _not_to_report
    while True:
        numbers = os.read(reader, 64)
        if not numbers:
            return
        if signal.SIGUSR1 not in numbers or signal.getsignal(signal.SIGUSR1) is not _handle:
            continue
        if _not_to_report:
            _not_to_report -= 1
            continue
        with contextlib.suppress(Exception):  # a report that fails must not end the next one
            write()


def write() -> None:
    """Writes the stacks to the log, which is the standard error of a task."""
    from tensorfleet.cluster.inspection.stacks import as_text, stacks

    with _writing:
        text = as_text(stacks(), every_frame=False)
        sys.stderr.write(f"SIGUSR1: the threads of process {os.getpid()}\n\n{text}\n\nSIGUSR1: end\n")
        sys.stderr.flush()


def _forked() -> None:
    """The pipe and its reader are the parent's: in the child the main thread writes."""
    global _pipe, _writing
    if _pipe is None:
        return
    _writing = threading.Lock()
    if signal.getsignal(signal.SIGUSR1) is _handle:
        with contextlib.suppress(ValueError):
            signal.set_wakeup_fd(-1)
    for end in _pipe:
        with contextlib.suppress(OSError):
            os.close(end)
    _pipe = None


os.register_at_fork(after_in_child=_forked)
