"""Several steps of a network in one operation, as graphs that were prepared for inference hold them."""

from __future__ import annotations

import numpy as np

from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply_list
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.conv import conv2d
from tensorfleet.kernels.conv_shapes import conv2d_shape
from tensorfleet.ops.common import static_value
from tensorfleet.ops.nn.shapes import of_rank, same_dimension
from tensorfleet.ops.samples import case

_GEOMETRY = "mode: string(REFLECT|SYMMETRIC); strides: list(int); padding: string(SAME|VALID)"
_OPTIONS = {"mode": "REFLECT", "strides": [1, 1, 1, 1], "padding": "VALID"}
_RANDOM = np.random.RandomState(0)
_IMAGES = _RANDOM.rand(1, 3, 4, 2).astype(np.float32)
_FILTER = _RANDOM.rand(2, 2, 2, 3).astype(np.float32)
_PADDINGS = np.array([[0, 0], [1, 1], [2, 0], [0, 0]], np.int32)


# -- padding and convolution -----------------------------------------------------------------------------


def _fused_shape(op: Operation) -> TensorShape:
    image, *sizes, paddings, weights = op._inputs
    dims = of_rank(image.shape, 4).as_list()
    if sizes:
        of_rank(sizes[0].shape, 1)
        known = static_value(op, 1)
        dims[1:3] = [None, None] if known is None else [int(n) for n in known]
    of_rank(paddings.shape, 2)
    known = static_value(op, len(op._inputs) - 2)
    for axis in range(4):
        around = None if known is None else int(known[axis].sum())
        dims[axis] = None if around is None or dims[axis] is None else dims[axis] + around
    filter_dims = of_rank(weights.shape, 4).as_list()
    same_dimension(dims[3], filter_dims[2])
    window = {name: op._attrs[name] for name in ("strides", "padding")}
    return TensorShape(conv2d_shape(dims, filter_dims, **window))


def _convolved(
    xp: ArrayModule, x: Array, paddings: Array, w: Array, mode: bytes, strides: list[int], padding: bytes
) -> Array:
    padded = registry.get("MirrorPad").kernel(xp, x, paddings, mode=mode)
    return conv2d(xp, padded, w, strides=strides, padding=padding)


@op(
    "FusedPadConv2D",
    "input: T, paddings: int32, filter: T -> output: T",
    f"T: {{half, bfloat16, float, double}}; {_GEOMETRY}",
    shape=_fused_shape,
    static=["paddings"],
    examples=[case(_IMAGES, _PADDINGS, _FILTER, **_OPTIONS, grad=False)],
)
def _fused_pad_conv2d(
    xp: ArrayModule, x: Array, paddings: Array, w: Array, *, mode: bytes, strides: list[int], padding: bytes
) -> Array:
    return _convolved(xp, x, paddings, w, mode, strides, padding)


@op(
    "FusedResizeAndPadConv2D",
    "input: T, size: int32, paddings: int32, filter: T -> output: T",
    f"T: {{half, float, double}}; resize_align_corners: bool = false; {_GEOMETRY}",
    shape=_fused_shape,
    static=["size", "paddings"],
    examples=[
        case(_IMAGES, np.array([5, 6], np.int32), _PADDINGS, _FILTER, **_OPTIONS, grad=False),
        case(
            _IMAGES,
            np.array([2, 3], np.int32),
            _PADDINGS * 0,
            _FILTER,
            resize_align_corners=True,
            mode="SYMMETRIC",
            strides=[1, 2, 1, 1],
            padding="SAME",
            grad=False,
        ),
    ],
)
def _fused_resize_and_pad_conv2d(
    xp: ArrayModule,
    x: Array,
    size: Array,
    paddings: Array,
    w: Array,
    *,
    resize_align_corners: bool,
    mode: bytes,
    strides: list[int],
    padding: bytes,
) -> Array:
    resize = registry.get("ResizeBilinear").kernel
    resized = resize(xp, x, size, align_corners=resize_align_corners, half_pixel_centers=False)
    return _convolved(xp, resized.astype(x.dtype), paddings, w, mode, strides, padding)


not_differentiable("FusedPadConv2D", "FusedResizeAndPadConv2D")


# -- normalization by given moments ----------------------------------------------------------------------

_REMOVED = (9, "Use tf.nn.batch_normalization()")
_NUMBERS = "variance_epsilon: float; scale_after_normalization: bool"


def _normalized_shape(op: Operation) -> TensorShape:
    dims = of_rank(op._inputs[0].shape, 4).as_list()
    for vector in op._inputs[1:5]:
        dims[3] = same_dimension(dims[3], of_rank(vector.shape, 1).as_list()[0])
    return TensorShape(dims)


@op(
    "BatchNormWithGlobalNormalization",
    "t: T, m: T, v: T, beta: T, gamma: T -> result: T",
    f"T: number; {_NUMBERS}",
    shape=_normalized_shape,
    removed=_REMOVED,
)
def _batch_norm(
    xp: ArrayModule,
    t: Array,
    m: Array,
    v: Array,
    beta: Array,
    gamma: Array,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> Array:
    factor = 1 / xp.sqrt(v + v.dtype.type(variance_epsilon))
    return (t - m) * (factor * gamma if scale_after_normalization else factor) + beta


@gradient("BatchNormWithGlobalNormalization")
def _batch_norm_gradient(op: Operation, dy: Tensor) -> list[Tensor]:
    t, m, v, _, gamma = op.inputs
    options = {name: op._attrs[name] for name in ("variance_epsilon", "scale_after_normalization")}
    return apply_list("BatchNormWithGlobalNormalizationGrad", t, m, v, gamma, dy, **options)


def _gradient_shapes(op: Operation) -> list[TensorShape]:
    t, m, v, gamma, dy = (x.shape for x in op._inputs)
    whole, vector = of_rank(t.merge_with(dy), 4), of_rank(m.merge_with(v).merge_with(gamma), 1)
    depth = same_dimension(whole.as_list()[3], vector.as_list()[0])
    return [TensorShape([*whole.as_list()[:3], depth]), *[TensorShape([depth])] * 4]


@op(
    "BatchNormWithGlobalNormalizationGrad",
    "t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T",
    f"T: number; {_NUMBERS}",
    shape=_gradient_shapes,
    removed=_REMOVED,
)
def _batch_norm_grad(
    xp: ArrayModule,
    t: Array,
    m: Array,
    v: Array,
    gamma: Array,
    backprop: Array,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> tuple[Array, Array, Array, Array, Array]:
    spread = v + v.dtype.type(variance_epsilon)
    factor = 1 / xp.sqrt(spread)
    along = (0, 1, 2)
    offset = backprop.sum(along)
    centred = (backprop * (t - m)).sum(along)
    scale = factor * gamma if scale_after_normalization else factor
    dv = centred * scale / (-2 * spread)
    dg = centred * factor if scale_after_normalization else xp.zeros_like(gamma)
    return backprop * scale, -offset * scale, dv, offset, dg


not_differentiable("BatchNormWithGlobalNormalizationGrad")
