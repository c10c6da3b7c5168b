"""What kernels ask of arrays in both namespaces, numpy and jax.numpy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorfleet.base.types import Array, ArrayModule

_UNSIGNED = {np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def is_numpy(xp: ArrayModule) -> bool:
    """Whether a kernel runs in numpy, rather than being traced for XLA."""
    return xp is np


def all_within(xp: ArrayModule, places: Array, count: int) -> Array | bool:
    """Whether all of some whole numbers are in [0, count)."""
    if is_numpy(xp):
        if not places.size:
            return True
        # As unsigned numbers the negative ones are huge, so one comparison finds both kinds.
        unsigned = _UNSIGNED.get(places.dtype)
        if unsigned is not None:
            return bool(np.maximum.reduce(places.view(unsigned), None) < count)
    return xp.all((places >= 0) & (places < count))


def total(parts: Iterable[Array]) -> Array:
    """The sum of one or more arrays."""
    return sum(parts)  # type: ignore[return-value] # the start, 0, is returned only when there is nothing to add


def zeros_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A numpy array of zeros (empty bytes for strings)."""
    if dtype.kind == "O":
        out = np.empty(shape, object)
        out.fill(b"")
        return out
    return np.zeros(shape, dtype)
