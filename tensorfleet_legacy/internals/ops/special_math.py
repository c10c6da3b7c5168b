"""Functions of the normal and Laplace distributions: `tensorflow.python.ops.distributions.special_math`."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tensorfleet.base.naming import export, publish, publish_lazily
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

_HERE = "python.ops.distributions.special_math."
# What each function calls its argument.
_ARGUMENTS = {"ndtr": "x", "ndtri": "p", "log_cdf_laplace": "x", "erfinv": "x"}
# Between these the logarithm of `ndtr` is that of its value: below it is a series, above it is what is missing to one.
_BOUNDS = {"FLOAT64_LOWER": -20, "FLOAT32_LOWER": -10, "FLOAT64_UPPER": 8, "FLOAT32_UPPER": 5}
for _bound, _value in _BOUNDS.items():
    _kind = np.float64 if "64" in _bound else np.float32
    publish(np.array(_value, _kind), f"{_HERE}LOGNDTR_{_bound}")


def _applied(function: str, x: Any, argument: str, name: str) -> Tensor:
    tails = importlib.import_module("tensorfleet_legacy.distributions.special_math")
    with name_scope(name, values=[x]):
        return getattr(tails, function)(tails.checked(x, argument))


def _load(full: str) -> Any:
    function = full.rpartition(".")[2]

    def call(x: Any, name: str = function) -> Tensor:
        return _applied(function, x, _ARGUMENTS[function], name)

    call.__name__ = function
    return call


publish_lazily(_load, *(_HERE + name for name in _ARGUMENTS))


@export(_HERE + "log_ndtr")
def log_ndtr(x: Any, series_order: int = 3, name: str = "log_ndtr") -> Tensor:
    """The logarithm of the share of the standard normal distribution below x; the series has three terms."""
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if not 0 <= series_order <= 30:
        raise ValueError("series_order must be between 0 and 30.")
    return _applied("log_ndtr", x, "x", name)
