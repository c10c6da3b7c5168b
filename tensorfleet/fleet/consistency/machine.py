"""Who may begin a step, and what becomes of a gradient: the decisions about all workers of one training.

Events go in (a worker comes, brings a gradient, ends a step, is lost), and out come the workers that may go on. There
are no sockets, threads or clocks here; the time is told with each event.

A step of a worker:

    judge      its gradient is ready: it is applied, scaled or dropped
    arrive     the gradient was applied, or was handed in for an update of several; the worker waits until it may go on
    updated    only of the worker that makes the update of several gradients, the leader: the update is made
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from tensorfleet.fleet.consistency.scheme import Scheme, StepObservation
from tensorfleet.fleet.consistency.text import Schedule
from tensorfleet.state.gradient_tallies import Tally


class GradientVerdict(NamedTuple):
    """What becomes of a gradient."""

    #: 1 to apply it as it is, 0 to drop it
    weight: float
    #: whether it is handed in for an update of several gradients
    aggregate: bool
    #: how many workers train
    workers: int


class Release(NamedTuple):
    """A worker that may go on."""

    worker: str
    #: 0, or for the leader how many gradients the update that it makes has
    gradients: int


class _Phase(enum.Enum):
    WORKING = "computes its gradient"
    HANDING = "hands in its gradient"
    WAITING = "waits"
    LEADING = "makes the update"


@dataclass
class _Member:
    owner: str
    done: int  # steps
    round: int  # of updates from several gradients: the one that its gradient is for
    since: float  # when its phase began
    began: float  # when its step began
    phase: _Phase = _Phase.WORKING
    age: int = 0
    worked: float = 0.0


class Machine:
    """The state of one training."""

    def __init__(self, schedule: Schedule, expected: int = 1) -> None:
        self._schedule = schedule
        self._expected = expected
        self._scheme: Scheme = schedule.at(0)
        self._members: dict[str, _Member] = {}
        self._missing = expected  # how many of the workers that are expected have not come yet
        self._round = 0
        self._in: set[str] = set()  # whose gradients are in the update that is gathered
        self._leader: str | None = None
        self._last_event = 0.0
        #: updates made, where no global step counts them
        self.updates = 0
        #: by the task of the worker what became of its gradients
        self.tallies: dict[str, Tally] = {}

    # -- what is asked -------------------------------------------------------------------------------

    @property
    def scheme(self) -> Scheme:
        """The scheme of the newest step."""
        return self._scheme

    @property
    def workers(self) -> int:
        """How many workers train."""
        return len(self._members) + self._missing

    def steps(self) -> dict[str, int]:
        """How many steps each worker counts, by its name; one that came later began where the slowest was."""
        return {name: member.done for name, member in self._members.items()}

    def is_waiting(self) -> bool:
        """Whether any worker waits."""
        return any(m.phase is _Phase.WAITING for m in self._members.values())

    def in_words(self) -> str:
        """Who waits, and for whom."""
        waiting = sorted(m.owner for m in self._members.values() if m.phase is _Phase.WAITING)
        others = sorted(
            f"{m.owner} {m.phase.value}" for m in self._members.values() if m.phase is not _Phase.WAITING
        )
        lost = f"; {self._missing} of {self.workers} workers have not come" if self._missing else ""
        return f"{self._scheme.text}: waiting {', '.join(waiting) or 'nobody'}; {', '.join(others) or 'no others'}{lost}"

    # -- what happens --------------------------------------------------------------------------------

    def join(self, worker: str, owner: str, now: float) -> list[Release]:
        """A worker comes. It begins where the slowest is, so that nobody waits for it to catch up."""
        self._members[worker] = _Member(owner, self._slowest(), self._round, now, now)
        self._missing = max(self._missing - 1, 0)
        return self._settle(now)

    def leave(self, worker: str, now: float) -> list[Release]:
        """A worker ends, or is lost. Nobody waits for it any more."""
        if self._members.pop(worker, None) is None:
            return []
        self._in.discard(worker)
        if not self._members:
            # Whoever comes after a training that all have left begins another: again all are waited for.
            self._missing = self._missing or self._expected
            self._leader = None
            return []
        if worker == self._leader:
            return self._next_round(now)
        return self._settle(now)

    def judge(
        self, worker: str, owner: str, age: int, step: int, now: float
    ) -> tuple[GradientVerdict, list[Release]]:
        """What becomes of a gradient that is ready after so many updates. A worker that is not known joins."""
        released: list[Release] = []
        if worker == self._leader:  # its update has failed
            released = self._next_round(now)
        if worker not in self._members:
            released += self.join(worker, owner, now)
        member = self._members[worker]
        self._scheme = self._schedule.at(step)
        weight = self._weight(worker, member, age)
        member.age, member.worked = age, now - member.began
        if weight and self._scheme.aggregates:
            self._in.add(worker)
        elif weight:
            self.updates += 1
        self._enter(member, _Phase.HANDING, now)
        self.tallies.setdefault(owner, Tally()).count(age, weight)
        verdict = GradientVerdict(weight, self._scheme.aggregates, self.workers)
        return verdict, released + self._settle(now)

    def arrive(self, worker: str, owner: str, now: float) -> list[Release]:
        """A worker has made its step, and waits until it may begin the next one."""
        released = [] if worker in self._members else self.join(worker, owner, now)  # it was given up
        member = self._members[worker]
        member.done += 1
        self._enter(member, _Phase.WAITING, now)
        return released + self._settle(now)

    def updated(self, worker: str, now: float) -> list[Release]:
        """The leader has made the update."""
        if worker != self._leader:  # it was given up
            return []
        self.updates += 1
        return self._next_round(now)

    def withdraw(self, worker: str, now: float) -> list[Release]:
        """A worker waits no more, because its step was cancelled. Its gradient stays."""
        member = self._members.get(worker)
        if member is None:
            return []
        if worker == self._leader:
            return self._next_round(now)
        self._enter(member, _Phase.WORKING, now)
        return self._settle(now)

    def due(self, now: float, patience: float) -> float:
        """How many seconds from now `overdue` may have something to do."""
        return max(self._last_event + patience - now, 0.0)

    def overdue(self, now: float, patience: float) -> tuple[list[str], list[Release]]:
        """Gives up whoever does nothing while others wait. Gives their names, and who may go on.

        A worker that was given up joins again with its next gradient.
        """
        if not self.is_waiting() or now - self._last_event < patience:
            return [], []
        lost = [name for name, m in self._members.items() if m.phase is not _Phase.WAITING]
        names = sorted(self._members[name].owner for name in lost)
        names += ["a worker that has not come"] * self._missing
        self._missing = 0
        self._last_event = now
        released = self._settle(now)
        for name in lost:
            released += self.leave(name, now)
        return names, released

    # -- decisions -----------------------------------------------------------------------------------

    def _enter(self, member: _Member, phase: _Phase, now: float) -> None:
        member.phase, member.since = phase, now
        self._last_event = now

    def _slowest(self) -> int:
        steps = [m.done for m in self._members.values()]
        return 0 if self._missing else min(steps, default=0)

    def _weight(self, worker: str, member: _Member, age: int) -> float:
        if not self._scheme.aggregates or worker in self._in:
            return self._scheme.weight(age)
        if self._leader is not None or self._is_full() or member.round != self._round:
            return 0.0
        return self._scheme.weight(age)

    def _is_full(self) -> bool:
        return len(self._in) >= self._scheme.needed(self.workers)

    def _settle(self, now: float) -> list[Release]:
        """Lets go on whoever may."""
        if self._leader is not None:
            return []  # while the update is made nobody reads variables
        if not self._scheme.aggregates:
            slowest = self._slowest()
            free = [n for n, m in self._waiting() if self._scheme.may_begin(m.done, slowest)]
            return [self._go(name, now) for name in free]
        if self._in and self._is_full() and (leader := self._next_leader()):
            return [self._lead(leader, now)]
        # A gradient that came too late: its worker begins again for the update that is gathered now. When that has
        # all it needs, it waits for the one after.
        full = self._is_full()
        late = [n for n, m in self._waiting() if n not in self._in and not (full and m.round == self._round)]
        return [self._go(name, now) for name in late]

    def _waiting(self) -> list[tuple[str, _Member]]:
        return [(n, m) for n, m in self._members.items() if m.phase is _Phase.WAITING]

    def _next_leader(self) -> str | None:
        """One of those whose gradients make the update, once all of these are handed in."""
        if any(self._members[name].phase is _Phase.HANDING for name in self._in):
            return None
        return next((n for n, _ in self._waiting() if n in self._in), None)

    def _lead(self, worker: str, now: float) -> Release:
        self._leader = worker
        self._enter(self._members[worker], _Phase.LEADING, now)
        return Release(worker, len(self._in))

    def _next_round(self, now: float) -> list[Release]:
        """The update is made, or its leader is lost: then it may have been made in part."""
        leader, self._leader = self._leader, None
        self._round += 1
        self._in.clear()
        member = self._members.get(leader or "")
        if member is not None:  # it goes on by itself
            self._begin(member, now)
        return [self._go(name, now) for name, _ in self._waiting()]

    def _go(self, worker: str, now: float) -> Release:
        self._begin(self._members[worker], now)
        return Release(worker, 0)

    def _begin(self, member: _Member, now: float) -> None:
        waited = now - member.since
        self._scheme.observe(StepObservation(member.age, member.worked, waited, self.workers))
        member.round, member.began = self._round, now
        self._enter(member, _Phase.WORKING, now)
