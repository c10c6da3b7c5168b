"""The state of each task, from what the launcher says and from when it last answered. Decides only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TaskState = Literal["starting", "running", "silent", "ended", "failed", "dead"]
SILENT_SECONDS = 3.0  # without an answer


@dataclass(slots=True)
class TaskFacts:
    """What is known about a task. Times are of this machine's steady clock."""

    label: str
    address: str | None = None
    pid: int | None = None
    host: str | None = None
    #: what the launcher says: running, ended or failed; None for a cluster that was started by hand
    launched: str | None = None
    exit_code: int | None = None
    first_asked: float | None = None
    last_answer: float | None = None
    #: the connection was refused when it was last asked: nobody listens there
    is_refused: bool = False
    #: why it did not answer, in words
    error: str | None = None
    restarts: int = 0
    started: float | None = None  # unix seconds

    @property
    def job(self) -> str:
        """Such as worker."""
        return self.label.partition("/")[0]

    @property
    def index(self) -> int:
        """Its number in the job."""
        return int(self.label.partition("/")[2] or 0)


def state_of(facts: TaskFacts, now: float) -> TaskState:
    """The state of a task at a time of the steady clock."""
    if facts.launched == "ended":
        return "ended"
    if facts.launched == "failed":
        # A negative code is a signal: nobody but the process itself chooses an exit code.
        return "dead" if (facts.exit_code or 0) < 0 else "failed"
    if facts.address is None:
        return "running" if facts.launched == "running" else "starting"
    if facts.last_answer is None:
        return "starting"
    if now - facts.last_answer <= SILENT_SECONDS:
        return "running"
    if facts.is_refused and facts.launched is None:
        return "dead"  # no launcher tells its end: where nobody listens, nobody is left
    return "silent"
