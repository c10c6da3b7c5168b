"""The names under `tf.profiler`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily

_MODULES = {
    "profiler.option_builder": ("ProfileOptionBuilder",),
    "profiler.model_analyzer": ("GraphNodeProto", "MultiGraphNodeProto", "profile"),
    "profiler.model_analyzer_profiler": ("Profiler",),
    "profiler.model_analyzer_advice": ("advise",),
    "profiler.tfprof_logger": ("write_op_log",),
    "contrib.tfprof.model_analyzer": (
        "print_model_analysis",
        "TRAINABLE_VARS_PARAMS_STAT_OPTIONS",
        "FLOAT_OPS_OPTIONS",
    ),
}


def _load(full: str) -> Any:
    name = full.rpartition(".")[2]
    module = next(m for m, names in _MODULES.items() if name in names)
    return getattr(importlib.import_module(f"tensorfleet_legacy.{module}"), name)


for _module, _names in _MODULES.items():
    _place = "contrib.tfprof.model_analyzer" if _module == "contrib.tfprof.model_analyzer" else "profiler"
    publish_lazily(_load, *(f"{_place}.{n}" for n in _names))
