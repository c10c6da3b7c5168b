"""Recording what a step did: which part, on which device and thread, from when to when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.passes.plan import everything
from tensorfleet.runtime.costs import fill_costs

if TYPE_CHECKING:
    from tensorfleet.base.protos import NodeExecStats, RunMetadata
    from tensorfleet.graph.operation import Operation
    from tensorfleet.passes.plan import Plan
    from tensorfleet.runtime.scheduling.items import Item
    from tensorfleet.runtime.scheduling.step import ExecutionContext


#: (device, name, label, began, ended, thread, bytes of each result), times in nanoseconds
Event: TypeAlias = tuple[str, str, str, int, int, int, list[int]]


class Collector:
    """Collects one event per part of a step; `fill` writes them as step stats."""

    def __init__(self, home: str = "", device_of: Callable[[Operation], str] | None = None) -> None:
        self._home = home
        self._device_of = device_of  # for constants, which need no running; without it they are at home
        self._lock = threading.Lock()
        self.events: list[Event] = []

    def run(self, item: Item, ctx: ExecutionContext, values: list[Any]) -> None:
        """Runs one part and notes when it began and ended."""
        started = time.time_ns()
        try:
            item.run(ctx, values)
        finally:
            ended, here = time.time_ns(), threading.get_ident()
            sizes = [
                int(getattr(values[slot], "nbytes", 0))
                for slot in getattr(item, "outs", ())
                if slot is not None
            ]
            with self._lock:
                self.events.append((item.device, item.name, label(item), started, ended, here, sizes))

    def add(self, events: Iterable[Event]) -> None:
        """Takes in what another task recorded of the same step."""
        with self._lock:
            self.events += events

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
        for device, name, text, started, ended, thread, sizes in self.events:
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
        if graphs:
            _partition_graphs(run_metadata, ops)
        if costs:
            fill_costs(run_metadata.cost_graph, plan, self.events, self._home)


def _fill_memory(stats: NodeExecStats, device: str, sizes: list[int]) -> None:
    """The bytes of a part's results."""
    if not sizes:
        return
    allocator = device.rpartition("/device:")[2].partition(":")[0].lower()
    stats.memory.add(allocator_name=allocator, total_bytes=sum(sizes), peak_bytes=sum(sizes))
    for slot, size in enumerate(sizes):
        told = stats.output.add(slot=slot).tensor_description.allocation_description
        told.requested_bytes = told.allocated_bytes = size
        told.allocator_name = allocator


def label(item: Item) -> str:
    """How an item reads in a timeline: `name = Type(inputs)`, or what a segment holds."""
    segment = getattr(item, "segment", None)
    if segment is None:
        op: Any = getattr(item, "op", None)
        return f"{op.name} = {op.type}({', '.join(t._op.name for t in op._inputs)})"
    inputs = ", ".join(t._op.name for t in segment.inputs)
    return f"{item.name} = Segment_of_{len(segment.steps)}_ops({inputs})"


def _partition_graphs(run_metadata: RunMetadata, placed: dict[Operation, str]) -> None:
    by_device: dict[str, list[Operation]] = {}
    for op, device in placed.items():
        by_device.setdefault(device, []).append(op)
    for device, ops in by_device.items():
        graph = run_metadata.partition_graphs.add()
        for op in ops:
            node = graph.node.add()
            node.CopyFrom(op.node_def)
            node.device = device
