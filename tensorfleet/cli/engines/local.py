"""Tasks as processes of this machine."""

from __future__ import annotations

import signal
import socket
from collections.abc import Sequence

from tensorfleet.cli.engines.base import EngineError, RunEngine, RunListener, RunningTask, RunOptions, Wanted
from tensorfleet.cli.engines.child import ChildTask, Guardian, free_ports, start_here
from tensorfleet.cli.plan import Place, Task

_LOOPBACK = "127.0.0.1"


class ProcessEngine(RunEngine):
    """Starts every task on this machine; there is always room."""

    name = "local"

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self._guardian: Guardian | None = None
        self._children: dict[str, ChildTask] = {}

    def preview(self, wanted: Sequence[Wanted]) -> dict[str, Place]:
        """Free ports, as `reserve` gives."""
        return _ports_for(wanted)

    def reserve(self, wanted: Sequence[Wanted], listener: RunListener) -> dict[str, Place]:
        """A free port for each."""
        return _ports_for(wanted)

    def start(self, task: Task, listener: RunListener) -> RunningTask:
        """A process of its own, with all that it starts."""
        # A process of its own: it ends the tasks even if this one is killed.
        self._guardian = self._guardian or Guardian()
        child = ChildTask(task.label, start_here(task), listener.on_line, listener.on_exit, self._guardian)
        self._children[task.label] = child
        return child

    def seek(self, wanted: Wanted, listener: RunListener) -> None:
        """Another free port."""
        (port,) = free_ports(1)
        listener.on_place(wanted.label, Place(f"{_LOOPBACK}:{port}"))

    def place_on(self, wanted: Wanted, host: str) -> Place:
        """Another free port: there is one host."""
        if host not in (_LOOPBACK, "localhost", socket.gethostname()):
            raise EngineError(
                f"This run is on this machine alone, so {wanted.label} cannot be placed on {host}. Write --to localhost."
            )
        (port,) = free_ports(1)
        return Place(f"{_LOOPBACK}:{port}")

    def close(self) -> None:
        """No task outlives the run."""
        for child in self._children.values():
            child.send(signal.SIGKILL)
        if self._guardian is not None:
            self._guardian.close()
            self._guardian = None


def _ports_for(wanted: Sequence[Wanted]) -> dict[str, Place]:
    ports = free_ports(len(wanted))
    return {one.label: Place(f"{_LOOPBACK}:{port}") for one, port in zip(wanted, ports, strict=True)}
