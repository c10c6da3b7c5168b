"""Runs of this user that other machines have: those with the same home folder, and batch jobs that Slurm has queued."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

from tensorfleet.cli import registry
from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.slurm_commands import answer, own_jobs

_LOOK_SECONDS = 0.5
_UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class DistantRun:
    """A run whose launcher is on another machine, or has not begun."""

    name: str
    script: str
    logs: str | None
    engine: str
    host: str
    launcher: int
    #: seconds in which its tasks may save
    grace: float = 0.0
    #: the batch job that it is, and its state as Slurm calls it
    job: str | None = None
    state: str = _UNKNOWN
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The job or the launcher, for people."""
        launcher = f"launcher {self.launcher} on {self.host}" if self.launcher else ""
        job = f"Slurm job {self.job}, {self.state}" if self.job else ""
        return ", ".join(filter(None, (job, launcher)))


def distant_runs() -> list[DistantRun]:
    """All that go on. A batch job whose launcher is on this machine is none of them."""
    entries = list(registry.elsewhere())
    jobs = [content for content in entries if content.get("job")]
    states = _states() if jobs else {}
    for content in jobs:
        if states is not None and content["job"] not in states:
            registry.forget_job(content["job"])  # it has ended
    waiting = {c["name"]: c["job"] for c in jobs if states is None or c["job"] in states}
    here = {run["name"] for run in registry.runs()}
    begun = [content for content in entries if not content.get("job")]
    named = {content["name"] for content in begun} | here
    queued = [c for c in jobs if c["name"] in waiting and c["name"] not in named]
    return [_run_of(c, waiting.get(c["name"]), states or {}) for c in (*begun, *queued)]


def is_own_job(name: str) -> bool:
    """Whether this process is in the batch job that was submitted for the run of this name."""
    own = os.environ.get("SLURM_JOB_ID")
    return own is not None and any(c.get("job") == own and c["name"] == name for c in registry.elsewhere())


def stop_distant(run: DistantRun, patience: float = 60.0) -> str:
    """Ends a batch job: its tasks may save first. Raises `EngineError` where only its own machine can end it."""
    if run.job is None:
        raise EngineError(
            f"{run.name} was started on {run.host} (launcher {run.launcher}). Stop it there, with tensorfleet stop {run.name}."
        )
    if run.state in ("RUNNING", _UNKNOWN):
        answer(["scancel", "--batch", "--signal=TERM", run.job])
        limit = time.monotonic() + patience + run.grace
        while time.monotonic() < limit:
            if run.job not in own_jobs():
                registry.forget_job(run.job)
                return f"stopped (Slurm job {run.job})"
            time.sleep(_LOOK_SECONDS)
    answer(["scancel", run.job])
    registry.forget_job(run.job)
    return f"cancelled (Slurm job {run.job}, {run.state})"


def _states() -> dict[str, str] | None:
    """The states of this user's jobs; None if Slurm does not tell."""
    try:
        return own_jobs()
    except EngineError:
        return None


def _run_of(content: dict[str, Any], job: str | None, states: dict[str, str]) -> DistantRun:
    return DistantRun(
        content["name"],
        content.get("script", ""),
        content.get("logs"),
        content.get("engine", "local"),
        content.get("host", ""),
        content["launcher"],
        content.get("grace", 0.0),
        job,
        states.get(job, _UNKNOWN) if job else _UNKNOWN,
        content.get("tasks", {}),
    )
