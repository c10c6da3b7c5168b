"""Gradients of a function of arrays, beside those found by small steps: the newer gradient checker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlicesValue
from tensorfleet.graph.scopes import get_default_graph, session_for
from tensorfleet.ops.array.basic import placeholder
from tensorfleet_legacy.testing.gradient_checker import _dense, compute_gradient


def compute_function_gradient(
    f: Callable, x: Sequence[Any], delta: float | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(the graph's Jacobians, the numeric ones) of `f` by each of its arguments, each [size of y, size of x].

    `x` has the values of the arguments. Runs in the default session.
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(f"`x` must be a list of Tensors (arguments to `f`), not a {type(x)}")
    session = session_for(None, get_default_graph(), "compute gradients")
    starts = [np.asarray(to_numpy(v)) for v in x]
    kinds = [
        v.dtype.base_dtype if hasattr(v, "op") else dtypes.as_dtype(s.dtype)
        for v, s in zip(x, starts, strict=True)
    ]
    xs = [placeholder(kind, s.shape) for kind, s in zip(kinds, starts, strict=True)]
    y = to_tensor(f(*xs))
    shape = np.shape(session.run(y, dict(zip(xs, starts, strict=True))))
    step = 1.0 / 1024 if delta is None else delta
    pairs = compute_gradient(xs, [s.shape for s in starts], y, shape, starts, step)
    return [ours.T for ours, _ in pairs], [numeric.T for _, numeric in pairs]


def max_error(grad1: Any, grad2: Any) -> float:
    """The largest difference between two lists of Jacobians."""
    error = 0.0
    for one, two in zip(grad1, grad2, strict=True):
        if one.size or two.size:
            error = np.maximum(error, np.fabs(one - two).max())
    return error


def to_numpy(value: Any) -> Any:
    """A tensor, the value of one, or that of slices, as an array."""
    if isinstance(value, IndexedSlicesValue):
        return _dense(value, tuple(value.dense_shape))
    if hasattr(value, "op"):
        return session_for(None, value.graph, "evaluate tensor").run(value)
    return value
