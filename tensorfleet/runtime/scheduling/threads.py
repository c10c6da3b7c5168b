"""Running parts side by side: a part that may wait gets a thread of its own, the rest share a pool."""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

from tensorfleet.base import errors
from tensorfleet.base.platform.exit_threads import beside
from tensorfleet.runtime.scheduling.items import Item
from tensorfleet.runtime.scheduling.step import ExecutionContext

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.program import Program
    from tensorfleet.runtime.values import Values


#: The items that have ended, by position, with the error of one that failed.
_Done: TypeAlias = queue.SimpleQueue[tuple[int, BaseException | None]]


class Pool:
    """The threads of a session (`inter_op_parallelism_threads`); made when first needed.

    With a `limit`, no more parts of a step run at once than that, counting the thread that called `run`. Parts that wait
    (a dequeue) do not count: they would hold up what they wait for.
    """

    def __init__(self, size: int, limit: int | None = None) -> None:
        self._size = max(size if limit is None else limit - 1, 1)
        self.limit = limit
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def _workers(self) -> ThreadPoolExecutor:
        if self._process != os.getpid():  # its threads have stayed in the process that forked this one
            self._process, self._lock, self._executor = os.getpid(), threading.Lock(), None
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._size, thread_name_prefix="tensorfleet-inter-op")
            return self._executor

    def close(self) -> None:
        """Ends the threads once they are idle."""
        with self._lock:
            if self._executor is not None:
                self._executor.shutdown(wait=False)
                self._executor = None

    def run(self, program: Program, ctx: ExecutionContext, values: Values) -> None:
        """Runs a program's items as their inputs become ready; raises the first failure."""
        waiting = list(program.after)
        ready = [i for i, n in enumerate(waiting) if n == 0]
        done: _Done = queue.SimpleQueue()
        left = len(waiting)
        failure: BaseException | None = None
        running = 0
        while left and (failure is None or running):
            if failure is None:
                # Keep one piece of ordinary work for this thread; hand out the rest.
                own = next((i for i in ready if not program.items[i].blocks), None)
                if own is None and not running and len(ready) == 1:
                    own = ready[0]  # until it is done, there is nothing to hand out
                kept = []
                for i in ready:
                    if i == own:
                        continue
                    if self.limit == 1 and not program.items[i].blocks:
                        kept.append(i)
                        continue
                    running += 1
                    self._start(program.items[i], i, ctx, values, done)
                ready = kept
                if own is not None:
                    running += 1
                    _attempt(program.items[own], own, ctx, values, done)
            i, error = done.get()
            running -= 1
            if error is not None:
                failure = failure or error
                continue
            left -= 1
            for follower in program.followers[i]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    ready.append(follower)
        if failure is not None:
            raise failure

    def _start(self, item: Item, i: int, ctx: ExecutionContext, values: Values, done: _Done) -> None:
        if item.blocks:
            beside(_attempt, (item, i, ctx, values, done), f"tensorfleet-{item.name}")
            return
        try:
            self._workers().submit(_attempt, item, i, ctx, values, done)
        except RuntimeError:  # in an atexit function: pools have ended before those are called
            if threading.main_thread().is_alive():
                raise
            _attempt(item, i, ctx, values, done)


def _attempt(item: Item, i: int, ctx: ExecutionContext, values: Values, done: _Done) -> None:
    try:
        if ctx.guard is not None:
            ctx.guard.attempt(item, i, ctx, values)
        elif ctx.trace is None:
            item.run(ctx, values)
        else:
            ctx.trace.run(item, ctx, values)
    except BaseException as e:
        done.put((i, e))
        # Cancelled from this thread: the one that collects the results may be what has to be woken.
        ctx.cancel(errors.CancelledError(None, None, "The step was cancelled by an earlier failure."))
    else:
        done.put((i, None))
