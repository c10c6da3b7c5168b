"""A task's own work: it keeps the graphs that sessions registered and runs their stages on its devices.

A session (of any client) sends each task only the operations that run there, once, and then starts stages by
number. The results of a stage go back in the reply, stay here for a later stage of the same step, or are pushed straight
to the task that needs them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.cluster.durability.results import RequestName
from tensorfleet.cluster.messages import WHOLE_STEP, Cancel, Push, Register
from tensorfleet.cluster.transport.peers import Peer, peer
from tensorfleet.cluster.transport.wire_dtype import full, thin
from tensorfleet.cluster.worker.pending_replies import PendingReply
from tensorfleet.cluster.worker.stage_tracing import awaiting, note_pushed, pushing
from tensorfleet.cluster.worker.stages import RegisteredStage
from tensorfleet.cluster.worker.worker_session import StepState, WorkerSession
from tensorfleet.runtime import recording
from tensorfleet.runtime.devices import local_device_names
from tensorfleet.runtime.engine import CLOSED, LocalEngine
from tensorfleet.runtime.resources import ResourceManager
from tensorfleet.runtime.shared_memory.server_reads import VariableBoard
from tensorfleet.state.accumulators import maximums

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.cluster.durability.replica import Replica
    from tensorfleet.runtime.scheduling.step import ExecutionContext, StageGuard
    from tensorfleet.runtime.trace import StepObserver
    from tensorfleet.runtime.values import Values
    from tensorfleet.runtime.variable_versions import VariableVersions

_REPEATING_SECONDS = 1.0  # how long a stage goes on by itself before its client is heard again


class Worker:
    """The state and the sessions of one task."""

    def __init__(self, task: str, config: ConfigProto) -> None:
        self.task, self.job = task, DeviceSpec.from_string(task).job
        self.config = config
        self.resources = ResourceManager()
        #: what makes this task durable, if it is
        self.replica: Replica | None = None
        self._sessions: dict[str, WorkerSession] = {}
        self._lock = threading.Lock()

    def devices(self) -> list[str]:
        """The full names of this task's devices."""
        return local_device_names(self.config, self.task)

    def dropped(self) -> dict[str, int]:
        """How many steps' gradients were dropped here as stale, by who computed them."""
        return maximums([a.dropped for a in self.resources.of_kind("accumulator", "sparse accumulator")])

    def engines(self) -> list[tuple[str, LocalEngine]]:
        """What runs the stages of each session, by its handle."""
        with self._lock:
            return [(handle, session.engine) for handle, session in self._sessions.items()]

    def register(self, client: str, message: Register, tensors: Sequence[Any]) -> None:
        """Adds operations and stages to a session, which its first message begins."""
        from tensorfleet.base.protos import ConfigProto, GraphDef

        handle = message.session
        if message.create:
            config = ConfigProto.FromString(tensors[1].tobytes())
            with self._lock:
                if handle not in self._sessions:
                    task, owner = message.task or self.task, message.owner or client
                    session = self._sessions[handle] = WorkerSession(
                        self, handle, client, config, task, owner
                    )
                    if self.replica is not None:
                        self.replica.begin_session(handle, session.engine)
                self._sessions[handle].client = client  # one that came back has another name
        session = self.session(handle)
        known = dict(zip(message.known, tensors[2:], strict=True))
        session.extend(GraphDef.FromString(tensors[0].tobytes()))
        for stage in message.stages:
            names = set(stage.known)
            session.stages[stage.id] = RegisteredStage(
                session, stage, {n: v for n, v in known.items() if n in names}
            )

    def session(self, handle: str) -> WorkerSession:
        """A session by its handle. A handle from before a restart is unknown here."""
        result = self._sessions.get(handle)
        if result is None:
            raise errors.AbortedError(
                None,
                None,
                f"Session handle is not found: {handle}. Possibly {self.task} just restarted, or the session was closed: "
                "make a new session.",
            )
        return result

    def run(
        self,
        handle: str,
        number: int,
        stage_id: int,
        total: int,
        timeout: int,
        given: Values,
        collector: StepObserver | None = None,
        asker: PendingReply | None = None,
        oldest: int = 0,
    ) -> Values:
        """Runs one stage of a step and returns what belongs in the reply, which nobody may want any more by then."""
        if self.replica is not None:
            self.replica.await_first_decision()
        session = self.session(handle)
        stage = session.stages.get(stage_id)
        known = self._known(handle, number, stage)
        if stage is not None and known is not None:
            self._keep(session, number, stage, known)
            deadline = time.monotonic() + timeout / 1000 if timeout else None
            return self._deliver(session, number, stage, known, deadline, collector)
        if stage is not None and stage.fixed:
            self._keep_fixed(session, number, stage_id, stage, given)
        if stage is None or len(given) != stage.given:
            raise errors.InvalidArgumentError(
                None, None, f"Stage {stage_id} is not registered, or takes other values."
            )
        for i in stage.full:
            if i < len(given):
                given[i] = full(given[i])
        if session.cancelled:  # the message may come after its step was cancelled
            session.need(number)
        deadline = time.monotonic() + timeout / 1000 if timeout else None
        if self.replica is not None and stage.changes:
            results = self._run_once(session, number, stage, total, deadline, given, collector, asker, oldest)
        elif stage.is_alone(total):
            versions = None if asker is None else asker.versions
            results = self.run_alone(session, stage, timeout, given, collector, versions)
        else:
            results = self._run_in_step(session, number, stage, total, deadline, given, collector, asker)
        if self.replica is not None and not stage.changes:
            self.replica.settle()
        return self._deliver(session, number, stage, results, deadline, collector)

    def _deliver(
        self,
        session: WorkerSession,
        number: int,
        stage: RegisteredStage,
        results: Values,
        deadline: float | None,
        collector: StepObserver | None,
    ) -> Values:
        """Pushes results to the tasks that need them, and gives those that belong in the reply."""
        sent = self._thinned(stage, results) if stage.thin else results
        for route, places in stage.push:
            message = Push(session.handle, number, route.names)
            values = [sent[i] for i in places]
            with pushing(collector, message, values, route.task):
                self._push(session, peer(route.task, route.address), message, values, deadline)
        return [sent[i] for i in stage.reply]

    # -- on a durable task ----------------------------------------------------------------------------

    def _known(self, handle: str, number: int, stage: RegisteredStage | None) -> Values | None:
        """What a stage has come to that was asked for before, on a durable task."""
        if self.replica is None or stage is None or not stage.changes:
            return None
        return self.replica.known_values(RequestName(handle, number, stage.id))

    def _run_once(
        self,
        session: WorkerSession,
        number: int,
        stage: RegisteredStage,
        total: int,
        deadline: float | None,
        given: Values,
        collector: StepObserver | None,
        asker: PendingReply | None,
        oldest: int,
    ) -> Values:
        """Runs a stage that changes state of a durable task: once, however often it is asked for."""
        replica, request = self.replica, RequestName(session.handle, number, stage.id)
        assert replica is not None
        versions = None if asker is None else asker.versions

        def execute(
            feeds: Values, left: int, began: Callable[[ExecutionContext], None] | None
        ) -> Callable[[StageGuard], Values]:
            return lambda guard: session.engine.run(
                stage.program, feeds, left, collector, began, versions=versions, guard=guard
            )

        if stage.is_alone(total):
            return replica.run(request, oldest, session.engine, execute(given, _left(deadline), None))
        return self._run_in_step(
            session,
            number,
            stage,
            total,
            deadline,
            given,
            collector,
            None,
            lambda feeds, left, began: replica.run(
                request, oldest, session.engine, execute(feeds, left, began)
            ),
        )

    @staticmethod
    def run_alone(
        session: WorkerSession,
        stage: RegisteredStage,
        timeout: int,
        given: Values,
        collector: StepObserver | None = None,
        versions: VariableVersions | None = None,
    ) -> Values:
        """Runs a stage that neither waits nor has to do with others of its step."""
        began = time.perf_counter()
        results = session.engine.run(stage.program, given, timeout, collector, versions=versions)
        stage.took(time.perf_counter() - began)
        return results

    def _thinned(self, stage: RegisteredStage, results: Values) -> Values:
        """Results as they are sent to other tasks."""
        names = stage.thin
        return [
            thin(result, stage.wire, f"'{names[i]}' from {self.task}") if i in names else result
            for i, result in enumerate(results)
        ]

    def board(self, handle: str, stage_id: int) -> VariableBoard | None:
        """A board with the variables that a stage reads, if it does nothing else."""
        session = self.session(handle)
        stage = session.stages.get(stage_id)
        stores = stage.reads() if stage is not None else None
        return session.shown(stores) if stores else None

    def run_again(self, handle: str, number: int, stage_id: int, *args: Any) -> Values:
        """Runs a stage again and again for a while, if it waits in between: any other would leave no time to others.

        On a durable task a request is one run: its result is kept under its name.
        """
        if self.replica is not None:
            return self.run(handle, number, stage_id, *args)
        until = time.monotonic() + _REPEATING_SECONDS
        results = self.run(handle, number, stage_id, *args)
        stage = self.session(handle).stages[stage_id]
        while not (stage.program.inline or stage.reply) and time.monotonic() < until:
            results = self.run(handle, number, stage_id, *args)
        return results

    def _run_in_step(
        self,
        session: WorkerSession,
        number: int,
        stage: RegisteredStage,
        total: int,
        deadline: float | None,
        given: Values,
        collector: StepObserver | None,
        asker: PendingReply | None,
        execute: Callable[[Values, int, Callable[[ExecutionContext], None]], Values] | None = None,
    ) -> Values:
        """Runs a stage that waits, or has to do with others of its step; `execute` runs it in place of the engine."""
        step = session.step(number)
        feeds = list(given) + [step.values[n] for n in stage.kept]
        if stage.awaited:
            with awaiting(collector, stage, step.values):
                self._await(step, stage, deadline, feeds, asker)
        if stage.held:
            feeds += self._held(session, number, stage.held)

        if asker is not None and collector is None and stage.answers is not None:
            asker.wants = stage.answers

        def began(ctx: ExecutionContext) -> None:
            ctx.asker = asker
            with step.arrived:
                step.contexts.append(ctx)
                if step.reason is not None:
                    ctx.cancel(step.reason)

        if step.reason is not None:
            raise step.reason
        left = _left(deadline)
        try:
            versions = None if asker is None else asker.versions
            if execute is not None:
                results = execute(feeds, left, began)
            else:
                results = session.engine.run(stage.program, feeds, left, collector, began, versions=versions)
        except BaseException:
            _give_back(asker, stage)
            raise
        finally:
            if asker is not None and not stage.returnable:
                asker.taken.clear()  # it has had its effect, or is on its way elsewhere
        self._keep(session, number, stage, results)
        # The last stage of this step here: no other will ask for its values.
        step.done += 1
        if step.done >= total:
            with session.lock:
                session.steps.pop(number, None)
        return results

    @staticmethod
    def _keep(session: WorkerSession, number: int, stage: RegisteredStage, results: Values) -> None:
        """Keeps the results that later stages of the step need here."""
        if stage.keep:
            step = session.step(number)
            for name, i in stage.keep:
                step.values[name] = results[i]
        if stage.hold:
            session.hold(number & WHOLE_STEP, {name: results[i] for name, i in stage.hold})

    def _keep_fixed(
        self, session: WorkerSession, number: int, stage_id: int, stage: RegisteredStage, given: Values
    ) -> None:
        """Keeps the values that all iterations of a loop share when the first brings them; adds them to the others."""
        names = [f"{stage_id}:{i}" for i in stage.fixed]
        if len(given) == stage.given:
            session.hold(number & WHOLE_STEP, {n: given[i] for n, i in zip(names, stage.fixed, strict=True)})
        elif len(given) == stage.given - len(names):
            for i, value in zip(stage.fixed, self._held(session, number, names), strict=True):
                given.insert(i, value)

    def _held(self, session: WorkerSession, number: int, names: list[str]) -> Values:
        """Handles that an earlier stage made for the loops of a step, and values that came with an earlier iteration."""
        with session.lock:
            kept = session.handles.get(number & WHOLE_STEP, {})
            missing = [n for n in names if n not in kept]
            if missing:
                raise errors.InvalidArgumentError(None, None, f"{self.task} does not have {missing[0]} here.")
            return [kept[n] for n in names]

    def _await(
        self,
        step: StepState,
        stage: RegisteredStage,
        deadline: float | None,
        feeds: Values,
        asker: PendingReply | None,
    ) -> None:
        """Waits for the values that other tasks push, and adds them to a stage's feeds."""
        names, began = stage.awaited, time.monotonic()
        with step.arrived:
            while not all(n in step.values for n in names):
                if step.reason is not None:
                    raise step.reason
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    missing = ", ".join(n for n in names if n not in step.values)
                    raise errors.DeadlineExceededError(
                        None, None, f"{self.task} waited in vain for {missing} from another task."
                    )
                step.arrived.wait(left)
            feeds += [step.values[n] for n in names]
        if asker is not None:
            asker.waited_seconds += time.monotonic() - began
        for i in stage.full:
            feeds[i] = full(feeds[i])

    def _push(
        self, session: WorkerSession, to: Peer, message: Push, values: Values, deadline: float | None
    ) -> None:
        """Sends values to another task, for as long as the step may take and the other is alive."""
        channel = to.acquire(deadline, sound=True)
        left = None if deadline is None else max(deadline - time.monotonic(), 0.05)
        with session.pushing(message.step, channel):
            to.exchange(channel, left, message, values)

    def arrived(self, message: Push, tensors: Values) -> None:
        """Takes in values that another task pushed."""
        session = self.session(message.session)
        if message.step in session.cancelled:
            return  # from a task that has not heard of it, or slept
        if recording.current is not None:
            note_pushed(recording.current, message, tensors, self.task)
        step = session.step(message.step)
        with step.arrived:
            if step.reason is None:
                step.values.update(zip(message.names, tensors, strict=True))
                step.arrived.notify_all()

    def cancel(self, message: Cancel) -> None:
        """Ends one step of a session, if it is known here."""
        session = self._sessions.get(message.session)
        if session is not None:
            why = message.reason or "The step was cancelled."
            session.cancel(message.step, errors.CancelledError(None, None, why))

    def close_session(
        self,
        handle: str,
        reason: errors.OpError | None = None,
        finished: bool = False,
        client_is_lost: bool = False,
    ) -> None:
        """Forgets a session; what still runs in it ends with the reason. `finished`: it has done its work."""
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is not None:
            if self.replica is not None:
                self.replica.forget_session(handle, client_is_lost)
            session.close(reason or errors.CancelledError(None, None, CLOSED), finished)

    def end_sessions(self, reason: errors.OpError) -> None:
        """Ends all sessions with a reason, and frees all state."""
        for handle in list(self._sessions):
            self.close_session(handle, reason)
        self.resources.clear()

    def reset(self, containers: Sequence[str] | None, master: bool) -> None:
        """Frees some containers, or all; a master also forgets the sessions that were made on its target."""
        if master:
            own = self.task.replace("/replica:0", "")
            with self._lock:
                gone = [h for h, s in self._sessions.items() if s.owner == own]
            for handle in gone:
                self.close_session(handle)
        # The container that has no name is also called by the name of the job.
        names = ["" if c == self.job else c for c in containers] if containers else None
        if self.replica is not None:
            self.replica.reset(names)
        else:
            self.resources.clear(names)

    def client_gone(self, client: str) -> None:
        """Forgets the sessions of a client that has ended; what waits for it wakes up."""
        with self._lock:
            gone = [h for h, s in self._sessions.items() if s.client == client]
        for handle in gone:
            self.close_session(handle, client_is_lost=True)

    def close(self) -> None:
        """Ends all sessions and frees all state. Clients may try again, as they do when a task dies."""
        self.end_sessions(errors.UnavailableError(None, None, f"The server {self.task} was stopped."))


def _left(deadline: float | None) -> int:
    """Milliseconds until a deadline, 0 for none."""
    return max(int((deadline - time.monotonic()) * 1000), 1) if deadline is not None else 0


def _give_back(asker: PendingReply | None, stage: RegisteredStage) -> None:
    """Puts back what a stage that failed has taken from queues."""
    if asker is not None and stage.returnable:
        asker.give_back()
