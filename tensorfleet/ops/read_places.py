"""Where the record came from that an operation behind a reader failed on: the reader's key says it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet import errors
from tensorfleet.graph.operation import Operation
from tensorfleet.io.records import RecordReader
from tensorfleet.io.sources import Lines

_WHICH = re.compile(r"(?:in record|Index:) (\d+)")


def one_of(places: Sequence[Any], message: str) -> Any:
    """The place of the record of a batch that a message is about, if it says so; else all of them."""
    told = _WHICH.search(message)
    if np.ndim(places) and told and int(told[1]) < len(places):
        return places[int(told[1])]
    return places


def place_read(op: Operation, value_of: Callable[[Any], Any], message: str) -> str:
    """The file, record and byte that the inputs of `op` were read from in this step; empty when no reader was."""
    seen: set[Operation] = set()
    behind = [t._op for t in op._inputs]
    while behind:
        source = behind.pop()
        if source in seen:
            continue
        seen.add(source)
        if not source.type.startswith("ReaderRead"):
            behind.extend(t._op for t in source._inputs)
            continue
        keys = value_of(source._outputs[0])
        if keys is not None and np.size(keys):
            key = np.ravel(np.asarray(one_of(keys, message), object))[0]
            return _told(source._inputs[0]._op, key)
    return ""


def _told(reader: Operation, key: bytes) -> str:
    kind = reader.type.removesuffix("V2")
    name, _, last = key.rpartition(b":")
    if not last.isdigit() or kind in ("WholeFileReader", "IdentityReader"):
        return f"file: {key.decode(errors='replace')}"
    number = int(last)
    try:
        if kind == "TextLineReader":
            index, byte = number - 1, _offset_of_line(name, number - 1)
        elif kind == "TFRecordReader":
            index, byte = _count_before(name, reader._attrs["compression_type"].decode(), number), number
        else:
            attrs = reader._attrs
            hop = attrs["hop_bytes"] or attrs["record_bytes"]
            index, byte = number, attrs["header_bytes"] + number * hop
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
