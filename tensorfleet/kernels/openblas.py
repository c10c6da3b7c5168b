"""OpenBLAS in as many threads as its work is worth.

It shares a factorization, or a product of some hundred microseconds, among all cores, and its threads wait for
each other busily. That gains little, and where other processes need the cores too (servers and workers of a cluster on
one machine) it makes such a product a hundred times slower. These run in one thread here, and larger products in blocks
among our own threads; all that the user computes with numpy, as it would otherwise.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.openblas_library import libraries
from tensorfleet.kernels.parallel_for import core_count, in_parts

# Multiplications: with fewer OpenBLAS itself stays in one thread; with more, several threads are worth their trouble.
_MIN_MULTIPLICATIONS, _MAX_MULTIPLICATIONS = 1 << 18, 1 << 25
# What a call on a matrix costs beside its arithmetic, and what a part of a batch should cost, in multiplications.
_CALL, _PART = 1 << 9, 1 << 18
_WORTH_DIVIDING = 1 << 22
_BLAS_TYPES = [np.dtype(kind) for kind in ("f4", "f8", "c8", "c16")]
_lock = threading.Lock()
_inside = 0  # calls under way
_before: list[int] = []  # the threads that numpy's library had


def product(a: Array, b: Array) -> Array:
    """`a @ b` of numpy arrays: a large one in blocks, and many that are small, among our threads."""
    each = a.shape[-2] * a.shape[-1] * b.shape[-1]
    if (
        a.dtype not in _BLAS_TYPES
        or a.dtype != b.dtype
        or (a.ndim == b.ndim == 2 and each <= _MIN_MULTIPLICATIONS)
    ):
        plain: Array = np.matmul(a, b)
        return plain
    if each <= _MIN_MULTIPLICATIONS:
        return _batch(a, b, each)
    with _numpy_in_one_thread():
        if each >= _MAX_MULTIPLICATIONS and a.shape[-1] == b.shape[-2]:
            return _in_blocks(a, b)
        return np.matmul(a, b) if a.ndim == b.ndim == 2 else _batch(a, b, each)


def times(xp: ArrayModule, a: Array, b: Array) -> Array:
    """`a @ b`, of numpy arrays or traced."""
    return product(a, b) if is_numpy(xp) else a @ b


def _batch(a: Array, b: Array, each: int) -> Array:
    """The products of a batch of matrices, some of them in each thread."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    count = batch[0]

    def work(start: int, stop: int) -> None:
        left, right = (x[start:stop] if x.ndim == result.ndim and len(x) > 1 else x for x in (a, b))
        np.matmul(left, right, out=result[start:stop])

    in_parts(work, count, -(-_WORTH_DIVIDING * count // max(each * math.prod(batch), 1)))
    return result


def _in_blocks(a: Array, b: Array) -> Array:
    """A product in blocks of its rows, or of its columns if those are more: as many as there are cores, whoever is free.

    OpenBLAS would divide it too, but its threads wait for each other busily: where other processes want the cores, that
    takes many times as long.
    """
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    by_rows = result.shape[-2] >= result.shape[-1]
    length, blocks = result.shape[-2 if by_rows else -1], core_count()
    edges = [length * i // blocks for i in range(blocks + 1)]

    def work(start: int, stop: int) -> None:
        for begin, end in pairwise(edges[start : stop + 1]):
            if by_rows:
                np.matmul(a[..., begin:end, :], b, out=result[..., begin:end, :])
            else:
                np.matmul(a, b[..., begin:end], out=result[..., begin:end])

    in_parts(work, blocks, 1)
    return result


def batched_product(a: Array, b: Array) -> Array:
    """The same of arrays whose dimensions may have been moved about: OpenBLAS wants one of the last two to be dense."""
    return product(*(x if x.itemsize in x.strides[-2:] else np.ascontiguousarray(x) for x in (a, b)))


def in_one_thread(kernel: Kernel) -> Kernel:
    """A kernel whose calls of LAPACK take one thread, as TensorFlow's do.

    Numpy's library gets its threads back behind the call: it multiplies large matrices too. XLA calls scipy's, which
    stays at one, since nobody knows when a program is done with it.
    """

    @wraps(kernel)
    def called(xp: ArrayModule, *args: Array, **attrs: Any) -> Any:
        if is_numpy(xp):
            with _numpy_in_one_thread():
                return kernel(xp, *args, **attrs)
        import scipy.linalg  # noqa: F401  loads the library

        for library in libraries("scipy.libs"):
            library.set(1)
        return kernel(xp, *args, **attrs)

    return called


def by_matrix(xp: ArrayModule, function: Callable[..., Any], *arrays: Array) -> Any:
    """A function of batches of matrices; numpy's LAPACK gets some of them at a time where there are many.

    It gives an array or a tuple of them, in which the batch comes first too.
    """
    if not is_numpy(xp):
        return function(*arrays)
    shape = arrays[0].shape
    count = math.prod(shape[:-2])
    rows, columns = shape[-2:]
    least = _PART // (_CALL + rows * columns * min(rows, columns)) + 1
    if count < 2 * least:
        return function(*arrays)
    flat = [a.reshape(count, *a.shape[-2:]) for a in arrays]
    by_start: dict[int, Any] = {}

    def some(start: int, stop: int) -> None:
        by_start[start] = function(*(a[start:stop] for a in flat))

    in_parts(some, count, least)
    pieces = [by_start[start] for start in sorted(by_start)]
    if not isinstance(pieces[0], tuple):
        return _joined(pieces, shape[:-2])
    return tuple(_joined(piece, shape[:-2]) for piece in zip(*pieces, strict=True))


def _joined(pieces: Sequence[Array], batch: tuple[int, ...]) -> Array:
    whole = np.concatenate(pieces)
    return whole.reshape(*batch, *whole.shape[1:])


@contextmanager
def _numpy_in_one_thread() -> Iterator[None]:
    global _inside, _before
    loaded = libraries("numpy.libs")
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = [library.threads() for library in loaded]
            for library in loaded:
                library.set(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for library, threads in zip(loaded, _before, strict=True):
                    library.set(threads)
