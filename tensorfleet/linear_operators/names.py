"""The names `tf.linalg.LinearOperator*`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import publish_lazily

_MODULES = {
    "base": ("LinearOperator",),
    "turned": ("LinearOperatorAdjoint", "LinearOperatorInversion"),
    "dense": ("LinearOperatorFullMatrix", "LinearOperatorLowerTriangular"),
    "diagonal": (
        "LinearOperatorDiag",
        "LinearOperatorIdentity",
        "LinearOperatorScaledIdentity",
    ),
    "zeros": ("LinearOperatorZeros",),
    "products": ("LinearOperatorComposition", "LinearOperatorKronecker"),
    "blocks": ("LinearOperatorBlockDiag",),
    "updates": ("LinearOperatorLowRankUpdate",),
    "circulant": ("LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D"),
    "structured": (
        "LinearOperatorHouseholder",
        "LinearOperatorPermutation",
        "LinearOperatorToeplitz",
        "LinearOperatorTridiag",
    ),
}


def _load(full: str) -> Any:
    name = full.rpartition(".")[2]
    module = next(m for m, names in _MODULES.items() if name in names)
    return getattr(importlib.import_module(f"tensorfleet.linear_operators.{module}"), name)


for _names in _MODULES.values():
    publish_lazily(_load, *(f"linalg.{n}" for n in _names), *(f"contrib.linalg.{n}" for n in _names))
