"""Runs of the real command as child processes, with a check that nothing of them is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

SECONDS = 120
_MARK = "TENSORFLEET_TEST_RUN"


class Launch:
    """The command, started in a directory of its own."""

    def __init__(self, directory: Path, *arguments: str, **environment: str) -> None:
        self.mark = f"{_MARK}={uuid.uuid4()}"
        unwanted = ("TENSORFLEET_TOKEN", "TF_CONFIG", "PYTHONDONTWRITEBYTECODE")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
        environment = {
            **clean,
            "TENSORFLEET_STATE": str(directory / "state"),
            _MARK: self.mark.partition("=")[2],
            "PYTHONFAULTHANDLER": "1",
            # Many processes import the same modules: compiled once, and not into the tree.
            "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"tensorfleet-tests-{os.getuid()}"),
            **environment,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorfleet", *arguments],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stdout = ""
        self.stderr = ""

    @property
    def code(self) -> int | None:
        return self.process.returncode

    def end(self, seconds: float = SECONDS) -> Launch:
        """Waits for the end."""
        try:
            more, self.stderr = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for pid in self._pids():
                if pid != self.process.pid:
                    os.kill(pid, signal.SIGABRT)  # each prints what its threads are doing
            more, self.stderr = self.process.communicate(timeout=SECONDS)
            raise AssertionError(f"did not end:\n{self.stdout}{more}\n{self.stderr}") from None
        self.stdout += more
        return self

    def read_until(self, text: str, times: int = 1) -> None:
        """Reads the output until it has said this so often."""
        assert self.process.stdout is not None
        impatience = threading.Timer(SECONDS, self.process.kill)
        impatience.start()
        while self.stdout.count(text) < times:
            line = self.process.stdout.readline()
            if not line:
                self.end()
                raise AssertionError(f"ended without saying {text!r}:\n{self.stdout}\n{self.stderr}")
            self.stdout += line
        impatience.cancel()

    def left(self) -> list[str]:
        """The commands of this run's processes that are still there."""
        result = []
        for pid in self._pids():
            with contextlib.suppress(OSError):
                result.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        return result

    def _pids(self) -> list[int]:
        result = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if self.mark.encode() in (process / "environ").read_bytes():
                        result.append(int(process.name))
        return result

    def kill_all(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@contextlib.contextmanager
def launched(directory: Path, *arguments: str, **environment: str) -> Iterator[Launch]:
    """The command, running; at the end of the block nothing of it may be left."""
    launch = Launch(directory, *arguments, **environment)
    try:
        yield launch
    finally:
        launch.kill_all()
    deadline = time.monotonic() + 10
    while launch.left() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert launch.left() == []


def run(directory: Path, *arguments: str, **environment: str) -> Launch:
    """The command, run to its end."""
    with launched(directory, *arguments, **environment) as launch:
        return launch.end()
