"""Transformations of datasets that call functions: mapping, filtering, scanning, grouping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.blocks import Block, Element, block_of, joined
from tensorfleet.api.data.calls import DatasetFunction
from tensorfleet.api.data.nodes import ColumnSlices, DatasetRun, DerivedRun, Node, cannot_save, other_dataset
from tensorfleet.api.data.record_origin import describe
from tensorfleet.base import errors, logging
from tensorfleet.kernels.record_origin import one_of
from tensorfleet.ops.control.host_ops import GONE

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class MapRun(DerivedRun):
    """A function of every element."""

    place = ("_count", "_rest", "_failure")

    def __init__(self, source: DatasetRun, function: DatasetFunction) -> None:
        super().__init__(source)
        self._function = function
        self._count = 0
        self._rest: Block | None = None  # elements behind one that failed
        self._failure: errors.OpError | None = None

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The function's results for the next elements."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        # Elements behind a failed one come first: they were taken from the source already.
        block, self._rest = self._rest, None
        if block is None:
            block = self.source.next(n, step)
        if block is None:
            return None
        if block.size > n:
            block, self._rest = block.part(0, n), block.part(n, block.size)
        columns = self._function.call_block(block, step)
        if columns is None:
            return self._one_by_one(block, step)
        self._count += block.size
        return Block(block.size, columns, block.places)

    def may_read_ahead(self) -> bool:
        """If the function has no effects."""
        return self._function.by_block and self.source.may_read_ahead()

    def _one_by_one(self, block: Block, step: ExecutionContext) -> Block:
        elements: list[Element] = []
        for i in range(block.size):
            self._count += 1
            try:
                elements.append(self._function.call(block.element(i), step))
            except errors.OpError as e:
                name_element(e, self._count - 1, block, i)
                if i + 1 < block.size:
                    rest = block.part(i + 1, block.size)
                    self._rest = rest if self._rest is None else joined([rest, self._rest])
                if not elements:
                    raise
                # The elements before it are given first; the failure is raised when its turn comes.
                self._failure = e
                break
        return block_of(elements, block.part(0, len(elements)).places)


def name_element(error: errors.OpError, number: int, block: Block, i: int = 0) -> None:
    """Adds to an error of a function which element it was called with, the i-th of a block, and where that came from."""
    origin = "" if block.places is None else describe(one_of(block.places[i], error.message))
    place = f"; {origin}" if origin else ""
    error._message = f"{error.message} (in element {number} of the dataset{place})"


class FilterRun(DerivedRun):
    """The elements for which a function gives True."""

    inner = ("_keep",)

    def __init__(self, source: DatasetRun, function: DatasetFunction) -> None:
        super().__init__(source)
        self._keep = _WithResults(source, function)

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements that are kept."""
        while (block := self._keep.next(n, step)) is not None:
            kept = np.flatnonzero(np.asarray(block.columns[-1], np.bool_))
            columns = block.columns[:-1]
            if len(kept) == block.size:
                return Block(block.size, columns, block.places)
            if len(kept):
                return Block(block.size, columns, block.places).pick(kept.tolist())
        return None

    def may_read_ahead(self) -> bool:
        """If the function has no effects."""
        return self._keep.may_read_ahead()


class _WithResults(MapRun):
    """Elements together with the results of a function for each."""

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements, each with its result as last component."""
        block = (
            self.source.next(n if self._function.by_block else 1, step) if self._rest is None else self._rest
        )
        self._rest = None
        if block is None:
            return None
        columns = self._function.call_block(block, step)
        if columns is not None:
            self._count += block.size
            return Block(block.size, [*block.columns, *columns], block.places)
        # One element at a time: the error of a later one must come at its turn.
        first = block.part(0, 1)
        if block.size > 1:
            self._rest = block.part(1, block.size)
        mapped = self._one_by_one(first, step)
        return Block(1, [*first.columns, *mapped.columns], first.places)


class TakeWhileRun(DerivedRun):
    """The elements before the first for which a function does not give True."""

    place, inner = ("_ended",), ("_keep",)

    def __init__(self, source: DatasetRun, function: DatasetFunction) -> None:
        super().__init__(source)
        self._keep = _WithResults(source, function)
        self._ended = False

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements."""
        block = None if self._ended else self._keep.next(n, step)
        if block is None:
            return None
        kept = np.asarray(block.columns[-1], np.bool_)
        # `argmin` of booleans is the first False.
        count = block.size if kept.all() else int(np.argmin(kept))
        self._ended = count < block.size
        whole = Block(block.size, block.columns[:-1], block.places)
        return whole.part(0, count) if count else None


