"""The replicas that take from a queue of tokens, and how their wait ends when replicas are lost.

A replica of synchronous training hands in its gradient and then waits for a token. When replicas have gone and all
that remain wait, no gradient will come any more, and so no token: they would wait for ever. They are given some time
for the lost ones to be started again, and then an error that says what happened.

A replica that ended in good order has finished the training. The others get one more token each, so that they can see
that the last step was reached. If they wait once more, they get the error that ends a loop in good order too.

With `follows`, an update is made of the gradients of the replicas that are there: the chief waits until each of them
waits for a token (it has handed in its gradient then), makes the update, and puts in one token for each. Who leaves is
not waited for, and who joins takes part in the next update.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tensorfleet.base import errors, logging, settings
from tensorfleet.base.platform.exit_threads import started
from tensorfleet.state.long_waits import Awaited
from tensorfleet.state.queues import Attempt, Element, PutAttempt, Signal

if TYPE_CHECKING:
    from tensorfleet.graph.kernel_types import HostContext, Resources
    from tensorfleet.state.queues import Queue

OVER = "Synchronous training is over"  # how the error begins that is none to a program that ends with it
_RELEASE_SECONDS = 2.0  # for an update under way to put in the tokens itself
_OVER_SECONDS = 5.0  # for a chief that has ended to begin the next training


def patience() -> float:
    """How many seconds waiting replicas give lost ones to come back."""
    return settings.REPLICA_SECONDS()


class RosterMember:
    """One session that takes tokens. Its session's end clears it."""

    def __init__(self, roster: Roster, session: Resources) -> None:
        self._roster = roster
        self._session = session
        self.owner: str = session.owner
        self.waiting: list[Attempt] = []

    @property
    def waits(self) -> bool:
        """Whether it waits for a token."""
        return any(not attempt.done for attempt in self.waiting)

    def clear(self) -> None:
        """The session has ended."""
        self._roster.left(self, self._session.finished)


