"""Quantized tensors: floats as small integers over a range, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import Check, HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.nn.shapes import of_rank, of_rank_at_least, same_dimension
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_QUANTIZED = "{qint8, quint8, qint32, qint16, quint16}"
# 1 MiB of float32: a piece and its temporaries stay in the cache.
_PIECE_ELEMENTS = 1 << 18
_MODES = "mode: string(MIN_COMBINED|MIN_FIRST|SCALED) = 'MIN_COMBINED'"

#: A limit of a range of floats: an array without dimensions, or a number.
Limit: TypeAlias = "Array | np.floating[Any] | float"
#: The results of a quantized op: integers, and the lowest and the highest float that they stand for.
Quantized: TypeAlias = tuple[Array, np.float32, np.float32]


def _rounded(x: Array | np.floating[Any], to_even: bool = False) -> Array:
    """The nearest whole numbers; halves go away from zero, or to even numbers."""
    return np.rint(x) if to_even else np.trunc(x + np.copysign(np.float32(0.5), x))


def _limits(kind: dtypes.DType) -> tuple[np.float32, np.float32, np.float32]:
    """The lowest and the highest value, and half the range of a signed type (0 for others)."""
    info = np.iinfo(kind.np_dtype)
    half = np.float32((int(info.max) - int(info.min) + 1) // 2 if info.min < 0 else 0)
    return np.float32(info.min), np.float32(info.max), half


def _into(out: Array, values: Array) -> None:
    """Writes values into `out`, clipped to its type and cut off at the point. It overwrites `values`."""
    info = np.iinfo(out.dtype)
    if out.itemsize > 2:  # a float32 cannot be as large as the largest
        values = values.astype(np.float64)
    low, high = values.dtype.type(info.min), values.dtype.type(info.max)
    np.copyto(out, np.clip(values, low, high, out=values), casting="unsafe")


def whole(values: Array, kind: dtypes.DType) -> Array:
    """The values clipped to a type and cut off at the point. It overwrites `values`."""
    result = np.empty(np.shape(values), kind.np_dtype)
    _into(result, np.asarray(values))
    return result


def _in_pieces(x: Array, kind: dtypes.DType, quantized: Callable[[Array], Array]) -> Array:
    """`quantized` of each piece of an array, as a piece of the result; pieces stay in the cache."""
    result = np.empty(x.shape, kind.np_dtype)
    flat, out = np.ascontiguousarray(x).reshape(-1), result.reshape(-1)
    for start in range(0, x.size, _PIECE_ELEMENTS):
        part = slice(start, start + _PIECE_ELEMENTS)
        _into(out[part], quantized(flat[part]))
    return result


def _check_scalar(low: Array, high: Array, axis: int) -> None:
    if axis != -1 or np.ndim(low) or np.ndim(high):
        raise errors.UnimplementedError(None, None, "Quantization by axis is not supported: use axis = -1.")


def _check_ranges(op: Operation) -> None:
    """The limits are numbers, or vectors with one number for each part along the axis."""
    per_part = op._attrs["axis"] != -1
    for tensor in op._inputs[1:]:
        if tensor.shape.rank not in (None, int(per_part)):
            raise ValueError(f"Shape must be rank {int(per_part)} but is rank {tensor.shape.rank}")


def _quantized_shapes(op: Operation) -> list[TensorShape]:
    _check_ranges(op)
    return [op._inputs[0].shape, SCALAR, SCALAR]


@op(
    "QuantizeV2",
    "input: float, min_range: float, max_range: float -> output: T, output_min: float, output_max: float",
    f"T: {_QUANTIZED}; {_MODES}; round_mode: string(HALF_AWAY_FROM_ZERO|HALF_TO_EVEN) = 'HALF_AWAY_FROM_ZERO'; "
    "narrow_range: bool = false; axis: int = -1; ensure_minimum_range: float = 0.01",
    shape=_quantized_shapes,
    host=True,
)
def _quantize(
    ctx: HostContext, x: Array, low: Array, high: Array, *, op: Operation
) -> tuple[Array, Array, Array]:
    attrs = op._attrs
    _check_scalar(low, high, attrs["axis"])
    x, given_low, given_high = np.asarray(x), np.float32(low), np.float32(high)
    if given_low > given_high:
        raise errors.invalid(f"min_range must be less than or equal to max_range: {given_low} > {given_high}")
    bottom = np.minimum(np.float32(0), given_low)
    least = np.maximum(np.float32(1), np.maximum(abs(given_low), abs(given_high)))
    least = least * np.float32(attrs["ensure_minimum_range"])
    top = np.maximum(np.float32(0), np.maximum(given_high, bottom + least))
    kind: dtypes.DType = attrs["T"]
    lowest, highest, half = _limits(kind)
    if attrs["mode"] == b"SCALED":
        to_even = attrs["round_mode"] == b"HALF_TO_EVEN"
        first = lowest + np.float32(1) if attrs["narrow_range"] and lowest < 0 else lowest
        scale = _scaled(first, highest, bottom, top)
        bottom, top = first / scale, highest / scale

        def quantized(part: Array) -> Array:
            part = np.clip(part, bottom, top)
            return _rounded(np.multiply(part, scale, out=part), to_even)

    elif attrs["mode"] == b"MIN_COMBINED":
        scale = (highest - lowest) / (top - bottom)

        def quantized(part: Array) -> Array:
            if kind.size > 2:
                part = np.clip(part, bottom, top)
            part = (part - bottom if bottom else part) * scale
            if half:
                return _rounded(np.subtract(part, half, out=part))
            # Rounds half up: `_into` clips negative values to zero and cuts off the rest behind the point.
            result: Array = np.add(part, np.float32(0.5), out=part)
            return result

    else:
        steps = 2.0 ** (8 * kind.size)
        scale = np.float32(steps / (float(top - bottom) * (steps / (steps - 1))))
        start = _rounded(np.asarray(bottom * scale))

        def quantized(part: Array) -> Array:
            return _rounded(part * scale) - start + lowest

    return _in_pieces(x, kind, quantized), bottom, top


def _scaled(first: np.float32, last: np.float32, bottom: np.float32, top: np.float32) -> np.float32:
    """The factor by which the range fits between the first and the last value."""
    largest = np.finfo(np.float32).max
    by_bottom = first / bottom if first * bottom > 0 else largest
    by_top = last / top if last * top > 0 else largest
    return np.float32(min(by_bottom, by_top))


def _dequantized_shape(op: Operation) -> TensorShape:
    _check_ranges(op)
    return op._inputs[0].shape


@op(
    "Dequantize",
    "input: T, min_range: float, max_range: float -> output: dtype",
    f"T: {_QUANTIZED}; {_MODES}; narrow_range: bool = false; axis: int = -1; dtype: {{bfloat16, float}} = float",
    shape=_dequantized_shape,
    host=True,
)
def _dequantize(ctx: HostContext, x: Array, low: Array, high: Array, *, op: Operation) -> Array:
    attrs = op._attrs
    _check_scalar(low, high, attrs["axis"])
    bottom, top = np.float32(low), np.float32(high)
    lowest, highest, half = _limits(attrs["T"])
    x = np.asarray(x).astype(np.float32)
    if attrs["mode"] == b"SCALED":
        first = lowest + np.float32(1) if attrs["narrow_range"] and lowest < 0 else lowest
        values = x * (top / highest if lowest == 0 else np.maximum(bottom / first, top / highest))
    else:
        scale = (top - bottom) / (highest - lowest)
        if attrs["mode"] == b"MIN_COMBINED":
            values = (x + half) * scale + bottom
        else:
            start = _rounded(np.asarray(bottom / scale)) * scale if scale else bottom
            values = start + (x - lowest) * scale
    return values.astype(attrs["dtype"].np_dtype)


not_differentiable("QuantizeV2", "Dequantize")


# -- there and back at once --------------------------------------------------------------------------

_X = np.array([[-7.0, -1.13, -0.52], [0.21, 1.72, 9.31]], np.float32)
_LOW, _HIGH = np.float32(-3.0), np.float32(5.0)


def _there_and_back(
    xp: ArrayModule,
    x: Array,
    low: Array,
    high: Array,
    num_bits: int,
    signed: bool,
    given: bool,
    up: bool,
    narrow: bool,
    axis: int,
) -> Array:
    number = x.dtype.type
    if x.size == 0:
        return x
    if not given:
        others = tuple(i for i in range(x.ndim) if axis == -1 or i != axis)
        low, high = xp.min(x, axis=others, keepdims=True), xp.max(x, axis=others, keepdims=True)
    elif axis != -1:
        dims = [1] * x.ndim
        dims[axis] = -1
        low, high = low.reshape(dims), high.reshape(dims)
    first = -(1 << (num_bits - 1)) + int(narrow) if signed else 0
    last = (1 << (num_bits - 1)) - 1 if signed else (1 << num_bits) - 1
    largest = np.finfo(np.float32).max.astype(x.dtype)
    safe_low, safe_high = xp.where(low == 0, number(1), low), xp.where(high == 0, number(1), high)
    by_low = xp.where(first * low > 0, number(first) / safe_low, largest)
    by_high = xp.where(last * high > 0, number(last) / safe_high, largest)
    scale = xp.minimum(by_low, by_high)
    top = xp.where(by_low < by_high, number(last) / scale, high)
    bottom = xp.where(by_low < by_high, low, number(first) / scale)
    wide = xp.clip(x, bottom, top) * scale if given else x * scale
    steps = xp.floor(wide + number(0.5)) if up else xp.round(wide)
    return (steps / scale).astype(x.dtype)


def _like_input(op: Operation) -> TensorShape:
    """The input's shape; the limits are one number each, or one for each place along `axis`."""
    x, axis = op._inputs[0].shape, op._attrs["axis"]
    if axis < -1:
        raise ValueError(f"axis should be at least -1, got {axis}")
    limits = op._inputs[2].shape.merge_with(of_rank(op._inputs[1].shape, 0 if axis == -1 else 1))
    if axis != -1 and of_rank_at_least(x, axis + 1)._d is not None:
        same_dimension(limits.as_list()[0], x.as_list()[axis])
    return x


