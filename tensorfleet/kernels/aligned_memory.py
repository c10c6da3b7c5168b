"""Arrays where XLA wants them: it takes memory that starts at a multiple of 64 as it is, and copies any other."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.openblas_library import libraries
from tensorfleet.kernels.parallel_for import in_parts

_ALIGNMENT_BYTES = 64
_MIN_ALIGNED_BYTES = 1 << 12  # XLA's copy of a smaller array costs next to nothing
_MAX_RECYCLED_BYTES = 1 << 22  # larger ones do not stay in the processor's cache anyway
_MIN_BLOCKWISE_BYTES = 1 << 18  # a smaller array stays in the cache, whatever the order
_BYTES_PER_THREAD = 1 << 20
_PAGE_BYTES, _HALF_CACHE_LINE_BYTES = 1 << 12, 32
_MIN_BLOCKWISE_ROWS = 64  # fewer do not pay for a call per block
_MIN_MATRIX_ELEMENTS = 1 << 12  # of a smaller one the call costs more than it saves
_MIN_THREADED_TRANSPOSE_BYTES = 1 << 23  # less is transposed before a second thread has begun
_MAX_RECYCLED_PIECES = (
    3  # one is being read, one is not given back yet (JAX does that at its next call), one is free
)
_first_byte: Any = ctypes.c_char.from_buffer


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """A new array, of any contents; a large one starts where XLA wants it."""
    size = math.prod(shape) * dtype.itemsize
    if size < _MIN_ALIGNED_BYTES or dtype.hasobject:
        return np.empty(shape, dtype)
    memory = np.empty(size + _ALIGNMENT_BYTES, np.uint8)
    return np.ndarray(shape, dtype, memory, -_address(memory) % _ALIGNMENT_BYTES)


class Recycler:
    """Makes arrays in memory that earlier ones have left, and that the processor still has at hand.

    An array holds the memory it lies in, and so does all that was made of it without a copy (views, what JAX has
    taken as it is). So the references to a piece of memory tell when nobody uses it any more.
    """

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[tuple[Array, int]] = []  # and where in them an array starts

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """A new array, as `empty` makes it. One thread at a time."""
        size = math.prod(shape) * dtype.itemsize
        if not _MIN_ALIGNED_BYTES <= size <= _MAX_RECYCLED_BYTES or dtype.hasobject:
            return empty(shape, dtype)
        for piece in self._pieces:
            if len(piece[0]) == size + _ALIGNMENT_BYTES and _references(piece) == _UNUSED:
                return np.ndarray(shape, dtype, *piece)
        # Memory of another size is given up: the arrays of one place in a program change their size together.
        self._pieces = [p for p in self._pieces if len(p[0]) == size + _ALIGNMENT_BYTES]
        memory = np.empty(size + _ALIGNMENT_BYTES, np.uint8)
        start = -_address(memory) % _ALIGNMENT_BYTES
        if len(self._pieces) < _MAX_RECYCLED_PIECES:
            self._pieces.append((memory, start))
        return np.ndarray(shape, dtype, memory, start)


def _references(piece: tuple[Array, int]) -> int:
    return sys.getrefcount(piece[0])


_UNUSED = _references((np.empty(0, np.uint8), 0))


def stored(xp: ArrayModule, x: Array) -> Array:
    """`x` as an array of its own once traced, where XLA would compute it again in each of many places that read it."""
    if xp is np:
        return x
    from tensorfleet.kernels.xla import lax

    return lax.optimization_barrier(x)


def final(array: Array) -> Array:
    """An array that its maker gives away and nobody will change: who assigns it to a variable need not copy it."""
    # Through a base that can be written the array would still change, so all of them are closed.
    part: Any = array
    while type(part) is np.ndarray:
        part.flags.writeable = False
        part = part.base
    return array


def is_final(value: Any) -> bool:
    """Whether nobody can change a value, neither it nor what it is a view of; and all of that memory is its own."""
    if type(value) is not np.ndarray or not value.flags.c_contiguous:
        return False
    size = value.nbytes
    while type(value) is np.ndarray and not value.flags.writeable:
        if value.base is None:
            return value.nbytes == size
        value = value.base
    return False


def is_fixed(value: Any) -> bool:
    """Whether nobody can change a value: it is read-only to all, or lies in memory that came with a message and is held by it."""
    while type(value) is np.ndarray and not value.flags.writeable:
        value = value.base
    if type(value) is memoryview:  # some versions of numpy hold a buffer by a view of it
        value = value.obj
    return value is None or bool(getattr(value, "is_received", False))


def aligned(value: Any) -> Any:
    """A value that XLA can use where it is: its own copy of an array that starts elsewhere takes ten times as long."""
    if type(value) is not np.ndarray or value.nbytes < _MIN_ALIGNED_BYTES:
        return value
    if value.flags.c_contiguous and _address(value) % _ALIGNMENT_BYTES == 0:
        return value
    copy = empty(value.shape, value.dtype)
    if value.flags.c_contiguous and not value.dtype.hasobject:
        target, source = copy.reshape(-1), value.reshape(-1)
        least = 4 * _BYTES_PER_THREAD // value.itemsize  # fewer are copied before another thread has begun
        in_parts(lambda start, stop: np.copyto(target[start:stop], source[start:stop]), source.size, least)
    else:
        np.copyto(copy, value)
    return copy


def copied(array: Array) -> Array:
    """A copy of an array, in C's order."""
    lengths = array.shape[:-1]
    if array.nbytes < _MIN_BLOCKWISE_BYTES or not lengths or array.dtype.hasobject:
        return np.array(array, order="C")
    result = np.empty(array.shape, array.dtype)
    if array.nbytes < _MIN_THREADED_TRANSPOSE_BYTES and _transpose(result, array):
        return result
    axis = lengths.index(max(lengths))
    count, target, source = lengths[axis], np.moveaxis(result, axis, 0), np.moveaxis(array, axis, 0)
    least = -(-_BYTES_PER_THREAD * count // array.nbytes)
    in_parts(lambda start, stop: _copy(target[start:stop], source[start:stop]), count, least)
    return result


def _copy(target: Array, source: Array) -> None:
    """Copies an array.

    Where a dimension is moved behind the last, which lie side by side then, OpenBLAS transposes one matrix after another.
    Otherwise, numbers that lie a page or more apart (those of a column, when a matrix is transposed) would drive each other out of
    the processor's cache before their neighbours are wanted: only as many of them as half a line of it holds are taken
    at a time.
    """
    if _transpose(target, source):
        return
    last = source.shape[-1]
    if abs(source.strides[-1]) < _PAGE_BYTES or source.size < _MIN_BLOCKWISE_ROWS * last:
        np.copyto(target, source)
        return
    block = max(1, _HALF_CACHE_LINE_BYTES // source.itemsize)
    for start in range(0, last, block):
        target[..., start : start + block] = source[..., start : start + block]


def _transpose(target: Array, source: Array) -> bool:
    """Copies an array by transposing matrices; returns whether it did, since there may be none, or only small ones."""
    size = source.itemsize
    library = next((one for one in libraries("numpy.libs") if one.can_transpose(source.dtype)), None)
    if library is None or source.strides[-1] == size or not target.flags.writeable:
        return False
    shape, there, here = _merged(source.shape, target.strides, source.strides)
    if len(shape) < 2 or there[-1] != size or size not in here:
        return False
    axis, last = here.index(size), len(shape) - 1
    columns, rows, apart, beyond = shape[axis], shape[last], here[last], there[axis]
    rest = [i for i in range(last) if i != axis]
    if columns * rows < _MIN_MATRIX_ELEMENTS or any(step % size for step in (*here, *there)):
        return False
    if apart < columns * size or beyond < rows * size:
        return False
    read, written = (a.__array_interface__["data"][0] for a in (source, target))
    for place in np.ndindex(*(shape[i] for i in rest)):
        start = read + sum(p * here[i] for p, i in zip(place, rest, strict=True))
        end = written + sum(p * there[i] for p, i in zip(place, rest, strict=True))
        library.transpose(source.dtype, rows, columns, start, apart // size, end, beyond // size)
    return True


def _merged(shape: Sequence[int], *strides: Sequence[int]) -> list[list[int]]:
    """A shape and the strides of arrays that have it, with dimensions as one that lie behind each other in all of them."""
    lengths: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, length in enumerate(shape):
        own = [one[axis] for one in strides]
        if length == 1:
            continue
        if lengths and all(s[-1] == o * length for s, o in zip(steps, own, strict=True)):
            lengths[-1] *= length
            for s, o in zip(steps, own, strict=True):
                s[-1] = o
            continue
        lengths.append(length)
        for s, o in zip(steps, own, strict=True):
            s.append(o)
    return [lengths, *steps]


def _address(array: Array) -> int:
    """Where a contiguous array starts. What every array can tell takes five times as long to ask for."""
    try:
        return ctypes.addressof(_first_byte(array))
    except (TypeError, ValueError, BufferError):  # it may not be written to, or has a type of its own
        return int(array.__array_interface__["data"][0])
