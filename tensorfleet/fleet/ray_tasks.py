"""The actor that owns one task's process on a node of a Ray cluster.

Ray pickles this module by value, so that a node without TensorFleet, or with another version of it, can say so. It
therefore imports the standard library only.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

#: the variable that tells a task to read its secret from stdin, and to end when stdin does (`cli/scripts/bootstrap.py`)
LAUNCHER = "TENSORFLEET_LAUNCHER"
_MAX_BATCH_BYTES = 1 << 18
_MAX_WAITING_LINES = 10_000  # then the task waits in its print: nobody reads as fast as it writes
_DRAIN_SECONDS = 1.0  # for the last output of a task that has ended
_NODE_LOOK_SECONDS = 2.0  # between two looks whether the node is being drained
# What Ray sets in its workers for their own sake.
_OF_RAY = ("PYTHONBREAKPOINT",)
# Reads until the actor is gone, however that went, and ends the task's group with it.
_GUARDIAN = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.read()
try:
    os.killpg(int(sys.argv[1]), signal.SIGKILL)
except OSError:
    pass
"""


class NodePlace(NamedTuple):
    """Where an actor is, and what is there."""

    host: str
    port: int
    node_id: str
    actor_id: str
    python: str
    #: of TensorFleet; empty where that is not installed
    version: str


class TaskCommand(NamedTuple):
    """What an actor starts."""

    command: list[str]
    environment: dict[str, str]
    secret: str
    #: None: the actor's own, where Ray has unpacked the run's `working_dir`
    directory: str | None = None
    #: tasks of its cluster, as processes that may outlive it
    starts_copies: bool = False
    #: variables of the actor's own environment that the task does not inherit
    hidden: tuple[str, ...] = ()
    #: it takes SIGTERM as notice: it gets one when its node is being drained
    saves: bool = False


class LineBatch(NamedTuple):
    """Lines that a task has printed, and its exit code once there are no more."""

    lines: list[str]
    code: int | None
    #: the node is being drained, so the task was told to leave
    leaves: bool = False


def installed_version() -> str:
    """The version of the TensorFleet that this Python would import, empty if there is none. Imports nothing."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        spec = importlib.util.find_spec("tensorfleet")
        for folder in (spec.submodule_search_locations or []) if spec else []:
            text = (Path(folder) / "base" / "versions.py").read_text()
            match = re.search(r'^FLEET_VERSION = "(.+)"', text, re.MULTILINE)
            return match[1] if match else ""
    return ""


def held_port(host: str) -> tuple[socket.socket, int]:
    """A free port, held for its user: a server may listen at it beside this socket, another search does not find it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.socket(family)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", 0))
    return held, held.getsockname()[1]


def library() -> Any:
    """Ray, which few annotate."""
    import ray

    return ray


def node_place(port: int) -> NodePlace:
    """Where this process is, as other nodes see it."""
    ray = library()
    context = ray.get_runtime_context()
    node, actor = context.get_node_id(), context.get_actor_id()
    return NodePlace(ray.util.get_node_ip_address(), port, node, actor, sys.executable, installed_version())


def node_is_drained() -> bool:
    """Whether Ray is about to take this node away: a spot machine that was given notice, or `ray drain-node`."""
    with contextlib.suppress(Exception):  # Ray has no public name for this, and may not answer just now
        from ray._private import state

        return library().get_runtime_context().get_node_id() in state.state.get_draining_nodes()
    return False


