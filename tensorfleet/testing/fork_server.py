"""Processes for tests that start quickly: they are forked from one that has imported everything already.

`start(...)` asks that one process, made when first needed, for a child; what it gives is used like a
`subprocess.Popen`. Children end with the process that asked for them, however that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import runpy
import selectors
import signal
import subprocess
import sys
import threading
from typing import Any

_START_SECONDS = 120.0


class Child:
    """A forked process, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, number: int, label: str) -> None:
        self.number = number
        self.label = label
        self.pid = 0
        self.returncode: int | None = None
        self.born = threading.Event()
        self.ended = threading.Event()

    def poll(self) -> int | None:
        """The code it ended with, or None while it runs."""
        return self.returncode

    def wait(self, timeout: float) -> int | None:
        """Waits for its end; raises `subprocess.TimeoutExpired`."""
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.label, timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it with SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Asks it to end with SIGTERM."""
        self.send_signal(signal.SIGTERM)


class _Nursery:
    """The process that forks, seen from the one that asks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tensorfleet.testing.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._numbers = itertools.count()
        self._children: dict[int, Child] = {}
        self._lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen, name="tensorfleet-nursery", daemon=True)
        self._listener.start()

    @property
    def is_up(self) -> bool:
        """Whether it still answers."""
        return self._process.poll() is None

    def start(self, label: str, **wish: Any) -> Child:
        """Asks for a child and waits until it has a process."""
        child = Child(next(self._numbers), label)
        text = json.dumps({**wish, "number": child.number}) + "\n"
        assert self._process.stdin is not None
        with self._lock:
            self._children[child.number] = child
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
        if not child.born.wait(_START_SECONDS) or not child.pid:
            raise RuntimeError(f"{label} could not be started.")
        return child

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            with self._lock:
                child = self._children[message["number"]]
                if "code" in message:
                    del self._children[message["number"]]
            if "pid" in message:
                child.pid = message["pid"]
                child.born.set()
            else:
                child.returncode = message["code"]
                child.ended.set()
        self._process.stdout.close()
        for child in list(self._children.values()):  # it has gone, and they with it
            child.returncode = -signal.SIGKILL
            child.born.set()
            child.ended.set()

    def close(self) -> None:
        """Ends it and all its children."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._listener.join(10)


_nursery: _Nursery | None = None
_lock = threading.Lock()


def start(label: str, **wish: Any) -> Child:
    """A new process that serves as a task (`cluster`, `job`, `index`) or runs a script (`script`, `arguments`).

    `env` is its whole environment.
    """
    global _nursery
    with _lock:
        if _nursery is None or not _nursery.is_up:
            _nursery = _Nursery()
            atexit.register(_nursery.close)
    return _nursery.start(label, **wish)


# -- inside the nursery -------------------------------------------------------------------------------


def _serve(wish: dict[str, Any]) -> None:
    from tensorfleet.cluster.server import Server

    Server(wish["cluster"], wish["job"], int(wish["index"])).join()


def _run(wish: dict[str, Any]) -> None:
    """Runs a child's script or server."""
    # The parent's environment is that of the first test that needed a process.
    os.environ.clear()
    os.environ.update(wish["env"])
    if "script" in wish:
        sys.argv = [wish["script"], *wish["arguments"]]
        runpy.run_path(wish["script"], run_name="__main__")
    else:
        _serve(wish)


def _end_with(pipe: int) -> None:
    """Ends this process when the one that forked it has gone."""
    with contextlib.suppress(OSError):
        os.read(pipe, 1)
    os._exit(1)


class _Forker:
    """Reads wishes from standard input and tells of births and deaths on standard output."""

    def __init__(self) -> None:
        self._children: dict[int, int] = {}  # process to number
        self._alive, self._life = os.pipe()
        self._woken, wake = os.pipe()
        self._out = os.dup(1)
        os.dup2(2, 1)  # what a child prints goes where errors go
        for fd in (self._woken, wake):
            os.set_blocking(fd, False)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the test
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def go(self) -> dict[str, Any] | None:
        """Forks until standard input ends; in a child, returns its request."""
        watched = selectors.DefaultSelector()
        watched.register(0, selectors.EVENT_READ)
        watched.register(self._woken, selectors.EVENT_READ)
        heard = b""
        while True:
            ready = [key.fd for key, _ in watched.select(1.0)]
            if self._woken in ready:
                os.read(self._woken, 4096)
            self._reap()
            if 0 in ready:
                more = os.read(0, 1 << 16)
                if not more:
                    self._end_all()
                    return None
                *lines, heard = (heard + more).split(b"\n")
                for line in lines:
                    wish: dict[str, Any] = json.loads(line)
                    if self._fork(wish):
                        watched.close()
                        return wish

    def _fork(self, wish: dict[str, Any]) -> bool:
        pid = os.fork()
        if pid:
            self._children[pid] = wish["number"]
            self._tell(number=wish["number"], pid=pid)
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for fd in (self._life, self._woken, self._wake, self._out):
            os.close(fd)
        # Requests on standard input are for the parent only.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # The parent holds the other end of this pipe: the kernel closes it however the parent ends.
        threading.Thread(target=_end_with, args=(self._alive,), daemon=True).start()
        return True

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                self._tell(number=self._children.pop(pid), code=os.waitstatus_to_exitcode(status))

    def _tell(self, **what: int) -> None:
        with contextlib.suppress(OSError):
            os.write(self._out, json.dumps(what).encode() + b"\n")

    def _end_all(self) -> None:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    import tensorfleet.cluster.server  # noqa: F401 - what every child needs

    wish = _Forker().go()
    if wish is not None:
        _run(wish)
