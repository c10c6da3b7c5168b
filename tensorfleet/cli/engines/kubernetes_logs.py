"""The log of a pod, line by line: connections end and begin again, and no line is lost or doubled."""

from __future__ import annotations

import datetime
import re
import threading
from collections import Counter
from collections.abc import Callable

from tensorfleet.cli.engines.kubernetes_api import Api, ApiError, Unreachable
from tensorfleet.cli.engines.kubernetes_manifests import CONTAINER

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) ?")
_SILENT_SECONDS = 300.0  # then we ask again: a connection that is dead on the other side says nothing
_RETRY_SECONDS = 0.5
_RETRIES_AFTER_END = 3
# How far the lines of stdout and stderr may be out of order. The server counts from whole seconds.
_OVERLAP = datetime.timedelta(seconds=2)


class LogCursor:
    """How far a log has been read. Each line begins with the time at which the node has got it."""

    def __init__(self) -> None:
        self._newest: datetime.datetime | None = None
        self._recent: dict[datetime.datetime, Counter[int]] = {}
        self._again: Counter[int] = Counter()

    @property
    def since(self) -> str | None:
        """The time to ask for when the log is opened again; None for all of it."""
        return f"{self._newest - _OVERLAP:%Y-%m-%dT%H:%M:%SZ}" if self._newest else None

    def reopen(self) -> None:
        """The log is opened again: the lines that were read since `since` come once more."""
        self._again = Counter()
        for counts in self._recent.values():
            self._again.update(counts)

    def take(self, line: bytes) -> str | None:
        """The text of a line, or None if it was read before."""
        match = _STAMP.match(line)
        if match is None:  # the node's own words, such as that a file was rotated away
            return line.decode(errors="replace").rstrip("\r")
        key = hash(line)
        if self._again[key] > 0:
            self._again[key] -= 1
            return None
        self._remember(datetime.datetime.fromisoformat(match[1].decode()), key)
        return line[match.end() :].decode(errors="replace").rstrip("\r")

    def _remember(self, second: datetime.datetime, key: int) -> None:
        if self._newest is None or second > self._newest:
            self._newest = second
            self._recent = {s: c for s, c in self._recent.items() if s >= second - _OVERLAP}
        if second >= self._newest - _OVERLAP:
            self._recent.setdefault(second, Counter())[key] += 1


class LogReader:
    """Reads the log of one pod in a thread of its own, to its end."""

    def __init__(
        self, api: Api, pod: str, on_line: Callable[[str], None], on_loss: Callable[[str], None]
    ) -> None:
        """`on_loss` hears why the last lines could not be read."""
        self._api = api
        self._pod = pod
        self._on_line = on_line
        self._on_loss = on_loss
        self._ended = threading.Event()
        self._silenced = False
        self._thread = threading.Thread(target=self._read, name=f"log of {pod}", daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """The container has ended: reads the rest of the log, for at most so long."""
        self._ended.set()
        self._thread.join(seconds)
        self._silenced = True

    def _read(self) -> None:
        cursor, failures = LogCursor(), 0
        while not self._api.stopped.is_set() and not self._silenced:
            ended = self._ended.is_set()
            problem = self._read_once(cursor)
            if ended and problem is None:
                return
            failures = failures + 1 if ended else 0
            if problem == "gone" or failures >= _RETRIES_AFTER_END:
                if problem != "gone" and not self._silenced:
                    self._on_loss(str(problem))
                return
            # A log that was closed while the container runs: its node restarts, or a proxy is impatient.
            self._ended.wait(_RETRY_SECONDS)

    def _read_once(self, cursor: LogCursor) -> str | None:
        """Reads until the connection ends; gives what went wrong."""
        query = {"container": CONTAINER, "follow": "true", "timestamps": "true"}
        if cursor.since:
            query["sinceTime"] = cursor.since
        cursor.reopen()
        try:
            with self._api.lines(self._api.path("pods", self._pod, "log"), query, _SILENT_SECONDS) as lines:
                for line in lines:
                    text = cursor.take(line)
                    if text is not None and not self._silenced:
                        self._on_line(text)
        except ApiError as error:
            return "gone" if error.status == 404 else str(error)
        except Unreachable as error:
            return str(error)
        return None
