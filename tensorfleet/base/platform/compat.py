"""`tf.compat`: bytes or text, whichever a script has."""

from __future__ import annotations

import datetime
import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from tensorfleet.base.naming import export, publish

publish((bytes, str), "compat.bytes_or_text_types")
publish((numbers.Integral, np.integer), "compat.integral_types")
publish((numbers.Real, np.integer, np.floating), "compat.real_types")
publish((numbers.Complex, np.number), "compat.complex_types")

T = TypeVar("T")

# What TensorFlow 1.15 could already read when it was released.
_horizon = datetime.date(2019, 10, 14)


@export("compat.as_bytes", "python.util.compat.as_bytes")
def as_bytes(bytes_or_text: str | bytes | bytearray, encoding: str = "utf-8") -> bytes:
    """Bytes as they are, text encoded."""
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def _as_text(bytes_or_text: str | bytes | bytearray, encoding: str = "utf-8") -> str:
    """Text as it is, bytes decoded."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_text = as_str = export(
    "compat.as_text", "compat.as_str", "python.util.compat.as_text", "python.util.compat.as_str"
)(_as_text)


@export("compat.as_str_any", "python.util.compat.as_str_any")
def as_str_any(value: object) -> str:
    """Bytes decoded, anything else as `str` writes it."""
    return as_text(value) if isinstance(value, bytes) else str(value)


@export("compat.path_to_str")
def path_to_str(path: T | os.PathLike[str] | os.PathLike[bytes]) -> T | str:
    """A path object as text; anything else as it is."""
    return as_text(os.fspath(path)) if hasattr(path, "__fspath__") else path


@export("compat.forward_compatible", "python.compat.compat.forward_compatible")
def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether graphs may use features that TensorFlow got before that day."""
    return _horizon > datetime.date(year, month, day)


@export("compat.forward_compatibility_horizon", "python.compat.compat.forward_compatibility_horizon")
@contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """Moves the day that `forward_compatible` compares with, inside the block."""
    global _horizon
    before = _horizon
    _horizon = datetime.date(year, month, day)
    try:
        yield
    finally:
        _horizon = before
