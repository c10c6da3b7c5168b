"""Arithmetic on quantized tensors, and narrower integers for wide ones, as quantized graphs have them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR, broadcast, shape_given_by
from tensorfleet.ops.quantized.nn import _floats, _integers, _step
from tensorfleet.ops.quantized.quantize import _QUANTIZED, Limit, Quantized, _rounded

_LIMITS = "min_{0}: float, max_{0}: float"
_GIVEN = "min_{0}: float[0], max_{0}: float[0]"


def _reach(one: np.float32) -> tuple[np.float32, np.float32]:
    """The range that 32 bits stand for whose step stands for `one`."""
    info = np.iinfo(np.int32)
    return np.float32(float(one) * float(info.min)), np.float32(float(one) * float(info.max))


def _with_range(shape: Callable[[Operation], TensorShape]) -> Callable[[Operation], list[TensorShape]]:
    return lambda op: [shape(op), SCALAR, SCALAR]


def _need_32_bits(op: Operation, attr: str) -> None:
    kind: dtypes.DType = op._attrs[attr]
    if kind != dtypes.qint32:
        raise errors.invalid(f"{op.type} gives qint32, not {kind.name}; leave {attr} out.")


def _centred(x: Array, low: Array, high: Array, kind: dtypes.DType) -> Array:
    """The integers, moved so that 0 stands for the float 0."""
    return x.astype(np.int64) - np.int64(_integers(0.0, low, high, kind))


def _product_shape(op: Operation) -> TensorShape:
    a, b = (t.shape.with_rank(2).as_list() for t in op._inputs[:2])
    a = a[::-1] if op._attrs["transpose_a"] else a
    b = b[::-1] if op._attrs["transpose_b"] else b
    if None not in (a[1], b[0]) and a[1] != b[0]:
        raise ValueError(f"Dimensions must be equal, but are {a[1]} and {b[0]}")
    return TensorShape([a[0], b[1]])


@op(
    "QuantizedMatMul",
    f"a: T1, b: T2, {_GIVEN.format('a')}, {_GIVEN.format('b')} -> out: Toutput, {_LIMITS.format('out')}",
    f"T1: {_QUANTIZED}; T2: {_QUANTIZED}; Toutput: {_QUANTIZED} = qint32; transpose_a: bool = false; "
    f"transpose_b: bool = false; Tactivation: {_QUANTIZED} = quint8",
    shape=_with_range(_product_shape),
    host=True,
)
def _mat_mul(
    ctx: HostContext,
    a: Array,
    b: Array,
    low_a: Array,
    high_a: Array,
    low_b: Array,
    high_b: Array,
    *,
    op: Operation,
) -> Quantized:
    _need_32_bits(op, "Toutput")
    x, y = _centred(a, low_a, high_a, op._attrs["T1"]), _centred(b, low_b, high_b, op._attrs["T2"])
    product = (x.T if op._attrs["transpose_a"] else x) @ (y.T if op._attrs["transpose_b"] else y)
    reach = _reach(_step(low_a, high_a, a.dtype) * _step(low_b, high_b, b.dtype))
    return (product.astype(dtypes.qint32.np_dtype), *reach)


_PAIR = f"x: T1, y: T2, {_GIVEN.format('x')}, {_GIVEN.format('y')} -> z: Toutput, {_LIMITS.format('z')}"
_PAIR_TYPES = f"T1: {_QUANTIZED}; T2: {_QUANTIZED}; Toutput: {_QUANTIZED} = qint32"


@op("QuantizedMul", _PAIR, _PAIR_TYPES, shape=_with_range(broadcast), host=True)
def _mul(
    ctx: HostContext,
    x: Array,
    y: Array,
    low_x: Array,
    high_x: Array,
    low_y: Array,
    high_y: Array,
    *,
    op: Operation,
) -> Quantized:
    _need_32_bits(op, "Toutput")
    a, b = _centred(x, low_x, high_x, op._attrs["T1"]), _centred(y, low_y, high_y, op._attrs["T2"])
    reach = _reach(_step(low_x, high_x, x.dtype) * _step(low_y, high_y, y.dtype))
    return ((a * b).astype(dtypes.qint32.np_dtype), *reach)


def _in_32_bits(x: Array, given: tuple[Limit, Limit], largest: np.float32) -> Array:
    """The same floats in steps of a range from -largest to largest."""
    scale = float((1 << 32) - 1) / (2.0 * float(largest))
    steps = _rounded(_floats(np.asarray(x), *given).astype(np.float64) * scale)
    return steps - _rounded(np.float64(-largest) * scale) - 2.0**31


def _range_of_sum(x_range: tuple[Array, Array], y_range: tuple[Array, Array], room: int) -> np.float32:
    """The largest number of a sum in 32 bits that has room for so many bits more."""
    return np.float32(max(abs(np.float32(v)) for v in (*x_range, *y_range)) * np.float32(1 << room))


def _on_line(x: Array, given: tuple[Limit, Limit], largest: np.float32) -> Array:
    """As `_in_32_bits`, from what 0 and 1 become: integers all the way."""
    zero, one = (_in_32_bits(np.array(v, x.dtype), given, largest) for v in (0, 1))
    result: Array = x.astype(np.float64) * (one - zero) + zero
    return result


@op("QuantizedAdd", _PAIR, _PAIR_TYPES, shape=_with_range(broadcast), host=True)
def _add(
    ctx: HostContext,
    x: Array,
    y: Array,
    low_x: Array,
    high_x: Array,
    low_y: Array,
    high_y: Array,
    *,
    op: Operation,
) -> Quantized:
    _need_32_bits(op, "Toutput")
    ranges = (low_x, high_x), (low_y, high_y)
    largest = _range_of_sum(*ranges, 14)  # the bits that TensorFlow's kernel leaves
    total = _on_line(x, ranges[0], largest) + _on_line(y, ranges[1], largest)
    return total.astype(dtypes.qint32.np_dtype), -largest, largest


@op(
    "QuantizedBiasAdd",
    f"input: T1, bias: T2, {_GIVEN.format('input')}, {_GIVEN.format('bias')} -> "
    f"output: out_type, {_LIMITS.format('out')}",
    f"T1: {_QUANTIZED}; T2: {_QUANTIZED}; out_type: {_QUANTIZED}",
    shape=_with_range(lambda op: op._inputs[0].shape),
    host=True,
)
def _bias_add(
    ctx: HostContext,
    x: Array,
    bias: Array,
    low_x: Array,
    high_x: Array,
    low_b: Array,
    high_b: Array,
    *,
    op: Operation,
) -> Quantized:
    _need_32_bits(op, "out_type")
    if bias.ndim != 1 or x.shape[-1:] != bias.shape:
        raise errors.invalid(
            f"Must provide as many biases as the last dimension of the input tensor: {bias.shape} vs. {x.shape}"
        )
    ranges = (low_x, high_x), (low_b, high_b)
    largest = _range_of_sum(*ranges, 17)  # the bits that TensorFlow's kernel leaves
    total = _in_32_bits(x, ranges[0], largest) + _in_32_bits(bias, ranges[1], largest)
    return total.astype(dtypes.qint32.np_dtype), -largest, largest


@op(
    "QuantizedReshape",
    "tensor: T, shape: Tshape, input_min: float[0], input_max: float[0] -> output: T, output_min: float, output_max: float",
    "T: type; Tshape: index = int32",
    shape=_with_range(lambda op: shape_given_by(op, 1)),
    host=True,
)
def _reshape(ctx: HostContext, x: Array, shape: Array, low: Array, high: Array) -> Quantized:
    return x.reshape(tuple(shape)), np.float32(low), np.float32(high)


_NARROW = "input: Tinput, input_min: float[0], input_max: float[0]"


def _used_range(x: Array, low: Array, high: Array) -> tuple[np.float32, np.float32]:
    """The range of the floats that are there; zero belongs to it."""
    if not x.size:
        return np.float32(0), np.float32(0)
    info = np.iinfo(x.dtype)
    step = (float(high) - float(low)) / float(int(info.max) - int(info.min))
    start = (
        float(_rounded(np.asarray(float(low) / np.float32(step)))) * float(np.float32(step))
        if step
        else float(low)
    )
    limits = [np.float32(start + (float(v) - float(info.min)) * step) for v in (x.min(), x.max())]
    return np.minimum(np.float32(0), limits[0]), np.maximum(np.float32(0), limits[1])


@op(
    "RequantizationRange",
    f"{_NARROW} -> output_min: float, output_max: float",
    f"Tinput: {_QUANTIZED}",
    shape=lambda op: [SCALAR, SCALAR],
    host=True,
)
def _requantization_range(
    ctx: HostContext, x: Array, low: Array, high: Array
) -> tuple[np.float32, np.float32]:
    return _used_range(x, low, high)


def _narrowed(
    x: Array, low: Array, high: Array, wanted: tuple[np.float32, np.float32], kind: dtypes.DType
) -> Quantized:
    if (x.dtype, kind) == (dtypes.qint32.np_dtype, dtypes.quint8):
        return (_in_8_bits(x, low, high, *wanted), *wanted)
    first, last = wanted
    return _integers(_floats(np.asarray(x), low, high), first, last, kind), first, last


def _in_8_bits(x: Array, low: Array, high: Array, first: np.float32, last: np.float32) -> Array:
    """Bytes for 32 bits, by integers with 16 bits behind the point, as TensorFlow's kernels do it."""
    given, wanted = np.float32(high) - np.float32(low), np.float32(last) - np.float32(first)
    if wanted == 0:
        return np.zeros(x.shape, dtypes.quint8.np_dtype)
    one = 255.0 * (1 << 16)
    middle = (np.float32(low) + np.float32(high)) / np.float32(2)
    scale = int(one * float(given) / float(wanted))
    start = int(middle * np.float32(255.0 / float(wanted)) * np.float32(1 << 16))
    fixed = (
        ((x.astype(np.int64) * scale) >> 32) + start - int((1 << 16) * (float(first) * 255.0) / float(wanted))
    )
    return np.clip((fixed + (1 << 15)) >> 16, 0, 255).astype(dtypes.quint8.np_dtype)


