"""Where the record came from that an operation behind a reader failed on: the reader's key says it.

Behind a queue the key is another step's. Readers note where the bytes are that they have read, and which key they had;
the file is read again to see that they are still the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.files import whole_file
from tensorfleet.base.formats.record_sources import Lines, Pieces
from tensorfleet.base.formats.records import RecordReader
from tensorfleet.base.types import Array
from tensorfleet.graph.operation import Operation

_WHICH = re.compile(r"(?:in record|Index:|\(record) (\d+)")


def one_of(places: Any, message: str) -> Any:
    """The place of the record of a batch that a message is about, if it says so; else all of them."""
    match = _WHICH.search(message)
    if np.ndim(places) and match and int(match[1]) < len(places):
        return places[int(match[1])]
    return places


def place_read(op: Operation, value_of: Callable[[Any], Any], message: str) -> str:
    """The file, record and byte that the inputs of `op` were read from; empty when no reader did.

    The reader may be of this step, or of another that put what it read into a queue.
    """
    seen: set[Operation] = set()
    behind = [t._op for t in op._inputs]
    while behind:
        source = behind.pop()
        if source in seen:
            continue
        seen.add(source)
        if source.type.startswith("ReaderRead"):
            keys = value_of(source._outputs[0])
            if keys is not None and np.size(keys):
                key = np.ravel(np.asarray(one_of(keys, message), object))[0]
                return _told(Origin.of(source._inputs[0]._op), key)
        elif source.type.startswith("QueueDequeue"):
            strings = [value_of(t) for t in source._outputs if t.dtype.name == "string"]
            places = [_recalled(one_of(v, message)) for v in strings if v is not None]
            if any(places):
                return next(filter(None, places))
        else:
            behind.extend(t._op for t in source._inputs)
    return ""


class Origin(NamedTuple):
    """How a reader reads its files."""

    kind: str
    compression: str = ""
    header: int = 0
    size: int = 0
    footer: int = 0
    hop: int = 0

    @classmethod
    def of(cls, reader: Operation) -> Origin:
        """As its operation says."""
        attrs = reader._attrs
        kind = reader.type.removesuffix("V2")
        packed = (attrs.get("compression_type") or attrs.get("encoding") or b"").decode()
        sizes = [attrs.get(f"{what}_bytes", 0) for what in ("header", "record", "footer", "hop")]
        return cls(kind, packed, *sizes)


# What was read lately, by where the bytes are in memory: what each is, may have changed meanwhile. Two halves, so
# that the older one can be forgotten as a whole.
_young: dict[int, tuple[Origin, bytes]] = {}
_old: dict[int, tuple[Origin, bytes]] = {}
_MAX_REMEMBERED = 1 << 15  # records in each half


def note(origin: Origin, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
    """Remembers for a while where some records were read."""
    global _young, _old
    for key, value in zip(keys, values, strict=True):
        if len(value) > 1:  # the shortest are shared
            _young[id(value)] = (origin, key)
    if len(_young) > _MAX_REMEMBERED:
        _old, _young = _young, {}


def _recalled(records: Array | bytes) -> str:
    """The place of a record, or of the first of a batch whose place is known."""
    values = np.ravel(np.asarray(records, object)).tolist()
    for value in values:
        origin = _young.get(id(value)) or _old.get(id(value))
        if origin is not None and _record_at(*origin) == value:
            others = f", or one of {len(values) - 1} others of the batch" if len(values) > 1 else ""
            return _told(*origin) + others
    return ""


def _record_at(origin: Origin, key: bytes) -> bytes | None:
    """The record that has a key; None when it is not there any more."""
    name, _, last = key.rpartition(b":")
    try:
        if origin.kind == "IdentityReader":
            return key
        if origin.kind == "WholeFileReader":
            return whole_file(key)
        if origin.kind == "TFRecordReader":
            return _record_of(name, origin.compression, int(last))
        if origin.kind == "TextLineReader":
            source: Any = Lines(name, skip=int(last) - 1)
        else:
            packed = origin.compression if origin.compression in ("ZLIB", "GZIP") else ""
            parts = (origin.size, origin.header, origin.footer, origin.hop)
            source = Pieces(name, *parts, packed, exact=False)
            left = int(last)
            while left and (passed := len(source.read_many(left))):
                left -= passed
        try:
            return next(iter(source.read_many(1)), None)
        finally:
            source.close()
    except errors.OpError:  # the file is gone
        return None


def _told(origin: Origin, key: bytes) -> str:
    name, _, last = key.rpartition(b":")
    if not last.isdigit() or origin.kind in ("WholeFileReader", "IdentityReader"):
        return f"file: {key.decode(errors='replace')}"
    number = int(last)
    try:
        if origin.kind == "TextLineReader":
            index, byte = number - 1, _offset_of_line(name, number - 1)
        elif origin.kind == "TFRecordReader":
            index, byte = _count_before(name, origin.compression, number), number
        else:
            index, byte = number, origin.header + number * (origin.hop or origin.size)
    except errors.OpError:  # the file is gone
        return f"file: {key.decode(errors='replace')}"
    return f"file: {name.decode(errors='replace')}, record {index}, at byte {byte}"


def _offset_of_line(name: bytes, index: int) -> int:
    lines = Lines(name)
    try:
        return lines.offset_of(index)
    finally:
        lines.close()


def _count_before(name: bytes, compression: str, byte: int) -> int:
    reader, count = RecordReader(name, compression), 0
    try:
        while reader.read() is not None and reader.start < byte:
            count += 1
        return count
    finally:
        reader.close()


def _record_of(name: bytes, compression: str, byte: int) -> bytes | None:
    reader = RecordReader(name, compression)
    try:
        while (record := reader.read()) is not None and reader.start < byte:
            pass
        return record
    finally:
        reader.close()
