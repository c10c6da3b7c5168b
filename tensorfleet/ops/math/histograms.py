"""Counting: histograms, confusion matrices; and flat indices taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.checks import assert_less, assert_non_negative
from tensorfleet.ops.common import shape_given_by, static_value
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.clip import clip_by_value
from tensorfleet.ops.math.reduce_functions import reduce_max
from tensorfleet.ops.samples import case

_VALUES = np.array([[-1.0, 0.0, 1.5], [2.0, 5.0, 15.0]], np.float32)


def _histogram_shape(op: Operation) -> TensorShape:
    ends = op._inputs[1].shape.with_rank(1)
    if ends.rank is not None and ends.as_list()[0] not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {ends.as_list()[0]}")
    count = static_value(op, 2)
    if count is not None and int(count) <= 0:
        raise ValueError(f"Requires nbins > 0: {int(count)}")
    return TensorShape([None if count is None else int(count)])


@op(
    "HistogramFixedWidth",
    "values: T, value_range: T[1], nbins: int32[0] -> out: dtype",
    "T: {int32, int64, float, double}; dtype: index = int32",
    shape=_histogram_shape,
    static=["nbins"],
    examples=[
        case(_VALUES, np.array([0, 5], np.float32), np.int32(5)),
        case(np.array([1, 2, 3, 9], np.int64), np.array([0, 10], np.int64), np.int32(5), dtype=dtypes.int64),
        case(_VALUES[:0], np.array([0, 5], np.float32), np.int32(3)),
    ],
)
def _histogram_fixed_width(
    xp: ArrayModule, values: Array, value_range: Array, nbins: Array, *, dtype: dtypes.DType, check: Check
) -> Array:
    bins = int(nbins)
    if bins <= 0:
        raise errors.invalid(f"nbins should be a positive number, but got '{bins}'")
    low, high = value_range[0], value_range[1]
    check(
        low < high,
        lambda: f"value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'",
    )
    x = values.reshape(-1).astype(np.float64)
    check(~xp.isnan(x), lambda: "Histogram values must not contain NaN")
    start = xp.asarray(low).astype(np.float64)
    step = (xp.asarray(high).astype(np.float64) - start) / bins
    where = xp.clip(xp.floor((x - start) / xp.where(step > 0, step, 1)), 0, bins - 1)
    where = xp.where(xp.isnan(where), 0, where).astype(np.int32)
    return xp.bincount(where, minlength=bins, **({} if xp is np else {"length": bins})).astype(dtype.np_dtype)


not_differentiable("HistogramFixedWidth")


@export("histogram_fixed_width")
def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How many values fall into each of `nbins` equal parts of a range; those outside go to the ends."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        return apply(
            "HistogramFixedWidth", values, value_range, nbins, dtype=dtypes.as_dtype(dtype), name=scope
        )


@export("histogram_fixed_width_bins")
def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Which of `nbins` equal parts of a range each value falls into; those outside go to the ends."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = to_tensor(values, name="values")
        ends = to_tensor(value_range, values.dtype.base_dtype, name="value_range")
        count = cast(to_tensor(nbins, dtypes.int32, name="nbins"), values.dtype)
        low, high = ends[0], ends[1]
        scaled = apply("RealDiv", values - low, high - low, name="scaled_values")
        indices = apply("Floor", count * scaled, name="indices")
        bins: Tensor = cast(clip_by_value(indices, apply("ZerosLike", count), count - 1), dtype)
        return bins


@export("confusion_matrix", "math.confusion_matrix")
def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    weights: TensorLike = None,
) -> Tensor:
    """A square matrix: row i, column j counts (or sums the weights of) the items of class i predicted as j."""
    with name_scope(name, "confusion_matrix", (predictions, labels, num_classes, weights)):
        true, predicted = _same_rank(
            to_tensor(labels, name="labels"), to_tensor(predictions, name="predictions")
        )
        true, predicted = cast(true, dtypes.int64), cast(predicted, dtypes.int64)
        true = _after(assert_non_negative(true, message="`labels` contains negative values"), true)
        predicted = _after(
            assert_non_negative(predicted, message="`predictions` contains negative values"), predicted
        )
        if num_classes is None:
            count = apply("Maximum", reduce_max(predicted), reduce_max(true)) + 1
        else:
            count = cast(to_tensor(num_classes), dtypes.int64)
            true = _after(assert_less(true, count, message="`labels` out of bound"), true)
            predicted = _after(assert_less(predicted, count, message="`predictions` out of bound"), predicted)
        if weights is None:
            values = apply("Fill", apply("Shape", predicted), to_tensor(1, dtype), name="ones_like")
        else:
            weights = to_tensor(weights, name="weights")
            predicted.shape.assert_is_compatible_with(weights.shape)
            values = cast(weights, dtype)
        shape = apply("Pack", [count, count], name="stack")
        indices = apply("Pack", [true, predicted], axis=1, name="stack")
        return apply("ScatterNd", indices, values, shape)


def _after(check: Operation, tensor: Tensor) -> Tensor:
    """The tensor, once a check has passed."""
    with control_dependencies([check] if check is not None else []):
        return apply("Identity", tensor, name="control_dependency")


def _same_rank(labels: Tensor, predictions: Tensor) -> tuple[Tensor, Tensor]:
    """Drops a last dimension of 1 that only one of two tensors has."""
    a, b = labels.shape, predictions.shape
    if a.rank is not None and b.rank is not None:
        if b.rank - a.rank == 1 and b[-1].is_compatible_with(1):
            predictions = apply("Squeeze", predictions, squeeze_dims=[-1])
        elif a.rank - b.rank == 1 and a[-1].is_compatible_with(1):
            labels = apply("Squeeze", labels, squeeze_dims=[-1])
    return labels, predictions


def _unravelled_shape(op: Operation) -> TensorShape:
    if op._inputs[1].shape.rank not in (None, 1):
        raise ValueError(f"Shape must be rank 1 but is rank {op._inputs[1].shape.rank}")
    dims = shape_given_by(op, 1)
    indices = op._inputs[0].shape
    if indices.rank is None:
        return TensorShape(None)
    if indices.rank == 0:
        return TensorShape([dims.rank])
    return TensorShape([dims.rank, indices.num_elements()])


@op(
    "UnravelIndex",
    "indices: Tidx, dims: Tidx -> output: Tidx",
    "Tidx: index = int32",
    shape=_unravelled_shape,
    examples=[
        case(np.array([2, 5, 7], np.int32), np.array([3, 3], np.int32)),
        case(np.int64(22), np.array([4, 3, 2], np.int64)),
    ],
)
def _unravel_index(xp: ArrayModule, indices: Array, dims: Array, *, check: Check) -> Array:
    check(dims != 0, lambda: f"Input dims cannot contain a dim of zero, but dims contains zero: {dims}")
    check((indices >= 0) & (indices < xp.prod(dims)), lambda: f"index is out of bound as with dims: {dims}")
    parts: list[Any] = []
    left = indices
    for i in reversed(range(dims.shape[0])):
        size = xp.where(dims[i] == 0, 1, dims[i])
        parts.insert(0, left % size)
        left = left // size
    return xp.stack(parts).astype(indices.dtype)


not_differentiable("UnravelIndex")


@export("unravel_index")
def unravel_index(indices: TensorLike, dims: TensorLike, name: str | None = None) -> Tensor:
    """The coordinates, one row per dimension, of elements given by their position in a flattened array."""
    return apply("UnravelIndex", indices, dims, name=name)