_BITS = "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; "


@op(
    "QuantizeAndDequantizeV2",
    "input: T, input_min: T, input_max: T -> output: T",
    f"{_BITS}T: floating; round_mode: string(HALF_TO_EVEN|HALF_UP) = 'HALF_TO_EVEN'; narrow_range: bool = false; "
    "axis: int = -1",
    shape=_like_input,
    examples=[
        case(_X, _LOW, _HIGH, grad=False),
        case(_X, _LOW, _HIGH, range_given=True, num_bits=4, grad=False),
        case(_X, _LOW, _HIGH, range_given=True, signed_input=False, round_mode="HALF_UP", grad=False),
        case(_X, _LOW, _HIGH, narrow_range=True, num_bits=3, grad=False),
        case(_X.astype(np.float64), np.zeros(3), np.ones(3), axis=1, grad=False),
    ],
)
def _quantize_and_dequantize(
    xp: ArrayModule,
    x: Array,
    low: Array,
    high: Array,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: bytes,
    narrow_range: bool,
    axis: int,
    check: Check,
) -> Array:
    low_bits = 1 if signed_input else 0
    if not low_bits < num_bits < 63:
        raise errors.invalid(f"num_bits is out of range: {num_bits}")
    if range_given:
        check((low <= high).all(), lambda: f"Invalid range: input_min {low} > input_max {high}")
    up = round_mode == b"HALF_UP"
    return _there_and_back(xp, x, low, high, num_bits, signed_input, range_given, up, narrow_range, axis)


