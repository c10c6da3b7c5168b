"""Shutdown: a task that finishes tells the others, and one that only serves ends when all others have."""

from __future__ import annotations

import multiprocessing
import threading
import time
from typing import TYPE_CHECKING, NoReturn

from tensorfleet.base import errors, settings
from tensorfleet.base.platform.exit_threads import started
from tensorfleet.cluster.master.placer import task_name
from tensorfleet.cluster.messages import Bye, Describe
from tensorfleet.cluster.transport.connection import canonical
from tensorfleet.cluster.transport.peers import Peer

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

_CALL_SECONDS = 1.0  # to tell a task, which may be gone itself
_ALL_CALLS_SECONDS = 10.0  # to tell all, one by one, where no thread can be started any more
_LOOK_SECONDS = 2.0


def script_ends_here() -> bool:
    """Whether this process is a script that expects nothing after `join`: what follows is for other tasks.

    One of a pool of processes has to give its result, if only to end the pool.
    """
    return settings.ENDS_AT_JOIN() and multiprocessing.parent_process() is None


def end_script(code: int) -> NoReturn:
    """Ends the script of this process with an exit code, where TensorFlow would block for ever or another task goes on.

    The only place of the core outside the command that does so. It has to be the interpreter's own exception: a script run
    by `python` has nobody to catch another, and its `finally` blocks and exit functions must run.
    """
    raise SystemExit(code)


class Departure:
    """Decides when a server that was told to end may go: not while workers, which were told too, save what is on it.

    No clock, no sockets, no locks: a signal handler may call it.
    """

    def __init__(self, seconds: float) -> None:
        """`seconds` is how long the workers may take."""
        self._seconds = seconds
        self._until: float | None = None

    def ask(self, now: float) -> None:
        """The server is told to end. Cluster managers may say so more than once."""
        if self._until is None:
            self._until = now + self._seconds

    def is_due(self, has_workers: bool, now: float) -> bool:
        """Whether the server ends now."""
        return self._until is not None and (not has_workers or now >= self._until)


class ShutdownNotices:
    """Tells other tasks of the end of this one, and ends a server when all others have ended."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._gone: set[str] = set()  # their addresses: a chief may also be a worker
        self._ending = False  # somebody has finished its work: perhaps everybody has
        self._looked = 0.0

    def heard(self, task: str, served: bool) -> None:
        """Notes that another task has ended: its work is finished, or it only served and was told to stop."""
        places = [place for other, place in self._places().items() if task_name(*other) == task]
        if not places:
            return
        self._gone.update(places)
        self._ending = self._ending or not served
        self._looked = 0.0

    def look(self) -> None:
        """Stops the server when no task is left that it could serve."""
        if settings.STAYS():
            return
        if not self._ending or time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        if all(self._finished(job, index) for job, index in self.others()):
            self.tell_others()  # those that only serve too may not have asked this one yet
            self._server._stopping.set()

    def _places(self) -> dict[tuple[str, int], str]:
        """Where the other tasks are."""
        server = self._server
        cluster = server.cluster
        tasks = [(job, i) for job in cluster.jobs for i in cluster.task_indices(job)]
        addresses = {task: canonical(cluster.task_address(*task)) for task in tasks}
        return {
            task: place for task, place in addresses.items() if place != addresses[server.job, server.index]
        }

    def others(self) -> list[tuple[str, int]]:
        """The other tasks that have not ended, each by one of its names."""
        return list(
            {place: task for task, place in self._places().items() if place not in self._gone}.values()
        )

    def _finished(self, job: str, index: int) -> bool:
        if job == self._server.job == "ps":
            return True  # they serve, as this one does
        return self._serves(job, index)

    def _serves(self, job: str, index: int) -> bool:
        """Whether another task only serves. One that cannot be asked may be about to start."""
        at = Peer(task_name(job, index), self._server.cluster.task_address(job, index), watched=False)
        try:
            return at.call(Describe(), time.monotonic() + _CALL_SECONDS).joined
        except errors.OpError:
            return False
        finally:
            at.forget()

    def announce(self) -> None:
        """Tells every other task that this one has ended."""
        if self._server._stopping.is_set():
            return
        self.tell_others(served=self._server.joined)
        self._server.stop()

    def tell_others(self, served: bool = False) -> None:
        """Tells every other task that has not ended that this one's work is finished, or that it only served."""
        # Parameter servers first: they wait for this, and there may be no time to tell everybody in turn.
        others = sorted(self.others(), key=lambda task: task[0] != "ps")
        limit = time.monotonic() + _ALL_CALLS_SECONDS
        threads = []
        for job, index in others:
            thread = threading.Thread(target=self._tell, args=(job, index, served), daemon=True)
            if started(thread):
                threads.append(thread)
            elif time.monotonic() < limit:
                self._tell(job, index, served)
        for thread in threads:
            thread.join(2 * _CALL_SECONDS)

    def _tell(self, job: str, index: int, served: bool) -> None:
        at = Peer(task_name(job, index), self._server.cluster.task_address(job, index), watched=False)
        try:
            at.call(Bye(self._server.task, served), time.monotonic() + _CALL_SECONDS)
        except (errors.OpError, OSError):
            return
        finally:
            at.forget()
