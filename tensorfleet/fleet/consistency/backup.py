"""`backup:k`: the first gradients make an update, and the k slowest workers are not waited for."""

from __future__ import annotations

from dataclasses import dataclass

from tensorfleet.fleet.consistency.scheme import Scheme


@dataclass(frozen=True)
class Backup(Scheme):
    """Of N + k workers the first N gradients make one update. Gradients that come later are dropped."""

    spare: int
    aggregates = True

    @property
    def text(self) -> str:
        """`backup:2`."""
        return f"backup:{self.spare}"

    def weight(self, age: int) -> float:
        """1 if the gradient is for the next update, else 0."""
        return 1.0 if age <= 0 else 0.0

    def may_begin(self, done: int, slowest: int) -> bool:
        """The slowest does not count: whoever has had an update made begins the next step."""
        return True

    def needed(self, workers: int) -> int:
        """All but the spare ones, and at least one."""
        return max(workers - self.spare, 1)
