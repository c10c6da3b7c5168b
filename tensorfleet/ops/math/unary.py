"""Functions of one number: signs, rounding, powers, exponentials and logarithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.elementwise import (
    COMPLEX,
    INTS,
    POSITIVE,
    REAL,
    conj,
    conjugate,
    constant_like,
    on_values,
    unary,
)
from tensorfleet.ops.public_functions import function
from tensorfleet.ops.samples import case

_SIGNED = "{bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"
_SIGNED_REAL = "{bfloat16, half, float, double, int8, int16, int32, int64}"
_SAMPLES = [case(REAL), case(INTS), case(COMPLEX)]
_SMOOTH = [case(REAL), case(POSITIVE), case(COMPLEX), case(np.float32(0.5))]
_ABOVE_ZERO = [case(POSITIVE.astype(np.float32)), case(POSITIVE), case(COMPLEX), case(POSITIVE[:0])]
_KINKED = [case(REAL, grad=False), case(POSITIVE, grad=False)]


unary("Neg", _SIGNED, examples=_SAMPLES)(lambda xp, x: xp.negative(x))
gradient("Neg")(lambda op, dy: apply("Neg", dy))


@unary("Abs", _SIGNED_REAL, examples=[case(REAL), case(INTS)])
def _abs(xp: ArrayModule, x: Array) -> Array:
    return xp.abs(x)


gradient("Abs")(lambda op, dy: dy * apply("Sign", op.inputs[0]))


@op(
    "ComplexAbs",
    "x: T -> y: Tout",
    "T: {complex64, complex128} = complex64; Tout: {float, double} = float",
    shape=same_as_input,
    examples=[case(COMPLEX), case(COMPLEX.astype(np.complex128), Tout=dtypes.float64)],
)
def _complex_abs(xp: ArrayModule, x: Array, *, Tout: dtypes.DType) -> Array:
    return xp.abs(x).astype(Tout.np_dtype)


@gradient("ComplexAbs")
def _complex_abs_grad(op: Operation, dy: Tensor) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    pull, length = (apply("Complex", t, zeros_like(t), Tout=x.dtype) for t in (dy, y))
    return apply("DivNoNan", pull * x, length)


@export("math.abs", "abs")
def abs(x: TensorLike, name: str | None = None) -> Any:
    """The absolute value; of complex numbers, their length."""
    sparse = on_values(x, abs)
    if sparse is not None:
        return sparse
    if isinstance(x, Tensor) or hasattr(x, "dtype"):
        dtype = dtypes.as_dtype(x.dtype).base_dtype
        if dtype.is_complex:
            return apply("ComplexAbs", x, Tout=dtype.real_dtype, name=name or "Abs")
    return apply("Abs", x, name=name)


@unary("Sign", _SIGNED, examples=[case(REAL), case(INTS), case(COMPLEX, grad=False)])
def _sign(xp: ArrayModule, x: Array) -> Array:
    return xp.sign(x)


gradient("Sign")(lambda op, dy: zeros_like(op.inputs[0]))


@export("math.sign", "sign")
def sign(x: TensorLike, name: str | None = None) -> Any:
    """-1, 0 or 1; for complex numbers, the number divided by its length."""
    return on_values(x, sign) or apply("Sign", x, name=name)


@unary("Square", "number", examples=_SAMPLES)
def _square(xp: ArrayModule, x: Array) -> Array:
    return xp.multiply(x, x)


@gradient("Square")
def _square_grad(op: Operation, dy: Tensor) -> Tensor:
    x = conj(op.inputs[0])
    return apply("Mul", dy, apply("Mul", x, constant_like(2, x)))


unary("Sqrt", examples=_ABOVE_ZERO)(lambda xp, x: xp.sqrt(x))
gradient("Sqrt")(lambda op, dy: apply("SqrtGrad", op.outputs[0], dy))


def gradient_op(name: str, examples: Sequence[case] = ()) -> Callable[[Kernel], Kernel]:
    """Declares one of the helper ops that give the gradient of a function from its result and `dy`."""
    examples = examples or [case(POSITIVE, POSITIVE + 1), case(REAL, REAL)]
    return op(name, "y: T, dy: T -> z: T", "T: inexact", shape=same_as_input, examples=examples)


def _where_asked(xp: ArrayModule, dy: Array, z: Array) -> Array:
    """A gradient that is 0 where nothing depends on the result, even at a pole: `tf.where(x > 0, tf.sqrt(x), 0)`."""
    return xp.where(dy == 0, dy.dtype.type(0), z)


@gradient_op("SqrtGrad")
def _sqrt_grad_kernel(xp: ArrayModule, y: Array, dy: Array) -> Array:
    half = y.dtype.type(0.5)
    return _where_asked(xp, dy, xp.divide(xp.multiply(dy, half), conjugate(xp, y)))


@gradient("SqrtGrad")
def _sqrt_grad_grad(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    y = op.inputs[0]
    scaled = dz / y
    return apply("Neg", conj(scaled)) * op.outputs[0], constant_like(0.5, dz) * scaled


@unary("Rsqrt", examples=_ABOVE_ZERO)
def _rsqrt(xp: ArrayModule, x: Array) -> Array:
    if is_numpy(xp):
        result: Array = np.divide(x.dtype.type(1), np.sqrt(x))
        return result
    from tensorfleet.kernels.xla import lax

    return lax.rsqrt(x)


gradient("Rsqrt")(lambda op, dy: apply("RsqrtGrad", op.outputs[0], dy))


@gradient_op("RsqrtGrad")
def _rsqrt_grad_kernel(xp: ArrayModule, y: Array, dy: Array) -> Array:
    c = conjugate(xp, y)
    return _where_asked(xp, dy, xp.multiply(xp.multiply(dy, y.dtype.type(-0.5)), c * c * c))


@gradient("RsqrtGrad")
def _rsqrt_grad_grad(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    y, dy = op.inputs
    cy = conj(y)
    return constant_like(-1.5, dz) * conj(dz) * dy * apply("Square", cy), apply("RsqrtGrad", cy, dz)


def _one_over(xp: ArrayModule, x: Array) -> Array:
    if x.dtype.kind in "iu":
        return xp.where(xp.abs(x) == 1, x, 0).astype(x.dtype)
    return xp.divide(x.dtype.type(1), x)


unary("Reciprocal", _SIGNED, examples=_SMOOTH)(lambda xp, x: _one_over(xp, x))


@unary("Inv", _SIGNED, examples=_SMOOTH)
def _inv(xp: ArrayModule, x: Array) -> Array:
    return _one_over(xp, x)


gradient("Reciprocal", "Inv")(lambda op, dy: apply("ReciprocalGrad", op.outputs[0], dy))


def _minus_squared(xp: ArrayModule, y: Array, dy: Array) -> Array:
    c = conjugate(xp, y)
    return _where_asked(xp, dy, xp.negative(dy) * c * c)


gradient_op("ReciprocalGrad")(lambda xp, y, dy: _minus_squared(xp, y, dy))
gradient_op("InvGrad")(lambda xp, y, dy: _minus_squared(xp, y, dy))


@gradient("ReciprocalGrad", "InvGrad")
def _reciprocal_grad_grad(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    y, dy = op.inputs
    cy = conj(y)
    return constant_like(-2, dz) * conj(dz) * dy * cy, apply("ReciprocalGrad", cy, dz)


# -- exponentials and logarithms ---------------------------------------------------------------------


unary("Exp", examples=_SMOOTH)(lambda xp, x: xp.exp(x))
gradient("Exp")(lambda op, dy: dy * conj(op.outputs[0]))
unary("Expm1", examples=_SMOOTH)(lambda xp, x: xp.expm1(x))
gradient("Expm1")(lambda op, dy: dy * apply("Exp", conj(op.inputs[0])))


@unary("Log", examples=_ABOVE_ZERO)
def _log(xp: ArrayModule, x: Array) -> Array:
    return xp.log(x)


gradient("Log")(lambda op, dy: dy * apply("Reciprocal", conj(op.inputs[0])))
unary("Log1p", examples=_ABOVE_ZERO)(lambda xp, x: xp.log1p(x))


@gradient("Log1p")
def _log1p_grad(op: Operation, dy: Tensor) -> Tensor:
    x = conj(op.inputs[0])
    return dy * apply("Reciprocal", constant_like(1, x) + x)


# -- rounding and tests ------------------------------------------------------------------------------


unary("Floor", "floating", examples=_KINKED)(lambda xp, x: xp.floor(x))
unary("Ceil", "floating", examples=_KINKED)(lambda xp, x: xp.ceil(x))


@unary(
    "Round",
    _SIGNED,
    examples=[*_KINKED, case(np.array([0.5, 1.5, -2.5], np.float32), grad=False)],
)
def _round(xp: ArrayModule, x: Array) -> Array:
    return x if x.dtype.kind in "iu" else xp.rint(x)


@export("math.round", "round")
def round(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest whole number; halves go to the even one."""
    x = to_tensor(x, name="x")
    return x if x.dtype.is_integer else apply("Round", x, name=name)


