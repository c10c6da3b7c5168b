"""The history of a run: a SQLite file beside its logs.

One-second points are kept for ten minutes, ten-second means for a day; events, the last state and the last reports of
the tasks for good. The file is
written by the page's process alone. When the disk is full or the folder cannot be written, the history goes on in
memory, and one line says so: a run is not worth less for it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tensorfleet.base import logging
from tensorfleet.cli.dashboard.overview import Json

FILE = "stats.sqlite"
POINT_SECONDS = 600.0
MEAN_SECONDS = 24 * 3600.0
_MEAN_EVERY = 10  # seconds of one mean
_PRUNE_EVERY = 30  # points
_MAX_EVENTS = 10_000
_MAX_REPORT_BYTES = 4 << 20  # of one report, compressed
_BUSY_SECONDS = 2.0  # to wait for somebody who reads the file
_TABLES = """
CREATE TABLE IF NOT EXISTS points (time REAL PRIMARY KEY, content BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS means (time REAL PRIMARY KEY, content BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (time REAL, kind TEXT, task TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, content BLOB) WITHOUT ROWID;
"""


class StatsHistory:
    """Reads the history of one run. Its methods may be called from any thread."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._lock = threading.Lock()
        self._database = database

    def state(self, name: str) -> Json:
        """A part of the last state; empty when there is none."""
        with self._lock:
            rows = _rows(self._database, "SELECT content FROM state WHERE name = ?", (name,))
        return _unpacked(rows[0][0]) if rows else {}

    def report(self, task: str, topic: str) -> Json:
        """The last report of a task on a topic; empty when there is none."""
        return self.state(_report_name(task, topic))

    def points(self, after: float, before: float = float("inf")) -> list[tuple[float, Json]]:
        """The values of each moment between two times: means where the seconds are not kept any more."""
        with self._lock:
            seconds = _rows(
                self._database,
                "SELECT time, content FROM points WHERE time > ? AND time <= ? ORDER BY time",
                (after, before),
            )
            earlier = seconds[0][0] - _MEAN_EVERY / 2 if seconds else before
            means = _rows(
                self._database,
                "SELECT time, content FROM means WHERE time > ? AND time <= ? ORDER BY time",
                (after, earlier),
            )
        return [(time, _unpacked(content)) for time, content in (*means, *seconds)]

    def events(self, last: int = 200) -> list[Json]:
        """The last events, oldest first."""
        with self._lock:
            rows = _rows(
                self._database, "SELECT * FROM events ORDER BY time DESC, rowid DESC LIMIT ?", (last,)
            )
        return [
            {"time": time, "kind": kind, "task": task, "text": text} for time, kind, task, text in rows[::-1]
        ]

    def last_time(self) -> float | None:
        """The time of the last point."""
        with self._lock:
            rows = _rows(self._database, "SELECT max(time) FROM points", ())
        return rows[0][0] if rows else None

    def close(self) -> None:
        """Closes the file; what was written is in it."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._database.close()


class StatsStore(StatsHistory):
    """The history of one run. Its methods may be called from any thread, and never raise for want of disk."""

    def __init__(self, path: Path | None, warn: Callable[[str], None] = logging.warning) -> None:
        """`path` is where the file is; None keeps everything in memory."""
        self._warn = warn
        self._path = path
        self._since_mean: list[tuple[float, Json]] = []
        self._until_prune = _PRUNE_EVERY
        try:
            super().__init__(_opened(path))
        except (sqlite3.Error, OSError) as error:
            super().__init__(_opened(None))
            self._path = None
            self._say(path, error)

    @property
    def is_on_disk(self) -> bool:
        """Whether the history outlives this process."""
        return self._path is not None

    def close(self) -> None:
        """Closes the file: from now on it is one that can be read anywhere, and nothing is added."""
        with self._lock:
            self._path = None
            with contextlib.suppress(sqlite3.Error):
                # Without a log of writes beside it, it can be read in a folder that cannot be written.
                self._database.execute("PRAGMA journal_mode = DELETE")
            with contextlib.suppress(sqlite3.Error):
                self._database.close()

    def add_point(self, time: float, content: Json) -> None:
        """The values of one moment; the times only grow."""
        with self._lock:
            self._write("INSERT OR REPLACE INTO points VALUES (?, ?)", (time, _packed(content)))
            self._since_mean.append((time, content))
            if time - self._since_mean[0][0] >= _MEAN_EVERY - 1.5:
                mean = mean_of([content for _, content in self._since_mean])
                self._write("INSERT OR REPLACE INTO means VALUES (?, ?)", (time, _packed(mean)))
                self._since_mean = []
            self._until_prune -= 1
            if self._until_prune <= 0:
                self._until_prune = _PRUNE_EVERY
                self._prune(time)

    def add_event(self, time: float, kind: str, task: str | None, text: str) -> None:
        """Something that happened once, such as the end of a task."""
        with self._lock:
            self._write("INSERT INTO events VALUES (?, ?, ?, ?)", (time, kind, task, text))

    def set_state(self, name: str, content: Json) -> None:
        """Replaces a part of the last state."""
        self._set_state(name, _packed(content))

    def set_report(self, task: str, topic: str, content: Json) -> None:
        """Replaces the last report of a task on a topic, unless the new one is too large to be kept."""
        packed = _packed(content)
        if len(packed) <= _MAX_REPORT_BYTES:
            self._set_state(_report_name(task, topic), packed)

    def _set_state(self, name: str, packed: bytes) -> None:
        with self._lock:
            self._write("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, packed))

    def _prune(self, now: float) -> None:
        self._write("DELETE FROM points WHERE time < ?", (now - POINT_SECONDS,))
        self._write("DELETE FROM means WHERE time < ?", (now - MEAN_SECONDS,))
        self._write(
            "DELETE FROM events WHERE rowid <= (SELECT max(rowid) FROM events) - ?",
            (_MAX_EVENTS,),
        )

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            if self._path is None:
                return  # closed: the run is over
            self._give_up_file(error)
            with contextlib.suppress(sqlite3.Error):
                self._database.execute(statement, values)

    def _give_up_file(self, error: Exception) -> None:
        """Goes on in memory, with what the file holds where it can still be read."""
        path, self._path = self._path, None
        before, self._database = self._database, _opened(None)
        with contextlib.suppress(sqlite3.Error):
            before.backup(self._database)
        with contextlib.suppress(sqlite3.Error):
            before.close()
        self._say(path, error)

    def _say(self, path: Path | None, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        self._warn(
            f"cannot write the statistics {path}: {reason}. The run continues; they are kept in memory."
        )


def _report_name(task: str, topic: str) -> str:
    return f"{topic} of {task}"


def mean_of(contents: Iterable[Json]) -> Json:
    """The mean of each number of several points; a global step is the last one."""
    listed = list(contents)
    result: Json = {}
    for name in dict.fromkeys(key for content in listed for key in content):
        values = [content[name] for content in listed if content.get(name) is not None]
        if not values:
            result[name] = None
        elif isinstance(values[0], dict):
            result[name] = mean_of(values)
        else:
            result[name] = values[-1] if name == "global_step" else float(f"{sum(values) / len(values):.6g}")
    return result


def recorded(path: Path) -> StatsHistory:
    """The history of a run that has ended, read-only. Raises OSError when there is none."""
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}.")
    # In a folder that is not ours there is no room for SQLite's own files: `immutable` does without them.
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        database = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?{mode}",
            uri=True,
            timeout=_BUSY_SECONDS,
            check_same_thread=False,
        )
        try:
            database.execute("SELECT 1 FROM points LIMIT 1").fetchall()
        except sqlite3.Error as error:
            database.close()
            reason = error
        else:
            return StatsHistory(database)
    raise OSError(f"Cannot read the statistics {path}: {reason}.")


def _opened(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(
        ":memory:" if path is None else path,
        timeout=_BUSY_SECONDS,
        isolation_level=None,  # each statement is a transaction
        check_same_thread=False,  # there is a lock
    )
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")  # waits for the disk at checkpoints only
        database.executescript(_TABLES)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _rows(database: sqlite3.Connection, query: str, values: tuple[object, ...]) -> list[Any]:
    try:
        return database.execute(query, values).fetchall()
    except sqlite3.Error:
        return []  # closed, or another process has damaged it


def _packed(content: Json) -> bytes:
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)


def _unpacked(blob: bytes) -> Json:
    content = json.loads(zlib.decompress(blob))
    return content if isinstance(content, dict) else {}
