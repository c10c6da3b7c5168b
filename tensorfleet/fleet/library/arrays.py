"""Arrays of NumPy, JAX and PyTorch on their way to the servers and back, without a copy where DLPack allows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.runtime.devices import load_jax

NUMPY, JAX, TORCH = "numpy", "jax", "torch"


def kind_of(value: object) -> str:
    """The library that an array is of."""
    module = type(value).__module__.partition(".")[0]
    return {"jax": JAX, "jaxlib": JAX, "torch": TORCH}.get(module, NUMPY)


def to_numpy(value: Any, label: str) -> Array:
    """A NumPy array with an array's own memory, if that is on the CPU. `label` names it in errors."""
    if type(value) is np.ndarray:
        return value
    try:
        if kind_of(value) == TORCH:
            result: Array = value.detach().cpu().contiguous().numpy()
            return result
        if not isinstance(value, (np.generic, int, float, bool)) and not hasattr(value, "__array__"):
            raise TypeError("it is no array")
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as e:
        raise TypeError(
            f"{label} must be an array of NumPy, JAX or PyTorch, but is {type(value).__name__}: {e}."
        ) from None


@cache
def _to_jax() -> Callable[[list[Array]], list[Any]]:
    """A function that makes arrays of JAX. A compiled call takes them many times faster than `jax.device_put`."""
    jax, _ = load_jax()
    compiled: Callable[[list[Array]], list[Any]] = jax.jit(lambda values: values)
    return compiled


def from_numpy(values: Sequence[Array], kinds: Sequence[str]) -> list[Any]:
    """New arrays as arrays of these libraries."""
    result: list[Any] = list(values)
    for_jax = [i for i, kind in enumerate(kinds) if kind == JAX]
    if for_jax:
        for i, value in zip(for_jax, _to_jax()([values[i] for i in for_jax]), strict=True):
            result[i] = value
    for i, kind in enumerate(kinds):
        if kind == TORCH:
            import torch

            result[i] = torch.from_dlpack(values[i]) if values[i].ndim else torch.tensor(values[i].item())
    return result