class ScanRun(DerivedRun):
    """A function of a state and every element, giving the next state and a new element."""

    place = ("_state", "_count")

    def __init__(self, source: DatasetRun, function: DatasetFunction, state: Sequence[Any]) -> None:
        super().__init__(source)
        self._count = 0
        self._function = function
        self._state = list(state)

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next new element."""
        block = self.source.next(1, step)
        if block is None:
            return None
        self._count += 1
        try:
            results = self._function.call([*self._state, *block.element(0)], step)
        except errors.OpError as e:
            name_element(e, self._count - 1, block)
            raise
        count = len(self._state)
        self._state = results[:count]
        return block_of([results[count:]], block.places)


# Elements that are sorted into groups at a time, where reading them early cannot be told.
_SORTED_AT_ONCE = 64


class GroupByWindowRun(DerivedRun):
    """Elements with the same key, so many together, each group as the dataset that a function makes of it."""

    def __init__(
        self, source: DatasetRun, key: DatasetFunction, reduce: DatasetFunction, size: DatasetFunction
    ) -> None:
        super().__init__(source)
        self._keyed = _WithResults(source, key)
        self._reduce = reduce
        self._size = size
        self._groups: dict[int, list[Block]] = {}
        self._sizes: dict[int, int] = {}
        self._unsorted: Block | None = None  # elements that are in no group yet, with their keys
        #: a key, its elements, and the run through the dataset that the function made of them
        self._current: tuple[int, Block, DatasetRun] | None = None
        self._ended = False

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements of the current group."""
        while True:
            if self._current is not None:
                block = self._current[2].next(n, step)
                if block is not None:
                    return block
                self._current[2].close()
                self._current = None
            key = self._full(step)
            if key is None:
                return None
            blocks = self._groups.pop(key)
            del self._sizes[key]
            group = joined(blocks)
            self._current = (key, group, self._started(key, group, step))

    def _started(self, key: int, group: Block, step: ExecutionContext) -> DatasetRun:
        node: Node
        elements = ColumnSlices(group.columns, group.size, group.places)
        (node,) = self._reduce.call([np.int64(key), elements], step)
        return node.start(step)

    def save(self) -> dict[str, Any]:
        """The groups that are not complete, and the place in the one that is."""
        current = None
        if self._current is not None:
            key, group, run = self._current
            current = [key, group, run.save()]
        names = {
            "groups": self._groups,
            "sizes": self._sizes,
            "unsorted": self._unsorted,
            "ended": self._ended,
        }
        return {**names, "current": current, "keyed": self._keyed.save()}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Has the groups again."""
        if state.keys() != {"groups", "sizes", "unsorted", "ended", "current", "keyed"}:
            raise other_dataset()
        self._keyed.restore(state["keyed"], step)
        self._groups, self._sizes, self._ended = state["groups"], state["sizes"], state["ended"]
        self._unsorted = state["unsorted"]
        if state["current"] is not None:
            key, group, inside = state["current"]
            run = self._started(key, group, step)
            run.restore(inside, step)
            self._current = (key, group, run)

    def _full(self, step: ExecutionContext) -> int | None:
        """The key of a group that is complete."""
        while True:
            if self._unsorted is None and not self._ended:
                self._unsorted = self._keyed.next(
                    _SORTED_AT_ONCE if self._keyed.may_read_ahead() else 1, step
                )
                self._ended = self._unsorted is None
            if self._unsorted is None:
                # At the end TensorFlow empties the incomplete groups in the order of their keys.
                return min(self._groups, default=None)
            key = self._sort(self._unsorted, step)
            if key is not None:
                return key

    def _sort(self, block: Block, step: ExecutionContext) -> int | None:
        """Puts elements into their groups, up to the first that is complete: its key."""
        held = {key: sum(b.size for b in blocks) for key, blocks in self._groups.items()}
        new: dict[int, list[int]] = {}
        at = 0
        key: int
        try:
            # `at` counts the elements that were sorted, also when the size function fails.
            for at, key in enumerate(np.ravel(block.columns[-1]).tolist(), 1):
                if key not in self._sizes:
                    self._sizes[key] = self._size_of(key, step)
                new.setdefault(key, []).append(at - 1)
                if held.get(key, 0) + len(new[key]) >= self._sizes[key]:
                    return key
        finally:
            elements = Block(block.size, block.columns[:-1], block.places)
            for key, where in new.items():
                part = elements.pick(where) if len(where) < block.size else elements
                self._groups.setdefault(key, []).append(part)
            self._unsorted = block.part(at, block.size) if at < block.size else None
        return None

    def _size_of(self, key: int, step: ExecutionContext) -> int:
        size = int(np.asarray(self._size.call([np.int64(key)], step)[0]))
        if size <= 0:
            text = f"Window size must be greater than zero, but got {size}."
            raise errors.invalid(text)
        return size

    def close(self) -> None:
        """Ends the current group too."""
        super().close()
        if self._current is not None:
            self._current[2].close()


class GenerateRun(DatasetRun):
    """The results of a function until it raises OutOfRangeError; two other functions open and close its source."""

    def __init__(self, begin: DatasetFunction, after: DatasetFunction, finish: DatasetFunction) -> None:
        self._begin, self._after, self._finish = begin, after, finish
        self._state: Element | None = None
        self._step: ExecutionContext | None = None
        self._ended = False

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next element."""
        if self._ended:
            return None
        self._step = step
        if self._state is None:
            self._state = self._begin.call([], step)
        try:
            return block_of([self._after.call(self._state, step)])
        except errors.OutOfRangeError:
            self._finalize()
            return None

    def save(self) -> dict[str, Any]:
        """A generator goes on where Python left it."""
        raise cannot_save("a generator")

    def close(self) -> None:
        """Lets the generator go before its end. What it raises then is nobody's result, and only logged."""
        try:
            self._finalize()
        except errors.OpError as e:
            # A graph that is collected with its session has lost its functions, and Python ends their generators.
            if GONE not in e.message:
                text = e.message.partition("\n")[0]
                logging.warning("Error occurred when finalizing GeneratorDataset iterator: %s", text)

    def _finalize(self) -> None:
        self._ended = True
        state, self._state = self._state, None
        if state is not None:
            assert self._step is not None  # `next`, which makes the state, keeps the step
            self._finish.call(state, self._step)


def reduced(node: Node, function: DatasetFunction, state: Sequence[Any], step: ExecutionContext) -> Element:
    """The last state after calling a function with a state and each element."""
    run = node.start(step)
    values, number = list(state), 0
    try:
        while (block := run.next(64, step)) is not None:
            for i in range(block.size):
                try:
                    values = function.call([*values, *block.element(i)], step)
                except errors.OpError as e:
                    name_element(e, number, block, i)
                    raise
                number += 1
    finally:
        run.close()
    return values
