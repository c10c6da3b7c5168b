"""Methods that numpy's arrays had when TensorFlow 1 scripts were written: `image.tostring()` is in thousands of them.
Numbers are printed as they were: `[0.5]`, not `[np.float32(0.5)]`.

The class of arrays takes no new attributes by assignment, so they are put into its table of names; CPython must then
be told that what it remembers of the class is out of date. Where that table cannot be reached nothing is done.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import gc
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np


def _tostring(self: Any, order: Any = "C") -> bytes:
    """The array's bytes."""
    return self.tobytes(order)


def _ptp(self: Any, axis: Any = None, out: Any = None, **more: Any) -> Any:
    """The greatest less the least."""
    return np.ptp(self, axis=axis, out=out, **more)


def _itemset(self: Any, *args: Any) -> None:
    """Sets one value, at a place or the only one."""
    *place, value = args
    if not place:
        self[...] = value
    elif len(place) == 1 and not isinstance(place[0], tuple):
        self.flat[place[0]] = value
    else:
        self[place[0] if len(place) == 1 else tuple(place)] = value


def _newbyteorder(self: Any, new_order: str = "S", /) -> Any:
    """A view of the same bytes in another order."""
    return self.view(self.dtype.newbyteorder(new_order))


_METHODS: dict[str, Callable] = {
    "tostring": _tostring,
    "ptp": _ptp,
    "itemset": _itemset,
    "newbyteorder": _newbyteorder,
}
# With a sample of each: numpy keeps some of the names, to say at their use that they are gone.
_SAMPLES = (np.zeros(1), np.float64(0))
_BEFORE_TWO = "1.25"
_replaced: list[tuple[type, str, Any]] = []  # what was there in place of the methods


def put_back() -> None:
    """Gives arrays the methods they have lost."""
    _print_as(_BEFORE_TWO)
    for cls, sample in zip((np.ndarray, np.generic), _SAMPLES, strict=True):
        table = _table(cls)
        for name, method in _METHODS.items():
            if not hasattr(sample, name):
                _replaced.append((cls, name, table.get(name)))
                table[name] = method
        _forget(cls)


def take_away() -> None:
    """Undoes `put_back`."""
    _print_as(False)
    while _replaced:
        cls, name, before = _replaced.pop()
        table = _table(cls)
        table.pop(name, None)
        if before is not None:
            table[name] = before
        _forget(cls)


def _print_as(legacy: Any) -> None:
    """Prints numbers as a version of numpy does, in this thread and where numpy has a place for it in those to come."""
    np.set_printoptions(legacy=legacy)
    with contextlib.suppress(ImportError, AttributeError):
        places = importlib.import_module("numpy._core.printoptions")
        chosen = contextvars.copy_context()[places.format_options]
        places.default_format_options_dict["legacy"] = chosen["legacy"]


def _table(cls: type) -> dict[str, Any]:
    """The names of a class, to be written to; one that nobody reads where there is none."""
    tables = [held for held in gc.get_referents(cls.__dict__) if isinstance(held, dict)]
    return tables[0] if tables else {}


def _forget(cls: type) -> None:
    """Tells CPython that a class has changed."""
    modified = getattr(ctypes.pythonapi, "PyType_Modified", None)
    if modified is not None:
        modified(ctypes.py_object(cls))
