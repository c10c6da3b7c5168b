"""Blocks: several elements of a dataset at once, by component.

A column is an array with one row per element, or, when the rows differ in shape or are no arrays, a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorfleet.api.data.record_origin import UNKNOWN
from tensorfleet.base.types import Array
from tensorfleet.kernels.aligned_memory import empty

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Tensor

#: One component of several elements: an array with a row per element, or a list (see above).
Column: TypeAlias = "Array | list[Any]"
#: The components of one element: arrays, NumPy scalars, sparse and ragged values, datasets.
Element: TypeAlias = list[Any]
#: What the tensors of a function stand for while a block goes through it: columns, or values for all elements.
Values: TypeAlias = dict["Tensor", Any]


class Block:
    """`size` elements of a dataset; of those that were read from files it knows the places (see record_origin.py)."""

    __slots__ = ("columns", "places", "size")

    def __init__(self, size: int, columns: list[Column], places: Column | None = None) -> None:
        self.size = size
        self.columns = columns
        self.places = places

    def element(self, i: int) -> Element:
        """The components of one element."""
        return [row(c, i) for c in self.columns]

    def part(self, start: int, stop: int) -> Block:
        """Some elements, in order."""
        places = None if self.places is None else self.places[start:stop]
        return Block(min(stop, self.size) - start, [c[start:stop] for c in self.columns], places)

    def pick(self, where: Array | Sequence[int]) -> Block:
        """The elements at some positions."""
        places = None if self.places is None else picked(self.places, where)
        return Block(len(where), [picked(c, where) for c in self.columns], places)


def row(column: Column, i: int) -> Any:
    """One component of one element."""
    # A row of a column of strings is a plain `bytes`, which has no shape; kernels take arrays.
    value = column[i]
    return boxed(value) if isinstance(value, bytes) else value


def boxed(value: object) -> Array:
    """A scalar array that holds an object."""
    result = np.empty((), object)
    result[()] = value
    return result


def unboxed(value: Array) -> Any:
    """The object that a scalar array holds."""
    return np.asarray(value, object).ravel()[0]


def picked(column: Column, where: Array | Sequence[int], make: Callable[..., Array] = empty) -> Column:
    """The rows at some positions, in an array that `make` makes."""
    if isinstance(column, list):
        return [column[i] for i in where]
    out = make((len(where), *column.shape[1:]), column.dtype)
    return column.take(where, 0, out, "clip")  # the positions are ours, and other modes copy twice


def column_of(values: Sequence[Any]) -> Column:
    """The column of some components, one per element."""
    first = values[0]
    if not isinstance(first, (np.ndarray, np.generic)):
        return list(values)
    shape, dtype = first.shape, first.dtype
    # Rows of one shape and type lie in one array, so that a kernel takes them all at once.
    for v in values:
        if not isinstance(v, (np.ndarray, np.generic)) or v.shape != shape or v.dtype != dtype:
            return list(values)
    if dtype.kind == "O":
        result = np.empty((len(values), *shape), object)
        for i, v in enumerate(values):
            result[i] = v[()] if not shape else v
        return result
    # `np.array` of objects would look into them: above they are put in one by one.
    return np.array(values, dtype)


def block_of(elements: Sequence[Sequence[Any]], places: Column | None = None) -> Block:
    """A block of elements."""
    return Block(len(elements), [column_of(c) for c in zip(*elements, strict=True)], places)


def joined(blocks: Sequence[Block]) -> Block:
    """Several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    columns = [_joined(parts) for parts in zip(*(b.columns for b in blocks), strict=True)]
    return Block(sum(b.size for b in blocks), columns, joined_places(blocks))


def joined_places(blocks: Sequence[Block]) -> Column | None:
    """The places of all elements of several blocks, if those of any are known."""
    if all(b.places is None for b in blocks):
        return None
    return _joined([np.full(b.size, UNKNOWN) if b.places is None else b.places for b in blocks])


def _joined(parts: Sequence[Column]) -> Column:
    arrays = [p for p in parts if isinstance(p, np.ndarray)]
    if len(arrays) == len(parts) and len({(p.shape[1:], p.dtype) for p in arrays}) == 1:
        out = empty((sum(map(len, arrays)), *arrays[0].shape[1:]), arrays[0].dtype)
        return np.concatenate(arrays, out=out)
    return [v for p in parts for v in (p if isinstance(p, list) else [row(p, i) for i in range(len(p))])]