class ChiefMark:
    """The session that makes the updates. Its session's end clears it."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    def clear(self) -> None:
        """The session has ended."""
        self._roster.chief_left(self)


class RoundAttempt(Attempt):
    """Waits until all replicas that are there wait for a token."""

    __slots__ = ("count",)
    verb = "AwaitReplicas"

    def __init__(self) -> None:
        super().__init__()
        self.count = 0


class Rounds(Awaited):
    """The waits of the chief for the replicas that are there."""

    def __init__(self, roster: Roster, name: str) -> None:
        super().__init__()
        self.name = name
        self._roster = roster

    def fullness(self) -> str:
        """Who is waited for, in words."""
        return self._roster.missing()

    def submit(self, attempt: RoundAttempt) -> bool:
        """Begins a wait; True when it is over at once."""
        return self._roster.begin_round(attempt)

    def withdraw(self, attempt: RoundAttempt) -> bool:
        """Ends a wait; False when it is over already."""
        return self._roster.end_round(attempt)


class Roster:
    """The sessions that take from one queue, and the sessions that did and have ended."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.replicas = self.aggregate = 0  # in all, and of how many gradients an update is made
        self.follows = False  # an update is made of the gradients of those that are there
        self.rounds = Rounds(self, queue.name)
        self._updating: list[RoundAttempt] = []  # of the chief, which waits until all wait for tokens
        self._chief_mark: ChiefMark | None = None
        self.over = False  # the chief has said that it makes no more updates
        self._chief: Callable[[], object] = lambda: None  # the chief's session, once it has begun
        self._lock = threading.Lock()
        self._members: list[RosterMember] = []
        self._gone: list[str] = []
        self._finished: set[str] = set()  # of those that have gone: those that ended in good order
        self._last: Element | None = None  # the token that was put in last, with the step that was reached
        self._released = False  # tokens were given out that belong to no update, and there was none since
        self._timer: threading.Timer | None = None

    def complete(self, ctx: HostContext, attempt: Attempt, complete: Callable[[], None]) -> None:
        """Brings an attempt of a session to its end, as `complete` does, and notes that the session waits."""
        member = ctx.private.get("", "replica", self._queue.name, lambda: self._join(ctx.private))
        with self._lock:
            member.waiting.append(attempt)
            self._look()
        try:
            complete()
        finally:
            with self._lock:
                member.waiting.remove(attempt)
                self._look()

    def begins_or_ends(self, session: Resources) -> None:
        """The chief has put in tokens that belong to no update: its first, or, in the same session, its last."""
        with self._lock:
            # A new chief session begins a training; the same one, the second time, ends it.
            self.over = self._chief() is session
            self._chief = weakref.ref(session)
            if not self.over:
                self._finished.clear()  # that was another training

    def put(self, tokens: Sequence[Element], of_update: bool) -> Sequence[Element]:
        """Notes tokens that are put in; gives those to put in, which may be more or fewer where replicas come and go."""
        with self._lock:
            self._last = tokens[-1]
            if of_update:
                self._released = False
            if not self.follows:
                return tokens
            # At the end of the training also for those that do not wait yet: nobody puts in a token for them later.
            takers = sum(m.waits or not of_update for m in self._members)
            return [tokens[-1]] * takers

    # -- the chief of replicas that come and go -------------------------------------------------------

    def await_all(self, ctx: HostContext, complete: Callable[[RoundAttempt], None]) -> int:
        """Waits until all replicas that are there wait, as `complete` waits for an attempt; gives their number."""
        mark = ctx.private.get("", "replica", f"{self._queue.name} updates", lambda: ChiefMark(self))
        with self._lock:
            self._chief_mark = mark
        attempt = RoundAttempt()
        complete(attempt)
        return attempt.count

    def begin_round(self, attempt: RoundAttempt) -> bool:
        """Has an attempt end when all wait."""
        with self._lock:
            attempt.event = Signal()
            self._updating.append(attempt)
            self._look()
            return attempt.done

    def end_round(self, attempt: RoundAttempt) -> bool:
        """Forgets an attempt; False when it is done."""
        with self._lock:
            if attempt.done:
                return False
            self._updating.remove(attempt)
            return True

    def chief_left(self, mark: ChiefMark) -> None:
        """The chief's session has ended, unless another has taken its place."""
        with self._lock:
            if self._chief_mark is mark:
                self._chief_mark = None
            self._look()

    def missing(self) -> str:
        """The replicas that do not wait, in words."""
        at_work = [m.owner for m in list(self._members) if not m.waits]
        return f"waiting for the gradients of {', '.join(at_work)}" if at_work else "no replica has joined"

    def _join(self, session: Resources) -> RosterMember:
        member = RosterMember(self, session)
        owner = member.owner
        with self._lock:
            self._members.append(member)
            self._finished.discard(owner)
            if owner in self._gone:
                self._gone.remove(owner)
            elif len(self._members) + len(self._gone) > self.replicas and self._gone:
                self._finished.discard(self._gone.pop(0))  # it came back under another name
        return member

    def left(self, member: RosterMember, finished: bool) -> None:
        """A session has ended, or its process has."""
        with self._lock:
            if member in self._members:
                self._members.remove(member)
                # The last one too: whoever comes later must not wait for ever.
                self._gone.append(member.owner)
                if finished:
                    self._finished.add(member.owner)
            self._look()

    def stuck(self) -> bool:
        """Whether all wait and nobody will put in a token for them. The caller holds the lock."""
        # Those that have gone are missed, where their gradients are; else only the chief is.
        missed = (self.over or self._chief_mark is None) if self.follows else True
        return bool(self._gone and missed and self._all_wait())

    def _all_wait(self) -> bool:
        """Whether all wait, and there are no tokens that they have not taken yet."""
        return bool(self._members) and all(m.waits for m in self._members) and not self._queue.look()[0]

    def _look(self) -> None:
        if self._updating and self._all_wait():
            attempts, self._updating = self._updating, []
            for attempt in attempts:
                attempt.count = len(self._members)
                attempt.finish()
        if not self.stuck():
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None:
            self._timer = threading.Timer(self._grace(), self.give_up)
            self._timer.name = f"tensorfleet-replicas-of-{self._queue.name}"
            self._timer.daemon = True
            if not started(self._timer):
                self._timer = None  # this process is ending, and its queues with it

    def _grace(self) -> float:
        """How many seconds to wait before the waiting is ended. The caller holds the lock."""
        if self._to_release() is not None:
            return min(patience(), _RELEASE_SECONDS)
        if self.over or (self._finished and len(self._members) < self.aggregate):
            return min(patience(), _OVER_SECONDS)
        return patience()  # who has gone may come back, or an update takes long

    def _to_release(self) -> Element | None:
        """The token that shows waiting replicas that the training is finished, if it is and they have not had it."""
        return self._last if self._finished and not self._released else None

    def give_up(self) -> None:
        """Ends all waits, unless something has changed: the first time with a token, then with an error."""
        with self._lock:
            self._timer = None
            if not self.stuck():
                return
            attempts = [a for m in self._members for a in m.waiting]
            token, error = self._to_release(), self._error()
            self._released = self._released or token is not None
        # Outside the lock: the queue wakes takers, which report back to this roster.
        if token is not None:
            self._queue.submit(PutAttempt([token] * len(attempts)))
            return
        if isinstance(error, errors.OutOfRangeError):
            logging.warning(error.message)
        for attempt in attempts:
            if self._queue.withdraw(attempt):
                attempt.error = error
                attempt.finish()

    def _error(self) -> errors.OpError:
        gone = ", ".join(sorted(set(self._gone)))
        of_all = "" if self.follows else f" of {self.replicas} replicas"
        left = ", ".join(sorted({m.owner for m in self._members}))
        if self.over or self._finished:
            ended = ", ".join(sorted(self._finished)) or "the chief"
            text = (
                f"{OVER}: {ended} ended in good order ({gone}{of_all} have gone), and {left} "
                "waits for an update that nobody makes. To let all replicas end at the same step, let them stop by the "
                "global step (StopAtStepHook with last_step), not by num_steps or the end of their own input."
            )
            return errors.OutOfRangeError(None, None, text)
        if self.follows:
            text = (
                f"Synchronous training cannot go on: the chief, which makes the updates, ended or was lost ({gone} have "
                f"gone), and {left} waited {patience():.0f} s for it. Start it again sooner, or set "
                "TENSORFLEET_REPLICA_SECONDS to wait longer."
            )
            return errors.FailedPreconditionError(None, None, text)
        return errors.FailedPreconditionError(
            None,
            None,
            f"Synchronous training cannot go on: {gone} of {self.replicas} replicas ended or was lost, and the others "
            f"({left}) have waited {patience():.0f} s for gradients that nobody is left to compute. Start it again sooner (or set "
            "TENSORFLEET_REPLICA_SECONDS to wait longer), let all replicas make the same number of steps, or ask for "
            "fewer gradients: replicas_to_aggregate of SyncReplicasOptimizer.",
        )

    def close(self) -> None:
        """Nobody is watched any more."""
        with self._lock:
            self._members, self._gone = [], []
            self._finished.clear()
            for attempt in self._updating:
                attempt.error = errors.CancelledError(None, None, f"Queue '{self._queue.name}' is gone.")
                attempt.finish()
            self._updating = []
            self._look()
