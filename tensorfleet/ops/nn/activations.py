"""Activation functions of neural networks, and biases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.common import merged_inputs, same_as_input
from tensorfleet.ops.elementwise import REAL, UNIT, bracketed, constant_like, wide
from tensorfleet.ops.nn.shapes import of_rank, of_rank_at_least, same_dimension
from tensorfleet.ops.public_functions import function
from tensorfleet.ops.samples import case

_SAMPLES = [case(REAL), case(REAL.astype(np.float64)), case(REAL[:0])]
_PAIRS = [case(REAL[::-1].copy(), REAL), case(UNIT, UNIT)]
# The two constants that keep activations of a deep SELU network at mean 0 and variance 1.
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def _activation(
    name: str, types: str = "floating", attrs: str = "", examples: Sequence[case] = _SAMPLES
) -> Callable[[Kernel], Kernel]:
    declared = f"{attrs}T: {types}" + (" = float" if attrs else "")
    return op(name, "features: T -> activations: T", declared, shape=same_as_input, examples=examples)


def _activation_grad(
    name: str,
    second: str = "features",
    types: str = "floating",
    attrs: str = "",
    examples: Sequence[case] = _PAIRS,
) -> Callable[[Kernel], Kernel]:
    declared = f"{attrs}T: {types}" + (" = float" if attrs else "")
    signature = f"gradients: T, {second}: T -> backprops: T"
    return op(name, signature, declared, shape=merged_inputs, examples=examples)


def _zero(x: Array) -> Array:
    result: Array = x.dtype.type(0)
    return result


_MIN_CLIPPED_ELEMENTS = 1 << 14  # elements


def _between(xp: ArrayModule, x: Array, most: float) -> Array:
    """`x` within 0 and `most`. Numpy compares with one number four times as fast if it clips, after a longer start."""
    if xp is np and x.size > _MIN_CLIPPED_ELEMENTS and x.dtype.kind == "f":
        return np.clip(x, _zero(x), x.dtype.type(most))
    above = xp.maximum(x, _zero(x))
    return above if most == np.inf else xp.minimum(above, x.dtype.type(most))


@_activation("Relu", "real", examples=[*_SAMPLES, case(np.array([-3, 0, 4], np.int32))])
def _relu(xp: ArrayModule, x: Array) -> Array:
    return _between(xp, x, np.inf)


gradient("Relu")(lambda op, dy: apply("ReluGrad", dy, op.outputs[0]))
_activation_grad("ReluGrad", types="real")(lambda xp, g, x: xp.where(x > _zero(x), g, _zero(g)))


@gradient("ReluGrad")
def _relu_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    x = op.inputs[1]
    return apply("ReluGrad", dz, x), zeros_like(x)


@_activation("Relu6", "real", examples=[case(REAL * np.float32(3)), case(np.array([-3, 5, 9], np.int32))])
def _relu6(xp: ArrayModule, x: Array) -> Array:
    return _between(xp, x, 6)


gradient("Relu6")(lambda op, dy: apply("Relu6Grad", dy, op.outputs[0]))


@_activation_grad("Relu6Grad", types="real", examples=[case(REAL, REAL * np.float32(3))])
def _relu6_grad(xp: ArrayModule, g: Array, x: Array) -> Array:
    return xp.where((x > _zero(x)) & (x < x.dtype.type(6)), g, _zero(g))


@gradient("Relu6Grad")
def _relu6_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    x = op.inputs[1]
    return apply("Relu6Grad", dz, x), zeros_like(x)


@export("nn.relu6")
def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """`min(max(features, 0), 6)`."""
    with name_scope(name, "Relu6", [features]) as scope:
        return apply("Relu6", to_tensor(features, name="features"), name=scope)


@export("nn.crelu")
def crelu(features: TensorLike, name: str | None = None, axis: int = -1) -> Tensor:
    """The relu of `features` and the relu of `-features`, side by side along `axis`."""
    with name_scope(name, "CRelu", [features]) as scope:
        x = to_tensor(features, name="features")
        both = apply("ConcatV2", [x, apply("Neg", x)], axis, name=scope)
        return apply("Relu", both)


@_activation("LeakyRelu", attrs="alpha: float = 0.2; ", examples=[case(REAL), case(UNIT, alpha=0.5)])
def _leaky_relu(xp: ArrayModule, x: Array, *, alpha: float) -> Array:
    return xp.where(x > _zero(x), x, x * x.dtype.type(alpha))


gradient("LeakyRelu")(lambda op, dy: apply("LeakyReluGrad", dy, op.inputs[0], alpha=op.get_attr("alpha")))


@_activation_grad("LeakyReluGrad", attrs="alpha: float = 0.2; ")
def _leaky_relu_grad(xp: ArrayModule, g: Array, x: Array, *, alpha: float) -> Array:
    return xp.where(x > _zero(x), g, g * g.dtype.type(alpha))


@gradient("LeakyReluGrad")
def _leaky_relu_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    x = op.inputs[1]
    return apply("LeakyReluGrad", dz, x, alpha=op.get_attr("alpha")), zeros_like(x)


@export("nn.leaky_relu")
def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """`features` where positive, else `alpha * features`."""
    with name_scope(name, "LeakyRelu", [features, alpha]) as scope:
        x = to_tensor(features, name="features")
        if x.dtype.is_integer:
            x = apply("Cast", x, DstT=dtypes.float32)
        if isinstance(alpha, Tensor):
            return apply("Maximum", apply("Mul", alpha, x, name="mul"), x, name=scope)
        return apply("LeakyRelu", x, alpha=float(alpha), name=scope)


_activation("Elu")(lambda xp, x: xp.where(x < _zero(x), xp.expm1(xp.minimum(x, _zero(x))), x))
gradient("Elu")(lambda op, dy: apply("EluGrad", dy, op.outputs[0]))
_activation_grad("EluGrad", "outputs")(lambda xp, g, y: xp.where(y < _zero(y), (y + y.dtype.type(1)) * g, g))
gradient("EluGrad")(lambda op, dz: _of_outputs("EluGrad", op, dz))


def _of_outputs(kind: str, op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of an op that is linear in both its inputs wherever the second is negative."""
    g, y = op.inputs
    below = apply("Less", y, constant_like(0, y))
    return apply_any(kind, dz, y), apply("Select", below, apply("Mul", dz, g), zeros_like(y))


