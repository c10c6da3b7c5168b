"""Cutting images up: crops by boxes, patches under a sliding window, glimpses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet import dtypes, errors
from tensorfleet.api import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.ops.common import ints, is_numpy, shape_given_by, static_value
from tensorfleet.ops.examples import case
from tensorfleet.ops.nn_shapes import of_rank, same_dimension
from tensorfleet.ops.openblas import product
from tensorfleet.ops.rows import accumulate
from tensorfleet.ops.side_by_side import in_parts
from tensorfleet.shapes import TensorShape, unknown_shape

_ANY = "{uint8, uint16, int8, int16, int32, int64, half, float, double}"
_IMAGE = np.random.RandomState(0).rand(2, 4, 5, 3).astype(np.float32)
_BOXES = np.array([[0.1, 0.05, 0.83, 0.9], [0.9, 0.71, 0.23, 0.17], [-0.3, 0.2, 1.2, 0.9]], np.float32)
_WHICH = np.array([0, 1, 1], np.int32)
_CROP = np.array([3, 2], np.int32)
_SMALL = 256  # pixels of an image to each side, at most, that is made by products
_PART = 1 << 25  # multiplications that are worth a thread of their own
_WIDER = 4  # how much wider than its crops an image is, at most, that gets whole columns of them


# -- crops by boxes ----------------------------------------------------------------------------------


def _cropped(op: Operation) -> TensorShape:
    image, boxes = of_rank(op._inputs[0].shape, 4), of_rank(op._inputs[1].shape, 2)
    count = same_dimension(boxes.as_list()[0], of_rank(op._inputs[2].shape, 1).as_list()[0])
    if boxes.as_list()[1] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes.as_list()[1]}")
    size = static_value(op, 3)
    height, width = (None, None) if size is None else ints(size)
    return TensorShape([count, height, width, image.as_list()[3]])


def _places(xp: Any, first: Any, last: Any, n_in: int, n_out: int) -> Any:
    """Where, in pixels, the outputs of each box lie along one axis: [boxes, n_out]."""
    if n_out == 1:
        return (np.float32(0.5) * (first + last) * np.float32(n_in - 1))[:, None]
    step = (last - first) * np.float32(n_in - 1) / np.float32(n_out - 1)
    return (first * np.float32(n_in - 1))[:, None] + xp.arange(n_out, dtype=np.float32) * step[:, None]


def _neighbours(xp: Any, where: Any, n: int) -> tuple[Any, Any, Any, Any]:
    """The pixels below and above each place, how far between them it lies, and whether it is inside."""
    inside = (where >= 0) & (where <= n - 1)
    safe = xp.where(inside, where, np.float32(0))
    low = xp.floor(safe)
    return low.astype(np.int32), xp.ceil(safe).astype(np.int32), safe - low, inside


def _nearest_index(xp: Any, where: Any, n: int) -> tuple[Any, Any]:
    inside = (where >= 0) & (where <= n - 1)
    safe = xp.where(inside, where, np.float32(0))
    return xp.floor(safe + np.float32(0.5)).astype(np.int32), inside


def _check_boxes(xp: Any, boxes: Any, box_ind: Any, batch: int, check: Any) -> Any:
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
    xp: Any,
    image: Any,
    boxes: Any,
    box_ind: Any,
    crop_size: Any,
    *,
    method: bytes,
    extrapolation_value: float,
    check: Any,
) -> Any:
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

        def line(y: Any) -> Any:
            start = image[which, y[:, :, None], left[:, None, :]].astype(np.float32)
            end = image[which, y[:, :, None], right[:, None, :]].astype(np.float32)
            return start + (end - start) * across

        above = line(top)
        crops = above + (line(bottom) - above) * down
    inside = (y_in[:, :, None] & x_in[:, None, :])[..., None]
    return xp.where(inside, crops, np.float32(extrapolation_value))


@gradient("CropAndResize")
def _crop_and_resize_gradient(op: Operation, dy: Any) -> Any:
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


def _shares(xp: Any, where: Any, n: int) -> Any:
    """What share of each place every pixel has along one axis: [boxes, n, n_out]."""
    low, high, part, inside = (x[:, None] for x in _neighbours(xp, where, n))
    pixels = xp.arange(n, dtype=np.int32)[:, None]
    zero = np.float32(0)
    return xp.where(inside & (pixels == low), 1 - part, zero) + xp.where(
        inside & (pixels == high), part, zero
    )


def _spread_small(xp: Any, dy: Any, which: Any, down: Any, across: Any, out: Any) -> Any:
    """Crops onto the images they come from by two products: faster than one column and one row after the other."""
    if not is_numpy(xp):
        return out.at[which].add(_made_of(xp, dy, down, across))
    made = np.empty((len(dy), *out.shape[1:]), np.float32)

    def some(start: int, stop: int) -> None:
        for i in range(start, stop):
            pixels = _made_of(np, dy[i : i + 1], down[i : i + 1], across[i : i + 1])
            for d in range(dy.shape[3]):  # few channels: numpy would copy one pixel after the other
                made[i, :, :, d] = pixels[0, :, :, d]

    in_parts(some, len(dy), _PART // max(made[:1].size * dy.shape[1], 1) + 1)
    accumulate(np.add, out, which, made)
    return out


def _made_of(xp: Any, dy: Any, down: Any, across: Any) -> Any:
    boxes, rows, columns, depth = dy.shape
    height, width = down.shape[1], across.shape[1]
    times = product if is_numpy(xp) else xp.matmul
    by_row = times(down, dy.swapaxes(2, 3).reshape(boxes, rows, depth * columns))
    pixels = times(by_row.reshape(boxes, height * depth, columns), across.swapaxes(1, 2))
    return pixels.reshape(boxes, height, depth, width).swapaxes(2, 3)


def _spread(xp: Any, out: Any, index: tuple, values: Any) -> Any:
    if is_numpy(xp):
        np.add.at(out, index, values)
        return out
    return out.at[index].add(values)


@op(
    "CropAndResizeGradImage",
    "grads: float, boxes: float, box_ind: int32, image_size: int32[1] -> output: T",
    "T: {float, half, double}; method: string(bilinear|nearest) = 'bilinear'",
    shape=lambda op: shape_given_by(op, 3).merge_with(unknown_shape(4)),
    static=["image_size"],
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
    xp: Any, dy: Any, boxes: Any, box_ind: Any, image_size: Any, *, T: dtypes.DType, method: bytes, check: Any
) -> Any:
    batch, height, width, depth = ints(image_size)
    _, rows, columns, _ = dy.shape
    which = _check_boxes(xp, boxes, box_ind, batch, check)[:, None, None]
    ys = _places(xp, boxes[:, 0], boxes[:, 2], height, rows)
    xs = _places(xp, boxes[:, 1], boxes[:, 3], width, columns)
    out = xp.zeros((batch, height, width, depth), np.float32)
    if method == b"nearest":
        (y, y_in), (x, x_in) = _nearest_index(xp, ys, height), _nearest_index(xp, xs, width)
        kept = xp.where((y_in[:, :, None] & x_in[:, None, :])[..., None], dy, np.float32(0))
        return _spread(xp, out, (which, y[:, :, None], x[:, None, :]), kept).astype(T.np_dtype)
    if max(height, width) <= _SMALL:
        return _spread_small(
            xp, dy, which[:, 0, 0], _shares(xp, ys, height), _shares(xp, xs, width), out
        ).astype(T.np_dtype)
    top, bottom, down, y_in = _neighbours(xp, ys, height)
    left, right, across, x_in = _neighbours(xp, xs, width)
    if width <= _WIDER * columns:
        # Whole columns, then whole rows: to add one pixel at a time takes eight times as long.
        box = xp.arange(len(boxes))[:, None]
        by_column = xp.zeros((len(boxes), width, rows, depth), np.float32)
        for x, part in ((left, 1 - across), (right, across)):
            share = xp.where(x_in, part, np.float32(0))[:, :, None, None]
            by_column = _spread(xp, by_column, (box, x), dy.swapaxes(1, 2) * share)
        for y, part in ((top, 1 - down), (bottom, down)):
            share = xp.where(y_in, part, np.float32(0))[:, :, None, None]
            out = _spread(xp, out, (which[:, 0], y), by_column.swapaxes(1, 2) * share)
        return out.astype(T.np_dtype)
    kept = xp.where((y_in[:, :, None] & x_in[:, None, :])[..., None], dy, np.float32(0))
    for y, part_y in ((top, 1 - down), (bottom, down)):
        for x, part_x in ((left, 1 - across), (right, across)):
            share = part_y[:, :, None, None] * part_x[:, None, :, None]
            out = _spread(xp, out, (which, y[:, :, None], x[:, None, :]), kept * share)
    return out.astype(T.np_dtype)


@op(
    "CropAndResizeGradBoxes",
    "grads: float, image: T, boxes: float, box_ind: int32 -> output: float",
    f"T: {_ANY}; method: string(bilinear) = 'bilinear'",
    shape=lambda op: op._inputs[2].shape,
    examples=[case(np.ones((3, 3, 2, 3), np.float32), _IMAGE, _BOXES, _WHICH, grad=False)],
)
def _crop_grad_boxes(xp: Any, dy: Any, image: Any, boxes: Any, box_ind: Any, *, check: Any) -> Any:
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


def _ends(xp: Any, move: Any, n: int) -> tuple[Any, Any]:
    """How much of the movement of each output each end of the box has a part in."""
    last = np.full(1, 0.5, np.float32) if n == 1 else np.arange(n, dtype=np.float32) / np.float32(n - 1)
    return xp.sum(move * (1 - last), axis=1), xp.sum(move * last, axis=1)


not_differentiable("CropAndResizeGradImage", "CropAndResizeGradBoxes")


@export("image.crop_and_resize")
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Crops `boxes` [y1, x1, y2, x2] (fractions of the image) and resizes each crop to `crop_size`."""
    which = box_indices if box_indices is not None else box_ind
    attrs = dict(method=method, extrapolation_value=extrapolation_value)
    return apply("CropAndResize", image, boxes, which, crop_size, name=name, **attrs)
