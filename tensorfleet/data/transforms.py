"""What is done to datasets without calling a function: shuffling, repeating, batching and the like."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet import errors
from tensorfleet.data.blocks import Block, Column, column_of, picked, row
from tensorfleet.data.nodes import From, Node, Rows, Run, Through, on_positions, other_dataset
from tensorfleet.data.places import UNKNOWN


class Take(Through):
    """The first `count` elements; all when negative."""

    place = ("_left",)
    passive = True

    def __init__(self, source: Run, count: int) -> None:
        super().__init__(source)
        self._left = count if count >= 0 else 1 << 62

    def next(self, n: int, step: Any) -> Block | None:
        """The next elements while there are some to be taken."""
        if self._left <= 0:
            return None
        block = self.source.next(min(n, self._left), step)
        if block is not None:
            self._left -= block.size
        return block


class Skip(Through):
    """All but the first `count` elements; none when negative."""

    place = ("_left",)
    passive = True

    def __init__(self, source: Run, count: int) -> None:
        super().__init__(source)
        self._left = count

    def next(self, n: int, step: Any) -> Block | None:
        """The next elements, after passing over the first."""
        if self._left < 0:
            return None
        while self._left:
            block = self.source.next(min(self._left, 4096), step)
            if block is None:
                self._left = -1
                return None
            self._left -= block.size
        return self.source.next(n, step)


class Shard(Through):
    """Every `count`-th element, from the `index`-th on."""

    place = ("_away",)
    passive = True

    def __init__(self, source: Run, count: int, index: int) -> None:
        super().__init__(source)
        self._count = count
        self._away = index  # how many elements stand before the next one of ours

    def next(self, n: int, step: Any) -> Block | None:
        """The next elements of this shard."""
        while True:
            block = self.source.next(self._away + (n - 1) * self._count + 1, step)
            if block is None:
                return None
            mine = np.arange(self._away, block.size, self._count)
            self._away = (self._away - block.size) % self._count
            if len(mine):
                return block.pick(mine) if len(mine) < block.size else block


class Repeat(Run):
    """A dataset again and again; for ever when `count` is negative."""

    def __init__(self, start: Callable[[Any], Run], first: Run, count: int) -> None:
        self._start = start
        self._run: Run | None = first
        self._left = count if count >= 0 else 1 << 62
        self._some = False

    def next(self, n: int, step: Any) -> Block | None:
        """The next elements."""
        while self._left > 0:
            if self._run is None:
                self._run = self._start(step)
            block = self._run.next(n, step)
            if block is not None:
                self._some = True
                return block
            self.close()
            self._left -= 1
            if not self._some:
                break  # an empty dataset stays empty, however often
        return None

    def silent(self) -> bool:
        """As the current round is."""
        return self._run is None or self._run.silent()

    def close(self) -> None:
        """Ends the current round."""
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def save(self) -> dict[str, Any]:
        """The rounds that are left and the place in this one."""
        inside = None if self._run is None else self._run.save()
        return {"left": self._left, "some": self._some, "round": inside}

    def restore(self, state: dict[str, Any], step: Any) -> None:
        """Goes on in a round."""
        if state.keys() != {"left", "some", "round"}:
            raise other_dataset()
        self._left, self._some = state["left"], state["some"]
        if self._run is not None and state["round"] is not None:
            self._run.restore(state["round"], step)
        else:
            self.close()


def repeated(node: Node, count: int) -> Node:
    """A dataset `count` times."""

    def start(step: Any) -> Run:
        first = node.start(step)
        if isinstance(first, Rows):
            again = lambda s: node.start(s).where  # type: ignore[attr-defined]  # noqa: E731
            return Rows(first.columns, Repeat(again, first.where, count), first.places)
        return Repeat(node.start, first, count)

    return From(start)


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


# -- several datasets --------------------------------------------------------------------------------


class Zip(Run):
    """Elements of several datasets side by side, until the first ends.

    When one of them fails, the others pass over what stood beside its element: those behind it stay together.
    """

    def __init__(self, sources: Sequence[Run]) -> None:
        self._sources = sources
        self._ahead: list[Block | None] = [None] * len(sources)  # what waits for the others

    def next(self, n: int, step: Any) -> Block | None:
        """The next elements of all."""
        for i, source in enumerate(self._sources):
            if self._ahead[i] is None:
                try:
                    self._ahead[i] = source.next(n, step)
                except errors.OpError:
                    if step.reason is None:
                        self._pass_over(i, step)
                    raise
            block = self._ahead[i]
            if block is None:
                return None
            n = min(n, block.size)
        found = [b.part(0, n) for b in self._ahead if b is not None]
        self._ahead = [None if b is None or b.size == n else b.part(n, b.size) for b in self._ahead]
        places = next((b.places for b in found if b.places is not None), None)
        return Block(n, [c for b in found for c in b.columns], places)

    def silent(self) -> bool:
        """If all are."""
        return all(source.silent() for source in self._sources)

    def _pass_over(self, failed: int, step: Any) -> None:
        """Drops one element of all but one."""
        for i, source in enumerate(self._sources):
            block = self._ahead[i]
            if block is not None:
                self._ahead[i] = block.part(1, block.size) if block.size > 1 else None
            elif i != failed:
                with contextlib.suppress(errors.OpError):
                    source.next(1, step)

    def close(self) -> None:
        """Ends all."""
        for source in self._sources:
            source.close()

    def save(self) -> dict[str, Any]:
        """The place in each."""
        return {"sources": [source.save() for source in self._sources], "ahead": self._ahead}

    def restore(self, state: dict[str, Any], step: Any) -> None:
        """Goes to the place in each."""
        if len(state.get("sources", ())) != len(self._sources) or "ahead" not in state:
            raise other_dataset()
        self._ahead = state["ahead"]
        for source, inside in zip(self._sources, state["sources"], strict=True):
            source.restore(inside, step)


class Chain(Run):
    """One dataset after the other."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._begun = 0
        self._run: Run | None = None

    def next(self, n: int, step: Any) -> Block | None:
        """The next elements."""
        while self._run is not None or self._begun < len(self._nodes):
            if self._run is None:
                self._run = self._nodes[self._begun].start(step)
                self._begun += 1
            block = self._run.next(n, step)
            if block is not None:
                return block
            self.close()
        return None

    def close(self) -> None:
        """Ends the current one."""
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def save(self) -> dict[str, Any]:
        """Which one it is at, and the place in it."""
        return {"begun": self._begun, "current": None if self._run is None else self._run.save()}

    def restore(self, state: dict[str, Any], step: Any) -> None:
        """Goes on in that one."""
        if state.keys() != {"begun", "current"} or state["begun"] > len(self._nodes):
            raise other_dataset()
        self._begun = state["begun"]
        if state["current"] is not None:
            self._run = self._nodes[self._begun - 1].start(step)
            self._run.restore(state["current"], step)


