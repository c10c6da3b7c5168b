"""Guards durable parameter servers: asks both servers of each whether they are alive, and tells one that it leads.

`guard.py` decides. A thread for each task carries its decisions out, and one for each server asks that.
"""

from __future__ import annotations

import contextlib
import queue
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tensorfleet.base import errors
from tensorfleet.cli.guard import PING_SECONDS, Guard, Silence
from tensorfleet.cli.guard_events import (
    DeclareLost,
    EndMove,
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
    TimePassed,
)
from tensorfleet.cli.plan import Task
from tensorfleet.cli.replicas import ServerPair
from tensorfleet.cluster.master.placer import task_name
from tensorfleet.cluster.messages import FAILED, GUARD, Failed, Hello, Lead, Led, Moved, Ping, StandDown
from tensorfleet.cluster.transport.connection import connect
from tensorfleet.cluster.transport.peers import client
from tensorfleet.cluster.transport.token import token
from tensorfleet.cluster.transport.wire import Channel

_CONNECT_SECONDS = 5.0
_RETRY_SECONDS = 0.1
_REFUSED_SECONDS = (
    0.4  # without an answer, where nobody listens any more: the engine may tell of its end first
)
_FRAME_SECONDS = 1.0  # for the rest of an answer whose first bytes have come
_CLOSE_SECONDS = 2.0


class GuardListener(Protocol):
    """Who carries out what a guard cannot do itself. Any thread may call."""

    def on_restart(self, label: str) -> None:
        """A standby is to be started in this seat; what is left there is to be killed."""

    def on_lost(self, label: str, cause: str, text: str) -> None:
        """Both servers of this task are gone; `cause` led it last. `text` is for the user, or empty."""

    def on_decision(self, task: str, text: str) -> None:
        """What was decided about a task, as a line for the user."""

    def on_note(self, text: str) -> None:
        """A line for the user."""


class MoveListener(Protocol):
    """Who wants a task to move. The guard's thread calls."""

    def on_decision(self, text: str) -> None:
        """A step of it, as a line for the user."""

    def on_end(self, why: str) -> None:
        """It is over; `why` it was not done, or nothing."""


