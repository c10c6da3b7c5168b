"""Moments, normalization and dropout."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.array.shape import rank, shape, size
from tensorfleet.ops.math.binary import div_no_nan
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import count_nonzero, reduce_mean, reduce_prod, reduce_sum
from tensorfleet.ops.nn.shapes import one_of
from tensorfleet.ops.random.ops import random_uniform

_HALVES = (dtypes.float16, dtypes.bfloat16)


def _keep(keep_dims: bool | None, keepdims: bool | None) -> bool:
    return bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))


def _axes_list(axes: int | Sequence[int] | Array) -> list[int]:
    return [int(a) for a in np.atleast_1d(np.asarray(axes))]


@export("nn.moments")
def moments(
    x: TensorLike,
    axes: Any,
    shift: TensorLike = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and the variance of `x` along `axes`. `shift` is not used."""
    keep = _keep(keep_dims, keepdims)
    with name_scope(name, "moments", [x, axes]):
        value = to_tensor(x)
        half = value.dtype.base_dtype in _HALVES
        # The sum of many halves would lose their digits.
        y = cast(value, dtypes.float32) if half else value
        mean = reduce_mean(y, axes, keepdims=True, name="mean")
        # The gradient by the mean is zero in exact numbers: stopping it saves the rounding and the work.
        distance = apply("SquaredDifference", y, apply("StopGradient", mean))
        variance = reduce_mean(distance, axes, keepdims=True, name="variance")
        return _finish(mean, variance, axes, keep, value.dtype.base_dtype if half else None)


def _finish(
    mean: Tensor, variance: Tensor, axes: Any, keep: bool, kind: DType | None
) -> tuple[Tensor, Tensor]:
    if not keep:
        dims = _axes_list(axes)
        mean, variance = (apply("Squeeze", t, squeeze_dims=dims) for t in (mean, variance))
    if kind is not None:
        mean, variance = cast(mean, kind), cast(variance, kind)
    return mean, variance


