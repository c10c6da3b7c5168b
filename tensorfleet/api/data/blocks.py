"""Blocks: several elements of a dataset at once, by component.

A column is an array with one row per element, or, when the rows differ in shape or are no arrays, a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.api.data.record_origin import UNKNOWN
from tensorfleet.kernels.aligned_memory import empty

Column = Any


class Block:
    """`size` elements of a dataset; of those that were read from files it knows the places (see places.py)."""

    __slots__ = ("columns", "places", "size")

    def __init__(self, size: int, columns: list[Column], places: Column | None = None) -> None:
        self.size = size
        self.columns = columns
        self.places = places

    def element(self, i: int) -> list:
        """The components of one element."""
        return [row(c, i) for c in self.columns]

    def part(self, start: int, stop: int) -> Block:
        """Some elements, in order."""
        places = None if self.places is None else self.places[start:stop]
        return Block(min(stop, self.size) - start, [c[start:stop] for c in self.columns], places)

    def pick(self, where: Any) -> Block:
        """The elements at some positions."""
        places = None if self.places is None else picked(self.places, where)
        return Block(len(where), [picked(c, where) for c in self.columns], places)


def row(column: Column, i: int) -> Any:
    """One component of one element."""
    value = column[i]
    return boxed(value) if isinstance(value, bytes) else value


def boxed(value: Any) -> np.ndarray:
    """A scalar array that holds an object."""
    made = np.empty((), object)
    made[()] = value
    return made


def picked(column: Column, where: Any, make: Callable[..., np.ndarray] = empty) -> Column:
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
    for v in values:
        if not isinstance(v, (np.ndarray, np.generic)) or v.shape != shape or v.dtype != dtype:
            return list(values)
    if dtype.kind == "O":
        made = np.empty((len(values), *shape), object)
        for i, v in enumerate(values):
            made[i] = v[()] if not shape else v
        return made
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
    first = parts[0]
    if all(
        isinstance(p, np.ndarray) and p.shape[1:] == first.shape[1:] and p.dtype == first.dtype for p in parts
    ):
        out = empty((sum(map(len, parts)), *first.shape[1:]), first.dtype)
        return np.concatenate(parts, out=out)
    return [v for p in parts for v in (p if isinstance(p, list) else [row(p, i) for i in range(len(p))])]
