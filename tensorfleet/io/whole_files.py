"""Files that are there as a whole or not at all, also after a crash."""

from __future__ import annotations

import contextlib
import ctypes
import os
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any

from tensorfleet.platform.gfile import _errors_about as file_errors


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[Any]:
    """A file to write in; at the end its bytes are on disk and it takes the place of `path`."""
    temporary = f"{path}.tempstate{uuid.uuid4().hex}"
    with file_errors(path):
        try:
            with open(temporary, "wb") as f:
                yield f
                f.flush()
                os.fsync(f.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise
        sync_folder(path)


def sync_folder(path: str) -> None:
    """Sees that the names in the directory of `path` are on disk, where that can be asked for."""
    with contextlib.suppress(OSError):  # some file systems cannot
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


_START_WRITING = 2  # SYNC_FILE_RANGE_WRITE


def start_to_disk(file: Any, start: int, size: int) -> None:
    """Has the system begin to put some bytes of a file on disk, where it can be asked to, so that `fsync` has less to wait for."""
    call = _sync_file_range()
    if call is not None:
        call(file.fileno(), start, size, _START_WRITING)  # if it cannot, fsync will do it


@cache
def _sync_file_range() -> Any:
    try:
        found = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):  # only Linux has it
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return found
