"""Tensors as bytes: the descriptors of those in a frame, and where each lies in its body."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.types import Dims

#: A tensor in a body: its element type (None for strings), shape, start and bytes.
TensorLayout: TypeAlias = tuple[np.dtype[Any] | None, Dims, int, int]
ALIGNMENT = 64
_MAX_DIMENSIONS = 254  # as TensorFlow has
_MAX_CACHED_LAYOUTS = 4096
_MAX_CACHED_BLOB_BYTES = 1 << 14
_MAX_JOINED_BYTES = 1 << 14  # of a tensor: smaller ones are copied into one buffer, for fewer pieces to send
_NUMBERS = frozenset("fiubc")


def malformed(why: str) -> errors.OpError:
    """The error for bytes that are not a message of ours."""
    return errors.InvalidArgumentError(None, None, f"A message does not make sense: {why}.")


def padded(size: int) -> int:
    """The size, rounded up to the alignment of tensors in a message."""
    return -(-size // ALIGNMENT) * ALIGNMENT


# A step sends the same kinds of tensors again and again: their descriptions are made and read once.
_described: dict[tuple[tuple[np.dtype[Any], Dims], ...], tuple[bytes, list[int], int]] = {}
_layouts: dict[bytes, tuple[list[TensorLayout], int]] = {}


def describe(arrays: list[np.ndarray]) -> tuple[bytes, list[int], int, list[np.ndarray]]:
    """The descriptors of some tensors, where each begins in the body, how long that is, and the arrays to send."""
    key = tuple([(a.dtype, a.shape) for a in arrays])
    layout = _described.get(key)
    if layout is None:
        sent = [_strings(a) if a.dtype.kind == "O" else a for a in arrays]
        ends = list(itertools.accumulate([padded(a.nbytes) for a in sent], initial=0))
        blob = b"".join([_descriptor(a, data.nbytes) for a, data in zip(arrays, sent, strict=True)])
        layout = blob, ends[:-1], ends[-1]
        if any(a is not data for a, data in zip(arrays, sent, strict=True)):
            return *layout, sent  # how long strings are is not known from their shapes
        if len(_described) > _MAX_CACHED_LAYOUTS:
            _described.clear()
        _described[key] = layout
    return *layout, arrays


def _descriptor(array: np.ndarray, size: int) -> bytes:
    code = dtypes.as_dtype(array.dtype).as_datatype_enum
    return struct.pack(f"<BBQ{array.ndim}q", code, array.ndim, size, *array.shape)


def _strings(array: np.ndarray) -> np.ndarray:
    """The bytes of a string tensor: where each string ends, then all of them."""
    texts = [t if isinstance(t, bytes) else str(t).encode() for t in array.ravel()]
    ends = np.cumsum([len(t) for t in texts], dtype="<u8") if texts else np.zeros(0, "<u8")
    return np.frombuffer(ends.tobytes() + b"".join(texts), np.uint8)


def layout_of(blob: bytes, count: int) -> tuple[list[TensorLayout], int]:
    """Where each tensor of a frame lies: [(numpy type or None for strings, shape, start, bytes)], total."""
    result = _layouts.get(blob)
    if result is not None:
        if len(result[0]) != count:
            raise malformed(f"descriptions of {len(result[0])} tensors where there are {count}")
        return result
    tensors: list[TensorLayout] = []
    position = start = 0
    try:
        for _ in range(count):
            code, rank, size = struct.unpack_from("<BBQ", blob, position)
            position += 10
            if rank > _MAX_DIMENSIONS:
                raise malformed(f"a tensor of {rank} dimensions")
            shape = struct.unpack_from(f"<{rank}q", blob, position)
            position += 8 * rank
            tensors.append((*_checked(code, shape, size), start, size))
            start += padded(size)
    except struct.error:
        raise malformed("a tensor's description is cut off") from None
    if position != len(blob):
        raise malformed("bytes are left after the tensors' descriptions")
    if len(blob) <= _MAX_CACHED_BLOB_BYTES:
        if len(_layouts) > _MAX_CACHED_LAYOUTS:
            _layouts.clear()
        _layouts[blob] = tensors, start
    return tensors, start


def _checked(code: int, shape: Dims, size: int) -> tuple[np.dtype[Any] | None, Dims]:
    try:
        dtype = dtypes.as_dtype(code)
    except TypeError:
        raise malformed(f"there is no element type {code}") from None
    if any(d < 0 for d in shape):
        raise malformed(f"a tensor of shape {shape}")
    count = math.prod(shape)
    if dtype.name == "string":
        if count * 8 > size:
            raise malformed("a string tensor shorter than its table")
        return None, shape
    if dtype.np_dtype.kind == "O" or count * dtype.np_dtype.itemsize != size:
        raise malformed(f"{size} bytes for a tensor of {dtype.name} with shape {shape}")
    return dtype.np_dtype, shape


def read_strings(data: np.ndarray, shape: Dims) -> np.ndarray:
    """A tensor of strings from its bytes: where each string ends, then the strings."""
    count = math.prod(shape)
    ends = data[: count * 8].view("<u8") if count else np.zeros(0, "<u8")
    raw = data[count * 8 :].tobytes()
    if count and (int(ends[-1]) != len(raw) or (np.diff(ends.astype("<i8")) < 0).any()):
        raise malformed("a string tensor whose table does not fit")
    strings = np.empty(count, object)
    begin = 0
    for i, end in enumerate(ends.tolist()):
        strings[i] = raw[begin:end]
        begin = end
    return strings.reshape(shape)


def as_array(value: object) -> np.ndarray:
    """A step's value as an array to send. Objects that live in one process cannot be sent."""
    array = value if type(value) is np.ndarray else np.asarray(value)
    if array.dtype.kind in _NUMBERS:
        return array
    if array.dtype.kind in "US":
        array = array.astype(object)
    if array.dtype.kind == "O" and array.size and not isinstance(array.flat[0], (bytes, str)):
        raise errors.InvalidArgumentError(
            None,
            None,
            "A handle (of a queue, table, iterator or the like) cannot be sent to another task: use it on the device "
            "that holds it.",
        )
    return array


def pieces_of(arrays: list[np.ndarray]) -> list[Any]:
    """What to send of some arrays, each padded: large ones from where they are, small ones together."""
    pieces: list[Any] = []
    small = bytearray()
    for array in arrays:
        size = array.nbytes
        gap = padded(size) - size
        if size <= _MAX_JOINED_BYTES:
            small += array.tobytes()
            small += bytes(gap)
            continue
        if small:
            pieces.append(small)
        pieces.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        small = bytearray(gap)
    if small:
        pieces.append(small)
    return pieces
