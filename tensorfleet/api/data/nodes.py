"""Datasets as the runtime keeps them: a `Node` can be run through any number of times, each time by a `Run`.

`Run.next(n, step)` gives a block of at least one and at most `n` elements, or None at the end. Nobody reads
ahead of what is asked for, except prefetching, which is for that; an iterator does so too, by one element of a run that
is `may_read_ahead`, when the steps between its elements leave time for it. An element that fails raises when its turn
comes; the next call goes on behind it.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensorfleet.api.data.blocks import Block, Column, Element, picked
from tensorfleet.api.data.record_origin import Opener, RecordSource, of_file
from tensorfleet.base import errors
from tensorfleet.base.types import Array
from tensorfleet.kernels import philox
from tensorfleet.kernels.aligned_memory import Recycler

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class DatasetRun(abc.ABC):
    """One way through a dataset."""

    #: the attributes that say where it is, and those that are runs themselves
    place: ClassVar[tuple[str, ...]] = ()
    inner: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements, at most `n`; None at the end."""

    def one(self, step: ExecutionContext) -> Element | None:
        """The components of the next element; None at the end."""
        block = self.next(1, step)
        return None if block is None else block.element(0)

    def may_read_ahead(self) -> bool:
        """Whether its elements may be read before they are asked for: reading them has no effect that anybody sees."""
        return False

    def close(self) -> None:
        """Ends it: stops its threads and closes its files. Most have none."""
        return None

    def save(self) -> dict[str, Any]:
        """Where it is, in plain values."""
        state = {name: getattr(self, name) for name in self.place}
        return state | {name: getattr(self, name).save() for name in self.inner}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Goes where another run of the same dataset was when it was saved. This one has given nothing yet."""
        if state.keys() != {*self.place, *self.inner}:
            raise other_dataset()
        for name in self.place:
            setattr(self, name, state[name])
        for name in self.inner:
            getattr(self, name).restore(state[name], step)


def other_dataset() -> errors.OpError:
    """The error for a state of another dataset."""
    return errors.invalid(
        "The saved iterator went through another dataset than this one. Build the pipeline as it was when the "
        "checkpoint was written (what `cache()` held in memory is not saved)."
    )


def cannot_save(what: str) -> errors.OpError:
    """The error of runs whose place cannot be saved."""
    return errors.FailedPreconditionError(None, None, f"The place of an iterator in {what} cannot be saved.")


class Node(abc.ABC):
    """A dataset."""

    @abc.abstractmethod
    def start(self, step: ExecutionContext) -> DatasetRun:
        """Begins to run through it."""


class StartNode(Node):
    """A dataset that a function starts."""

    def __init__(self, start: Callable[[ExecutionContext], DatasetRun]) -> None:
        self._start = start

    def start(self, step: ExecutionContext) -> DatasetRun:
        """Begins to run through it."""
        return self._start(step)


class DerivedRun(DatasetRun):
    """A run over the elements of another run."""

    inner = ("source",)
    #: whether it calls no function and writes nothing
    pure: ClassVar[bool] = False

    def __init__(self, source: DatasetRun) -> None:
        self.source = source

    def may_read_ahead(self) -> bool:
        """As its source is."""
        return self.pure and self.source.may_read_ahead()

    def close(self) -> None:
        """Ends the other."""
        self.source.close()


# -- values in memory --------------------------------------------------------------------------------


class RandomWords:
    """The numbers of a random stream, one after the other; more and more of them are made ahead."""

    _MAX_WORDS_AHEAD = 4096

    def __init__(self, stream: Array) -> None:
        self._stream, self._drawn = stream, 0
        self._ahead = (stream, 0, np.empty(0, np.uint32))  # of which stream, from which on, and these

    def words(self, count: int) -> Array:
        """The next ones, each of 32 bits."""
        stream, begin, words = self._ahead
        if stream is not self._stream or not begin <= self._drawn <= begin + len(words) - count:
            first = self._drawn // 4
            # As many as were drawn before: a short run makes few numbers in vain, a long one few calls.
            more = max(count, min(self._drawn, self._MAX_WORDS_AHEAD))
            offsets = np.arange(first, first + more // 4 + 2, dtype=np.uint64)
            begin, words = 4 * first, philox.blocks(np, self._stream, offsets).reshape(-1)
            self._ahead = (self._stream, begin, words)
        at = self._drawn - begin
        self._drawn += count
        return words[at : at + count]

    def position(self) -> list[Any]:
        """The stream and how many of its words were drawn, for `move_to`."""
        return [self._stream, self._drawn]

    def move_to(self, position: list[Any]) -> None:
        """Goes on from a position."""
        self._stream, self._drawn = position


class RandomRun(RandomWords, DatasetRun):
    """The words of a random stream in one column of int64."""

    place = ("_stream", "_drawn")

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next words."""
        count = min(n, 4096)
        return Block(count, [self.words(count).astype(np.int64)])


