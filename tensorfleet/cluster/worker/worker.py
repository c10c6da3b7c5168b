"""A task's own work: it keeps the graphs that sessions registered and runs their stages on its devices.

A session (of any client) sends each task only the operations that run there, once, and then starts stages by
number. The results of a stage go back in the reply, stay here for a later stage of the same step, or are pushed straight
to the task that needs them.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.cluster.master.placer import is_isolated
from tensorfleet.cluster.messages import WHOLE_STEP, Cancel, Push, Register
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.peers import Peer, peer
from tensorfleet.cluster.transport.wire_dtype import full, thin
from tensorfleet.cluster.worker.pending_replies import PendingReply
from tensorfleet.cluster.worker.stages import RegisteredStage
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.importing import extend_graph
from tensorfleet.runtime.devices import local_device_names
from tensorfleet.runtime.engine import CLOSED, LocalEngine
from tensorfleet.runtime.resources import ResourceManager
from tensorfleet.runtime.shared_memory.server_reads import VariableBoard, board_of
from tensorfleet.state.accumulators import maximums

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto, GraphDef
    from tensorfleet.graph.operation import Operation, Tensor
    from tensorfleet.runtime.resources import VariableStore
    from tensorfleet.runtime.scheduling.step import ExecutionContext
    from tensorfleet.runtime.trace import Collector
    from tensorfleet.runtime.values import Values

_REPEATING_SECONDS = 1.0  # how long a stage goes on by itself before its client is heard again
_MAX_REMEMBERED_STEPS = 4096  # cancelled ones: a message about one may still be on its way


class _StepState:
    """A step under way here: the values between its stages, and their runs."""

    __slots__ = ("arrived", "contexts", "done", "reason", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.arrived = threading.Condition()
        self.contexts: list[Any] = []
        self.done = 0
        self.reason: errors.OpError | None = None


class _Session:
    """What one client's session has registered here."""

    def __init__(self, worker: Worker, client: str, config: ConfigProto, task: str, owner: str) -> None:
        self.client, self.owner = client, owner
        self.graph = Graph()
        resources = ResourceManager() if is_isolated(config) else worker.resources
        devices = _with_devices(config, worker.config)
        self.engine = LocalEngine(self.graph, devices, resources, task, owner)
        self.stages: dict[int, RegisteredStage] = {}
        self.lock = threading.Lock()
        self.steps: dict[int, _StepState] = {}
        #: what loops over several tasks use here, by the step they are in
        self.handles: dict[int, dict[str, Any]] = {}
        self._pushes: set[tuple[int, wire.Channel]] = set()  # under way, by step
        self.cancelled: collections.OrderedDict[int, errors.OpError] = collections.OrderedDict()
        self._closed: errors.OpError | None = None
        self._boards: set[VariableBoard] = set()

    def extend(self, graph_def: GraphDef) -> None:
        """Adds the nodes that are new."""
        have = self.graph._by_name
        fresh, mapping = graph_def, {}
        if have:
            fresh = type(graph_def)(versions=graph_def.versions, library=graph_def.library)
            fresh.node.extend(n for n in graph_def.node if n.name not in have)
            mapping = self._known_inputs(fresh)
        extend_graph(self.graph, fresh, mapping)

    def _known_inputs(self, fresh: GraphDef) -> dict[str, Any]:
        """What new nodes take from those that are here already."""
        names = {n.name for n in fresh.node}
        mapping: dict[str, Any] = {}
        for node in fresh.node:
            for text in node.input:
                source, _, index = text.lstrip("^").partition(":")
                op = None if source in names else self.graph._by_name.get(source)
                if op is None:
                    continue
                if text.startswith("^"):
                    mapping[text] = op
                else:
                    mapping[text if ":" in text else f"{text}:0"] = _output(op, index)
        return mapping

    def shown(self, stores: list[VariableStore]) -> VariableBoard | None:
        """The board with some variables. It is taken down with the session: the client must not read on after that."""
        found = board_of(stores)
        if found is not None:
            with self.lock:
                if self._closed is not None:
                    raise self._closed
                self._boards.add(found)
        return found

    def step(self, number: int) -> _StepState:
        """The step of that number, begun by whichever message of it comes first."""
        with self.lock:
            found = self.steps.get(number)
            if found is None:
                found = self.steps[number] = _StepState()
                found.reason = self.cancelled.get(number)
            return found

    def hold(self, number: int, handles: dict[str, Any]) -> None:
        """Keeps handles for the loops of a step until it is cancelled, as it is in the end."""
        with self.lock:
            if number not in self.cancelled and self._closed is None:
                self.handles.setdefault(number, {}).update(handles)

    def cancel(self, number: int, reason: errors.OpError) -> None:
        """Ends a step: its waits wake up, and values that arrive for it are thrown away."""
        with self.lock:
            self.cancelled[number] = reason
            if len(self.cancelled) > _MAX_REMEMBERED_STEPS:
                self.cancelled.popitem(last=False)
            step = self.steps.pop(number, None)
            self.handles.pop(number, None)
            pushes = [channel for n, channel in self._pushes if n == number]
        for channel in pushes:
            channel.shut()
        # Outside the lock, as in `close`: what wakes up may need it.
        if step is not None:
            _end(step, reason)

    @contextlib.contextmanager
    def pushing(self, number: int, channel: wire.Channel) -> Iterator[None]:
        """While a value of a step is on its way over a connection, which ends with the step."""
        with self.lock:
            self._pushes.add((number, channel))
            if self._closed is not None or number in self.cancelled:
                channel.shut()
        try:
            yield
        except errors.OpError:
            self.need(number)
            raise
        finally:
            with self.lock:
                self._pushes.discard((number, channel))

    def need(self, number: int) -> None:
        """Raises when a step was cancelled, or the session is closed."""
        reason = self._closed or self.cancelled.get(number)
        if reason is not None:
            raise reason

    def close(self, reason: errors.OpError, finished: bool = False) -> None:
        """Ends every step and refuses new ones."""
        with self.lock:
            self._closed = reason
            steps, self.steps = list(self.steps.values()), {}
            self.handles.clear()
            pushes = [channel for _, channel in self._pushes]
        # First of all: a reader of a board does not ask, and would not learn that the session is closed.
        for board in self._boards:
            board.take_down()
        for channel in pushes:
            channel.shut()
        for step in steps:
            _end(step, reason)
        self.engine.close(reason, finished)


