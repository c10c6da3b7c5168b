"""Measures of images: how alike two are, how rough one is, where its edges lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.api.image.checks import convert_image_dtype
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.basic import identity
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.pad import pad
from tensorfleet.ops.array.shape import reshape
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_all, reduce_mean, reduce_prod, reduce_sum


@export("image.total_variation")
def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the differences between neighbouring pixels; one number per image of a batch."""
    with name_scope(name, "total_variation"):
        images = to_tensor(images, name="images")
        rank = images.shape.rank
        if rank not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        axes = None if rank == 3 else [1, 2, 3]
        if rank == 3:
            down, across = images[1:] - images[:-1], images[:, 1:] - images[:, :-1]
        else:
            down, across = images[:, 1:] - images[:, :-1], images[:, :, 1:] - images[:, :, :-1]
        return reduce_sum(abs(down), axis=axes) + reduce_sum(abs(across), axis=axes)


def _shape_checks(a: Tensor, b: Tensor) -> list[Operation]:
    """Assertions that two images have the same shape, where that is not known."""
    for one in (a, b):
        if one.shape.rank is not None and one.shape.rank < 3:
            raise ValueError(f"Shape {one.shape} must have rank at least 3")
    if a.shape.rank is not None and b.shape.rank is not None:
        a.shape.with_rank_at_least(3)
        for x, y in zip(a.shape.as_list()[::-1], b.shape.as_list()[::-1], strict=False):
            if x is not None and y is not None and x != y and 1 not in (x, y):
                raise ValueError(f"Shapes {a.shape} and {b.shape} are not compatible.")
        if a.shape.as_list()[-3:] != b.shape.as_list()[-3:] and a.shape.is_fully_defined():
            raise ValueError(f"Two images are not compatible: shapes {a.shape} and {b.shape}.")
    first, second = shape_of(a), shape_of(b)
    return [Assert(reduce_all(apply("GreaterEqual", first[-3:], second[-3:])), [first, second], summarize=10)]


