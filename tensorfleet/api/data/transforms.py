"""Transformations of datasets that call no function: taking, repeating, joining and the like."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.blocks import Block
from tensorfleet.api.data.nodes import DatasetRun, DerivedRun, Node, RowsRun, StartNode, other_dataset
from tensorfleet.base import errors

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class TakeRun(DerivedRun):
    """The first `count` elements; all when negative."""

    place = ("_left",)
    pure = True

    def __init__(self, source: DatasetRun, count: int) -> None:
        super().__init__(source)
        self._left = count if count >= 0 else 1 << 62

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements while there are some to be taken."""
        if self._left <= 0:
            return None
        block = self.source.next(min(n, self._left), step)
        if block is not None:
            self._left -= block.size
        return block


class SkipRun(DerivedRun):
    """All but the first `count` elements; none when negative."""

    place = ("_left",)
    pure = True

    def __init__(self, source: DatasetRun, count: int) -> None:
        super().__init__(source)
        self._left = count

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements, after passing over the first."""
        if self._left < 0:
            return None
        while self._left:
            # In blocks of 4096: passing over a million elements must not hold a million of them.
            block = self.source.next(min(self._left, 4096), step)
            if block is None:
                self._left = -1
                return None
            self._left -= block.size
        return self.source.next(n, step)


class ShardRun(DerivedRun):
    """Every `count`-th element, from the `index`-th on."""

    place = ("_away",)
    pure = True

    def __init__(self, source: DatasetRun, count: int, index: int) -> None:
        super().__init__(source)
        self._count = count
        self._away = index  # how many elements stand before the next one of ours

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements of this shard."""
        while True:
            block = self.source.next(self._away + (n - 1) * self._count + 1, step)
            if block is None:
                return None
            mine = np.arange(self._away, block.size, self._count)
            self._away = (self._away - block.size) % self._count
            if len(mine):
                return block.pick(mine) if len(mine) < block.size else block


class _InTurnRun(DatasetRun):
    """A run that goes through several others, one after the other."""

    _run: DatasetRun | None

    def close(self) -> None:
        """Ends the current one."""
        run, self._run = self._run, None
        if run is not None:
            run.close()


class RepeatRun(_InTurnRun):
    """A dataset again and again; for ever when `count` is negative."""

    def __init__(
        self, start: Callable[[ExecutionContext], DatasetRun], first: DatasetRun, count: int
    ) -> None:
        self._start = start
        self._run = first
        self._left = count if count >= 0 else 1 << 62
        self._some = False

    def next(self, n: int, step: ExecutionContext) -> Block | None:
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

    def may_read_ahead(self) -> bool:
        """As the current round is."""
        return self._run is None or self._run.may_read_ahead()

    def save(self) -> dict[str, Any]:
        """The rounds that are left and the place in this one."""
        inside = None if self._run is None else self._run.save()
        return {"left": self._left, "some": self._some, "round": inside}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
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

    def start(step: ExecutionContext) -> DatasetRun:
        first = node.start(step)
        if isinstance(first, RowsRun):
            again = lambda s: node.start(s).where  # type: ignore[attr-defined]  # noqa: E731
            return RowsRun(first.columns, RepeatRun(again, first.where, count), first.places)
        return RepeatRun(node.start, first, count)

    return StartNode(start)


# -- several datasets --------------------------------------------------------------------------------


class ZipRun(DatasetRun):
    """Elements of several datasets side by side, until the first ends.

    When one of them fails, the others pass over the elements beside it: those behind it stay together.
    """

    def __init__(self, sources: Sequence[DatasetRun]) -> None:
        self._sources = sources
        self._ahead: list[Block | None] = [None] * len(sources)  # elements that wait for the others

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements of all."""
        for i, source in enumerate(self._sources):
            if self._ahead[i] is None:
                try:
                    self._ahead[i] = source.next(n, step)
                except errors.OpError:
                    # If the step was cancelled, no element failed, and none may be passed over.
                    if step.reason is None:
                        self._pass_over(i, step)
                    raise
            block = self._ahead[i]
            if block is None:
                return None
            # No source is asked for more than all before it had: less stays behind when one of them ends.
            n = min(n, block.size)
        blocks = [b.part(0, n) for b in self._ahead if b is not None]
        self._ahead = [None if b is None or b.size == n else b.part(n, b.size) for b in self._ahead]
        places = next((b.places for b in blocks if b.places is not None), None)
        return Block(n, [c for b in blocks for c in b.columns], places)

    def may_read_ahead(self) -> bool:
        """If all are."""
        return all(source.may_read_ahead() for source in self._sources)

    def _pass_over(self, failed: int, step: ExecutionContext) -> None:
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

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Goes to the place in each."""
        if len(state.get("sources", ())) != len(self._sources) or "ahead" not in state:
            raise other_dataset()
        self._ahead = state["ahead"]
        for source, inside in zip(self._sources, state["sources"], strict=True):
            source.restore(inside, step)


class ChainRun(_InTurnRun):
    """One dataset after the other."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._begun = 0
        self._run = None

    def next(self, n: int, step: ExecutionContext) -> Block | None:
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

    def save(self) -> dict[str, Any]:
        """Which one it is at, and the place in it."""
        return {"begun": self._begun, "current": None if self._run is None else self._run.save()}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Goes on in that one."""
        if state.keys() != {"begun", "current"} or state["begun"] > len(self._nodes):
            raise other_dataset()
        self._begun = state["begun"]
        if state["current"] is not None:
            self._run = self._nodes[self._begun - 1].start(step)
            self._run.restore(state["current"], step)


class DirectedRun(DerivedRun):
    """Elements of several datasets, each of the one whose number comes next."""

    def __init__(self, source: DatasetRun, runs: Sequence[DatasetRun], stop: bool) -> None:
        super().__init__(source)
        self._runs: list[DatasetRun | None] = list(runs)
        self._stop = stop

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next element of the chosen dataset; those that have ended are passed over."""
        while any(run is not None for run in self._runs):
            choice = self.source.next(1, step)
            if choice is None:
                return None
            at = int(choice.columns[0][0])
            if not 0 <= at < len(self._runs):
                text = f"Selector index out of range: {at} >= {len(self._runs)}"
                raise errors.invalid(text)
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

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
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


class IgnoreErrorsRun(DerivedRun):
    """Elements that fail are left out."""

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements without an error."""
        last = ""
        while True:
            try:
                return self.source.next(n, step)
            except (errors.CancelledError, errors.DeadlineExceededError):
                raise
            except errors.OpError as e:
                # The same error twice in a row: the source stays where it is.
                if e.message == last:
                    return None  # it will never end: a file that is not there
                last = e.message


class UniqueRun(DerivedRun):
    """The elements not seen before."""

    place = ("_seen",)

    def __init__(self, source: DatasetRun) -> None:
        super().__init__(source)
        self._seen: set[Hashable] = set()

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next new elements."""
        while (block := self.source.next(n, step)) is not None:
            new = []
            for i, value in enumerate(block.columns[0]):
                key = _key(value)
                if key not in self._seen:
                    self._seen.add(key)
                    new.append(i)
            if new:
                return block.pick(new)
        return None


def _key(value: object) -> Hashable:
    """A key that only equal values share."""
    array = np.asarray(value)
    if array.ndim == 0:
        return value if isinstance(value, bytes) else array.item()
    return array.shape, tuple(array.ravel().tolist())
