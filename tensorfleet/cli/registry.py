"""Which runs there are: a small file for each while it lasts, in the home folder, which several machines may share."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tensorfleet.base import settings

_CLOSE_SECONDS = 45.0
_BEAT_SECONDS = 60.0
_STALE_SECONDS = 600.0  # without a beat of a launcher on another machine, whose processes nobody sees here


def directory() -> Path:
    """Where the files are: ours alone, and gone with the machine's state."""
    given = settings.STATE()
    if given:
        return Path(given).resolve()
    base = os.environ.get("XDG_STATE_HOME")
    home = Path(base) if base else Path.home() / ".local" / "state"
    if os.access(home if home.exists() else Path.home(), os.W_OK):
        return home / "tensorfleet" / "runs"
    return Path(tempfile.gettempdir()) / f"tensorfleet-{os.getuid()}-runs"


class Entry:
    """The file of a run that this process has started."""

    def __init__(
        self,
        name: str,
        script: str,
        log_dir: Path | None,
        token: str = "",
        page: str | None = None,
        engine: str = "local",
        grace: float | None = None,
    ) -> None:
        """`grace` is how long the tasks may take to save when the run is stopped.

        `token` and the address of the `page` let other commands of this user look into the run; nobody else can read the
        file.
        """
        self._content: dict[str, Any] = {
            "page": page,
            "engine": engine,
            "grace": grace or 0.0,
            "token": token,
            "name": name,
            "script": script,
            "logs": str(log_dir.absolute()) if log_dir else None,
            "launcher": os.getpid(),
            "started": _started(os.getpid()),
            "control": None,
            "host": socket.gethostname(),
            "join": None,
            "tasks": {},
        }
        self.token = token
        self.path = directory() / f"{name}-{os.getpid()}.json"
        self._beaten = time.monotonic()

    def joined_at(self, address: str) -> None:
        """Where the launcher takes in workers that somebody starts by hand."""
        self._content["join"] = address

    def controlled_at(self, path: Path, token: str) -> None:
        """Where the launcher takes requests of other commands (control.py), and the token that they need."""
        self._content["control"] = {"socket": str(path), "token": token}

    def update(
        self,
        label: str,
        pid: int,
        address: str | None,
        state: str,
        inspect: str | None = None,
        where: str = "",
    ) -> None:
        """What became of a task.

        `inspect` is where one without an address in a cluster answers questions, `where` what its engine calls it.
        """
        entry = {"pid": pid, "address": address, "state": state, "where": where or f"pid {pid}"}
        self._content["tasks"][label] = {**entry, **({"inspect": inspect} if inspect else {})}
        self._write()

    def announce(self, labels: Iterable[str]) -> None:
        """The run waits for places for these tasks."""
        waiting = {"pid": 0, "address": None, "state": "waiting", "where": "no place yet"}
        self._content["tasks"] = {label: dict(waiting) for label in labels}
        self._write()

    def submitted(self, job: str, labels: Iterable[str]) -> None:
        """Lists a batch job that will have a launcher of its own; this process is none."""
        self.path = directory() / f"{self._content['name']}-job-{job}.json"
        self._content |= {"launcher": 0, "started": None, "job": job}
        self.announce(labels)

    def beat(self, now: float) -> None:
        """Shows other machines that the launcher is there. Called often."""
        if now - self._beaten >= _BEAT_SECONDS:
            self._beaten = now
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # a run is not worth less for not being listed
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_ours(self.path.parent):
                return
            # Replaced as a whole: `tensorfleet ps` may be reading it.
            new = self.path.with_suffix(".new")
            with open(new, "w", opener=_for_us_alone) as file:
                json.dump(self._content, file)
            new.replace(self.path)

    def remove(self) -> None:
        """The run is over."""
        self.path.unlink(missing_ok=True)


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def runs() -> Iterator[dict[str, Any]]:
    """The runs of this machine that are going on; files of those that were killed are taken away."""
    for path, content in _entries():
        if not _is_elsewhere(content):
            if _started(content["launcher"]) == content["started"]:
                yield content
            else:
                path.unlink(missing_ok=True)
                path.with_suffix(".sock").unlink(missing_ok=True)


def elsewhere() -> Iterator[dict[str, Any]]:
    """Runs of other machines, and batch jobs, which have a `job`."""
    now = time.time()
    for path, content in _entries():
        if not _is_elsewhere(content):
            continue
        with contextlib.suppress(OSError):
            if not content.get("job") and now - path.stat().st_mtime > _STALE_SECONDS:
                path.unlink()
                continue
        yield content


def forget_job(job: str) -> None:
    """A batch job has ended."""
    for path, content in _entries():
        if content.get("job") == job:
            path.unlink(missing_ok=True)


def _entries() -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(directory().glob("*.json")) if _is_ours(directory()) else ():
        try:
            content = json.loads(path.read_text())
            content["launcher"] = int(content["launcher"])
            content["started"], content["name"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        yield path, content


def _is_elsewhere(content: dict[str, Any]) -> bool:
    here = socket.gethostname()
    return bool(content.get("job")) or content.get("host", here) != here


def _is_ours(path: Path) -> bool:
    """Whether nobody else can put files there: by them `stop` knows which processes to end."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o002


def _started(pid: int) -> str | None:
    """When a process began, in the machine's own count: a later process of the same number differs.

    psutil adds the time of the boot by the clock, which gives another number after the clock has been set.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        pass
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except OSError:
        return None
    return "running"


def stop_run(entry: dict[str, Any], patience: float = 5.0) -> str:
    """Asks a run to end and waits until it has; ends its tasks itself when the launcher does not."""
    pid = entry["launcher"]
    # An engine gives everything back before the launcher ends: nobody else would do that for it.
    closing = 0.0 if entry.get("engine", "local") == "local" else _CLOSE_SECONDS
    deadline = time.monotonic() + patience + closing + entry.get("grace", 0.0)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while _started(pid) == entry["started"]:
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # its guardian ends the tasks
            return "killed, because it did not stop"
        time.sleep(0.05)
    return "stopped"
