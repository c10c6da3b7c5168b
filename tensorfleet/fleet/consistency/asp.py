"""`asp`: asynchronous parallel. No worker waits for another."""

from __future__ import annotations

from dataclasses import dataclass

from tensorfleet.fleet.consistency.scheme import WHOLE, Scheme, StaleRule, behind


@dataclass(frozen=True)
class Asynchronous(Scheme):
    """Each worker applies its gradient at once and goes on."""

    rule: StaleRule = WHOLE

    @property
    def text(self) -> str:
        """`asp`."""
        return behind("asp", self.rule)

    def weight(self, age: int) -> float:
        """As the rule for stale gradients says."""
        return self.rule.weight(age)

    def may_begin(self, done: int, slowest: int) -> bool:
        """Always."""
        return True
