"""What a session needs of an engine, whether this process runs its steps (engine.py) or a cluster (cluster/master/master.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from tensorfleet.base import errors
from tensorfleet.base.counters import StepTimer
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import Plan
from tensorfleet.runtime.trace import Collector, StepObserver


class Planned(Protocol):
    """A program of an engine, as far as others know it: what it was made from."""

    plan: Plan


ProgramT = TypeVar("ProgramT", bound=Planned)


class Engine(Protocol[ProgramT]):
    """Plans and runs the steps of one session. A program is run by the engine that made it."""

    graph: Graph
    placer: Placer

    def program(
        self, fetches: Sequence[Tensor], targets: Sequence[Operation], feeds: Sequence[Tensor]
    ) -> ProgramT:
        """Plans a step."""

    def run(
        self,
        program: ProgramT,
        feeds: Sequence[Any],
        timeout_ms: int = 0,
        collector: StepObserver | None = None,
        *,
        pool: int = 0,
    ) -> list[Any]:
        """Runs a step and returns the fetched values. Without a timeout, the session's holds."""

    def run_measured(
        self,
        program: ProgramT,
        feeds: Sequence[Any],
        timer: StepTimer,
        timeout_ms: int = 0,
        collector: StepObserver | None = None,
        *,
        pool: int = 0,
    ) -> list[Any]:
        """Runs a step and tells the timer how long its parts take."""

    def repeat(self, program: ProgramT) -> None:
        """Runs a step that its caller will ask for again: once, or for a while where another task does all of it."""

    def close(self, reason: errors.OpError, finished: bool = False) -> None:
        """Ends the steps under way with the reason, and refuses new ones. `finished`: the session has done its work."""

    def device_names(self) -> list[str]:
        """The full names of the devices that the session may use."""

    def dropped(self) -> dict[str, int]:
        """How many steps' gradients were dropped as stale, by who computed them."""

    def collector(self) -> Collector:
        """Something that records what a step does and when."""
