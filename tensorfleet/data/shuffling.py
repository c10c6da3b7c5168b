"""A dataset in random order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.data.blocks import Block, Column, column_of, picked, row
from tensorfleet.data.nodes import From, Node, Run, Through, on_positions, other_dataset
from tensorfleet.data.places import UNKNOWN


class Shuffle(Through):
    """Each element drawn at random from a buffer that is kept full as long as there are elements."""

    passive = True

    def __init__(self, source: Run, size: int, random: np.random.Generator, rounds: Rounds) -> None:
        super().__init__(source)
        self._size = size
        self._random = random
        self._rounds = rounds
        self._columns: list[Any] | None = None
        self._live = np.empty(0, np.int64)  # rows of the buffer that hold elements, in no order
        self._free = np.empty(0, np.int64)
        self._ended = self._mixed = self._placed = False

    def next(self, n: int, step: Any) -> Block | None:
        """Elements drawn one after the other, each replaced by a new one."""
        fresh = self._refill(n - 1, step)
        if not len(self._live):
            return None
        rows = self._last(n) if self._ended else self._drawn(fresh)
        block = self._block(rows)
        if not self._ended:
            self._free = np.concatenate([self._free, rows])
        return block

    def _drawn(self, fresh: np.ndarray) -> np.ndarray:
        """As many draws as there are fresh elements, each of which takes the place of one drawn; then one more."""
        live = self._live
        at = (self._random.random(len(fresh) + 1) * len(live)).astype(np.int64)
        rows = live[at]
        order = np.argsort(at, kind="stable")
        again = np.flatnonzero(at[order[1:]] == at[order[:-1]])
        rows[order[again + 1]] = fresh[order[again]]  # a place drawn twice holds what came in between
        live[at[:-1]] = fresh  # of several, the last stays
        live[at[-1]] = live[-1]
        self._live = live[:-1]
        return rows

    def _last(self, n: int) -> np.ndarray:
        """Draws without replacement: nothing comes any more."""
        if not self._mixed:
            self._live = self._random.permutation(self._live)
            self._mixed = True
        rows, self._live = self._live[-n:], self._live[:-n]
        return rows

    def _refill(self, more: int, step: Any) -> np.ndarray:
        """Fills the buffer up; up to `more` elements beside it, to replace those drawn next."""
        while not self._ended and len(self._live) < self._size:
            missing = self._size - len(self._live)
            rows = self._fetch(missing + more, step)
            self._live = np.concatenate([self._live, rows[:missing]])
            if len(rows) >= missing:
                return rows[missing:]
        return self._fetch(0 if self._ended else more, step)

    def _fetch(self, n: int, step: Any) -> np.ndarray:
        """Puts up to `n` new elements into free rows of the buffer; those rows."""
        if n <= 0:
            return self._free[:0]
        block = self.source.next(n, step)
        if block is None:
            self._ended = True
            return self._free[:0]
        if block.places is not None and not self._placed:
            self._placed = True
            if self._columns is not None:
                self._columns.append(np.full(len(self._columns[0]), UNKNOWN))
        columns = block.columns
        if self._placed:  # the places are one more column
            columns = [*columns, np.full(block.size, UNKNOWN) if block.places is None else block.places]
        if self._columns is None:
            self._columns = [_buffer(c, max(16, block.size)) for c in columns]
            self._free = np.arange(max(16, block.size))
        while len(self._free) < block.size:
            self._grow(block.size)
        rows, self._free = self._free[: block.size], self._free[block.size :]
        for i, column in enumerate(columns):
            self._columns[i] = _put(self._columns[i], rows, column)
        return rows

    def _block(self, rows: np.ndarray) -> Block:
        columns = [_at(c, rows) for c in self._columns or ()]
        return Block(len(rows), columns[:-1], columns[-1]) if self._placed else Block(len(rows), columns)

    def save(self) -> dict[str, Any]:
        """The elements in the buffer and what the next draws depend on."""
        held = self._block(self._live)
        state = {"held": held, "ended": self._ended, "mixed": self._mixed, "random": self._random}
        return {**state, "rounds": self._rounds.random, "source": self.source.save()}

    def restore(self, state: dict[str, Any], step: Any) -> None:
        """Fills the buffer again."""
        if state.keys() != {"held", "ended", "mixed", "random", "rounds", "source"}:
            raise other_dataset()
        held = state["held"]
        self._columns, self._live = held.columns or None, np.arange(held.size)
        self._ended, self._mixed, self._random = state["ended"], state["mixed"], state["random"]
        self._rounds.random = state["rounds"]
        self.source.restore(state["source"], step)

    def _grow(self, need: int) -> None:
        assert self._columns is not None
        old = len(self._columns[0])
        new = max(need, old)
        self._columns = [_grown(c, new) for c in self._columns]
        self._free = np.concatenate([self._free, np.arange(old, old + new)])


def _buffer(column: Column, size: int) -> Column:
    if isinstance(column, list):
        return [None] * size
    return np.empty((size, *column.shape[1:]), column.dtype)


def _grown(buffer: Column, more: int) -> Column:
    if isinstance(buffer, list):
        return buffer + [None] * more
    return np.concatenate([buffer, np.empty((more, *buffer.shape[1:]), buffer.dtype)])


def _put(buffer: Column, rows: np.ndarray, column: Column) -> Column:
    fits = (
        not isinstance(buffer, list) and not isinstance(column, list) and buffer.shape[1:] == column.shape[1:]
    )
    if fits:
        buffer[rows] = column
        return buffer
    if not isinstance(buffer, list):
        buffer = [row(buffer, i) for i in range(len(buffer))]
    for i, r in enumerate(rows.tolist()):
        buffer[r] = row(column, i)
    return buffer


def _at(buffer: Column, rows: np.ndarray) -> Column:
    if isinstance(buffer, list):
        return column_of([buffer[r] for r in rows.tolist()])
    return picked(buffer, rows)


def shuffled(node: Node, size: int, seeds: tuple[int, int], again: bool) -> Node:
    """A dataset in random order: another one each time if `again`, and always the same ones for the same seeds."""
    seed = None if seeds == (0, 0) else [s % (1 << 64) for s in seeds]
    rounds = Rounds(np.random.default_rng(seed))
    fixed = rounds.seed()

    def start(step: Any) -> Run:
        random = np.random.default_rng(rounds.seed() if again else fixed)
        return on_positions(node.start(step), lambda run: Shuffle(run, size, random, rounds))

    return From(start)


class Rounds:
    """What gives every run through a shuffled dataset its seed."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def seed(self) -> int:
        """The next one."""
        return int(self.random.integers(1 << 62))
