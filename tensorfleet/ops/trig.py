"""Trigonometric and hyperbolic functions, their inverses, and the logistic function."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.api import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops import angles
from tensorfleet.ops.common import is_numpy
from tensorfleet.ops.elementwise import (
    COMPLEX,
    POSITIVE,
    REAL,
    UNIT,
    conj,
    constant_like,
    on_values,
    unary,
    wide,
)
from tensorfleet.ops.examples import case
from tensorfleet.ops.math_unary import gradient_op

_ANYWHERE = [case(REAL), case(UNIT), case(COMPLEX), case(np.float32(0.25))]
_INSIDE = [case(UNIT.astype(np.float32)), case(UNIT), case(COMPLEX / 2)]
_ABOVE_ONE = [case((POSITIVE + 1).astype(np.float32)), case(POSITIVE + 1), case(COMPLEX + 2)]


def _one_minus_square(x: Any) -> Any:
    return constant_like(1, x) - apply("Square", x)


@unary("Sin", examples=_ANYWHERE)
def _sin(xp: Any, x: Any) -> Any:
    return xp.sin(x) if is_numpy(xp) or x.dtype != np.float32 else angles.sin(xp, x)


@gradient("Sin")
def _sin_grad(op: Operation, dy: Any) -> Any:
    return dy * apply("Cos", conj(op.inputs[0]))


@export("math.sin", "sin")
def sin(x: Any, name: str | None = None) -> Tensor:
    """The sine."""
    return apply("Sin", x, name=name)


@unary("Cos", examples=_ANYWHERE)
def _cos(xp: Any, x: Any) -> Any:
    return xp.cos(x) if is_numpy(xp) or x.dtype != np.float32 else angles.cos(xp, x)


@gradient("Cos")
def _cos_grad(op: Operation, dy: Any) -> Any:
    return dy * apply("Neg", apply("Sin", conj(op.inputs[0])))


@export("math.cos", "cos")
def cos(x: Any, name: str | None = None) -> Tensor:
    """The cosine."""
    return apply("Cos", x, name=name)


@unary("Tan", examples=_INSIDE)
def _tan(xp: Any, x: Any) -> Any:
    return xp.tan(x)


@gradient("Tan")
def _tan_grad(op: Operation, dy: Any) -> Any:
    return dy * apply("Square", apply("Reciprocal", apply("Cos", conj(op.inputs[0]))))


@export("math.tan", "tan")
def tan(x: Any, name: str | None = None) -> Tensor:
    """The tangent."""
    return apply("Tan", x, name=name)


@unary("Asin", examples=_INSIDE)
def _asin(xp: Any, x: Any) -> Any:
    return xp.arcsin(x) if is_numpy(xp) or x.dtype != np.float32 else angles.arcsin(xp, x)


@gradient("Asin")
def _asin_grad(op: Operation, dy: Any) -> Any:
    return dy * apply("Reciprocal", apply("Sqrt", _one_minus_square(conj(op.inputs[0]))))


@export("math.asin", "asin")
def asin(x: Any, name: str | None = None) -> Tensor:
    """The angle whose sine is `x`."""
    return apply("Asin", x, name=name)


@unary("Acos", examples=_INSIDE)
def _acos(xp: Any, x: Any) -> Any:
    return xp.arccos(x) if is_numpy(xp) or x.dtype != np.float32 else angles.arccos(xp, x)


@gradient("Acos")
def _acos_grad(op: Operation, dy: Any) -> Any:
    return apply("Neg", dy * apply("Reciprocal", apply("Sqrt", _one_minus_square(conj(op.inputs[0])))))


@export("math.acos", "acos")
def acos(x: Any, name: str | None = None) -> Tensor:
    """The angle whose cosine is `x`."""
    return apply("Acos", x, name=name)


@unary("Atan", examples=_ANYWHERE)
def _atan(xp: Any, x: Any) -> Any:
    return xp.arctan(x)


@gradient("Atan")
def _atan_grad(op: Operation, dy: Any) -> Any:
    return dy * apply("Reciprocal", constant_like(1, dy) + apply("Square", conj(op.inputs[0])))


@export("math.atan", "atan")
def atan(x: Any, name: str | None = None) -> Tensor:
    """The angle whose tangent is `x`."""
    return apply("Atan", x, name=name)


@unary("Sinh", examples=_ANYWHERE)
def _sinh(xp: Any, x: Any) -> Any:
    return xp.sinh(x)


@gradient("Sinh")
def _sinh_grad(op: Operation, dy: Any) -> Any:
    return dy * apply("Cosh", conj(op.inputs[0]))


@export("math.sinh", "sinh")
def sinh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic sine."""
    return apply("Sinh", x, name=name)


