"""Queues as the runtime keeps them: waiters are served in order, and no element is lost or duplicated.

A queue is elements and two lines of attempts, one of those who put and one of those who take. Whatever happens
(an attempt arrives, one is withdrawn, the queue is closed) ends in `_serve`, which advances the first of each
line as far as it can. Nothing here waits: an attempt that is not complete at once gets an event.

An element is a pair of arrays and a row: row -1 stands for the arrays themselves, another for one row of each,
so that a batch put in by `enqueue_many` and taken out by `dequeue_many` is never cut up.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape, shape_text
from tensorfleet.state.long_waits import Awaited

if TYPE_CHECKING:
    from tensorfleet.state.queue_members import Roster

Element = tuple[Sequence[np.ndarray], int]

# What became of an attempt when it was its turn.
STUCK, MOVED, COMPLETE = range(3)
_numbers = itertools.count()
_UNLIMITED = 1 << 62


def private_name(op_name: str) -> str:
    """The name of a resource that no other operation shares."""
    return f"_{next(_numbers)}_{op_name}"


def own(value: object) -> np.ndarray:
    """An array that nobody else can change."""
    if isinstance(value, np.generic):
        return np.asarray(value)
    array = value if type(value) is np.ndarray else np.asarray(value)
    # A read-only view is not enough: the user may still change the array that it looks at.
    base = array.base
    if array.flags.writeable or (isinstance(base, np.ndarray) and base.flags.writeable):
        array = array.copy()
        array.flags.writeable = False
    return array


class Signal:
    """An event that one thread waits for: a lock that opens once. `threading.Event` is slower, for it serves many."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire(blocking=False)

    def set(self) -> None:
        """Ends the waiting, now or later."""
        with contextlib.suppress(RuntimeError):  # it was set before
            self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set; False when that takes longer than `timeout` seconds."""
        if not self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            return False
        self.set()  # it stays so
        return True


def give_way() -> None:
    """Lets a thread that was just woken go first: it has waited, and would wait on until this one waits too."""
    time.sleep(0)


class Attempt:
    """An action on a queue: `advance` does as much as is possible now, with the queue's lock held."""

    __slots__ = ("answer", "done", "error", "event")
    verb = ""

    def __init__(self) -> None:
        self.done = False
        self.error: errors.OpError | None = None
        self.event: Signal | None = None
        #: what the one who completes it, while others wait for it, may do for them before they wake
        self.answer: Callable[[], None] | None = None

    def advance(self, queue: Any) -> int:
        """STUCK, MOVED or COMPLETE."""
        return STUCK

    def undo(self, queue: Queue) -> None:
        """Gives back the elements that an unfinished attempt holds."""

    def finish(self) -> None:
        """Marks the attempt complete and wakes its waiter."""
        self.done = True
        if self.event is not None:
            self.event.set()


class PutAttempt(Attempt):
    """Adds elements, as many as there is room for, until all are in."""

    __slots__ = ("elements", "next")
    verb = "Enqueue"

    def __init__(self, elements: Sequence[Element]) -> None:
        super().__init__()
        self.elements = elements
        self.next = 0

    def advance(self, queue: Queue) -> int:
        """Puts in as many elements as there is room for."""
        if queue.closed:
            text = f"{queue.kind} '{queue.name}' is closed."
            self.error = errors.CancelledError(None, None, text)
            return COMPLETE
        first, count = self.next, len(self.elements)
        end = min(count, first + queue.room(self.elements[first]))
        if end <= first:
            return STUCK
        for i in range(first, end):
            queue.push(self.elements[i])
            if queue.recorder is not None:
                queue.recorder.put(queue, self.elements[i])
        queue.enqueued += end - first
        self.next = end
        return COMPLETE if end == count else MOVED


