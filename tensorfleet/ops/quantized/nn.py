"""Layers on quantized tensors: integers with the range of floats that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply_list
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import conv as conv_kernels
from tensorfleet.kernels import pool as pool_kernels
from tensorfleet.kernels.conv_shapes import conv2d_shape
from tensorfleet.ops.common import SCALAR, normal_axis, static_value, tensor_list
from tensorfleet.ops.nn.shapes import dims_of, shape_of
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.quantized.quantize import _QUANTIZED, Limit, Quantized, _rounded, whole

_RANGE = "min_output: float, max_output: float"
_POOL = f"T: {_QUANTIZED}; ksize: list(int); strides: list(int); padding: string(SAME|VALID)"


def _step(low: Limit, high: Limit, kind: np.dtype[Any]) -> np.float32:
    """How much one step of the integers stands for."""
    info = np.iinfo(kind)
    return (np.float32(high) - np.float32(low)) / np.float32(int(info.max) - int(info.min))


def _floats(x: Array, low: Limit, high: Limit) -> Array:
    step = _step(low, high, x.dtype)
    start = _rounded(np.asarray(np.float32(low) / step)) * step if step else np.float32(low)
    return start + (x.astype(np.float32) - np.float32(np.iinfo(x.dtype).min)) * step


def _integers(x: Limit, low: Limit, high: Limit, kind: dtypes.DType) -> Array:
    scale = np.float32(1) / _step(low, high, kind.np_dtype)
    first = np.float32(np.iinfo(kind.np_dtype).min)
    scaled = (
        _rounded(np.asarray(x, np.float32) * scale) - _rounded(np.asarray(np.float32(low) * scale)) + first
    )
    return whole(scaled, kind)


# -- joining -----------------------------------------------------------------------------------------


def _concat_shape(op: Operation) -> list[TensorShape]:
    axis, shapes = static_value(op, 0), [t.shape for t in tensor_list(op, 1)]
    if axis is None or any(s.rank is None for s in shapes):
        return [TensorShape(None), SCALAR, SCALAR]
    place = normal_axis(int(axis), len(shapes[0].as_list()), "concat_dim")
    dims: list[int | None] = []
    for i, column in enumerate(zip(*[s.as_list() for s in shapes], strict=True)):
        known = [d for d in column if d is not None]
        if i == place:
            dims.append(sum(known) if len(known) == len(column) else None)
        else:
            dims.append(known[0] if known else None)
    return [TensorShape(dims), SCALAR, SCALAR]


@op(
    "QuantizedConcat",
    "concat_dim: int32[0], values: N * T, input_mins: N * float, input_maxes: N * float -> "
    "output: T, output_min: float, output_max: float",
    "N: int; T: type",
    shape=_concat_shape,
    host=True,
)
def _quantized_concat(
    ctx: HostContext,
    axis: Array,
    values: list[Array],
    lows: list[Array],
    highs: list[Array],
    *,
    T: dtypes.DType,
) -> Quantized:
    low = np.float32(min(0, *(float(v) for v in lows)))
    high = np.float32(max(float(v) for v in highs))
    if np.iinfo(T.np_dtype).min < 0:  # a range with zero in its middle
        high = np.float32(max(abs(low), abs(high)))
        low = -high
    parts = [
        x if (a == low and b == high) else _integers(_floats(np.asarray(x), a, b), low, high, T)
        for x, a, b in zip(values, lows, highs, strict=True)
    ]
    return np.concatenate(parts, int(axis)), low, high


@export("quantization.quantized_concat", "quantized_concat")
def quantized_concat(
    concat_dim: TensorLike,
    values: TensorLike,
    input_mins: TensorLike,
    input_maxes: TensorLike,
    name: str | None = None,
) -> list[Tensor]:
    """Quantized tensors joined along an axis, in a range that holds all of theirs."""
    return apply_list("QuantizedConcat", concat_dim, values, input_mins, input_maxes, name=name)


# -- pooling -----------------------------------------------------------------------------------------


def _pool_shape(op: Operation) -> list[TensorShape]:
    attrs = {name: op._attrs[name] for name in ("ksize", "strides")}
    padding = op._attrs["padding"].decode()
    dims = pool_kernels.pool_shape(dims_of(op._inputs[0].shape), padding=padding, **attrs)
    return [shape_of(dims), SCALAR, SCALAR]


def _declare_pool(name: str, pool: Callable[..., Array], cut_off: bool) -> None:
    def kernel(
        ctx: HostContext,
        x: Array,
        low: Array,
        high: Array,
        *,
        ksize: list[int],
        strides: list[int],
        padding: bytes,
    ) -> Quantized:
        wide = x.astype(np.float64)
        pooled = pool(np, wide, ksize=ksize, strides=strides, padding=padding.decode())
        # A mean that is a whole number may come out just below it.
        pooled = np.trunc(pooled + 1e-9) if cut_off else pooled
        return pooled.astype(x.dtype), np.float32(low), np.float32(high)

    signature = f"input: T, min_input: float, max_input: float -> output: T, {_RANGE}"
    op(name, signature, _POOL, shape=_pool_shape, host=True)(kernel)


_declare_pool("QuantizedAvgPool", pool_kernels.avg_pool, cut_off=True)
_declare_pool("QuantizedMaxPool", pool_kernels.max_pool, cut_off=False)

quantized_avg_pool = op_function(
    "QuantizedAvgPool",
    "input, min_input, max_input, ksize, strides, padding, name=None",
    "nn.quantized_avg_pool",
    "Means of windows of a quantized tensor, and its range.",
)


quantized_max_pool = op_function(
    "QuantizedMaxPool",
    "input, min_input, max_input, ksize, strides, padding, name=None",
    "nn.quantized_max_pool",
    "The greatest elements of windows of a quantized tensor, and its range.",
)


# -- activations -------------------------------------------------------------------------------------


def _clipped(x: Array, low: Array, high: Array, top: Limit | None, kind: dtypes.DType) -> Quantized:
    floor = _integers(0.0, low, high, kind)
    ceiling = np.iinfo(kind.np_dtype).max if top is None else _integers(top, low, high, kind)
    return np.clip(x, floor, ceiling).astype(kind.np_dtype), np.float32(low), np.float32(high)


_ACTIVATION = f"Tinput: {_QUANTIZED}; out_type: {_QUANTIZED} = quint8"
_ACTIVATED = "activations: out_type, min_activations: float, max_activations: float"


def _like_first(op: Operation) -> list[TensorShape]:
    return [op._inputs[0].shape, SCALAR, SCALAR]


@op(
    "QuantizedReluX",
    f"features: Tinput, max_value: float, min_features: float[0], max_features: float[0] -> {_ACTIVATED}",
    _ACTIVATION,
    shape=_like_first,
    host=True,
)
def _quantized_relu_x(
    ctx: HostContext, x: Array, top: Array, low: Array, high: Array, *, out_type: dtypes.DType
) -> Quantized:
    return _clipped(x, low, high, top, out_type)


def _declare_relu(name: str, top: float | None) -> None:
    def kernel(ctx: HostContext, x: Array, low: Array, high: Array, *, out_type: dtypes.DType) -> Quantized:
        return _clipped(x, low, high, top, out_type)

    signature = f"features: Tinput, min_features: float[0], max_features: float[0] -> {_ACTIVATED}"
    op(name, signature, _ACTIVATION, shape=_like_first, host=True)(kernel)


_declare_relu("QuantizedRelu", None)
_declare_relu("QuantizedRelu6", 6.0)


quantized_relu_x = op_function(
    "QuantizedReluX",
    "features, max_value, min_features, max_features, out_type=quint8, name=None",
    "nn.quantized_relu_x",
    "A quantized tensor cut off at zero and at `max_value`, and its range.",
    quint8=dtypes.quint8,
)


# -- convolution -------------------------------------------------------------------------------------


def _conv_shape(op: Operation) -> list[TensorShape]:
    given = {name: op._attrs[name] for name in ("strides", "dilations")}
    x, w = (dims_of(t.shape) for t in op._inputs[:2])
    dims = conv2d_shape(x, w, padding=op._attrs["padding"].decode(), **given)
    return [shape_of(dims), SCALAR, SCALAR]


@op(
    "QuantizedConv2D",
    "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, max_filter: float -> "
    f"output: out_type, {_RANGE}",
    f"Tinput: {_QUANTIZED}; Tfilter: {_QUANTIZED}; out_type: {_QUANTIZED} = qint32; strides: list(int); "
    "padding: string(SAME|VALID); dilations: list(int) = [1, 1, 1, 1]",
    shape=_conv_shape,
    host=True,
)
def _quantized_conv2d(
    ctx: HostContext,
    x: Array,
    w: Array,
    low: Array,
    high: Array,
    filter_low: Array,
    filter_high: Array,
    *,
    op: Operation,
) -> Quantized:
    attrs = op._attrs
    kind: dtypes.DType = attrs["out_type"]
    if kind != dtypes.qint32:
        raise errors.invalid(f"QuantizedConv2D gives qint32, not {kind.name}.")
    zeros = (
        _integers(0.0, low, high, attrs["Tinput"]),
        _integers(0.0, filter_low, filter_high, attrs["Tfilter"]),
    )
    wide = [v.astype(np.float64) - float(z) for v, z in zip((x, w), zeros, strict=True)]
    given = {name: attrs[name] for name in ("strides", "dilations")}
    # In float64, which holds the products and sums of 8-bit integers exactly.
    sums = conv_kernels.conv2d(np, *wide, padding=attrs["padding"].decode(), **given)
    one = _step(low, high, x.dtype) * _step(filter_low, filter_high, w.dtype)
    info = np.iinfo(kind.np_dtype)
    top, bottom = (np.float32(float(one) * float(v)) for v in (info.max, info.min))
    return np.rint(sums).astype(kind.np_dtype), bottom, top


@export("nn.quantized_conv2d")
def quantized_conv2d(
    input: TensorLike,
    filter: TensorLike,
    min_input: TensorLike,
    max_input: TensorLike,
    min_filter: TensorLike,
    max_filter: TensorLike,
    strides: list[int],
    padding: str,
    out_type: DTypeLike = dtypes.qint32,
    dilations: list[int] = [1, 1, 1, 1],  # noqa: B006
    name: str | None = None,
) -> list[Tensor]:
    """The convolution of quantized tensors, as qint32, and the range that stands for."""
    given = {"strides": strides, "padding": padding, "out_type": out_type, "dilations": dilations}
    inputs = input, filter, min_input, max_input, min_filter, max_filter
    return apply_list("QuantizedConv2D", *inputs, name=name, **given)


not_differentiable(
    "QuantizedConcat", "QuantizedAvgPool", "QuantizedMaxPool", "QuantizedReluX", "QuantizedRelu"
)
not_differentiable("QuantizedRelu6", "QuantizedConv2D")
