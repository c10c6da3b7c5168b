"""Names that numpy and Python had when TensorFlow 1 scripts were written, for scripts that run without a change.

Only what is gone is put back, and only in processes where `import tensorflow` gives TensorFleet. So is what
functions took: numpy stacked the arrays of a generator, and csv's files were opened as binary.
"""

from __future__ import annotations

import collections
import collections.abc
import csv
import fractions
import functools
import inspect
import io
import itertools
import math
import os
import string
import sys
import time
from collections.abc import Iterable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np


class ArgSpec(NamedTuple):
    """What `inspect.getargspec` gave."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple | None


def _getargspec(func: Any) -> ArgSpec:
    return ArgSpec(*inspect.getfullargspec(func)[:4])


def _asscalar(a: Any) -> Any:
    return a.item()


def _asfarray(a: Any, dtype: Any = np.float64) -> np.ndarray:
    """As numbers with a fraction: of the type that was asked for if it has one."""
    wanted = np.dtype(dtype)
    return np.asarray(a, dtype=wanted if np.issubdtype(wanted, np.inexact) else np.float64)


class _Casts(dict):
    """`np.cast["float32"](x)`."""

    def __missing__(self, kind: Any) -> Any:
        return lambda x: np.asarray(x).astype(kind)


def _set_default_encoding(name: str) -> None:
    """Text is Unicode whatever scripts of Python 2 ask for."""


def _join(words: Iterable[str], sep: str = " ") -> str:
    return sep.join(words)


_NUMPY = {
    "int": int,
    "long": int,
    "float": float,
    "complex": complex,
    "object": object,
    "str": str,
    "unicode": str,
    "bool": bool,
    "bool8": np.bool_,
    "float_": np.float64,
    "complex_": np.complex128,
    "singlecomplex": np.complex64,
    "string_": np.bytes_,
    "unicode_": np.str_,
    "Inf": np.inf,
    "Infinity": np.inf,
    "infty": np.inf,
    "PINF": np.inf,
    "NINF": -np.inf,
    "NaN": np.nan,
    "product": np.prod,
    "cumproduct": np.cumprod,
    "sometrue": np.any,
    "alltrue": np.all,
    "round_": np.round,
    "mat": np.asmatrix,
    "asscalar": _asscalar,
    "asfarray": _asfarray,
    "cast": _Casts(),
    "msort": functools.partial(np.sort, axis=0),
    "rank": np.ndim,
    "math": math,
}
_ABSTRACT = {name: getattr(collections.abc, name) for name in collections.abc.__all__}
_OTHERS: list[tuple[ModuleType, dict[str, Any]]] = [
    (collections, _ABSTRACT),
    (fractions, {"gcd": math.gcd}),
    (inspect, {"ArgSpec": ArgSpec, "getargspec": _getargspec}),
    (time, {"clock": time.process_time}),
    (itertools, {"izip": zip, "imap": map, "ifilter": filter, "izip_longest": itertools.zip_longest}),
    (os, {"getcwdu": os.getcwd}),
    (string, {"letters": string.ascii_letters, "lowercase": string.ascii_lowercase, "join": _join}),
    (string, {"uppercase": string.ascii_uppercase, "maketrans": str.maketrans}),
    (sys, {"maxint": sys.maxsize, "setdefaultencoding": _set_default_encoding}),
]


_STACKING = {name: getattr(np, name) for name in ("stack", "hstack", "vstack", "dstack", "column_stack")}


def _of_any(stack: Any) -> Any:
    @functools.wraps(stack)
    def stacked(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        return stack(arrays if hasattr(arrays, "__getitem__") else list(arrays), *args, **kwargs)

    return stacked


_CSV = {name: getattr(csv, name) for name in ("reader", "writer")}


def _reading_bytes(reader: Any) -> Any:
    @functools.wraps(reader)
    def read(lines: Any, *args: Any, **kwargs: Any) -> Any:
        return reader(map(_text, lines), *args, **kwargs)

    return read


def _text(line: Any) -> Any:
    return line.decode() if isinstance(line, bytes) else line


def _writing_bytes(writer: Any) -> Any:
    @functools.wraps(writer)
    def write(file: Any, *args: Any, **kwargs: Any) -> Any:
        is_binary = isinstance(file, io.RawIOBase | io.BufferedIOBase)
        return writer(_Encoding(file) if is_binary else file, *args, **kwargs)

    return write


class _Encoding:
    """Writes text to a binary file."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


# Functions that take what they took then, too: the module, its functions, and what makes of each the wider one.
_WIDER: list[tuple[ModuleType, dict[str, Any], dict[str, Any]]] = [
    (np, _STACKING, dict.fromkeys(_STACKING, _of_any)),
    (csv, _CSV, {"reader": _reading_bytes, "writer": _writing_bytes}),
]


def put_back() -> list[tuple[ModuleType, str]]:
    """Gives modules the names they have lost, and returns which."""
    found = []
    for wide, functions, widen in _WIDER:
        for name, function in functions.items():
            setattr(wide, name, widen[name](function))
    for module, names in [(np, _NUMPY), *_OTHERS]:
        for name, value in names.items():
            if name not in vars(module):
                setattr(module, name, value)
                found.append((module, name))
    return found


def take_away(names: list[tuple[ModuleType, str]]) -> None:
    """Undoes `put_back`."""
    for module, name in names:
        if name in vars(module):
            delattr(module, name)
    for wide, functions, _ in _WIDER:
        for name, function in functions.items():
            setattr(wide, name, function)
