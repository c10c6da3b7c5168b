"""`tf.contrib.tfprof.model_analyzer`: the profiler by the names it had before 1.4."""

from __future__ import annotations

from typing import Any

from tensorfleet_legacy.profiler.model_analyzer import GraphNodeProto, profile
from tensorfleet_legacy.profiler.option_builder import ProfileOptionBuilder, defaults

TRAINABLE_VARS_PARAMS_STAT_OPTIONS = ProfileOptionBuilder.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = ProfileOptionBuilder.float_operation()


def print_model_analysis(
    graph: Any,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Any = 0,
) -> GraphNodeProto:
    """Prints what the nodes of a graph cost, and gives the same as a tree."""
    return profile(graph, run_meta, op_log, tfprof_cmd, {**defaults(), **(tfprof_options or {})})
