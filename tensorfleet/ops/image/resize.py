"""Resizing images: nearest, bilinear, bicubic and area, each with TensorFlow's own sampling grid.

Sizes are known while tracing, so which pixels an output reads, and how they are weighed, is worked out in
numpy beforehand. Both axes are independent: a resize is one pass along the width, one along the height.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.common import ints, shape_given_by
from tensorfleet.ops.nn.shapes import of_rank
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_ANY = "{int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}"
_GRID = "align_corners: bool = false; half_pixel_centers: bool = false"
_X = np.random.RandomState(0).rand(2, 3, 4, 2)
_SIZES = [np.array([5, 7], np.int32), np.array([2, 3], np.int32)]
_EXAMPLES = [
    case(_X.astype(np.float32), _SIZES[0]),
    case(_X.astype(np.float32), _SIZES[1], align_corners=True),
    case((_X * 255).astype(np.uint8), _SIZES[0]),
]
_NO_IMAGES = case(_X[:0].astype(np.float32), _SIZES[0], grad=False)
_CENTERED = case(_X.astype(np.float32), _SIZES[0], half_pixel_centers=True)


def _resized(op: Operation) -> TensorShape:
    batch, _, _, channels = of_rank(op._inputs[0].shape, 4).as_list()
    size = shape_given_by(op, 1)
    if size.rank not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {size.rank}")
    return TensorShape([batch, *of_rank(size, 2).as_list(), channels])


def _sizes(x: Array, size: Array) -> tuple[tuple[int, int], tuple[int, int]]:
    """(in, out) along the height and along the width, checked as TensorFlow does."""
    if x.ndim != 4:
        raise errors.invalid(f"input must be 4-dimensional, got shape {x.shape}")
    wanted = ints(size)
    if len(wanted) != 2:
        raise errors.invalid(f"shape_t must have two elements, got {len(wanted)}")
    if min(wanted) <= 0:
        raise errors.invalid("output dimensions must be positive")
    if x.shape[1] <= 0 or x.shape[2] <= 0:
        raise errors.invalid("input image must be of non-zero size")
    if x.shape[3] <= 0:
        raise errors.invalid("image must have at least one channel")
    return (x.shape[1], wanted[0]), (x.shape[2], wanted[1])


def _step(n_in: int, n_out: int, align_corners: bool) -> np.float32:
    """How far apart, in input pixels, two neighbouring outputs lie."""
    if align_corners and n_out > 1:
        return np.float32(n_in - 1) / np.float32(n_out - 1)
    return np.float32(n_in) / np.float32(n_out)


def _positions(n_in: int, n_out: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """Where each output lies on the input, in pixels."""
    if align_corners and half_pixel_centers:
        raise errors.invalid("If half_pixel_centers is True, align_corners must be False.")
    step = _step(n_in, n_out, align_corners)
    places = np.arange(n_out, dtype=np.float32)
    half = np.float32(0.5)
    return (places + half) * step - half if half_pixel_centers else places * step


def _taken(xp: ArrayModule, x: Array, index: Array, axis: int) -> Array:
    return xp.take(x, index, axis=axis) if is_numpy(xp) else xp.take(x, index, axis=axis, mode="clip")


def _along(weights: Array, axis: int) -> Array:
    shape = [1, 1, 1, 1]
    shape[axis] = -1
    return weights.reshape(shape)


_MAX_ADDED_LINES = 8  # input lines that an output is made from, up to which they are added one by one
_MAX_ADDED_COLUMNS = 4  # the same along the width, of as many outputs as there are inputs


def _times(xp: ArrayModule, weights: Array, x: Array, axis: int) -> Array:
    """Images with their lines along the height (axis 1) or the width multiplied by a matrix [new, old]."""
    count = int((weights != 0).sum(1).max(initial=0))
    if axis == 2:
        if is_numpy(xp):
            return xp.matmul(weights, x)
        if count * len(weights) > _MAX_ADDED_COLUMNS * weights.shape[1]:
            columns = [
                xp.einsum("ow,bhwc->bhoc", part, x[:, :, start:end]) for start, end, part in _blocks(weights)
            ]
            return columns[0] if len(columns) == 1 else xp.concatenate(columns, 2)
        return _times(xp, weights, x.swapaxes(1, 2), 1).swapaxes(1, 2)
    if 0 < count <= _MAX_ADDED_LINES:
        index = np.argsort(weights == 0, axis=1, kind="stable")[:, :count]
        parts = np.take_along_axis(weights, index, 1)
        total = _taken(xp, x, index[:, 0], 1) * _along(parts[:, 0], 1)
        for k in range(1, count):
            total = total + _taken(xp, x, index[:, k], 1) * _along(parts[:, k], 1)
        return total
    batch, height, width, channels = x.shape
    product = xp.matmul(weights, x.reshape(batch, height, width * channels))
    return product.reshape(batch, len(weights), width, channels)


_MOST_BLOCKS, _LEAST_ACROSS = 8, 16


def _blocks(weights: Array) -> list[tuple[int, int, Array]]:
    """Some rows of a matrix after the other: where the columns that are not zero begin and end, and what is there."""
    count = min(_MOST_BLOCKS, weights.shape[1] // _LEAST_ACROSS)
    blocks = []
    for rows in np.array_split(weights, max(count, 1)):
        used = np.flatnonzero(rows.any(0)) if rows.any() else np.zeros(1, np.int64)
        start, end = int(used[0]), int(used[-1]) + 1
        blocks.append((start, end, rows[:, start:end]))
    spread = 2 * sum(part.size for *_, part in blocks) > weights.size
    return [(0, weights.shape[1], weights)] if spread else blocks


def _dense(n_in: int, taps: list[tuple[Array, Array]]) -> Array:
    """The matrix [out, in] of some taps: (index, weight) per output."""
    matrix = np.zeros((len(taps[0][0]), n_in), np.float32)
    rows = np.arange(len(matrix))
    for index, weight in taps:
        np.add.at(matrix, (rows, index), weight)
    return matrix


# -- bilinear ----------------------------------------------------------------------------------------


def _linear_taps(n_in: int, n_out: int, grid: tuple[bool, bool]) -> tuple[Array, Array, Array]:
    where = _positions(n_in, n_out, *grid)
    floor = np.floor(where)
    low = np.maximum(floor, 0).astype(np.int64)
    high = np.minimum(floor + 1, n_in - 1).astype(np.int64)
    return np.minimum(low, n_in - 1), high, (where - floor).astype(np.float32)


@lru_cache(64)
def _linear_matrix(n_in: int, n_out: int, grid: tuple[bool, bool]) -> Array:
    low, high, part = _linear_taps(n_in, n_out, grid)
    return _dense(n_in, [(low, 1 - part), (high, part)])


@op(
    "ResizeBilinear",
    "images: T, size: int32[1] -> resized_images: float",
    f"T: {_ANY}; {_GRID}",
    shape=_resized,
    static=["size"],
    examples=[*_EXAMPLES, _CENTERED, _NO_IMAGES],
)
def _resize_bilinear(
    xp: ArrayModule, x: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool
) -> Array:
    heights, widths = _sizes(x, size)
    x = x.astype(np.float32)
    for axis, (n_in, n_out) in ((2, widths), (1, heights)):
        if n_in == n_out and not half_pixel_centers:
            continue
        low, high, part = _linear_taps(n_in, n_out, (align_corners, half_pixel_centers))
        start, end = _taken(xp, x, low, axis), _taken(xp, x, high, axis)
        # This form, not a weighted sum: an area of one color must keep exactly that color.
        x = start + (end - start) * _along(part, axis)
    return x


@gradient("ResizeBilinear")
def _resize_bilinear_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    grid = {k: op.get_attr(k) for k in ("align_corners", "half_pixel_centers")}
    return apply("ResizeBilinearGrad", dy, op.inputs[0], **grid), None


def _back(xp: ArrayModule, dy: Array, shape: tuple[int, ...], matrix: Any) -> Array:
    """A resize undone along both axes by the transposed matrices."""
    for axis in (1, 2):
        dy = _times(xp, matrix(shape[axis], dy.shape[axis]).T.astype(dy.dtype), dy, axis)
    return dy


@op(
    "ResizeBilinearGrad",
    "grads: float, original_image: T -> output: T",
    f"T: floating; {_GRID}",
    shape=lambda op: op._inputs[1].shape,
    examples=[case(_X.astype(np.float32), np.zeros((2, 5, 7, 2), np.float32), grad=False)],
)
def _resize_bilinear_grad(
    xp: ArrayModule, dy: Array, x: Array, *, align_corners: bool, half_pixel_centers: bool
) -> Array:
    grid = (align_corners, half_pixel_centers)
    return _back(xp, dy, x.shape, lambda n, m: _linear_matrix(n, m, grid)).astype(x.dtype)


@gradient("ResizeBilinearGrad")
def _resize_bilinear_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, None]:
    size = apply("Slice", apply("Shape", op.inputs[0]), [1], [2])
    grid = {k: op.get_attr(k) for k in ("align_corners", "half_pixel_centers")}
    return apply("ResizeBilinear", dz, size, **grid), None


# -- nearest -----------------------------------------------------------------------------------------


def _nearest(n_in: int, n_out: int, grid: tuple[bool, bool]) -> Array:
    align_corners, half_pixel_centers = grid
    step = _step(n_in, n_out, align_corners)
    places = np.arange(n_out, dtype=np.float32)
    if half_pixel_centers:
        _positions(n_in, n_out, *grid)  # refuses both options together
        index = np.floor((places + np.float32(0.5)) * step)
    else:
        index = np.floor(places * step + np.float32(0.5)) if align_corners else np.floor(places * step)
    result: Array = np.clip(index, 0, n_in - 1).astype(np.int64)
    return result


@lru_cache(64)
def _nearest_matrix(n_in: int, n_out: int, grid: tuple[bool, bool]) -> Array:
    return _dense(n_in, [(_nearest(n_in, n_out, grid), np.ones(n_out, np.float32))])


@op(
    "ResizeNearestNeighbor",
    "images: T, size: int32[1] -> resized_images: T",
    f"T: {_ANY}; {_GRID}",
    shape=_resized,
    static=["size"],
    examples=[*_EXAMPLES, _CENTERED, case(_X, _SIZES[0])],
)
def _resize_nearest(
    xp: ArrayModule, x: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool
) -> Array:
    grid = (align_corners, half_pixel_centers)
    for axis, (n_in, n_out) in zip((1, 2), _sizes(x, size), strict=True):
        x = _taken(xp, x, _nearest(n_in, n_out, grid), axis)
    return x


@gradient("ResizeNearestNeighbor")
def _resize_nearest_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    shape = op.inputs[0].shape
    known = shape.rank is not None and None not in shape.as_list()[1:3]
    size = shape.as_list()[1:3] if known else apply("Slice", apply("Shape", op.inputs[0]), [1], [2])
    grid = {k: op.get_attr(k) for k in ("align_corners", "half_pixel_centers")}
    return apply("ResizeNearestNeighborGrad", dy, size, **grid), None


@op(
    "ResizeNearestNeighborGrad",
    "grads: T, size: int32[1] -> output: T",
    "T: {uint8, int8, int32, half, float, double, bfloat16}; " + _GRID,
    shape=_resized,
    static=["size"],
    examples=[case(_X, _SIZES[1]), case(_X, np.array([5, 7], np.int32), align_corners=True)],
)
def _resize_nearest_grad(
    xp: ArrayModule, dy: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool
) -> Array:
    shape = (dy.shape[0], *ints(size), dy.shape[3])
    grid = (align_corners, half_pixel_centers)
    return _back(xp, dy, shape, lambda n, m: _nearest_matrix(n, m, grid)).astype(dy.dtype)


@gradient("ResizeNearestNeighborGrad")
def _resize_nearest_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, None]:
    size = apply("Slice", apply("Shape", op.inputs[0]), [1], [2])
    grid = {k: op.get_attr(k) for k in ("align_corners", "half_pixel_centers")}
    return apply("ResizeNearestNeighbor", dz, size, **grid), None


# -- bicubic -----------------------------------------------------------------------------------------

_TABLE_STEPS = 1024  # positions between two pixels that weights are tabulated for


@lru_cache(2)
def _cubic_table(a: float) -> tuple[Array, Array]:
    """Weights of a pixel x away and of one 1 + x away, for x in steps of 1/1024."""
    x = np.arange(_TABLE_STEPS + 1) / _TABLE_STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return near.astype(np.float32), far.astype(np.float32)


@lru_cache(64)
def _cubic_matrix(n_in: int, n_out: int, grid: tuple[bool, bool]) -> Array:
    return _dense(n_in, _cubic_taps(n_in, n_out, grid))


def _cubic_taps(n_in: int, n_out: int, grid: tuple[bool, bool]) -> list[tuple[Array, Array]]:
    half_pixel_centers = grid[1]
    near, far = _cubic_table(-0.5 if half_pixel_centers else -0.75)
    where = _positions(n_in, n_out, *grid)
    floor = np.floor(where)
    offset = np.rint((where - floor) * np.float32(_TABLE_STEPS)).astype(np.int64)
    weights = [far[offset], near[offset], near[_TABLE_STEPS - offset], far[_TABLE_STEPS - offset]]
    wanted = [floor.astype(np.int64) + k for k in (-1, 0, 1, 2)]
    index = [np.clip(i, 0, n_in - 1) for i in wanted]
    if half_pixel_centers:  # pixels outside weigh nothing; the rest share their weight
        weights = [np.where(i == j, w, np.float32(0)) for i, j, w in zip(index, wanted, weights, strict=True)]
        total = (weights[0] + weights[1] + weights[2] + weights[3]).astype(np.float32)
        safe = np.where(np.abs(total) >= 1000 * np.finfo(np.float32).tiny, total, np.float32(1))
        weights = [w / safe for w in weights]
    return [(i, w.astype(np.float32)) for i, w in zip(index, weights, strict=True)]


@op(
    "ResizeBicubic",
    "images: T, size: int32[1] -> resized_images: float",
    f"T: {_ANY}; {_GRID}",
    shape=_resized,
    static=["size"],
    examples=[*_EXAMPLES, _CENTERED, _NO_IMAGES],
)
def _resize_bicubic(
    xp: ArrayModule, x: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool
) -> Array:
    heights, widths = _sizes(x, size)
    x = x.astype(np.float32)
    for axis, (n_in, n_out) in ((2, widths), (1, heights)):
        x = _times(xp, _cubic_matrix(n_in, n_out, (align_corners, half_pixel_centers)), x, axis)
    return x


@gradient("ResizeBicubic")
def _resize_bicubic_gradient(op: Operation, dy: Tensor) -> tuple[Tensor | None, None]:
    if op.inputs[0].dtype.base_dtype not in (dtypes.float32, dtypes.float64):
        return None, None
    grid = {k: op.get_attr(k) for k in ("align_corners", "half_pixel_centers")}
    return apply("ResizeBicubicGrad", dy, op.inputs[0], **grid), None


@op(
    "ResizeBicubicGrad",
    "grads: float, original_image: T -> output: T",
    "T: {float, double}; " + _GRID,
    shape=lambda op: op._inputs[1].shape,
    examples=[case(_X.astype(np.float32), np.zeros((2, 5, 7, 2), np.float32), grad=False)],
)
def _resize_bicubic_grad(
    xp: ArrayModule, dy: Array, x: Array, *, align_corners: bool, half_pixel_centers: bool
) -> Array:
    grid = (align_corners, half_pixel_centers)
    return _back(xp, dy.astype(x.dtype), x.shape, lambda n, m: _cubic_matrix(n, m, grid))


not_differentiable("ResizeBicubicGrad")

# -- area --------------------------------------------------------------------------------------------


@lru_cache(64)
def _area_matrix(n_in: int, n_out: int, align_corners: bool) -> Array:
    """How much of each input pixel lies in each output's stretch, over the length of that stretch."""
    step = _step(n_in, n_out, align_corners)
    matrix = np.zeros((n_out, n_in), np.float32)
    for out in range(n_out):
        start, end = np.float32(out) * step, np.float32(out + 1) * step
        for i in range(int(np.floor(start)), int(np.ceil(end))):
            covered = min(np.float32(i + 1), end) - max(np.float32(i), start)
            matrix[out, min(max(i, 0), n_in - 1)] += covered
    return matrix / step


