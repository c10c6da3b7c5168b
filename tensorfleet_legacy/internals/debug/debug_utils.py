"""`tf.python.debug.watch_graph` and the like: which tensors a run writes, as `RunOptions.debug_options` say it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tensorfleet.base.naming import export


@export("python.debug.add_debug_tensor_watch", "python.debug.lib.debug_utils.add_debug_tensor_watch")
def add_debug_tensor_watch(
    run_options: Any,
    node_name: str,
    output_slot: int = 0,
    debug_ops: str | Sequence[str] = "DebugIdentity",
    debug_urls: str | Sequence[str] | None = None,
    tolerate_debug_op_creation_failures: bool = False,
    global_step: int = -1,
) -> None:
    """Has a run write one output of an operation."""
    watch = run_options.debug_options.debug_tensor_watch_opts.add(
        node_name=node_name, output_slot=output_slot
    )
    watch.tolerate_debug_op_creation_failures = tolerate_debug_op_creation_failures
    watch.debug_ops.extend([debug_ops] if isinstance(debug_ops, str) else debug_ops)
    watch.debug_urls.extend([debug_urls] if isinstance(debug_urls, str) else debug_urls or ())
    run_options.debug_options.global_step = global_step


def _chosen(graph: Any, keeps: Any) -> list[tuple[str, int]]:
    return [
        (op.name, slot)
        for op in graph.get_operations()
        for slot, output in enumerate(op.outputs)
        if keeps(op, output.dtype.base_dtype.name)
    ]


@export("python.debug.watch_graph", "python.debug.lib.debug_utils.watch_graph")
def watch_graph(
    run_options: Any,
    graph: Any,
    debug_ops: str | Sequence[str] = "DebugIdentity",
    debug_urls: str | Sequence[str] | None = None,
    node_name_regex_whitelist: str | None = None,
    op_type_regex_whitelist: str | None = None,
    tensor_dtype_regex_whitelist: str | None = None,
    tolerate_debug_op_creation_failures: bool = False,
    global_step: int = -1,
    reset_disk_byte_usage: bool = False,
    node_name_regex_allowlist: str | None = None,
    op_type_regex_allowlist: str | None = None,
    tensor_dtype_regex_allowlist: str | None = None,
) -> None:
    """Has a run write all tensors of a graph, or those whose operation and type match."""
    patterns = (
        node_name_regex_allowlist or node_name_regex_whitelist,
        op_type_regex_allowlist or op_type_regex_whitelist,
        tensor_dtype_regex_allowlist or tensor_dtype_regex_whitelist,
    )

    def keeps(op: Any, dtype: str) -> bool:
        texts = (op.name, op.type, dtype)
        return all(p is None or re.match(p, t) for p, t in zip(patterns, texts, strict=True))

    for name, slot in _chosen(graph, keeps):
        add_debug_tensor_watch(
            run_options, name, slot, debug_ops, debug_urls, tolerate_debug_op_creation_failures, global_step
        )
    run_options.debug_options.reset_disk_byte_usage = reset_disk_byte_usage


@export(
    "python.debug.watch_graph_with_blacklists", "python.debug.lib.debug_utils.watch_graph_with_blacklists"
)
def watch_graph_with_blacklists(
    run_options: Any,
    graph: Any,
    debug_ops: str | Sequence[str] = "DebugIdentity",
    debug_urls: str | Sequence[str] | None = None,
    node_name_regex_blacklist: str | None = None,
    op_type_regex_blacklist: str | None = None,
    tensor_dtype_regex_blacklist: str | None = None,
    tolerate_debug_op_creation_failures: bool = False,
    global_step: int = -1,
    reset_disk_byte_usage: bool = False,
) -> None:
    """Has a run write all tensors of a graph but those whose operation or type matches."""
    patterns = (node_name_regex_blacklist, op_type_regex_blacklist, tensor_dtype_regex_blacklist)

    def keeps(op: Any, dtype: str) -> bool:
        texts = (op.name, op.type, dtype)
        return not any(p is not None and re.match(p, t) for p, t in zip(patterns, texts, strict=True))

    for name, slot in _chosen(graph, keeps):
        add_debug_tensor_watch(
            run_options, name, slot, debug_ops, debug_urls, tolerate_debug_op_creation_failures, global_step
        )
    run_options.debug_options.reset_disk_byte_usage = reset_disk_byte_usage
