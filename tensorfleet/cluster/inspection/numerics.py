"""Topics `numerics` and `numerics_take`: the first operation of this task that makes a NaN or an infinity."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorfleet.base import counters, errors
from tensorfleet.cluster.inspection import leases
from tensorfleet.cluster.inspection.topics import Options, Report, chosen
from tensorfleet.runtime.numeric_checks import NumericWatch

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server
    from tensorfleet.runtime.scheduling.program import Program

_MAX_POLL_SECONDS = 5.0  # below the lease


@dataclass
class _Start:
    steps: int = 100


@dataclass
class _CountedWatch(NumericWatch):
    """Checks so many steps of this process. A task that runs none of its own counts the stages that it runs for others."""

    wanted: int = 100
    before: int = field(default_factory=lambda: counters.steps.count)

    def begin(self, program: Program, session: str) -> Any:
        """Checks a program, unless enough steps have been."""
        return None if self.count()[0] >= self.wanted else super().begin(program, session)

    def count(self) -> tuple[int, str]:
        """How much was checked, and what is counted."""
        steps = counters.steps.count
        return (steps - self.before, "steps") if steps else (self.checked, "stages")

    def take(self, seconds: float) -> dict[str, Any]:
        """What is known after at most so many seconds, or as soon as there is something."""
        content = super().take(seconds)
        checked, unit = self.count()
        is_done = content["done"] or checked >= self.wanted
        return {**content, "checked": checked, "unit": unit, "done": is_done}


@dataclass
class _Take:
    id: str = ""
    seconds: float = 1.0


def start(server: Server | None, options: Options) -> Report:
    """Begins to check the coming steps; tells the id to ask by."""
    wanted: _Start = chosen(_Start, options)
    if wanted.steps < 1:
        raise errors.InvalidArgumentError(None, None, "Check a whole number of steps, at least 1.")
    return Report({"id": leases.begin(_CountedWatch(sys.maxsize, wanted=wanted.steps))})


def take(server: Server | None, options: Options) -> Report:
    """What the checks have found, after at most some seconds."""
    wanted: _Take = chosen(_Take, options)
    watch = leases.renewed(str(wanted.id))
    if not isinstance(watch, NumericWatch):
        raise errors.InvalidArgumentError(None, None, "This is the id of another kind of watch.")
    return Report(watch.take(min(float(wanted.seconds), _MAX_POLL_SECONDS)))
