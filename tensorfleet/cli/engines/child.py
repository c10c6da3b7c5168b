"""Child processes of the launcher: each in a group of its own, none left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorfleet.cli.plan import Task
from tensorfleet.cli.scripts.bootstrap import LAUNCHER

#: called with a task's exit code, or -N for signal N
OnExit = Callable[[str, int], None]

_DRAIN_SECONDS = 1.0  # for the last output of a task that has ended
# Reads "+group" and "-group" lines; at their end the launcher is gone, and so must be what it started.
_GUARDIAN = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class Guardian:
    """A process that outlives a killed launcher just long enough to end its tasks and all they started."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARDIAN],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        """Ends this group of processes if the launcher does not live to do it."""
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """The group has ended."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """The run is over."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        # It has ended, or been told that the run is over.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()


@dataclass(frozen=True)
class ChildStart:
    """How to start a child process."""

    command: Sequence[str]
    #: all of its environment
    environment: dict[str, str]
    #: what it gets as the first line of its input, which then stays open: the child ends with it. None: no input
    first_line: str | None = None
    #: whether it has the launcher's own input instead
    has_keyboard: bool = False
    #: whether processes that it has started may outlive it, and count
    starts_copies: bool = False


def start_here(task: Task) -> ChildStart:
    """A task as a child of this process, with which it ends."""
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        LAUNCHER: str(os.getpid()),
        **task.environment,
    }
    # Several tasks could not share one keyboard.
    return ChildStart(task.command, environment, has_keyboard=task.is_alone, starts_copies=task.starts_copies)


class ChildTask:
    """A task that has been started. Calls back from threads of its own with lines, then with the exit code."""

    def __init__(
        self,
        label: str,
        start: ChildStart,
        on_line: Callable[[str, str], None],
        on_exit: OnExit,
        guardian: Guardian,
    ) -> None:
        self.label = label
        self._start = start
        self._on_line = on_line
        self._on_exit = on_exit
        self._guardian = guardian
        self._process = self._started()
        guardian.watch(self.pid)
        self._reader = threading.Thread(target=self._read, name=f"output of {label}", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name=f"end of {label}", daemon=True)
        self._reader.start()
        self._waiter.start()

    @property
    def pid(self) -> int:
        """The process's id, which is its group's too."""
        return self._process.pid

    @property
    def where(self) -> str:
        """What people call it."""
        return f"pid {self.pid}"

    def send(self, number: int) -> None:
        """A signal to the process and all that it started."""
        _signal_group(self.pid, number)

    def hang_up(self) -> None:
        """Closes its input: what follows that ends."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _started(self) -> subprocess.Popen[bytes]:
        start = self._start
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        options["stdin"] = None if start.has_keyboard else subprocess.DEVNULL
        if start.first_line is not None:
            options["stdin"] = subprocess.PIPE
        process = subprocess.Popen(start.command, env=start.environment, start_new_session=True, **options)
        if start.first_line is not None:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # past the buffer, which would try again at its end
                os.write(process.stdin.fileno(), start.first_line.encode() + b"\n")
        return process

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._on_line(self.label, line.decode(errors="replace").rstrip("\r\n"))

    def _wait(self) -> None:
        code = self._process.wait()
        # A script that starts its tasks as processes may end before them.
        while code == 0 and self._start.starts_copies and self._reader.is_alive():
            self._reader.join(_DRAIN_SECONDS)  # the tasks are still there: they hold its output open
        _signal_group(self.pid, signal.SIGKILL)  # what it started and left behind
        self._guardian.forget(self.pid)
        self._reader.join(_DRAIN_SECONDS)
        self.hang_up()
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()
        self._on_exit(self.label, code)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as open_sockets:
        result = []
        for _ in range(count):
            listener = open_sockets.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            result.append(listener.getsockname()[1])
        return result


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
