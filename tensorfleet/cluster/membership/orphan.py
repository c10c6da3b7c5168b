"""A server that nobody needs any more: it logs which tasks it waits for, and ends by itself when none comes.

`Server.join` returns when every task of another job has said that it has finished. A task that was killed, or was never
started, says nothing. `OrphanPolicy` decides; `OrphanGuard` looks for the tasks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorfleet.base import errors, logging, settings
from tensorfleet.base.run_status import UNPLACED
from tensorfleet.cluster.master.placer import task_name
from tensorfleet.cluster.messages import Ping
from tensorfleet.cluster.transport import moved_addresses
from tensorfleet.cluster.transport.peers import Peer

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

LIMIT = settings.ORPHAN_SECONDS.name
EXIT_CODE = 69  # EX_UNAVAILABLE of sysexits.h
NOTICE_SECONDS = 60.0
_LOOK_SECONDS = 15.0
_ANSWER_SECONDS = 1.0
_MAX_NAMED_TASKS = 3  # in one line of the log


def limit() -> float:
    """After how many seconds a server ends that nobody uses; 0 for never."""
    return settings.ORPHAN_SECONDS()


@dataclass(frozen=True)
class OrphanVerdict:
    """A line for the log, and whether the server ends with it."""

    line: str
    ends: bool


class OrphanPolicy:
    """Decides when to say what a server waits for, and when it has waited long enough. No clock, no sockets."""

    def __init__(self, task: str, limit: float, now: float) -> None:
        self._task, self._limit = task, limit
        self._began = self._told = self._needed = now
        self._seen: dict[str, float] = {}

    def look(
        self,
        missing: Collection[str],
        present: Collection[str],
        in_use: bool,
        now: float,
        stays: bool = False,
    ) -> OrphanVerdict | None:
        """What follows from a look: the awaited tasks that do not answer, those that do, whether other clients are here.

        A server that `stays` waits for its launcher to end it, also when all other tasks have finished.
        """
        self._seen.update(dict.fromkeys(present, now))
        if present or in_use or not (missing or stays):
            self._needed = now
        if not missing and not stays:
            return None
        alone = now - self._needed
        if self._limit and alone >= self._limit:
            return OrphanVerdict(
                f"{self._task} ends by itself, with exit code {EXIT_CODE}: nobody has used it for {_span(alone)}, and "
                f"{self._reason(missing, now)}. {LIMIT} sets this time; 0 means never.",
                ends=True,
            )
        if not missing or now - self._told < NOTICE_SECONDS:
            return None
        self._told = now
        return OrphanVerdict(
            f"{self._task} waits for {self._names(missing, now)}.{self._outlook(alone)}", ends=False
        )

    def _reason(self, missing: Collection[str], now: float) -> str:
        return (
            f"it still waits for {self._names(missing, now)}" if missing else "its launcher does not end it"
        )

    def _names(self, missing: Collection[str], now: float) -> str:
        named = [self._since(task, now) for task in sorted(missing)[:_MAX_NAMED_TASKS]]
        more = len(missing) - len(named)
        return "; ".join(named) + (f"; and {more} more" if more else "")

    def _since(self, task: str, now: float) -> str:
        seen = self._seen.get(task)
        if seen is None:
            return f"{task}, which has not come in {_span(now - self._began)}"
        return f"{task}, which was last seen {_span(now - seen)} ago"

    def _outlook(self, alone: float) -> str:
        advice = " Start it, or stop this server with SIGTERM or tf.fleet.stop_server."
        if not self._limit or not alone:
            return advice
        return f"{advice} Nobody else uses it: it ends by itself in {_span(self._limit - alone)} ({LIMIT})."


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class OrphanGuard:
    """Looks for the tasks that a server waits for, and at who is connected to it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        now = time.monotonic()
        self._limit = limit()
        self._policy = OrphanPolicy(server.task, self._limit, now)
        self._every = max(min(_LOOK_SECONDS, NOTICE_SECONDS, self._limit / 4 or _LOOK_SECONDS), 0.25)
        self._next = now + self._every

    def look(self) -> str | None:
        """Says what the server waits for, when that is due; gives the reason when the server is to end."""
        if time.monotonic() < self._next:
            return None
        awaited = {task_name(*task): task for task in self._server.awaited() if self._has_place(task)}
        clients = self._server.clients()
        present = {name for name in awaited if any(name in tasks for tasks in clients)}
        present |= self._answering({n: task for n, task in awaited.items() if n not in present})
        # Other parameter servers stay connected to this one, and do not need it by themselves.
        in_use = any(not tasks for tasks in clients)
        now = time.monotonic()
        self._next = now + self._every
        missing = {self._placed(name, task) for name, task in awaited.items() if name not in present}
        present = {self._placed(name, awaited[name]) for name in present}
        verdict = self._policy.look(missing, present, in_use, now, settings.STAYS())
        if verdict is None:
            return None
        if verdict.ends:
            return verdict.line
        logging.warning("%s", verdict.line)
        return None

    def _has_place(self, task: tuple[str, int]) -> bool:
        """Whether it is, or was, anywhere: the launcher leaves room for workers that are not wanted yet."""
        address = moved_addresses.current(self._server.cluster.task_address(*task))
        return not address.partition(":")[0].endswith(UNPLACED)

    def _placed(self, name: str, task: tuple[str, int]) -> str:
        return f"{name} ({self._server.cluster.task_address(*task)})"

    def _answering(self, tasks: dict[str, tuple[str, int]]) -> set[str]:
        """Those of some tasks that are up, though they have not asked this server for anything yet."""
        answering: set[str] = set()
        threads = [
            threading.Thread(target=self._ask, args=(name, task, answering), daemon=True)
            for name, task in tasks.items()
        ]
        for thread in threads:
            thread.start()
        limit = time.monotonic() + 2 * _ANSWER_SECONDS
        for thread in threads:
            thread.join(max(limit - time.monotonic(), 0.01))
        return set(answering)

    def _ask(self, name: str, task: tuple[str, int], answering: set[str]) -> None:
        at = Peer(name, self._server.cluster.task_address(*task), watched=False)
        try:
            at.call(Ping(), time.monotonic() + _ANSWER_SECONDS)
            answering.add(name)
        except (errors.OpError, OSError):
            return
        finally:
            at.forget()
