"""Python functions of one step that may wait for each other: in turn, and side by side once one of them takes long."""

from __future__ import annotations

import heapq
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.base.platform.exit_threads import started
from tensorfleet.runtime.scheduling.step import ExecutionContext

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.program import Program

# Between two looks of the watcher: an item that takes longer no longer holds up the next.
_LOOK_SECONDS = 0.01
# After so many looks at nothing, one second in all, the watcher's thread ends.
_MAX_IDLE_LOOKS = 100


class _Watcher:
    """One thread for all steps of this process: to start one for each would take longer than most of them do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: set[CooperativeRun] = set()
        self._fresh = self._there = False

    def add(self, turns: CooperativeRun) -> None:
        with self._lock:
            self._watched.add(turns)
            self._fresh = True
            if not self._there:
                # At the end of the program there may be none: then each step runs in its caller's thread alone.
                self._there = started(
                    threading.Thread(target=self._watch, name="tensorfleet-turns", daemon=True)
                )

    def remove(self, turns: CooperativeRun) -> None:
        with self._lock:
            self._watched.discard(turns)

    def _watch(self) -> None:
        quiet = 0
        while True:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                quiet = 0 if self._fresh or self._watched else quiet + 1
                self._fresh = False
                if quiet > _MAX_IDLE_LOOKS:
                    self._there = False
                    return
                watched = list(self._watched)
            for turns in watched:
                turns.look()


class CooperativeRun:
    """One run of a program whose items run one after the other, as long as none of them holds the others up."""

    def __init__(
        self, program: Program, ctx: ExecutionContext, values: list[Any], limit: int | None = None
    ) -> None:
        self._limit = limit  # how many may run at once, if the user has said so
        self._items, self._followers = program.items, program.followers
        self._ctx, self._values = ctx, values
        self._turn = program.turn  # when it is each item's turn
        self._waiting = list(program.after)
        self._ready = [(self._turn[i], i) for i, n in enumerate(self._waiting) if not n]
        heapq.heapify(self._ready)
        self._changed = threading.Condition()
        self._running = self._moves = 0
        self._seen = -1
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Runs all items; raises the first failure."""
        _watcher.add(self)
        try:
            self._drive()
            with self._changed:
                while self._running:
                    self._changed.wait()
        except BaseException:  # Ctrl-C
            self._end_others()
            raise
        finally:
            _watcher.remove(self)
        if self._failure is not None:
            raise self._failure

    def look(self) -> None:
        """If nothing has moved since the last look, though something could, goes on with that in another thread."""
        with self._changed:
            held_up = self._moves == self._seen and self._ready and self._failure is None
            held_up = held_up and (self._limit is None or self._running < self._limit)
            self._seen = self._moves
        if held_up:
            started(threading.Thread(target=self._drive, name="tensorfleet-turn", daemon=True))

    def _drive(self) -> None:
        """Runs what is ready, one after the other, until nothing is."""
        while True:
            with self._changed:
                if self._failure is not None or not self._ready:
                    return
                _, i = heapq.heappop(self._ready)
                self._running += 1
                self._moves += 1
            error = self._attempt(i)
            with self._changed:
                self._running -= 1
                self._moves += 1
                if error is None:
                    self._finish(i)
                elif self._failure is None:
                    self._failure = error
                if not self._running:
                    self._changed.notify_all()
            if error is not None:
                self._end_others()

    def _attempt(self, i: int) -> BaseException | None:
        item, ctx = self._items[i], self._ctx
        try:
            if ctx.trace is None:
                item.run(ctx, self._values)
            else:
                ctx.trace.run(item, ctx, self._values)
        except BaseException as e:
            return e
        return None

    def _finish(self, i: int) -> None:
        for follower in self._followers[i]:
            self._waiting[follower] -= 1
            if not self._waiting[follower]:
                heapq.heappush(self._ready, (self._turn[follower], follower))

    def _end_others(self) -> None:
        self._ctx.cancel(errors.CancelledError(None, None, "The step was cancelled by an earlier failure."))


_watcher = _Watcher()
os.register_at_fork(after_in_child=_watcher.__init__)  # type: ignore[misc]