@export("image.psnr")
def psnr(a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of two images, in decibels; one number per pair of a batch."""
    with name_scope(name, "PSNR", [a, b]):
        a, b = to_tensor(a, name="a"), to_tensor(b, name="b")
        highest = convert_image_dtype(cast(max_val, a.dtype.base_dtype), dtypes.float32)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = reduce_mean(apply("SquaredDifference", a, b), axis=[-3, -2, -1])
        value = apply(
            "Sub",
            20 * apply("Log", highest) / np.float32(math.log(10.0)),
            np.float32(10 / math.log(10.0)) * apply("Log", error),
            name="psnr",
        )
        with control_dependencies(_shape_checks(a, b)):
            return apply("Identity", value)


# -- structural similarity ---------------------------------------------------------------------------


def _window(size: int, sigma: float) -> Array:
    """A Gaussian bell [size, size, 1, 1] with sum one."""
    # As TensorFlow computes it, in float32 and as a softmax, so that the last digits agree.
    places = np.arange(size, dtype=np.float32) - np.float32(size - 1) / 2
    line = -0.5 * np.square(places) / np.float32(sigma) ** 2
    flat = (line[:, None] + line[None, :]).ravel()
    weights = np.exp(flat - flat.max())
    result: Array = (weights / weights.sum()).astype(np.float32).reshape(size, size, 1, 1)
    return result


def _smoothed(x: Tensor, window: Tensor) -> Tensor:
    dims = shape_of(x)
    flat = reshape(x, concat([[-1], dims[-3:]], 0))
    tiled = apply("Tile", window, stack([1, 1, dims[-1], 1]))
    y = apply("DepthwiseConv2dNative", flat, tiled, strides=[1, 1, 1, 1], padding="VALID")
    return reshape(y, concat([dims[:-3], shape_of(y)[1:]], 0))


def _similarity(
    a: Tensor, b: Tensor, max_val: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """Structural similarity, and its part for contrast and structure alone, per channel."""
    window = to_tensor(_window(size, sigma), a.dtype.base_dtype)
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_a, mean_b = _smoothed(a, window), _smoothed(b, window)
    both = mean_a * mean_b * 2.0
    squares = apply("Square", mean_a) + apply("Square", mean_b)
    luminance = (both + c1) / (squares + c1)
    crossed = _smoothed(a * b, window) * 2.0
    spread = _smoothed(apply("Square", a) + apply("Square", b), window)
    structure = (crossed - both + c2) / (spread - squares + c2)
    return reduce_mean(luminance * structure, [-3, -2]), reduce_mean(structure, [-3, -2])


def _check_size(image: Tensor, size: int) -> None:
    known = image.shape.as_list()[-3:-1] if image.shape.rank is not None else []
    if any(d is not None and d < size for d in known):
        raise ValueError(f"Images of shape {image.shape} are smaller than the filter of size {size}.")


def _as_floats(img1: TensorLike, img2: TensorLike, max_val: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
    """Two images of the same shape and their highest value, in [0, 1]."""
    a, b = to_tensor(img1, name="img1"), to_tensor(img2, name="img2")
    with control_dependencies(_shape_checks(a, b)):
        a = identity(a)
    highest = convert_image_dtype(cast(max_val, a.dtype.base_dtype), dtypes.float32)
    return convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32), highest


@export("image.ssim")
def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of two images, at most 1; one number per pair of a batch."""
    with name_scope(None, "SSIM", [img1, img2]):
        a, b, highest = _as_floats(img1, img2, max_val)
        _check_size(a, filter_size)
        per_channel, _ = _similarity(a, b, highest, filter_size, filter_sigma, k1, k2)
        return reduce_mean(per_channel, [-1])


_SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def _halved(x: Tensor) -> Tensor:
    """Averages of 2 x 2 pixels; an odd last row or column counts twice."""
    dims = shape_of(x)
    flat = reshape(x, concat([[-1], dims[-3:]], 0))
    odd = apply("FloorMod", dims[-3:-1], 2)
    rows = stack([stack([0, 0]), stack([0, odd[0]]), stack([0, odd[1]]), stack([0, 0])])
    padded = pad(flat, rows, mode="SYMMETRIC")
    window = [1, 2, 2, 1]
    y = apply("AvgPool", padded, ksize=window, strides=window, padding="VALID")
    return reshape(y, concat([dims[:-3], shape_of(y)[1:]], 0))


@export("image.ssim_multiscale")
def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    power_factors: Sequence[float] = _SCALES,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of two images over several sizes of them, each half as large as the last."""
    with name_scope(None, "MS-SSIM", [img1, img2]):
        a, b, highest = _as_floats(img1, img2, max_val)
        parts = []
        whole: Any = None
        for k in range(len(power_factors)):
            if k:
                a, b = _halved(a), _halved(b)
            _check_size(a, filter_size)
            whole, structure = _similarity(a, b, highest, filter_size, filter_sigma, k1, k2)
            parts.append(apply("Relu", structure))
        parts[-1] = apply("Relu", whole)
        powers = apply("Pow", stack(parts, axis=-1), to_tensor(list(power_factors), dtypes.float32))
        return reduce_mean(reduce_prod(powers, [-1]), [-1])


# -- edges -------------------------------------------------------------------------------------------


@export("image.image_gradients")
def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """Differences to the next row and to the next column, zero at the far ends, of a batch of images."""
    image = to_tensor(image)
    if image.shape.rank != 4:
        raise ValueError(
            "image_gradients expects a 4D tensor [batch_size, h, w, d], not "
            f"{image.shape if image.shape.rank is None else image.shape.as_list()}."
        )
    down, across = image[:, 1:] - image[:, :-1], image[:, :, 1:] - image[:, :, :-1]
    dy = pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]])
    dx = pad(across, [[0, 0], [0, 0], [0, 1], [0, 0]])
    return reshape(dy, shape_of(image)), reshape(dx, shape_of(image))


@export("image.sobel_edges")
def sobel_edges(image: TensorLike) -> Tensor:
    """Sobel's differences down and across, as a last axis of two, of a batch of images."""
    image = to_tensor(image)
    static = image.shape
    dims = shape_of(image)
    down = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], np.float32)
    kernels = np.stack([down, down.T], axis=-1)[:, :, None, :]
    tiled = apply(
        "Tile", to_tensor(kernels, image.dtype.base_dtype, name="sobel_filters"), stack([1, 1, dims[-1], 1])
    )
    padded = pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = apply("DepthwiseConv2dNative", padded, tiled, strides=[1, 1, 1, 1], padding="VALID")
    result = reshape(edges, concat([dims, [2]], 0))
    result.set_shape(static.concatenate([2]))
    return result
