"""`ssp:k`: stale synchronous parallel. No worker is more than k steps ahead of the slowest."""

from __future__ import annotations

from dataclasses import dataclass

from tensorfleet.fleet.consistency.scheme import WHOLE, Scheme, StaleRule, behind


@dataclass(frozen=True)
class StaleSynchronous(Scheme):
    """Workers apply their gradients at once, and wait when they are more than `bound` steps ahead of the slowest."""

    bound: int
    rule: StaleRule = WHOLE

    @property
    def text(self) -> str:
        """`ssp:4`."""
        return behind(f"ssp:{self.bound}", self.rule)

    def weight(self, age: int) -> float:
        """As the rule for stale gradients says."""
        return self.rule.weight(age)

    def may_begin(self, done: int, slowest: int) -> bool:
        """Whether the worker is at most `bound` steps ahead."""
        return done - slowest <= self.bound
