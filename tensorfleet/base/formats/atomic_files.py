"""Files that are there as a whole or not at all, also after a crash."""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from tensorfleet.base import logging
from tensorfleet.base.file_systems import file_system, is_remote
from tensorfleet.base.files import errors_about as file_errors
from tensorfleet.base.platform.exit_threads import beside, started

_MAX_DISK_SECONDS = 600.0  # seconds to wait for a disk
_MIN_SLOW_FREE_BYTES = 1 << 20  # bytes that take a while to free


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[Any]:
    """A file to write in; at the end it becomes `path`. Where it takes the place of another, its bytes are on disk first."""
    temporary = f"{path}.tempstate{uuid.uuid4().hex}"
    files = file_system(path)
    with file_errors(path):
        try:
            with files.open(temporary, "wb") as f:
                yield f
                f.flush()
                # A store that has taken a file keeps it.
                if replaces := not is_remote(path) and os.path.exists(path):
                    os.fsync(f.fileno())
            files.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                files.remove(temporary)
            raise
        if replaces:
            sync_folder(path)


def sync_file(path: str) -> None:
    """Waits until the bytes of a file are on disk, also those that other processes wrote."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(path: str) -> None:
    """Waits until the names in the directory of `path` are on disk, where the system can do that."""
    with contextlib.suppress(OSError):  # some file systems cannot
        sync_file(os.path.dirname(path) or ".")


class _BackgroundSync:
    """Syncs files to disk in a thread, those of one call at a time."""

    def __init__(self) -> None:
        self._busy: threading.Thread | None = None
        self._turn = threading.Lock()

    def start(self, paths: Sequence[str]) -> None:
        with self._turn:
            self._join()
            self._busy = threading.Thread(target=_sync_all, args=(paths,), name="to_disk", daemon=True)
            if not started(self._busy):
                self._busy = None
                _sync_all(paths)

    def finish(self) -> None:
        with self._turn:
            self._join()

    def _join(self) -> None:
        if self._busy is not None:
            self._busy.join(_MAX_DISK_SECONDS)
            if self._busy.is_alive():
                logging.error(
                    "The disk has not taken the last checkpoint in %d seconds; going on.", _MAX_DISK_SECONDS
                )
            self._busy = None


_background_sync = _BackgroundSync()
# A forked child has neither the thread nor, maybe, a free lock.
os.register_at_fork(after_in_child=_background_sync.__init__)  # type: ignore[misc]


def sync_in_background(paths: Sequence[str]) -> None:
    """Syncs files to disk in the background, after waiting for those of an earlier call."""
    if paths:
        _background_sync.start(paths)


def wait_for_disk() -> None:
    """Waits until the files given to `sync_behind` are on disk."""
    _background_sync.finish()


def sync_now(paths: Sequence[str]) -> None:
    """Puts files, and the names they have, on disk. Remote files are there already."""
    paths = [path for path in paths if not is_remote(path)]
    for path in paths:
        sync_file(path)
    for folder in {os.path.dirname(path) for path in paths}:
        sync_folder(os.path.join(folder, "."))


def _sync_all(paths: Sequence[str]) -> None:
    try:
        sync_now([path for path in paths if not is_remote(path) and os.path.exists(path)])
    except FileNotFoundError:
        pass  # deleted meanwhile: nobody needs it on disk
    except OSError as e:
        logging.error(
            "A checkpoint may be lost if this machine loses its power: %s: %s. The one before it is on disk; look at "
            "the disk, then save again.",
            paths[0],
            e.strerror,
        )


def remove_files(paths: Sequence[str]) -> None:
    """Deletes files; the space of large ones is freed in the background."""
    freed = []
    for path in paths:
        if not is_remote(path) and os.path.getsize(path) >= _MIN_SLOW_FREE_BYTES:
            freed.append(os.open(path, os.O_RDONLY))  # the bytes stay while somebody has them open
        file_system(path).remove(path)
    if freed:
        beside(_close_all, (freed,), "free_disk")


def _close_all(files: Sequence[int]) -> None:
    for file in files:
        os.close(file)
