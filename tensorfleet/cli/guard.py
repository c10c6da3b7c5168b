"""Decides which of the two servers of a durable parameter server leads it. docs/decisions/0033 is the design.

A state machine without sockets, threads or clocks. The edge (guarding.py) tells it the events and carries out the
actions that it decides. The two servers have *seats*: number 0 is that of ps/i, number 1 that of ps-standby/i. Whatever
runs in a seat is one *life* of it; events about former lives are not told.

    events   SeatStarted, SeatUp, SeatExited    a life begins, can be reached, has ended
             SeatSilent, SeatAnswered           it does not answer whether it is alive; it does again
             LeadAccepted, LeadRefused          what a server has made of a decision
             LeadUnheard                        nobody knows what it has made of it
             TimePassed                         the deadline may have come
    actions  TellLead, RestartSeat, TellUser, DeclareLost

Two things keep updates from being lost. A server that may have less than all updates is never told to lead: `_copy` is
forgotten before its primary is told to go on alone. And once a standby was told to take over, its former primary leads
again only if the standby has refused. It may also have stood down before: then both have the same state, the standby takes
over with it as its standby, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tensorfleet.cli.guard_events import (
    DeclareLost,
    EndMove,
    GuardAction,
    GuardEvent,
    LeadAccepted,
    LeadRefused,
    LeadUnheard,
    MoveGivenUp,
    MoveWanted,
    RestartSeat,
    SeatAnswered,
    SeatExited,
    SeatSilent,
    SeatStarted,
    SeatUp,
    TellLead,
    TellStandDown,
    TellUser,
)

START_SECONDS = 10.0  # that a primary waits for its standby to come up, before it leads alone
_MAX_ASKED = 3  # times that a leader is asked to hand over
_UNREACHED_SECONDS = 30.0  # then the user is told
_RETRY_SECONDS = 0.2  # after a decision that nobody has answered
_REFUSED_SECONDS = 1.0  # after one that the leader has refused
SILENT_SECONDS = 1.0  # without an answer: it may have died with its machine
PING_SECONDS = 0.2
# After a promotion that nobody has answered, where the server that stood down can still lead: the one that was promoted
# may have died, and that is noticed first.
_NOTICED_SECONDS = 2 * SILENT_SECONDS
# Time between two looks counts as no more than this: whoever looks may have been stopped itself.
_MAX_LOOK_SECONDS = 2 * PING_SECONDS


class SeatState(Enum):
    """What is known of a life."""

    STARTING = "starting"
    UP = "up"
    SILENT = "silent"
    DEAD = "dead"


class StateCopy(Enum):
    """Whether the seat that does not lead has all that the leader has."""

    NONE = "none"
    #: it is being copied, or was: only the standby knows
    PERHAPS = "perhaps"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class SeatLife:
    """One life of a seat."""

    state: SeatState = SeatState.STARTING
    #: nothing was ever decided about it
    is_fresh: bool = True
    #: it is being started again
    restarts: bool = False
    stands_by: bool = False
    #: the epoch in which it led when it was reached
    claim: int = 0
    #: how it ended or failed
    how: str = ""

    @property
    def is_up(self) -> bool:
        """Whether it answers."""
        return self.state is SeatState.UP

    @property
    def is_dead(self) -> bool:
        """Whether it has ended."""
        return self.state is SeatState.DEAD


@dataclass(frozen=True, slots=True)
class _Move:
    """A move under way."""

    #: the seat that led when it began
    source: int
    #: whether new lives at other places were wanted
    replaces: bool
    #: whether a new life, which begins at another place, is still to come into the seat that is to lead; into the one that led
    replaces_target: bool
    replaces_source: bool
    #: how often the leader was asked to stand down
    asked: int = 0


class Guard:
    """The decisions about one durable task."""

    def __init__(self, task: str, labels: Sequence[str], now: float, then: str) -> None:
        """`then` tells the user what becomes of a seat that was given up: "starting a new standby"."""
        self._task = task
        self._labels = tuple(labels)
        self._then = then
        self._now = now
        self._began = now
        self._seats = (SeatLife(), SeatLife())
        self._epoch = 0
        self._leader: int | None = None
        self._copy = StateCopy.NONE
        self._pending: TellLead | TellStandDown | None = None
        #: whether the leader has taken the last decision
        self._is_settled = False
        #: a standby was told to take over, and has not answered
        self._promotes = False
        self._move: _Move | None = None
        self._is_lost = False
        self._has_led = False
        self._retry_at = now
        self._up_since: float | None = None
        self._reason = ""
        self._has_complained = False
        self._actions: list[GuardAction] = []

    @property
    def leader(self) -> int | None:
        """The seat that leads the task, or was told to."""
        return self._leader

    @property
    def is_settled(self) -> bool:
        """Whether the leader has taken the last decision."""
        return self._is_settled

    @property
    def has_copy(self) -> bool:
        """Whether the other seat has all that the leader has."""
        return self._copy is StateCopy.WHOLE

    @property
    def moves(self) -> bool:
        """Whether a move is under way."""
        return self._move is not None

    @property
    def is_lost(self) -> bool:
        """Whether nobody has the state of the task any more."""
        return self._is_lost

    @property
    def deadline(self) -> float | None:
        """When to tell that time has passed; None if only events matter."""
        if self._is_lost or self._pending is not None:
            return None
        if self._leader is None:
            if self._up_since is not None:
                return self._up_since + START_SECONDS
            return None if self._has_complained else self._began + _UNREACHED_SECONDS
        return self._retry_at if self._retry_at > self._now else None

    def on(self, event: GuardEvent, now: float) -> list[GuardAction]:
        """Takes an event, and gives the actions that follow from it."""
        self._now = now
        self._actions = []
        self._take(event)
        if not self._is_lost:
            if self._leader is None:
                self._begin()
            else:
                self._decide(self._leader)
        return self._actions

    # -- events ---------------------------------------------------------------------------------------

    def _take(self, event: GuardEvent) -> None:
        match event:
            case SeatStarted(seat):
                self._take_start(seat)
            case SeatUp(seat, epoch, stands_by) if self._seats[seat].state is not SeatState.DEAD:
                self._epoch = max(self._epoch, epoch)
                self._set(seat, state=SeatState.UP, claim=epoch, stands_by=stands_by)
            case SeatExited(seat, how) if not self._seats[seat].is_dead:
                self._set(seat, state=SeatState.DEAD, restarts=False, how=how)
            case SeatSilent(seat, how) if self._seats[seat].is_up:
                self._set(seat, state=SeatState.SILENT, how=how)
            case SeatAnswered(seat) if self._seats[seat].state is SeatState.SILENT:
                self._set(seat, state=SeatState.UP)
            case LeadAccepted(epoch, without_standby) if self._is_pending(epoch):
                self._take_accepted(without_standby)
            case LeadRefused(epoch, why) if self._is_pending(epoch):
                self._take_refused(why)
            case LeadUnheard(epoch) if self._is_pending(epoch):
                keeps = self._promotes and self._copy is not StateCopy.NONE
                self._pending = None
                self._retry_at = self._now + (_NOTICED_SECONDS if keeps else _RETRY_SECONDS)
            case MoveWanted(replaces):
                self._begin_move(replaces)
            case MoveGivenUp(why) if self._move is not None:
                self._give_up_move(self._move, why)

    def _take_start(self, seat: int) -> None:
        self._seats = tuple(SeatLife() if n == seat else old for n, old in enumerate(self._seats))  # type: ignore[assignment]
        if self._move is not None and seat == self._move.source:
            self._move = replace(self._move, replaces_source=False)
        elif self._move is not None:
            self._move = replace(self._move, replaces_target=False)
        if self._is_lost and seat == 0:
            self._is_lost = self._has_led = self._has_complained = False
            self._leader, self._up_since, self._began = None, None, self._now

    def _take_accepted(self, without_standby: str) -> None:
        pending = self._pending
        assert pending is not None
        if isinstance(pending, TellStandDown):
            self._reason = f"{self._labels[pending.seat]} hands over"
            self._promote(1 - pending.seat, with_standby=True)
            return
        if without_standby:
            why = without_standby.rstrip(".")
            self._reason = f"{self._labels[1 - pending.seat]} hands over, but is not reached any more ({why})"
            self._pending, self._copy = None, StateCopy.NONE
            return
        is_first, self._has_led = not self._has_led, True
        self._pending, self._is_settled, self._has_complained = None, True, False
        leads, epoch = self._labels[pending.seat], f"(epoch {pending.epoch})"
        if pending.standby is not None:
            self._copy, stands = StateCopy.WHOLE, self._labels[pending.standby]
            by = f"{self._reason}; {leads} leads it now" if self._promotes else f"{leads} leads"
            self._say(f"{by} with {stands} as its standby {epoch}.")
        elif self._promotes:
            self._say(f"{self._reason}; {leads} leads it now {epoch}; {self._then}.")
        elif is_first:
            self._say(
                f"{self._labels[1 - pending.seat]} is not up after {START_SECONDS:g} s; {leads} leads alone until it "
                f"is {epoch}."
            )
        else:
            self._say(f"{self._reason}; {leads} goes on alone {epoch}; {self._then}.")
        self._promotes = False

    def _take_refused(self, why: str) -> None:
        pending = self._pending
        assert pending is not None
        self._pending, seat = None, pending.seat
        if isinstance(pending, TellStandDown):
            self._end_move(f"{self._labels[seat]} does not hand over: {why}")
        elif self._promotes:
            self._promotes = False
            former = self._seats[1 - seat]
            self._say(f"{self._labels[seat]} cannot lead {self._task}: {why}")
            if former.is_dead or former.is_fresh:
                self._lose(1 - seat)
            else:  # it was only silent
                self._leader, self._reason = 1 - seat, f"{self._labels[seat]} has no complete copy"
        elif pending.standby is not None:
            self._copy = StateCopy.NONE
            self._reason = f"{self._labels[seat]} could not copy its state to {self._labels[pending.standby]}: {why.rstrip('.')}"
        else:
            self._retry_at = self._now + _REFUSED_SECONDS
            if not self._has_complained:
                self._has_complained = True
                self._say(f"{self._labels[seat]} refuses to lead {self._task}: {why} It is asked again.")

    # -- decisions ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Lets the task begin: with the standby if that comes up soon, else without."""
        # A guard that was started anew finds a leader that another one has told.
        claims = [life.claim if life.is_up else 0 for life in self._seats]
        first = claims.index(max(claims))
        leads, other = self._seats[first], self._seats[1 - first]
        if leads.is_dead:
            self._lose(first)
            return
        if other.is_dead and not other.restarts:
            self._restart(1 - first)
        if not leads.is_up or (leads.stands_by and not leads.claim):
            self._up_since = None
            if self._now >= self._began + _UNREACHED_SECONDS and not self._has_complained:
                self._has_complained = True
                at = self._labels[first]
                self._say(
                    f"{at} is a standby, and has no state to lead with. Start the script of {self._task} there."
                    if leads.is_up
                    else f"{at} was not reached for {_UNREACHED_SECONDS:g} s: its steps wait until it leads. Is it up, does "
                    "it listen at the address that it was given, and can this machine connect to it?"
                )
            return
        self._up_since = self._now if self._up_since is None else self._up_since
        if self._seats[1 - first].is_up or self._now >= self._up_since + START_SECONDS:
            self._leader, self._has_led = first, bool(leads.claim)
            self._has_complained = False
            self._reason = f"{self._labels[1 - first]} is not up"
            self._tell(first, with_standby=self._seats[1 - first].is_up)

    def _decide(self, leader: int) -> None:
        other = 1 - leader
        leads, stands = self._seats[leader], self._seats[other]
        is_gone = leads.is_dead or leads.is_fresh  # fresh: another life is in the seat of the one that led
        if is_gone:
            self._pending = None
        if is_gone and (not self._may_lead(stands) or stands.is_dead):
            self._lose(leader)
        elif (is_gone or leads.state is SeatState.SILENT) and self._may_lead(stands):
            if stands.is_up:
                self._reason = f"{self._labels[leader]} {leads.how or 'was started again'}"
                self._promote(other, with_standby=False)
            # A standby that is silent may answer before its primary does.
        elif leads.is_up:
            self._go_on(leader)

    def _may_lead(self, stands: SeatLife) -> bool:
        """Whether the standby may have a complete copy; if not, it refuses."""
        return self._copy is not StateCopy.NONE and not stands.is_fresh

    def _go_on(self, leader: int) -> None:
        """The leader is well: sees to its standby."""
        other = 1 - leader
        stands = self._seats[other]
        if self._copy is not StateCopy.NONE and (stands.is_fresh or not stands.is_up):
            self._reason = f"{self._labels[other]} {stands.how}"
            self._tell(leader, with_standby=False)
        if self._pending is not None or self._now < self._retry_at:
            return
        if not self._is_settled:
            # A promotion that nobody has answered may have been taken: then the standby would not be kept, but copied to.
            self._tell(leader, with_standby=self._copy is not StateCopy.NONE and not self._promotes)
        elif self._copy is StateCopy.NONE and not stands.restarts:
            # Only now: to start a process takes time of the processors, and clients wait for the leader.
            if stands.is_dead or not stands.is_fresh:
                self._restart(other)
            elif stands.is_up:
                self._tell(leader, with_standby=True)
        elif self._copy is StateCopy.WHOLE and self._move is not None:
            self._go_on_moving(leader, self._move)

    # -- moves ----------------------------------------------------------------------------------------

    def _begin_move(self, replaces: bool) -> None:
        if self._leader is None or self._is_lost:
            self._actions.append(
                EndMove(f"Nobody leads {self._task} at the moment. Try again when somebody does.")
            )
        else:
            self._move = _Move(self._leader, replaces, replaces, replaces)

    def _go_on_moving(self, leader: int, move: _Move) -> None:
        """There is a pair: takes the next step of a move."""
        if leader == move.source and move.replaces_target:
            self._move = replace(move, replaces_target=False)
            self._replace(leader)
        elif leader == move.source and move.asked == _MAX_ASKED:
            self._end_move(
                f"{self._labels[leader]} was asked {_MAX_ASKED} times to hand over, and did not answer."
            )
        elif leader == move.source:
            self._move = replace(move, asked=move.asked + 1)
            self._epoch += 1
            self._is_settled = False
            self._pending = TellStandDown(leader, self._epoch)
            self._actions.append(self._pending)
        elif move.replaces_source:
            self._move = replace(move, replaces_source=False)
            self._replace(leader)
        else:
            self._end_move("")

    def _give_up_move(self, move: _Move, why: str) -> None:
        self._end_move(why)
        target = 1 - move.source
        if not move.replaces or move.replaces_target or self._leader != move.source:
            return
        # What was started at the other place may never come up there.
        if self._copy is StateCopy.PERHAPS:
            self._replace(move.source)
        elif (
            self._copy is StateCopy.NONE and self._seats[target].is_fresh and not self._seats[target].restarts
        ):
            self._restart(target)

    def _replace(self, leader: int) -> None:
        """A new life is to come into the standby's seat: the leader does not wait for it."""
        self._reason = f"{self._labels[1 - leader]} moves"
        self._tell(leader, with_standby=False)

    def _end_move(self, why: str) -> None:
        if self._move is not None:
            self._move = None
            self._actions.append(EndMove(why))

    # -- what is told ---------------------------------------------------------------------------------

    def _promote(self, seat: int, with_standby: bool) -> None:
        self._leader, self._promotes = seat, True
        self._tell(seat, with_standby)

    def _tell(self, seat: int, with_standby: bool) -> None:
        self._epoch += 1
        self._copy = StateCopy.PERHAPS if with_standby else StateCopy.NONE
        self._pending = TellLead(seat, self._epoch, 1 - seat if with_standby else None)
        self._is_settled = False
        self._set(seat, is_fresh=False)
        if with_standby:
            self._set(1 - seat, is_fresh=False)
        self._actions.append(self._pending)

    def _restart(self, seat: int) -> None:
        self._set(seat, state=SeatState.DEAD, restarts=True)
        self._actions.append(RestartSeat(seat))

    def _lose(self, seat: int) -> None:
        self._is_lost, self._is_settled, self._promotes = True, False, False
        self._pending, self._copy = None, StateCopy.NONE
        text = f"{self._task} and its standby are both gone: updates since the last checkpoint are lost."
        self._actions.append(DeclareLost(seat, text if self._has_led else ""))
        self._end_move(f"Both servers of {self._task} are gone.")
        if not self._seats[1].is_fresh and not self._seats[1].restarts:
            self._restart(1)  # it may have taken a decision that nobody has heard of

    def _say(self, text: str) -> None:
        self._actions.append(TellUser(text))

    def _is_pending(self, epoch: int) -> bool:
        return self._pending is not None and self._pending.epoch == epoch

    def _set(self, seat: int, **changes: object) -> None:
        lives = list(self._seats)
        lives[seat] = replace(lives[seat], **changes)  # type: ignore[arg-type]
        self._seats = (lives[0], lives[1])


class Silence:
    """How long a server has not answered, of the time in which somebody was there to look."""

    def __init__(self, now: float) -> None:
        self._seen = now
        self.seconds = 0.0

    def answered(self, now: float) -> None:
        """It has answered."""
        self._seen, self.seconds = now, 0.0

    def look(self, now: float) -> bool:
        """Whether it has been silent for too long. To be called at least every `PING_SECONDS`."""
        self.seconds += min(now - self._seen, _MAX_LOOK_SECONDS)
        self._seen = now
        return self.seconds >= SILENT_SECONDS