def _output(op: Operation, index: str) -> Tensor:
    try:
        return op._outputs[int(index or 0)]
    except (ValueError, IndexError):
        raise errors.InvalidArgumentError(None, None, f"{op.name} has no output {index[:20]}.") from None


def _end(step: _StepState, reason: errors.OpError) -> None:
    with step.arrived:
        step.reason = reason
        step.arrived.notify_all()
        contexts = list(step.contexts)
    for ctx in contexts:
        ctx.cancel(reason)


def _with_devices(config: ConfigProto, own: ConfigProto | None) -> ConfigProto:
    """A session's configuration with the devices that this task was started with."""
    from tensorfleet.base.protos import ConfigProto

    used = ConfigProto()
    used.CopyFrom(config)
    used.device_count.clear()
    if own is not None:
        used.device_count.update(own.device_count)
        used.gpu_options.CopyFrom(own.gpu_options)
    return used


class Worker:
    """The state and the sessions of one task."""

    def __init__(self, task: str, config: ConfigProto) -> None:
        self.task, self.job = task, DeviceSpec.from_string(task).job
        self.config = config
        self.resources = ResourceManager()
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.Lock()

    def devices(self) -> list[str]:
        """The full names of this task's devices."""
        return local_device_names(self.config, self.task)

    def dropped(self) -> dict[str, int]:
        """How many steps' gradients were dropped here as stale, by who computed them."""
        return maximums([a.dropped for a in self.resources.of_kind("accumulator", "sparse accumulator")])

    def register(self, client: str, message: Register, tensors: Sequence[Any]) -> None:
        """Adds operations and stages to a session, which its first message begins."""
        from tensorfleet.base.protos import ConfigProto, GraphDef

        handle = message.session
        if message.create:
            config = ConfigProto.FromString(tensors[1].tobytes())
            with self._lock:
                if handle not in self._sessions:
                    task, owner = message.task or self.task, message.owner or client
                    self._sessions[handle] = _Session(self, client, config, task, owner)
        session = self.session(handle)
        known = dict(zip(message.known, tensors[2:], strict=True))
        session.extend(GraphDef.FromString(tensors[0].tobytes()))
        for stage in message.stages:
            names = set(stage.known)
            session.stages[stage.id] = RegisteredStage(
                session, stage, {n: v for n, v in known.items() if n in names}
            )

    def session(self, handle: str) -> _Session:
        """A session by its handle. A handle from before a restart is unknown here."""
        found = self._sessions.get(handle)
        if found is None:
            raise errors.AbortedError(
                None,
                None,
                f"Session handle is not found: {handle}. Possibly {self.task} just restarted, or the session was closed: "
                "make a new session.",
            )
        return found

    def run(
        self,
        handle: str,
        number: int,
        stage_id: int,
        total: int,
        timeout: int,
        given: Values,
        collector: Collector | None = None,
        asker: PendingReply | None = None,
    ) -> Values:
        """Runs one stage of a step and returns what belongs in the reply, which nobody may want any more by then."""
        session = self.session(handle)
        stage = session.stages.get(stage_id)
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
        if stage.is_alone(total):
            results = self.run_alone(session, stage, timeout, given, collector)
        else:
            results = self._run_in_step(session, number, stage, total, deadline, given, collector, asker)
        sent = self._thinned(stage, results) if stage.thin else results
        for route, places in stage.push:
            message = Push(handle, number, route.names)
            self._push(session, peer(route.task, route.address), message, [sent[i] for i in places], deadline)
        return [sent[i] for i in stage.reply]

    @staticmethod
    def run_alone(
        session: _Session,
        stage: RegisteredStage,
        timeout: int,
        given: Values,
        collector: Collector | None = None,
    ) -> Values:
        """Runs a stage that neither waits nor has to do with others of its step."""
        began = time.perf_counter()
        results = session.engine.run(stage.program, given, timeout, collector)
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
        """Runs a stage again and again for a while, if it waits in between: any other would leave no time to others."""
        until = time.monotonic() + _REPEATING_SECONDS
        results = self.run(handle, number, stage_id, *args)
        stage = self.session(handle).stages[stage_id]
        while not (stage.program.inline or stage.reply) and time.monotonic() < until:
            results = self.run(handle, number, stage_id, *args)
        return results

    def _run_in_step(
        self,
        session: _Session,
        number: int,
        stage: RegisteredStage,
        total: int,
        deadline: float | None,
        given: Values,
        collector: Collector | None,
        asker: PendingReply | None,
    ) -> Values:
        step = session.step(number)
        feeds = list(given) + [step.values[n] for n in stage.kept]
        if stage.awaited:
            self._await(step, stage, deadline, feeds)
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
        left = max(int((deadline - time.monotonic()) * 1000), 1) if deadline is not None else 0
        try:
            results = session.engine.run(stage.program, feeds, left, collector, began)
        except BaseException:
            _give_back(asker, stage)
            raise
        finally:
            if asker is not None and not stage.returnable:
                asker.taken.clear()  # it has had its effect, or is on its way elsewhere
        for name, i in stage.keep:
            step.values[name] = results[i]
        if stage.hold:
            session.hold(number & WHOLE_STEP, {name: results[i] for name, i in stage.hold})
        # The last stage of this step here: no other will ask for its values.
        step.done += 1
        if step.done >= total:
            with session.lock:
                session.steps.pop(number, None)
        return results

    def _keep_fixed(
        self, session: _Session, number: int, stage_id: int, stage: RegisteredStage, given: Values
    ) -> None:
        """Keeps the values that all iterations of a loop share when the first brings them; adds them to the others."""
        names = [f"{stage_id}:{i}" for i in stage.fixed]
        if len(given) == stage.given:
            session.hold(number & WHOLE_STEP, {n: given[i] for n, i in zip(names, stage.fixed, strict=True)})
        elif len(given) == stage.given - len(names):
            for i, value in zip(stage.fixed, self._held(session, number, names), strict=True):
                given.insert(i, value)

    def _held(self, session: _Session, number: int, names: list[str]) -> Values:
        """Handles that an earlier stage made for the loops of a step, and values that came with an earlier iteration."""
        with session.lock:
            kept = session.handles.get(number & WHOLE_STEP, {})
            missing = [n for n in names if n not in kept]
            if missing:
                raise errors.InvalidArgumentError(None, None, f"{self.task} does not have {missing[0]} here.")
            return [kept[n] for n in names]

    def _await(self, step: _StepState, stage: RegisteredStage, deadline: float | None, feeds: Values) -> None:
        """Waits for the values that other tasks push, and adds them to a stage's feeds."""
        names = stage.awaited
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
        for i in stage.full:
            feeds[i] = full(feeds[i])

    def _push(
        self, session: _Session, to: Peer, message: Push, values: Values, deadline: float | None
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
        self, handle: str, reason: errors.OpError | None = None, finished: bool = False
    ) -> None:
        """Forgets a session; what still runs in it ends with the reason. `finished`: it has done its work."""
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is not None:
            session.close(reason or errors.CancelledError(None, None, CLOSED), finished)

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
        self.resources.clear(names)

    def client_gone(self, client: str) -> None:
        """Forgets the sessions of a client that has ended; what waits for it wakes up."""
        with self._lock:
            gone = [h for h, s in self._sessions.items() if s.client == client]
        for handle in gone:
            self.close_session(handle)

    def close(self) -> None:
        """Ends all sessions and frees all state. Clients may try again, as they do when a task dies."""
        stopped = errors.UnavailableError(None, None, f"The server {self.task} was stopped.")
        for handle in list(self._sessions):
            self.close_session(handle, stopped)
        self.resources.clear()


def _give_back(asker: PendingReply | None, stage: RegisteredStage) -> None:
    """Puts back what a stage that failed has taken from queues."""
    if asker is not None and stage.returnable:
        asker.give_back()
