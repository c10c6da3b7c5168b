"""Event files: records that hold `Event` messages, written by a thread of their own."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from tensorfleet.base import errors, logging
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import errors_about, exists, file_path, isdir, makedirs
from tensorfleet.base.formats.records import framed, tf_record_iterator
from tensorfleet.base.naming import export
from tensorfleet.base.platform.exit_threads import started
from tensorfleet.base.properties import readonly

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tensorfleet.api.train.types import PathLike

_VERSION = "brain.Event:2"
_POLL_SECONDS = 1.0  # seconds between looks at whether the thread still lives


@export("train.summary_iterator")
def summary_iterator(path: PathLike) -> Iterator[Any]:
    """The `Event` messages of an event file, in order."""
    return _events(tf_record_iterator(path))


def _events(records: Iterator[bytes]) -> Iterator[Any]:
    from tensorfleet.base.protos import Event

    for record in records:
        yield Event.FromString(record)


class EventFile:
    """An event file. It is created with its first event, and again after it was deleted.

    The time is part of its name. A file that is already there is never touched: the name is a second later.
    """

    def __init__(self, folder: str, suffix: str = "", prefix: str = "events") -> None:
        self._folder = folder
        self._suffix = suffix
        self._prefix = prefix
        self._file: BinaryIO | None = None

    @property
    def name(self) -> str:
        """Where the events go; empty before the first."""
        return self._file.name if self._file is not None else ""

    def write(self, events: list[bytes]) -> None:
        """Appends serialized events."""
        with errors_about(self._folder):
            if self._file is None or not file_system(self._file.name).exists(self._file.name):
                self.close()
                self._file = self._create()
                self._file.write(framed(_first_event()))
            self._file.write(b"".join(map(framed, events)))

    def flush(self) -> None:
        """Hands the written events to the operating system."""
        if self._file is not None:
            with errors_about(self._folder):
                self._file.flush()

    def close(self) -> None:
        """Closes the file; the next event goes to a new one."""
        file, self._file = self._file, None
        if file is not None:
            with errors_about(self._folder):
                file.close()

    def _create(self) -> BinaryIO:
        import socket

        files = file_system(self._folder)
        files.makedirs(self._folder)
        # Two writers in one second get two files: "x" refuses a file that is there, and the next second is
        # tried.
        second = int(time.time())
        while True:
            name = f"{self._prefix}.out.tfevents.{second:010d}.{socket.gethostname()}{self._suffix}"
            try:
                return files.open(os.path.join(self._folder, name), "xb")
            except FileExistsError:
                second += 1


def _first_event() -> bytes:
    from tensorfleet.base.protos import Event

    return Event(wall_time=time.time(), file_version=_VERSION).SerializeToString()


class _EventQueue:
    """Events on their way to a file, and the thread that takes them there. Knows nothing of its owner."""

    def __init__(self, file: EventFile, limit: int, flush_secs: float) -> None:
        self._file = file
        self._limit = limit
        self._flush_secs = flush_secs
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._added = self._written = self._flushed = 0  # how many events, since the beginning
        self._wanted = 0  # how many events a caller of `flush` waits for
        self._closing = False
        self._error: Exception | None = None
        self.full: errors.OpError | None = None  # why the last events are not in the file: there was no room
        self._thread: threading.Thread | None = None

    def put(self, event: bytes) -> None:
        """Queues an event; waits while the queue is full. Raises the error of earlier events."""
        with self._changed:
            self._run()
            while 0 < self._limit <= len(self._waiting) and self._error is None:
                self._changed.wait(_POLL_SECONDS)
                self._run()
            self._raise_error()
            self._waiting.append(event)
            self._added += 1
            self._run()
            self._changed.notify_all()

    def flush(self) -> None:
        """Waits until all events so far are in the file."""
        with self._changed:
            # Events that others add meanwhile are not waited for: a busy writer would never return.
            target = self._wanted = self._added
            self._changed.notify_all()
            while self._flushed < target:
                self._run()
                self._changed.wait(_POLL_SECONDS)
            self._raise_error()

    def close(self) -> None:
        """Writes all events and ends the thread."""
        with self._changed:
            thread = self._thread
            self._closing = thread is not None
            self._changed.notify_all()
        # The garbage collector may call this in the thread itself, which then ends by itself.
        if thread is not None and thread is not threading.current_thread():
            while thread.is_alive():  # until everything is in the file, unless the program is interrupted
                thread.join(_POLL_SECONDS)
        with self._changed:
            self._raise_error()

    def _run(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="EventLoggerThread", daemon=True)
            if not started(self._thread):
                self._thread = None
                self._write_here()

    def _write_here(self) -> None:
        """Writes in the caller's thread, at the end of the program. The caller holds the lock."""
        events = list(self._waiting)
        self._waiting.clear()
        error = self._write(events, flush=True, close=False)
        self._error = self._error or error
        self._written += len(events)
        self._flushed = self._written

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _work(self) -> None:
        due = time.monotonic() + self._flush_secs
        while True:
            with self._changed:
                # Without unflushed events nothing is due: the thread sleeps until it is woken.
                late = self._flushed < self._written
                while not (self._waiting or self._closing or self._flushed < self._wanted):
                    if not self._changed.wait(max(0.0, due - time.monotonic()) if late else None):
                        break
                events, closing = list(self._waiting), self._closing
                self._waiting.clear()
                flushing = closing or self._flushed < self._wanted or time.monotonic() >= due
                self._changed.notify_all()
            # Outside the lock: callers add events while the disk is busy.
            error = self._write(events, flushing, closing)
            with self._changed:
                self._written += len(events)
                self._error = self._error or error
                # After an error the events are gone, so that `flush` has nothing to wait for; it raises the
                # error.
                if flushing or error is not None:
                    self._flushed = self._written
                    due = time.monotonic() + self._flush_secs
                self._changed.notify_all()
                # An event that came after the last look is written first.
                if closing and not self._waiting:
                    self._thread, self._closing = None, False
                    return

    def _write(self, events: list[bytes], flush: bool, close: bool) -> Exception | None:
        """Writes, flushes and closes the file as asked; gives the error instead of raising it."""
        try:
            if events:
                self._file.write(events)
            if flush:
                self._file.flush()
                self.full = None if self._file.name else self.full
            if close:
                self._file.close()
        except errors.ResourceExhaustedError as e:
            self._no_room(e, len(events))
        except Exception as e:
            return e
        return None

    def _no_room(self, error: errors.OpError, count: int) -> None:
        """Training goes on when a disk is full. Later events go to a new file: this one may end in the middle of one."""
        if self.full is None:  # once for as long as it lasts
            logging.error(
                "%d events could not be written: %s. Training goes on without them. Make room on the disk.",
                count,
                error.message,
            )
        self.full = error
        with contextlib.suppress(errors.OpError):
            self._file.close()


