"""Where the operations that an error names were made, and which blocks said where they are to be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorfleet.base.naming import export, publish
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.source_lines import TraceableObject

_PLACE = "python.framework.error_interpolation."
_TAG = re.compile(r"\{\{(node|colocation_node) ([A-Za-z0-9_.\\/>\-]+)\}\}")

publish([], f"{_PLACE}_BAD_FILE_SUBSTRINGS")


@export(f"{_PLACE}_compute_device_summary_from_list")
def device_summary(name: str, device_assignment_list: Sequence[TraceableObject], prefix: str = "") -> str:
    """The `tf.device` blocks that an operation was made in."""
    if not device_assignment_list:
        return f"{prefix}No device assignments were active during op '{name}' creation."
    lines = [f"with tf.device({t.obj}): <{t.filename}:{t.lineno}>" for t in device_assignment_list]
    return _listed(f"Device assignments active during op '{name}' creation:", lines, prefix)


@export(f"{_PLACE}_compute_colocation_summary_from_dict")
def colocation_summary(name: str, colocation_dict: Mapping[str, TraceableObject], prefix: str = "") -> str:
    """The `colocate_with` blocks that an operation was made in."""
    if not colocation_dict:
        return f"{prefix}No node-device colocations were active during op '{name}' creation."
    lines = [f"with tf.colocate_with({n}): <{t.filename}:{t.lineno}>" for n, t in colocation_dict.items()]
    return _listed(f"Node-device colocations active during op '{name}' creation:", lines, prefix)


def _listed(title: str, lines: list[str], prefix: str) -> str:
    return "\n".join([prefix + title, *(f"{prefix}  {line}" for line in lines)])


@export(f"{_PLACE}interpolate")
def interpolate(error_message: str, graph: Any) -> str:
    """An error's text in which `{{node x}}` says where x was made; operations that the graph does not have stay as they are."""
    behind: list[str] = []

    def told(match: re.Match) -> str:
        op = graph._by_name.get(match.group(2))
        if op is None:
            return match.group(0)
        result = f"node {op.name} (defined at {op.source_line}) "
        if match.group(1) == "node":
            return result
        devices = device_summary(op.name, op._device_assignments)
        behind.append(f"{colocation_summary(op.name, op._colocation_dict)}\n{devices}")
        return f"{result}placed on device: {devices} "

    text = _TAG.sub(told, error_message)
    if behind:
        text += "\n\nAdditional information about colocations:" + "".join(f"\n{each}" for each in behind)
    return text


@export(f"{_PLACE}create_graph_debug_info_def")
def debug_info(operations: Iterable[tuple[str, Operation]]) -> Any:
    """The lines that made some operations, each given with the name of its function, as one message."""
    from tensorfleet.base.protos import GraphDebugInfo

    result = GraphDebugInfo()
    places: dict[str, int] = {}
    for function, op in operations:
        trace = result.traces[f"{op.name}@{function}"]
        for file, line, name, text in reversed(op.traceback):
            if file not in places:
                places[file] = len(places)
                result.files.append(file)
            trace.file_line_cols.add(file_index=places[file], line=line, func=name, code=text)
    return result
