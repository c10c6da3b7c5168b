"""`bsp`: bulk synchronous parallel. One update is the mean of one gradient of each worker."""

from __future__ import annotations

from dataclasses import dataclass

from tensorfleet.fleet.consistency.scheme import Scheme


@dataclass(frozen=True)
class BulkSynchronous(Scheme):
    """All workers make a step together. A gradient for an update that was made without it is dropped."""

    aggregates = True

    @property
    def text(self) -> str:
        """`bsp`."""
        return "bsp"

    def weight(self, age: int) -> float:
        """1 if the gradient is for the next update, else 0."""
        return 1.0 if age <= 0 else 0.0

    def may_begin(self, done: int, slowest: int) -> bool:
        """Nobody begins a step before all have ended the last one."""
        return done <= slowest

    def needed(self, workers: int) -> int:
        """A gradient of every worker."""
        return max(workers, 1)
