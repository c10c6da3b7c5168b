"""Trigonometric and hyperbolic functions, their inverses, and the logistic function."""

from __future__ import annotations

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import trigonometry as angles
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.elementwise import (
    COMPLEX,
    POSITIVE,
    REAL,
    UNIT,
    conj,
    constant_like,
    unary,
    wide,
)
from tensorfleet.ops.math.unary import gradient_op
from tensorfleet.ops.public_functions import function
from tensorfleet.ops.samples import case

_ANYWHERE = [case(REAL), case(UNIT), case(COMPLEX), case(np.float32(0.25))]
_INSIDE = [case(UNIT.astype(np.float32)), case(UNIT), case(COMPLEX / 2)]
_ABOVE_ONE = [case((POSITIVE + 1).astype(np.float32)), case(POSITIVE + 1), case(COMPLEX + 2)]


def _one_minus_square(x: Tensor) -> Tensor:
    return constant_like(1, x) - apply("Square", x)


@unary("Sin", examples=_ANYWHERE)
def _sin(xp: ArrayModule, x: Array) -> Array:
    return xp.sin(x) if is_numpy(xp) or x.dtype != np.float32 else angles.sin(xp, x)


gradient("Sin")(lambda op, dy: dy * apply("Cos", conj(op.inputs[0])))


@unary("Cos", examples=_ANYWHERE)
def _cos(xp: ArrayModule, x: Array) -> Array:
    return xp.cos(x) if is_numpy(xp) or x.dtype != np.float32 else angles.cos(xp, x)


gradient("Cos")(lambda op, dy: dy * apply("Neg", apply("Sin", conj(op.inputs[0]))))
unary("Tan", examples=_INSIDE)(lambda xp, x: xp.tan(x))
gradient("Tan")(lambda op, dy: dy * apply("Square", apply("Reciprocal", apply("Cos", conj(op.inputs[0])))))


@unary("Asin", examples=_INSIDE)
def _asin(xp: ArrayModule, x: Array) -> Array:
    return xp.arcsin(x) if is_numpy(xp) or x.dtype != np.float32 else angles.arcsin(xp, x)


@gradient("Asin")
def _asin_grad(op: Operation, dy: Tensor) -> Tensor:
    return dy * apply("Reciprocal", apply("Sqrt", _one_minus_square(conj(op.inputs[0]))))


@unary("Acos", examples=_INSIDE)
def _acos(xp: ArrayModule, x: Array) -> Array:
    return xp.arccos(x) if is_numpy(xp) or x.dtype != np.float32 else angles.arccos(xp, x)


@gradient("Acos")
def _acos_grad(op: Operation, dy: Tensor) -> Tensor:
    return apply("Neg", dy * apply("Reciprocal", apply("Sqrt", _one_minus_square(conj(op.inputs[0])))))


unary("Atan", examples=_ANYWHERE)(lambda xp, x: xp.arctan(x))


@gradient("Atan")
def _atan_grad(op: Operation, dy: Tensor) -> Tensor:
    return dy * apply("Reciprocal", constant_like(1, dy) + apply("Square", conj(op.inputs[0])))


unary("Sinh", examples=_ANYWHERE)(lambda xp, x: xp.sinh(x))
gradient("Sinh")(lambda op, dy: dy * apply("Cosh", conj(op.inputs[0])))
unary("Cosh", examples=_ANYWHERE)(lambda xp, x: xp.cosh(x))
gradient("Cosh")(lambda op, dy: dy * apply("Sinh", conj(op.inputs[0])))
unary("Asinh", examples=_ANYWHERE)(lambda xp, x: xp.arcsinh(x))
gradient("Asinh")(lambda op, dy: dy / apply("Cosh", conj(op.outputs[0])))
unary("Acosh", examples=_ABOVE_ONE)(lambda xp, x: xp.arccosh(x))
gradient("Acosh")(lambda op, dy: dy / apply("Sinh", conj(op.outputs[0])))
unary("Atanh", examples=_INSIDE)(lambda xp, x: xp.arctanh(x))
gradient("Atanh")(lambda op, dy: dy * apply("Reciprocal", _one_minus_square(conj(op.inputs[0]))))
unary("Tanh", examples=_ANYWHERE)(lambda xp, x: xp.tanh(x))
gradient("Tanh")(lambda op, dy: apply("TanhGrad", conj(op.outputs[0]), dy))


@gradient_op("TanhGrad", examples=[case(UNIT, POSITIVE), case(UNIT.astype(np.float32), REAL)])
def _tanh_grad_kernel(xp: ArrayModule, y: Array, dy: Array) -> Array:
    return xp.multiply(dy, y.dtype.type(1) - y * y)


@gradient("TanhGrad")
def _tanh_grad_grad(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    y, dy = (conj(t) for t in op.inputs)
    return constant_like(-2, dz) * dz * dy * y, apply("TanhGrad", y, dz)


@unary("Sigmoid", examples=_ANYWHERE)
def _sigmoid(xp: ArrayModule, x: Array) -> Array:
    if not is_numpy(xp) and x.dtype.kind != "c":
        from tensorfleet.kernels.xla import lax

        return lax.logistic(x)
    w = wide(x)
    one = w.dtype.type(1)
    result: Array = (one / (one + xp.exp(-w))).astype(x.dtype)
    return result


gradient("Sigmoid")(lambda op, dy: apply("SigmoidGrad", conj(op.outputs[0]), dy))


@export("math.log_sigmoid", "log_sigmoid")
def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """`log(sigmoid(x))`, computed so that large negative numbers keep their precision."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = to_tensor(x, name="x")
        return apply("Neg", apply("Softplus", apply("Neg", x)), name=scope)


@gradient_op("SigmoidGrad", examples=[case(UNIT, POSITIVE), case(UNIT.astype(np.float32), REAL)])
def _sigmoid_grad_kernel(xp: ArrayModule, y: Array, dy: Array) -> Array:
    return xp.multiply(dy, y * (y.dtype.type(1) - y))


@gradient("SigmoidGrad")
def _sigmoid_grad_grad(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    y, dy = (conj(t) for t in op.inputs)
    both = dz * dy
    return both - constant_like(2, dz) * both * y, apply("SigmoidGrad", y, dz)


# -- public functions of one op ------------------------------------------------------------------

sin = function("Sin", "x", "math.sin sin", "The sine.")
cos = function("Cos", "x", "math.cos cos", "The cosine.")
tan = function("Tan", "x", "math.tan tan", "The tangent.")
asin = function("Asin", "x", "math.asin asin", "The angle whose sine is `x`.")
acos = function("Acos", "x", "math.acos acos", "The angle whose cosine is `x`.")
atan = function("Atan", "x", "math.atan atan", "The angle whose tangent is `x`.")
sinh = function("Sinh", "x", "math.sinh sinh", "The hyperbolic sine.")
cosh = function("Cosh", "x", "math.cosh cosh", "The hyperbolic cosine.")
asinh = function("Asinh", "x", "math.asinh asinh", "The inverse of the hyperbolic sine.")
acosh = function("Acosh", "x", "math.acosh acosh", "The inverse of the hyperbolic cosine.")
atanh = function("Atanh", "x", "math.atanh atanh", "The inverse of the hyperbolic tangent.")
tanh = function("Tanh", "x", "math.tanh nn.tanh tanh", "The hyperbolic tangent.", sparse=True)
sigmoid = function("Sigmoid", "x", "math.sigmoid nn.sigmoid sigmoid", "`1 / (1 + exp(-x))`.")