class CountingRun(DatasetRun):
    """start, start + step, ... in one column of int64."""

    place = ("_at", "_left")

    def __init__(self, start: int, stop: int, step: int = 1) -> None:
        self._at, self._step = start, step
        self._left = max(0, -((start - stop) // step))  # len(range(...)) has no room for the largest

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next numbers."""
        count = min(n, self._left)
        if count <= 0:
            return None
        numbers = np.arange(self._at, self._at + count * self._step, self._step, dtype=np.int64)
        self._at += count * self._step
        self._left -= count
        return Block(count, [numbers])

    def may_read_ahead(self) -> bool:
        """Nobody can."""
        return True


_NOWHERE: Array = np.empty(0, np.int64)
_POSITIONS_AHEAD = 1024
_MAX_NEAR_BYTES = 1 << 12  # bytes; more of them should start where XLA wants them


def _small(column: Column, n: int) -> bool:
    """Whether `n` rows take less time to copy than to ask for."""
    return (
        isinstance(column, np.ndarray)
        and n * column.dtype.itemsize * math.prod(column.shape[1:]) < _MAX_NEAR_BYTES
    )


class RowsRun(DatasetRun):
    """Rows of columns in memory, at the positions that another run gives: shuffling and repeating move no data."""

    place = ("_ahead",)
    inner = ("where",)

    def __init__(self, columns: Sequence[Column], where: DatasetRun, places: Column | None = None) -> None:
        self.columns = columns
        self.where = where
        self.places = places
        self._ahead = _NOWHERE  # positions that are known already: many are found as fast as one
        self._near: dict[int, Column] = {}  # of columns with small rows, those at these positions
        self._memory = [Recycler() for _ in columns]

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The rows at the next positions."""
        while self._ahead.size < min(n, _POSITIONS_AHEAD):
            # Whole multiples of the batch, so that a batch seldom spans two requests.
            block = self.where.next(n * max(1, _POSITIONS_AHEAD // n), step)
            if block is None:
                break
            (numbers,) = block.columns
            assert isinstance(numbers, np.ndarray)  # positions are numbers
            if self.columns and numbers.max() >= len(self.columns[0]):  # a restored place
                raise other_dataset()
            self._ahead = np.concatenate([self._ahead, numbers]) if self._ahead.size else numbers
            self._near = {i: picked(c, self._ahead) for i, c in enumerate(self.columns) if _small(c, n)}
        positions, self._ahead = self._ahead[:n], self._ahead[n:]
        if not positions.size:
            return None
        columns = [self._rows(i, positions) for i in range(len(self.columns))]
        places = None if self.places is None else picked(self.places, positions)
        return Block(positions.size, columns, places)

    def _rows(self, i: int, positions: Array) -> Column:
        near = self._near.get(i)
        if near is None:
            return picked(self.columns[i], positions, self._memory[i].empty)
        self._near[i] = near[positions.size :]
        return near[: positions.size]

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """The rows at the positions that were known are found anew."""
        super().restore(state, step)
        self._near = {}

    def may_read_ahead(self) -> bool:
        """As the positions are."""
        return self.where.may_read_ahead()

    def close(self) -> None:
        """Ends the positions."""
        self.where.close()


class ColumnSlices(Node):
    """The rows of columns."""

    def __init__(self, columns: Sequence[Column], size: int, places: Column | None = None) -> None:
        self.columns = columns
        self.size = size
        self.places = places

    def start(self, step: ExecutionContext) -> DatasetRun:
        """Begins with the first row."""
        return RowsRun(self.columns, CountingRun(0, self.size), self.places)


def on_positions(run: DatasetRun, make: Callable[[DatasetRun], DatasetRun]) -> DatasetRun:
    """Applies a transformation that does not look at the elements; of rows in memory only the positions pass through it."""
    if isinstance(run, RowsRun):
        return RowsRun(run.columns, make(run.where), run.places)
    return make(run)


# -- files -------------------------------------------------------------------------------------------


class FilesRun(DatasetRun):
    """The records of files, one file after the other.

    A damaged file is given up at the damage; the one after it comes next. A file that cannot be opened stays an
    error.
    """

    def __init__(self, names: Sequence[bytes], begin: Opener) -> None:
        self._names = list(names)
        self._begin = begin
        self._next = 0
        self._source: RecordSource | None = None
        self._given = 0  # records of the current file

    @property
    def current(self) -> str:
        """The name of the file that was read from last."""
        return self._names[self._next - 1].decode(errors="replace") if self._next else ""

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next records of the current file."""
        while True:
            if self._source is None:
                if self._next >= len(self._names):
                    return None
                self._source = self._begin(self._names[self._next])
                self._next += 1
                self._given = 0
            try:
                records = self._source.read_many(n)
            except errors.OpError:
                self.close()
                raise
            if records:
                first = of_file(self._names[self._next - 1], self._begin) + self._given
                self._given += len(records)
                column = np.empty(len(records), object)
                # Assigned to a slice: `np.array(found)` would look into the bytes and make them fixed-length.
                column[:] = records
                return Block(len(records), [column], np.arange(first, first + len(records)))
            self.close()

    def may_read_ahead(self) -> bool:
        """Files are read in large pieces anyway."""
        return True

    def close(self) -> None:
        """Closes the current file."""
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def offset_of(self, index: int) -> int:
        """Where in the current file a record starts."""
        source = self._begin(self._names[self._next - 1])
        try:
            return source.offset_of(index)
        finally:
            source.close()

    def save(self) -> dict[str, Any]:
        """The file and how many of its records were given."""
        records = self._given if self._source is not None else -1
        return {"files": self._next, "records": records}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Opens the file and passes over the records."""
        if state.keys() != {"files", "records"} or state["files"] > len(self._names):
            raise other_dataset()
        self._next, left = state["files"], state["records"]
        if left >= 0:
            self._source, self._given = self._begin(self._names[self._next - 1]), left
            while left > 0 and (passed := self._source.read_many(min(left, 4096))):
                left -= len(passed)
