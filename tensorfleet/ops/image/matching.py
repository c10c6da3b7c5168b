"""Pairs of the nearest, and parts of images that hang together: ops of `tf.contrib.image`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.samples import case

_DISTANCES = np.array([[0.5, 0.1, 0.3], [0.6, 0.2, 0.4]], np.float32)
_IMAGE = np.array([[[1, 1, 0], [0, 1, 2], [1, 0, 2]]])


def _match_shapes(op: Operation) -> list[TensorShape]:
    shape = op._inputs[0].shape
    rows, columns = (None, None) if shape.rank is None else shape.as_list()
    return [TensorShape([rows]), TensorShape([columns])]


@op(
    "BipartiteMatch",
    "distance_mat: float[2], num_valid_rows: float -> row_to_col_match_indices: int32, col_to_row_match_indices: int32",
    "top_k: int = -1",
    shape=_match_shapes,
    host=True,
    examples=[case(_DISTANCES, np.float32(2)), case(_DISTANCES, np.float32(-1), top_k=1)],
)
def _bipartite_match(ctx: HostContext, distances: Array, valid: Array, *, top_k: int) -> tuple[Array, Array]:
    rows, columns = distances.shape
    if np.ndim(valid) > 1 or np.size(valid) != 1:
        raise errors.invalid("`num_valid_rows` must be a scalar or a vector of length 1")
    count = int(np.ravel(valid)[0])
    number = min(rows, columns, *([count] if count >= 0 else []), *([top_k] if top_k > 0 else []))
    left = np.array(distances, np.float32)
    left[count if count >= 0 else rows :] = np.inf
    of_rows, of_columns = np.full(rows, -1, np.int32), np.full(columns, -1, np.int32)
    for _ in range(number):
        row, column = np.unravel_index(np.argmin(left), left.shape)
        of_rows[row], of_columns[column] = column, row
        left[row], left[:, column] = np.inf, np.inf
    return of_rows, of_columns


not_differentiable("BipartiteMatch")


@export("contrib.image.bipartite_match")
def bipartite_match(
    distance_mat: TensorLike,
    num_valid_rows: TensorLike,
    top_k: int = -1,
    name: str | None = "bipartite_match",
) -> Any:
    """Pairs of rows and columns, the nearest first, each in one pair: their columns and their rows, or -1."""
    return apply_list("BipartiteMatch", distance_mat, num_valid_rows, top_k=top_k, name=name)


@op(
    "ImageConnectedComponents",
    "image: dtype[3] -> components: int64",
    "dtype: {int64, int32, uint16, int16, uint8, int8, half, float, double, bool, string} = float",
    shape=same_as_input,
    host=True,
    examples=[case(_IMAGE), case(_IMAGE > 0)],
)
def _connected(ctx: HostContext, images: Array) -> Array:
    """One more than the place of the first pixel of the part of an image that a pixel belongs to."""
    from scipy import ndimage

    result = np.zeros(images.shape, np.int64)
    size = int(np.prod(images.shape[1:]))
    places = np.arange(1, size + 1).reshape(images.shape[1:])
    for i, image in enumerate(images):
        for value in np.unique(image):
            if not value:
                continue
            parts, count = ndimage.label(image == value)
            first = np.zeros(count + 1, np.int64)
            if count:
                first[1:] = ndimage.minimum(places, parts, np.arange(1, count + 1)) + i * size
            result[i] += first[parts]
    return result


not_differentiable("ImageConnectedComponents")


@export("contrib.image.connected_components")
def connected_components(images: TensorLike) -> Tensor:
    """Numbers, from 1, for the parts of images of equal neighbours that are not zero; zero elsewhere."""
    with name_scope("connected_components"):
        images = to_tensor(images, name="images")
        rank = images.shape.ndims
        if rank not in (2, 3):
            raise TypeError(f"images should have rank 2 (HW) or 3 (NHW). Static shape is {images.shape}")
        batch = images if rank == 3 else apply("ExpandDims", images, 0)
        parts = apply("ImageConnectedComponents", batch)
        flat = apply("Reshape", parts, [-1])
        # A zero in front makes it the first of the distinct values, so that their places are the numbers.
        zero = to_tensor(np.zeros(1, np.int64))
        _, places = apply_list("Unique", apply("ConcatV2", [zero, flat], 0), out_idx=dtypes.int32)
        numbers = apply("Reshape", places[1:], apply("Shape", images))
        numbers.set_shape(images.shape)
        columns: Tensor = cast(numbers, dtypes.int32)
        return columns