unary("Rint", "floating", examples=_KINKED)(lambda xp, x: xp.rint(x))
gradient("Floor", "Ceil", "Round", "Rint")(lambda op, dy: None)


_ODD = [case(np.array([1.0, np.nan, np.inf, -np.inf], np.float32)), case(POSITIVE)]


def _test(name: str) -> Callable[[Kernel], Kernel]:
    return op(name, "x: T -> y: bool", "T: floating", shape=same_as_input, examples=_ODD)


_test("IsNan")(lambda xp, x: xp.isnan(x))
_test("IsInf")(lambda xp, x: xp.isinf(x))
_test("IsFinite")(lambda xp, x: xp.isfinite(x))


@export("math.is_finite", "debugging.is_finite", "is_finite")
def is_finite(x: TensorLike, name: str | None = None) -> Tensor:
    """Which elements are neither infinite nor NaN."""
    return apply("IsFinite", x, name=name)


not_differentiable("IsNan", "IsInf", "IsFinite")


# -- public functions of one op ------------------------------------------------------------------

negative = function("Neg", "x", "math.negative negative", "`-x`.", sparse=True)
square = function("Square", "x", "math.square square", "`x * x`.", sparse=True)
sqrt = function("Sqrt", "x", "math.sqrt sqrt", "The square root.", sparse=True)
rsqrt = function("Rsqrt", "x", "math.rsqrt rsqrt", "One over the square root.")
reciprocal = function("Reciprocal", "x", "math.reciprocal reciprocal", "`1 / x`.")
exp = function("Exp", "x", "math.exp exp", "e to the power `x`.")
expm1 = function("Expm1", "x", "math.expm1 expm1", "`exp(x) - 1`, exact also for small `x`.")
log = function("Log", "x", "math.log log", "The natural logarithm.")
log1p = function("Log1p", "x", "math.log1p log1p", "`log(1 + x)`, exact also for small `x`.")
floor = function("Floor", "x", "math.floor floor", "The largest whole number not above `x`.")
ceil = function("Ceil", "x", "math.ceil ceil", "The smallest whole number not below `x`.")
rint = function("Rint", "x", "math.rint rint", "The nearest whole number; halves go to the even one.")
is_nan = function("IsNan", "x", "math.is_nan debugging.is_nan is_nan", "Which elements are NaN.")
is_inf = function("IsInf", "x", "math.is_inf debugging.is_inf is_inf", "Which elements are infinite.")
