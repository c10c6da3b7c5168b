"""Packs: small variables of one type that share one array and one lock.

Each argument of a compiled program costs time, and so does each lock. A program that updates many small variables
therefore keeps them in one array, their pack. It takes the pack's lock, gives XLA the array, and gets the next one.

The array never changes: a step replaces it, so a reader has a consistent snapshot without a copy. A value that is
assigned to one variable by another program is kept beside the array, whatever it is, until the next step of a program
that takes the whole pack puts it in. If it does not fit (another shape, no value at all) the pack is dissolved.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorfleet.base.types import Array, Dims
    from tensorfleet.runtime.resources import VariableStore


_SOON_SECONDS = 0.01


class _Layout:
    """Counts the changes of what is remembered about variables: whose lock they have, which boards show them.

    A variable changes its lock only in the hands of a thread that has both the old one and the new one. So whoever has
    taken a lock, and finds the count as it was before, has the right one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.epoch = 0

    def change(self) -> None:
        """Makes everybody look again."""
        with self._lock:
            self.epoch += 1


layout = _Layout()


class WriterLocks:
    """The locks of the variables that somebody writes together, in the order in which all writers take them."""

    __slots__ = ("_known", "_stores")

    def __init__(self, stores: Iterable[VariableStore]) -> None:
        self._stores = list(stores)
        self._known: tuple[int, list[VariableStore]] = (-1, [])

    def acquire(self, held: list[Any]) -> None:
        """Takes the locks and notes them in `held`, which `release` gives back."""
        while True:
            epoch, leaders = self._known
            if epoch != layout.epoch:
                epoch, leaders = self._look_again()
            for store in leaders:
                lock = store.lock
                held.append(lock)
                lock.acquire()
            if epoch == layout.epoch:
                return
            release(held)  # a variable may have got another lock meanwhile

    def acquire_soon(self, held: list[Any]) -> bool:
        """The same, unless somebody else has one of them: they may keep it for long. Whether all were taken."""
        epoch, leaders = self._look_again()
        for store in leaders:
            lock = store.lock
            if not lock.acquire(timeout=_SOON_SECONDS):
                return False
            held.append(lock)
        return epoch == layout.epoch

    def _look_again(self) -> tuple[int, list[VariableStore]]:
        epoch = layout.epoch  # before we look: a change meanwhile makes it out of date
        self._known = known = (epoch, _leaders(self._stores))
        return known


def _leaders(stores: Iterable[VariableStore]) -> list[VariableStore]:
    """One variable for each lock, in the order of locks."""
    by_order: dict[int, VariableStore] = {}
    for store in stores:
        pack = store.pack
        by_order.setdefault(store.order if pack is None else pack.order, store)
    return [by_order[order] for order in sorted(by_order)]


def release(held: list[Any]) -> None:
    """Gives back locks, in the order they were taken."""
    try:
        for lock in held:
            lock.release()
    except RuntimeError:
        pass  # an interrupt came before the others were taken
    held.clear()


class _Content:
    """What the variables of a pack are at one time."""

    __slots__ = ("_array", "_views", "buffer", "changed")

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer  # numpy's or JAX's
        self.changed: dict[int, Any] = {}  # values that were assigned since, by their place
        self._array: Array | None = None
        self._views: dict[int, Array] = {}

    @property
    def array(self) -> Array:
        """The buffer for numpy."""
        if self._array is None:
            self._array = np.asarray(self.buffer)
        return self._array

    def view(self, place: int, start: int, shape: Dims) -> Array:
        """The part of the buffer that one variable has."""
        view = self._views.get(place)
        if view is None:
            end = start + math.prod(shape)
            view = self._views[place] = self.array[start:end].reshape(shape)
        return view


