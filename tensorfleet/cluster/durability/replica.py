"""A server of a durable task: leads it with a standby or alone, or stands by (decision 33)."""

from __future__ import annotations

import contextlib
import math
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors, logging
from tensorfleet.cluster.durability import changes as kinds
from tensorfleet.cluster.durability.changes import Change, Changes
from tensorfleet.cluster.durability.freshness import Freshness
from tensorfleet.cluster.durability.journal import Journal
from tensorfleet.cluster.durability.kept_state import KeptState
from tensorfleet.cluster.durability.results import RequestName, failure_of, values_of
from tensorfleet.cluster.durability.role import Action, Role, State, Taken, given_up
from tensorfleet.cluster.durability.stage_run import StageRun
from tensorfleet.cluster.durability.standby_link import StandbyLink
from tensorfleet.cluster.durability.state_transfer import StateTransfer
from tensorfleet.cluster.messages import (
    KEEPS,
    QUIET,
    Done,
    Lead,
    Led,
    Replicate,
    StandDown,
)

if TYPE_CHECKING:
    from tensorfleet.cluster.transport import wire
    from tensorfleet.cluster.worker.worker import Worker
    from tensorfleet.runtime.engine import LocalEngine
    from tensorfleet.runtime.values import Values

_FIRST_DECISION_SECONDS = 120.0  # how long requests wait for the guard's first decision
_DECISION_SECONDS = 60.0  # how long a server that has lost its standby waits for the guard's decision
_REPORT_SECONDS = 5.0
_DRAIN_SECONDS = 10.0
_BUSY_SECONDS = 10.0  # how long a server that is to stand down waits for the step that it is at
_ASK_AGAIN_SECONDS = 0.5
# A server that waits so long for a decision stops answering the guard, which may see both servers, and not that they
# cannot reach each other. Far longer than the guard takes to notice that a standby is silent.
_CUT_OFF_SECONDS = 5.0
# What belongs to a session whose client was lost; far longer than a client looks for a server.
_KEPT_SECONDS = 300.0


