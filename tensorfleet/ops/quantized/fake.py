"""Fake quantization: floats rounded to the few values that a quantized type could hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.ops.common import SCALAR, same_as_input
from tensorfleet.ops.nn.shapes import of_rank, of_rank_at_least, same_dimension
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.quantized.quantize import Limit
from tensorfleet.ops.samples import case

_ATTRS = "num_bits: int = 8; narrow_range: bool = false"
_X = np.array([[-7.0, -1.13, -0.52], [0.21, 1.72, 9.31]], np.float32)
_DY = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
_LOW, _HIGH = np.float32(-1.3), np.float32(2.2)
_LOWS, _HIGHS = np.array([-1.3, -2.0, 0.0], np.float32), np.array([2.2, 1.1, 0.0], np.float32)


def _check_bits(num_bits: int) -> None:
    if not 2 <= num_bits <= 16:
        raise errors.invalid(f"num_bits must be between 2 and 16, inclusive. Got: {num_bits}")


def _nudged(
    xp: ArrayModule, low: Limit, high: Limit, num_bits: int, narrow_range: bool
) -> tuple[Array, Array, Array | np.floating[Any]]:
    """The range moved a little, so that zero is one of its values; and the distance between two values."""
    _check_bits(num_bits)
    first, last = np.float32(1 if narrow_range else 0), np.float32((1 << num_bits) - 1)
    scale = (high - low) / (last - first)
    # Where the division below would be by zero, any number serves: the range is empty and the result is zero.
    zero = first - low / xp.where(scale == 0, np.float32(1), scale)
    zero = xp.where(zero < first, first, xp.where(zero > last, last, xp.floor(zero + np.float32(0.5))))
    return (first - zero) * scale, (last - zero) * scale, scale


def _quantized(
    xp: ArrayModule, x: Array, low: Limit, high: Limit, num_bits: int, narrow_range: bool
) -> Array:
    bottom, top, scale = _nudged(xp, low, high, num_bits, narrow_range)
    empty = (low == 0) & (high == 0)
    inverse = np.float32(1) / xp.where(scale == 0, np.float32(1), scale)
    inside = xp.minimum(xp.maximum(x, bottom), top)
    steps = xp.floor((inside - bottom) * inverse + np.float32(0.5))
    return xp.where(empty, np.float32(0), steps * scale + bottom)


def _gradients(
    xp: ArrayModule, dy: Array, x: Array, low: Limit, high: Limit, num_bits: int, narrow_range: bool
) -> tuple[Array, Array, Array]:
    """The gradients of the input (inside the range), of the lower limit (below it) and of the upper one (above it)."""
    bottom, top, _ = _nudged(xp, low, high, num_bits, narrow_range)
    empty = (low == 0) & (high == 0)
    zero = np.float32(0)
    inside = xp.where(empty | ((x >= bottom) & (x <= top)), dy, zero)
    below = xp.where(~empty & (x < bottom), dy, zero)
    above = xp.where(~empty & (x > top), dy, zero)
    return inside, below, above


# -- a range given by attributes ---------------------------------------------------------------------

_RANGE = "min: float = -6; max: float = 6; "


def _check_range(low: float, high: float) -> None:
    if low >= high:
        raise errors.invalid(f"min has to be smaller than max, was: {low} >= {high}")


@op(
    "FakeQuantWithMinMaxArgs",
    "inputs: float -> outputs: float",
    _RANGE + _ATTRS,
    shape=same_as_input,
    examples=[case(_X), case(_X, min=-1.0, max=2.0, num_bits=4, narrow_range=True)],
)
def _fake_quant_args(
    xp: ArrayModule, x: Array, *, min: float, max: float, num_bits: int, narrow_range: bool
) -> Array:
    _check_range(min, max)
    return _quantized(xp, x, np.float32(min), np.float32(max), num_bits, narrow_range)


@gradient("FakeQuantWithMinMaxArgs")
def _fake_quant_args_gradient(op: Operation, dy: Tensor) -> Tensor:
    attrs = {k: op.get_attr(k) for k in ("min", "max", "num_bits", "narrow_range")}
    return apply("FakeQuantWithMinMaxArgsGradient", dy, op.inputs[0], **attrs)


@op(
    "FakeQuantWithMinMaxArgsGradient",
    "gradients: float, inputs: float -> backprops: float",
    _RANGE + _ATTRS,
    shape=same_as_input,
    examples=[case(_DY, _X, min=-1.0, max=2.0, grad=False)],
)
def _fake_quant_args_grad(
    xp: ArrayModule, dy: Array, x: Array, *, min: float, max: float, num_bits: int, narrow_range: bool
) -> Array:
    _check_range(min, max)
    return _gradients(xp, dy, x, np.float32(min), np.float32(max), num_bits, narrow_range)[0]


# -- a range given by tensors ------------------------------------------------------------------------


def _ranged(op: Operation) -> TensorShape:
    of_rank(op._inputs[1].shape, 0)
    of_rank(op._inputs[2].shape, 0)
    return op._inputs[0].shape


@op(
    "FakeQuantWithMinMaxVars",
    "inputs: float, min: float, max: float -> outputs: float",
    _ATTRS,
    shape=_ranged,
    examples=[
        case(_X, _LOW, _HIGH),
        case(_X, np.float32(0), np.float32(0), num_bits=4),
        case(_X, np.float32(0.4), _HIGH, num_bits=3, narrow_range=True),
    ],
)
def _fake_quant_vars(
    xp: ArrayModule, x: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool
) -> Array:
    return _quantized(xp, x, low, high, num_bits, narrow_range)


_BACK = "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float"


@op(
    "FakeQuantWithMinMaxVarsGradient",
    f"gradients: float, inputs: float, min: float[0], max: float[0] -> {_BACK}",
    _ATTRS,
    shape=lambda op: [op._inputs[0].shape.merge_with(op._inputs[1].shape), SCALAR, SCALAR],
    examples=[
        case(_DY, _X, _LOW, _HIGH, grad=False),
        case(_DY, _X, np.float32(0), np.float32(0), grad=False),
    ],
)
def _fake_quant_vars_grad(
    xp: ArrayModule, dy: Array, x: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool
) -> tuple[Array, Array, Array]:
    inside, below, above = _gradients(xp, dy, x, low, high, num_bits, narrow_range)
    return inside, xp.sum(below, dtype=np.float32), xp.sum(above, dtype=np.float32)


def _per_channel(op: Operation) -> TensorShape:
    shape = of_rank_at_least(op._inputs[0].shape, 1)
    if shape.rank is not None:
        for t in op._inputs[1:3]:
            same_dimension(shape.as_list()[-1], of_rank(t.shape, 1).as_list()[0])
    return shape


@op(
    "FakeQuantWithMinMaxVarsPerChannel",
    "inputs: float, min: float[1], max: float[1] -> outputs: float",
    _ATTRS,
    shape=_per_channel,
    examples=[case(_X, _LOWS, _HIGHS), case(_X[0], _LOWS, _HIGHS, num_bits=4)],
)
def _fake_quant_channels(
    xp: ArrayModule, x: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool
) -> Array:
    return _quantized(xp, x, low, high, num_bits, narrow_range)


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def _fake_quant_gradient(op: Operation, dy: Tensor) -> list[Tensor]:
    attrs = {k: op.get_attr(k) for k in ("num_bits", "narrow_range")}
    return apply_list(op.type + "Gradient", dy, *op.inputs, **attrs)


def _per_channel_gradient(op: Operation) -> list[TensorShape]:
    x = op._inputs[0].shape.merge_with(op._inputs[1].shape)
    channels = TensorShape([None if x._d is None else x._d[-1]])
    for t in op._inputs[3:1:-1]:
        channels = t.shape.merge_with(channels)
    return [x, channels, channels]


@op(
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    f"gradients: float[1+], inputs: float, min: float[1], max: float -> {_BACK}",
    _ATTRS,
    shape=_per_channel_gradient,
    examples=[case(_DY, _X, _LOWS, _HIGHS, grad=False)],
)
def _fake_quant_channels_grad(
    xp: ArrayModule, dy: Array, x: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool
) -> tuple[Array, Array, Array]:
    inside, below, above = _gradients(xp, dy, x, low, high, num_bits, narrow_range)
    axes = tuple(range(x.ndim - 1))
    return inside, xp.sum(below, axis=axes), xp.sum(above, axis=axes)


not_differentiable("FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVarsGradient")
not_differentiable("FakeQuantWithMinMaxVarsPerChannelGradient")


# -- names -------------------------------------------------------------------------------------------


fake_quant_with_min_max_args = op_function(
    "FakeQuantWithMinMaxArgs",
    "inputs, min=-6, max=6, num_bits=8, narrow_range=False, name=None",
    "quantization.fake_quant_with_min_max_args fake_quant_with_min_max_args",
    "Rounds to the 2**num_bits values spread evenly over a fixed range.",
)


fake_quant_with_min_max_args_gradient = op_function(
    "FakeQuantWithMinMaxArgsGradient",
    "gradients, inputs, min=-6, max=6, num_bits=8, narrow_range=False, name=None",
    "quantization.fake_quant_with_min_max_args_gradient fake_quant_with_min_max_args_gradient",
    "The gradient of `fake_quant_with_min_max_args`: it flows where the input was inside the range.",
)


@export("quantization.fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars")
def fake_quant_with_min_max_vars(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Rounds to the 2**num_bits values spread evenly over a range that can be trained."""
    return apply(
        "FakeQuantWithMinMaxVars", inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


fake_quant_with_min_max_vars_gradient = op_function(
    "FakeQuantWithMinMaxVarsGradient",
    "gradients, inputs, min, max, num_bits=8, narrow_range=False, name=None",
    "quantization.fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_gradient",
    "The gradients of `fake_quant_with_min_max_vars`: to the input, to min and to max.",
)


@export("quantization.fake_quant_with_min_max_vars_per_channel", "fake_quant_with_min_max_vars_per_channel")
def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like `fake_quant_with_min_max_vars`, with a range for each channel of the last axis."""
    op_type = "FakeQuantWithMinMaxVarsPerChannel"
    return apply(op_type, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


fake_quant_with_min_max_vars_per_channel_gradient = op_function(
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    "gradients, inputs, min, max, num_bits=8, narrow_range=False, name=None",
    "quantization.fake_quant_with_min_max_vars_per_channel_gradient fake_quant_with_min_max_vars_per_channel_gradient",
    "The gradients of `fake_quant_with_min_max_vars_per_channel`: to the input, to min and to max.",
)