@unary("Cosh", examples=_ANYWHERE)
def _cosh(xp: Any, x: Any) -> Any:
    return xp.cosh(x)


@gradient("Cosh")
def _cosh_grad(op: Operation, dy: Any) -> Any:
    return dy * apply("Sinh", conj(op.inputs[0]))


@export("math.cosh", "cosh")
def cosh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic cosine."""
    return apply("Cosh", x, name=name)


@unary("Asinh", examples=_ANYWHERE)
def _asinh(xp: Any, x: Any) -> Any:
    return xp.arcsinh(x)


@gradient("Asinh")
def _asinh_grad(op: Operation, dy: Any) -> Any:
    return dy / apply("Cosh", conj(op.outputs[0]))


@export("math.asinh", "asinh")
def asinh(x: Any, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic sine."""
    return apply("Asinh", x, name=name)


@unary("Acosh", examples=_ABOVE_ONE)
def _acosh(xp: Any, x: Any) -> Any:
    return xp.arccosh(x)


@gradient("Acosh")
def _acosh_grad(op: Operation, dy: Any) -> Any:
    return dy / apply("Sinh", conj(op.outputs[0]))


@export("math.acosh", "acosh")
def acosh(x: Any, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic cosine."""
    return apply("Acosh", x, name=name)


@unary("Atanh", examples=_INSIDE)
def _atanh(xp: Any, x: Any) -> Any:
    return xp.arctanh(x)


@gradient("Atanh")
def _atanh_grad(op: Operation, dy: Any) -> Any:
    return dy * apply("Reciprocal", _one_minus_square(conj(op.inputs[0])))


@export("math.atanh", "atanh")
def atanh(x: Any, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic tangent."""
    return apply("Atanh", x, name=name)


@unary("Tanh", examples=_ANYWHERE)
def _tanh(xp: Any, x: Any) -> Any:
    return xp.tanh(x)


@gradient("Tanh")
def _tanh_grad(op: Operation, dy: Any) -> Any:
    return apply("TanhGrad", conj(op.outputs[0]), dy)


@export("math.tanh", "nn.tanh", "tanh")
def tanh(x: Any, name: str | None = None) -> Any:
    """The hyperbolic tangent."""
    return on_values(x, tanh) or apply("Tanh", x, name=name)


@gradient_op("TanhGrad", examples=[case(UNIT, POSITIVE), case(UNIT.astype(np.float32), REAL)])
def _tanh_grad_kernel(xp: Any, y: Any, dy: Any) -> Any:
    return xp.multiply(dy, y.dtype.type(1) - y * y)


@gradient("TanhGrad")
def _tanh_grad_grad(op: Operation, dz: Any) -> Any:
    y, dy = (conj(t) for t in op.inputs)
    return constant_like(-2, dz) * dz * dy * y, apply("TanhGrad", y, dz)


@unary("Sigmoid", examples=_ANYWHERE)
def _sigmoid(xp: Any, x: Any) -> Any:
    if not is_numpy(xp) and x.dtype.kind != "c":
        from jax import lax

        return lax.logistic(x)
    w = wide(x)
    one = w.dtype.type(1)
    return (one / (one + xp.exp(-w))).astype(x.dtype)


@gradient("Sigmoid")
def _sigmoid_grad(op: Operation, dy: Any) -> Any:
    return apply("SigmoidGrad", conj(op.outputs[0]), dy)


@export("math.sigmoid", "nn.sigmoid", "sigmoid")
def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return apply("Sigmoid", x, name=name)


@export("math.log_sigmoid", "log_sigmoid")
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`log(sigmoid(x))`, computed so that large negative numbers keep their precision."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = to_tensor(x, name="x")
        return apply("Neg", apply("Softplus", apply("Neg", x)), name=scope)


@gradient_op("SigmoidGrad", examples=[case(UNIT, POSITIVE), case(UNIT.astype(np.float32), REAL)])
def _sigmoid_grad_kernel(xp: Any, y: Any, dy: Any) -> Any:
    return xp.multiply(dy, y * (y.dtype.type(1) - y))


@gradient("SigmoidGrad")
def _sigmoid_grad_grad(op: Operation, dz: Any) -> Any:
    y, dy = (conj(t) for t in op.inputs)
    both = dz * dy
    return both - constant_like(2, dz) * both * y, apply("SigmoidGrad", y, dz)
