"""What all consistency schemes have in common, and what is done to a stale gradient.

A scheme decides and does nothing else: it has no sockets, threads or clocks. The staleness of a gradient (its age) is
the number of updates that others made after its worker read the variables.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar, NamedTuple


class StepObservation(NamedTuple):
    """One step of a worker, as a scheme that adapts itself wants to know it."""

    age: int
    #: seconds from its beginning until its gradient was applied, and from then until the next step was let begin
    worked: float
    waited: float
    #: how many workers train
    workers: int


class StaleRule(abc.ABC):
    """What is done to a gradient of some age."""

    #: how the rule is written behind a scheme; empty for the rule that needs no word
    text: str

    @abc.abstractmethod
    def weight(self, age: int) -> float:
        """What the gradient is multiplied by: 1 applies it whole, 0 drops it."""


@dataclass(frozen=True)
class Whole(StaleRule):
    """Every gradient is applied as it is."""

    text = ""

    def weight(self, age: int) -> float:
        """Always 1."""
        return 1.0


@dataclass(frozen=True)
class Scaled(StaleRule):
    """A gradient is divided by one more than its age."""

    text = "scale"

    def weight(self, age: int) -> float:
        """1 for a fresh gradient, less the older it is."""
        return 1.0 / (1 + max(age, 0))


@dataclass(frozen=True)
class Dropped(StaleRule):
    """A gradient older than `bound` is dropped."""

    bound: int

    @property
    def text(self) -> str:  # type: ignore[override]
        """How it is written: `drop:8`."""
        return f"drop:{self.bound}"

    def weight(self, age: int) -> float:
        """1 up to the bound, then 0."""
        return 1.0 if age <= self.bound else 0.0


class Scheme(abc.ABC):
    """Decides when a worker may begin its next step, and what its gradient counts."""

    #: whether one update is made from the gradients of several workers
    aggregates: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """The scheme as it is written."""

    @abc.abstractmethod
    def weight(self, age: int) -> float:
        """What a gradient of that age is multiplied by: 1 applies it whole, 0 drops it."""

    @abc.abstractmethod
    def may_begin(self, done: int, slowest: int) -> bool:
        """Whether a worker that has made `done` steps may begin the next one, where the slowest has made `slowest`."""

    def needed(self, workers: int) -> int:
        """How many gradients make one update when so many workers train."""
        return 1

    def observe(self, observation: StepObservation) -> None:  # noqa: B027 - most schemes learn nothing
        """Takes note of a step that is over."""


#: the rule of a scheme that says nothing else
WHOLE = Whole()


def behind(scheme: str, rule: StaleRule) -> str:
    """A scheme with the rule for stale gradients behind it."""
    return f"{scheme} {rule.text}".strip()
