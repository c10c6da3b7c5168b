"""Queues that give their elements in another order, or padded to one shape."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.state.queues import Element, Queue


class PaddingQueue(Queue):
    """First in, first out; elements of a batch are padded with zeros to the longest of each dimension."""

    kind = "PaddingFIFOQueue"

    def _stack(self, elements: Sequence[Element], i: int) -> np.ndarray:
        if self.shapes[i].is_fully_defined() or not elements:
            return super()._stack(elements, i)
        arrays = [a[i] if row < 0 else a[i][row, ...] for a, row in elements]
        shape = [max(dims) for dims in zip(*(np.shape(a) for a in arrays), strict=True)]
        empty = b"" if self.types[i].name == "string" else 0
        out = np.full((len(arrays), *shape), empty, self.types[i].np_dtype)
        for target, a in zip(out, arrays, strict=True):
            target[tuple(slice(n) for n in np.shape(a))] = a
        return out


class ShuffleQueue(Queue):
    """Gives elements in random order, out of at least `min_after` + 1 until the queue is closed."""

    kind = "RandomShuffleQueue"

    def __init__(
        self,
        name: str,
        capacity: int,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        min_after: int,
        seeds: tuple[int, int],
    ) -> None:
        super().__init__(name, capacity, types, shapes)
        self.min_after = min_after
        self.seeds = seeds
        self._numbers = _random_words(seeds)

    def _storage(self) -> list[Any]:
        return []

    def pop(self) -> Any:
        """Removes one at random; the last takes its place."""
        elements = self.elements
        i = next(self._numbers) % len(elements)
        result = elements[i]
        elements[i] = elements[-1]
        elements.pop()
        return result

    def put_back(self, taken: Sequence[Any]) -> None:
        """Undoes as many `pop`s, as far as that matters: the order is random anyway."""
        self.elements.extend(taken)


def _random_words(seeds: tuple[int, int]) -> Iterator[int]:
    """TensorFlow's stream of 32-bit numbers for these seeds."""
    from tensorfleet.kernels import philox

    state = philox.initial_state(*seeds) if any(seeds) else philox.random_state()
    for start in itertools.count(0, 64):
        words = philox.blocks(np, state, np.arange(start, start + 64, dtype=np.uint64))
        yield from words.ravel().tolist()


class HeapQueue(Queue):
    """Gives the element with the smallest first component; of equal ones, the one put in first.

    What comes while several are waited for may have to go before those that are there.
    """

    kind = "PriorityQueue"
    at_once = True

    def __init__(
        self, name: str, capacity: int, types: Sequence[DType], shapes: Sequence[TensorShape]
    ) -> None:
        super().__init__(name, capacity, types, shapes)
        self._order = itertools.count()

    def _storage(self) -> list[Any]:
        return []

    def push(self, element: Element) -> None:
        """Adds an element by its priority; of equal ones the first comes out first."""
        arrays, row = element
        priority = int(arrays[0] if row < 0 else arrays[0][row])
        heapq.heappush(self.elements, (priority, next(self._order), element))

    def pop(self) -> Any:
        """Takes the entry of the lowest priority."""
        return heapq.heappop(self.elements)

    def put_back(self, taken: Sequence[Any]) -> None:
        """Puts entries back where they were."""
        for entry in taken:
            heapq.heappush(self.elements, entry)

    def elements_of(self, taken: Sequence[Any]) -> Sequence[Element]:
        """The elements of entries, without their priorities."""
        return [element for _, _, element in taken]