@gradient("QuantizeAndDequantizeV2")
def _pass_through(op: Operation, dy: Tensor) -> tuple[Tensor | None, ...]:
    return dy, None, None


@op(
    "QuantizeAndDequantizeV3",
    "input: T, input_min: T, input_max: T, num_bits: int32[0] -> output: T",
    "signed_input: bool = true; range_given: bool = true; T: floating; narrow_range: bool = false; axis: int = -1",
    shape=_like_input,
    static=["num_bits"],
    examples=[case(_X, _LOW, _HIGH, np.int32(6), grad=False)],
)
def _quantize_and_dequantize_v3(
    xp: ArrayModule,
    x: Array,
    low: Array,
    high: Array,
    num_bits: Array,
    *,
    signed_input: bool,
    range_given: bool,
    narrow_range: bool,
    axis: int,
) -> Array:
    return _there_and_back(
        xp, x, low, high, int(num_bits), signed_input, range_given, False, narrow_range, axis
    )


@gradient("QuantizeAndDequantizeV3")
def _pass_through_v3(op: Operation, dy: Tensor) -> tuple[Tensor | None, ...]:
    return dy, None, None, None


# -- names -------------------------------------------------------------------------------------------


quantize = op_function(
    "QuantizeV2",
    "input, min_range, max_range, T, mode='MIN_COMBINED', round_mode='HALF_AWAY_FROM_ZERO', name=None",
    "quantization.quantize quantize",
    "The values as integers of type `T` over a range, and the range they really stand for.",
)


@export("quantize_v2")
def quantize_v2(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    T: DTypeLike,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
) -> list[Tensor]:
    """The old name of `tf.quantization.quantize`."""
    quantized: list[Tensor] = quantize(input, min_range, max_range, T, mode, round_mode, name)
    return quantized


@export("quantization.dequantize", "dequantize")
def dequantize(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
) -> Tensor:
    """The floats that quantized values over a range stand for."""
    return apply("Dequantize", input, min_range, max_range, mode=mode, name=name)


@export("quantization.quantize_and_dequantize")
def quantize_and_dequantize(
    input: TensorLike,
    input_min: TensorLike,
    input_max: TensorLike,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
) -> Tensor:
    """The floats that come back after quantizing; gradients flow as if nothing had happened."""
    options = {"signed_input": signed_input, "num_bits": num_bits, "range_given": range_given}
    with name_scope(name, "quantize_and_dequantize", [input]) as scope:
        return apply(
            "QuantizeAndDequantizeV2",
            *(input, input_min, input_max),
            **options,
            round_mode=round_mode,
            narrow_range=narrow_range,
            name=scope,
        )