class Directed(Through):
    """Elements of several datasets, each of the one whose number comes next."""

    def __init__(self, source: Run, runs: Sequence[Run], stop: bool) -> None:
        super().__init__(source)
        self._runs: list[Run | None] = list(runs)
        self._stop = stop

    def next(self, n: int, step: Any) -> Block | None:
        """The next element of the chosen dataset; those that have ended are passed over."""
        while any(run is not None for run in self._runs):
            choice = self.source.next(1, step)
            if choice is None:
                return None
            at = int(choice.columns[0][0])
            if not 0 <= at < len(self._runs):
                text = f"Selector index out of range: {at} >= {len(self._runs)}"
                raise errors.InvalidArgumentError(None, None, text)
            run = self._runs[at]
            block = None if run is None else run.next(1, step)
            if block is not None:
                return block
            if self._stop:
                return None
            self._runs[at] = None
        return None

    def close(self) -> None:
        """Ends all."""
        super().close()
        for run in self._runs:
            if run is not None:
                run.close()

    def save(self) -> dict[str, Any]:
        """The place in each that has not ended."""
        return {"source": self.source.save(), "runs": [None if r is None else r.save() for r in self._runs]}

    def restore(self, state: dict[str, Any], step: Any) -> None:
        """Goes to the place in each."""
        if len(state.get("runs", ())) != len(self._runs):
            raise other_dataset()
        self.source.restore(state["source"], step)
        for i, inside in enumerate(state["runs"]):
            run = self._runs[i]
            if run is not None and inside is not None:
                run.restore(inside, step)
            elif run is not None:
                run.close()
                self._runs[i] = None


class IgnoreErrors(Through):
    """Elements that fail are left out."""

    def next(self, n: int, step: Any) -> Block | None:
        """The next elements without an error."""
        last = ""
        while True:
            try:
                return self.source.next(n, step)
            except (errors.CancelledError, errors.DeadlineExceededError):
                raise
            except errors.OpError as e:
                if e.message == last:
                    return None  # it will never end: a file that is not there
                last = e.message


class Unique(Through):
    """The elements not seen before."""

    place = ("_seen",)

    def __init__(self, source: Run) -> None:
        super().__init__(source)
        self._seen: set = set()

    def next(self, n: int, step: Any) -> Block | None:
        """The next new elements."""
        while (block := self.source.next(n, step)) is not None:
            new = []
            for i, value in enumerate(block.columns[0]):
                key = value if isinstance(value, bytes) else np.asarray(value).item()
                if key not in self._seen:
                    self._seen.add(key)
                    new.append(i)
            if new:
                return block.pick(new)
        return None