class Replica:
    """The part of a server that makes its task durable."""

    def __init__(self, worker: Worker, places: Sequence[str], state: State) -> None:
        self.worker = worker
        self.task = worker.task
        self.places = list(places)
        self.role = Role(self.task, state)
        #: of the state: the one that is copied has the same, and no other has it
        self.lineage = secrets.randbits(53) if state is State.WAITING else 0
        self.journal = Journal(self._send)
        #: of a standby
        self.kept = KeptState()
        #: guards the role; never held while anything waits for another process
        self._changing = threading.Condition()
        #: of a standby: one part of the state is taken after the other
        self.taking = threading.Lock()
        self._link: StandbyLink | None = None
        #: a standby that does not have all of the state yet, and what it has
        self._copying: StateTransfer | None = None
        #: of a standby: the connections on which the state and the commits come
        self._feeding: set[wire.Channel] = set()
        #: of a standby: whether it may answer reads
        self.freshness = Freshness()
        self._waits_since = math.inf  # for a decision
        self._running: dict[RequestName, threading.Event] = {}
        self._set_aside: dict[str, float] = {}  # sessions of lost clients, and since when
        worker.resources.adopt = self.journal.adopter()

    # -- who leads ------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch in which this server leads; 0 if it does not, or not yet."""
        return self.role.epoch if self.role.state is State.LEADING else 0

    @property
    def stands_by(self) -> bool:
        """Whether this server does not lead, and will not unless the guard says so."""
        return self.role.state in (State.STANDING_BY, State.GIVEN_UP)

    def told(self) -> tuple[list[str], int, bool, int]:
        """What clients are told of it: the places of the task, the epoch, whether it stands by, the number of its state."""
        return self.places, self.epoch, self.stands_by, self.lineage

    def need(self) -> None:
        """Raises unless this server leads."""
        if self.role.state is not State.LEADING:
            raise given_up(self.task, self.role.epoch)

    def await_first_decision(self) -> None:
        """Waits until the guard has said that this server leads. Raises if another one does."""
        if self.role.state is State.LEADING:
            return
        limit = time.monotonic() + _FIRST_DECISION_SECONDS
        with self._changing:
            while self.role.state is State.WAITING:
                if not self._changing.wait(limit - time.monotonic()):
                    raise errors.UnavailableError(
                        None,
                        None,
                        f"{self.task} is to be durable, and waits for its guard since {_FIRST_DECISION_SECONDS:.0f} s. Is "
                        "`tensorfleet run` or `tensorfleet guard` running, and does it reach this server?",
                    )
        self.need()

    def lead(self, request: Lead) -> Led:
        """Carries out a decision of the guard's."""
        self._need_task(request.task)
        if self.role.state is State.STANDING_BY and self.role.complete and request.epoch > self.role.epoch:
            self._cut_off()
        kept = None
        if request.standby and self.role.state is State.STANDING_BY:
            try:
                kept = self._keep_standby(request)
            except (OSError, errors.OpError) as e:
                return Led(request.epoch, self.role.number, 0, str(getattr(e, "message", e)))
        try:
            action, lost = self._take_decision(request, kept)
        except BaseException:
            if kept is not None:
                kept.close()
            raise
        if lost is not None:
            lost.close()
        logging.info("%s leads in epoch %d: %s.", self.task, request.epoch, action.value)
        copied = self._copy_to(request.standby, request.epoch) if action is Action.COPY else 0
        return Led(request.epoch, self.journal.number, copied)

    def _take_decision(self, request: Lead, kept: StandbyLink | None) -> tuple[Action, StandbyLink | None]:
        """What this server does, and the link that it does not need any more. `kept` leads to a standby with the same state."""
        with self.taking, self._changing:
            action = self.role.on_lead(request.epoch, bool(request.standby))
            self.places = list(request.places) or self.places
            lost, self._link = self._link, kept
            if action is Action.TAKE_OVER:
                self._take_over()
            self._changing.notify_all()
        return action, lost

    def _take_over(self) -> None:
        journal, kept, self.kept = self.journal, self.kept, KeptState()
        journal.contents, journal.results, journal.number = kept.contents, kept.results, self.role.number

    def _keep_standby(self, request: Lead) -> StandbyLink:
        """The link to the server that has stood down, which takes commits of this epoch from now on.

        Before this one leads: otherwise it might lead without a standby, and nobody would know.
        """
        self.role.need_to_take_over(request.epoch)
        link, same = StandbyLink(request.standby), Changes()
        same.add(kinds.LINEAGE, [self.lineage])
        try:
            link.reconnect()
            link.send(request.epoch, self.role.number, KEEPS, same)
        except BaseException:
            link.close()
            raise
        return link

    def stand_down(self, request: StandDown) -> Led:
        """Finishes the commit under way, and becomes a standby with all of the state."""
        self._need_task(request.task)
        journal = self.journal
        if not journal.lock.acquire(timeout=_BUSY_SECONDS):
            raise errors.UnavailableError(
                None, None, f"{self.task} was busy with a step for {_BUSY_SECONDS:.0f} s. Try again later."
            )
        try:
            self._hand_over(journal, request.epoch)
        finally:
            journal.lock.release()
        self.worker.end_sessions(given_up(self.task, request.epoch))
        logging.info("%s has handed over to its standby by decision %d.", self.task, request.epoch)
        return Led(request.epoch, self.role.number)

    def _hand_over(self, journal: Journal, epoch: int) -> None:
        """The state of this server becomes that of a standby. The caller holds the journal's lock."""
        link = self._link
        self.role.need_to_stand_down(epoch)
        if link is None:
            raise errors.FailedPreconditionError(None, None, f"{self.task} has no standby to hand over to.")
        try:
            link.send(self.role.epoch, journal.number, 0, Changes(), wants_answer=True)
        except (OSError, errors.OpError) as e:
            text = f"{self.task} cannot reach its standby: {getattr(e, 'message', e)}"
            raise errors.UnavailableError(None, None, text) from None
        kept = KeptState(journal.as_contents(), journal.results)
        with self._changing:
            self.role.on_stand_down(epoch, journal.number)
            self.kept, self._link = kept, None
            self._begin_journal()
            self._changing.notify_all()
        link.close()

    def _begin_journal(self) -> None:
        """What is noted from now on has nothing to do with what was."""
        self.journal = Journal(self._send)
        self.worker.resources.adopt = self.journal.adopter()

    def _need_task(self, task: str) -> None:
        if task != self.task:
            raise errors.InvalidArgumentError(None, None, f"This is {self.task}, not {task!r}.")

    # -- stages ---------------------------------------------------------------------------------------

    def known_values(self, request: RequestName) -> Values | None:
        """What a stage has come to that was asked for before; None if it was not."""
        result = self.journal.results.of_stage(request)
        if result is None:
            return None
        result.raise_if_failed()
        return list(result.values)

    def run(
        self, request: RequestName, oldest: int, engine: LocalEngine, execute: Callable[[StageRun], Values]
    ) -> Values:
        """Runs a stage that changes state, once however often it is asked for."""
        self._enter(request)
        try:
            return self._run(request, oldest, engine, execute)
        finally:
            with self._changing:
                self._running.pop(request).set()

    def _run(
        self, request: RequestName, oldest: int, engine: LocalEngine, execute: Callable[[StageRun], Values]
    ) -> Values:
        journal = self.journal

        def need() -> None:  # it may have been given up, and lead again, while the stage waited
            if journal is not self.journal:
                raise given_up(self.task, self.role.epoch)
            self.need()

        stage = StageRun(journal, request, oldest, engine, need)
        stage.begin()
        try:
            need()
            known = self.known_values(request)
            if known is not None:
                return known
            try:
                values = execute(stage)
            except Exception as e:
                need()  # what is said of queues that were cleared then is not for the client
                stage.finish(None if isinstance(e, errors.CancelledError) else failure_of(e))
                raise
            stage.finish(values_of(values))
            return values
        finally:
            stage.end()

    def _enter(self, request: RequestName) -> None:
        """Waits while the same request runs already: its connection was lost."""
        while True:
            with self._changing:
                running = self._running.get(request)
                if running is None:
                    self._running[request] = threading.Event()
                    return
            # It ends: with its wait, or when its session is closed, as that of a lost client is.
            while not running.wait(_REPORT_SECONDS):
                self.need()

    def settle(self) -> None:
        """Returns when all that a stage may have read cannot be lost any more."""
        with self.journal.lock:
            self.need()

    def forget_session(self, session: str, client_is_lost: bool) -> None:
        """A session is closed. One whose client was lost may be registered again, with what belongs to it."""
        if self.role.state is not State.LEADING:
            return
        journal = self.journal
        with journal.lock:
            if self.role.state is not State.LEADING or journal is not self.journal:
                return
            now = time.monotonic()
            if client_is_lost:
                self._set_aside[session] = now
                journal.set_aside(session)
            else:
                self._set_aside[session] = -math.inf
            for one, since in list(self._set_aside.items()):
                if now - since > _KEPT_SECONDS:
                    del self._set_aside[one]
                    journal.forget_session(one)
            journal.commit()

    def begin_session(self, session: str, engine: LocalEngine) -> None:
        """A session is registered, for the first time or again."""
        self._set_aside.pop(session, None)
        self.journal.watch_session(session, engine)

    def reset(self, containers: Sequence[str] | None) -> None:
        """Drops containers, or all."""
        with self.journal.lock:
            self.need()
            self.worker.resources.clear(containers)
            self.journal.forget_containers(containers)
            self.journal.commit()

    # -- the standby ----------------------------------------------------------------------------------

    def _send(self, number: int, changes: Changes) -> None:
        """Has a commit copied. The caller holds the journal's lock."""
        link = self._link
        if link is None:
            self._send_to_new(number, changes)
            return
        try:
            link.send(self.role.epoch, number, 0, changes)
        except errors.AbortedError:
            self._give_up()
            raise given_up(self.task, self.role.epoch) from None
        except (OSError, errors.OpError) as e:
            if not self._send_again(link, number, changes):
                self._await_decision(link, e)

    def _send_again(self, link: StandbyLink, number: int, changes: Changes) -> bool:
        """Sends a commit over a new connection. False if the standby cannot be reached."""
        try:
            return link.send_again(lambda: self._leads_over(link), self.role.epoch, number, changes)
        except errors.FailedPreconditionError:
            return self._fill_again(link)

    def _fill_again(self, link: StandbyLink) -> bool:
        """Sends all of the state: commits that the standby did not wait for were lost with their connection."""
        logging.warning("%s: its standby lacks commits, and gets all of the state again.", self.task)
        try:
            link.reconnect()
            copy = StateTransfer(link, self.journal, self.role.epoch)
            copy.begin(self.lineage)
            copy.end()
        except (OSError, errors.OpError):
            return False
        return True

    def _leads_over(self, link: StandbyLink) -> bool:
        return self._link is link and self.role.state is State.LEADING

    def _send_to_new(self, number: int, changes: Changes) -> None:
        """Sends a standby that is being made what it has to know already."""
        if self._copying is not None:
            self._copying.pass_on(number, changes)

    def _await_decision(self, link: StandbyLink, error: Exception) -> None:
        """The standby is lost, or this server is cut off: only the guard can tell. Raises if this server was given up."""
        began = told = time.monotonic()
        self._waits_since = began
        logging.warning("%s has lost its standby (%s), and waits for the guard's decision.", self.task, error)
        while self._leads_over(link):
            if link.leads_in() > self.role.epoch:  # the guard has told it, and cannot reach this server
                self._give_up()
                break
            with self._changing:
                if not self._leads_over(link):
                    break
                self._changing.wait(_ASK_AGAIN_SECONDS)
                now = time.monotonic()
                if now - told >= _REPORT_SECONDS:
                    told = now
                    logging.warning("%s waits for the guard's decision for %d s.", self.task, now - began)
                if now - began > _DECISION_SECONDS:
                    logging.error(
                        "%s gives up: it has no standby, and no guard that says that it may go on alone.",
                        self.task,
                    )
                    self.role.on_refused()
        self._waits_since = math.inf
        if self.role.state is not State.LEADING:
            self._give_up()
            raise given_up(self.task, self.role.epoch)

    @property
    def is_cut_off(self) -> bool:
        """Whether this server leads, but has waited for long because it cannot reach its standby."""
        return time.monotonic() - self._waits_since > _CUT_OFF_SECONDS

    def _copy_to(self, address: str, epoch: int) -> int:
        """Copies the state to a new standby, resource by resource, while stages run between. Gives the bytes."""
        link, journal = StandbyLink(address), self.journal
        copy = StateTransfer(link, journal, epoch)
        try:
            link.reconnect()
            with journal.lock:
                self._need_epoch(epoch)
                copy.begin(self.lineage)
                self._copying = copy
                keys = journal.all_keys()
            for key in keys:
                with journal.lock:
                    self._need_epoch(epoch)
                    copy.add(key)
            with journal.lock:
                self._need_epoch(epoch)
                copy.end()
                self._copying = None
                with self._changing:
                    self._link = link
        except (OSError, errors.OpError) as e:
            with journal.lock:
                self._copying = None
            link.close()
            text = f"{self.task} could not copy its state to {address}: {getattr(e, 'message', e)}"
            raise errors.UnavailableError(None, None, text) from None
        return link.sent_bytes

    def _need_epoch(self, epoch: int) -> None:
        if self.role.epoch != epoch or self.role.state is not State.LEADING:
            raise errors.AbortedError(None, None, "there is a later decision")

    # -- standing by ----------------------------------------------------------------------------------

    def take(self, channel: wire.Channel, message: Replicate, arrays: Sequence[Any]) -> None:
        """Takes a part of the state, or a commit, of the server that leads, and says so as soon as it is safe here."""
        read = kinds.decode(message.changes, arrays)
        with self._changing:
            self._feeding.add(channel)
        with self.taking:
            led = self.role.state in (State.LEADING, State.WAITING)
            if message.part & KEEPS:
                read = iter(self._need_same(list(read)))
            with self._changing:
                taken = self.role.on_copy(message.epoch, message.number, message.part)
                self._changing.notify_all()
            self.freshness.heard(time.monotonic())
            if taken is Taken.BEGIN:
                self.kept = KeptState()
                if led:
                    self._give_up()
            is_quiet, is_commit = message.part == QUIET, self.role.complete and not message.part
            if taken is Taken.HAVE:
                read = iter(())
            try:
                if is_commit:  # it is received, which is all that the other server waits for
                    channel.say(Done())
            finally:  # without its answer the other server sends it again, and it counts as taken already
                for change in read:
                    self._apply(change)
            if not (is_commit or is_quiet):
                channel.say(Done())

    def _need_same(self, said: list[Change]) -> list[Change]:
        """Raises unless the state that is here is the one that another server has, as it says."""
        if any(one.what != kinds.LINEAGE or one.about != (self.lineage,) for one in said):
            raise errors.FailedPreconditionError(
                None, None, f"A server of {self.task} refuses: it has another state."
            )
        return said

    @property
    def is_fed(self) -> bool:
        """Whether this server is a standby with all of the state, and the server that leads is connected to it."""
        return bool(self._feeding) and self.role.state is State.STANDING_BY and self.role.complete

    def left(self, channel: wire.Channel) -> None:
        """A connection has ended, and all that came on it is taken."""
        with self._changing:
            self._feeding.discard(channel)
            self._changing.notify_all()

    def _cut_off(self) -> None:
        """Lets the server that led send nothing more, and takes all that it has sent: it does not wait for answers."""
        with self._changing:
            for channel in self._feeding:
                with contextlib.suppress(OSError):
                    channel.sock.shutdown(socket.SHUT_RD)
            if not self._changing.wait_for(lambda: not self._feeding, _DRAIN_SECONDS):
                raise errors.UnavailableError(
                    None,
                    None,
                    f"{self.task}: the commits that have come take longer than {_DRAIN_SECONDS:.0f} s.",
                )

    def _apply(self, change: Change) -> None:
        if change.what == kinds.LINEAGE:
            self.lineage = int(change.about[0])
        else:
            self.kept.apply(change)

    def _give_up(self) -> None:
        """Another server leads: ends the sessions here, and forgets the state."""
        with self._changing:
            if self.role.state is State.LEADING:
                self.role.on_refused()
            link, self._link = self._link, None
        if link is not None:
            link.close()
        logging.warning("%s: another server leads it now. This one was given up.", self.task)
        self.worker.end_sessions(given_up(self.task, self.role.epoch))
        self._begin_journal()

    def close(self) -> None:
        """The server stops."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
