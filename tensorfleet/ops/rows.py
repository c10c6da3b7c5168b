"""Rows of an array changed in place: index checks, and what happens when an index occurs twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tensorfleet import errors

#: the forms, by op type, of updates that XLA can do: (xp, table, indices, updates, check) → the new table
FUSED: dict[str, Callable] = {}
# So few rows that have been changed before are changed again one by one.
_FEW = 16
# When an index occurs more often than this, one pass per occurrence costs more than `ufunc.at`; of wide rows, when
# there are fewer elements than this for each pass.
_MANY_TIMES = 16
_WIDE = 32
_WORTH_A_PASS = 2048


def check_rows(indices: np.ndarray, count: int, message: str = "") -> np.ndarray:
    """The indices as a vector; InvalidArgumentError naming the first that is not in [0, count).

    `message` may say it otherwise, with {value} and {where}.
    """
    flat = indices.reshape(-1)
    # As unsigned numbers the negative ones are huge, so one comparison finds both kinds.
    unsigned: np.ndarray = flat.view(np.uint64 if flat.itemsize == 8 else np.uint32)
    if flat.size and np.maximum.reduce(unsigned) >= count:
        bad = int(np.argmax(unsigned >= np.uint64(count)))
        where = ",".join(str(int(i)) for i in np.unravel_index(bad, indices.shape))
        text = (message or "indices[{where}] = {value} is not in [0, {count})").format(
            where=where, value=flat[bad], count=count
        )
        raise errors.invalid(text)
    return flat


def distinct(flat: np.ndarray) -> bool:
    """Whether no index occurs twice."""
    ordered = flat.copy()
    ordered.sort()
    return not (ordered[1:] == ordered[:-1]).any()


def rounds(flat: np.ndarray) -> Iterator[np.ndarray]:
    """Positions in `flat`: of every index's first occurrence, then of the second ones, and so on."""
    order, occurrence = _occurrences(flat)
    for k in range(int(occurrence.max()) + 1):
        yield order[occurrence == k]


def _occurrences(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    new = np.empty(flat.size, bool)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    lengths = np.diff(np.append(starts, flat.size))
    return order, np.arange(flat.size) - np.repeat(starts, lengths)


def accumulate(combine: Callable, rows: np.ndarray, flat: np.ndarray, updates: np.ndarray) -> None:
    """`rows[i] = combine(rows[i], update)` for each index in turn; `updates` may be one scalar for all."""
    if isinstance(combine, np.ufunc) and rows.ndim == 1:
        combine.at(rows, flat, updates)
        return
    if distinct(flat):
        rows[flat] = combine(rows.take(flat, axis=0), updates)
        return
    again = _repeats(flat)
    if len(again) <= _FEW:
        new = combine(rows.take(flat, axis=0), updates)
        for before, i in again:
            new[i] = combine(new[before], updates[i] if updates.ndim else updates)
        rows[flat] = new  # the last of several rows for one index remains
        return
    order, occurrence = _occurrences(flat)
    times, width = int(occurrence.max()) + 1, rows[0].size
    most = max(_MANY_TIMES, flat.size * width // _WORTH_A_PASS if width >= _WIDE else 0)
    if isinstance(combine, np.ufunc) and times > most:
        combine.at(rows, flat, updates)
        return
    for k in range(int(occurrence.max()) + 1):
        where = order[occurrence == k]
        at = flat[where]
        rows[at] = combine(rows.take(at, axis=0), updates[where] if updates.ndim else updates)


def _repeats(flat: np.ndarray) -> list[tuple[int, int]]:
    """The positions of indices that have occurred before, each after the last position where they did."""
    order = flat.argsort(kind="stable")
    ordered = flat.take(order)
    same = (ordered[1:] == ordered[:-1]).nonzero()[0]
    return list(zip(order.take(same).tolist(), order.take(same + 1).tolist(), strict=True))