class PairGuard:
    """Guards one durable task."""

    def __init__(
        self,
        pair: ServerPair,
        listener: GuardListener,
        moves: Callable[[], Mapping[str, str]] = dict,
        by_hand: bool = False,
    ) -> None:
        """`moves` tells where tasks are that have moved. With `by_hand` nobody tells how the servers are started and end."""
        self._pair = pair
        self._listener = listener
        self._moves = moves
        self._by_hand = by_hand
        now = time.monotonic()
        then = "start another standby there" if by_hand else "starting a new standby"
        self._guard = Guard(pair.task, pair.labels, now, then)
        self._inbox: queue.SimpleQueue[tuple[int | None, int, GuardEvent]] = queue.SimpleQueue()
        self._lives = [0, 0]
        self._seats = [_SeatWatch(self, seat, pair.labels[seat]) for seat in (0, 1)]
        self._closed = threading.Event()
        self._lead: Channel | None = None
        self._last_epoch = 0  # of the last decision
        self._mover: MoveListener | None = None
        self._threads = [
            threading.Thread(target=self._run, name=f"guard of {pair.task}", daemon=True),
            *(threading.Thread(target=s.run, name=f"watch of {s.label}", daemon=True) for s in self._seats),
        ]

    def start(self) -> None:
        """Begins to ask the servers."""
        for thread in self._threads:
            thread.start()

    def started(self, label: str) -> None:
        """A server is about to be started in a seat. To be called before it can end."""
        seat = self._pair.labels.index(label)
        self._lives[seat] += 1
        self.tell(seat, self._lives[seat], SeatStarted(seat))

    def exited(self, label: str, how: str) -> None:
        """The server of a seat has ended."""
        seat = self._pair.labels.index(label)
        self.tell(seat, self._lives[seat], SeatExited(seat, how))

    @property
    def leader(self) -> str | None:
        """The seat that leads, or was told to."""
        seat = self._guard.leader
        return None if seat is None else self._pair.labels[seat]

    def begin_move(self, mover: MoveListener, replaces: bool) -> bool:
        """Lets the standby lead; with `replaces` a new one, whose place is known already. False while a move is under way."""
        if self._mover is not None:
            return False
        self._mover = mover
        self.tell(None, 0, MoveWanted(replaces))
        return True

    def give_up_move(self, why: str) -> None:
        """Goes on without what is left of a move."""
        self.tell(None, 0, MoveGivenUp(why))

    def stop(self) -> None:
        """Decides nothing any more, and waits for nothing."""
        self._closed.set()
        self._inbox.put((None, 0, TimePassed()))
        for watch in self._seats:
            watch.wake()
        self._give_up_lead()

    def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Decides nothing any more, and waits a moment for what is under way."""
        self.stop()
        limit = time.monotonic() + seconds
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(limit - time.monotonic(), 0.0))

    # -- for the watches -------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the guard has ended."""
        return self._closed.is_set()

    def life(self, seat: int) -> int:
        """The number of the life of a seat."""
        return self._lives[seat]

    def address(self, seat: int) -> str:
        """Where a seat is now."""
        address = self._pair.addresses[seat]
        return self._moves().get(address, address)

    def tell(self, seat: int | None, life: int, event: GuardEvent) -> None:
        """Something has happened in a life of a seat."""
        self._inbox.put((seat, life, event))

    def replaced(self, seat: int) -> int:
        """Another server is at the address of a seat. Gives the number of its life."""
        self.tell(seat, self._lives[seat], SeatExited(seat, "was started again"))
        if self._by_hand:
            self.started(self._pair.labels[seat])
        return self._lives[seat]

    def note(self, text: str) -> None:
        """A line for the user."""
        self._listener.on_note(text)

    # -- the guard's own thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Empty):
                seat, life, event = self._inbox.get(timeout=PING_SECONDS)
                if self._closed.is_set():
                    return
                if seat is None or life == self._lives[seat]:
                    self._take(event)
            for watch in self._seats:
                for event in watch.look():
                    self._take(event)
            deadline = self._guard.deadline
            if deadline is not None and deadline <= time.monotonic():
                self._take(TimePassed())

    def _take(self, event: GuardEvent) -> None:
        for action in self._guard.on(event, time.monotonic()):
            if self._closed.is_set():
                return
            match action:
                case TellLead() | TellStandDown():
                    self._give_up_lead()
                    self._last_epoch = action.epoch
                    threading.Thread(
                        target=self._tell_lead, args=(action,), name=f"lead of {self._pair.task}", daemon=True
                    ).start()
                case RestartSeat(seat):
                    self._restart(seat)
                case TellUser(text):
                    self._listener.on_decision(self._pair.task, text)
                    if self._mover is not None:
                        self._mover.on_decision(text)
                case EndMove(why):
                    mover, self._mover = self._mover, None
                    if mover is not None:
                        mover.on_end(why)
                case DeclareLost(seat, text):
                    self._listener.on_lost(self._pair.task, self._pair.labels[seat], text)
                    if self._by_hand:
                        self.started(self._pair.labels[0])
                        self._seats[0].wake()

    def _restart(self, seat: int) -> None:
        label = self._pair.labels[seat]
        self._listener.on_restart(label)
        if self._by_hand:  # it is there when it answers
            self.started(label)
        self._seats[seat].wake()

    def _tell_lead(self, tell: TellLead | TellStandDown) -> None:
        """Tells a server a decision, and waits for its answer however long it copies its state."""
        channel = None
        moves = dict(self._moves())
        event: GuardEvent = LeadUnheard(tell.epoch)
        try:
            channel, _ = connect(self.address(tell.seat), token(), Hello(client() + GUARD), _CONNECT_SECONDS)
            self._lead = channel
            if tell.epoch != self._last_epoch or self._closed.is_set():
                return
            if moves:  # it connects to its standby, perhaps before anybody else tells it where that is
                channel.say(Moved(moves))
                channel.receive()
            channel.say(self._message(tell))
            frame = channel.receive()
            if frame.kind == FAILED:
                event = LeadRefused(tell.epoch, frame.read(Failed).message)
            else:
                event = LeadAccepted(tell.epoch, frame.read(Led).without_standby)
        except (OSError, errors.OpError):
            pass  # the connection has ended, or was given up
        finally:
            if channel is not None:
                channel.close()
        self.tell(None, 0, event)

    def _message(self, tell: TellLead | TellStandDown) -> Lead | StandDown:
        task, addresses = task_name(self._pair.job, self._pair.index), self._pair.addresses
        if isinstance(tell, TellStandDown):
            return StandDown(task, tell.epoch)
        standby = "" if tell.standby is None else addresses[tell.standby]
        return Lead(task, tell.epoch, standby, list(addresses))

    def _give_up_lead(self) -> None:
        channel, self._lead = self._lead, None
        if channel is not None:
            channel.shut()