@op(
    "Requantize",
    f"{_NARROW}, requested_output_min: float[0], requested_output_max: float[0] -> "
    "output: out_type, output_min: float, output_max: float",
    f"Tinput: {_QUANTIZED}; out_type: {_QUANTIZED}",
    shape=_with_range(lambda op: op._inputs[0].shape),
    host=True,
)
def _requantize(
    ctx: HostContext, x: Array, low: Array, high: Array, first: Array, last: Array, *, out_type: dtypes.DType
) -> Quantized:
    if first > 0:
        raise errors.invalid(f"requested_output_min must be <= 0, but got {first}")
    if last < first:
        raise errors.invalid(
            f"requested_output_max must be >= requested_output_min, but got {last} and {first}"
        )
    return _narrowed(x, low, high, (np.float32(first), np.float32(last)), out_type)


@op(
    "QuantizeDownAndShrinkRange",
    f"{_NARROW} -> output: out_type, output_min: float, output_max: float",
    f"Tinput: {_QUANTIZED}; out_type: {_QUANTIZED}",
    shape=_with_range(lambda op: op._inputs[0].shape),
    host=True,
)
def _shrink(ctx: HostContext, x: Array, low: Array, high: Array, *, out_type: dtypes.DType) -> Quantized:
    return _narrowed(x, low, high, _used_range(x, low, high), out_type)


not_differentiable("QuantizedMatMul", "QuantizedMul", "QuantizedAdd", "QuantizedBiasAdd", "QuantizedReshape")
not_differentiable("RequantizationRange", "Requantize", "QuantizeDownAndShrinkRange")
