"""Sums of products of a transposed matrix and another, by oneDNN, as calls of compiled programs.

They are the gradients of weights that a program uses many times. XLA wants the factors in one piece, so it copies all of
them first. oneDNN takes each where it is. A call divides the rows of the result among XLA's threads; how depends on the
shapes and the machine alone, so that results are the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels import xla_calls
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.onednn_library import calls_allowed, library
from tensorfleet.kernels.parallel_for import thread_count
from tensorfleet.kernels.processor import has_avx512

# A call costs 100 us and more within a program, for a second thread has to come to Python. Measured on two cores, steps of
# an LSTM unrolled 28 times take with 64 / 128 / 256 units 1.01 / 1.05 / 1.19 times less by it (the sum of the first has
# 117 million multiplications). Single products gained nothing: those of `mlp1024`, as large, lost 15 %.
MIN_MULTIPLICATIONS = 1 << 26
# In narrower results the library's blocks are not full.
_MIN_COLUMNS = 64
_TARGET = "tensorfleet_sum_of_products"
_MAX_PLANS = 512
_BYTES = 4  # of a float32
_BLOCK_ROWS = 16  # of a result: what the library computes at a time


def suits(xp: ArrayModule, left: Sequence[Array], right: Sequence[Array]) -> bool:
    """Whether the library computes the sum of the products of transposed matrices and others: float32, and large."""
    if is_numpy(xp) or not calls_allowed() or library() is None or not has_avx512():
        return False
    factors = [*left, *right]
    if any(x.ndim != 2 or x.dtype != np.float32 or not x.size for x in factors):
        return False
    rows, columns = int(left[0].shape[1]), int(right[0].shape[1])
    if any(a.shape[1] != rows or b.shape != (a.shape[0], columns) for a, b in zip(left, right, strict=True)):
        return False
    multiplications: int = rows * columns * sum(len(a) for a in left)
    return columns >= _MIN_COLUMNS and rows >= _BLOCK_ROWS and multiplications >= MIN_MULTIPLICATIONS


def sum_of_products(xp: ArrayModule, left: Sequence[Array], right: Sequence[Array]) -> Array:
    """The sum, traced, of the products of each transposed matrix on the left and the one on the right."""
    import jax

    _register()
    described: Any = jax.ShapeDtypeStruct
    rows, columns = left[0].shape[1], right[0].shape[1]
    call: Any = jax.ffi.ffi_call(_TARGET, described((rows, columns), xp.float32))
    sizes = ",".join(str(n) for n in (rows, columns, *[len(a) for a in left]))
    result: Array = call(*left, *right, sizes=sizes)
    return result


@cache
def _register() -> None:
    xla_calls.register(_TARGET, _run)


def _run(call: xla_calls.ForeignCall) -> None:
    dnn = library()
    if dnn is None:
        raise OSError("oneDNN is not installed here: pip install 'tensorfleet[onednn]'")
    columns, lengths, starts = _plan(call.attribute, thread_count())
    left, right = call.operands[: len(lengths)], call.operands[len(lengths) :]
    terms = list(zip(lengths, left, right, strict=True))
    rows, result = starts[-1], call.results[0]

    def part(first: int, last: int) -> None:
        start, count = starts[first], starts[last] - starts[first]
        strides = (rows, columns, columns)
        before = 0.0  # the first product overwrites what the memory of the result holds, the others add to it
        with dnn.in_this_thread():
            for inner, a, b in terms:
                target = result + start * columns * _BYTES
                dnn.add_product((count, columns, inner), a + start * _BYTES, b, target, strides, before)
                before = 1.0

    call.in_parts(part, len(starts) - 1)


@lru_cache(_MAX_PLANS)
def _plan(attribute: bytes, threads: int) -> tuple[int, list[int], list[int]]:
    """Of a call: the columns of the result, the rows of each pair of factors, and where the parts begin and end."""
    rows, columns, *lengths = map(int, attribute.split(b","))
    blocks = rows // _BLOCK_ROWS
    parts = max(1, min(threads, blocks))
    starts = [blocks * i // parts * _BLOCK_ROWS for i in range(parts)]
    return columns, lengths, [*starts, rows]
