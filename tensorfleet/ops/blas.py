"""Matrix products of numpy, in as many threads as they are worth.

OpenBLAS shares products of some hundred microseconds among all cores, and its threads wait for each other busily.
That gains little, and where other processes need the cores too (servers and workers of a cluster on one
machine) it makes such a product a hundred times slower. Products of that size run in one thread here; larger ones,
and all that the user computes with numpy, as they would otherwise.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import Any

import numpy as np

# Multiplications: with fewer OpenBLAS itself stays in one thread; with more, several are worth their trouble.
_FEWEST, _MOST = 1 << 18, 1 << 25

_lock = threading.Lock()
_inside = 0
_usual = 1


@cache
def _controls() -> tuple[Any, Any] | None:
    """The functions that get and set how many threads OpenBLAS uses, if numpy has it."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "openblas" in line and "numpy" in line}
        library = ctypes.CDLL(paths.pop())
        return library.scipy_openblas_get_num_threads64_, library.scipy_openblas_set_num_threads64_
    except (OSError, KeyError, AttributeError):
        return None


def product(a: Any, b: Any) -> Any:
    """`a @ b` of numpy arrays."""
    if not _FEWEST < a.size * b.shape[-1] < _MOST:
        return np.matmul(a, b)
    controls = _controls()
    if controls is None:
        return np.matmul(a, b)
    _enter(*controls)
    try:
        return np.matmul(a, b)
    finally:
        _leave(controls[1])


def _enter(get: Any, set_: Any) -> None:
    global _inside, _usual
    with _lock:
        if not _inside:
            _usual = get()
            if _usual > 1:
                set_(1)
        _inside += 1


def _leave(set_: Any) -> None:
    global _inside
    with _lock:
        _inside -= 1
        if not _inside and _usual > 1:
            set_(_usual)