class EventFileWriter:
    """Writes events to a file in `logdir` without making the caller wait for the disk.

    Events are written at the latest when the writer is closed or collected, or when the program ends.
    """

    def __init__(
        self,
        logdir: PathLike,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
    ) -> None:
        self._logdir = str(logdir)
        folder = file_path(self._logdir)
        folder = file_system(folder).absolute(folder)
        if exists(folder) and not isdir(folder):
            raise errors.FailedPreconditionError(None, None, f"{self._logdir} is not a directory")
        makedirs(folder)
        self._queue = _EventQueue(EventFile(folder, filename_suffix or ""), max_queue, flush_secs)
        self._closed = False
        # The queue knows nothing of the writer, so that a forgotten writer is collected and its events are
        # written.
        self._finalizer = weakref.finalize(self, self._queue.close)

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self._logdir

    def reopen(self) -> None:
        """Makes a closed writer usable again, with a new file."""
        self._closed = False

    lost: errors.OpError | None = readonly(
        "_queue.full",
        "Why the last events that were flushed are not in the file: the disk was full. None where they are.",
    )

    def add_event(self, event: Message) -> None:
        """Adds an `Event`. It may be changed afterwards."""
        if not hasattr(event, "SerializeToString"):
            raise TypeError(f"{type(event)} is not a valid proto. Pass a tf.Event.")
        if not self._closed:
            self._queue.put(event.SerializeToString())

    def flush(self) -> None:
        """Returns when all events so far are in the file."""
        if not self._closed:
            self._queue.flush()

    def close(self) -> None:
        """Writes out all events and closes the file."""
        if not self._closed:
            self._closed = True
            self._queue.close()
