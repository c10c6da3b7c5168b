"""Recording what a step did: which part, on which device and thread, from when to when."""

from __future__ import annotations

import abc
import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.base import logging
from tensorfleet.passes.plan import everything
from tensorfleet.runtime.costs import fill_costs
from tensorfleet.runtime.partition_graphs import Edge, edges_between_tasks, fill_partition_graphs
from tensorfleet.runtime.recording import Recording, Span

if TYPE_CHECKING:
    from tensorfleet.base.protos import NodeExecStats, RunMetadata, RunOptions
    from tensorfleet.graph.operation import Operation
    from tensorfleet.passes.plan import Plan
    from tensorfleet.runtime.scheduling.items import Item
    from tensorfleet.runtime.scheduling.step import ExecutionContext


#: (device, name, label, began, ended, thread, bytes of each result), times in nanoseconds
Event: TypeAlias = tuple[str, str, str, int, int, int, list[int]]


#: the name of an event that is a transfer to another task, with the name of the tensor as its label
RECV_TENSOR = "RecvTensor"
_MAX_OPS_NAMED = 40  # of a segment, in a recording


class StepObserver(abc.ABC):
    """Sees the parts of a step run."""

    #: whether every operation is to run by itself, so that each has its own cost
    by_op = False
    #: whether other tasks are to send what they have collected of the step
    asks_others = False
    #: what this process records, if it does
    recording: Recording | None = None

    @abc.abstractmethod
    def run(self, item: Item, ctx: ExecutionContext, values: list[Any]) -> None:
        """Runs one part, and notes it."""

    def waiting(self, what: str) -> contextlib.AbstractContextManager[Any]:
        """While the step waits for something."""
        return contextlib.nullcontext()

    def add(self, events: Iterable[Event], asked: int = 0) -> None:  # noqa: B027 - most need not know
        """Takes in what another task collected of the step; it was asked at that time."""

    def came(self, name: str, size: int, began: int, ended: int) -> None:  # noqa: B027 - most need not know
        """Notes that the value of a tensor has come from another task."""


class Recorder(StepObserver):
    """Sees a step for a recording (recording.py), and for another tracer if there is one."""

    def __init__(self, recording: Recording, inner: StepObserver | None = None) -> None:
        self.recording = recording
        self._inner = inner
        self.by_op = recording.by_op or (inner is not None and inner.by_op)
        self.asks_others = inner is not None
        self.counts = True
        #: the step of a session of this process, if it is one: it learns its number when the engine begins it
        self.step: Span | None = None

    def run(self, item: Item, ctx: ExecutionContext, values: list[Any]) -> None:
        """Runs one part, and notes it."""
        span = self._begun(item)
        try:
            if self._inner is None:
                item.run(ctx, values)
            else:
                self._inner.run(item, ctx, values)
        finally:
            if span is not None:
                span.end(bytes=_size(item, values))

    def _begun(self, item: Item) -> Span | None:
        assert self.recording is not None
        try:
            kind, name, args = self.recording.described(item, lambda: _description(item))
        except Exception as error:  # a part that nobody expected: the step goes on without its event
            logging.warning("A part of a step is not in the trace: %s: %s", type(error).__name__, error)
            return None
        return self.recording.open(kind, name, args)

    def end(self) -> None:
        """Ends the step."""
        if self.step is not None:
            self.step.recording.end_step(self.step, self.counts)

    def waiting(self, what: str) -> Span:
        """While the step waits for something."""
        assert self.recording is not None
        return self.recording.open("wait", f"wait {what}")

    def add(self, events: Iterable[Event], asked: int = 0) -> None:
        """Takes in what another task collected of the step."""
        if self._inner is not None:
            self._inner.add(events, asked)

    def came(self, name: str, size: int, began: int, ended: int) -> None:
        """Notes that the value of a tensor has come from another task."""
        if self._inner is not None:
            self._inner.came(name, size, began, ended)


def begin_step(
    recording: Recording,
    target: str,
    plan: Plan,
    inner: StepObserver | None = None,
    counts: bool = True,
) -> Recorder | None:
    """Begins a step of a session of this process, if it is to be recorded; one of a queue runner does not count."""
    fetches = [op.name for op in plan.targets] + [t.name for t in plan.fetches]
    args = {"target": target or "local", "fetches": fetches[:_MAX_OPS_NAMED]}
    step = recording.begin_step(f"Session.run {', '.join(fetches[:4])}", args, counts)
    if step is None:
        return None
    recorder = Recorder(recording, inner)
    recorder.step, recorder.counts = step, counts
    return recorder


