"""Glimpses: windows of one size around given places of images, noise where they leave the image."""

from __future__ import annotations

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.philox import random_state
from tensorfleet.ops.common import ints, static_value
from tensorfleet.ops.nn.shapes import of_rank, same_dimension
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_IMAGE = np.arange(2 * 6 * 5, dtype=np.float32).reshape(2, 6, 5, 1)
_SIZE = np.array([3, 3], np.int32)
_OFFSETS = np.array([[0.1, -0.2], [0.3, 0.0]], np.float32)


def _glimpsed(op: Operation) -> TensorShape:
    batch, _, _, depth = of_rank(op._inputs[0].shape, 4).as_list()
    offsets = of_rank(op._inputs[2].shape, 2).as_list()
    size = static_value(op, 1)
    height, width = (None, None) if size is None else ints(size)
    return TensorShape([same_dimension(batch, offsets[0]), height, width, depth])


@op(
    "ExtractGlimpse",
    "input: float, size: int32[2,], offsets: float[b,2] -> glimpse: float",
    "centered: bool = true; normalized: bool = true; uniform_noise: bool = true; noise: string = 'uniform'",
    shape=_glimpsed,
    host=True,
    static=["size"],
    examples=[
        case(_IMAGE, _SIZE, _OFFSETS),
        case(_IMAGE, _SIZE, _OFFSETS * 5 + 2, centered=False, normalized=False),
        case(_IMAGE, _SIZE, _OFFSETS * 4, uniform_noise=False, noise="zero"),
    ],
)
def _extract_glimpse(
    ctx: HostContext,
    images: Array,
    size: Array,
    offsets: Array,
    *,
    centered: bool,
    normalized: bool,
    uniform_noise: bool,
    noise: bytes,
) -> Array:
    images, places = np.asarray(images), np.asarray(offsets, np.float32)
    if images.ndim != 4:
        raise errors.invalid(f"input must be 4-dimensional {list(images.shape)}")
    if np.shape(size) != (2,):
        raise errors.invalid("input must be a vector of size 2 (height, width)")
    if places.shape != (len(images), 2):
        raise errors.invalid("offset must be a matrix with two columns, one row per image")
    batch, height, width, depth = images.shape
    rows, columns = ints(size)
    extent = np.array([height, width], np.float32)
    if normalized:
        places = places * extent
    if centered:
        places = places / np.float32(2) + extent / np.float32(2)
    corners = np.trunc(places - np.array([rows, columns], np.float32) / np.float32(2)).astype(np.int64)
    shape = (batch, rows, columns, depth)
    if ((corners >= 0) & (corners + [rows, columns] <= [height, width])).all():
        out = np.empty(shape, np.float32)
    else:
        out = _noise(images, shape, b"uniform" if uniform_noise else noise)
    for b, (y, x) in enumerate(corners.tolist()):
        top, left = max(y, 0), max(x, 0)
        bottom, right = min(y + rows, height), min(x + columns, width)
        if top < bottom and left < right:
            out[b, top - y : bottom - y, left - x : right - x] = images[b, top:bottom, left:right]
    return out


def _noise(images: Array, shape: tuple[int, ...], kind: bytes) -> Array:
    random = np.random.default_rng(random_state())
    if kind == b"zero":
        return np.zeros(shape, np.float32)
    if kind == b"gaussian":
        mean, spread = images.mean(axis=(1, 2), keepdims=True), images.std(axis=(1, 2), keepdims=True)
        result: Array = (random.standard_normal(shape) * spread + mean).astype(np.float32)
        return result
    return random.random(shape).astype(np.float32)


not_differentiable("ExtractGlimpse")


extract_glimpse = op_function(
    "ExtractGlimpse",
    "input, size, offsets, centered=True, normalized=True, uniform_noise=True, name=None",
    "image.extract_glimpse",
    "A window of `size` around a place of each image; what lies outside the image is noise.",
)