class TakeAttempt(Attempt):
    """Takes `count` elements as they come; of a closed queue, with `up_to`, as many as are left."""

    __slots__ = ("count", "taken", "up_to")
    verb = "Dequeue"

    def __init__(self, count: int, up_to: bool = False) -> None:
        super().__init__()
        self.count = count
        self.up_to = up_to
        self.taken: list[Any] = []

    def advance(self, queue: Queue) -> int:
        """Takes as many elements as there are, up to the number asked for."""
        size, missing = queue.size(), self.count - len(self.taken)
        # Nothing more will come: what has been taken goes back, and the attempt ends.
        if queue.closed and size < missing:
            return self._end(queue, size, missing)
        # A shuffling queue keeps `min_after` elements to draw from, until it is closed.
        available = min(missing, size if queue.closed else size - queue.min_after)
        if available <= 0 or (queue.at_once and available < missing and size < queue.capacity):
            return STUCK
        for _ in range(available):
            self.taken.append(queue.pop())
        queue.dequeued += available
        return COMPLETE if available == missing else MOVED

    def _end(self, queue: Queue, size: int, missing: int) -> int:
        self.undo(queue)
        if self.up_to and queue.size():
            self.taken = [queue.pop() for _ in range(queue.size())]
            queue.dequeued += len(self.taken)
            return COMPLETE
        self.error = errors.OutOfRangeError(
            None,
            None,
            f"{queue.kind} '{queue.name}' is closed and has insufficient elements (requested {missing}, "
            f"{queue.counted} size {size})",
        )
        return COMPLETE

    def undo(self, queue: Queue) -> None:
        """Puts the elements taken so far back in their place."""
        queue.put_back(self.taken)
        queue.dequeued -= len(self.taken)
        self.taken = []


class CloseAttempt(Attempt):
    """Closes the queue once earlier puts are done."""

    __slots__ = ()
    verb = "Close"

    def advance(self, queue: Queue) -> int:
        """Closes the queue."""
        if queue.closed:
            self.error = errors.CancelledError(None, None, f"Queue '{queue.name}' is already closed.")
        queue.closed = True
        if queue.recorder is not None:
            queue.recorder.changed(queue)
        return COMPLETE


