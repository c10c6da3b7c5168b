"""What the kernels of sparse ops share: places as positions, their order, and the errors about them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.types import Array, Dims

_MIN_COUNTED_PLACES, _MAX_COUNTED_BITS = 2048, 48  # numbers, and bits of a number


def invalid(message: str) -> Exception:
    """What a kernel raises when its inputs do not fit together."""
    return errors.invalid(message)


def bracketed(values: Any) -> str:
    """Integers as "[2,3]", the way shapes and places are written in messages."""
    return "[" + ",".join(str(int(v)) for v in np.asarray(values).ravel()) + "]"


def strides(shape: Array | Dims) -> Array:
    """How far apart in a flat dense tensor neighbours along each axis are."""
    dims = np.asarray(shape, np.int64)
    return np.concatenate(
        [np.cumprod(dims[:0:-1], dtype=np.int64)[::-1], np.ones(min(len(dims), 1), np.int64)]
    )


def positions(indices: Array, shape: Array | Dims) -> Array:
    """Places as positions in the flat dense tensor."""
    return np.asarray(indices, np.int64) @ strides(shape)


def places(flat: Array, shape: Array) -> Array:
    """Positions in the flat dense tensor as places: the inverse of `positions`."""
    rest, steps = np.asarray(flat, np.int64), strides(shape).tolist()
    result = np.empty((len(rest), len(steps)), np.int64)
    for axis, step in enumerate(steps):
        column = rest // step if step > 1 else rest
        result[:, axis] = column
        rest = rest - column * max(step, 1)
    return result


def union_of(flat: Array, in_runs: bool = False) -> tuple[Array, Array]:
    """Different positions in order, and which of them each is: one sort, where a position and its number fit in a word.

    What is known to be a few runs that are in order already is merged.
    """
    bits = len(flat).bit_length()
    if not len(flat) or flat.min() < 0 or flat.max() >= 1 << (62 - bits):
        return np.unique(flat, return_inverse=True)
    packed = flat << bits | np.arange(len(flat))
    packed.sort(kind="stable" if in_runs else None)
    number = packed & ((1 << bits) - 1)
    packed >>= bits
    new = np.ones(len(flat), np.bool_)
    np.not_equal(packed[1:], packed[:-1], new[1:])
    which = np.empty(len(flat), np.int64)
    which[number] = np.cumsum(new) - 1
    return packed[new], which


def union_of_two(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Different positions of either in order, and which of them each is."""
    in_order = (a[1:] >= a[:-1]).all() and (b[1:] >= b[:-1]).all()
    union, which = union_of(np.concatenate([a, b]), bool(in_order))
    return union, which[: len(a)], which[len(a) :]


def by_place(indices: Array) -> Array:
    """The permutation that brings places into the order of a dense tensor; equal ones stay as they were."""
    count, rank = indices.shape
    if not count or not rank:
        return np.arange(count)
    lows = indices.min(0).tolist()
    spans = [high - low + 1 for high, low in zip(indices.max(0).tolist(), lows, strict=True)]
    bits = count.bit_length()
    if math.prod(spans) << bits >= 1 << 63:
        order: Array = np.lexsort(indices.T[::-1])
        return order
    # A place and its number make one whole number: those are sorted several times as fast.
    places = np.zeros(count, np.int64)
    for column, low, span in zip(indices.T, lows, spans, strict=True):
        places = places * span + (column - low)
    highest = math.prod(spans) - 1
    if count >= _MIN_COUNTED_PLACES and highest < 1 << _MAX_COUNTED_BITS:
        return _by_digits(places, highest)
    order = np.sort(places << bits | np.arange(count)) & (1 << bits) - 1
    return order


def _by_digits(numbers: Array, highest: int) -> Array:
    """The permutation that sorts whole numbers from zero on: by their lower 16 bits, then the next. Numpy counts those."""
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    for by in range(16, highest.bit_length(), 16):
        order = order[np.argsort((numbers[order] >> by).astype(np.uint16), kind="stable")]
    return order


def check_places(indices: Array, shape: Array | Dims) -> None:
    """InvalidArgumentError unless the places lie inside the shape, in order, without repetition."""
    dims = np.asarray(shape, np.int64)
    if not len(indices) or _in_order(indices, dims.tolist()):
        return
    inside = np.asarray(((indices >= 0) & (indices < dims)).all(axis=1))
    order = _steps(indices)
    wrong = ~inside
    wrong[1:] |= order <= 0
    if not wrong.any():
        return
    i = int(np.argmax(wrong))
    at = f"indices[{i}] = {bracketed(indices[i])}"
    if not inside[i]:
        raise invalid(f"{at} is out of bounds: need 0 <= index < {bracketed(dims)}")
    if order[i - 1] < 0:
        raise invalid(
            f"{at} is out of order. Many sparse ops require sorted indices.\n    Use `tf.sparse.reorder` to create "
            "a correctly ordered copy.\n\n"
        )
    raise invalid(f"{at} is repeated")


def _in_order(indices: Array, dims: list[int]) -> bool:
    """Whether nothing is wrong with places, as far as one number for each of them can tell."""
    if not dims or not 0 < math.prod(dims) < 2**62:
        return False
    number = np.zeros(len(indices), np.int64)
    for column, size in zip(indices.T, dims, strict=True):
        if column.min() < 0 or column.max() >= size:
            return False
        number *= size
        number += column
    return bool((number[1:] > number[:-1]).all())


def _steps(indices: Array) -> Array:
    """For each place but the first: 1 when it comes after the one before, 0 when equal, -1 when before."""
    change = np.sign(np.diff(indices, axis=0))
    if not indices.shape[1]:
        return np.zeros(len(indices) - 1, np.int64)
    first = np.argmax(change != 0, axis=1)
    result: Array = change[np.arange(len(change)), first]
    return result


def check_sparse(indices: Array, values: Array, shape: Array, what: str = "Input") -> None:
    """InvalidArgumentError unless the three parts have the ranks and lengths of one sparse tensor."""
    if np.ndim(indices) != 2:
        raise invalid(
            f"{what} indices should be a matrix but received shape {bracketed(np.shape(indices))}. Expected a matrix"
        )
    if np.ndim(values) != 1:
        raise invalid(
            f"{what} values should be a vector but received shape {bracketed(np.shape(values))}. Expected a vector"
        )
    if np.ndim(shape) != 1:
        raise invalid(
            f"{what} shape should be a vector but received shape {bracketed(np.shape(shape))}. Expected a vector"
        )
    if len(indices) != len(values) or indices.shape[1] != len(shape):
        raise invalid(
            f"{what} of {len(values)} values has indices of shape {bracketed(indices.shape)} and a dense shape of "
            f"{len(shape)} dimensions: they must agree"
        )
