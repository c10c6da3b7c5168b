"""Arrays where XLA wants them: it takes memory that starts at a multiple of 64 as it is, and copies any other."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

_ALIGNMENT = 64
_WORTH = 1 << 12  # bytes
_first_byte: Any = ctypes.c_char.from_buffer


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """A new array, of any contents; a large one starts where XLA wants it."""
    size = math.prod(shape) * dtype.itemsize
    if size < _WORTH or dtype.hasobject:
        return np.empty(shape, dtype)
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, memory, -_address(memory) % _ALIGNMENT)


def aligned(value: Any) -> Any:
    """A value that XLA can use where it is: its own copy of an array that starts elsewhere takes ten times as long."""
    if type(value) is not np.ndarray or value.nbytes < _WORTH:
        return value
    if value.flags.c_contiguous and _address(value) % _ALIGNMENT == 0:
        return value
    copy = empty(value.shape, value.dtype)
    np.copyto(copy, value)
    return copy


def _address(array: np.ndarray) -> int:
    """Where a contiguous array starts. What every array can tell takes five times as long to ask for."""
    try:
        return ctypes.addressof(_first_byte(array))
    except (TypeError, ValueError, BufferError):  # it may not be written to, or has a type of its own
        return array.__array_interface__["data"][0]
