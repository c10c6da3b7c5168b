"""What the user wants of a run, besides its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunSettings:
    """What the user wants of a run, besides its tasks."""

    name: str
    script: str
    log_dir: Path | None = None
    restarts: int = 0
    timeout: float | None = None
    keep_going: bool = False
    #: how long tasks may take to save when the run is told to end by SIGTERM or its time is up
    grace: float | None = None
    #: jobs whose tasks may come and go
    elastic: frozenset[str] = frozenset()
    #: more of them come only when the user says so: `tensorfleet scale`
    scaled_by_hand: bool = False
    #: where a task tells of a cluster that has more tasks than these
    made: Path | None = None
