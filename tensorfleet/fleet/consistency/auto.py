"""`auto`: bounded staleness whose bound follows what waiting and staleness cost.

Both costs are fractions, measured over a window of steps of all workers.

    throughput lost   the time that workers waited, divided by the time they worked or waited
    staleness lost    1 - the mean of n / (n + excess) over the gradients, where n is the number of workers and `excess`
                      is how much older a gradient is than the n - 1 updates that n equal workers always make meanwhile

When waiting costs more than staleness by `MARGIN`, the bound grows by one. When it is the other way round, the bound
shrinks by one. In between it stays.
"""

from __future__ import annotations

from tensorfleet.fleet.consistency.scheme import WHOLE, Scheme, StaleRule, StepObservation, behind

#: where the bound begins, and the largest it gets
FIRST_BOUND, MAX_BOUND = 2, 64
#: steps of each worker in one window
STEPS_PER_WINDOW = 8
#: by how much the costs must differ to move the bound
MARGIN = 0.02


class Adaptive(Scheme):
    """Stale synchronous, with a bound that adapts itself."""

    def __init__(self, rule: StaleRule = WHOLE) -> None:
        self.rule = rule
        self.bound = FIRST_BOUND
        #: what the last whole window has cost: throughput and staleness
        self.costs = (0.0, 0.0)
        self._begin_window()

    def _begin_window(self) -> None:
        self._steps = 0
        self._worked = self._waited = self._useful = 0.0

    @property
    def text(self) -> str:
        """`auto`."""
        return behind("auto", self.rule)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Adaptive) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def weight(self, age: int) -> float:
        """As the rule for stale gradients says."""
        return self.rule.weight(age)

    def may_begin(self, done: int, slowest: int) -> bool:
        """Whether the worker is at most as many steps ahead as the bound is now."""
        return done - slowest <= self.bound

    def observe(self, observation: StepObservation) -> None:
        """Adds a step to the window; at its end, moves the bound."""
        workers = max(observation.workers, 1)
        excess = max(observation.age - (workers - 1), 0)
        self._steps += 1
        self._worked += max(observation.worked, 0.0)
        self._waited += max(observation.waited, 0.0)
        self._useful += workers / (workers + excess)
        if self._steps >= STEPS_PER_WINDOW * workers:
            self._end_window()

    def _end_window(self) -> None:
        spent = self._worked + self._waited
        lost_time = self._waited / spent if spent else 0.0
        lost_to_age = 1.0 - self._useful / self._steps
        self.costs = (lost_time, lost_to_age)
        if lost_time > lost_to_age + MARGIN:
            self.bound = min(self.bound + 1, MAX_BOUND)
        elif lost_to_age > lost_time + MARGIN:
            self.bound = max(self.bound - 1, 0)
        self._begin_window()
