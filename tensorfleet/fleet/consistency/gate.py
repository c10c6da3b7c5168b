"""The resource that workers of one training share: the machine that decides, with a lock, and the waits of its workers.

It lives where the global step lives. A worker is a session; the server tells when one has ended or was lost.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tensorfleet.base import errors, logging, settings
from tensorfleet.fleet.consistency.machine import GradientVerdict, Machine, Release
from tensorfleet.fleet.consistency.text import Schedule
from tensorfleet.state.gradient_tallies import Tally
from tensorfleet.state.long_waits import Awaited, LongWait
from tensorfleet.state.queues import Signal

if TYPE_CHECKING:
    from tensorfleet.graph.kernel_types import HostContext, Resources


class GateMember:
    """One session that trains. Its session's end, or its process's, clears it."""

    def __init__(self, gate: Gate, session: Resources) -> None:
        self._gate = gate
        self.name = uuid.uuid4().hex
        self.owner: str = session.owner or "main/0"

    def clear(self) -> None:
        """The session has ended."""
        self._gate.leave(self)


class _Turn(Signal):
    """The wait of one worker. Whoever waits also looks whether others are overdue."""

    __slots__ = ("_gate", "gradients", "is_over")

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate
        self.gradients = 0
        self.is_over = False

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the worker may go on; False when that takes longer than `timeout` seconds."""
        limit = None if timeout is None else time.monotonic() + timeout
        while True:
            pause = max(self._gate.due(), 0.001)
            if limit is not None:
                pause = min(pause, limit - time.monotonic())
            if super().wait(pause):
                return True
            if limit is not None and time.monotonic() >= limit:
                return False
            self._gate.give_up_the_overdue()


class Gate(Awaited):
    """The workers of one training, and who of them waits."""

    def __init__(
        self, name: str, schedule: Schedule, workers: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.name = name
        self.schedule = schedule
        self.id = uuid.uuid4().hex  # a gate that is made after a reset has the name of the one before
        self._machine = Machine(schedule, workers)
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}

    def fullness(self) -> str:
        """Who waits and for whom, in words."""
        with self._lock:
            return self._machine.in_words()

    def updates(self) -> int:
        """How many updates were made, as far as this gate has seen them."""
        with self._lock:
            return self._machine.updates

    def tallies(self) -> dict[str, Tally]:
        """By task what became of the gradients of its sessions."""
        with self._lock:
            return {owner: tally.copy() for owner, tally in self._machine.tallies.items()}

    def workers(self) -> int:
        """How many workers train."""
        with self._lock:
            return self._machine.workers

    def judge(self, member: GateMember, age: int, step: int) -> GradientVerdict:
        """What becomes of a gradient of that age, when so many updates have been made."""
        with self._lock:
            verdict, released = self._machine.judge(member.name, member.owner, age, step, self._clock())
            self._let_go(released)
        return verdict

    def arrive(self, ctx: HostContext, member: GateMember) -> int:
        """Waits until the worker may go on. Gives of how many gradients it is to make an update first, if it is."""
        with self._lock:
            turn = self._turns[member.name] = _Turn(self)
            self._let_go(self._machine.arrive(member.name, member.owner, self._clock()))
        if not turn.is_over:
            what = f"until the consistency {self.schedule.text!r} lets the next step begin"
            try:
                ctx.step.wait(turn, what, LongWait(self, "Arrive", what))
            except BaseException:
                self._withdraw(member)
                raise
        if not turn.is_over:  # it was woken because its session has ended
            raise errors.CancelledError(None, None, f"The session of {member.owner} has ended.")
        return turn.gradients

    def updated(self, member: GateMember) -> None:
        """The worker has made the update."""
        with self._lock:
            self._let_go(self._machine.updated(member.name, self._clock()))

    def leave(self, member: GateMember) -> None:
        """The worker is gone."""
        with self._lock:
            turn = self._turns.pop(member.name, None)
            self._let_go(self._machine.leave(member.name, self._clock()))
        if turn is not None:
            turn.set()

    def clear(self) -> None:
        """The container that held the gate is gone: all waits end."""
        with self._lock:
            turns, self._turns = list(self._turns.values()), {}
            self._machine = Machine(self.schedule)
        for turn in turns:
            turn.set()

    def due(self) -> float:
        """In how many seconds `give_up_the_overdue` may have something to do."""
        with self._lock:
            return self._machine.due(self._clock(), settings.REPLICA_SECONDS())

    def give_up_the_overdue(self) -> None:
        """Lets the others go on without workers that have done nothing for too long."""
        patience = settings.REPLICA_SECONDS()
        with self._lock:
            names, released = self._machine.overdue(self._clock(), patience)
            self._let_go(released)
        if names:
            logging.warning(
                "Training goes on without %s: nothing came from there for %g s (%s). A worker that was only slow takes "
                "part again with its next step. TENSORFLEET_REPLICA_SECONDS sets how long others wait.",
                ", ".join(names),
                patience,
                self.schedule.text,
            )

    def _withdraw(self, member: GateMember) -> None:
        with self._lock:
            self._turns.pop(member.name, None)
            self._let_go(self._machine.withdraw(member.name, self._clock()))

    def _let_go(self, released: Sequence[Release]) -> None:
        for worker, gradients in released:
            turn = self._turns.pop(worker, None)
            if turn is not None:
                turn.gradients, turn.is_over = gradients, True
                turn.set()
