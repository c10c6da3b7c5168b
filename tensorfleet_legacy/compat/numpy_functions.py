"""Arguments of numpy and Python functions from the time of TensorFlow 1, for scripts that run unmodified.

Each takes what it takes today, in the same way, and only besides what would be an error.
"""

from __future__ import annotations

import collections.abc
import csv
import functools
import io
import json
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from tensorfleet_legacy.compat.python2_scripts import is_of_a_script


def _of_any(stack: Any) -> Any:
    """Numpy stacked the arrays of a generator."""

    @functools.wraps(stack)
    def stacked(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        return stack(arrays if hasattr(arrays, "__getitem__") else list(arrays), *args, **kwargs)

    return stacked


def _of_bytes(fromstring: Any) -> Any:
    """`np.fromstring` read bytes as they are."""

    @functools.wraps(fromstring)
    def read(string: Any, dtype: Any = float, count: int = -1, sep: str = "", **options: Any) -> Any:
        if sep:
            return fromstring(string, dtype, count, sep, **options)
        data = string.encode("latin-1") if isinstance(string, str) else string
        return np.frombuffer(data, dtype, count, **options).copy()

    return read


def _of_uneven_rows(array: Any) -> Any:
    """`np.array` made an array of objects from rows of different lengths, and `copy=False` copied where it had to."""

    @functools.wraps(array)
    def made(*args: Any, **kwargs: Any) -> Any:
        try:
            return array(*args, **kwargs)
        except ValueError as error:
            if "inhomogeneous" in str(error) and len(args) == 1 and "dtype" not in kwargs:
                then: dict[str, Any] = {"dtype": object}
            elif "Unable to avoid copy" in str(error):
                then = {"copy": None}
            else:
                raise
            if not is_of_a_script(sys._getframe(1).f_globals):
                raise
            return array(*args, **{**kwargs, **then})

    return made


def _without_end(function: Any) -> Any:
    """Arrays were printed whole where the number of values to print at most is none."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if str(kwargs.get("threshold")) == "nan":
            kwargs["threshold"] = sys.maxsize
        return function(*args, **kwargs)

    return called


def _without_encoding(function: Any) -> Any:
    """JSON was told an encoding, to no effect."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("encoding", None)
        return function(*args, **kwargs)

    return called


def _of_sets(sample: Any) -> Any:
    @functools.wraps(sample)
    def drawn(population: Any, *args: Any, **kwargs: Any) -> Any:
        is_set = isinstance(population, collections.abc.Set)
        return sample(tuple(population) if is_set else population, *args, **kwargs)

    return drawn


def _by_function(shuffle: Any) -> Any:
    """`random.shuffle` took the function that draws."""

    @functools.wraps(shuffle)
    def shuffled(x: Any, draw: Callable[[], float] | None = None) -> None:
        if draw is None:
            return shuffle(x)
        for i in range(len(x) - 1, 0, -1):
            j = int(draw() * (i + 1))
            x[i], x[j] = x[j], x[i]
        return None

    return shuffled


def _of_binary_lines(reader: Any) -> Any:
    """The files of tables were opened as binary."""

    @functools.wraps(reader)
    def read(lines: Any, *args: Any, **kwargs: Any) -> Any:
        return reader(map(_text, lines), *args, **kwargs)

    return read


def _text(line: Any) -> Any:
    return line.decode() if isinstance(line, bytes) else line


def _to_binary_files(writer: Any) -> Any:
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


_WIDER: list[tuple[ModuleType, dict[str, Callable[[Any], Any]]]] = [
    (np, dict.fromkeys(("stack", "hstack", "vstack", "dstack", "column_stack"), _of_any)),
    (np, {"fromstring": _of_bytes, "array": _of_uneven_rows}),
    (np, dict.fromkeys(("set_printoptions", "printoptions", "array2string"), _without_end)),
    (json, dict.fromkeys(("load", "loads", "dump", "dumps"), _without_encoding)),
    (random, {"sample": _of_sets, "shuffle": _by_function}),
    (csv, {"reader": _of_binary_lines, "writer": _to_binary_files}),
]
_now = [(module, name, getattr(module, name)) for module, names in _WIDER for name in names]


def widen() -> None:
    """From here on they take what they took then, too."""
    for module, names in _WIDER:
        for name, wider in names.items():
            setattr(module, name, wider(getattr(module, name)))


def narrow() -> None:
    """Undoes `widen`."""
    for module, name, function in _now:
        setattr(module, name, function)
