"""LAPACK's functions in the type of their arguments.

Numpy's own compute float32 in double, which takes up to two and a half times as long. The loops behind them exist for float32
too, and for the same layout of batches; where a version of numpy does not have them, its functions are used as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.arrays import is_numpy

_loops: Any = getattr(np.linalg, "_umath_linalg", None)
_NEEDED = ("inv", "solve", "cholesky_lo", "eigh_lo", "eigvalsh_lo", "svd", "svd_f", "svd_s")


def linalg(xp: ArrayModule) -> Any:
    """What stands for `xp.linalg`: inv, solve, cholesky, eigh, eigvalsh and svd."""
    return _OwnType if is_numpy(xp) and all(hasattr(_loops, name) for name in _NEEDED) else xp.linalg


def _failed(kind: str, flag: int) -> NoReturn:
    raise np.linalg.LinAlgError("The decomposition was not successful. The input might not be valid.")


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Loops tell of a matrix that is singular, or whose steps do not converge, as of an invalid number."""

    @wraps(function)
    def called(*args: Array, **options: bool) -> Any:
        with np.errstate(call=_failed, invalid="call", over="ignore", divide="ignore", under="ignore"):
            return function(*args, **options)

    return called


def _loop(name: str) -> Callable[..., Any]:
    # Looked up at each call: a version of numpy that does not have the loops must still be able to import this.
    return _checked(lambda *args: getattr(_loops, name)(*args))


class _OwnType:
    """Numpy's functions of the same names, for float32, float64 and complex numbers of both sizes."""

    inv, solve = staticmethod(_loop("inv")), staticmethod(_loop("solve"))
    cholesky = staticmethod(_loop("cholesky_lo"))
    eigh, eigvalsh = staticmethod(_loop("eigh_lo")), staticmethod(_loop("eigvalsh_lo"))

    @staticmethod
    @_checked
    def svd(a: Array, full_matrices: bool = True, compute_uv: bool = True) -> Any:
        if not compute_uv:
            return _loops.svd(a)
        return _loops.svd_f(a) if full_matrices else _loops.svd_s(a)
