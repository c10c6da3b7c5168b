"""Norms, and clipping by value or by norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph, name_scope
from tensorfleet.ops.elementwise import constant_like
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_max, reduce_sum
from tensorfleet.ops.math.unary import abs as tf_abs


def _values(t: TensorLike, name: str = "t") -> Tensor:
    return t.values if isinstance(t, IndexedSlices) else to_tensor(t, name=name)


def _like(t: TensorLike, values: Tensor) -> Any:
    """`values` as what `t` was: a tensor, or slices at the same indices."""
    return IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values


@export("clip_by_value")
def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Any:
    """`t` with what is below the minimum or above the maximum replaced by them."""
    with name_scope(name, "clip_by_value", [_graph_element(t), clip_value_min, clip_value_max]) as scope:
        values = _values(t)
        smaller = apply("Minimum", values, clip_value_max)
        values.shape.merge_with(smaller.shape)
        clipped = apply("Maximum", smaller, clip_value_min, name=scope)
        values.shape.merge_with(clipped.shape)
        return _like(t, clipped)


def _graph_element(t: TensorLike) -> TensorLike:
    return t.values if isinstance(t, IndexedSlices) else t


@export("clip_by_norm")
def clip_by_norm(
    t: TensorLike, clip_norm: TensorLike, axes: TensorLike = None, name: str | None = None
) -> Any:
    """`t` scaled down so that its L2 norm, over `axes` or all of it, is at most `clip_norm`."""
    with name_scope(name, "clip_by_norm", [_graph_element(t), clip_norm]) as scope:
        values = _values(t)
        total = reduce_sum(values * values, axes, keepdims=True)
        positive = total > 0
        # The square root has no gradient at 0, so 1 stands in there, and 0 is put back after.
        safe = apply("SelectV2", positive, total, constant_like(1, total))
        norm = apply("SelectV2", positive, apply("Sqrt", safe), total)
        scaled = values * clip_norm
        values.shape.merge_with(scaled.shape)
        clipped = apply("Identity", scaled / apply("Maximum", norm, clip_norm), name=scope)
        return _like(t, clipped)


@export("linalg.global_norm", "global_norm")
def global_norm(t_list: TensorLike, name: str | None = None) -> Tensor:
    """The L2 norm of several tensors taken as one; entries that are None do not count."""
    items = _list_of(t_list)
    with name_scope(name, "global_norm", [_graph_element(t) for t in items if t is not None]):
        values = [_values(t, f"t_{i}") for i, t in enumerate(items) if t is not None]
        halves = []
        for v in values:
            with get_default_graph().colocate_with(v):
                halves.append(apply("L2Loss", v))
        stacked = (
            apply("Pack", halves, name="stack")
            if halves
            else to_tensor(np.zeros(0, np.float32), name="stack")
        )
        half = reduce_sum(stacked)
        two = to_tensor(np.asarray(2.0).astype(half.dtype.as_numpy_dtype))
        return apply("Sqrt", half * two, name="global_norm")


def _list_of(t_list: TensorLike) -> list[TensorLike]:
    if isinstance(t_list, (str, bytes, Tensor)) or not hasattr(t_list, "__iter__"):
        raise TypeError("t_list should be a sequence")
    return list(t_list)


@export("clip_by_global_norm")
def clip_by_global_norm(
    t_list: TensorLike, clip_norm: Any, use_norm: Tensor | None = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """The tensors scaled by one factor so that their common norm is at most `clip_norm`, and that norm."""
    items = _list_of(t_list)
    if use_norm is None:
        use_norm = global_norm(items, name)
    elements = [_graph_element(t) for t in items if t is not None]
    with name_scope(name, "clip_by_global_norm", [*elements, clip_norm]) as scope:
        one = to_tensor(1.0, use_norm.dtype.base_dtype)
        factor = clip_norm * apply("Minimum", 1.0 / use_norm, one / clip_norm)
        # A norm that is not finite gives NaN here, so that the fault shows instead of being clipped away.
        factor = factor + (use_norm - use_norm)
        clipped: list[Any] = []
        for i, t in enumerate(items):
            if t is None:
                clipped.append(None)
                continue
            v = _values(t, f"t_{i}")
            with get_default_graph().colocate_with(v):
                scaled = apply("Identity", v * factor, name=f"{scope}_{i}")
            clipped.append(_like(t, scaled))
        return clipped, use_norm


@export("clip_by_average_norm")
def clip_by_average_norm(t: TensorLike, clip_norm: TensorLike, name: str | None = None) -> Tensor:
    """`t` scaled down so that its L2 norm per element is at most `clip_norm`."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = to_tensor(t, name="t")
        count = cast(apply("Size", t), dtypes.float32)
        inverse = apply("Rsqrt", reduce_sum(t * t))
        limit = to_tensor(1.0) / clip_norm
        return apply("Identity", t * clip_norm * apply("Minimum", inverse * count, limit), name=scope)


