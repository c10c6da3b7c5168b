"""The launcher's side of the probe on a node: asks it, and notices when the node is gone."""

from __future__ import annotations

import contextlib
import importlib.resources
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from tensorfleet.cli.engines import probe
from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.slurm_commands import NodeShare, own_words, step_environment

_ANSWER_SECONDS = 60.0  # a step may take long to begin where the controller is busy
_END_SECONDS = 5.0
# Runs the program that follows with the first Python of these that there is.
_SHELL = 'for p in "$1" python3 python; do command -v "$p" >/dev/null 2>&1 && exec "$p" -u -c "$2" "$3"; done; echo "no Python" >&2; exit 127'
_LOADER = "import sys; exec(compile(sys.stdin.buffer.read(int(sys.argv[1])), 'probe', 'exec'))"


class NodeProbe:
    """A step on a node that answers questions, and stays until the run is over."""

    def __init__(self, share: NodeShare) -> None:
        """Starts it. What it says first is read with the first question."""
        self.share = share
        self.address = ""
        self.python = ""
        #: a copy of the project on that node, if it does not have it by itself
        self.folder: str | None = None
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._words: list[str] = []
        self._turn = threading.Lock()
        self._last_beat = time.monotonic()
        self._number = 0
        program = importlib.resources.files("tensorfleet.cli.engines").joinpath("probe.py").read_bytes()
        self._process = subprocess.Popen(
            [
                *(
                    "srun",
                    *share.step_options,
                    "--overlap",
                    "--mem=0",
                    "--chdir=/",
                    "--export=ALL",
                    "--quiet",
                ),
                *(
                    "--job-name=tensorfleet-probe",
                    "sh",
                    "-c",
                    _SHELL,
                    "sh",
                    sys.executable,
                    _LOADER,
                    str(len(program)),
                ),
            ],
            env=step_environment({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        threading.Thread(target=self._read, name=f"probe of {share.node}", daemon=True).start()
        with contextlib.suppress(OSError):
            self._write(program)

    @property
    def is_gone(self) -> bool:
        """Whether its step has ended."""
        return self._process.poll() is not None

    @property
    def silent_seconds(self) -> float:
        """How long the node has said nothing."""
        return time.monotonic() - self._last_beat

    def ask(self, request: str, **arguments: Any) -> dict[str, Any]:
        """An answer of the node's. Raises `EngineError` if it fails there, or does not come."""
        return self._exchange({"ask": request, **arguments})

    def send_archive(self, data: bytes) -> str:
        """Unpacks an archive there, and gives the folder."""
        return str(self._exchange({"ask": "unpack", "size": len(data)}, data)["folder"])

    def tell(self, request: str, **arguments: Any) -> None:
        """The same, where nothing depends on the answer. Never raises, and does not wait."""
        if self._turn.acquire(timeout=1.0):
            try:
                with contextlib.suppress(OSError, ValueError):
                    self._send({"ask": request, **arguments})
            finally:
                self._turn.release()

    def beat(self) -> None:
        """Shows the node that the launcher is there. Does nothing while it answers something else."""
        if self._turn.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError, ValueError):
                    self._send({"ask": "beat"})
            finally:
                self._turn.release()

    def hang_up(self) -> None:
        """Lets it clean up and end."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def end(self) -> None:
        """Waits for its end, for a moment."""
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.abandon()
            self._process.wait(_END_SECONDS)

    def abandon(self) -> None:
        """Gives up a node that does not answer. Ends srun only: its helper process then ends the step."""
        self.hang_up()
        self._process.send_signal(signal.SIGKILL)

    def words(self) -> str:
        """What it has printed besides answers: the reason if it could not start."""
        return own_words(self._words)

    def _exchange(self, request: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        with self._turn:
            try:
                number = self._send(request, data)
                answer = self._answer_to(number)
            except (OSError, ValueError):
                answer = None
        if answer is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
            raise EngineError(f"Slurm cannot run a step on node {self.share.node}: {self.words()}")
        if "error" in answer:
            raise EngineError(f"Node {self.share.node}: {answer['error']}")
        return answer

    def _answer_to(self, number: int) -> dict[str, Any] | None:
        """The answer with this number; earlier ones were not waited for. None if the step has ended."""
        limit = time.monotonic() + _ANSWER_SECONDS
        while (left := limit - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                answer = self._answers.get(timeout=left)
                if answer is None or answer["id"] == number:
                    return answer
        raise EngineError(f"Node {self.share.node} has not answered for {_ANSWER_SECONDS:g} s.")

    def _send(self, request: dict[str, Any], data: bytes = b"") -> int:
        self._number += 1
        self._write(json.dumps({"id": self._number, **request}).encode() + b"\n" + data)
        return self._number

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        view = memoryview(data)
        while view:  # past the buffer, which would try again at its end
            view = view[os.write(self._process.stdin.fileno(), view) :]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text = line.decode(errors="replace").rstrip("\r\n")
            if not text.startswith(probe.MARK):
                self._words = [*self._words[-20:], text]
                continue
            self._last_beat = time.monotonic()
            answer = json.loads(text[len(probe.MARK) :])
            if answer["id"]:
                self._answers.put(answer)
        self._answers.put(None)
        self._process.stdout.close()