class VariablePack:
    """Some variables in one array. It is planned first, and begins when a step has the locks of all of them."""

    __slots__ = (
        "_boards_epoch",
        "_content",
        "_shown",
        "active",
        "dtype",
        "lock",
        "order",
        "shapes",
        "size",
        "starts",
        "stores",
        "updates",
    )

    def __init__(self, stores: Sequence[VariableStore], shapes: Sequence[Dims], dtype: np.dtype[Any]) -> None:
        self.stores = list(stores)
        self.shapes = list(shapes)
        self.dtype = dtype
        sizes = [math.prod(shape) for shape in shapes]
        self.starts = [end - size for end, size in zip(itertools.accumulate(sizes), sizes, strict=True)]
        self.size = sum(sizes)
        self.lock = threading.RLock()
        self.order = min(store.order for store in stores)
        self.active = False
        self.updates = 0  # since it began
        self._content = _Content(None)
        self._shown: list[VariableStore] = []
        self._boards_epoch = -1

    def begin(self, held: list[Any]) -> bool:
        """Takes in its variables, whose locks the caller has in `held`, and adds its own to them.

        False if one of them does not fit, or is in another pack by now.
        """
        values = [store.value for store in self.stores]
        if any(store.pack is not None for store in self.stores) or not all(
            map(self._fits, range(len(values)), values)
        ):
            return False
        self._content = _Content(np.concatenate([np.asarray(value).reshape(-1) for value in values]))
        self.lock.acquire()
        held.append(self.lock)
        self.updates = 0  # those of an earlier time are in the versions of its variables
        _whole(self._take_over)
        return True

    def _take_over(self) -> None:
        for place, store in enumerate(self.stores):
            # A reader that has no lock finds either: the value that was, or the same in the pack.
            store.place, store.pack, store.lock = place, self, self.lock
        self.active = True
        layout.change()

    def dissolve(self, held: list[Any]) -> None:
        """Gives each variable its own value and lock again. The caller holds the pack's lock, and then theirs.

        Variables that did not fit are never packed again.
        """
        misfits = {place for place, value in self._content.changed.items() if not self._fits(place, value)}
        # New ones: somebody may have an old lock still, and wait for another.
        locks = [threading.RLock() for _ in self.stores]
        for lock in locks:
            held.append(lock)
            lock.acquire()

        def let_go() -> None:
            self.active = False
            for place, (store, lock) in enumerate(zip(self.stores, locks, strict=True)):
                store.packable = place not in misfits
                store.leave_pack(lock)
            layout.change()

        _whole(let_go)

    def _fits(self, place: int, value: Any) -> bool:
        shape = getattr(value, "shape", None)
        return shape == self.shapes[place] and getattr(value, "dtype", None) == self.dtype

    def value_of(self, place: int) -> Any:
        """The value of one variable."""
        content = self._content
        if content.changed and place in content.changed:
            return content.changed[place]
        return content.view(place, self.starts[place], self.shapes[place])

    def assign(self, place: int, value: Any) -> None:
        """Gives one variable a value, of any kind. The caller holds the lock."""
        self._content.changed[place] = value

    def take(self) -> Any:
        """The array with all values, numpy's or JAX's; None if one of them does not fit. The caller holds the lock."""
        content = self._content
        if content.changed:
            array = self._merged(content)
            if array is None:
                return None
            content = self._content = _Content(array)
        return content.buffer

    def look(self) -> Any:
        """The same for a reader without the lock."""
        content = self._content
        if not content.changed:
            return content.buffer
        if self.lock.acquire(blocking=False):
            try:
                return self.take()
            finally:
                self.lock.release()
        return self._merged(content)  # a writer has it for a whole step

    def _merged(self, content: _Content) -> Array | None:
        array = content.array.copy()
        for place, value in list(content.changed.items()):
            if not self._fits(place, value):
                return None
            start = self.starts[place]
            with self.stores[place].gate:  # its rows may be changed in place
                array[start : start + math.prod(self.shapes[place])] = np.asarray(value).reshape(-1)
        return array

    def replace(self, buffer: Any) -> None:
        """Makes new values of all variables current. The caller holds the lock."""
        self._content = _Content(buffer)
        self.updates += 1
        if self._boards_epoch != layout.epoch:
            self._boards_epoch = layout.epoch
            self._shown = [store for store in self.stores if store.boards]
        for store in self._shown:
            store.show()


def _whole(change: Callable[[], None]) -> None:
    """Makes a change that must not be left half made, and does no harm if it is made twice."""
    try:
        change()
    except KeyboardInterrupt:
        change()
        raise
