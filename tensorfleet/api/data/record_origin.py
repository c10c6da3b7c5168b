"""Where records come from: a number for each record, which `describe` turns into its file, its number and its byte.

The numbers go with the elements through shuffling, batching and the rest, so that an error can say what failed.
"""

from __future__ import annotations

import json
import threading
from dataclasses import astuple, dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.formats.record_sources import CsvRecords, Lines, Pieces
from tensorfleet.base.formats.records import RecordReader
from tensorfleet.base.types import Array

#: Where a record comes from, as a number; of a batch, those of its records.
Place: TypeAlias = "int | Array"

UNKNOWN = -1
# The low bits of a place number the record in its file, the bits above number the file.
_RECORD_BITS = 40
_RECORD_MASK = (1 << _RECORD_BITS) - 1


class RecordSource(Protocol):
    """An open file of records."""

    def read_many(self, count: int) -> list[bytes]:
        """Up to `count` records; none only at the end."""

    def offset_of(self, index: int) -> int:
        """Where in the file, unpacked, a record starts."""

    def close(self) -> None:
        """Closes the file."""


@dataclass(frozen=True)
class Opener:
    """Opens files of one kind. Equal ones open a file alike."""

    kind: str
    compression: str
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, name: bytes) -> RecordSource:
        """Opens a file for reading, record by record."""
        opened: type[Any] = {"lines": Lines, "csv": CsvRecords, "records": RecordReader, "pieces": Pieces}[
            self.kind
        ]
        source: RecordSource = opened(name, compression=self.compression, **dict(self.options))
        return source


def opener(kind: str, compression: bytes, **options: int) -> Opener:
    """Opens files of lines, records or pieces."""
    packed = compression.decode()
    if packed not in ("", "ZLIB", "GZIP"):
        raise errors.invalid(f"Unsupported compression_type {packed!r}: use '', 'ZLIB' or 'GZIP'.")
    return Opener(kind, packed, tuple(options.items()))


# Files are never forgotten: a place must mean the same file in this process for good.
_files: list[tuple[bytes, Opener]] = []
_numbers: dict[tuple[bytes, Opener], int] = {}
_lock = threading.Lock()


def of_file(name: bytes, begin: Opener) -> int:
    """The place of the first record of a file; those after it follow. `begin` opens the file."""
    with _lock:
        if (name, begin) not in _numbers:
            _numbers[name, begin] = len(_files)
            _files.append((name, begin))
        return _numbers[name, begin] << _RECORD_BITS


def describe(place: Place) -> str:
    """The file and byte of one record, or of the records of a batch, for a message; empty when not known."""
    # Records of a shuffled batch come from anywhere: sorted, neighbours can be told as one range.
    known = np.sort(np.ravel(place))
    known = known[known >= 0]
    if not known.size:
        return ""
    first, last = int(known[0]), int(known[-1])
    name, begin = _files[first >> _RECORD_BITS]
    index = first & _RECORD_MASK
    try:
        source = begin(name)
        try:
            byte = source.offset_of(index)
        finally:
            source.close()
    except errors.OpError:  # the file is gone
        return ""
    file = f"file: {name.decode(errors='replace')}"
    if known.size == 1:
        return f"{file}, record {index}, at byte {byte}"
    if last - first == known.size - 1:
        return f"{file}, records {index} to {index + last - first}, from byte {byte}"
    return f"{file}, record {index}, at byte {byte}, or one of {known.size - 1} others of the batch"


def to_bytes(place: Place) -> bytes:
    """The place of an element, or the places of the records of a batch, for other processes; empty when none is known.

    The numbers of files mean nothing to another process, so the bytes hold the names and how to open them.
    """
    numbers = np.ravel(place).tolist()
    used = sorted({n >> _RECORD_BITS for n in numbers if n >= 0})
    if not used:
        return b""
    files = [[_files[f][0].decode("latin-1"), *astuple(_files[f][1])] for f in used]
    at = [[used.index(n >> _RECORD_BITS), n & _RECORD_MASK] if n >= 0 else [UNKNOWN, 0] for n in numbers]
    return json.dumps([files, at if np.ndim(place) else at[0]]).encode()


def from_bytes(data: bytes) -> Place:
    """The place that `to_bytes` was given."""
    files, at = json.loads(data)
    first = []
    for name, kind, compression, options in files:
        begin = Opener(kind, compression, tuple((k, v) for k, v in options))
        first.append(of_file(name.encode("latin-1"), begin))
    each = [first[f] + i if f >= 0 else UNKNOWN for f, i in (at if isinstance(at[0], list) else [at])]
    return np.array(each) if isinstance(at[0], list) else each[0]
