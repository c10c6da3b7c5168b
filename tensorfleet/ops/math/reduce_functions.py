"""`tf.reduce_*`, `tf.argmax` and what is built from reductions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.math.cast import cast


def _renamed(old: str, old_value: TensorLike, new: str, new_value: TensorLike) -> Any:
    """The value given under the current or the deprecated name of an argument."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old}' and '{new}'")
    return old_value


def _reduced_axes(x: Tensor, axis: TensorLike) -> TensorLike:
    """The `reduction_indices` for `axis`: given as they are, else all axes of `x`."""
    if axis is not None:
        if isinstance(axis, (list, tuple)) and not axis:
            return np.array([], np.int32)
        return axis
    if x.shape.rank is not None:
        return to_tensor(np.arange(x.shape.rank, dtype=np.int32))
    return apply("Range", np.int32(0), apply("Rank", x), np.int32(1), name="range")


def _reduce(kind: str, x: TensorLike, axis: TensorLike, keepdims: bool | None, name: str | None) -> Tensor:
    if not isinstance(x, Tensor):
        # TensorFlow's names for converted values, which saved graphs contain.
        x = to_tensor(x, name="Const" if not hasattr(x, "dtype") else None)
    return apply(kind, x, _reduced_axes(x, axis), keep_dims=bool(keepdims), name=name)


def _declare(kind: str, what: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    def make(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def reduce(
            input_tensor: TensorLike,
            axis: TensorLike = None,
            keepdims: bool | None = None,
            name: str | None = None,
            reduction_indices: TensorLike = None,
            keep_dims: bool | None = None,
        ) -> Tensor:
            axis = _renamed("reduction_indices", reduction_indices, "axis", axis)
            return f(input_tensor, axis, _renamed("keep_dims", keep_dims, "keepdims", keepdims), name)

        public = f"reduce_{kind}"
        reduce.__name__ = reduce.__qualname__ = public
        reduce.__doc__ = (
            f"{what} along `axis` (one, several, or all when None); `keepdims` keeps those axes with size 1."
        )
        return export(f"math.{public}", public)(reduce)

    return make


def _plain(public: str, kind: str, what: str) -> Callable[..., Tensor]:
    return _declare(public, what)(functools.partial(_reduce, kind))


reduce_sum = _plain("sum", "Sum", "The sum of the elements")
reduce_mean = _plain("mean", "Mean", "The mean of the elements")
reduce_prod = _plain("prod", "Prod", "The product of the elements")
reduce_max = _plain("max", "Max", "The largest element")
reduce_min = _plain("min", "Min", "The smallest element")
reduce_all = _plain("all", "All", "Whether all elements are true")
reduce_any = _plain("any", "Any", "Whether any element is true")


@_declare("logsumexp", "`log(sum(exp(elements)))`, without overflow,")
def reduce_logsumexp(  # noqa: D103 - `_declare` writes it
    x: TensorLike, axis: TensorLike = None, keepdims: bool | None = None, name: str | None = None
) -> Tensor:
    with name_scope(name, "ReduceLogSumExp", [x]) as scope:
        x = to_tensor(x)
        raw = _reduce("Max", x, axis, True, None)
        largest = apply("SelectV2", apply("IsFinite", raw), raw, 0)
        largest = apply("StopGradient", largest)
        total = _reduce("Sum", apply("Exp", apply("Sub", x, largest)), axis, keepdims, None)
        result = apply("Log", total)
        if not keepdims:
            largest = apply("Reshape", largest, apply("Shape", result))
        return apply("AddV2", result, largest, name=scope)


@export("math.reduce_euclidean_norm")
def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares along `axis`."""
    return _reduce("EuclideanNorm", input_tensor, axis, keepdims, name)


@export("math.reduce_variance")
def reduce_variance(
    input_tensor: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean along `axis`."""
    with name_scope(name, "reduce_variance", [input_tensor]):
        x = to_tensor(input_tensor)
        mean = _reduce("Mean", x, axis, True, None)
        if mean.dtype.is_integer:
            raise TypeError("Input must be either real or complex floating point; cast it first.")
        difference = x - mean
        if difference.dtype.is_complex:
            squares = apply("Real", difference * apply("Conj", difference), Tout=x.dtype.real_dtype)
        else:
            squares = apply("Square", difference)
        return _reduce("Mean", squares, axis, keepdims, None)


@export("math.reduce_std")
def reduce_std(
    input_tensor: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the variance along `axis`."""
    with name_scope(name, "reduce_std", [input_tensor]):
        return apply("Sqrt", reduce_variance(to_tensor(input_tensor), axis, keepdims))


@export("math.count_nonzero", "count_nonzero")
def count_nonzero(
    input_tensor: TensorLike = None,
    axis: TensorLike = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
    reduction_indices: TensorLike = None,
    keep_dims: bool | None = None,
    input: TensorLike = None,
) -> Tensor:
    """How many elements are not zero (for strings: not empty) along `axis`."""
    keepdims = _renamed("keep_dims", keep_dims, "keepdims", keepdims)
    x = _renamed("input", input, "input_tensor", input_tensor)
    axis = _renamed("reduction_indices", reduction_indices, "axis", axis)
    with name_scope(name, "count_nonzero", [x]):
        x = to_tensor(x, name="input")
        empty = "" if x.dtype.base_dtype == dtypes.string else False if x.dtype.is_bool else 0
        zero = to_tensor(empty, x.dtype.base_dtype, name="zeros")
        there = cast(apply("NotEqual", x, zero), dtypes.int64)
        counts: Tensor = cast(_reduce("Sum", there, axis, keepdims, None), dtype)
        return counts


def _place(kind: str, public: str, what: str) -> Callable[..., Tensor]:
    def find(
        input: TensorLike,
        axis: TensorLike = None,
        name: str | None = None,
        dimension: TensorLike = None,
        output_type: DTypeLike = dtypes.int64,
    ) -> Tensor:
        axis = _renamed("dimension", dimension, "axis", axis)
        return apply(kind, input, 0 if axis is None else axis, output_type=output_type, name=name)

    find.__name__ = find.__qualname__ = public
    find.__doc__ = f"Where along `axis` (default 0) the {what} element is; the first of equal ones."
    return export(f"math.{public}", public)(find)


argmax, argmin = _place("ArgMax", "argmax", "largest"), _place("ArgMin", "argmin", "smallest")


@export("arg_max")
def arg_max(
    input: TensorLike, dimension: TensorLike, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """The old form of `tf.argmax`."""
    return apply("ArgMax", input, dimension, output_type=output_type, name=name)


@export("arg_min")
def arg_min(
    input: TensorLike, dimension: TensorLike, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """The old form of `tf.argmin`."""
    return apply("ArgMin", input, dimension, output_type=output_type, name=name)
