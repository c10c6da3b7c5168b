"""A step over several tasks whose parts are measured: one of several short ones, and every long one (base/counters.py).

It also finds out how stale its gradients are. A task tells with its answer which versions of variables a stage has read,
and which ones it has changed; shared memory has the number of changes. The difference is what others did in between.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import counters
from tensorfleet.base.counters import StepTimer
from tensorfleet.cluster import messages
from tensorfleet.cluster.master.cluster_program import ClusterProgram, StageProgram
from tensorfleet.cluster.master.distributed_while import DividedLoop
from tensorfleet.cluster.master.step_driver import StepDriver
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.runtime.variable_versions import VariableVersions

if TYPE_CHECKING:
    from tensorfleet.cluster.master.master import ClusterEngine
    from tensorfleet.cluster.master.shared_memory_reads import SharedMemoryRead
    from tensorfleet.runtime.trace import StepObserver


class MeasuredStep(StepDriver):
    """One step under way, with a timer. A class of its own, so that the others have nothing to do for it."""

    __slots__ = ("_versions", "timer")

    def __init__(
        self,
        engine: ClusterEngine,
        program: ClusterProgram,
        number: int,
        deadline: float | None,
        collector: StepObserver | None,
        timer: StepTimer,
    ) -> None:
        super().__init__(engine, program, number, deadline, collector)
        self.timer = timer
        #: what it has seen of the variables of each task, None for those of this process. Not looked for while it is
        #: traced, and not if it has one stage: then nothing was read before the update was sent.
        self._versions: dict[Peer | None, VariableVersions] | None = None
        if collector is None and len(program.work) > 1:
            self._versions = {}
            self._how |= messages.VERSIONS

    def go(self, feeds: Sequence[Any]) -> list[Any]:
        """Runs the step, returns the fetched values, and counts the staleness of its gradients."""
        results = super().go(feeds)
        if self._versions:
            ages = [versions.staleness() for versions in self._versions.values()]
            oldest = max((age for age in ages if age is not None), default=None)
            if oldest is not None:
                counters.note_measured_staleness(oldest)
        return results

    def _start(self, i: int) -> None:
        began = time.perf_counter()
        work = self.program.work[i]
        if self._versions is None or work.posted is None or work.is_empty:
            super()._start(i)
        else:
            self._read(i, work, work.posted, self._versions_of(work.peer))
        self._add([work], time.perf_counter() - began)

    def _read(self, i: int, work: StageProgram, posted: SharedMemoryRead, versions: VariableVersions) -> None:
        """Reads variables of another task, and notes their versions."""
        values = posted.read(self.engine.handle, self.deadline, versions)
        if values is None:
            self._ask(i, work)
        else:
            self._done(i, values)

    def _wait(self) -> None:
        stages = [self.program.work[i] for i, _, _ in self.asked.values()]
        began = time.perf_counter()
        super()._wait()
        if stages:
            self._add(stages, time.perf_counter() - began)

    def _told(self, at: Peer, frame: wire.Frame) -> None:
        if self._versions is not None:
            ran = frame.read(messages.Ran)
            self._versions_of(at).add(ran.read, ran.updated)

    def local(self, i: int) -> Sequence[Any]:
        """Runs a stage of this process, which measures what it waits for itself."""
        work = self.program.work[i]
        engine = self.engine.local_engine
        if engine is None or isinstance(work.program, DividedLoop):
            return super().local(i)
        given = [self.values[s] for s in work.ins]
        left = 0 if self.deadline is None else self.left()
        versions = None if self._versions is None else self._versions_of(None)
        return engine.run_measured(
            work.program, given, self.timer, left, self.collector, self.began, versions=versions
        )

    def _versions_of(self, task: Peer | None) -> VariableVersions:
        assert self._versions is not None
        versions = self._versions.get(task)
        if versions is None:  # stages of one task may run in several threads: all have to get the same
            versions = self._versions.setdefault(task, VariableVersions())
        return versions

    def _add(self, stages: Sequence[StageProgram], seconds: float) -> None:
        # Those that were waited for at the same time share it.
        share = seconds / len(stages)
        for stage in stages:
            part = stage.part()
            if part is not None:
                self.timer.add(part, share)
        self.timer.add_waits([stage.peer for stage in stages], seconds)
