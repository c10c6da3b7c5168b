"""Cutting images up: crops by boxes, patches under a sliding window, glimpses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import Check, HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.ops.common import ints, shape_given_by, static_value
from tensorfleet.ops.nn.shapes import of_rank, same_dimension
from tensorfleet.ops.samples import case

_ANY = "{uint8, uint16, int8, int16, int32, int64, half, float, double}"
_IMAGE = np.random.RandomState(0).rand(2, 4, 5, 3).astype(np.float32)
_BOXES = np.array([[0.1, 0.05, 0.83, 0.9], [0.9, 0.71, 0.23, 0.17], [-0.3, 0.2, 1.2, 0.9]], np.float32)
_WHICH = np.array([0, 1, 1], np.int32)
_CROP = np.array([3, 2], np.int32)
_NUMBERS_PER_THREAD = 1 << 16  # numbers in crops that are worth a thread of their own
_ROW_START_COST = 30  # what it costs to begin with a row of numbers that is added to another, in numbers


# -- crops by boxes ----------------------------------------------------------------------------------


def _cropped(op: Operation) -> TensorShape:
    image, boxes = of_rank(op._inputs[0].shape, 4), of_rank(op._inputs[1].shape, 2)
    count = same_dimension(boxes.as_list()[0], of_rank(op._inputs[2].shape, 1).as_list()[0])
    if boxes.as_list()[1] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes.as_list()[1]}")
    size = static_value(op, 3)
    height, width = (None, None) if size is None else ints(size)
    return TensorShape([count, height, width, image.as_list()[3]])


def _places(xp: ArrayModule, first: Array, last: Array, n_in: int, n_out: int) -> Array:
    """Where, in pixels, the outputs of each box lie along one axis: [boxes, n_out]."""
    if n_out == 1:
        return (np.float32(0.5) * (first + last) * np.float32(n_in - 1))[:, None]
    step = (last - first) * np.float32(n_in - 1) / np.float32(n_out - 1)
    result: Array = (first * np.float32(n_in - 1))[:, None] + xp.arange(n_out, dtype=np.float32) * step[
        :, None
    ]
    return result


def _neighbours(xp: ArrayModule, where: Array, n: int) -> tuple[Any, Any, Any, Any]:
    """The pixels below and above each place, how far between them it lies, and whether it is inside."""
    inside = (where >= 0) & (where <= n - 1)
    safe = xp.where(inside, where, np.float32(0))
    low = xp.floor(safe)
    return low.astype(np.int32), xp.ceil(safe).astype(np.int32), safe - low, inside


def _nearest_index(xp: ArrayModule, where: Array, n: int) -> tuple[Any, Any]:
    inside = (where >= 0) & (where <= n - 1)
    safe = xp.where(inside, where, np.float32(0))
    return xp.floor(safe + np.float32(0.5)).astype(np.int32), inside


def _check_boxes(xp: ArrayModule, boxes: Array, box_ind: Array, batch: int, check: Check) -> Array:
    if boxes.ndim != 2 or boxes.shape[1] != 4 or box_ind.shape[0] != boxes.shape[0]:
        text = f"box_index has incompatible shape: boxes {boxes.shape}, box_index {box_ind.shape}"
        raise errors.invalid(text)
    check(
        ((box_ind >= 0) & (box_ind < batch)).all() if box_ind.size else True,
        lambda: "box_index has values outside [0, batch_size)",
        errors.OutOfRangeError,
    )
    return xp.clip(box_ind, 0, max(batch - 1, 0))


@op(
    "CropAndResize",
    "image: T[4], boxes: float, box_ind: int32[1], crop_size: int32[2,] -> crops: float",
    f"T: {_ANY}; method: string(bilinear|nearest) = 'bilinear'; extrapolation_value: float = 0",
    shape=_cropped,
    static=["crop_size"],
    words={
        "image": "input image must be 4-D{}",
        "box_ind": "box_index must be 1-D{}",
        "crop_size": "crop_size must be 1-D{}",
    },
    examples=[
        case(_IMAGE, _BOXES, _WHICH, _CROP),
        case(_IMAGE, _BOXES, _WHICH, _CROP, method="nearest", extrapolation_value=7.0, grad=False),
        case((_IMAGE * 255).astype(np.uint8), _BOXES, _WHICH, np.array([1, 1], np.int32), grad=False),
    ],
)
def _crop_and_resize(
    xp: ArrayModule,
    image: Array,
    boxes: Array,
    box_ind: Array,
    crop_size: Array,
    *,
    method: bytes,
    extrapolation_value: float,
    check: Check,
) -> Array:
    image = xp.asarray(image)  # it may be known while the boxes are traced
    batch, height, width, _ = image.shape
    rows, columns = ints(crop_size)
    if min(rows, columns) <= 0:
        raise errors.invalid("crop dimensions must be positive")
    which = _check_boxes(xp, boxes, box_ind, batch, check)[:, None, None]
    ys = _places(xp, boxes[:, 0], boxes[:, 2], height, rows)
    xs = _places(xp, boxes[:, 1], boxes[:, 3], width, columns)
    if method == b"nearest":
        (y, y_in), (x, x_in) = _nearest_index(xp, ys, height), _nearest_index(xp, xs, width)
        crops = image[which, y[:, :, None], x[:, None, :]].astype(np.float32)
    else:
        top, bottom, down, y_in = _neighbours(xp, ys, height)
        left, right, across, x_in = _neighbours(xp, xs, width)
        across, down = across[:, None, :, None], down[:, :, None, None]

        def line(y: Array) -> Array:
            start = image[which, y[:, :, None], left[:, None, :]].astype(np.float32)
            end = image[which, y[:, :, None], right[:, None, :]].astype(np.float32)
            result: Array = start + (end - start) * across
            return result

        above = line(top)
        crops = above + (line(bottom) - above) * down
    inside = (y_in[:, :, None] & x_in[:, None, :])[..., None]
    return xp.where(inside, crops, np.float32(extrapolation_value))


@gradient("CropAndResize")
def _crop_and_resize_gradient(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
    image, boxes, which, _ = op.inputs
    shape = image.shape
    size = shape.as_list() if shape.is_fully_defined() else apply("Shape", image)
    method = op.get_attr("method")
    to_image = None
    if image.dtype.base_dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
        to_image = apply(
            "CropAndResizeGradImage", dy, boxes, which, size, T=image.dtype.base_dtype, method=method
        )
    return to_image, apply("CropAndResizeGradBoxes", dy, image, boxes, which), None, None


def _refuse_unless(ok: Any, message: Callable[[], str] | str, kind: Any = None) -> None:
    if not ok:
        raise (kind or errors.InvalidArgumentError)(
            None, None, message if isinstance(message, str) else message()
        )


class _Shares:
    """The pixels along one axis that each place of the boxes is made of, and their shares: [boxes, places, pixels]."""

    def __init__(self, where: Array, n: int, method: bytes) -> None:
        if method == b"nearest":
            nearest, self.inside = _nearest_index(np, where, n)
            self.pixels, self.weights = nearest[..., None], np.ones((*where.shape, 1), np.float32)
        else:
            low, high, part, self.inside = _neighbours(np, where, n)
            self.pixels, self.weights = np.stack([low, high], -1), np.stack([1 - part, part], -1)
        known = self.inside[..., None]
        self.first = np.where(known, self.pixels, n - 1).min((1, 2))  # of each box
        self.span = max(int((np.where(known, self.pixels, 0).max((1, 2)) - self.first).max()) + 1, 1)

    def within(self, which: slice) -> Array:
        """The pixels of some boxes, counted from the first of each, where boxes of `span` pixels lie one behind the other."""
        pixels: Array = self.pixels[which] - self.first[which, None, None]
        np.clip(pixels, 0, self.span - 1, out=pixels)
        pixels += np.arange(len(pixels), dtype=np.int32)[:, None, None] * np.int32(self.span)
        return pixels


def _added(values: Array, rows: Array, weights: Array, count: int) -> Array:
    """So many rows, to which each row of `values` is added at the places `rows` has for it, times the weights."""
    from scipy.sparse import csc_matrix

    starts = np.arange(len(values) + 1, dtype=rows.dtype) * (rows.size // len(values))
    matrix = csc_matrix((weights.ravel(), rows.ravel(), starts), shape=(count, len(values)))
    result: Array = matrix @ values
    return result


def _turned(x: Array) -> Array:
    """The columns of images before their rows; numpy copies a pixel faster as one thing than as some numbers."""
    pixels = x.view(np.dtype((np.void, x.shape[3] * x.itemsize)))[..., 0].swapaxes(1, 2)
    return np.ascontiguousarray(pixels).view(x.dtype).reshape(*pixels.shape, x.shape[3])


def _spread(dy: Array, which: Array, down: _Shares, across: _Shares, out: Array) -> Array:
    """Adds crops to the images they come from."""
    boxes, rows, columns, depth = dy.shape
    if 3 * down.span * across.span * depth > 4 * rows * columns * (
        depth + _ROW_START_COST
    ):  # passes by what they go through
        kind = np.int64 if max(out.size, 4 * dy.size) >= 1 << 31 else np.int32
        lines = which.astype(kind)[:, None, None] * out.shape[1] + down.pixels
        places = (lines * out.shape[2])[:, :, None, :, None] + across.pixels[:, None, :, None, :]
        weights = down.weights[:, :, None, :, None] * across.weights[:, None, :, None, :]
        return _added(dy.reshape(-1, depth), places, weights, out.size // depth)
    for first, parts in _uncropped(dy, down, across):
        for i, part in enumerate(parts, first):
            y, x = down.first[i], across.first[i]
            there = out[which[i], y : y + down.span, x : x + across.span]
            there += part[: there.shape[0], : there.shape[1]]
    return out


def _uncropped(dy: Array, down: _Shares, across: _Shares) -> list[tuple[int, Array]]:
    """What crops give to the pixels that their boxes cover: some boxes at a time, with the number of the first.

    Whole columns, then whole rows: to add a few numbers takes as long as to add many.
    """
    _, rows, columns, depth = dy.shape
    by_start = {}

    def some(start: int, stop: int) -> None:
        which, count = slice(start, stop), stop - start
        turned = _turned(dy[which]).reshape(count * columns, rows * depth)
        summed = _added(turned, across.within(which), across.weights[which], count * across.span)
        turned = _turned(summed.reshape(count, across.span, rows, depth)).reshape(count * rows, -1)
        summed = _added(turned, down.within(which), down.weights[which], count * down.span)
        by_start[start] = summed.reshape(count, down.span, across.span, depth)

    in_parts(some, len(dy), _NUMBERS_PER_THREAD // dy[0].size + 1)
    return sorted(by_start.items())


@op(
    "CropAndResizeGradImage",
    "grads: float, boxes: float, box_ind: int32, image_size: int32[1] -> output: T",
    "T: {float, half, double}; method: string(bilinear|nearest) = 'bilinear'",
    shape=lambda op: shape_given_by(op, 3).merge_with(unknown_shape(4)),
    host=True,
    examples=[
        case(
            np.ones((3, 3, 2, 3), np.float32),
            _BOXES,
            _WHICH,
            np.array([2, 4, 5, 3], np.int32),
            T="float",
            method=m,
        )
        for m in ("bilinear", "nearest")
    ]
    + [
        case(
            np.ones((3, 3, 2, 3), np.float32), _BOXES, _WHICH, np.array(size, np.int32), T="float", grad=False
        )
        for size in ([2, 300, 5, 3], [2, 4, 300, 3])
    ],
)
def _crop_grad_image(
    ctx: HostContext,
    dy: Array,
    boxes: Array,
    box_ind: Array,
    image_size: Array,
    *,
    T: dtypes.DType,
    method: bytes,
) -> Array:
    """Not for XLA, which adds numbers to places one after the other, or multiplies with as many zeros as there are pixels."""
    size = batch, height, width, depth = ints(image_size)
    dy = np.ascontiguousarray(dy)
    _, rows, columns, _ = dy.shape
    which = _check_boxes(np, boxes, box_ind, batch, _refuse_unless)
    if not dy.size or not depth:
        return np.zeros(size, T.np_dtype)
    down = _Shares(_places(np, boxes[:, 0], boxes[:, 2], height, rows), height, method)
    across = _Shares(_places(np, boxes[:, 1], boxes[:, 3], width, columns), width, method)
    if not (down.inside.all() and across.inside.all()):
        inside = down.inside[:, :, None, None] & across.inside[:, None, :, None]
        dy = np.where(inside, dy, np.float32(0))
    out = _spread(dy, which, down, across, np.zeros(size, np.float32))
    return out.reshape(size).astype(T.np_dtype, copy=False)


@op(
    "CropAndResizeGradBoxes",
    "grads: float, image: T, boxes: float, box_ind: int32 -> output: float",
    f"T: {_ANY}; method: string(bilinear) = 'bilinear'",
    shape=lambda op: op._inputs[2].shape,
    examples=[case(np.ones((3, 3, 2, 3), np.float32), _IMAGE, _BOXES, _WHICH, grad=False)],
)
def _crop_grad_boxes(
    xp: ArrayModule, dy: Array, image: Array, boxes: Array, box_ind: Array, *, check: Check
) -> Array:
    image = xp.asarray(image)
    batch, height, width, _ = image.shape
    _, rows, columns, _ = dy.shape
    which = _check_boxes(xp, boxes, box_ind, batch, check)[:, None, None]
    ys = _places(xp, boxes[:, 0], boxes[:, 2], height, rows)
    xs = _places(xp, boxes[:, 1], boxes[:, 3], width, columns)
    top, bottom, down, y_in = _neighbours(xp, ys, height)
    left, right, across, x_in = _neighbours(xp, xs, width)
    corner = {
        (i, j): image[which, y[:, :, None], x[:, None, :]].astype(np.float32)
        for i, y in enumerate((top, bottom))
        for j, x in enumerate((left, right))
    }
    across, down = across[:, None, :, None], down[:, :, None, None]
    slope_y = (1 - across) * (corner[1, 0] - corner[0, 0]) + across * (corner[1, 1] - corner[0, 1])
    slope_x = (1 - down) * (corner[0, 1] - corner[0, 0]) + down * (corner[1, 1] - corner[1, 0])
    kept = xp.where((y_in[:, :, None] & x_in[:, None, :])[..., None], dy, np.float32(0))
    move_y = xp.sum(kept * slope_y, axis=(2, 3)) * np.float32(height - 1)  # [boxes, rows]
    move_x = xp.sum(kept * slope_x, axis=(1, 3)) * np.float32(width - 1)
    first_y, last_y = _ends(xp, move_y, rows)
    first_x, last_x = _ends(xp, move_x, columns)
    return xp.stack([first_y, first_x, last_y, last_x], axis=1)


def _ends(xp: ArrayModule, move: Array, n: int) -> tuple[Any, Any]:
    """How much of the movement of each output each end of the box has a part in."""
    last = np.full(1, 0.5, np.float32) if n == 1 else np.arange(n, dtype=np.float32) / np.float32(n - 1)
    return xp.sum(move * (1 - last), axis=1), xp.sum(move * last, axis=1)


not_differentiable("CropAndResizeGradImage", "CropAndResizeGradBoxes")


@export("image.crop_and_resize")
def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: TensorLike = None,
    crop_size: TensorLike = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: TensorLike = None,
) -> Tensor:
    """Crops `boxes` [y1, x1, y2, x2] (fractions of the image) and resizes each crop to `crop_size`."""
    which = box_indices if box_indices is not None else box_ind
    attrs = dict(method=method, extrapolation_value=extrapolation_value)
    return apply("CropAndResize", image, boxes, which, crop_size, name=name, **attrs)
