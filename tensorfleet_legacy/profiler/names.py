"""The names under `tf.profiler`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily

_MODULES = {
    "options": ("ProfileOptionBuilder",),
    "report": ("GraphNodeProto", "MultiGraphNodeProto", "profile"),
    "profiler": ("Profiler",),
    "advice": ("advise",),
    "logging_ops": ("write_op_log",),
    "model_analyzer": ("print_model_analysis", "TRAINABLE_VARS_PARAMS_STAT_OPTIONS", "FLOAT_OPS_OPTIONS"),
}


def _load(full: str) -> Any:
    name = full.rpartition(".")[2]
    module = next(m for m, names in _MODULES.items() if name in names)
    return getattr(importlib.import_module(f"tensorfleet_legacy.profiler.{module}"), name)


for _module, _names in _MODULES.items():
    _place = "contrib.tfprof.model_analyzer" if _module == "model_analyzer" else "profiler"
    publish_lazily(_load, *(f"{_place}.{n}" for n in _names))
