"""`tf.test.compute_gradient`: gradients that the graph gives, beside those found by small steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import session_for
from tensorfleet.ops.array.basic import placeholder

Jacobians = tuple[np.ndarray, np.ndarray]


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 0.001,
    init_targets: Any = None,
    extra_feed_dict: dict | None = None,
) -> Any:
    """(the graph's Jacobian, the numeric one) of `y` by `x`, each [size of x, size of y].

    For a list of `x`, a list of such pairs. Runs in the default session, first `init_targets`.
    """
    session = session_for(None, y.graph, "compute gradients")
    if init_targets is not None:
        for target in init_targets if isinstance(init_targets, (list, tuple)) else [init_targets]:
            session.run(target)
    many = isinstance(x, list)
    xs, shapes = (x, x_shape) if many else ([x], [x_shape])
    given = (x_init_value if many else [x_init_value]) if x_init_value is not None else [None] * len(xs)
    starts = [_start(t, s, v) for t, s, v in zip(xs, shapes, given, strict=True)]
    feed = {**(extra_feed_dict or {}), **dict(zip(xs, starts, strict=True))}
    grads = _graph_jacobians(session, xs, starts, y, y_shape, feed)
    steps = [
        _numeric_jacobian(session, t, v, y, y_shape, delta, feed) for t, v in zip(xs, starts, strict=True)
    ]
    pairs = list(zip(grads, steps, strict=True))
    return pairs if many else pairs[0]


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 0.001,
    init_targets: Any = None,
    extra_feed_dict: dict | None = None,
) -> float:
    """The largest difference between the graph's gradient and the numeric one."""
    pairs = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    return _largest_error(pairs if isinstance(pairs, list) else [pairs])


def _largest_error(pairs: list[Jacobians]) -> float:
    error = 0.0
    for ours, numeric in pairs:
        if ours.size or numeric.size:
            difference = np.fabs(ours - numeric).max()
            error = difference if np.isnan(difference) else np.maximum(error, difference)
    return error


def _start(x: Tensor, shape: Any, value: Any) -> np.ndarray:
    dtype = x.dtype.base_dtype.as_numpy_dtype
    if value is not None:
        array = np.asarray(value, dtype)
        if list(array.shape) != list(shape):
            raise ValueError(f"x_init_value has shape {array.shape}, x_shape is {shape}.")
        return array
    random = np.random.random_sample(shape)
    if x.dtype.is_complex:
        random = random + 1j * np.random.random_sample(shape)
    return np.asarray(random, dtype)


def _reals(array: np.ndarray) -> np.ndarray:
    """The numbers of an array in a row, complex ones as two; changes to them change the array."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _graph_jacobians(
    session: Any, xs: list, starts: list, y: Tensor, y_shape: Any, feed: dict
) -> list[np.ndarray]:
    with y.graph.as_default():
        seed = placeholder(y.dtype.base_dtype, y_shape)
        grads = gradients(y, xs, seed)
    direction = np.zeros(y_shape, y.dtype.base_dtype.as_numpy_dtype)
    row = _reals(direction)
    result = [np.zeros((_reals(v).size, row.size), _reals(v).dtype) for v in starts]
    known = [i for i, g in enumerate(grads) if g is not None]
    for column in range(row.size):
        row[column] = 1
        for i, value in zip(
            known, session.run([grads[i] for i in known], {**feed, seed: direction}), strict=True
        ):
            dense = _dense(value, starts[i].shape) if isinstance(grads[i], IndexedSlices) else value
            result[i][:, column] = _reals(np.ascontiguousarray(dense))
        row[column] = 0
    if not row.size:
        for i, value in zip(
            known, session.run([grads[i] for i in known], {**feed, seed: direction}), strict=True
        ):
            _check_nothing(value, starts[i].shape)
    return result


def _check_nothing(value: Any, shape: tuple) -> None:
    """The gradient of a result without elements: zeros in the shape of the input."""
    if not isinstance(value, np.ndarray):
        return
    if value.shape != shape:
        raise ValueError(f"Empty gradient has wrong shape: expected {shape}, got {value.shape}")
    if value.any():
        raise ValueError("Empty tensor with nonzero gradients")


def _dense(slices: Any, shape: tuple) -> np.ndarray:
    whole = np.zeros(shape, slices.values.dtype)
    np.add.at(whole, slices.indices, slices.values)
    return whole


def _numeric_jacobian(
    session: Any, x: Tensor, start: np.ndarray, y: Tensor, y_shape: Any, delta: float, feed: dict
) -> np.ndarray:
    size = _reals(np.zeros(y_shape, y.dtype.base_dtype.as_numpy_dtype)).size
    result = np.zeros((_reals(start).size, size), _reals(start).dtype)
    for row in range(result.shape[0]):
        ends = []
        for step in (delta, -delta):
            moved = start.copy()
            _reals(moved)[row] += step
            ends.append(_reals(np.ascontiguousarray(session.run(y, {**feed, x: moved}))))
        result[row, :] = (ends[0] - ends[1]) / (2 * delta)
    return result
