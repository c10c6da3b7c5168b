"""`tf.profiler.write_op_log`: what is known of the operations of a graph, for TensorFlow's profiler."""

from __future__ import annotations

import os
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet_legacy.profiler.model_analyzer import FLOPS

_TRAINABLE = "_trainable_variables"


def op_log_of(graph: Any, op_log: Any = None, add_trace: bool = True) -> Any:
    """The known properties of a graph's operations, added to the program's own."""
    from tensorfleet.base.protos import OpLogProto

    result: Any = OpLogProto()
    entries = {entry.name: entry for entry in op_log.log_entries} if op_log is not None else {}
    numbers: dict[str, int] = {"none": 0}
    for op in graph.get_operations():
        flops = FLOPS[op.type](op) if op.type in FLOPS else 0
        if not (flops or add_trace):
            continue
        entry = _entry(entries, op.name)
        entry.float_ops = entry.float_ops or flops
        if add_trace and not entry.code_def.traces:
            for file, line, function, text, start in op.traceback_with_start_lines:
                entry.code_def.traces.add(
                    file_id=_number(numbers, file),
                    lineno=line or -1,
                    function_id=_number(numbers, function),
                    line_id=_number(numbers, text),
                    func_start_line=start or -1,
                )
    with graph.as_default():
        for variable in find("trainable_variables")():
            _entry(entries, variable.op.name).types.append(_TRAINABLE)
    result.log_entries.extend(entries.values())
    for text, number in numbers.items():
        result.id_to_string[number] = text
    return result


def _entry(entries: dict[str, Any], name: str) -> Any:
    from tensorfleet.base.protos import OpLogEntry

    if name not in entries:
        entries[name] = OpLogEntry(name=name)
    return entries[name]


def _number(numbers: dict[str, int], text: str | None) -> int:
    return numbers.setdefault(text, len(numbers)) if text else 0


def write_op_log(
    graph: Any, log_dir: str, op_log: Any = None, run_meta: Any = None, add_trace: bool = True
) -> None:
    """Writes what is known of a graph's operations to `tfprof_log` in a folder."""
    result = op_log_of(graph or find("get_default_graph")(), op_log, add_trace)
    with find("gfile.Open")(os.path.join(log_dir, "tfprof_log"), "wb") as log:
        log.write(result.SerializeToString())
