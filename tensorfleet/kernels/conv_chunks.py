"""A convolution's examples a few at a time: what is made of them should stay in the cache."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.arrays import total

# Patches made at a time: small enough to stay in cache, big enough to keep the matrix product efficient.
CHUNK_BYTES = 3 << 19


def _chunk_size(examples: int, example_bytes: int, at_once: int | None) -> int:
    """Examples per chunk: what fits, preferably so that it divides their number."""
    fits = max(1, min(examples, (at_once or CHUNK_BYTES) // max(example_bytes, 1)))
    return next((n for n in range(fits, fits // 2, -1) if examples % n == 0), fits)


def _split(arrays: tuple[Array, ...], chunk: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Whole chunks on a new leading axis, and the examples left over."""
    whole = arrays[0].shape[0] // chunk * chunk
    chunks = tuple(a[:whole].reshape(-1, chunk, *a.shape[1:]) for a in arrays)
    return chunks, tuple(a[whole:] for a in arrays)


def map_examples(
    xp: ArrayModule, f: Callable[[Array], Array], example_bytes: int, x: Array, at_once: int | None = None
) -> Array:
    """f(x) for an f that treats examples separately, called on a chunk of them at a time."""
    size = _chunk_size(x.shape[0], example_bytes, at_once)
    if x.shape[0] <= size:
        return f(x)
    (chunks,), (rest,) = _split((x,), size)
    if xp is np:
        parts = [f(chunk) for chunk in chunks]
    else:
        from tensorfleet.kernels.xla import lax

        y = lax.map(f, chunks)
        parts = [y.reshape(-1, *y.shape[2:])]
    if rest.shape[0]:
        parts.append(f(rest))
    return parts[0] if len(parts) == 1 else xp.concatenate(parts)


def sum_examples(
    xp: ArrayModule,
    f: Callable[[Array, Array], Array],
    example_bytes: int,
    x: Array,
    dy: Array,
    at_once: int | None = None,
) -> Array:
    """f(x, dy) for an f that sums over examples, called on a chunk of them at a time."""
    size = _chunk_size(x.shape[0], example_bytes, at_once)
    if x.shape[0] <= size:
        return f(x, dy)
    chunks, rest = _split((x, dy), size)
    if xp is np:
        summed = total(f(*chunk) for chunk in zip(*chunks, strict=True))
    else:
        from jax import eval_shape

        from tensorfleet.kernels.xla import lax

        first = eval_shape(f, *(c[0] for c in chunks))
        zero = xp.zeros(first.shape, first.dtype)
        summed, _ = lax.scan(lambda so_far, chunk: (so_far + f(*chunk), None), zero, chunks)
    return summed + f(*rest) if rest[0].shape[0] else summed
