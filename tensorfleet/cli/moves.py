"""Tasks at other places than their address in the ClusterSpec says: which, and how the other tasks are told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from tensorfleet.base import settings
from tensorfleet.base.run_status import UNPLACED
from tensorfleet.cli.plan import Place, Task

_TELL_SECONDS = 60.0  # for a task that is just starting; later ones learn it from their environment
_RETRY_SECONDS = 0.2


class Moves:
    """The addresses of a run's tasks that are not those of its ClusterSpec."""

    def __init__(self, token: str, note: Callable[[str], None]) -> None:
        self._token = token
        self._note = note
        self._addresses: dict[str, str] = {}
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def to(self, task: Task, place: Place) -> Task:
        """A task at a new place. Its address in the ClusterSpec stays its name."""
        command = task.command
        if place.host is not None:
            command = [place.host.python, *command[1:]]
        if not task.address:
            return replace(task, host=place.host, command=command)
        if place.address != self.current(task.address):
            self._addresses[task.address] = place.address
        return replace(task, host=place.host, command=command)

    def current(self, address: str) -> str:
        """Where the task of that address is now."""
        return self._addresses.get(address, address)

    def known(self) -> dict[str, str]:
        """By address in the ClusterSpec: where the tasks are that have moved."""
        return dict(self._addresses)

    def told(self, task: Task) -> Task:
        """A task with what it has to know of the moves so far, its own included."""
        if not self._addresses:
            return task
        added = {settings.MOVED.name: json.dumps(self._addresses)}
        own = self._addresses.get(task.address or "")
        if own is not None:
            added[settings.BIND.name] = own
        return replace(task, environment={**task.environment, **added})

    def announce(self, tasks: Mapping[str, Task]) -> None:
        """Tells every task where the others are now, in the background."""
        if not self._addresses:
            return
        places = {label: self.current(task.address) for label, task in tasks.items() if task.address}
        for label, address in places.items():
            if address.partition(":")[0].endswith(UNPLACED):
                continue
            thread = threading.Thread(
                target=self._tell, args=(label, address, dict(self._addresses)), name=f"moves for {label}"
            )
            thread.daemon = True
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """The run is over: nobody has to be told any more."""
        self._closed.set()
        for thread in self._threads:
            thread.join(1.0)

    def _tell(self, label: str, address: str, addresses: dict[str, str]) -> None:
        # Imported only here: most runs never move a task.
        from tensorfleet.base import errors
        from tensorfleet.cluster.messages import Moved
        from tensorfleet.cluster.transport.peers import Peer
        from tensorfleet.cluster.transport.token import secure

        if self._token:
            secure(token=self._token)
        limit = time.monotonic() + _TELL_SECONDS
        while not self._closed.is_set() and addresses == self._addresses:
            peer = Peer(label, address, watched=False)
            try:
                peer.call(Moved(addresses), min(time.monotonic() + 5.0, limit))
                return
            except errors.OpError as error:
                if time.monotonic() > limit:
                    self._note(f"{label} cannot be told where other tasks are now: {error.message}")
                    return
            finally:
                peer.forget()
            self._closed.wait(_RETRY_SECONDS)


def unplaced(job: str, index: int) -> Place:
    """The address of a task that has no place yet."""
    return Place(f"{job}-{index}{UNPLACED}:2222")
