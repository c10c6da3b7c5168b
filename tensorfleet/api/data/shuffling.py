"""A dataset in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.blocks import Block, Column, column_of, picked, row
from tensorfleet.api.data.nodes import (
    DatasetRun,
    DerivedRun,
    Node,
    RandomWords,
    StartNode,
    on_positions,
    other_dataset,
)
from tensorfleet.api.data.record_origin import UNKNOWN
from tensorfleet.base.types import Array
from tensorfleet.kernels import philox

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class ShuffleRun(DerivedRun):
    """Each element drawn at random from a buffer that is kept full as long as there are elements.

    The first element of the buffer takes the place of the one that is drawn, as in TensorFlow: the same seeds give the
    same order.
    """

    pure = True

    def __init__(self, source: DatasetRun, size: int, random: RandomWords, rounds: ShuffleSeeds) -> None:
        super().__init__(source)
        self._size = size
        self._random = random
        self._rounds = rounds
        self._columns: list[Column] | None = None
        self._live: list[int] = []  # rows of the buffer that hold elements, behind those that were drawn
        self._start = 0
        self._free = np.empty(0, np.int64)
        self._ended = self._placed = False

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """Elements drawn one after the other, each replaced by a new one."""
        fresh = self._refill(n - 1, step)
        count = len(self._live) - self._start
        if not count:
            return None
        self._live.extend(fresh.tolist())
        if self._ended:
            rows = self._drawn(count - np.arange(min(n, count)))
        else:
            rows = self._drawn(np.full(len(fresh) + 1, count))
        block = self._block(rows)
        if not self._ended:
            self._free = np.concatenate([self._free, rows])
        return block

    def _drawn(self, counts: Array) -> Array:
        """One draw from each of these numbers of elements, each beginning one further on."""
        live, start = self._live, self._start
        places = start + np.arange(len(counts)) + self._random.words(len(counts)) % counts
        rows = []
        for first, place in enumerate(places.tolist(), start):
            rows.append(live[place])
            live[place] = live[first]
        self._start = start + len(rows)
        # Drawn rows are cut off in bulk: removing each from the front would move all the others.
        if self._start > len(live) // 2:
            del live[: self._start]
            self._start = 0
        return np.array(rows, np.int64)

    def _refill(self, more: int, step: ExecutionContext) -> Array:
        """Fills the buffer up; up to `more` elements beside it, to replace those drawn next."""
        while not self._ended and len(self._live) - self._start < self._size:
            missing = self._size - (len(self._live) - self._start)
            rows = self._fetch(missing + more, step)
            self._live.extend(rows[:missing].tolist())
            if len(rows) >= missing:
                return rows[missing:]
        return self._fetch(0 if self._ended else more, step)

    def _fetch(self, n: int, step: ExecutionContext) -> Array:
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
            # The buffer grows with the data: `buffer_size` may be far larger than the dataset.
            self._columns = [_buffer(c, max(16, block.size)) for c in columns]
            self._free = np.arange(max(16, block.size))
        while len(self._free) < block.size:
            self._grow(block.size)
        rows, self._free = self._free[: block.size], self._free[block.size :]
        for i, column in enumerate(columns):
            self._columns[i] = _put(self._columns[i], rows, column)
        return rows

    def _block(self, rows: Array) -> Block:
        columns = [_at(c, rows) for c in self._columns or ()]
        return Block(len(rows), columns[:-1], columns[-1]) if self._placed else Block(len(rows), columns)

    def save(self) -> dict[str, Any]:
        """The elements in the buffer and the state of the random numbers."""
        held = self._block(np.array(self._live[self._start :], np.int64))
        state = {"held": held, "ended": self._ended, "random": self._random.position()}
        return {**state, "rounds": self._rounds.random.position(), "source": self.source.save()}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Fills the buffer again."""
        if state.keys() != {"held", "ended", "random", "rounds", "source"}:
            raise other_dataset()
        held = state["held"]
        self._columns, self._live, self._start = held.columns or None, list(range(held.size)), 0
        self._ended = state["ended"]
        for random, place in ((self._random, state["random"]), (self._rounds.random, state["rounds"])):
            random.move_to(place)
        self.source.restore(state["source"], step)

    def _grow(self, need: int) -> None:
        assert self._columns is not None
        old = len(self._columns[0])
        # Doubling, so that the copies of a growing buffer stay linear in its size.
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


def _put(buffer: Column, rows: Array, column: Column) -> Column:
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


def _at(buffer: Column, rows: Array) -> Column:
    if isinstance(buffer, list):
        return column_of([buffer[r] for r in rows.tolist()])
    return picked(buffer, rows)


def shuffled(node: Node, size: int, seeds: tuple[int, int], again: bool) -> Node:
    """A dataset in random order: another one each time if `again`, and always the same ones for the same seeds."""
    rounds = ShuffleSeeds(seeds, again)

    def start(step: ExecutionContext) -> DatasetRun:
        random = rounds.next()
        return on_positions(node.start(step), lambda run: ShuffleRun(run, size, random, rounds))

    return StartNode(start)


class ShuffleSeeds:
    """Gives every run through a shuffled dataset its random numbers: others each time if `again`."""

    def __init__(self, seeds: tuple[int, int], again: bool) -> None:
        self.random, self._again = RandomWords(philox.initial_state(*seeds)), again
        # Two zeros ask for a random start.
        self._seeds = seeds if any(seeds) else self._next_seeds()

    def next(self) -> RandomWords:
        """Those of the next run."""
        return RandomWords(philox.initial_state(*(self._next_seeds() if self._again else self._seeds)))

    def _next_seeds(self) -> tuple[int, int]:
        one, other = self.random.words(2).tolist()
        return one, other
