"""What became of the gradients that workers have brought to a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

#: the kinds of a resource that judges gradients, and of a session whose gradients it judges
GATE_KIND, GATE_MEMBER_KIND = "consistency", "worker of a consistency"


@dataclass
class Tally:
    """What became of the gradients of one worker."""

    #: applied ones by their age, the scaled ones included
    ages: Counter[int] = field(default_factory=Counter)
    scaled: int = 0
    dropped: int = 0

    def count(self, age: int, weight: float) -> None:
        """Counts a gradient."""
        if weight <= 0:
            self.dropped += 1
            return
        self.ages[age] += 1
        self.scaled += weight < 1

    def copy(self) -> Tally:
        """The same, as it is now."""
        return Tally(Counter(self.ages), self.scaled, self.dropped)


class JudgesGradients(Protocol):
    """A resource that decides what becomes of gradients."""

    def tallies(self) -> Mapping[str, Tally]:
        """By task what became of the gradients of its sessions."""