@export("nn.weighted_moments")
def weighted_moments(
    x: TensorLike,
    axes: Any,
    frequency_weights: TensorLike,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and the variance of `x` along `axes`, each value counted `frequency_weights` times."""
    keep = _keep(keep_dims, keepdims)
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        value = to_tensor(x, name="x")
        weights = to_tensor(frequency_weights, name="frequency_weights")
        kind = value.dtype.base_dtype
        half = kind in _HALVES
        if half:
            value = cast(value, dtypes.float32)
        if weights.dtype.base_dtype != value.dtype.base_dtype:
            weights = cast(weights, value.dtype.base_dtype)
        total = reduce_sum(weights * value, axes, name="weighted_input_sum", keepdims=True)
        spread = weights + zeros_like(value)
        count = reduce_sum(spread, axes, name="sum_of_weights", keepdims=True)
        mean = div_no_nan(total, count)
        distance = weights * apply("SquaredDifference", value, mean)
        squares = reduce_sum(distance, axes, name="weighted_distsq", keepdims=True)
        variance = div_no_nan(squares, count)
        return _finish(mean, variance, axes, keep, kind if half else None)


@export("nn.sufficient_statistics")
def sufficient_statistics(
    x: TensorLike,
    axes: Any,
    shift: TensorLike = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """(number of elements, their sum, the sum of their squares, shift) along `axes`, less `shift`."""
    keep = _keep(keep_dims, keepdims)
    dims = sorted(set(_axes_list(axes)))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        value = to_tensor(x, name="x")
        known = value.shape.as_list() if value.shape.rank is not None else None
        if known is not None and all(known[d] is not None for d in dims):
            count = constant(float(np.prod([known[d] for d in dims])), value.dtype.base_dtype)
        else:
            whole = rank(value)
            positions = [d if d >= 0 else d + whole for d in dims]
            sizes = apply("GatherV2", cast(shape(value), value.dtype.base_dtype), positions, 0)
            count = reduce_prod(sizes, name="count")
        if shift is not None:
            moved = to_tensor(shift, name="shift")
            sums, squares = apply("Sub", value, moved), apply("SquaredDifference", value, moved)
        else:
            moved, sums, squares = None, value, apply("Square", value)
        mean_ss = reduce_sum(sums, dims, keepdims=keep, name="mean_ss")
        return count, mean_ss, reduce_sum(squares, dims, keepdims=keep, name="var_ss"), moved


@export("nn.normalize_moments")
def normalize_moments(
    counts: TensorLike,
    mean_ss: TensorLike,
    variance_ss: TensorLike,
    shift: TensorLike,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance from the results of `tf.nn.sufficient_statistics`."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = apply("Reciprocal", counts, name="divisor")
        if shift is not None:
            shifted = apply("Mul", mean_ss, divisor, name="shifted_mean")
            mean = apply("AddV2", shifted, shift, name="mean")
        else:
            shifted = mean = apply("Mul", mean_ss, divisor, name="mean")
        variance = apply("Sub", apply("Mul", variance_ss, divisor), apply("Square", shifted), name="variance")
        return mean, variance


@export("nn.batch_normalization")
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike,
    scale: TensorLike,
    variance_epsilon: TensorLike,
    name: str | None = None,
) -> Tensor:
    """`(x - mean) / sqrt(variance + variance_epsilon) * scale + offset`; the last two may be None."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        value = to_tensor(x)
        factor = apply("Rsqrt", to_tensor(variance) + variance_epsilon)
        if scale is not None:
            factor = factor * scale
        kind = value.dtype.base_dtype
        scaled = value * cast(factor, kind)
        moved = offset - mean * factor if offset is not None else -to_tensor(mean) * factor
        result: Tensor = scaled + cast(moved, kind)
        return result


@export("nn.batch_norm_with_global_normalization")
def batch_norm_with_global_normalization(
    t: TensorLike = None,
    m: TensorLike = None,
    v: TensorLike = None,
    beta: TensorLike = None,
    gamma: TensorLike = None,
    variance_epsilon: TensorLike = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: TensorLike = None,
    mean: TensorLike = None,
    variance: TensorLike = None,
) -> Tensor:
    """`tf.nn.batch_normalization` under its old name; `gamma` counts if `scale_after_normalization`."""
    value = one_of("input", input, "t", t)
    centre, spread = one_of("mean", mean, "m", m), one_of("variance", variance, "v", v)
    scale = gamma if scale_after_normalization else None
    return batch_normalization(value, centre, spread, beta, scale, variance_epsilon, name)


@export("nn.l2_normalize", "math.l2_normalize", "linalg.l2_normalize")
def l2_normalize(
    x: TensorLike, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """`x` divided by its length along `axis`, that length taken as at least `sqrt(epsilon)`."""
    along = one_of("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        value = to_tensor(x, name="x")
        total = reduce_sum(apply("Square", value), along, keepdims=True)
        inverse = apply("Rsqrt", apply("Maximum", total, epsilon))
        return apply("Mul", value, inverse, name=scope)


@export("nn.zero_fraction", "math.zero_fraction")
def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The share of the elements that are zero, as float32; NaN of nothing."""
    with name_scope(name, "zero_fraction", [value]):
        tensor = to_tensor(value, name="value")
        whole = size(tensor, out_type=dtypes.int64)
        other = count_nonzero(tensor, dtype=dtypes.int64)
        with name_scope("counts_to_fraction"):
            zeros = cast(whole - other, dtypes.float32)
            fraction = zeros / cast(whole, dtypes.float32)
        return apply("Identity", fraction, name="fraction")


@export("nn.dropout")
def dropout(
    x: TensorLike,
    keep_prob: Any = None,
    noise_shape: TensorLike = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Sets elements of `x` to zero with probability `rate` (or `1 - keep_prob`); scales up the others.

    With `noise_shape`, elements along axes where it is 1 are dropped together.
    """
    if keep_prob is not None and rate is not None:
        raise ValueError("Cannot specify both 'keep_prob' and 'rate'")
    try:
        share = 1.0 - keep_prob if keep_prob is not None else rate
    except TypeError:
        message = f"keep_prob must be a floating point number or Tensor (got {keep_prob!r})"
        raise ValueError(message) from None
    if share is None:
        raise ValueError("You must provide a rate to dropout.")
    with name_scope(name, "dropout", [x]):
        value = to_tensor(x, name="x")
        kind = value.dtype.base_dtype
        if not kind.is_floating:
            raise ValueError(
                f"x has to be a floating point tensor since it's going to be scaled. Got a {kind} tensor instead."
            )
        if isinstance(share, numbers.Real):
            if not 0 <= float(share) < 1:
                raise ValueError(
                    f"rate must be a scalar tensor or a float in the range [0, 1), got {share:g}"
                )
            if share == 0:
                return value
        drop = to_tensor(share, kind, name="rate")
        drop.shape.assert_has_rank(0)
        drawn = random_uniform(_noise_shape(value, noise_shape), seed=seed, dtype=kind)
        scale = 1 / (1 - drop)
        kept = drawn >= drop
        result = value * scale * cast(kept, kind)
        result.set_shape(value.shape)
        outcome: Tensor = result
        return outcome


def _noise_shape(x: Tensor, noise_shape: Any) -> TensorLike:
    if noise_shape is None:
        return shape(x)
    try:
        wanted = TensorShape(noise_shape)
    except (TypeError, ValueError):
        return noise_shape
    if x.shape.rank is None or x.shape.rank != wanted.rank:
        return noise_shape
    merged = [own if d is None else d for d, own in zip(wanted.as_list(), x.shape.as_list(), strict=True)]
    if None not in merged:
        return merged
    actual = shape(x)
    return apply("Pack", [actual[i] if d is None else d for i, d in enumerate(merged)])
