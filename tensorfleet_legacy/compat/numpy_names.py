"""Names that numpy and Python had when TensorFlow 1 scripts were written, for scripts that run without a change.

Only what is gone is put back, and only in processes where `import tensorflow` gives TensorFleet. What functions took
then is in `numpy_functions.py`.
"""

from __future__ import annotations

import base64
import collections
import collections.abc
import errno
import fractions
import functools
import importlib
import inspect
import itertools
import math
import os
import string
import sys
import threading
import time
import types
import urllib
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class ArgSpec(NamedTuple):
    """The result of `inspect.getargspec`."""

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


def _of_urllib(name: str) -> Any:
    """The former contents of `urllib`, from its present modules. They take long to import, so only at first use."""
    for part in ("request", "parse", "error"):
        module = importlib.import_module(f"urllib.{part}")
        if name == part:
            return module
        if name in _IN_URLLIB and hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'urllib' has no attribute {name!r}")


_IN_URLLIB = (
    *("urlopen", "urlretrieve", "urlcleanup", "urlencode", "pathname2url", "url2pathname", "getproxies"),
    *(
        "quote",
        "quote_plus",
        "unquote",
        "unquote_plus",
        "URLopener",
        "FancyURLopener",
        "ContentTooShortError",
    ),
)
_OF_STRINGS = (
    *("split", "rsplit", "strip", "lstrip", "rstrip", "replace", "find", "rfind", "index", "rindex", "count"),
    *(
        "lower",
        "upper",
        "capitalize",
        "swapcase",
        "zfill",
        "ljust",
        "rjust",
        "center",
        "expandtabs",
        "translate",
    ),
)
_TYPES = {
    **{"StringType": str, "UnicodeType": str, "IntType": int, "LongType": int, "FloatType": float},
    **{"BooleanType": bool, "ListType": list, "TupleType": tuple, "DictType": dict, "StringTypes": (str,)},
}
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
    "alen": len,
    "int0": np.intp,
    "uint0": np.uintp,
    "typeDict": np.sctypeDict,
    "math": math,
    "warnings": warnings,
}
# What `numpy.lib` showed of its parts.
_NUMPY_LIB = {
    name: getattr(np, name)
    for name in ["append", "delete", "diff", "insert", "interp", "pad", "percentile", "tile", "unique"]
}
_ABSTRACT = {name: getattr(collections.abc, name) for name in collections.abc.__all__}
_OTHERS: list[tuple[Any, dict[str, Any]]] = [
    (base64, {"encodestring": base64.encodebytes, "decodestring": base64.decodebytes}),
    (collections, _ABSTRACT),
    (np.lib, _NUMPY_LIB),
    (fractions, {"gcd": math.gcd}),
    (inspect, {"ArgSpec": ArgSpec, "getargspec": _getargspec}),
    (time, {"clock": time.process_time}),
    (itertools, {"izip": zip, "imap": map, "ifilter": filter, "izip_longest": itertools.zip_longest}),
    (itertools, {"ifilterfalse": itertools.filterfalse}),
    (os, {"getcwdu": os.getcwd, "errno": errno}),
    (string, {"letters": string.ascii_letters, "lowercase": string.ascii_lowercase, "join": _join}),
    (string, {"uppercase": string.ascii_uppercase, "maketrans": str.maketrans}),
    (string, {name: getattr(str, name) for name in _OF_STRINGS}),
    (string, {"atoi": int, "atol": int, "atof": float}),
    (threading.Thread, {"isAlive": threading.Thread.is_alive}),
    (types, _TYPES),
    (urllib, {"__getattr__": _of_urllib}),
    (sys, {"maxint": sys.maxsize, "setdefaultencoding": _set_default_encoding}),
]


def put_back() -> list[tuple[Any, str]]:
    """Gives modules the names they have lost, and returns which."""
    result = []
    for module, names in [(np, _NUMPY), *_OTHERS]:
        for name, value in names.items():
            if name not in vars(module):
                setattr(module, name, value)
                result.append((module, name))
    return result


def take_away(names: list[tuple[Any, str]]) -> None:
    """Undoes `put_back`."""
    for module, name in names:
        if name in vars(module):
            delattr(module, name)
