"""Arithmetic on two tensors: sums, products, quotients, remainders, powers, extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import trigonometry as angles
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.elementwise import (
    COMPLEX,
    INT_ROW,
    INTS,
    POSITIVE,
    REAL,
    ROW,
    binary,
    conj,
    conjugate,
    constant_like,
    is_whole,
    unbroadcast,
    where,
)
from tensorfleet.ops.public_functions import function
from tensorfleet.ops.samples import case

_PAIRS = [case(REAL, ROW), case(POSITIVE, POSITIVE + 1), case(COMPLEX, COMPLEX[:1]), case(INTS, INT_ROW)]
_REAL_PAIRS = [case(REAL, ROW), case(POSITIVE, POSITIVE + 1), case(INTS, INT_ROW)]
_FLOAT_PAIRS = [case(REAL, ROW), case(POSITIVE, POSITIVE + 1), case(REAL[:0], ROW)]


@binary(
    "Add",
    "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
    examples=_PAIRS,
)
def _add(xp: ArrayModule, x: Array, y: Array) -> Array:
    return xp.add(x, y)


@binary("AddV2", examples=[*_PAIRS, case(REAL[0, 0], REAL), case(REAL[:, :1], ROW)])
def _add_v2(xp: ArrayModule, x: Array, y: Array) -> Array:
    return xp.add(x, y)


@gradient("Add", "AddV2")
def _add_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    return unbroadcast(x, y, dy, dy)


@export("math.add", "add")
def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x + y`, element by element, with broadcasting; joins strings."""
    return apply("Add", x, y, name=name or "Add")


def add_op(x: Tensor, y: Tensor, name: str) -> Tensor:
    """The sum by AddV2, or for strings by Add, the only one of the two that takes them."""
    return apply("Add" if _is_text(x) or _is_text(y) else "AddV2", x, y, name=name)


def _is_text(value: Tensor) -> bool:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, (str, bytes)):
        return True
    return isinstance(value, Tensor) and value.dtype.base_dtype == dtypes.string


binary("Sub", examples=_PAIRS)(lambda xp, x, y: xp.subtract(x, y))


@gradient("Sub")
def _sub_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    return unbroadcast(x, y, dy, apply("Neg", dy))


@binary("Mul", examples=_PAIRS)
def _mul(xp: ArrayModule, x: Array, y: Array) -> Array:
    return xp.multiply(x, y)


@gradient("Mul")
def _mul_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    return unbroadcast(x, y, apply("Mul", dy, conj(y)), apply("Mul", conj(x), dy))


# -- quotients ---------------------------------------------------------------------------------------


def _nonzero(xp: ArrayModule, x: Array, y: Array, check: Check) -> Array:
    """An integer divisor, reported when something is divided by zero and then made harmless."""
    if np.size(x):
        check(xp.all(y != 0), lambda: "Integer division by zero")
    # A traced program goes on after the failed check, so it needs a divisor all the same.
    return xp.where(y == 0, 1, y).astype(y.dtype)


def _toward_zero(xp: ArrayModule, x: Array, y: Array) -> Array:
    """Integer division as C does it."""
    q = xp.floor_divide(x, y)
    inexact = xp.multiply(q, y) != x
    return xp.where(inexact & ((x < 0) != (y < 0)), q + 1, q).astype(x.dtype)


def _c_division(xp: ArrayModule, x: Array, y: Array, check: Check) -> Array:
    if is_whole(x):
        return _toward_zero(xp, x, _nonzero(xp, x, y, check))
    return xp.divide(x, y)


