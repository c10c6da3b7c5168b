"""What a step does when a server of a durable task is lost: finds the next one, and has the machine repeat stages.

The driver (step_driver.py) has one of these for a step of durable tasks, and none for any other.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from tensorfleet.base import errors
from tensorfleet.cluster.transport.durable_places import says_forgotten, says_given_up
from tensorfleet.runtime.engine import CLOSED

if TYPE_CHECKING:
    from collections.abc import Collection

    from tensorfleet.cluster.master.cluster_program import StageProgram
    from tensorfleet.cluster.master.step_driver import StepDriver
    from tensorfleet.cluster.transport import wire
    from tensorfleet.cluster.transport.peers import Peer

# A request that ends every connection it is sent on will not do better on the next one.
_MAX_LOSSES = 8
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.01, 0.5
#: more stages than any step has: a task keeps its values of the step until it hears of the end
ALL_STAGES = 0xFFFFFFFF


class StepRecovery:
    """What one step has seen of its durable tasks."""

    def __init__(self, step: StepDriver, durable: Collection[Peer], whole: StepDriver | None) -> None:
        session = step.engine.durable
        #: for each durable task the life of the session there: when another begins, the values of the step there are gone
        self._lives = {at: session.of(at).life for at in durable}
        #: the same for tasks that keep something for the loops of the step; its iterations share it
        self.held: dict[Peer, int] = {}
        if whole is not None and whole.recovery is not None:
            self.held = whole.recovery.held
        self._losses: dict[Peer, int] = {}  # since the last answer
        self._oldest = session.oldest()
        self._has_recovered = False

    def about(self, work: StageProgram) -> tuple[int, int]:
        """How many stages of the step the task of one is told to expect, and the oldest step of which it must know."""
        if work.peer not in self._lives:
            return (ALL_STAGES if self._has_recovered else work.total), 0
        if work.holds:
            self.held.setdefault(work.peer, self._lives[work.peer])
        return (ALL_STAGES if self._has_recovered else work.total), self._oldest

    def acquire(self, step: StepDriver, at: Peer) -> wire.Channel:
        """A connection to a task, for as long as nobody ends the step."""
        try:
            return at.acquire(step.deadline, ended=lambda: step.machine.reason)
        except errors.UnavailableError as e:
            raise step.machine.reason or e from None

    def is_behind(self, step: StepDriver, at: Peer) -> bool:
        """Whether a connection to a durable task, just taken, may lead to a server that does not know the step so far."""
        if at not in self._lives:
            return False
        known = step.engine.durable.of(at)
        return not known.is_complete() or not known.life == self._lives[at] == self.held.get(at, known.life)

    def catch_up(self, step: StepDriver, at: Peer) -> None:
        """Goes on with a durable task that was lost since the step began, before anything is asked of it."""
        if self.held.get(at, self._lives[at]) != self._lives[at]:
            self._lives[at] = self.held[at]
        self.lost(step, at, errors.UnavailableError(None, None, f"{at.name} was lost."))

    def answered(self, at: Peer) -> None:
        """A task has answered."""
        self._losses.pop(at, None)

    def lost(self, step: StepDriver, at: Peer, error: errors.OpError, is_forgotten: bool = False) -> None:
        """A task was lost under a request: goes on with the server that leads it. Raises `error` for any other task."""
        if at not in self._lives:
            raise error from None
        self._drop(step, [i for i, peer, _ in step.asked.values() if peer is at])
        self._count(step, at, error)
        is_new = self._find(step, at, error, is_forgotten)
        self._repeat(step, step.machine.lost(at, is_new))

    def refused(
        self, step: StepDriver, i: int, at: Peer, channel: wire.Channel, error: errors.OpError
    ) -> bool:
        """A stage has failed. Whether that came of the loss of a task, and the step goes on."""
        work = step.program.work[i]
        missed = [to for to in work.pushes_to if to in self._lives and _is_about(error, to)]
        is_lost = says_given_up(error) or says_forgotten(error) or _says_stopped(error)
        if step.machine.reason is not None:
            return False
        if missed and (is_lost or isinstance(error, errors.UnavailableError)):
            at.release(channel)
            for to in missed:
                self._count(step, to, error)
                if self._find(step, to, error, says_forgotten(error)):
                    self._repeat(step, step.machine.lost(to, True))
            self._repeat(step, step.machine.undelivered(i))
            return True
        if at not in self._lives or not is_lost:
            return False
        if says_given_up(error):
            at.give_up(channel)
        at.drop(channel)
        # A server that goes on and has forgotten the session has lost a connection to this client.
        self.lost(step, at, error, says_forgotten(error) or error.message == CLOSED)
        return True

    def _count(self, step: StepDriver, at: Peer, error: errors.OpError) -> None:
        """Waits a moment, longer each time; raises the error when the task is lost again and again."""
        self._has_recovered = True
        losses = self._losses[at] = self._losses.get(at, 0) + 1
        if step.machine.reason is not None:
            raise step.machine.reason
        if losses > _MAX_LOSSES:
            raise error from None
        if losses > 1:
            time.sleep(min(_FIRST_PAUSE_SECONDS * 2**losses, _MAX_PAUSE_SECONDS))

    def _find(self, step: StepDriver, at: Peer, error: errors.OpError, is_forgotten: bool) -> bool:
        """Finds the server that leads a task, and registers the session. Gives whether the step's values there are gone."""
        before = self._lives[at]
        try:
            life = step.engine.durable.of(at).renew(
                step.deadline,
                lambda: step.machine.reason,
                error.message,
                before if is_forgotten else None,
            )
        except errors.UnavailableError as e:
            raise step.machine.reason or e from None
        self._lives[at] = life
        return life != before

    def _repeat(self, step: StepDriver, stages: Collection[int]) -> None:
        """Prepares the repetition of stages."""
        self._drop(step, stages)
        if step.sent_fixed is not None:
            step.sent_fixed.difference_update(step.program.work[i] for i in stages)

    def _drop(self, step: StepDriver, stages: Collection[int]) -> None:
        """Ends the requests for stages: their answers are of no use any more."""
        for fd in [fd for fd, (i, _, _) in step.asked.items() if i in stages]:
            step.drop(fd)


def _is_about(error: errors.OpError, at: Peer) -> bool:
    """Whether an error names a task."""
    return re.search(re.escape(at.name) + r"(?!\d)", error.message) is not None


def _says_stopped(error: errors.OpError) -> bool:
    """Whether an error says that the server ends, or that it took this client's session for ended."""
    if isinstance(error, errors.UnavailableError):
        return error.message.startswith("The server ") and error.message.endswith(" was stopped.")
    return isinstance(error, errors.CancelledError) and error.message == CLOSED
