"""The names under `tf.profiler`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import publish_lazily

_MODULES = {
    "options": ("ProfileOptionBuilder",),
    "profile": ("GraphNodeProto", "MultiGraphNodeProto", "profile"),
}


def _load(full: str) -> Any:
    name = full.rpartition(".")[2]
    module = next(m for m, names in _MODULES.items() if name in names)
    return getattr(importlib.import_module(f"tensorfleet.profiler.{module}"), name)


for _names in _MODULES.values():
    publish_lazily(_load, *(f"profiler.{n}" for n in _names))