@_activation("Selu")
def _selu(xp: ArrayModule, x: Array) -> Array:
    below = xp.expm1(xp.minimum(x, _zero(x))) * x.dtype.type(_SELU_SCALE_ALPHA)
    return xp.where(x < _zero(x), below, x * x.dtype.type(_SELU_SCALE))


gradient("Selu")(lambda op, dy: apply("SeluGrad", dy, op.outputs[0]))


@_activation_grad("SeluGrad", "outputs")
def _selu_grad(xp: ArrayModule, g: Array, y: Array) -> Array:
    kind = y.dtype.type
    return xp.where(y < _zero(y), g * (y + kind(_SELU_SCALE_ALPHA)), g * kind(_SELU_SCALE))


gradient("SeluGrad")(lambda op, dz: _of_outputs("SeluGrad", op, dz))


@_activation("Softplus", examples=[*_SAMPLES, case(np.array([-200.0, 200.0], np.float32))])
def _softplus(xp: ArrayModule, x: Array) -> Array:
    w = wide(x)
    return (xp.maximum(w, _zero(w)) + xp.log1p(xp.exp(-xp.abs(w)))).astype(x.dtype)


gradient("Softplus")(lambda op, dy: apply("SoftplusGrad", dy, op.inputs[0]))


@_activation_grad("SoftplusGrad")
def _softplus_grad(xp: ArrayModule, g: Array, x: Array) -> Array:
    result: Array = g / (xp.exp(-x) + x.dtype.type(1))
    return result


@gradient("SoftplusGrad")
def _softplus_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    g, x = op.inputs
    spread = apply("AddV2", apply("Exp", apply("Neg", x)), constant_like(2, x))
    slope = apply("RealDiv", apply("Mul", dz, g), apply("AddV2", spread, apply("Exp", x)))
    return apply("SoftplusGrad", dz, x), slope


@_activation("Softsign")
def _softsign(xp: ArrayModule, x: Array) -> Array:
    result: Array = x / (xp.abs(x) + x.dtype.type(1))
    return result


gradient("Softsign")(lambda op, dy: apply("SoftsignGrad", dy, op.inputs[0]))


@_activation_grad("SoftsignGrad")
def _softsign_grad(xp: ArrayModule, g: Array, x: Array) -> Array:
    w = xp.abs(x) + x.dtype.type(1)
    result: Array = g / (w * w)
    return result


@gradient("SoftsignGrad")
def _softsign_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
    g, x = op.inputs
    pull = apply("Mul", apply("Sign", x), constant_like(-2, x))
    scaled = apply("RealDiv", pull, apply("AddV2", apply("Abs", x), constant_like(1, x)))
    return apply("SoftsignGrad", dz, x), apply("Mul", apply("SoftsignGrad", apply("Mul", dz, g), x), scaled)


@export("nn.swish")
def swish(features: TensorLike) -> Tensor:
    """`features * sigmoid(features)`."""
    x = to_tensor(features, name="features")
    return apply("Mul", x, apply("Sigmoid", x), name="mul")


# -- biases ------------------------------------------------------------------------------------------


def _channel_axis(data_format: bytes, rank: int) -> int:
    return rank - 1 if data_format == b"NHWC" else 1


def _biased_shape(op: Operation, data_format: bytes) -> TensorShape:
    value, bias = of_rank_at_least(op._inputs[0].shape, 2), of_rank(op._inputs[1].shape, 1)
    if value._d is None:
        return value
    dims = list(value._d)
    axis = _channel_axis(data_format, len(dims))
    dims[axis] = same_dimension(dims[axis], bias.as_list()[0])
    return TensorShape._of(tuple(dims))


