"""A program for a node: it looks around there for the launcher, and cleans up behind the run.

It is sent as text and needs Python's standard library only. It reads requests from stdin, one JSON object per line,
and answers in lines that begin with a mark. It ends when stdin does, or when the launcher has been silent for too long:
a machine that loses its power does not close its connections.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from typing import Any

MARK = "@tensorfleet "
BEAT_SECONDS = 2.0
SILENT_SECONDS = 30.0
_RESOLVE_SECONDS = 30.0  # for names that do not resolve yet
_NOTICE_SECONDS = (
    20.0  # for tasks to save when the job is ended: then Slurm kills what is left, after 30 s by default
)


class Probe:
    """What the launcher may ask of a node. Each method answers one request."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []
        self._undo: list[str] = []  # what has been made here, to be removed at the end
        self._ends: dict[str, None] = {}  # jobs and steps that end with the launcher
        self._heard = time.monotonic()
        self._noticed: float | None = None

    def python(self) -> dict[str, Any]:
        """Which Python this is, and whether TensorFleet is there."""
        try:
            version: str | None = importlib.metadata.version("tensorfleet")
        except importlib.metadata.PackageNotFoundError:
            found = importlib.util.find_spec("tensorfleet")
            version = "without a version" if found else None
        return {"executable": sys.executable, "python": platform.python_version(), "tensorfleet": version}

    def address(self, peers: list[str]) -> dict[str, Any]:
        """The address by which this machine reaches others, which is where they reach it."""
        given = os.environ.get("SLURM_LAUNCH_NODE_IPADDR")
        found = [own for own in map(_own_address_towards, [*peers, *filter(None, [given])]) if own]
        outside = [own for own in found if not own.startswith("127.") and own != "::1"]
        return {"address": (outside or found or ["127.0.0.1"])[0], "host": socket.gethostname()}

    def ports(self, address: str, count: int) -> dict[str, Any]:
        """Free ports, held for the tasks: a server may listen beside these sockets, nobody else is given their ports.

        srun itself listens at several, while it starts a task.
        """
        numbers = []
        for _ in range(count):
            held = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
            self._held.append(held)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("", 0))
            numbers.append(held.getsockname()[1])
        return {"ports": numbers}

    def files(self, folder: str, directory: str, digests: dict[str, str]) -> dict[str, Any]:
        """Which files of the launcher's folder are not here, or are others."""
        if not os.path.isdir(directory):
            return {"missing": [directory], "differing": []}
        missing = [path for path in digests if not os.path.isfile(os.path.join(folder, path))]
        present = [path for path in digests if path not in missing]
        differing = [path for path in present if _digest(os.path.join(folder, path)) != digests[path]]
        return {"missing": missing, "differing": differing}

    def unpack(self, size: int) -> dict[str, Any]:
        """Unpacks the archive that follows the request into a new folder, which goes with the run."""
        data = sys.stdin.buffer.read(size)
        folder = tempfile.mkdtemp(prefix="tensorfleet-")
        self._undo.append(folder)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(folder, filter="data")
        return {"folder": folder}

    def mark(self, name: str, folders: list[str]) -> dict[str, Any]:
        """Writes a file to each folder, or to the nearest one above that exists."""
        paths = {}
        for folder in folders:
            path = os.path.join(_existing(folder), name)
            with contextlib.suppress(OSError), open(path, "x"):
                self._undo.append(path)
            paths[folder] = path
        return {"paths": paths}

    def sees(self, paths: dict[str, str]) -> dict[str, Any]:
        """The folders whose marks, made by another node, are not here."""
        return {"unseen": [folder for folder, path in paths.items() if not os.path.exists(path)]}

    def follow(self, names: list[str]) -> dict[str, Any]:
        """From now on, these jobs or steps end with the launcher."""
        self._ends.update(dict.fromkeys(names))
        return {}

    def forget(self, names: list[str]) -> dict[str, Any]:
        """These have ended, or the launcher ends them itself."""
        for name in names:
            self._ends.pop(name, None)
        return {}

    def forget_all(self) -> dict[str, Any]:
        """The launcher ends everything itself."""
        self._ends.clear()
        return {}

    def beat(self) -> dict[str, Any]:
        """The launcher is there."""
        return {}

    def heard(self) -> None:
        """A request has come."""
        self._heard = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """How long the launcher has said nothing."""
        return time.monotonic() - self._heard

    def take_notice(self) -> None:
        """Slurm ends the job: the tasks here save now, and Slurm ends what is left of them."""
        self._noticed = self._noticed or time.monotonic()
        self._ends.clear()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for: the launcher is gone, or the tasks have had the time to save."""
        noticed = self._noticed is not None and time.monotonic() - self._noticed >= _NOTICE_SECONDS
        return noticed or self.silent_seconds >= SILENT_SECONDS

    def close(self) -> None:
        """Removes what has been made here, and ends the job if nobody else will."""
        for path in self._undo:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        if self._ends:
            subprocess.run(["scancel", *self._ends], check=False)


def _own_address_towards(peer: str) -> str | None:
    """The address that packets to a peer would come from. A name may take a while until it resolves."""
    limit = time.monotonic() + _RESOLVE_SECONDS
    while True:
        try:
            family, kind, protocol, _, target = socket.getaddrinfo(peer, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(target)
                return str(probe.getsockname()[0])
        except socket.gaierror:
            if time.monotonic() > limit:
                return None
            time.sleep(0.5)
        except OSError:
            return None


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _existing(folder: str) -> str:
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _say(message: dict[str, Any]) -> None:
    # One call, so that a beat does not come between an answer and the end of its line.
    os.write(1, f"{MARK}{json.dumps(message)}\n".encode())


def _watch(probe: Probe) -> None:
    """Tells the launcher that this node is up, and ends this process if the launcher is not."""
    while not probe.is_over:
        time.sleep(BEAT_SECONDS)
        with contextlib.suppress(OSError):
            _say({"id": 0})
    os.kill(os.getpid(), signal.SIGALRM)


def main() -> None:
    """Answers until stdin ends."""
    probe = Probe()
    # The main thread wakes up, also from reading, and cleans up.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGTERM, lambda *_: probe.take_notice())
    threading.Thread(target=_watch, args=(probe,), daemon=True).start()
    try:
        for line in iter(sys.stdin.buffer.readline, b""):
            probe.heard()
            request = json.loads(line)
            number = request.pop("id")
            try:
                result = getattr(probe, request.pop("ask"))(**request)
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}"}
            _say({"id": number, **result})
    finally:
        probe.close()


if __name__ == "__main__":
    main()
