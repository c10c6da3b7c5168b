"""Step stats as a Chrome trace: open it in chrome://tracing or Perfetto."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tensorfleet.base.naming import export

if TYPE_CHECKING:
    from tensorfleet.base.protos import NodeExecStats, StepStats


#: An event of a Chrome trace, as JSON.
_Event: TypeAlias = dict[str, Any]


@export("fleet.Timeline", "python.client.timeline.Timeline")
class Timeline:
    """A visual form of the `step_stats` that a traced run leaves in its `RunMetadata`."""

    def __init__(self, step_stats: StepStats, graph: object = None) -> None:
        if not hasattr(step_stats, "dev_stats"):
            raise TypeError(f"step_stats must be the step_stats of a tf.RunMetadata, but got {step_stats!r}")
        self._step_stats = step_stats
        self._graph = graph

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The trace as JSON text: a row per device and thread, an arrow per value that flows between parts."""
        return _Trace(self._events(show_dataflow, show_memory)).format_to_string(pretty=True)

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True, op_time: str = "schedule"
    ) -> StepStatsAnalysis:
        """The trace, and for each allocator the most bytes it had given out at a time."""
        return StepStatsAnalysis(
            _Trace(self._events(show_dataflow, show_memory)), _maximums(self._step_stats)
        )

    def _events(self, show_dataflow: bool, show_memory: bool) -> list[_Event]:
        events: list[_Event] = []
        ends: dict[str, tuple[int, int, int]] = {}
        flows: list[tuple[str, int, int, int]] = []
        for pid, device in enumerate(self._step_stats.dev_stats):
            events.append(_meta("process_name", pid, f"{device.device} Compute"))
            for node in device.node_stats:
                # Viewers do not show events of no length.
                start, length = node.all_start_micros, max(node.all_end_rel_micros, 1)
                kind, inputs = _parse(node)
                args = {"name": node.node_name, "op": kind} | {f"input{i}": n for i, n in enumerate(inputs)}
                events.append(
                    {
                        "ph": "X",
                        "cat": "Op",
                        "name": kind,
                        "pid": pid,
                        "tid": node.thread_id,
                        "ts": start,
                        "dur": length,
                        "args": args,
                    }
                )
                ends[node.node_name] = (pid, node.thread_id, start + length)
                flows += [(n, pid, node.thread_id, start) for n in inputs]
        if show_dataflow:
            for i, (source, pid, tid, start) in enumerate(flows):
                if source in ends:
                    from_pid, from_tid, end = ends[source]
                    common = {"cat": "DataFlow", "name": source, "id": i}
                    events.append({**common, "ph": "s", "pid": from_pid, "tid": from_tid, "ts": end})
                    events.append({**common, "ph": "t", "pid": pid, "tid": tid, "ts": start})
        if show_memory:
            events += _memory(self._step_stats)
        return events


class _Trace:
    """Events in the form of Chrome's traces."""

    def __init__(self, events: list[_Event]) -> None:
        self._events = events

    def format_to_string(self, pretty: bool = False) -> str:
        """The events as JSON text."""
        trace = {"traceEvents": self._events}
        return json.dumps(trace, indent=2 if pretty else None, separators=None if pretty else (",", ":"))


@export("python.client.timeline.AllocationMaximum")
class AllocationMaximum(NamedTuple):
    """The most bytes that were in use at a time, when, and by which tensors."""

    timestamp: int
    num_bytes: int
    tensors: set[str]


@export("python.client.timeline.StepStatsAnalysis")
class StepStatsAnalysis(NamedTuple):
    """The trace of a step and the memory it took."""

    chrome_trace: _Trace
    allocator_maximums: dict[str, AllocationMaximum]


def _maximums(step_stats: StepStats) -> dict[str, AllocationMaximum]:
    """The peak of each allocator: a node's outputs live until the last node that takes them ends."""
    nodes = [n for device in step_stats.dev_stats for n in device.node_stats]
    last = {n.node_name: n.all_start_micros + n.all_end_rel_micros for n in nodes}
    for node in nodes:
        for source in _parse(node)[1]:
            last[source] = max(last.get(source, 0), node.all_start_micros + node.all_end_rel_micros)
    changes: dict[str, list[tuple[int, int, str]]] = {}
    for node in nodes:
        for output in node.output:
            allocation = output.tensor_description.allocation_description
            name, size = f"{node.node_name}:{output.slot}", allocation.requested_bytes
            of = changes.setdefault(allocation.allocator_name or "cpu", [])
            of += [(node.all_start_micros, size, name), (last[node.node_name] + 1, -size, name)]
    return {allocator: _peak(of) for allocator, of in changes.items()}


def _peak(changes: list[tuple[int, int, str]]) -> AllocationMaximum:
    most, used = AllocationMaximum(0, 0, set()), 0
    alive: set[str] = set()
    for when, size, name in sorted(changes):
        used += size
        (alive.add if size > 0 else alive.discard)(name)
        if used > most.num_bytes:
            most = AllocationMaximum(when, used, set(alive))
    return most


def _meta(name: str, pid: int, text: str) -> _Event:
    return {"name": name, "ph": "M", "pid": pid, "args": {"name": text}}


def _parse(node: NodeExecStats) -> tuple[str, list[str]]:
    """The op type and inputs from a label such as `name = Type(a, b)`."""
    match = re.match(r".* = (\w+)\((.*)\)$", node.timeline_label)
    if not match:
        return node.node_name, []
    return match[1], [n.strip() for n in match[2].split(",") if n.strip()]


def _memory(step_stats: StepStats) -> list[_Event]:
    """Counters of the bytes each part gave out."""
    events = []
    for pid, device in enumerate(step_stats.dev_stats):
        total = 0
        for node in device.node_stats:
            total += sum(o.tensor_description.allocation_description.requested_bytes for o in node.output)
            counter = {"ph": "C", "name": "bytes given out", "pid": pid, "ts": node.all_start_micros}
            events.append({**counter, "args": {"bytes": total}})
    return events
