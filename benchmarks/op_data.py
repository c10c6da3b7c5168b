"""The arrays that the rows of benchmarks/ops.py work on, and how a row is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RANDOM = np.random.RandomState(0)
FLAT = RANDOM.rand(1 << 20).astype(np.float32)
MATRIX = RANDOM.rand(1024, 1024).astype(np.float32)
CUBE = MATRIX.reshape(64, 128, 128)
ROWS = RANDOM.rand(4096, 256).astype(np.float32)
IMAGES = RANDOM.rand(16, 64, 64, 16).astype(np.float32)
PICTURES = RANDOM.rand(8, 128, 128, 3).astype(np.float32)
VOLUMES = RANDOM.rand(4, 16, 16, 16, 8).astype(np.float32)
KERNEL = RANDOM.rand(3, 3, 16, 32).astype(np.float32)
INDICES = RANDOM.randint(0, 4096, 20000).astype(np.int32)
SEGMENTS = np.sort(RANDOM.randint(0, 500, 4096)).astype(np.int32)
LABELS = RANDOM.randint(0, 256, 4096).astype(np.int32)
WHOLE = RANDOM.randint(0, 1 << 30, 1 << 20).astype(np.int32)
SPD = np.stack([a @ a.T + 32 * np.eye(32) for a in RANDOM.rand(64, 32, 32)]).astype(np.float32)

Row = tuple[Callable, tuple]


def slope(f: Callable, by: int = 0) -> Callable:
    """The gradient of the sum of f's result by one of its arguments."""

    def call(tf: Any, *xs: Any) -> Any:
        y = f(tf, *xs)
        return tf.convert_to_tensor(tf.gradients(tf.reduce_sum(y * y), xs[by])[0])

    return call


def first(tf: Any, results: Any) -> Any:
    """The first element of each result: what is made but not fetched, TensorFlow would leave out."""
    results = results if isinstance(results, (list, tuple)) else [results]
    return [tf.reshape(y, [-1])[:1] for y in results]


def kept(f: Callable, *arrays: np.ndarray) -> Row:
    """A row whose inputs are variables, and one element is fetched: to feed and to fetch strings is slow in itself."""

    def call(tf: Any) -> Any:
        return first(tf, f(tf, *[tf.Variable(a, trainable=False) for a in arrays]))

    return call, ()


def update(f: Callable, *inputs: np.ndarray, shape: tuple[int, ...] = (1024, 1024)) -> Row:
    """A row that changes a variable of that shape, which is f's first argument."""

    def call(tf: Any, *xs: Any) -> Any:
        return tf.group(f(tf, tf.Variable(tf.ones(shape)), *xs))

    return call, inputs
