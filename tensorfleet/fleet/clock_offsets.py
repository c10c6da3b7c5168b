"""How far the clock of another task is from ours: from the exchange with the shortest round trip of several."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

EXCHANGES = 8


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """What to subtract from the times of a task to get ours, and how wrong that may be. All in nanoseconds."""

    #: of the steady clocks, by which events are timed
    steady: int
    #: of the wall clocks, which people compare
    wall: int
    #: half of the round trip: the answer was given at some moment of it
    uncertainty: int

    @property
    def applied(self) -> int:
        """What the times of the task are corrected by: nothing if that may be right, as for tasks of one machine."""
        return 0 if abs(self.steady) <= self.uncertainty else self.steady


#: of events that were timed by our own clock
NONE = ClockOffset(0, 0, 0)


def measure(ask: Callable[[], dict[str, int]], exchanges: int = EXCHANGES) -> ClockOffset:
    """Asks for the time of a task, again and again, and takes the answer that came soonest."""
    best: ClockOffset | None = None
    for _ in range(exchanges):
        sent, wall = time.monotonic_ns(), time.time_ns()
        told = ask()
        trip = time.monotonic_ns() - sent
        # Rounded up: the middle of a trip of odd length is not a whole number.
        uncertainty = (trip + 1) // 2 + 1
        if best is None or uncertainty < best.uncertainty:
            steady = int(told["steady_ns"]) - (sent + trip // 2)
            best = ClockOffset(steady, int(told["time_ns"]) - (wall + trip // 2), uncertainty)
    assert best is not None  # there is at least one exchange
    return best


def better(one: ClockOffset, other: ClockOffset) -> ClockOffset:
    """The one of two that is known more precisely."""
    return one if one.uncertainty <= other.uncertainty else other