def _add_bias(x: Array, bias: Array, data_format: bytes) -> Array:
    if x.ndim < 2:
        raise errors.invalid(f"Input tensor must be at least 2D: {bracketed(x.shape)}")
    axis = _channel_axis(data_format, x.ndim)
    if bias.shape != (x.shape[axis],):
        raise errors.invalid(
            f"Must provide as many biases as the {'last' if axis == x.ndim - 1 else 'channel'} dimension of "
            f"the input tensor: {bracketed(bias.shape)} vs. {bracketed(x.shape)}"
        )
    return x + bias.reshape((-1,) + (1,) * (x.ndim - 1 - axis))


_BIASED = [case(REAL, REAL[0]), case(np.array([[1, 2]], np.int32), np.array([3, 4], np.int32))]
_IMAGE = np.arange(12, dtype=np.float32).reshape(1, 2, 3, 2)


@op(
    "BiasAdd",
    "value: T, bias: T -> output: T",
    "T: number; data_format: string(NHWC|NCHW) = NHWC",
    shape=lambda op: _biased_shape(op, op._attrs["data_format"]),
    examples=[*_BIASED, case(_IMAGE, REAL[0, :2]), case(_IMAGE, REAL[0, :2], data_format="NCHW")],
)
def _bias_add(xp: ArrayModule, x: Array, bias: Array, *, data_format: bytes) -> Array:
    return _add_bias(x, bias, data_format)


gradient("BiasAdd")(lambda op, dy: (dy, apply("BiasAddGrad", dy, data_format=op.get_attr("data_format"))))


@op(
    "BiasAddV1",
    "value: T, bias: T -> output: T",
    "T: number",
    shape=lambda op: _biased_shape(op, b"NHWC"),
    examples=_BIASED,
)
def _bias_add_v1(xp: ArrayModule, x: Array, bias: Array) -> Array:
    return _add_bias(x, bias, b"NHWC")


gradient("BiasAddV1")(lambda op, dy: (dy, apply("BiasAddGrad", dy)))


def _bias_shape(op: Operation) -> TensorShape:
    shape = of_rank_at_least(op._inputs[0].shape, 3 if op._attrs["data_format"] == b"NCHW" else 2)
    if shape._d is None:
        return TensorShape._of((None,))
    return TensorShape._of((shape._d[_channel_axis(op._attrs["data_format"], len(shape._d))],))


@op(
    "BiasAddGrad",
    "out_backprop: T -> output: T",
    "T: number; data_format: string(NHWC|NCHW) = NHWC",
    shape=_bias_shape,
    examples=[case(REAL), case(_IMAGE), case(_IMAGE, data_format="NCHW"), case(REAL[:0])],
)
def _bias_add_grad(xp: ArrayModule, dy: Array, *, data_format: bytes) -> Array:
    axis = _channel_axis(data_format, dy.ndim)
    w = wide(dy)
    result: Array = w.sum(tuple(i for i in range(dy.ndim) if i != axis), dtype=w.dtype).astype(dy.dtype)
    return result


@gradient("BiasAddGrad")
def _bias_add_grad_gradient(op: Operation, dz: Tensor) -> Tensor:
    dy = op.inputs[0]
    zeros = zeros_like(dy)
    return apply("BiasAdd", zeros, dz, data_format=op.get_attr("data_format"))


@export("nn.bias_add")
def bias_add(
    value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Adds a vector to every position of `value`, along its channels."""
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        if data_format is None or (data_format.startswith("N") and data_format.endswith("C")):
            layout = "NHWC"
        elif data_format.startswith("NC"):
            layout = "NCHW"
        else:
            raise ValueError(f"data_format must be of the form `N...C` or `NC...`, got {data_format!r}")
        x = to_tensor(value, name="input")
        return apply("BiasAdd", x, to_tensor(bias, x.dtype, name="bias"), data_format=layout, name=scope)


@export("nn.xw_plus_b")
def xw_plus_b(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """`matmul(x, weights) + biases`."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        left, right = to_tensor(x, name="x"), to_tensor(weights, name="weights")
        bias = to_tensor(biases, name="biases")
        return bias_add(apply("MatMul", left, right), bias, name=scope)


@export("nn.relu_layer")
def relu_layer(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Any:
    """`relu(matmul(x, weights) + biases)`."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        left, right = to_tensor(x, name="x"), to_tensor(weights, name="weights")
        bias = to_tensor(biases, name="biases")
        return relu(bias_add(apply("MatMul", left, right), bias), name=scope)


# -- public functions of one op ------------------------------------------------------------------

relu = function("Relu", "features", "nn.relu", "`max(features, 0)`.")
elu = function("Elu", "features", "nn.elu", "`exp(features) - 1` where negative, else `features`.")
selu = function(
    "Selu", "features", "nn.selu", "The scaled exponential linear unit, which normalizes its own output."
)
softplus = function(
    "Softplus", "features", "nn.softplus math.softplus", "`log(exp(features) + 1)`, without overflow."
)
softsign = function("Softsign", "features", "nn.softsign math.softsign", "`features / (abs(features) + 1)`.")