@binary("Div", examples=_PAIRS)
def _div(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
    return _c_division(xp, x, y, check)


@binary("RealDiv", examples=_PAIRS[:3])
def _real_div(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
    return _c_division(xp, x, y, check)


@gradient("RealDiv", "Div")
def _real_div_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = (conj(t) for t in op.inputs)
    kind = op.type
    gy = dy * apply_any(kind, apply_any(kind, apply("Neg", x), y), y)
    return unbroadcast(op.inputs[0], op.inputs[1], apply_any(kind, dy, y), gy)


@binary(
    "FloorDiv",
    examples=[case(REAL, ROW, grad=False), case(INTS, INT_ROW), case(INTS.astype(np.uint8), np.uint8(3))],
)
def _floor_div(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
    if not is_whole(x):
        return xp.floor(xp.divide(x, y))
    y = _nonzero(xp, x, y, check)
    if is_numpy(xp) or x.dtype.itemsize > 4:
        return xp.floor_divide(x, y)
    # Doubles hold these exactly, and processors divide several at once. The one quotient that is too large wraps around.
    quotient = xp.floor(xp.divide(x.astype(np.float64), y.astype(np.float64)))
    return quotient.astype(np.int64).astype(x.dtype)


@binary("TruncateDiv", examples=[case(INTS, INT_ROW), case(REAL, ROW, grad=False)])
def _truncate_div(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
    quotient = _c_division(xp, x, y, check)
    return quotient if is_whole(x) else xp.trunc(quotient)


not_differentiable("FloorDiv", "TruncateDiv")

# Python's `/` turns integers into floats first: small ones fit float32, the rest need double.
_TRUE_DIVISION = {d: dtypes.float32 for d in (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16)}
_TRUE_DIVISION |= {d: dtypes.float64 for d in (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)}


@export("math.truediv", "truediv")
def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x / y` as in Python 3: integers give floating point."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x = to_tensor(x, name="x")
        y = to_tensor(y, name="y", preferred=x.dtype.base_dtype)
        if x.dtype.base_dtype != y.dtype.base_dtype:
            raise TypeError(
                f"x and y must have the same dtype, got {x.dtype.base_dtype!r} != {y.dtype.base_dtype!r}."
            )
        wider = _TRUE_DIVISION.get(x.dtype.base_dtype)
        if wider is not None:
            x, y = apply("Cast", x, DstT=wider), apply("Cast", y, DstT=wider)
        elif not (x.dtype.is_floating or x.dtype.is_complex):
            raise TypeError(f"Invalid dtype {x.dtype!r} in __truediv__. Cast the operands to a number first.")
        return apply("RealDiv", x, y, name=scope)


@export("math.divide", "divide")
def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """`x / y` as in Python 3."""
    if name is not None:
        return truediv(x, y, name)
    if not (hasattr(x, "dtype") or hasattr(y, "dtype")):
        x = to_tensor(x)
    return x / y


@export("div")
def div(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x / y` as in Python 2: integers give the rounded-down integer."""
    with name_scope(name, "div", [x, y]) as scope:
        x = to_tensor(x, name="x")
        y = to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        exact = x.dtype.is_floating or x.dtype.is_complex
        return apply("RealDiv" if exact else "FloorDiv", x, y, name=scope)


@export("math.floordiv", "floordiv")
def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x // y`: the quotient rounded down."""
    return apply("FloorDiv", x, y, name=name or "floordiv")


@binary("DivNoNan", "inexact", examples=_FLOAT_PAIRS)
def _div_no_nan(xp: ArrayModule, x: Array, y: Array) -> Array:
    zero = y == 0
    return xp.where(zero, 0, xp.divide(x, xp.where(zero, 1, y).astype(y.dtype))).astype(x.dtype)


@gradient("DivNoNan")
def _div_no_nan_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = (conj(t) for t in op.inputs)
    gy = dy * apply("DivNoNan", apply("DivNoNan", apply("Neg", x), y), y)
    return unbroadcast(op.inputs[0], op.inputs[1], apply("DivNoNan", dy, y), gy)


@export("math.divide_no_nan", "div_no_nan")
def div_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x / y`, and 0 where `y` is 0."""
    return apply("DivNoNan", x, y, name=name or "div_no_nan")


@export("math.reciprocal_no_nan")
def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """`1 / x`, and 0 where `x` is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = to_tensor(x, name="x")
        one = to_tensor(1, x.dtype.base_dtype, name="one")
        return apply("DivNoNan", one, x, name=scope)


@binary("MulNoNan", "inexact", examples=_FLOAT_PAIRS)
def _mul_no_nan(xp: ArrayModule, x: Array, y: Array) -> Array:
    return xp.where(y == 0, 0, xp.multiply(x, y)).astype(x.dtype)


@gradient("MulNoNan")
def _mul_no_nan_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    return unbroadcast(x, y, apply("MulNoNan", dy, y), apply("MulNoNan", x, dy))


@export("math.multiply_no_nan")
def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x * y`, and 0 where `y` is 0, even if `x` is infinite or NaN."""
    return apply("MulNoNan", x, y, name=name or "multiply_no_nan")


# -- remainders --------------------------------------------------------------------------------------

_REMAINDERS = [case(INTS, INT_ROW), case(REAL, ROW[:1])]


@binary("FloorMod", "real", examples=_REMAINDERS)
def _floor_mod(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
    return xp.mod(x, _nonzero(xp, x, y, check) if is_whole(y) else y)


@gradient("FloorMod")
def _floor_mod_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    return unbroadcast(x, y, dy, dy * apply("Neg", apply("FloorDiv", x, y)))


def _c_remainder(xp: ArrayModule, x: Array, y: Array, check: Check) -> Array:
    return xp.fmod(x, _nonzero(xp, x, y, check) if is_whole(y) else y)


@binary("Mod", "{int32, int64, half, bfloat16, float, double}", examples=_REMAINDERS)
def _mod(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
    return _c_remainder(xp, x, y, check)


@binary("TruncateMod", "{int32, int64, bfloat16, half, float, double}", examples=_REMAINDERS)
def _truncate_mod(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
    return _c_remainder(xp, x, y, check)


@gradient("TruncateMod", "Mod")
def _truncate_mod_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    return unbroadcast(x, y, dy, dy * apply("Neg", apply("TruncateDiv", x, y)))


@export("math.floormod", "math.mod", "floormod", "mod")
def floormod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x % y` as in Python: the result has the sign of `y`."""
    return apply("FloorMod", x, y, name=name)


# -- powers, extremes and the rest -------------------------------------------------------------------


@binary(
    "Pow",
    "{bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    examples=[case(POSITIVE, POSITIVE - 0.25), case(INTS, np.int32(3)), case(POSITIVE[:, :1], POSITIVE[0])],
)
def _pow(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
    if is_whole(y):
        check(xp.all(y >= 0), lambda: "Integers to negative integer powers are not allowed")
        y = xp.where(y < 0, 0, y).astype(y.dtype)
    return xp.power(x, y)


@gradient("Pow")
def _pow_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    cx, cy, z = conj(x), conj(y), conj(op.outputs[0])
    gx = dy * cy * apply("Pow", cx, cy - constant_like(1, cy))
    # log(x) only where it is real; elsewhere the power does not move smoothly with y.
    zero = constant_like(0, cx)
    defined = apply("NotEqual", cx, zero) if x.dtype.is_complex else apply("Greater", cx, zero)
    log_x = where(defined, apply("Log", where(defined, cx, 1)), 0)
    return unbroadcast(x, y, gx, dy * z * log_x)


@binary("Maximum", "real", examples=_REAL_PAIRS)
def _maximum(xp: ArrayModule, x: Array, y: Array) -> Array:
    return xp.maximum(x, y)


@binary("Minimum", "real", examples=_REAL_PAIRS)
def _minimum(xp: ArrayModule, x: Array, y: Array) -> Array:
    return xp.minimum(x, y)


@gradient("Maximum", "Minimum")
def _extreme_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    first = apply("GreaterEqual" if op.type == "Maximum" else "LessEqual", x, y)
    return unbroadcast(x, y, where(first, dy, 0), where(first, 0, dy))


@binary(
    "SquaredDifference",
    "{bfloat16, half, float, double, int32, int64, complex64, complex128}",
    examples=_PAIRS,
)
def _squared_difference(xp: ArrayModule, x: Array, y: Array) -> Array:
    d = xp.subtract(x, y)
    return d * conjugate(xp, d)


@gradient("SquaredDifference")
def _squared_difference_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    g = apply("Mul", constant_like(2, dy) * dy, x - y)
    return unbroadcast(x, y, g, apply("Neg", g))


@export("math.squared_difference", "squared_difference")
def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`(x - y)(x - y)`, element by element."""
    return apply("SquaredDifference", x, y, name=name)


@binary("Atan2", "floating", signature="y: T, x: T -> z: T", examples=_FLOAT_PAIRS)
def _atan2(xp: ArrayModule, y: Array, x: Array) -> Array:
    return xp.arctan2(y, x) if is_numpy(xp) or x.dtype != np.float32 else angles.arctan2(xp, y, x)


@gradient("Atan2")
def _atan2_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    y, x = op.inputs
    scale = dy / (apply("Square", x) + apply("Square", y))
    return unbroadcast(y, x, x * scale, apply("Neg", y) * scale)


@binary("Xlogy", "inexact", examples=[case(POSITIVE, POSITIVE + 1), case(REAL, np.float32(2.5))])
def _xlogy(xp: ArrayModule, x: Array, y: Array) -> Array:
    zero = x == 0
    return xp.where(zero, 0, xp.multiply(x, xp.log(xp.where(zero, 1, y).astype(y.dtype)))).astype(x.dtype)


@gradient("Xlogy")
def _xlogy_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    nonzero = apply("Cast", apply("NotEqual", x, constant_like(0, x)), DstT=x.dtype.base_dtype)
    return unbroadcast(x, y, dy * apply("Xlogy", nonzero, y), dy * apply("Xdivy", x, y))


@export("math.xlogy")
def xlogy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x * log(y)`, and 0 where `x` is 0."""
    with name_scope(name, "xlogy", [x]):
        return apply("Xlogy", x, y)


@binary("Xdivy", "inexact", examples=[case(REAL, ROW), case(POSITIVE, POSITIVE + 1)])
def _xdivy(xp: ArrayModule, x: Array, y: Array) -> Array:
    zero = x == 0
    return xp.where(zero, 0, xp.divide(x, xp.where(zero, 1, y).astype(y.dtype))).astype(x.dtype)


@gradient("Xdivy")
def _xdivy_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    nonzero = apply("Cast", apply("NotEqual", x, constant_like(0, x)), DstT=x.dtype.base_dtype)
    gy = dy * apply("Xdivy", apply("Neg", x), apply("Square", y))
    return unbroadcast(x, y, dy * apply("Xdivy", nonzero, y), gy)


@export("math.xdivy")
def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x / y`, and 0 where `x` is 0."""
    with name_scope(name, "xdivy", [x]):
        return apply("Xdivy", x, y)


# -- public functions of one op ------------------------------------------------------------------

subtract = function("Sub", "x y", "math.subtract subtract", "`x - y`, element by element, with broadcasting.")
multiply = function("Mul", "x y", "math.multiply multiply", "`x * y`, element by element, with broadcasting.")
floor_div = function("FloorDiv", "x y", "floor_div", "The quotient rounded down.")
realdiv = function("RealDiv", "x y", "realdiv", "The quotient of floating-point tensors.")
truncatediv = function("TruncateDiv", "x y", "truncatediv", "The quotient rounded toward zero, as in C.")
truncatemod = function(
    "TruncateMod", "x y", "truncatemod", "The remainder as in C: the result has the sign of `x`."
)
pow = function("Pow", "x y", "math.pow pow", "`x` to the power `y`, element by element.")
maximum = function("Maximum", "x y", "math.maximum maximum", "The larger of `x` and `y`, element by element.")
minimum = function(
    "Minimum", "x y", "math.minimum minimum", "The smaller of `x` and `y`, element by element."
)
atan2 = function("Atan2", "y x", "math.atan2 atan2", "The angle of the point (x, y), between -pi and pi.")
