"""`tf.keras.utils`: labels and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_categorical(y: Any, num_classes: int | None = None, dtype: str = "float32") -> np.ndarray:
    """Class numbers as rows with a single one."""
    numbers = np.array(y, dtype="int")
    shape = numbers.shape[:-1] if numbers.ndim > 1 and numbers.shape[-1] == 1 else numbers.shape
    flat = numbers.ravel()
    count = num_classes or int(np.max(flat)) + 1
    array = np.zeros((flat.size, count), dtype=dtype)
    array[np.arange(flat.size), flat] = 1
    return array.reshape((*shape, count))


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """Vectors of length one."""
    sizes = np.atleast_1d(np.linalg.norm(x, order, axis))
    sizes[sizes == 0] = 1
    return x / np.expand_dims(sizes, axis)
