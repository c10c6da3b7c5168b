"""Where records come from: a number for each record, of which `told` makes its file, its number in it and its byte.

The numbers go with the elements through shuffling, batching and the rest, so that an error can say what failed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable
from dataclasses import astuple
from typing import Any

import numpy as np

from tensorfleet.base import errors

UNKNOWN = -1
_BITS = 40  # of a number, for the record in its file; those above tell the file

_files: list[tuple[bytes, Callable[[bytes], Any]]] = []
_numbers: dict[Hashable, int] = {}
_lock = threading.Lock()


def of_file(name: bytes, begin: Callable[[bytes], Any]) -> int:
    """The place of the first record of a file; those after it follow. `begin` opens the file."""
    with _lock:
        if (name, begin) not in _numbers:
            _numbers[name, begin] = len(_files)
            _files.append((name, begin))
        return _numbers[name, begin] << _BITS


def told(place: Any) -> str:
    """What to tell a person about the place of one record, or of the records of a batch; empty when not known."""
    known = np.sort(np.ravel(place))
    known = known[known >= 0]
    if not known.size:
        return ""
    first, last = int(known[0]), int(known[-1])
    name, begin = _files[first >> _BITS]
    index = first & ((1 << _BITS) - 1)
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


def written(place: Any) -> bytes:
    """The place of an element, or the places of the records of a batch, for others to read; empty when none is known."""
    numbers = np.ravel(place).tolist()
    used = sorted({n >> _BITS for n in numbers if n >= 0})
    if not used:
        return b""
    files = [[_files[f][0].decode("latin-1"), *astuple(_files[f][1])] for f in used]
    at = [[used.index(n >> _BITS), n & ((1 << _BITS) - 1)] if n >= 0 else [UNKNOWN, 0] for n in numbers]
    return json.dumps([files, at if np.ndim(place) else at[0]]).encode()


def read(data: bytes, opener: Callable[..., Callable[[bytes], Any]]) -> Any:
    """What `written` was given. `opener` makes what opens files of its own fields."""
    files, at = json.loads(data)
    first = []
    for name, kind, compression, options in files:
        begin = opener(kind, compression, tuple((k, v) for k, v in options))
        first.append(of_file(name.encode("latin-1"), begin))
    each = [first[f] + i if f >= 0 else UNKNOWN for f, i in (at if isinstance(at[0], list) else [at])]
    return np.array(each) if isinstance(at[0], list) else each[0]
