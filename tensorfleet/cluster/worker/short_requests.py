"""Short requests of many clients, answered by one thread.

Each connection has a thread, which waits for its requests. When many clients send short ones, these threads wake up one
after the other and wait for the interpreter lock, which takes longer than the requests. So a thread whose requests are
short lends its connection to one thread for all of them: that polls the connections, answers every request that has come,
and polls again. It sleeps when there is nothing to do, and gives a connection back when anything but a short request comes.

One request must not hold up the others. What would wait for the client (the rest of a long frame, an answer that it does
not read) is left to the connection's own thread. If a request takes long after all, another thread goes on with the others.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.base.platform.exit_threads import started
from tensorfleet.cluster.messages import OK, RUN, VERSIONS, Run
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.worker.pending_replies import told_versions
from tensorfleet.runtime import recording
from tensorfleet.runtime.variable_versions import VariableVersions

if TYPE_CHECKING:
    from tensorfleet.cluster.worker.worker import Worker
    from tensorfleet.runtime.values import Values

_MAX_DUE = 1 << 12  # short requests in a row before a connection is lent again
# With a single one, its own thread has nobody to wait for, and reads its requests without polling: 8 % faster.
_MIN_SHORT_CONNECTIONS = 2
_MAX_READY = 64  # connections looked at between two polls
_MAX_HOLD_UP_SECONDS = 0.01  # that one request may hold up the others
_IS_POSSIBLE = hasattr(select, "epoll")


class _Loan:
    """A connection that is lent, and what its own thread has to do when it gets it back."""

    __slots__ = ("answered", "back", "channel", "failure", "fd", "frame", "lost", "unsent")

    def __init__(self, channel: wire.Channel) -> None:
        self.channel = channel
        self.fd = channel.fileno()
        self.back = threading.Semaphore(0)
        self.answered = 0
        #: a request to answer; a request that failed; the end of the connection; the rest of an answer
        self.frame: wire.Frame | None = None
        self.failure: Exception | None = None
        self.lost: Exception | None = None
        self.unsent: list[Any] = []


class ShortRequests:
    """The connections of a server that are served together."""

    def __init__(self, worker: Worker, fail: Callable[[wire.Channel, Exception], None]) -> None:
        self._worker = worker
        self._fail = fail
        self._lock = threading.Lock()
        self._poll: Any = None
        self._bell = -1  # wakes the thread that polls
        self._loans: dict[int, _Loan] = {}  # by file descriptor
        self._short: set[int] = (
            set()
        )  # connections whose requests are short, by the identities of their channels
        self._closing = threading.Event()
        #: which of the threads serves: one that was held up finds another here
        self._serving: object = None
        #: the connection whose request is being answered, and how many were before it
        self._busy: _Loan | None = None
        self._answered = 0
        self._idle = False
        self._watch_sleeps = False
        self._active = threading.Semaphore(0)

    def receive(self, channel: wire.Channel) -> wire.Frame:
        """The next request of a connection for its own thread; short ones may be answered elsewhere until it comes."""
        while channel.short_requests >= channel.due_before_loan:
            self._short.add(id(channel))
            if len(self._short) < _MIN_SHORT_CONNECTIONS:
                return channel.receive()
            loan = self._lend(channel)
            if loan is None:
                break
            loan.back.acquire()  # until the connection ends at the latest
            channel.short_requests = 0
            if loan.answered < channel.due_before_loan:  # it was not worth it
                channel.due_before_loan = min(2 * channel.due_before_loan, _MAX_DUE)
            if loan.lost is not None:
                raise loan.lost
            if loan.failure is not None:
                self._fail(channel, loan.failure)
            if loan.unsent:
                channel.send_rest(loan.unsent)
            if loan.frame is not None:
                return loan.frame
        self.forget(channel)
        return channel.receive()

    def forget(self, channel: wire.Channel) -> None:
        """Notes that the requests of a connection are not short, or that it has ended."""
        self._short.discard(id(channel))

    def close(self) -> None:
        """Gives back all connections: the server ends."""
        with self._lock:
            self._closing.set()
            loans, self._loans = list(self._loans.values()), {}
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)
            for loan in loans:
                if loan is not self._busy:  # the thread that answers it gives it back
                    loan.back.release()
        self._active.release()

    def abandon_after_fork(self) -> None:
        """Closes everything in a forked process: the connections are its parent's."""
        if self._poll is not None:
            self._poll.close()
            os.close(self._bell)
            self._poll, self._bell = None, -1

    # -- the connections ------------------------------------------------------------------------------

    def _lend(self, channel: wire.Channel) -> _Loan | None:
        """Lends a connection; None where that is not possible."""
        if not (_IS_POSSIBLE and channel.can_be_polled):
            channel.short_requests = 0
            return None
        if channel.buffered:  # the system does not tell of this request any more
            return None
        loan = _Loan(channel)
        with self._lock:
            if self._closing.is_set() or loan.fd < 0 or not (self._poll or self._start()):
                return None
            self._loans[loan.fd] = loan
            self._poll.register(loan.fd, select.EPOLLIN | select.EPOLLRDHUP)
        return loan

    def _start(self) -> bool:
        """Starts the thread that serves and the one that looks after it; not at the end of the program."""
        self._poll, self._bell = select.epoll(), os.eventfd(0)
        self._poll.register(self._bell, select.EPOLLIN)
        watch = threading.Thread(target=self._watch, name="tensorfleet-short-watch", daemon=True)
        if not (self._go_on() and started(watch)):
            self._closing.set()  # nobody would serve what is lent later
        return not self._closing.is_set()

    def _go_on(self) -> bool:
        """Has a new thread serve the connections."""
        self._serving = turn = object()
        return started(
            threading.Thread(target=self._serve, args=(turn,), name="tensorfleet-short", daemon=True)
        )

    # -- serving --------------------------------------------------------------------------------------

    def _serve(self, turn: object) -> None:
        """Serves until the server ends, or another thread goes on."""
        self._answer_all(turn)
        with self._lock:
            if self._serving is turn:
                self._poll.close()
                os.close(self._bell)
                self._bell = -1

    def _answer_all(self, turn: object) -> None:
        poll = self._poll

        def look() -> list[tuple[int, int]] | None:
            return poll.poll(0, _MAX_READY) or None

        while not self._closing.is_set():
            ready = wire.busy_wait(look, wire.REQUEST_SPIN_SECONDS, gives_way=True) or self._sleep(poll)
            for fd, event in ready:
                with self._lock:
                    loan = self._busy = self._loans.get(fd)
                if loan is None:
                    continue
                # Together with anything else it says that the client has gone, and its request is not run.
                is_answered = event == select.EPOLLIN and self._answer(loan)
                if not self._done(loan, turn, is_answered):
                    return

    def _sleep(self, poll: Any) -> list[tuple[int, int]]:
        """Waits until something comes."""
        self._idle = True
        ready: list[tuple[int, int]] = poll.poll(None, _MAX_READY)
        self._idle = False
        if self._watch_sleeps:
            self._watch_sleeps = False
            self._active.release()
        return ready

    def _done(self, loan: _Loan, turn: object, is_answered: bool) -> bool:
        """Notes that a request was seen to. False when that took so long that another thread has gone on, or none does."""
        with self._lock:
            goes_on = self._serving is turn and not self._closing.is_set()
            if goes_on:
                self._busy = None
                self._answered += 1
                loan.answered += 1
                if not is_answered:
                    del self._loans[loan.fd]
                    self._poll.unregister(loan.fd)
        if not (goes_on and is_answered):
            loan.back.release()
        return goes_on

    def _answer(self, loan: _Loan) -> bool:
        """Answers the request that has come, if it is short; False when the connection's own thread must see to it."""
        channel = loan.channel
        try:
            frame = channel.receive_whole()
        except (OSError, errors.OpError) as e:
            loan.lost = e
            return False
        if frame is None or frame.kind != RUN:
            loan.frame = frame
            return False
        try:
            results = self._run(frame, channel)
        except Exception as e:
            loan.failure = e
            return False
        if results is None:
            loan.frame = frame
            return False
        channel.handed = None  # what the reply before took from queues has arrived
        try:
            loan.unsent = channel.send_now(OK, *results)
        except OSError as e:
            loan.lost = e
        # The system does not tell of a request that has been read already.
        return loan.lost is None and not loan.unsent and not channel.buffered

    def _run(self, frame: wire.Frame, channel: wire.Channel) -> tuple[bytes, Values] | None:
        """Runs a stage that is short, and gives the reply; None for any other, and while this process records."""
        if recording.current is not None or self._worker.replica is not None:
            return None
        handle, number, stage_id, total, timeout, how, _ = Run.unpack(frame.fields)
        session = self._worker.session(handle)
        stage = session.stages.get(stage_id)
        if how & ~VERSIONS or stage is None or not stage.is_short(total) or len(frame.tensors) != stage.given:
            return None
        if session.cancelled:
            session.need(number)
        versions = VariableVersions() if how else None
        results = self._worker.run_alone(session, stage, timeout, frame.tensors, versions=versions)
        channel.busy_seconds += stage.last_seconds
        return told_versions(versions), [results[i] for i in stage.reply]

    # -- looking after it -----------------------------------------------------------------------------

    def _watch(self) -> None:
        """Has another thread serve when one request takes long."""
        while not self._closing.is_set():
            if self._idle:
                self._watch_sleeps = True
                if self._idle:
                    self._active.acquire()
                continue
            before = self._busy, self._answered
            if not self._closing.wait(_MAX_HOLD_UP_SECONDS):
                self._look_after(*before)

    def _look_after(self, loan: _Loan | None, answered: int) -> None:
        """Replaces the thread that serves, if it is still at a request."""
        with self._lock:
            held_up = loan is not None and loan is self._busy and self._answered == answered
            if held_up and loan is not None and len(self._loans) > 1 and not self._closing.is_set():
                del self._loans[loan.fd]
                self._poll.unregister(loan.fd)
                self._busy = None
                self._go_on()
