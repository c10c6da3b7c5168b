"""The names under `tf.profiler`, loaded when first used."""

from __future__ import annotations

from tensorfleet_legacy.lazy_names import publish_from

publish_from("profiler.option_builder", "ProfileOptionBuilder", "profiler")
publish_from("profiler.model_analyzer", "GraphNodeProto MultiGraphNodeProto profile", "profiler")
publish_from("profiler.model_analyzer_profiler", "Profiler", "profiler")
publish_from("profiler.model_analyzer_advice", "advise", "profiler")
publish_from("profiler.tfprof_logger", "write_op_log", "profiler")
publish_from(
    "contrib.tfprof.model_analyzer",
    "print_model_analysis TRAINABLE_VARS_PARAMS_STAT_OPTIONS FLOAT_OPS_OPTIONS",
    "contrib.tfprof.model_analyzer",
)
