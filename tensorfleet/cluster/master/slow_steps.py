"""Steps of this process that wait long for queues of other tasks: which queue, of which task, at which line of the program."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tensorfleet.base import logging
from tensorfleet.graph.operation import Operation
from tensorfleet.state import long_waits

if TYPE_CHECKING:
    from tensorfleet.cluster.master.master import ClusterEngine
    from tensorfleet.cluster.master.step_driver import StepDriver
    from tensorfleet.cluster.transport import wire
    from tensorfleet.cluster.transport.peers import Peer


def awaited(ops: Iterable[Operation]) -> list[str]:
    """What operations may wait for: the queues and the like that they use, by name."""
    descriptions = []
    for op in ops:
        if op.spec.blocks:
            source = op._inputs[0]._op if op._inputs else op
            name = (source._attrs.get("shared_name") or b"").decode() or source.name
            line = f", made at {op.source_line}" if op.source_line else ""
            descriptions.append(f"'{name}' ({op.type} '{op.name}'{line})")
    return descriptions


class SlowSteps:
    """Looks at the steps under way, now and again; a step itself spends no time on it."""

    def __init__(self, engines: Collection[ClusterEngine]) -> None:
        self._engines = engines
        self._looking = threading.Lock()
        #: when each step under way was seen first
        self._seen: weakref.WeakKeyDictionary[StepDriver, float] = weakref.WeakKeyDictionary()
        #: by what is waited for: after how many seconds the next line is due
        self._told: dict[str, float] = {}

    def look(self) -> None:
        """Tells of the steps that have waited for too long."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            now = time.monotonic()
            for engine in list(self._engines):
                with engine.lock:
                    running = list(engine.running.values())
                for run in running:
                    self._look_at(run, now)
        finally:
            self._looking.release()

    def _look_at(self, run: StepDriver, now: float) -> None:
        waited = now - self._seen.setdefault(run, now)
        if waited < long_waits.REPORT_SECONDS:
            return
        for what in self._waits_of(run):
            if waited >= self._told.get(what, 0.0):
                self._told[what] = 2 * waited
                logging.warning(
                    "A step has waited %.0f s for %s. The log of that task says more.", waited, what
                )

    @staticmethod
    def _waits_of(run: StepDriver) -> list[str]:
        pending: list[tuple[int, Peer, wire.Channel]] = []
        with contextlib.suppress(RuntimeError):  # the step goes on in this moment
            pending = list(run.asked.values())
        return [
            f"{what} of {at.name}" for i, at, _ in pending for what in awaited(run.program.work[i].stage.ops)
        ]