class Queue(Awaited):
    """First in, first out."""

    kind = "FIFOQueue"
    counted = "current"
    at_once = False  # whether several are taken when all are there, as far as they find room

    def __init__(
        self, name: str, capacity: int, types: Sequence[DType], shapes: Sequence[TensorShape]
    ) -> None:
        super().__init__()
        self.name = name
        self.capacity = capacity if capacity >= 0 else _UNLIMITED
        self.types = list(types)
        self.shapes = list(shapes)
        self.min_after = 0
        self.closed = False
        #: elements put in and taken out so far; one that is given back was not taken
        self.enqueued = self.dequeued = 0
        self.elements: Any = self._storage()
        #: the operations known to have asked for this very queue
        self.agreed: weakref.WeakSet[Any] = weakref.WeakSet()
        self._dims = [s._d for s in shapes]
        self._lock = threading.Lock()
        self._putting: deque[Attempt] = deque()
        self._taking: deque[Attempt] = deque()
        self._answered: list[Attempt] = []  # complete, and not ended yet
        self.roster: Roster | None = None  # who takes from it, if that matters

    # -- the order of the elements -------------------------------------------------------------------

    def _storage(self) -> Any:
        return deque()

    def size(self) -> int:
        """How many elements there are."""
        return len(self.elements)

    def fullness(self) -> str:
        """How many elements there are, of how many, in words."""
        count = str(self.size()) if self.capacity >= _UNLIMITED else f"{self.size()} of {self.capacity}"
        kept = f", of which {self.min_after} stay" if self.min_after else ""
        return f"{count} elements{kept}"

    def room_for(self) -> int | None:
        """How many elements it has room for; None without a limit."""
        return None if self.capacity >= _UNLIMITED else self.capacity

    def room(self, element: Element) -> int:
        """How many elements can be added now, of which `element` is the first."""
        return self.capacity - len(self.elements)

    def push(self, element: Element) -> None:
        """Adds one."""
        self.elements.append(element)

    def pop(self) -> Any:
        """Removes the next one."""
        return self.elements.popleft()

    def put_back(self, taken: Sequence[Any]) -> None:
        """Undoes as many `pop`s."""
        self.elements.extendleft(reversed(taken))

    def elements_of(self, taken: Sequence[Any]) -> Sequence[Element]:
        """The results of several `pop`s, as elements."""
        return taken

    # -- attempts ------------------------------------------------------------------------------------

    def _line(self, attempt: Attempt) -> deque[Attempt]:
        return self._taking if isinstance(attempt, TakeAttempt) else self._putting

    def submit(self, attempt: Attempt) -> bool:
        """Starts an attempt. True when it is complete at once; otherwise its event tells."""
        if self.recorder is not None:
            return self.try_now(attempt)
        with self._lock:
            # When nobody waits it is the only one, and nobody else can move after it.
            if not self._waited_for() and attempt.advance(self) == COMPLETE:
                attempt.done = True
                return True
            self._line(attempt).append(attempt)
            self._serve()
            if not attempt.done:
                attempt.event = Signal()
            answered = self._to_answer()
        _answer(answered)
        # It had to wait in line, so others were woken: they go first.
        if attempt.done and not answered:
            give_way()
        return attempt.done

    def try_now(self, attempt: Attempt) -> bool:
        """Advances an attempt if it is its turn, with a recorder. Its event tells when to try again."""
        with self._lock:
            if attempt.done:  # somebody has ended it
                return True
            line = self._line(attempt)
            state = attempt.advance(self) if not line or line[0] is attempt else STUCK
            if state == COMPLETE:
                attempt.done = True
                if line:
                    line.popleft()
            elif attempt not in line:
                line.append(attempt)
            attempt.event = Signal()
            if state != STUCK:
                self._wake(attempt)
            return attempt.done

    def _wake(self, but: Attempt | None = None) -> None:
        """Wakes the first of each line: it may be able to move now."""
        for line in (self._putting, self._taking):
            if line and line[0] is not but and line[0].event is not None:
                line[0].event.set()

    def _waited_for(self) -> bool:
        """Whether any attempt waits."""
        return bool(self._putting or self._taking)

    def withdraw(self, attempt: Attempt) -> bool:
        """Takes an attempt back; False when it is complete already."""
        with self._lock:
            if attempt.done:
                return False
            # The one behind it in the line may be able to move now.
            self._line(attempt).remove(attempt)
            attempt.undo(self)
            self._serve()
            answered = self._to_answer()
        _answer(answered)
        return True

    def take_back(self, attempt: Attempt) -> None:
        """Undoes an attempt that is complete, because nobody wants its outcome any more."""
        with self._lock:
            attempt.undo(self)
            self._serve()
            answered = self._to_answer()
        _answer(answered)

    def look(self) -> tuple[int, bool]:
        """How many elements there are and whether the queue is closed, between two attempts."""
        with self._lock:
            return self.size(), self.closed

    def close_now(self) -> None:
        """Closes the queue and cancels pending puts."""
        with self._lock:
            self.closed = True
            if self.recorder is not None:
                self.recorder.changed(self)
            self._cancel(self._putting)
            self._serve()
            answered = self._to_answer()
        _answer(answered)

    def clear(self) -> None:
        """Drops everything: the container that held the queue is gone."""
        if self.roster is not None:
            self.roster.close()
        with self._lock:
            self.closed = True
            self._cancel(self._putting)
            self._cancel(self._taking)
            self.elements = self._storage()

    def _cancel(self, line: deque[Attempt]) -> None:
        while line:
            attempt = line.popleft()
            attempt.error = errors.CancelledError(None, None, f"{attempt.verb} operation was cancelled")
            attempt.finish()

    def _serve(self) -> None:
        if self.recorder is not None:
            self._wake()
            return
        moved = True
        while moved:
            # Each side may unblock the other (room for puts, elements for takes): until neither moves.
            moved = self._advance(self._putting)
            moved = self._advance(self._taking) or moved

    def _to_answer(self) -> list[Attempt]:
        """The attempts that are complete and whose waiting has not been ended yet: for `_answer`, without the lock."""
        result, self._answered = self._answered, []
        return result

    def _advance(self, line: deque[Attempt]) -> bool:
        moved = False
        while line:
            state = line[0].advance(self)
            if state == STUCK:
                break
            moved = True
            if state == MOVED:
                break  # now the other side may have something to do
            complete = line.popleft()
            # Its answer may take time, so it is called after the lock is released.
            if complete.answer is not None and complete.event is not None and complete.error is None:
                complete.done = True
                self._answered.append(complete)
            else:
                complete.finish()
        return moved

    # -- what is put in and taken out ----------------------------------------------------------------

    def element(self, values: Sequence[Any]) -> Element:
        """One element, checked."""
        arrays = [own(v) for v in values]
        for i, dims in enumerate(self._dims):
            if arrays[i].shape != dims and not self.shapes[i].is_compatible_with(arrays[i].shape):
                raise _mismatch(i, dims, arrays[i].shape)
        return arrays, -1

    def rows(self, values: Sequence[Any]) -> list[Element]:
        """One element per row, checked."""
        arrays = [own(v) for v in values]
        if arrays[0].ndim == 0:
            dims = self._dims[0] if self._dims else ()
            raise _mismatch(0, (None, *(dims or ())), ())
        count = arrays[0].shape[0]
        for i, dims in enumerate(self._dims):
            shape = arrays[i].shape
            fits = len(shape) > 0 and shape[0] == count and self.shapes[i].is_compatible_with(shape[1:])
            if not fits:
                raise _mismatch(i, None if dims is None else (count, *dims), shape)
        for i, array in enumerate(arrays):
            if array.ndim == 0 or array.shape[0] != count:
                got = array.shape[0] if array.ndim else "no 0th dimension"
                raise errors.invalid(
                    "All input tensors must have the same size in the 0th dimension. Component "
                    f"{i} has {got}, and should have {count}"
                )
        return [(arrays, row) for row in range(count)]

    def check_batches(self) -> None:
        """Raises unless elements can be taken as one batch."""
        if not self.shapes:
            raise errors.invalid(
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes."
            )

    def single(self, taken: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """The components of one element."""
        ((arrays, row),) = self.elements_of(taken)
        return tuple(arrays) if row < 0 else tuple([a[row, ...] for a in arrays])

    def batch(self, taken: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """The components of several elements, stacked."""
        elements = self.elements_of(taken)
        return tuple([self._stack(elements, i) for i in range(len(self.types))])

    def _stack(self, elements: Sequence[Element], i: int) -> np.ndarray:
        if not elements:
            dims = [d or 0 for d in self._dims[i] or ()]
            return np.empty((0, *dims), self.types[i].np_dtype)
        arrays, first = elements[0]
        # Rows of one `enqueue_many` that are still in order come back as a slice, without a copy.
        if first >= 0 and all([a is arrays for a, _ in elements]):
            rows = [row for _, row in elements]
            if rows == list(range(first, first + len(rows))):
                return arrays[i][first : first + len(rows)]
            return arrays[i][rows]
        return np.stack([a[i] if row < 0 else a[i][row, ...] for a, row in elements])


def _answer(attempts: Sequence[Attempt]) -> None:
    """Calls the answers of all attempts, then wakes their waiters, also after an exception."""
    with contextlib.ExitStack() as waking:
        for attempt in attempts:
            waking.callback(attempt.finish)
        for attempt in attempts:
            assert attempt.answer is not None
            attempt.answer()


def _mismatch(i: int, want: Iterable[int | None] | None, got: Iterable[int]) -> errors.OpError:
    text = f"Shape mismatch in tuple component {i}. Expected {shape_text(want)}, got {shape_text(got)}"
    return errors.invalid(text)
