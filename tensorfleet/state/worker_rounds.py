"""How far each worker is: who has pushed in the current round, and who has to wait for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.state.recording import ChangeRecorder


class Clocks:
    """Which workers take part, how many pushes each has made, and who is in the current round. No threads, no waits."""

    def __init__(self, members: int) -> None:
        self.members = set(range(members))
        self.count = members
        self.ticks = dict.fromkeys(range(members), 0)
        self.arrived: set[int] = set()
        self.round = 0
        self._is_closing = False  # the last one of the round applies its gradients

    def join(self, worker: int) -> None:
        """A worker takes part (again): it begins where the slowest is."""
        if worker not in self.members:
            self.ticks[worker] = min((self.ticks[m] for m in self.members), default=self.ticks.get(worker, 0))
            self.members.add(worker)

    def arrive(self, worker: int) -> bool:
        """A worker has pushed in this round; whether it is the last, which then applies the gradients."""
        self.join(worker)
        self.arrived.add(worker)
        return self._closes()

    def leave(self, worker: int) -> bool:
        """A worker has ended; whether all others have pushed, so that it has to apply their gradients."""
        self.members.discard(worker)
        self.arrived.discard(worker)
        return self._closes()

    def _closes(self) -> bool:
        if self._is_closing or not self.arrived or self.arrived != self.members:
            return False
        self._is_closing = True
        return True

    def open(self) -> None:
        """The gradients of the round were applied: the next one begins."""
        self.round += 1
        self.arrived = set()
        self._is_closing = False

    def tick(self, worker: int) -> None:
        """A worker has made a push."""
        self.join(worker)
        self.ticks[worker] += 1

    def missing(self) -> list[int]:
        """The workers that have not pushed in this round."""
        return sorted(self.members - self.arrived)

    def behind(self, worker: int, bound: int) -> list[int]:
        """The workers that are more than `bound` pushes behind a worker."""
        mine = self.ticks.get(worker, 0)
        return sorted(m for m in self.members if mine - self.ticks[m] > bound)


class WorkerRounds:
    """The clocks of the workers as all of them see them, and the gradients of the current round."""

    #: who keeps a copy of it, on a durable server
    recorder: ChangeRecorder | None = None

    def __init__(self, name: str, members: int) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._clocks = Clocks(members)
        self._waiting: list[threading.Event] = []
        self._gradients: dict[int, Sequence[Array]] = {}

    def change(self, what: Callable[[Clocks], Any]) -> Any:
        """Does something to the clocks and has all that wait look again."""
        with self._lock:
            result = what(self._clocks)
            waiting, self._waiting = self._waiting, []
            if self.recorder is not None:
                self.recorder.changed(self)
        for event in waiting:
            event.set()
        return result

    def look(self, blockers: Callable[[Clocks], list[int]]) -> tuple[list[int], threading.Event]:
        """The workers that somebody waits for, and an event that is set at the next change."""
        event = threading.Event()
        with self._lock:
            found = blockers(self._clocks)
            if found:
                self._waiting.append(event)
        return found, event

    def put(self, worker: int, gradients: Sequence[Array]) -> None:
        """Keeps the gradients of a worker for this round, in place of earlier ones of it."""
        with self._lock:
            self._gradients[worker] = gradients
            if self.recorder is not None:
                self.recorder.changed(self)

    def take(self) -> list[Array]:
        """The means of the gradients of this round, which then are gone. Their order does not depend on who was first."""
        with self._lock:
            given, self._gradients = self._gradients, {}
        ordered = [given[worker] for worker in sorted(given)]
        count = len(ordered)
        if count == 1:
            return list(ordered[0])
        return [_mean(parts, count) for parts in zip(*ordered, strict=True)]

    def size(self) -> int:
        """How many workers take part."""
        return len(self._clocks.members)

    def content(self) -> tuple[dict[str, Any], list[Any]]:
        """Its state for a copy."""
        with self._lock:
            clocks = self._clocks
            numbers = {
                "members": sorted(clocks.members),
                "ticks": [[worker, tick] for worker, tick in clocks.ticks.items()],
                "arrived": sorted(clocks.arrived),
                "round": clocks.round,
                "from": list(self._gradients),
            }
            return numbers, [g for gradients in self._gradients.values() for g in gradients]

    def restore(self, numbers: dict[str, Any], arrays: Sequence[Any]) -> None:
        """Takes over the state of a copy."""
        clocks = self._clocks
        clocks.members = set(numbers["members"])
        clocks.ticks = {worker: tick for worker, tick in numbers["ticks"]}
        clocks.arrived, clocks.round = set(numbers["arrived"]), numbers["round"]
        workers = numbers["from"]
        each = len(arrays) // len(workers) if workers else 0
        self._gradients = {w: list(arrays[i * each : (i + 1) * each]) for i, w in enumerate(workers)}


def _mean(parts: Sequence[Array], count: int) -> Array:
    total = np.add(parts[0], parts[1])
    for part in parts[2:]:
        np.add(total, part, out=total)
    result: Array = np.divide(total, count).astype(parts[0].dtype, copy=False)
    return result