def runs_by_op(options: RunOptions) -> bool:
    """Whether `tf.RunOptions` asks for a step with every operation by itself. TensorFlow's own message has no such field."""
    return bool(getattr(options.experimental, "trace_by_op", False))


class Collector(StepObserver):
    """Collects one event per part of a step; `fill` writes them as step stats."""

    asks_others = True

    def __init__(
        self, home: str = "", device_of: Callable[[Operation], str] | None = None, tasks: bool = False
    ) -> None:
        """With `tasks`, the step is one of several tasks, whose transfers are of interest."""
        self._home = home
        self._device_of = device_of  # for constants, which need no running; without it they are at home
        self._tasks = tasks
        self._lock = threading.Lock()
        self.events: list[Event] = []

    def run(self, item: Item, ctx: ExecutionContext, values: list[Any]) -> None:
        """Runs one part and notes when it began and ended."""
        started = time.time_ns()
        try:
            item.run(ctx, values)
        finally:
            ended, thread = time.time_ns(), threading.get_ident()
            event = item.device, item.name, label(item), started, ended, thread, _sizes(item, values)
            with self._lock:
                self.events.append(event)

    def add(self, events: Iterable[Event], asked: int = 0) -> None:
        """Takes in what another task collected of the step.

        That task does not know when the values that came with the request were sent: it was at the time `asked`.
        """
        with self._lock:
            for event in events:
                device, name, text, began, ended, thread, sizes = event
                if name == RECV_TENSOR and began == ended and asked:
                    event = device, name, text, min(asked, ended), ended, thread, sizes
                self.events.append(event)

    def came(self, name: str, size: int, began: int, ended: int) -> None:
        """Notes that the value of a tensor has come from another task."""
        task = self._home.rpartition("/device:")[0]
        event = task, RECV_TENSOR, name, began, ended, threading.get_ident(), [size]
        with self._lock:
            self.events.append(event)

    def fill(self, run_metadata: RunMetadata, plan: Plan, graphs: bool, costs: bool = False) -> None:
        """Writes the events, and on request the graph of each device and its costs, into a `RunMetadata`."""
        threads: dict[int, int] = {}
        by_device: dict[str, Any] = {}
        ops = everything(plan)
        for fetched in plan.fetches:
            if fetched not in plan.feeds and fetched._op not in ops:
                device = self._home if self._device_of is None else self._device_of(fetched._op)
                ops[fetched._op] = device
                now, label = time.time_ns(), f"{fetched._op.name} = {fetched._op.type}()"
                self.events.append((device, fetched._op.name, label, now, now, threading.get_ident(), []))
        edges = self._edges(plan)
        for device, name, text, started, ended, thread, sizes in self.events:
            if name == RECV_TENSOR:
                continue
            if device not in by_device:
                by_device[device] = run_metadata.step_stats.dev_stats.add(device=device)
            stats = by_device[device].node_stats.add()
            stats.node_name = name
            stats.all_start_micros = started // 1000
            stats.op_end_rel_micros = max((ended - started) // 1000, 1)
            stats.all_end_rel_micros = stats.op_end_rel_micros
            stats.all_start_nanos, stats.all_end_rel_nanos = started, ended - started
            stats.op_end_rel_nanos = ended - started
            stats.scheduled_micros = stats.all_start_micros
            stats.thread_id = threads.setdefault(thread, len(threads))
            stats.timeline_label = text
            _fill_memory(stats, device, sizes)
        for edge, began, ended, size in self._transfers(edges):
            if edge.receiver not in by_device:
                by_device[edge.receiver] = run_metadata.step_stats.dev_stats.add(device=edge.receiver)
            _fill_transfer(by_device[edge.receiver].node_stats.add(), edge, began, ended, size)
        if graphs:
            fill_partition_graphs(run_metadata, ops, edges, plan, self._home, self._tasks)
        if costs:
            events = [event for event in self.events if event[1] != RECV_TENSOR]
            fill_costs(run_metadata.cost_graph, plan, events, self._home)

    def _edges(self, plan: Plan) -> list[Edge]:
        """Where values go from one device to another, in a step of several tasks."""
        if not self._tasks:
            return []
        return edges_between_tasks(plan, self._home, everything(plan))

    def _transfers(self, edges: list[Edge]) -> Iterable[tuple[Edge, int, int, int]]:
        """The values that came from other tasks: edge, began, ended, bytes."""
        named: dict[tuple[str, str], Edge] = {}
        for edge in edges:
            if edge.tensor is not None and edge.crosses_tasks:
                named.setdefault((edge.tensor.name, edge.receiver.rpartition("/device:")[0]), edge)
        for task, name, tensor, began, ended, _, sizes in list(self.events):
            if name == RECV_TENSOR and (tensor, task) in named:
                yield named[tensor, task], began, ended, sizes[0]


def _fill_memory(stats: NodeExecStats, device: str, sizes: list[int]) -> None:
    """The bytes of a part's results."""
    if not sizes:
        return
    allocator = device.rpartition("/device:")[2].partition(":")[0].lower()
    stats.memory.add(allocator_name=allocator, total_bytes=sum(sizes), peak_bytes=sum(sizes))
    for slot, size in enumerate(sizes):
        description = stats.output.add(slot=slot).tensor_description.allocation_description
        description.requested_bytes = description.allocated_bytes = size
        description.allocator_name = allocator


def _fill_transfer(stats: NodeExecStats, edge: Edge, began: int, ended: int, size: int) -> None:
    """A transfer as TensorFlow shows it."""
    micros = max((ended - began) // 1000, 1)
    megabits = size * 8 / micros
    amount = f"{size / (1 << 20):.1f}MB" if size >= 0.1 * (1 << 20) else f"{size}B"
    speed = f"{megabits / 1000:.1f}Gb/s" if megabits >= 1000 else f"{megabits:.6f}Mb/s"
    stats.node_name = RECV_TENSOR
    stats.all_start_micros = began // 1000
    stats.op_end_rel_micros = stats.all_end_rel_micros = micros
    stats.output.add().tensor_description.allocation_description.requested_bytes = size
    stats.timeline_label = f"[{amount}] [{speed}] {edge.name} from {edge.sender} to {edge.receiver}"


def _sizes(item: Item, values: list[Any]) -> list[int]:
    """The bytes of each result of a part."""
    slots = [slot for slot in getattr(item, "outs", ()) if slot is not None]
    return [int(getattr(values[slot], "nbytes", 0)) for slot in slots]


def _size(item: Item, values: list[Any]) -> int:
    """The bytes of all results of a part; 0 where a result does not tell."""
    try:
        return sum(_sizes(item, values))
    except Exception:  # a result of the user's own type
        return 0


def _description(item: Item) -> tuple[str, str, dict[str, Any]]:
    """What kind of part an item is, for a recording, its name, and what it consists of."""
    segment = getattr(item, "segment", None)
    if segment is not None:
        names = [step.op.name for step in segment.steps]
        more = [f"and {len(names) - _MAX_OPS_NAMED} more"] if len(names) > _MAX_OPS_NAMED else []
        args = {"device": item.device, "op_count": len(names), "ops": names[:_MAX_OPS_NAMED] + more}
        if len(names) == 1:
            return "op", names[0], args | _origin(segment.steps[0].op)
        return "segment", item.name, args
    op: Any = getattr(item, "op", None)
    return "loop" if op.type == "Loop" else "host op", item.name, {"device": item.device} | _origin(op)


def _origin(op: Operation) -> dict[str, str]:
    """The type of an operation, and the line of the program that made it."""
    return {"type": op.type} | ({"line": op.source_line} if op.source_line else {})


def label(item: Item) -> str:
    """How an item reads in a timeline: `name = Type(inputs)`, or what a segment holds."""
    segment = getattr(item, "segment", None)
    if segment is None:
        op: Any = getattr(item, "op", None)
        return f"{op.name} = {op.type}({', '.join(t._op.name for t in op._inputs)})"
    inputs = ", ".join(t._op.name for t in segment.inputs)
    if len(segment.steps) == 1:
        return f"{item.name} = {segment.steps[0].op.type}({inputs})"
    return f"{item.name} = Segment_of_{len(segment.steps)}_ops({inputs})"
