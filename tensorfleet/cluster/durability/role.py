"""What a server of a durable task is: the one that leads, a standby, or one that was given up.

A state machine without sockets, threads or clocks. The guard decides who leads (`Lead`), each time in a higher epoch;
this decides whether a server takes a decision, and whether it takes what another server wants to copy to it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tensorfleet.base import errors
from tensorfleet.cluster.messages import BEGINS, ENDS, GIVEN_UP, KEEPS


class State(enum.Enum):
    """What a server is."""

    #: it may lead, and waits for the guard's first decision
    WAITING = "waiting"
    LEADING = "leading"
    STANDING_BY = "standing by"
    #: another server leads; this one's state is out of date
    GIVEN_UP = "given up"


class Action(enum.Enum):
    """What a server does on a decision of the guard's."""

    #: lead without a standby
    GO_ON_ALONE = "go on alone"
    #: lead, and copy the state to a standby
    COPY = "copy"
    #: lead with the copied state
    TAKE_OVER = "take over"


class Taken(enum.Enum):
    """What a server does with a part of the state, or a commit, of another one."""

    #: forget all it has, and begin a copy
    BEGIN = "begin"
    TAKE = "take"
    #: say that it is here: the answer was lost
    HAVE = "have"


def given_up(task: str, epoch: int) -> errors.OpError:
    """The error for requests to a server that does not lead any more."""
    text = f"{GIVEN_UP}: another server leads {task} since epoch {epoch}, and has its state."
    return errors.AbortedError(None, None, text)


@dataclass
class Role:
    """The role of one server of a durable task."""

    task: str
    state: State
    epoch: int = 0
    #: of a standby: whether it has all of the state, and the number of the last commit in it
    complete: bool = False
    number: int = 0

    def on_lead(self, epoch: int, with_standby: bool) -> Action:
        """The guard says that this server leads from now on. Raises FailedPreconditionError if that cannot be."""
        self.need_to_take_over(epoch)
        took_over = self.state is State.STANDING_BY
        self.state, self.epoch, self.complete = State.LEADING, epoch, False
        if took_over:
            return Action.TAKE_OVER
        return Action.COPY if with_standby else Action.GO_ON_ALONE

    def need_to_take_over(self, epoch: int) -> None:
        """Raises FailedPreconditionError unless this server may lead by a decision."""
        self._need_later(epoch)
        if self.state is State.GIVEN_UP:
            raise self._refused("it was given up, and its state is out of date")
        if self.state is State.STANDING_BY and not self.complete:
            raise self._refused("its copy of the state is not complete")

    def on_stand_down(self, epoch: int, number: int) -> None:
        """The guard wants the standby to lead, which has commit `number` and all before. This server is its standby then.

        Raises FailedPreconditionError if that cannot be.
        """
        self.need_to_stand_down(epoch)
        self.state, self.epoch, self.complete, self.number = State.STANDING_BY, epoch, True, number

    def need_to_stand_down(self, epoch: int) -> None:
        """Raises FailedPreconditionError unless this server may stand down by a decision."""
        self._need_later(epoch)
        if self.state is not State.LEADING:
            raise self._refused("it does not lead")

    def on_copy(self, epoch: int, number: int, part: int) -> Taken:
        """Another server sends a part of its state, or a commit. Raises AbortedError when it does not lead any more."""
        if epoch < self.epoch or (epoch == self.epoch and self.state is State.LEADING):
            raise given_up(self.task, self.epoch)
        if part & BEGINS:
            self.state, self.epoch, self.complete, self.number = State.STANDING_BY, epoch, False, number
            self._end(part)
            return Taken.BEGIN
        if part & KEEPS:
            if self.state is not State.STANDING_BY or not self.complete or number != self.number:
                text = f"it is to have commit {number}, and has {self.number if self.complete else 'no complete copy'}"
                raise self._refused(text)
            self.epoch = epoch
            return Taken.HAVE
        if self.complete and (epoch, number) == (self.epoch, self.number) and not part:
            return Taken.HAVE
        follows = number == self.number + 1 if self.complete else number >= self.number
        if self.state is not State.STANDING_BY or epoch != self.epoch or not follows:
            text = f"commit {number} of epoch {epoch} does not follow {self.number} of epoch {self.epoch}"
            raise self._refused(text)
        self.number = number
        self._end(part)
        return Taken.TAKE

    def on_refused(self) -> None:
        """The standby has refused a commit of this server: another one leads."""
        self.state = State.GIVEN_UP

    def _need_later(self, epoch: int) -> None:
        if epoch <= self.epoch:
            raise self._refused(
                f"the decision has epoch {epoch}, and this server knows of epoch {self.epoch}"
            )

    def _end(self, part: int) -> None:
        if part & ENDS:
            self.complete = True

    def _refused(self, why: str) -> errors.OpError:
        return errors.FailedPreconditionError(None, None, f"A server of {self.task} refuses: {why}.")
