"""Functions of the normal and Laplace distributions: `tensorflow.python.ops.distributions.special_math`."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import export, publish_lazily
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

_HERE = "python.ops.distributions.special_math."
# What each function calls its argument.
_ARGUMENTS = {"ndtr": "x", "ndtri": "p", "log_cdf_laplace": "x"}


def _applied(function: str, x: Any, argument: str, name: str) -> Tensor:
    tails = importlib.import_module("tensorfleet.distributions.tails")
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
