"""Work in numpy divided among the cores of the machine.

Numpy gives up Python's lock inside its loops, so that ranges of one array really are worked on side by side, each by a
thread of its own. A thread takes about 50 us to wake up: what is divided should take several times as long.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np

_wanted: dict[str, int] = {}


def core_count() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(count: int, reason: str) -> None:
    """Among how many threads work is divided, for the reason "asked" or "shared": the first to ask is heard.

    XLA has one set of threads in a process, for as long as it lasts, so for XLA this comes to nothing once it has started.
    """
    _wanted.setdefault(reason, count)


def wanted_threads() -> int | None:
    """Among how many threads work shall be divided, if anybody has said so."""
    return _wanted.get("asked") or _wanted.get("shared")


def thread_count() -> int:
    """Among how many threads work is divided."""
    return min(core_count(), wanted_threads() or core_count())


def in_parts(work: Callable[[int, int], Any], count: int, least: int) -> None:
    """Calls `work(start, stop)` for ranges that together are `range(count)`, none shorter than `least`.

    This thread does the first one, and helpers the others, unless they are busy. What the parts write must be apart, and must not
    depend on where they begin and end. Of several errors that of the first range is raised, when no part runs any more.
    """
    parts = count // max(least, 1)
    helpers = _helpers.borrowed(parts - 1) if parts > 1 else []
    if not helpers:
        work(0, count)
        return
    division = Division(work, count, len(helpers) + 1)
    for inbox in helpers:
        inbox.put(division)
    division.end()


class Division:
    """The parts of one call: whoever is free takes the next, and the caller all that nobody has begun."""

    def __init__(self, work: Callable[[int, int], Any], count: int, parts: int) -> None:
        edges = [count * i // parts for i in range(parts + 1)]
        self._work, self._parts = work, parts
        self._left = deque(enumerate(pairwise(edges)))
        self._failed: dict[int, BaseException] = {}
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._warnings: Any = np.geterr()  # each thread has its own

    def _taken(self) -> int:
        """Does the parts that nobody has begun, and tells how many."""
        done = 0
        while self._left:
            try:
                number, (start, stop) = self._left.popleft()
            except IndexError:  # another was faster
                break
            done += 1
            try:
                if not self._failed:  # parts before this one have all begun
                    self._work(start, stop)
            except BaseException as e:
                self._failed[number] = e
        return done

    def help(self) -> int:
        """What a helper does: all of `_taken`, after which `tell` follows."""
        with np.errstate(**self._warnings):
            return self._taken()

    def tell(self, done: int) -> None:
        """Lets the one who divides know of parts that have ended."""
        for _ in range(done):
            self._ended.put(None)

    def end(self) -> None:
        """Does what is left, waits for what others have begun, and raises what went wrong."""
        for _ in range(self._parts - self._taken()):
            self._ended.get()
        if self._failed:
            raise self._failed[min(self._failed)]


class _Helpers:
    """The threads of this process that wait for parts: one less than work is divided among."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Division]] = []
        self.made = 0
        self._lock = threading.Lock()

    def borrowed(self, count: int) -> list[SimpleQueue[Division]]:
        """Up to `count` helpers that have nothing to do; they give themselves back."""
        most = thread_count() - 1
        result: list[SimpleQueue[Division]] = []
        while len(result) < min(count, most):
            try:
                result.append(self._idle.pop())
            except IndexError:
                if not self._add(most):
                    break
        return result

    def _add(self, most: int) -> bool:
        """Makes a helper, unless there are so many already, or the system gives no more threads."""
        inbox: SimpleQueue[Division] = SimpleQueue()
        with self._lock:
            if self.made >= most:
                return False
            name = f"tensorfleet-parts-{self.made + 1}"
            try:
                threading.Thread(target=self._help, args=(inbox,), name=name, daemon=True).start()
            except RuntimeError:
                return False
            self.made += 1
        self._idle.append(inbox)
        return True

    def _help(self, inbox: SimpleQueue[Division]) -> None:
        while True:
            division = inbox.get()
            done = division.help()
            self._idle.append(inbox)  # first, so that who is told of the end can divide again
            division.tell(done)
            del division  # and with it the arrays


_helpers = _Helpers()
if hasattr(os, "register_at_fork"):  # threads stay behind in the process that forks
    os.register_at_fork(after_in_child=_helpers.__init__)  # type: ignore[misc]
