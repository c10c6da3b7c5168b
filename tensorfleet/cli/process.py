"""The processes of a run: each in a group of its own, none left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from tensorfleet.cli.plan import TOKEN, Task
from tensorfleet.cli.scripts.bootstrap import LAUNCHER

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


class Running:
    """A task that has been started. Calls back from threads of its own with lines, then with the exit code."""

    def __init__(
        self,
        task: Task,
        on_line: Callable[[str, str], None],
        on_exit: Callable[[str, int], None],
        guardian: Guardian,
    ) -> None:
        self.task = task
        self._on_line = on_line
        self._on_exit = on_exit
        self._guardian = guardian
        self._process = self._start()
        guardian.watch(self.pid)
        self._reader = threading.Thread(target=self._read, name=f"output of {task.label}", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name=f"end of {task.label}", daemon=True)
        self._reader.start()
        self._waiter.start()

    @property
    def pid(self) -> int:
        """The process's id, which is its group's too."""
        return self._process.pid

    def send(self, number: int) -> None:
        """A signal to the task and all that it started; for a remote one, the connection's end."""
        if self.task.host is not None and number != signal.SIGKILL:
            self._hang_up()
        else:
            _signal_group(self.pid, number)

    def _start(self) -> subprocess.Popen[bytes]:
        task = self.task
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        if task.host is None:
            ours = {"PYTHONUNBUFFERED": "1", LAUNCHER: str(os.getpid())}
            environment = {**os.environ, **ours, **task.environment}
            stdin = None if task.is_alone else subprocess.DEVNULL  # several could not share one keyboard
            return subprocess.Popen(
                task.command, env=environment, stdin=stdin, start_new_session=True, **options
            )
        # The token goes by stdin: every user of a machine can read its command lines.
        environment = {k: v for k, v in task.environment.items() if k != TOKEN}
        environment |= {"PYTHONUNBUFFERED": "1", LAUNCHER: "stdin"}
        command = task.host.reached(task.command, environment)
        if shutil.which(command[0]) is None:
            raise FileNotFoundError(
                f"Cannot start {task.label} on {task.host.shown}: {command[0]} is not installed on this machine."
            )
        process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **options)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # past the buffer, which would try again at its end
            os.write(process.stdin.fileno(), task.environment.get(TOKEN, "").encode() + b"\n")
        return process

    def _hang_up(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._on_line(self.task.label, line.decode(errors="replace").rstrip("\r\n"))

    def _wait(self) -> None:
        code = self._process.wait()
        while code == 0 and self.task.starts_copies and self._reader.is_alive():
            self._reader.join(_DRAIN_SECONDS)  # the tasks are still there: they hold its output open
        _signal_group(self.pid, signal.SIGKILL)  # what it started and left behind
        self._guardian.forget(self.pid)
        self._reader.join(_DRAIN_SECONDS)
        self._on_exit(self.task.label, code)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