@op(
    "ResizeArea",
    "images: T, size: int32[1] -> resized_images: float",
    f"T: {_ANY}; align_corners: bool = false",
    shape=_resized,
    static=["size"],
    examples=[*_EXAMPLES, _NO_IMAGES],
)
def _resize_area(xp: ArrayModule, x: Array, size: Array, *, align_corners: bool) -> Array:
    x = x.astype(np.float32)
    for axis, (n_in, n_out) in zip((1, 2), _sizes(x, size), strict=True):
        x = _times(xp, _area_matrix(n_in, n_out, align_corners), x, axis)
    return x


# -- names -------------------------------------------------------------------------------------------


resize_bilinear = op_function(
    "ResizeBilinear",
    "images, size, align_corners=False, name=None, half_pixel_centers=False",
    "image.resize_bilinear",
    "Images [batch, height, width, channels] resized to `size`, linearly between pixels, as float32.",
)


resize_nearest_neighbor = op_function(
    "ResizeNearestNeighbor",
    "images, size, align_corners=False, name=None, half_pixel_centers=False",
    "image.resize_nearest_neighbor",
    "Images [batch, height, width, channels] resized to `size`, each pixel that of the nearest place.",
)


resize_bicubic = op_function(
    "ResizeBicubic",
    "images, size, align_corners=False, name=None, half_pixel_centers=False",
    "image.resize_bicubic",
    "Images [batch, height, width, channels] resized to `size` by cubic curves, as float32.",
)


@export("image.resize_area")
def resize_area(
    images: TensorLike, size: TensorLike, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Images [batch, height, width, channels] resized to `size` by averaging what each pixel covers."""
    return apply("ResizeArea", images, size, align_corners=align_corners, name=name)
