"""Normalization in one operation: across channels (LRN) and across a batch."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_list, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.kernels.arrays import total
from tensorfleet.ops.common import UNKNOWN, merged_inputs
from tensorfleet.ops.elementwise import wide
from tensorfleet.ops.nn.shapes import of_rank, same_dimension
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_IMAGES = np.random.RandomState(0).randn(2, 2, 3, 4).astype(np.float32)
_LRN = "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; "
_LRN += "T: {half, bfloat16, float} = float"


_MAX_BAND_CHANNELS = 64  # up to so many, a product with a band of ones is faster than shifted sums


def _neighbours(xp: ArrayModule, x: Array, radius: int) -> Array:
    """The sum over the channels within `radius` of each."""
    depth = x.shape[-1]
    if depth <= _MAX_BAND_CHANNELS:
        places = np.arange(depth)
        return xp.matmul(x, (abs(places[:, None] - places) <= radius).astype(x.dtype))
    padded = xp.pad(x, [(0, 0)] * (x.ndim - 1) + [(radius, radius)])
    return total(padded[..., i : i + depth] for i in range(2 * radius + 1))


def _inverse_power(xp: ArrayModule, base: Array, beta: float) -> Array:
    """`base ** -beta`, by roots where they do: powers are slow."""
    if beta == 0.5:
        power: Array = base.dtype.type(1) / xp.sqrt(base)
    elif beta == 0.75:
        root = xp.sqrt(base)
        power = base.dtype.type(1) / (root * xp.sqrt(root))
    else:
        power = base ** base.dtype.type(-beta)
    return power


@op(
    "LRN",
    "input: T[4] -> output: T",
    _LRN,
    shape=lambda op: of_rank(op._inputs[0].shape, 4),
    words={"input": "in must be 4-dimensional"},
    examples=[case(_IMAGES), case(_IMAGES, depth_radius=1, bias=2.0, alpha=0.5, beta=0.75)],
)
def _lrn(xp: ArrayModule, x: Array, *, depth_radius: int, bias: float, alpha: float, beta: float) -> Array:
    w = wide(x)
    base = w.dtype.type(bias) + w.dtype.type(alpha) * _neighbours(xp, w * w, depth_radius)
    return (w * _inverse_power(xp, base, beta)).astype(x.dtype)


def _lrn_attrs(op: Operation) -> dict[str, Any]:
    return {n: op._attrs[n] for n in ("depth_radius", "bias", "alpha", "beta")}


gradient("LRN")(lambda op, dy: apply("LRNGrad", dy, op.inputs[0], op.outputs[0], **_lrn_attrs(op)))


@op(
    "LRNGrad",
    "input_grads: T, input_image: T, output_image: T -> output: T",
    _LRN,
    shape=lambda op: of_rank(merged_inputs(op), 4),
    examples=[case(_IMAGES[::-1].copy(), _IMAGES, _IMAGES * np.float32(0.5))],
)
def _lrn_grad(
    xp: ArrayModule,
    dy: Array,
    x: Array,
    y: Array,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Array:
    g, w, out = wide(dy), wide(x), wide(y)
    kind = w.dtype.type
    base = kind(bias) + kind(alpha) * _neighbours(xp, w * w, depth_radius)
    pull = _neighbours(xp, g * out / base, depth_radius)
    result: Array = (g * _inverse_power(xp, base, beta) - kind(2 * alpha * beta) * w * pull).astype(dy.dtype)
    return result


lrn = op_function(
    "LRN",
    "input, depth_radius=5, bias=1, alpha=1, beta=0.5, name=None",
    "nn.lrn nn.local_response_normalization",
    "Divides each value by `(bias + alpha * squares of the 2 * depth_radius + 1 nearest channels) ** beta`.",
)


# -- batch normalization -----------------------------------------------------------------------------

_FLAT = "data_format: string(NHWC|NCHW) = NHWC; is_training: bool = true"
_ANY = "data_format: string(NHWC|NCHW|NDHWC|NCDHW) = NHWC; is_training: bool = true"
_EPS = "epsilon: float = 0.0001; "
_AVG = "epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; "
_T = "T: {half, bfloat16, float}; U: {float}; "


def _axis(data_format: bytes, rank: int) -> int:
    return 1 if data_format.startswith(b"NC") else rank - 1


def _statistics_shape(
    op: Operation, x: TensorShape, vectors: tuple[Tensor, ...]
) -> tuple[TensorShape, TensorShape]:
    dims = of_rank(x, len(op._attrs["data_format"])).as_list()
    axis = _axis(op._attrs["data_format"], len(dims))
    for v in vectors:
        dims[axis] = same_dimension(dims[axis], of_rank(v.shape, 1).as_list()[0])
    return TensorShape._of(tuple(dims)), TensorShape._of((dims[axis],))


def _forward_shapes(op: Operation) -> list[TensorShape]:
    vectors = op._inputs[1:3] if op._attrs["is_training"] else op._inputs[1:]
    x, channels = _statistics_shape(op, op._inputs[0].shape, vectors)
    return [x, *[channels] * 4, *[UNKNOWN] * (len(op.spec.outputs) - 5)]


def _backward_shapes(op: Operation) -> list[TensorShape]:
    dy, x = (t.shape for t in op._inputs[:2])
    of_rank(x, len(op._attrs["data_format"]))
    x, channels = _statistics_shape(op, dy, op._inputs[2:5])
    nothing = TensorShape._of((0,))
    return [x, channels, channels, nothing, nothing]


def _normalize(
    xp: ArrayModule,
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    eps: float,
    avg: float,
    attrs: tuple[bytes, bool],
) -> tuple[Array, ...]:
    """(y, mean and variance to keep, mean and variance that the gradient needs)."""
    data_format, training = attrs
    axis = _axis(data_format, x.ndim)
    axes = tuple(i for i in range(x.ndim) if i != axis)
    shape = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    w = wide(x)
    kind = w.dtype.type
    if training:
        count = w.size // max(w.shape[axis], 1)
        m = w.mean(axes)
        centred = w - m.reshape(shape)
        v = (centred * centred).mean(axes)
        unbiased = v * kind(count / max(count - 1, 1))
        kept = (m, unbiased)
        if avg != 1:
            kept = tuple(kind(1 - avg) * o + kind(avg) * n for o, n in ((mean, m), (variance, unbiased)))
    else:
        if mean.shape != scale.shape or variance.shape != scale.shape:
            raise errors.invalid(
                "mean and variance must have the same number of elements as the channels of x"
            )
        m, v, kept, centred = mean, variance, (mean, variance), w - mean.reshape(shape)
    factor = (scale / xp.sqrt(v + kind(eps))).reshape(shape)
    y = (centred * factor + offset.reshape(shape)).astype(x.dtype)
    return (y, *kept, m, v)


def _normalize_back(
    xp: ArrayModule,
    dy: Array,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    eps: float,
    attrs: tuple[bytes, bool],
) -> tuple[Array, ...]:
    """(gradient of x, of scale, of offset)."""
    data_format, training = attrs
    axis = _axis(data_format, x.ndim)
    axes = tuple(i for i in range(x.ndim) if i != axis)
    shape = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    g, w = wide(dy), wide(x)
    kind = w.dtype.type
    inverse = kind(1) / xp.sqrt(variance + kind(eps))
    unit = (w - mean.reshape(shape)) * inverse.reshape(shape)
    doffset, dscale = g.sum(axes), (g * unit).sum(axes)
    factor = (scale * inverse).reshape(shape)
    if training:
        count = kind(max(w.size // max(w.shape[axis], 1), 1))
        g = g - (doffset / count).reshape(shape) - unit * (dscale / count).reshape(shape)
    nothing = np.zeros(0, kind)
    return (g * factor).astype(dy.dtype), dscale, doffset, nothing, nothing


_SCALE, _OFFSET = np.array([0.5, 1.0, 1.5, 2.0], np.float32), np.array([0.1, -0.2, 0.3, 0.4], np.float32)
_EMPTY, _ONES = np.zeros(0, np.float32), np.ones(4, np.float32)
_TRAINING = case(_IMAGES, _SCALE, _OFFSET, _EMPTY, _EMPTY)
_INFERENCE = case(_IMAGES, _SCALE, _OFFSET, _OFFSET, _ONES, is_training=False)


@op(
    "FusedBatchNorm",
    "x: T, scale: T, offset: T, mean: T, variance: T -> "
    "y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T",
    f"T: {{float}}; {_AVG}{_FLAT}",
    shape=_forward_shapes,
    examples=[_TRAINING, _INFERENCE],
)
def _fused(
    xp: ArrayModule,
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: bytes,
    is_training: bool,
) -> tuple[Array, ...]:
    attrs = (data_format, is_training)
    return _normalize(xp, x, scale, offset, mean, variance, epsilon, exponential_avg_factor, attrs)


_OUT_U = "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U"

op(
    "FusedBatchNormV2",
    f"x: T, scale: U, offset: U, mean: U, variance: U -> {_OUT_U}",
    f"{_T}{_AVG}{_FLAT}",
    shape=_forward_shapes,
    examples=[_TRAINING, _INFERENCE],
)(_fused)


@functools.wraps(_fused)
def _fused_v3(*args: Any, **attrs: Any) -> tuple[Array, ...]:
    return (*_fused(*args, **attrs), np.zeros((), np.float32))


op(
    "FusedBatchNormV3",
    f"x: T, scale: U, offset: U, mean: U, variance: U -> {_OUT_U}, reserve_space_3: U",
    f"T: {{half, bfloat16, float}}; U: {{bfloat16, float}}; {_AVG}{_ANY}",
    shape=_forward_shapes,
    examples=[_TRAINING, _INFERENCE],
)(_fused_v3)


_BACK = "x_backprop: T, scale_backprop: U, offset_backprop: U"
_BACKWARD = case(_IMAGES[::-1].copy(), _IMAGES, _SCALE, _OFFSET, _ONES, grad=False)


@op(
    "FusedBatchNormGrad",
    "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T -> "
    "x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
    f"T: {{float}}; {_EPS}{_FLAT}",
    shape=_backward_shapes,
    examples=[_BACKWARD],
)
def _fused_grad(
    xp: ArrayModule,
    dy: Array,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    data_format: bytes,
    is_training: bool,
) -> tuple[Array, ...]:
    return _normalize_back(xp, dy, x, scale, mean, variance, epsilon, (data_format, is_training))


op(
    "FusedBatchNormGradV2",
    "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U -> "
    f"{_BACK}, reserve_space_3: U, reserve_space_4: U",
    f"{_T}{_EPS}{_FLAT}",
    shape=_backward_shapes,
    examples=[_BACKWARD],
)(_fused_grad)


@functools.wraps(_fused_grad)
def _fused_grad_v3(*args: Any, **attrs: Any) -> Any:
    return _fused_grad(*args[:-1], **attrs)  # the last is of no use here


op(
    "FusedBatchNormGradV3",
    "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U -> "
    f"{_BACK}, reserve_space_4: U, reserve_space_5: U",
    f"{_T}{_EPS}{_ANY}",
    shape=_backward_shapes,
    examples=[case(*_BACKWARD.inputs, _EMPTY, grad=False)],
)(_fused_grad_v3)


@gradient("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _fused_gradient(op: Operation, dy: Tensor, *others: None) -> tuple[Tensor | None, ...]:
    if dy is None:
        return [None] * 5
    x, scale = op.inputs[:2]
    training = op.get_attr("is_training")
    saved = op.outputs[3:] if training else [*op.inputs[3:5], *op.outputs[5:]]
    attrs = {n: op._attrs[n] for n in ("epsilon", "data_format", "is_training")}
    back = op.type.replace("BatchNorm", "BatchNormGrad")
    dx, dscale, doffset, _, _ = apply_any(back, dy, x, scale, *saved, **attrs)
    return dx, dscale, doffset, None, None


_fused_gradient.accepts_none = True  # type: ignore[attr-defined]


@export("nn.fused_batch_norm")
def fused_batch_norm(
    x: TensorLike,
    scale: TensorLike,
    offset: TensorLike,
    mean: TensorLike = None,
    variance: TensorLike = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalization of images: (normalized `x`, mean, variance).

    In training, mean and variance are those of the batch, else the given ones.
    """
    value = to_tensor(x, name="input")
    gamma, beta = to_tensor(scale, name="scale"), to_tensor(offset, name="offset")
    if is_training and (mean is not None or variance is not None):
        raise ValueError("Both 'mean' and 'variance' must be None if is_training is True.")
    m = constant(np.zeros(0, np.float32)) if mean is None else mean
    v = constant(np.zeros(0, np.float32)) if variance is None else variance
    least = max(epsilon, 1.001e-5)  # smaller ones are refused by cuDNN, so all devices use at least this
    options: dict[str, Any] = dict(epsilon=least, data_format=data_format, is_training=is_training)
    y, batch_mean, batch_variance, *_ = apply_list(
        "FusedBatchNormV3", value, gamma, beta, m, v, name=name, **options
    )
    return y, batch_mean, batch_variance
