"""The OpenBLAS that numpy and scipy bring along, called without them."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

_MAPS = "/proc/self/maps"
_BUILDS = [(prefix, suffix) for prefix in ("scipy_", "") for suffix in ("64_", "")]
_TRANSPOSES: dict[np.dtype[Any], tuple[str, Any]] = {
    np.dtype("f4"): ("s", ctypes.c_float),
    np.dtype("f8"): ("d", ctypes.c_double),
}
_BY_ROWS, _TURNED = 101, 112  # what CBLAS calls a matrix in C's order, and one that is to be transposed


class OpenBlas:
    """A loaded OpenBLAS. Its functions are named after how it was built."""

    def __init__(self, path: str) -> None:
        loaded = ctypes.CDLL(path)
        prefix, suffix = next(b for b in _BUILDS if hasattr(loaded, f"{b[0]}openblas_set_num_threads{b[1]}"))
        self.threads = getattr(loaded, f"{prefix}openblas_get_num_threads{suffix}")
        self.set = getattr(loaded, f"{prefix}openblas_set_num_threads{suffix}")
        self._transposes: dict[np.dtype[Any], Any] = {}
        size = ctypes.c_int64 if suffix else ctypes.c_int
        for dtype, (letter, number) in _TRANSPOSES.items():
            function = getattr(loaded, f"{prefix}cblas_{letter}omatcopy{suffix}", None)
            if function is not None:
                matrix = [ctypes.c_void_p, size]
                function.argtypes = [ctypes.c_int, ctypes.c_int, size, size, number, *matrix, *matrix]
                function.restype = None
                self._transposes[dtype] = function

    def can_transpose(self, dtype: np.dtype[Any]) -> bool:
        """Whether it has numbers of this type."""
        return dtype in self._transposes

    def transpose(
        self, dtype: np.dtype[Any], rows: int, columns: int, source: int, apart: int, target: int, there: int
    ) -> None:
        """Copies a matrix at one address to another, transposed. Rows are so many elements `apart`, and `there`."""
        self._transposes[dtype](_BY_ROWS, _TURNED, rows, columns, 1.0, source, apart, target, there)


@lru_cache
def libraries(folder: str) -> list[OpenBlas]:
    """The OpenBLAS that has come with a package; none where the package uses another library."""
    try:
        with open(_MAPS) as maps:
            paths = {
                line.split(maxsplit=5)[-1].strip() for line in maps if folder in line and "openblas" in line
            }
        return [OpenBlas(path) for path in sorted(paths)]
    except (OSError, StopIteration):
        return []
