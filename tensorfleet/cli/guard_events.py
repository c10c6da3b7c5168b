"""What the guard of a durable parameter server hears, and what it decides: the events and actions of guard.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SeatStarted:
    """A new life of a seat begins."""

    seat: int


@dataclass(frozen=True, slots=True)
class SeatUp:
    """A seat can be reached; its server leads in `epoch` if that is not 0."""

    seat: int
    epoch: int = 0
    stands_by: bool = False


@dataclass(frozen=True, slots=True)
class SeatExited:
    """The life of a seat has ended; `how` for people: "died (signal 9)"."""

    seat: int
    how: str


@dataclass(frozen=True, slots=True)
class SeatSilent:
    """A seat does not answer; `how` for people: "did not answer for 1.0 s"."""

    seat: int
    how: str


@dataclass(frozen=True, slots=True)
class SeatAnswered:
    """A silent seat answers again."""

    seat: int


@dataclass(frozen=True, slots=True)
class LeadAccepted:
    """A server has taken a decision. If it has a new standby, this has a copy of everything.

    `without_standby` says why a server has not taken over: it does not reach the one that has stood down.
    """

    epoch: int
    without_standby: str = ""


@dataclass(frozen=True, slots=True)
class LeadRefused:
    """A server has refused a decision, and does as before."""

    epoch: int
    why: str


@dataclass(frozen=True, slots=True)
class LeadUnheard:
    """No answer to a decision came: the server may have taken it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class MoveWanted:
    """The standby is to lead; with `replaces`, first a new one is to take its seat, at another place, and later the other seat.

    `EndMove` follows, at once if it cannot be.
    """

    replaces: bool


@dataclass(frozen=True, slots=True)
class MoveGivenUp:
    """The move has taken too long: the guard does without what is left of it. `why` is for the user."""

    why: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The deadline of the machine may have come."""


GuardEvent = (
    SeatStarted
    | SeatUp
    | SeatExited
    | SeatSilent
    | SeatAnswered
    | LeadAccepted
    | LeadRefused
    | LeadUnheard
    | MoveWanted
    | MoveGivenUp
    | TimePassed
)


@dataclass(frozen=True, slots=True)
class TellLead:
    """Tell a seat that it leads in an epoch, with a standby or alone. An earlier decision under way is given up."""

    seat: int
    epoch: int
    standby: int | None


@dataclass(frozen=True, slots=True)
class TellStandDown:
    """Tell a seat that it leads no more, and is the standby of the other."""

    seat: int
    epoch: int


@dataclass(frozen=True, slots=True)
class RestartSeat:
    """Kill what is left of a seat and start a standby there."""

    seat: int


@dataclass(frozen=True, slots=True)
class TellUser:
    """A line for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class DeclareLost:
    """Nobody has the state of the task any more; `seat` led it last. Kill what is left of seat 0.

    `SeatStarted(0)` begins anew, with what the user's script restores.
    """

    seat: int
    #: for the user; nothing if the task never led
    text: str


@dataclass(frozen=True, slots=True)
class EndMove:
    """The move that the user wanted is over; `why` it was not done, or nothing."""

    why: str = ""


GuardAction = TellLead | TellStandDown | RestartSeat | TellUser | DeclareLost | EndMove
