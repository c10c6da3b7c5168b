"""Step stats as a Chrome trace: open it in chrome://tracing or Perfetto."""

from __future__ import annotations

import json
import re
from typing import Any

from tensorfleet.api import export


@export("fleet.Timeline", "python.client.timeline.Timeline")
class Timeline:
    """A visual form of the `step_stats` that a traced run leaves in its `RunMetadata`."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats = step_stats
        self._graph = graph

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The trace as JSON text: a row per device and thread, an arrow per value that flows between parts."""
        events: list[dict] = []
        ends: dict[str, tuple[int, int, int]] = {}
        flows: list[tuple[str, int, int, int]] = []
        for pid, device in enumerate(self._step_stats.dev_stats):
            events.append(_meta("process_name", pid, f"{device.device} Compute"))
            for node in device.node_stats:
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
        return json.dumps({"traceEvents": events}, indent=2)


def _meta(name: str, pid: int, text: str) -> dict:
    return {"name": name, "ph": "M", "pid": pid, "args": {"name": text}}


def _parse(node: Any) -> tuple[str, list[str]]:
    """The op type and inputs from a label such as `name = Type(a, b)`."""
    match = re.match(r".* = (\w+)\((.*)\)$", node.timeline_label)
    if not match:
        return node.node_name, []
    return match[1], [n.strip() for n in match[2].split(",") if n.strip()]


def _memory(step_stats: Any) -> list[dict]:
    """Counters of the bytes each part gave out."""
    events = []
    for pid, device in enumerate(step_stats.dev_stats):
        total = 0
        for node in device.node_stats:
            total += sum(o.tensor_description.allocation_description.requested_bytes for o in node.output)
            counter = {"ph": "C", "name": "bytes given out", "pid": pid, "ts": node.all_start_micros}
            events.append({**counter, "args": {"bytes": total}})
    return events
