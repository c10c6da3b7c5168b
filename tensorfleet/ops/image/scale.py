"""Images scaled and moved, each new pixel a sum of old ones weighted by a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.ops.common import ints, shape_given_by
from tensorfleet.ops.nn.shapes import of_rank
from tensorfleet.ops.samples import case

_X = np.random.RandomState(0).rand(2, 5, 4, 2).astype(np.float32)
_SCALE, _MOVE = np.array([1.5, 0.6], np.float32), np.array([0.5, -0.25], np.float32)
_HOW = 'kernel_type: string = "lanczos3"; antialias: bool = true'
_TYPES = "{int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}"


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def weight(x: Array) -> Array:
        turns = np.pi * np.maximum(x, 1e-3)
        inside = radius * np.sin(turns) * np.sin(turns / radius) / turns**2
        return np.where(x > radius, 0, np.where(x <= 1e-3, 1, inside))

    return weight


def _gaussian(x: Array) -> Array:
    return np.where(x >= 1.5, 0, np.exp(-x * x / (2 * 0.5**2)))


def _box(x: Array) -> Array:
    return np.where(x < 0.5, 1, np.where(x == 0.5, 0.5, 0))


def _triangle(x: Array) -> Array:
    result: Array = np.maximum(1 - x, 0)
    return result


def _keys(x: Array) -> Array:
    near, far = ((1.5 * x - 2.5) * x) * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _mitchell(x: Array) -> Array:
    near = ((7 / 6 * x - 2) * x) * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


# How far a kernel reaches, and its weight at a distance.
_KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, _box),
    "triangle": (1.0, _triangle),
    "keyscubic": (2.0, _keys),
    "mitchellcubic": (2.0, _mitchell),
}


def _weights(n_in: int, n_out: int, scale: Array, move: Array, kernel: bytes, antialias: bool) -> Array:
    """How much of each old pixel goes into each new one, along one axis."""
    if kernel.decode() not in _KERNELS:
        raise errors.invalid(f"Unrecognized kernel type: {kernel.decode()}; one of {', '.join(_KERNELS)}")
    if not scale > 0:
        raise errors.invalid("scale must be greater than zero.")
    reach, weight = _KERNELS[kernel.decode()]
    back = np.float32(1) / np.float32(scale)
    width = max(back, np.float32(1)) if antialias else np.float32(1)
    places = (np.arange(n_out, dtype=np.float32) + np.float32(0.5)) * back - back * np.float32(move)
    first = np.maximum(np.ceil(places - reach * width - 0.5), 0)[:, None]
    last = np.minimum(np.floor(places + reach * width - 0.5), n_in - 1)[:, None]
    old = np.arange(n_in, dtype=np.float32)
    weights = weight(np.abs(old + np.float32(0.5) - places[:, None]).astype(np.float64) / width)
    weights = np.where((old >= first) & (old <= last), weights, 0)
    weights[(places < 0) | (places > n_in)] = 0  # nothing of the image is there
    total = weights.sum(1, keepdims=True)
    return np.where(np.abs(total) > 1e-35, weights / np.where(total == 0, 1, total), 0).astype(np.float32)


def _both(
    shape: Sequence[int] | Array, size: Sequence[int], scale: Array, move: Array, how: tuple[bytes, bool]
) -> tuple[Array, Array]:
    """The weights along the height and along the width."""
    high, wide = (
        _weights(shape[axis], size[axis - 1], scale[axis - 1], move[axis - 1], *how) for axis in (1, 2)
    )
    return high, wide


def _times(high: Array, wide: Array, x: Array) -> Array:
    result: Array = np.einsum("ij,bjkc,lk->bilc", high, np.asarray(x, np.float32), wide, optimize=True)
    return result


def _scaled(op: Operation) -> TensorShape:
    batch, _, _, channels = of_rank(op._inputs[0].shape, 4).as_list()
    return TensorShape([batch, *of_rank(shape_given_by(op, 1), 2).as_list(), channels])


@op(
    "ScaleAndTranslate",
    "images: T, size: int32, scale: float, translation: float -> resized_images: float",
    f"T: {_TYPES}; {_HOW}",
    shape=_scaled,
    host=True,
    examples=[
        case(
            _X, np.array([7, 3], np.int32), _SCALE, _MOVE, kernel_type=kernel, antialias=antialias, grad=False
        )
        for kernel in _KERNELS
        for antialias in (True, False)
    ],
)
def _scale_and_translate(
    ctx: HostContext, x: Array, size: Array, scale: Array, move: Array, *, kernel_type: bytes, antialias: bool
) -> Array:
    if np.ndim(x) != 4:
        raise errors.invalid(f"input must be 4-dimensional{list(np.shape(x))}")
    wanted = ints(size)
    if len(wanted) != 2 or min(wanted) <= 0:
        raise errors.invalid("output dimensions must be positive: size takes a height and a width.")
    high, wide = _both(x.shape, wanted, scale, move, (kernel_type, antialias))
    return _times(high, wide, x)


@op(
    "ScaleAndTranslateGrad",
    "grads: T, original_image: T, scale: float, translation: float -> output: T",
    f"T: {{float}}; {_HOW}",
    shape=lambda op: op._inputs[1].shape,
    host=True,
    examples=[case(_X[:, :3], _X, _SCALE, _MOVE, grad=False)],
)
def _scale_and_translate_grad(
    ctx: HostContext, dy: Array, x: Array, scale: Array, move: Array, *, kernel_type: bytes, antialias: bool
) -> Array:
    high, wide = _both(x.shape, np.shape(dy)[1:3], scale, move, (kernel_type, antialias))
    return _times(high.T, wide.T, dy)


@gradient("ScaleAndTranslate")
def _scale_and_translate_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, None, None, None]:
    image, _, scale, move = op.inputs
    how = {k: op.get_attr(k) for k in ("kernel_type", "antialias")}
    as_float = apply("Cast", image, DstT=dy.dtype.base_dtype)
    derivative = apply("ScaleAndTranslateGrad", dy, as_float, scale, move, **how)
    return apply("Cast", derivative, DstT=image.dtype.base_dtype), None, None, None


not_differentiable("ScaleAndTranslateGrad")
