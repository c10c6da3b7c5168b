"""Mapping several elements at once, on threads, their results in order."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from tensorfleet.api.data.blocks import Block, Element, block_of, joined_places
from tensorfleet.api.data.cache_prefetch import lasting_step
from tensorfleet.api.data.calls import DatasetFunction
from tensorfleet.api.data.mapping import name_element
from tensorfleet.api.data.nodes import DatasetRun, DerivedRun, other_dataset
from tensorfleet.base import errors

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class _Call:
    """A function called with one element."""

    __slots__ = ("block", "done", "error", "number", "result")

    def __init__(self, number: int, block: Block | None, error: BaseException | None = None) -> None:
        self.number = number
        self.block = block
        self.done = threading.Event()
        self.result: Element = []
        self.error = error
        if block is None:
            self.done.set()


def _work(calls: queue.SimpleQueue[_Call | None], function: DatasetFunction, step: ExecutionContext) -> None:
    """The life of a thread. It knows nothing of the run, so that one nobody uses any more can end."""
    while (call := calls.get()) is not None:
        try:
            assert call.block is not None  # those without an element are never put into the queue
            call.result = function.call(call.block.element(0), step)
        except BaseException as e:
            call.error = e
        call.done.set()


class ParallelMapRun(DerivedRun):
    """A function of every element, of up to `most` of them at the same time, also while nobody asks for one."""

    def __init__(
        self, source: DatasetRun, function: DatasetFunction, most: int, step: ExecutionContext
    ) -> None:
        super().__init__(source)
        self._function = function
        # -1 is AUTOTUNE: one call per CPU.
        self._most = most if most > 0 else os.cpu_count() or 1
        self._step = lasting_step(step)
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._threads = 0
        self._flying: deque[_Call] = deque()
        self._count = 0
        self._ended = False

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The results that are there, or the first that comes."""
        self._launch(step)
        elements: list[Element] = []
        blocks: list[Block] = []
        while self._flying and len(elements) < n:
            call = self._flying[0]
            # Results are given in order. Those that are there do not wait for one that is not.
            if elements and (call.error is not None or not call.done.is_set()):
                break
            step.wait(call.done, "for an element that is being mapped")
            if elements and call.error is not None:
                break
            self._flying.popleft()
            self._launch(step)
            if call.error is not None:
                if call.block is not None and isinstance(call.error, errors.OpError):
                    name_element(call.error, call.number, call.block)
                raise call.error
            elements.append(call.result)
            if call.block is not None:
                blocks.append(call.block)
        return block_of(elements, joined_places(blocks)) if elements else None

    def _launch(self, step: ExecutionContext) -> None:
        while not self._ended and len(self._flying) < self._most:
            try:
                block = self.source.next(1, step)
            except errors.OpError as e:
                # The step ends, not the element: nothing is kept of it.
                if step.reason is not None or isinstance(e, errors.DeadlineExceededError):
                    raise
                self._flying.append(_Call(self._count, None, e))  # fails when its turn comes
                return
            if block is None:
                self._ended = True
                return
            self._start(block)

    def _start(self, block: Block) -> None:
        call = _Call(self._count, block)
        self._count += 1
        self._flying.append(call)
        self._calls.put(call)
        # Threads start when there is work for one more, so that short datasets start few.
        if self._threads < min(self._most, len(self._flying)):
            self._threads += 1
            arguments = (self._calls, self._function, self._step)
            threading.Thread(target=_work, args=arguments, name="tensorfleet-map", daemon=True).start()

    def _end_threads(self) -> None:
        self._step.cancel(errors.CancelledError(None, None, "The iterator was destroyed."))
        for _ in range(self._threads):
            self._calls.put(None)
        self._threads = 0

    def close(self) -> None:
        """Ends the threads after their current calls, and the source."""
        self._end_threads()
        self._flying.clear()
        self._ended = True
        super().close()

    def __del__(self) -> None:
        if hasattr(self, "_ended"):
            self._end_threads()

    def save(self) -> dict[str, Any]:
        """The elements that were taken; the function will be called with them again."""
        taken = [call.error if call.block is None else call.block for call in self._flying]
        state = {"flying": taken, "count": self._count, "ended": self._ended}
        return {**state, "source": self.source.save()}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Calls the function with the elements that were taken."""
        if state.keys() != {"flying", "count", "ended", "source"}:
            raise other_dataset()
        self.source.restore(state["source"], step)
        self._ended, self._count = state["ended"], state["count"] - len(state["flying"])
        for block in state["flying"]:
            if isinstance(block, Block):
                self._start(block)
            else:
                self._flying.append(_Call(self._count, None, block))
        self._count = state["count"]
