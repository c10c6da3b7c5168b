"""Findings: sentences about what slows a run down, and what to do about it.

`findings_in` is a function of one view of the fleet. `FindingBoard` keeps the list still: a finding is shown when it has
been true for some moments in a row, and goes when it has not been true for longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorfleet.cli.dashboard.finding_rules import RULES, RunObservation, slow_workers
from tensorfleet.cli.dashboard.overview import FleetView, Json

_APPEARS_AFTER = 2  # views in a row
_GOES_AFTER_SECONDS = 6.0
_MAX_SHOWN = 12
_ORDER = {"serious": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class RunFinding:
    """A finding that is shown."""

    observation: RunObservation
    since: float

    def json(self) -> Json:
        """As the page's interface gives it."""
        seen = self.observation
        return {
            "kind": seen.kind,
            "severity": seen.severity,
            "task": seen.task,
            "text": seen.text,
            "advice": seen.advice,
            "since": self.since,
        }


@dataclass(slots=True)
class _Seen:
    observation: RunObservation
    first: float
    last: float
    times: int = 1
    is_shown: bool = False


class FindingBoard:
    """The list of findings over time."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str | None], _Seen] = {}
        self._changes: list[str] = []

    def update(self, fleet: FleetView) -> list[RunFinding]:
        """Takes the next view; gives what is to be shown."""
        for observation in findings_in(fleet):
            key = (observation.kind, observation.task)
            seen = self._seen.get(key)
            if seen is None:
                self._seen[key] = _Seen(observation, fleet.time, fleet.time)
            else:
                seen.observation, seen.last, seen.times = observation, fleet.time, seen.times + 1
            self._show(self._seen[key])
        for key, seen in list(self._seen.items()):
            is_over = fleet.time - seen.last > _GOES_AFTER_SECONDS
            if is_over or (not seen.is_shown and seen.last < fleet.time):
                del self._seen[key]
                if seen.is_shown:
                    self._changes.append(f"No more: {seen.observation.text}")
        return self.shown()

    def shown(self) -> list[RunFinding]:
        """The findings, the most serious and oldest first; before them facts such as a task that died."""
        shown = [RunFinding(seen.observation, seen.first) for seen in self._seen.values() if seen.is_shown]
        shown.sort(
            key=lambda f: (
                _ORDER[f.observation.severity],
                not f.observation.is_sudden,
                f.since,
                f.observation.task or "",
            )
        )
        return shown[:_MAX_SHOWN]

    def changes(self) -> list[str]:
        """What has appeared and gone since this was asked last."""
        changes, self._changes = self._changes, []
        return changes

    def _show(self, seen: _Seen) -> None:
        if not seen.is_shown and (seen.times >= _APPEARS_AFTER or seen.observation.is_sudden):
            seen.is_shown = True
            self._changes.append(seen.observation.text)


def findings_in(fleet: FleetView) -> list[RunObservation]:
    """Everything that is to be said about one view of the fleet."""
    return [observation for rule in RULES for observation in rule(fleet)]


def stragglers(fleet: FleetView) -> set[str]:
    """The workers that are slower than the others."""
    return {worker.label for worker in slow_workers(fleet)}
