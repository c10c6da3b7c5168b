"""The other tasks as seen from this process: connections kept open, and a watch on whether they still answer."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tensorfleet.base import errors, logging, settings
from tensorfleet.base.platform.exit_threads import started
from tensorfleet.cluster.messages import FAILED, Answer, Failed, Hello, Ping, Request, Welcome
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.connection import HANDSHAKE_SECONDS, connect
from tensorfleet.cluster.transport.durable_places import NotLeadingError, Places, says_given_up
from tensorfleet.cluster.transport.leader_search import LeaderSearch
from tensorfleet.cluster.transport.successor_watch import SuccessorWatch
from tensorfleet.cluster.transport.token import token
from tensorfleet.cluster.transport.traffic import SharedReads, Traffic

_FAMILY = secrets.token_hex(8)  # shared with the processes that are forked from this one
# A task is asked this often before its silence is too long: one lost answer is not the end.
_PINGS_PER_SILENCE = 8
_PING_SECONDS = 1.0  # at most between two: the other side may allow for less silence than this one
_REPORT_EVERY_SECONDS = 5.0
_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.02, 0.1
_Answer = TypeVar("_Answer", bound=Answer)
_Taken = TypeVar("_Taken")


def client() -> str:
    """What this process calls itself to the tasks it talks to."""
    return f"{_FAMILY}-{os.getpid()}"


def _never() -> bool:
    return False


_own_tasks: list[str] = []  # whose servers this process has


def serves(task: str) -> None:
    """Notes that this process has the server of a task: the others are told who it is."""
    _own_tasks.append(task)


def serves_no_more(task: str) -> None:
    """The server of a task has stopped."""
    if task in _own_tasks:
        _own_tasks.remove(task)


def patience() -> float:
    """How many seconds to wait for a task that is not up yet, when no time limit is set."""
    return settings.WAIT_SECONDS()


def failover() -> float:
    """How many seconds to look for another server of a durable task that was lost."""
    return settings.FAILOVER_SECONDS()


def silence() -> float:
    """How many seconds a task may leave a question whether it is alive unanswered before it is given up."""
    return settings.SILENT_SECONDS()


class Peer:
    """One other task: a pool of connections to it, one for each request under way.

    When the connection on which it is `watched` ends, the task forgets the sessions of this process.

    A durable task has several servers, and a peer is connected to the one that leads it. A peer that is not watched stands
    for the server at its address instead, whatever that is.
    """

    def __init__(self, name: str, address: str, watched: bool = True) -> None:
        self.name = name
        self.address = address
        self._watched = watched
        self.incarnation: int | None = None
        self.welcome: Welcome | None = None
        self._lock = threading.Lock()
        self._idle: list[wire.Channel] = []
        self._busy: set[wire.Channel] = set()
        self._control: wire.Channel | None = None
        self._control_lock = threading.Lock()
        self._meeting = threading.Lock()  # held while it is decided which server is the one to use
        self.gone = False  # it was given up, and has not been reached again
        #: how often it was: what is opened later must not end with what was opened before
        self.times_lost = 0
        self._places = Places(address)
        self._leaders = LeaderSearch(name, self._places)
        self._past = Traffic()
        #: the reads of its shared memory, which send no message, by the variables that they take and their bytes
        self._shared: dict[tuple[tuple[str, int], ...], SharedReads] = {}

    def acquire(
        self,
        deadline: float | None = None,
        waits: bool = False,
        sound: bool = False,
        ended: Callable[[], object] = _never,
    ) -> wire.Channel:
        """A connection of one's own, until `release` or `drop`. With `waits`, a task not up yet is waited for.

        `sound` connections have been looked at: nothing is left in them of what happened before. The search for the server
        that leads a durable task stops when what needs it has `ended`.
        """
        with self._lock:
            if waits or sound:  # the first of a session must not meet what is left of an earlier one
                self._close_dead()
            if self._idle:
                channel = self._idle.pop()
                self._busy.add(channel)
                return channel
        return self._connect(deadline, waits, ended)

    @property
    def places(self) -> tuple[str, ...]:
        """Of a durable task the places where it may be; no other task has any."""
        return self._places.told

    @property
    def lineage(self) -> int:
        """Of a durable task the number of the state that its server has."""
        return self._places.lineage

    @property
    def place(self) -> str:
        """Where the task is, as far as is known."""
        return self._places.leading

    @property
    def other_places(self) -> list[str]:
        """Of a durable task the places of the servers that do not lead it, as far as is known."""
        return self._places.others() if self.places else []

    def is_open(self) -> bool:
        """Whether there is a connection to it that nobody uses, and it has not been closed: it was alive a moment ago."""
        with self._lock:
            return bool(self._idle) and self._idle[-1].is_quiet()

    def release(self, channel: wire.Channel) -> None:
        """Gives back a connection on which nothing is under way."""
        with self._lock:
            if channel in self._busy:
                self._busy.discard(channel)
                if not channel.buffered:
                    self._idle.append(channel)
                    return
                self._past.add(channel)
        channel.close()

    def drop(self, channel: wire.Channel) -> None:
        """Closes a connection in an unknown state."""
        with self._lock:
            if channel in self._busy:
                self._busy.discard(channel)
                self._past.add(channel)
            self._close_dead()
        channel.abandon()

    def traffic(self) -> Traffic:
        """What was asked of the task so far, with the bytes both ways. That it was asked whether it lives does not count."""
        result = Traffic()
        with self._lock:
            result.join(self._past)
            for channel in (*self._idle, *self._busy):
                result.add(channel)
        result.received_bytes += sum(reads.bytes for reads in self.shared())
        return result

    def reads_of(self, values: Sequence[tuple[str, int]]) -> SharedReads:
        """Where reads of some variables from the task's shared memory are counted; of each its name and bytes."""
        return self._shared.setdefault(tuple(values), SharedReads(values))

    def shared(self) -> list[SharedReads]:
        """The reads of its shared memory."""
        return list(self._shared.values())

    def _close_dead(self) -> None:
        """Closes idle connections that the other side has closed, or on which it goes on talking."""
        for channel in [c for c in self._idle if not c.is_quiet()]:
            self._idle.remove(channel)
            self._past.add(channel)
            channel.close()

    def _connect(self, deadline: float | None, waits: bool, ended: Callable[[], object]) -> wire.Channel:
        """Opens a connection, which is in use from then on."""
        if self.places:
            return self._search(deadline, waits, ended)
        began = time.monotonic()
        # A task that is up and does not answer is given up as soon as one that stops answering: at any step.
        limit = began + (patience() if waits else silence())
        if deadline is not None:
            limit = deadline if waits else min(deadline, limit)
        reported, pause = began, _FIRST_RETRY_SECONDS
        while True:
            try:
                return self._open(self.address, max(min(limit - time.monotonic(), HANDSHAKE_SECONDS), 0.05))
            except NotLeadingError:
                return self._search(deadline, waits, ended)
            except OSError as e:
                now, why = time.monotonic(), e.strerror or str(e)
                if now >= limit or not waits:
                    raise self._unreachable(e, now - began, now >= limit and waits) from None
            if time.monotonic() - reported >= _REPORT_EVERY_SECONDS:
                reported = time.monotonic()
                logging.warning(
                    "CreateSession still waiting for response from worker: %s (%s, for %d s: %s). Is it started, and is "
                    "the address right?",
                    self.name,
                    self.address,
                    reported - began,
                    why,
                )
            time.sleep(min(pause, max(limit - time.monotonic(), 0.0)))
            pause = min(pause * 1.5, _MAX_RETRY_SECONDS)

    def _search(
        self, deadline: float | None, waits: bool, ended: Callable[[], object], lost: str = ""
    ) -> wire.Channel:
        """Opens a connection to the server that leads a durable task, when there is one; `lost` begins the error."""
        limit = time.monotonic() + (patience() if waits else failover())
        if deadline is not None:
            limit = deadline if waits else min(deadline, limit)
        return self._leaders.run(
            self._open, limit, deadline, ended, lost or f"{self.name} cannot be reached."
        )

    def find(self, deadline: float | None, ended: Callable[[], object], lost: str) -> None:
        """Makes sure that there is a connection to the server that leads a durable task that was lost.

        Raises UnavailableError when there is none in time, or when what needs it has `ended`. The error begins with `lost`.
        """
        with self._lock:
            self._close_dead()
            if self._idle:
                return
        self.release(self._search(deadline, False, ended, lost))

    def _open(self, place: str, seconds: float) -> wire.Channel:
        limit = time.monotonic() + seconds
        channel, welcome = connect(place, token(), Hello(self._name()), seconds)
        try:
            self._welcomed(channel, welcome, place)
        except BaseException:
            channel.close()
            raise
        if self._watched:
            try:
                self._watch(place, welcome.incarnation, max(limit - time.monotonic(), 0.05))
            except BaseException:
                self.drop(channel)
                raise
        return channel

    def _welcomed(self, channel: wire.Channel, welcome: Welcome, place: str) -> None:
        incarnation = welcome.incarnation
        with self._meeting:
            if self._watched and (welcome.places or self.places):
                self._places.learn(welcome, place)
            if self.incarnation is not None and incarnation != self.incarnation:
                self.forget()  # what was open led to the task's former life
            self.incarnation, self.welcome, self.gone = incarnation, welcome, False
            with self._lock:
                self._busy.add(channel)

    def _name(self) -> str:
        """What this process calls itself to the task. It forgets the sessions of a name with its watched connection."""
        return f"{client()}.{self.times_lost}"

    def _unreachable(self, error: OSError, waited: float, gave_up: bool) -> errors.OpError:
        reason = error.strerror or str(error)
        text = f"{self.name} ({self.address}) cannot be reached: {reason}."
        if gave_up:
            text = (
                f"Waited {waited:.0f} s for {self.name} ({self.address}), which cannot be reached: {reason}. Start it, or "
                "check its address in the ClusterSpec."
            )
            return errors.DeadlineExceededError(None, None, text)
        return errors.UnavailableError(None, None, text)

    def call(
        self,
        message: Request[_Answer],
        deadline: float | None = None,
        waits: bool = False,
        values: Sequence[Any] = (),
    ) -> _Answer:
        """One request that is not part of a step: gives the answer, or raises what the other side raised."""
        return self.call_for(message, _said_to(message), deadline, waits, values)

    def call_for(
        self,
        message: Request[Any],
        take: Callable[[wire.Channel, wire.Frame], _Taken],
        deadline: float | None = None,
        waits: bool = False,
        values: Sequence[Any] = (),
    ) -> _Taken:
        """The same for what `take` finds in the answer, and in what came along with it."""
        until = None
        while True:
            channel = self.acquire(deadline, waits)
            left = HANDSHAKE_SECONDS * 6 if deadline is None else max(deadline - time.monotonic(), 0.05)
            try:
                return self._exchange(channel, left, message, values, take)
            except errors.OpError as e:
                now = time.monotonic()
                until = until or now + failover()
                lost = isinstance(e, errors.UnavailableError) or says_given_up(e)
                if not (self.places and lost) or now > (until if deadline is None else min(until, deadline)):
                    raise
            time.sleep(_FIRST_RETRY_SECONDS)

    def exchange(
        self, channel: wire.Channel, seconds: float | None, message: Request[_Answer], values: Sequence[Any]
    ) -> _Answer:
        """One request on a connection of one's own, which is given back. Without `seconds` it ends with the connection."""
        return self._exchange(channel, seconds, message, values, _said_to(message))

    def _exchange(
        self,
        channel: wire.Channel,
        seconds: float | None,
        message: Request[Any],
        values: Sequence[Any],
        take: Callable[[wire.Channel, wire.Frame], _Taken],
    ) -> _Taken:
        try:
            channel.sock.settimeout(seconds)
            channel.say(message, values)
            frame = self.answer(channel)
            if frame.kind != FAILED:
                result = take(channel, frame)
            channel.sock.settimeout(None)
        except BaseException as e:
            self.drop(channel)
            if isinstance(e, OSError):
                raise self.lost(e) from None
            raise
        if frame.kind == FAILED:
            error = failure(frame)
            if self.places and says_given_up(error):
                self.give_up(channel)
            self.release(channel)
            raise error
        self.release(channel)
        return result

    def answer(self, channel: wire.Channel) -> wire.Frame:
        """The answer to what was asked on a connection."""
        try:
            return channel.receive()
        except errors.OpError as e:  # something on the way has changed it
            raise errors.UnavailableError(
                None, None, f"{self.name} ({self.address}) was lost: {e.message}"
            ) from None

    def lost(self, error: OSError) -> errors.OpError:
        """The error for a connection that broke under a request."""
        if isinstance(error, TimeoutError):
            return errors.DeadlineExceededError(
                None, None, f"{self.name} ({self.address}) did not answer in time."
            )
        return errors.UnavailableError(
            None,
            None,
            f"{self.name} ({self.address}) was lost: Socket closed. It has ended, was killed, or cannot be reached any "
            "more; its own log says why.",
        )

    # -- is it still there? ---------------------------------------------------------------------------

    def _watch(self, place: str, incarnation: int, seconds: float) -> None:
        """Opens the connection on which this task is asked, again and again, whether it is alive."""
        with self._control_lock:
            if self._control is not None:
                return
            hello = Hello(self._name(), control=True, tasks=list(_own_tasks))
            channel, welcome = connect(place, token(), hello, seconds)
            with self._lock:
                is_other = bool(self.places) and not welcome.incarnation == incarnation == self.incarnation
                if not is_other:
                    self._control = channel
            if is_other:
                channel.close()
                raise NotLeadingError("another server took over meanwhile")
        # At the end of the program there may be no thread: what is asked then has time limits of its own.
        started(
            threading.Thread(
                target=self._ping, args=(channel,), name=f"tensorfleet-watch-{self.name}", daemon=True
            )
        )

    def _ping(self, channel: wire.Channel) -> None:
        silent = silence()
        channel.sock.settimeout(silent)
        pause = min(silent / _PINGS_PER_SILENCE, _PING_SECONDS)
        watch = SuccessorWatch(self)
        while self._control is channel:
            try:
                channel.say(Ping())
                if self.places:
                    watch.until_answer(channel, silent)
                channel.receive()
            except (OSError, errors.OpError):
                break
            for look in on_ping:
                look()
            watch.pause(channel, pause)
        if self._control is channel:
            self.forget()

    def is_watched_on(self, channel: wire.Channel) -> bool:
        """Whether a connection is the one on which the task is watched."""
        return self._control is channel

    def busy(self) -> list[wire.Channel]:
        """The connections in use."""
        with self._lock:
            return list(self._busy)

    def has_moved_on(self) -> bool:
        """Whether another server leads the durable task by a later decision: then all connections are closed."""
        for welcome in self._leaders.answers_of_others(Hello(self._name())):
            with self._meeting:
                if self._places.is_newer(welcome):
                    self._places.epoch = welcome.epoch
                    self.forget()
                    return True
        return False

    def give_up(self, channel: wire.Channel) -> None:
        """The server at the other end of a connection says that it leads the task no more: nothing is asked of it again."""
        with self._meeting:
            with self._lock:
                is_current = channel in self._busy
            if is_current:  # else another thread has heard of it before
                self.forget()

    def forget(self) -> None:
        """Ends every connection; requests under way fail at once."""
        with self._lock:
            idle, self._idle = self._idle, []
            busy, self._busy = self._busy, set()
            for channel in (*idle, *busy):
                self._past.add(channel)
            control, self._control = self._control, None
            self.gone = True
            self.times_lost += 1
        for channel in idle:
            channel.close()
        # Those who use them close them: their numbers must not go to others before.
        for channel in busy:
            channel.shut()
        if control is not None:
            control.close()

    def abandon_after_fork(self) -> None:
        """Leaves the connections to the process that forked this one."""
        control = [self._control] if self._control is not None else []
        for channel in (*self._idle, *self._busy, *control):
            channel.abandon()