# -- norms -------------------------------------------------------------------------------------------

_NAMED = ("fro", "euclidean", 1, 2, np.inf)


@export("linalg.norm", "norm")
def norm(
    tensor: TensorLike,
    ord: str | float = "euclidean",
    axis: TensorLike = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors (`axis` an int, or None for all elements) or of matrices (`axis` a pair)."""
    if keep_dims is not None:
        if keepdims is not None:
            raise ValueError("Cannot specify both 'keep_dims' and 'keepdims'")
        keepdims = keep_dims
    matrices = _check_norm(ord, axis)
    with name_scope(name, "norm", [tensor]):
        tensor = to_tensor(tensor)
        axis = list(axis) if isinstance(axis, tuple) else axis
        if ord in ("fro", "euclidean", 2, 2.0):
            result = _euclidean(tensor, axis, matrices and ord in (2, 2.0))
        else:
            result = _other_norm(tensor, ord, axis, matrices)
        if keepdims:
            return result
        squeezed = axis if axis is None or isinstance(axis, list) else [axis]
        return apply("Squeeze", result, squeeze_dims=squeezed)


def _check_norm(ord: str | float, axis: TensorLike) -> bool:
    """Whether matrix norms are asked for; raises for an order that does not exist."""
    if isinstance(axis, (tuple, list)):
        if len(axis) != 2 or axis[0] == axis[1] or not all(isinstance(a, (int, np.integer)) for a in axis):
            raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
        if ord not in _NAMED:
            raise ValueError(f"'ord' must be a supported matrix norm in {list(_NAMED)}, got {ord}")
        return True
    if not (axis is None or isinstance(axis, (int, np.integer))):
        raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
    if ord != "euclidean" and (isinstance(ord, str) or ord <= 0):
        text = f"'ord' must be a supported vector norm in ['euclidean', 1, 2, inf] or positive, got {ord}"
        raise ValueError(text)
    return False


def _euclidean(x: Tensor, axis: Any, spectral: bool) -> Tensor:
    if spectral:
        return _spectral(x, axis)
    squares = x * (apply("Conj", x) if x.dtype.is_complex else x)
    return apply("Sqrt", reduce_sum(squares, axis, keepdims=True))


def _spectral(x: Tensor, axis: list[int]) -> Tensor:
    """The largest singular value of the matrices in two axes."""
    rank = x.shape.rank
    if rank is None:
        known = apply("Rank", x)
        pair = apply("FloorMod", np.array(axis, np.int32) + known, known)
        others = apply_list("ListDiff", apply("Range", 0, known, 1), pair)[0]
        order: Any = apply("ConcatV2", [others, pair], 0)
        back: Any = apply("InvertPermutation", order)
    else:
        chosen = [a % rank for a in axis]
        order = np.array([i for i in range(rank) if i not in chosen] + chosen, np.int32)
        back = np.argsort(order).astype(np.int32)
    values = apply_list("Svd", apply("Transpose", x, order), compute_uv=False, full_matrices=False)[0]
    largest = reduce_max(tf_abs(values), -1, keepdims=True)
    return apply("Transpose", apply("ExpandDims", largest, -1), back)


def _other_norm(x: Tensor, ord: Any, axis: Any, matrices: bool) -> Tensor:
    size = tf_abs(x)
    if ord in (1, np.inf) and matrices:
        summed, kept = (axis[0], axis[1]) if ord == 1 else (axis[1], axis[0])
        return reduce_max(reduce_sum(size, summed, keepdims=True), kept, keepdims=True)
    if ord == 1:
        return reduce_sum(size, axis, keepdims=True)
    if ord == np.inf:
        return reduce_max(size, axis, keepdims=True)
    # A p-norm: of everything when no axis is given.
    axes = None if axis is None else [axis]
    return apply("Pow", reduce_sum(apply("Pow", size, ord), axes, keepdims=True), 1.0 / ord)


@export("linalg.normalize")
def normalize(
    tensor: TensorLike, ord: str | float = "euclidean", axis: TensorLike = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """`tensor` divided by its norm along `axis`, and that norm."""
    with name_scope(name, "normalize", [tensor]):
        tensor = to_tensor(tensor)
        size = norm(tensor, ord, axis, keepdims=True)
        size = cast(size, tensor.dtype.base_dtype)
        return tensor / size, size
