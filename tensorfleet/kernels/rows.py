"""Rows of an array changed in place: index checks, and what happens when an index occurs twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.types import Array
from tensorfleet.kernels.arrays import all_within
from tensorfleet.kernels.parallel_for import in_parts

#: the forms, by op type, of updates that XLA can do: (xp, table, indices, updates, check) → the new table
FUSED: dict[str, Callable[..., Array]] = {}
#: rows of so many numbers are changed number by number: `ufunc.at` is fast on vectors only
NARROW = 32
_SIGNS = {np.add: 1, np.subtract: -1}
_ADDED = {np.dtype(kind) for kind in ("f4", "f8", "c8", "c16", "i4", "i8")}
# So few rows that have been changed before are changed again one by one.
_MAX_REPEATS_REDONE = 16
# When an index occurs more often than this, one pass per occurrence costs more than `ufunc.at`; of wide rows, when
# there are fewer elements than this for each pass.
_MAX_TURNS = 16
_MIN_WIDE_ELEMENTS = 32
_ELEMENTS_PER_TURN = 2048
# A table for all indices costs less than sorting those there are, if it stays in the cache or is not much larger than they.
_SMALL_TABLE, _SPARSE = 1 << 16, 64
# Elements that are changed at a time: what is computed in between then stays in the cache; and by one thread at least.
_PIECE, _PART = 1 << 15, 1 << 20


def check_rows(indices: Array, count: int, message: str = "") -> Array:
    """The indices as a vector; InvalidArgumentError naming the first that is not in [0, count).

    `message` may say it otherwise, with {value} and {where}.
    """
    flat = indices.reshape(-1)
    # As unsigned numbers the negative ones are huge, so one comparison finds both kinds.
    unsigned: Array = flat.view(np.uint64 if flat.itemsize == 8 else np.uint32)
    if flat.size and np.maximum.reduce(unsigned) >= count:
        bad = int(np.argmax(unsigned >= np.uint64(count)))
        where = ",".join(str(int(i)) for i in np.unravel_index(bad, indices.shape))
        text = (message or "indices[{where}] = {value} is not in [0, {count})").format(
            where=where, value=flat[bad], count=count
        )
        raise errors.invalid(text)
    return flat


def _all_different(flat: Array, count: int) -> bool:
    """Whether no index occurs twice, if a table of the places of all indices is small enough to find out soon."""
    if count > max(_SMALL_TABLE, _SPARSE * flat.size):
        return False
    last, here = np.empty(count, np.int32), np.arange(flat.size, dtype=np.int32)
    last[flat] = here
    return bool((last.take(flat) == here).all())


def put_rows(rows: Array, places: Array, values: Array) -> None:
    """`rows[places] = values`, each row in one piece where it is one: numpy would go through its numbers."""
    alike = rows.ndim > 1 and values.shape[1:] == rows.shape[1:] and values.dtype == rows.dtype
    if not (alike and rows.size and rows.flags.c_contiguous and values.flags.c_contiguous):
        rows[places] = values
        return
    row = _in_one_piece(rows.nbytes // len(rows))
    rows.reshape(-1).view(row)[places] = values.reshape(-1).view(row)


@lru_cache
def _in_one_piece(size: int) -> np.dtype[Any]:
    return np.dtype((np.void, size))


class IndexTurns:
    """The positions of indices in `flat`, which are below `count`, in turns in which none occurs twice."""

    def __init__(self, flat: Array, count: int) -> None:
        if _all_different(flat, count):
            self.order = self.starts = np.arange(flat.size)
            self.repeats = 0
            return
        self.order = flat.argsort(kind="stable")  # by index, and then as they come
        ordered = flat.take(self.order)
        new = np.empty(flat.size, bool)
        new[:1] = True
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        self.starts = new.nonzero()[0]  # where among them each index begins
        self.repeats = flat.size - len(self.starts)

    def most(self) -> int:
        """How often the most frequent index occurs."""
        return int(np.diff(np.append(self.starts, len(self.order))).max(initial=0))

    def again(self) -> list[tuple[int, int]]:
        """The positions of indices that have occurred before, each after the last position where they did."""
        first = np.zeros(len(self.order), bool)
        first[self.starts] = True
        same = (~first).nonzero()[0]
        return list(zip(self.order.take(same - 1).tolist(), self.order.take(same).tolist(), strict=True))

    def each(self, work: Callable[[Any], None], width: int) -> None:
        """Calls `work` with some positions at a time, a slice or an array, among which no index occurs twice.

        Those of one index come in order. Where there are many rows of `width` elements, others are worked on beside them.
        """
        count, piece = len(self.starts), _PIECE // max(width, 1) + 1
        least = count * _PART // max(len(self.order) * width, 1) + 1
        in_parts(partial(self._some if self.repeats else _distinct, work, piece), count, least)

    def _some(self, work: Callable[[Any], None], piece: int, first: int, last: int) -> None:
        """The turns of a range of different indices."""
        starts = self.starts[first : last + 1]
        end = starts[-1] if last < len(self.starts) else len(self.order)
        mine = self.order[starts[0] : end]
        lengths = np.diff(np.append(starts[: last - first], end))
        occurrence = np.arange(len(mine)) - np.repeat(starts[: last - first] - starts[0], lengths)
        for k in range(int(lengths.max())):
            where = mine[occurrence == k]
            for start in range(0, len(where), piece):
                work(where[start : start + piece])


def _distinct(work: Callable[[Any], None], piece: int, first: int, last: int) -> None:
    for start in range(first, last, piece):
        work(slice(start, min(start + piece, last)))


def accumulate(combine: Callable[..., Array], rows: Array, flat: Array, updates: Array) -> None:
    """`rows[i] = combine(rows[i], update)` for each index in turn; `updates` may be one scalar for all."""
    # The fastest form that does: `ufunc.at` on a vector, a sparse product, `ufunc.at` on single numbers; else passes
    # over rows with distinct indices, since a plain indexed update would lose all but the last of equal ones.
    width = math.prod(rows.shape[1:])
    if isinstance(combine, np.ufunc) and width == 1 and rows.flags.c_contiguous:
        combine.at(rows.reshape(-1), flat, updates.reshape(-1) if updates.ndim else updates)
        return
    if combine in _SIGNS and width > 1 and adds_rows(rows):
        _add_rows(_SIGNS[combine], rows, flat, updates)
        return
    if isinstance(combine, np.ufunc) and 1 < width <= NARROW and rows.flags.c_contiguous:
        _each_number(combine, rows, flat, updates)
        return
    turns = IndexTurns(flat, len(rows))
    if 0 < turns.repeats <= _MAX_REPEATS_REDONE:
        _change_again(combine, rows, flat, updates, turns.again())
        return
    most = max(_MAX_TURNS, flat.size * width // _ELEMENTS_PER_TURN if width >= _MIN_WIDE_ELEMENTS else 0)
    if turns.repeats and isinstance(combine, np.ufunc) and turns.most() > most:
        combine.at(rows, flat, updates)
        return

    def change(where: Array | slice) -> None:
        at = flat[where]
        old, new = rows.take(at, axis=0), updates[where] if updates.ndim else updates
        put_rows(rows, at, combine(old, new, out=old) if isinstance(combine, np.ufunc) else combine(old, new))

    turns.each(change, width)


def _each_number(combine: np.ufunc, rows: Array, flat: Array, updates: Array) -> None:
    """Changes narrow rows by the place of each number in the memory of all."""
    width = math.prod(rows.shape[1:])
    given = np.broadcast_to(np.asarray(updates, rows.dtype), (flat.size, *rows.shape[1:])).reshape(-1, width)
    numbers, columns, piece = rows.reshape(-1), np.arange(width), _PIECE // width
    for start in range(0, flat.size, piece):
        places = flat[start : start + piece, None] * np.int64(width) + columns
        combine.at(numbers, places.reshape(-1), given[start : start + piece].reshape(-1))


def adds_rows(rows: Array) -> bool:
    """Whether rows of such an array are added to each other in one call."""
    return rows.dtype in _ADDED and rows.flags.c_contiguous and _sparse_products() is not None


def _add_rows(sign: int, rows: Array, flat: Array, updates: Array) -> None:
    """Adds one row after the other, or subtracts it: the product of a sparse matrix that has one number in each column."""
    if not all_within(np, flat, len(rows)):  # nobody would notice where it writes
        raise IndexError(f"an index is not in [0, {len(rows)})")
    count, width = flat.size, math.prod(rows.shape[1:])
    kind = flat.dtype if flat.dtype in (np.int32, np.int64) else np.dtype(np.int64)
    places, starts = np.ascontiguousarray(flat, kind), np.arange(count + 1, dtype=kind)
    wanted = (count, *rows.shape[1:])
    given = np.ascontiguousarray(
        updates if updates.shape == wanted else np.broadcast_to(updates, wanted), rows.dtype
    )
    weights = np.full(count, sign, rows.dtype)
    by_columns, _ = _sparse_products()
    by_columns(len(rows), count, width, starts, places, weights, given.reshape(-1), rows.reshape(-1))


def add_groups(out: Array, ids: Array, data: Array, rows: Array) -> None:
    """Adds some rows of the data to rows of `out`, whose numbers grow: the product of a sparse matrix stored by rows."""
    if not (all_within(np, rows, len(data)) and all_within(np, ids, len(out))):
        raise IndexError(f"an index is not in [0, {len(data)}), or a group not in [0, {len(out)})")
    kind = np.int32 if max(rows.size, len(data)) < 1 << 31 else np.int64
    starts = np.searchsorted(ids, np.arange(len(out) + 1)).astype(kind)
    places, weights = np.ascontiguousarray(rows, kind), np.ones(rows.size, out.dtype)
    _, by_rows = _sparse_products()
    width = math.prod(out.shape[1:])
    by_rows(len(out), len(data), width, starts, places, weights, data.reshape(-1), out.reshape(-1))


@cache
def _sparse_products() -> Any:
    """Scipy's functions that add the product of a sparse matrix, stored by columns or by rows, and a dense one to an array."""
    try:
        from scipy.sparse._sparsetools import csc_matvecs, csr_matvecs
    except ImportError:  # a version that has them elsewhere
        return None
    return csc_matvecs, csr_matvecs


def _change_again(
    combine: Callable[..., Array], rows: Array, flat: Array, updates: Array, again: list[tuple[int, int]]
) -> None:
    """All rows at once, and then those again that have been changed before."""
    new = combine(rows.take(flat, axis=0), updates)
    for before, i in again:
        new[i] = combine(new[before], updates[i] if updates.ndim else updates)
    put_rows(rows, flat, new)  # the last of several rows for one index remains