class RunGuards:
    """The guards of a run's durable tasks."""

    def __init__(
        self, pairs: Sequence[ServerPair], listener: GuardListener, moves: Callable[[], Mapping[str, str]]
    ) -> None:
        self._guards = {}
        self._pairs = {}
        for pair in pairs:
            guard = PairGuard(pair, listener, moves)
            self._guards.update(dict.fromkeys(pair.labels, guard))
            self._pairs.update(dict.fromkeys(pair.labels, pair))
        #: the seats in which a standby is to be started, where it was the user's script at first
        self._stand_by: set[str] = set()

    def start(self) -> None:
        """Begins to ask the servers."""
        for guard in set(self._guards.values()):
            guard.start()

    def of(self, task: str) -> tuple[PairGuard, ServerPair] | None:
        """The guard of a durable task, and its seats; None for another task."""
        pair = self._pairs.get(task)
        return None if pair is None or pair.task != task else (self._guards[task], pair)

    @property
    def tasks(self) -> list[str]:
        """The durable tasks."""
        return sorted({pair.task for pair in self._pairs.values()})

    def stand_by(self, label: str, does: bool) -> None:
        """Whether a standby is started in a seat, or the user's script."""
        (self._stand_by.add if does else self._stand_by.discard)(label)

    def begin(self, task: Task) -> Task:
        """A task that is about to be started, with the command for what it is now."""
        guard = self._guards.get(task.label)
        if guard is None:
            return task
        guard.started(task.label)
        return self._pairs[task.label].as_standby(task) if task.label in self._stand_by else task

    def exited(self, label: str, code: int, lost: str | None) -> None:
        """A task has ended, or its place is gone."""
        guard = self._guards.get(label)
        if guard is not None:
            guard.exited(label, f"is lost ({lost})" if lost else _ended(code))

    def stop(self) -> None:
        """Decides nothing any more: the servers are told to end."""
        for guard in set(self._guards.values()):
            guard.stop()

    def close(self) -> None:
        """The run is over."""
        self.stop()
        limit = time.monotonic() + _CLOSE_SECONDS
        for guard in set(self._guards.values()):
            guard.close(max(limit - time.monotonic(), 0.0))


def _ended(code: int) -> str:
    return f"died (signal {-code})" if code < 0 else f"ended (exit code {code})"


class _SeatWatch:
    """Asks the server of one seat, again and again, whether it is alive."""

    def __init__(self, guard: PairGuard, seat: int, label: str) -> None:
        self.label = label
        self._guard = guard
        self._seat = seat
        self._silence = Silence(time.monotonic())
        #: the life that was reached last, and is watched; whether the guard knows that it is silent
        self._watched: int | None = None
        self._is_silent = False
        #: nobody listens there any more
        self._is_refused = False
        self._woken = threading.Event()
        self._channel: Channel | None = None
        self._complaint = ""

    def wake(self) -> None:
        """Another life begins, or the guard has ended: do not wait for the present one."""
        self._woken.set()
        channel = self._channel
        if channel is not None:
            channel.shut()

    def look(self) -> list[GuardEvent]:
        """What the guard has to know: that the seat has become silent, or answers again. For the guard's thread."""
        if self._watched != self._guard.life(self._seat):
            self._is_silent = False
            return []
        is_silent = self._silence.look(time.monotonic())
        is_silent |= self._is_refused and self._silence.seconds >= _REFUSED_SECONDS
        was_silent, self._is_silent = self._is_silent, is_silent
        if is_silent and not was_silent:
            seconds = f"did not answer for {self._silence.seconds:.1f} s"
            return [SeatSilent(self._seat, "takes no connections any more" if self._is_refused else seconds)]
        return [SeatAnswered(self._seat)] if was_silent and not is_silent else []

    def run(self) -> None:
        """Until the guard ends."""
        known: tuple[int, int] | None = None  # a life, and the number by which its server is told from others
        while not self._guard.is_closed:
            self._woken.clear()
            life = self._guard.life(self._seat)
            try:
                channel, welcome = connect(
                    self._guard.address(self._seat),
                    token(),
                    Hello(client() + GUARD, control=True),
                    _CONNECT_SECONDS,
                )
            except (OSError, errors.OpError) as error:
                self._complain(error)
                if isinstance(error, ConnectionRefusedError) and self._watched == life:
                    self._is_refused = True
                self._woken.wait(_RETRY_SECONDS)
                continue
            began = time.monotonic()
            with contextlib.closing(channel):
                self._channel = channel
                if known is not None and known[0] == life and known[1] != welcome.incarnation:
                    life = self._guard.replaced(self._seat)
                known = life, welcome.incarnation
                if life != self._guard.life(self._seat):
                    continue
                up = SeatUp(self._seat, welcome.epoch, welcome.stands_by)
                with contextlib.suppress(OSError, errors.OpError):
                    self._ask(channel, life, up)
                self._channel = None
            if time.monotonic() - began < PING_SECONDS:
                self._woken.wait(_RETRY_SECONDS)

    def _ask(self, channel: Channel, life: int, up: SeatUp) -> None:
        is_up = False  # a server that cannot reach its standby takes connections, and answers nothing
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        while not self._guard.is_closed and life == self._guard.life(self._seat):
            channel.say(Ping())
            while not poll.poll(PING_SECONDS * 1000):
                if self._woken.is_set():
                    return
            channel.sock.settimeout(_FRAME_SECONDS)
            channel.receive()
            channel.sock.settimeout(None)
            self._answered(life)
            if not is_up:
                is_up = True
                self._guard.tell(self._seat, life, up)
            if self._woken.wait(PING_SECONDS):
                return

    def _answered(self, life: int) -> None:
        self._silence.answered(time.monotonic())
        self._is_refused, self._watched = False, life

    def _complain(self, error: Exception) -> None:
        """Says once that the way to the server is barred: another token, no certificate."""
        if isinstance(error, errors.OpError) and error.message != self._complaint:
            self._complaint = error.message
            self._guard.note(f"{self.label} cannot be asked whether it is alive: {error.message}")