class TaskActor:
    """Starts a task as a process, gives its output in batches, and ends it when the actor ends.

    Ray calls its methods from several threads.
    """

    def __init__(self) -> None:
        self._held, self._port = held_port(library().util.get_node_ip_address())
        self._changed = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: collections.deque[str] = collections.deque()
        self._code: int | None = None
        self._last: tuple[int, LineBatch] = (0, LineBatch([], None))
        self._leaves = False

    def place(self) -> NodePlace:
        """Where the task will be, with a port that is free there."""
        return node_place(self._port)

    def start(self, wanted: TaskCommand) -> int:
        """Starts the task; gives its process id."""
        with self._changed:
            self._lines.clear()
            self._code, self._last, self._leaves = None, (0, LineBatch([], None)), False
            self._process = process = _started(wanted)
        guardian = _guardian(process.pid)
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        ends = (process, reader, guardian, wanted.starts_copies)
        threading.Thread(target=self._wait, args=ends, daemon=True).start()
        if wanted.saves:
            threading.Thread(target=self._watch_node, args=(process,), daemon=True).start()
        return process.pid

    def next_lines(self, number: int, seconds: float) -> LineBatch:
        """The batch of this number: as soon as there are lines, or after so long.

        The same number again gives the same batch: the answer may have been lost on its way.
        """
        with self._changed:
            if self._last[0] == number:
                return self._last[1]
            self._changed.wait_for(lambda: self._lines or self._code is not None, seconds)
            lines: list[str] = []
            size = 0
            while self._lines and size < _MAX_BATCH_BYTES:
                lines.append(self._lines.popleft())
                size += len(lines[-1]) + 1
            batch = LineBatch(lines, None if self._lines else self._code, self._leaves)
            self._last = (number, batch)
            self._changed.notify_all()
            return batch

    def send(self, number: int) -> None:
        """Sends a signal to the task and all that it started."""
        if self._process is not None and self._code is None:
            _signal_group(self._process.pid, number)

    def mark(self, name: str, folders: list[str], directory: str | None) -> dict[str, str]:
        """Writes a file to each folder, or to the nearest one above that exists; gives where."""
        here = directory or os.getcwd()
        return {folder: self._mark(os.path.join(here, folder), name) for folder in folders}

    def sees(self, marks: dict[str, str]) -> list[str]:
        """The folders whose marks, which another node has made, are not here."""
        return [folder for folder, path in marks.items() if not os.path.exists(path)]

    def unmark(self, marks: dict[str, str]) -> None:
        """Removes the files of `mark`."""
        for path in set(marks.values()):
            with contextlib.suppress(OSError):
                os.unlink(path)

    @staticmethod
    def _mark(folder: str, name: str) -> str:
        while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError), open(path, "x"):  # a read-only folder: nobody sees the mark
            pass
        return path

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                with self._changed:
                    # Back pressure: the pipe fills, and the task waits in its print.
                    self._changed.wait_for(lambda: len(self._lines) < _MAX_WAITING_LINES)
                    self._lines.append(line.decode(errors="replace").rstrip("\r\n"))
                    self._changed.notify_all()

    def _watch_node(self, process: subprocess.Popen[bytes]) -> None:
        """Tells the task to save when its node is about to go."""
        while not node_is_drained():
            with self._changed:
                if self._changed.wait_for(lambda: self._has_ended(process), _NODE_LOOK_SECONDS):
                    return
        with self._changed:
            if not self._has_ended(process):
                self._leaves = True
                _signal_group(process.pid, signal.SIGTERM)

    def _has_ended(self, process: subprocess.Popen[bytes]) -> bool:
        return self._process is not process or self._code is not None

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        reader: threading.Thread,
        guardian: subprocess.Popen[bytes],
        starts_copies: bool,
    ) -> None:
        code = process.wait()
        while code == 0 and starts_copies and reader.is_alive():
            reader.join(_DRAIN_SECONDS)  # the tasks are still there: they hold its output open
        _signal_group(process.pid, signal.SIGKILL)  # what it started and left behind
        guardian.kill()
        with contextlib.suppress(
            subprocess.TimeoutExpired
        ):  # a busy machine: the exit has to be told nevertheless
            guardian.wait(_DRAIN_SECONDS)
        for ended in (process, guardian):
            assert ended.stdin is not None
            ended.stdin.close()
        self._drain(reader)
        with self._changed:
            self._code = code
            self._changed.notify_all()

    def _drain(self, reader: threading.Thread) -> None:
        """Waits for the rest of the output, which a slow reader may take its time for."""
        quiet_since = time.monotonic()
        before = -1
        while reader.is_alive() and time.monotonic() - quiet_since < _DRAIN_SECONDS:
            reader.join(0.05)
            waiting = len(self._lines)
            if waiting != before or waiting >= _MAX_WAITING_LINES:
                before, quiet_since = waiting, time.monotonic()


class TrainingActor:
    """One task of `tensorfleet.fleet.ray.run`: its own process runs the function, or serves variables."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._held, self._port = held_port(library().util.get_node_ip_address())

    def __repr__(self) -> str:
        """What Ray puts before the lines that it prints."""
        return self._label

    def place(self) -> NodePlace:
        """Where the task is, with a port that is free there."""
        return node_place(self._port)

    def configure(self, environment: dict[str, str]) -> None:
        """Tells the task of its cluster, before anything of the function's is imported."""
        os.environ.update(environment)

    def serve(self) -> None:
        """Serves variables until the actor is ended."""
        from tensorfleet.fleet import ray as training

        training.get_context().server.join()

    def train(self, function: Any) -> Any:
        """Runs the function."""
        train_fn, arguments = function
        return train_fn(*arguments)


def _started(wanted: TaskCommand) -> subprocess.Popen[bytes]:
    hidden = {*_OF_RAY, *wanted.hidden}
    own = {name: value for name, value in os.environ.items() if name not in hidden}
    process = subprocess.Popen(
        wanted.command,
        cwd=wanted.directory,
        env={**own, **wanted.environment, "PYTHONUNBUFFERED": "1", LAUNCHER: "stdin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdin is not None
    # The secret's line; the pipe then stays open as long as this process is there.
    with contextlib.suppress(BrokenPipeError):
        os.write(process.stdin.fileno(), wanted.secret.encode() + b"\n")
    return process


def _guardian(group: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", _GUARDIAN, str(group)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