def _said_to(message: Request[_Answer]) -> Callable[[wire.Channel, wire.Frame], _Answer]:
    return lambda _, frame: frame.read(message.answer())


def failure(frame: wire.Frame) -> errors.OpError:
    """The error that a FAILED frame carries; its operation is looked up by whoever knows the graph."""
    failed = frame.read(Failed)
    try:
        kind = errors.exception_type_from_error_code(failed.code)
    except KeyError:
        kind = errors.UnknownError
    error: errors.OpError = kind(None, None, failed.message)
    error.remote_op = failed.op
    return error


#: called each time that a task was asked whether it is alive, so once in a few seconds
on_ping: list[Callable[[], None]] = []
_peers: dict[tuple[str, str], Peer] = {}
_peers_lock = threading.Lock()


def _forked() -> None:
    """Leaves the connections of the process that forked this one to it: it is told nothing, and shares them with nobody."""
    global _peers_lock
    _peers_lock = threading.Lock()
    for one in _peers.values():
        one.abandon_after_fork()
    _peers.clear()
    _own_tasks.clear()


os.register_at_fork(after_in_child=_forked)


def known() -> list[Peer]:
    """The tasks that this process has asked something, or will."""
    with _peers_lock:
        return list(_peers.values())


def peer(name: str, address: str) -> Peer:
    """The peer of that name and address; sessions of this process share it."""
    with _peers_lock:
        result = _peers.get((name, address))
        if result is None:
            result = _peers[(name, address)] = Peer(name, address)
        return result
