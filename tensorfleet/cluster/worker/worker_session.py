"""What one session has registered with a task: its graph, its stages, and the steps under way."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.master.placer import is_isolated
from tensorfleet.cluster.transport import wire
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.importing import extend_graph
from tensorfleet.runtime.engine import LocalEngine
from tensorfleet.runtime.resources import ResourceManager
from tensorfleet.runtime.shared_memory.server_reads import VariableBoard, board_of

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto, GraphDef
    from tensorfleet.cluster.worker.stages import RegisteredStage
    from tensorfleet.cluster.worker.worker import Worker
    from tensorfleet.graph.operation import Operation, Tensor
    from tensorfleet.runtime.resources import VariableStore

_MAX_REMEMBERED_STEPS = 4096  # cancelled ones: a message about one may still be on its way


class StepState:
    """A step under way here: the values between its stages, and their runs."""

    __slots__ = ("arrived", "contexts", "done", "reason", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.arrived = threading.Condition()
        self.contexts: list[Any] = []
        self.done = 0
        self.reason: errors.OpError | None = None


class WorkerSession:
    """What one client's session has registered here."""

    def __init__(
        self, worker: Worker, handle: str, client: str, config: ConfigProto, task: str, owner: str
    ) -> None:
        self.handle, self.client, self.owner = handle, client, owner
        self.graph = Graph()
        resources = ResourceManager() if is_isolated(config) else worker.resources
        devices = _with_devices(config, worker.config)
        self.engine = LocalEngine(self.graph, devices, resources, task, owner)
        self.stages: dict[int, RegisteredStage] = {}
        self.lock = threading.Lock()
        self.steps: dict[int, StepState] = {}
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
        result = board_of(stores)
        if result is not None:
            with self.lock:
                if self._closed is not None:
                    raise self._closed
                self._boards.add(result)
        return result

    def step(self, number: int) -> StepState:
        """The step of that number, begun by whichever message of it comes first."""
        with self.lock:
            result = self.steps.get(number)
            if result is None:
                result = self.steps[number] = StepState()
                result.reason = self.cancelled.get(number)
            return result

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


def _end(step: StepState, reason: errors.OpError) -> None:
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
