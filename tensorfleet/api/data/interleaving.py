"""The datasets that a function makes of the elements of another, read in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.blocks import Block, Element, joined
from tensorfleet.api.data.cache_prefetch import PrefetchRun
from tensorfleet.api.data.calls import DatasetFunction
from tensorfleet.api.data.mapping import name_element
from tensorfleet.api.data.nodes import DatasetRun, DerivedRun, Node, cannot_save, other_dataset
from tensorfleet.api.data.record_origin import Place
from tensorfleet.base import errors

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.step import ExecutionContext

ENDLESS_TURN = 1 << 62  # of a dataset whose turn never ends


class _Open:
    """An open dataset that a function made of an element: its run, and the elements read before its turn."""

    __slots__ = ("element", "held", "place", "run")

    def __init__(
        self,
        element: Element,
        run: DatasetRun,
        place: Place | None = None,
        held: Block | errors.OpError | None = None,
    ) -> None:
        self.element = element
        self.run = run
        self.place = place  # where the element came from
        self.held: Block | errors.OpError | None = held

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements, at most `n`."""
        block, self.held = self.held, None
        if block is None:
            block = self._placed(self.run.next(n, step))
        if isinstance(block, errors.OpError):
            raise block
        if block is not None and block.size > n:
            block, self.held = block.part(0, n), block.part(n, block.size)
        return block

    def hold(self, n: int, step: ExecutionContext) -> int:
        """Reads up to `n` elements, if none are held. How many are."""
        if self.held is None:
            try:
                self.held = self._placed(self.run.next(n, step))
            except errors.OpError as e:
                if step.reason is not None or isinstance(e, errors.DeadlineExceededError):
                    raise
                self.held = e  # when its turn comes
        return self.held.size if isinstance(self.held, Block) else 0

    def _placed(self, block: Block | None) -> Block | None:
        """With the place of the element, unless the elements have places of their own."""
        if block is not None and block.places is None and self.place is not None:
            many = np.ndim(self.place) > 0
            block.places = [self.place] * block.size if many else np.full(block.size, self.place)
        return block


class _Failed(DatasetRun):
    """Takes the place of a dataset that could not be opened: an error when its turn comes."""

    def __init__(self, failure: errors.OpError) -> None:
        self._failure: errors.OpError | None = failure

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The error, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return None

    def save(self) -> dict[str, Any]:
        """An error cannot be kept."""
        raise cannot_save("a dataset whose function has failed")


class InterleaveRun(DerivedRun):
    """The datasets that a function makes of the elements, several at a time, some elements of each in turn.

    With `ahead`, each of those that are open has a thread that fetches so many elements before their turn comes.
    """

    def __init__(
        self, source: DatasetRun, function: DatasetFunction, cycle: int, block: int, ahead: int = 0
    ) -> None:
        super().__init__(source)
        self._function = function
        self._open: list[_Open | None] = [None] * cycle
        self._at = self._taken = self._count = 0
        self._block = block
        self._ahead = ahead
        self._ended = False

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next elements: of several rounds at once, or of the dataset whose turn it is."""
        if self._ahead:
            self._fill(step)
        # Several rounds are read from each dataset in one call. For less than two, the loop below does as well.
        if not self._taken and n >= 2 * len(self._open) * self._block and len(self._open) > 1:
            result = self._rounds(n // (len(self._open) * self._block), step)
            if result is not None:
                return result
        while not self._ended or any(self._open):
            current = self._open[self._at]
            if current is not None:
                try:
                    block = current.next(min(n, self._block - self._taken), step)
                except errors.OpError:
                    self._take(
                        1 if self._ahead else 0
                    )  # what was fetched before its turn counts, whatever it is
                    raise
                if block is None:
                    current.run.close()
                    self._open[self._at] = None
                    self._advance()
                    continue
                self._take(block.size)
                return block
            if self._ended:
                self._advance()
            else:
                self._begin(self._at, step)
                self._taken = 0
        return None

    def _take(self, count: int) -> None:
        self._taken += count
        if self._taken >= self._block:
            self._advance()

    def _rounds(self, most: int, step: ExecutionContext) -> Block | None:
        """The elements of up to `most` rounds, if all that may be open are and have that much."""
        turns = [*self._open[self._at :], *self._open[: self._at]]
        each = self._block
        parts: list[Block] = []
        for current in turns:
            if current is None:
                return None
            most = min(most, current.hold(most * each, step) // each)
            if not most:
                return None
        for current in turns:
            part = current.next(most * each, step) if current is not None else None
            assert part is not None
            parts.append(part)
        # The parts lie dataset by dataset; the elements come round by round.
        order = np.arange(len(turns) * most * each).reshape(len(turns), most, each)
        return joined(parts).pick(order.swapaxes(0, 1).ravel())

    def _fill(self, step: ExecutionContext) -> None:
        """Opens as many as may be open; the threads of those whose turn is later begin now."""
        for i in range(len(self._open)):
            at = (self._at + i) % len(self._open)
            if self._open[at] is not None or self._ended:
                continue
            try:
                self._begin(at, step)
            except errors.OpError as e:
                # The first one's turn is now. For the others a failure waits, but the end of the step does not.
                if not i or step.reason is not None or isinstance(e, errors.DeadlineExceededError):
                    raise
                self._open[at] = _Open([], _Failed(e))

    def _begin(self, at: int, step: ExecutionContext) -> None:
        block = self.source.next(1, step)
        if block is None:
            self._ended = True
            return
        self._count += 1
        element = block.element(0)
        try:
            place = None if block.places is None else block.places[0]
            self._open[at] = _Open(element, self._started(element, step), place)
        except errors.OpError as e:
            name_element(e, self._count - 1, block)
            raise

    def _started(self, element: Element, step: ExecutionContext) -> DatasetRun:
        run = self._opened(element, step)
        if isinstance(run, PrefetchRun):
            run.begin()
        return run

    def _opened(self, element: Element, step: ExecutionContext) -> DatasetRun:
        node: Node
        (node,) = self._function.call(element, step)
        run = node.start(step)
        return PrefetchRun(run, self._ahead, step) if self._ahead else run

    def _advance(self) -> None:
        self._at = (self._at + 1) % len(self._open)
        self._taken = 0

    def close(self) -> None:
        """Ends all."""
        super().close()
        for current in self._open:
            if current is not None:
                current.run.close()
        self._open = [None] * len(self._open)
        self._ended = True

    def save(self) -> dict[str, Any]:
        """The elements whose datasets are open, and the place in each."""
        inside = [None if c is None else [c.element, c.held, c.run.save()] for c in self._open]
        numbers = [self._at, self._taken, self._count, self._ended]
        return {"source": self.source.save(), "open": inside, "numbers": numbers}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Opens the datasets again."""
        if len(state.get("open", ())) != len(self._open):
            raise other_dataset()
        self.source.restore(state["source"], step)
        self._at, self._taken, self._count, self._ended = state["numbers"]
        for i, current in enumerate(state["open"]):
            if current is not None:
                element, held, inside = current
                run = self._opened(element, step)  # its thread begins at the first use, behind the place
                run.restore(inside, step)
                self._open[i] = _Open(element, run, held=held)
