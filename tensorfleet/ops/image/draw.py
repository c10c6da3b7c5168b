"""Boxes on images: drawing them, and random crops around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import philox
from tensorfleet.ops.common import require, vector_of
from tensorfleet.ops.nn.shapes import of_rank
from tensorfleet.ops.samples import case

# -- drawing -----------------------------------------------------------------------------------------

_COLORS = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)
_CANVAS = np.zeros((1, 6, 7, 3), np.float32)
_DRAWN = np.array([[[0.1, 0.2, 0.7, 0.9], [-0.2, 0.3, 0.5, 1.4], [2, 2, 3, 3]]], np.float32)


def _canvas(op: Operation) -> TensorShape:
    shape = of_rank(op._inputs[0].shape, 4)
    of_rank(op._inputs[1].shape, 3)
    if shape.as_list()[3] not in (None, 1, 3, 4):
        raise ValueError("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
    return shape


def _draw(images: Array, boxes: Array, colors: Array) -> Array:
    out, boxes = np.array(images), np.asarray(boxes)
    batch, height, width, depth = out.shape
    require(depth in (1, 3, 4), "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
    if depth == 1:
        colors = np.ones_like(colors)
    colors = colors[:, :depth].astype(out.dtype)
    ends = np.array([height - 1, width - 1] * 2, boxes.dtype)
    for b, corners in enumerate((boxes * ends).astype(np.int64).tolist()):
        for k, (top, left, bottom, right) in enumerate(corners):
            outside = top >= height or bottom < 0 or left >= width or right < 0
            if top > bottom or left > right or outside:
                continue
            color = colors[k % len(colors)]
            rows = slice(max(top, 0), min(bottom, height - 1) + 1)
            columns = slice(max(left, 0), min(right, width - 1) + 1)
            for y in (top, bottom):
                if 0 <= y < height:
                    out[b, y, columns] = color
            for x in (left, right):
                if 0 <= x < width:
                    out[b, rows, x] = color
    return out


_DRAWING = {
    "images": "The rank of the images should be 4",
    "boxes": "The rank of the boxes tensor should be 3",
}


@op(
    "DrawBoundingBoxes",
    "images: T[4], boxes: float[_,_,4] -> output: T",
    "T: {float, half} = float",
    shape=_canvas,
    words=_DRAWING,
    host=True,
    examples=[case(_CANVAS, _DRAWN)],
)
def _draw_bounding_boxes(ctx: HostContext, images: Array, boxes: Array) -> Array:
    return _draw(images, boxes, _COLORS)


@op(
    "DrawBoundingBoxesV2",
    "images: T[3+], boxes: float, colors: float -> output: T",
    "T: {float, half} = float",
    shape=_canvas,
    host=True,
    examples=[case(_CANVAS, _DRAWN, np.array([[0.1, 0.2, 0.3]], np.float32))],
)
def _draw_bounding_boxes_v2(ctx: HostContext, images: Array, boxes: Array, colors: Array) -> Array:
    colors = np.asarray(colors)
    return _draw(images, boxes, colors if colors.size else _COLORS)


# -- random crops around boxes -----------------------------------------------------------------------


class _Words:
    """32-bit words of a random stream, one after the other."""

    def __init__(self, stream: Array, blocks: int) -> None:
        self._stream, self._blocks = stream, blocks
        self._words: Iterator[int] = iter(())
        self._start = 0

    def next(self) -> int:
        for word in self._words:
            return word
        offsets = np.arange(self._start, self._start + self._blocks, dtype=np.uint64)
        self._start += self._blocks
        self._words = iter(philox.blocks(np, self._stream, offsets).ravel().tolist())
        return next(self._words)

    def unit(self) -> np.float32:
        """A number in [0, 1): the low 23 bits as its mantissa."""
        bits = np.array((self.next() & 0x7FFFFF) | 0x3F800000, np.uint32)
        return np.float32(bits.view(np.float32) - np.float32(1))

    def below(self, n: int) -> int:
        """A whole number below n, all equally likely."""
        if n & (n - 1) == 0:
            return self.next() & (n - 1)
        rejected = (0xFFFFFFFF % n) + 1
        while (word := self.next()) < rejected:
            pass
        return word % n


def _round(x: Any) -> int:
    return int(np.rint(np.float32(x)))


def _random_crop(
    words: _Words, size: tuple[int, int], area: tuple[float, float], ratio: np.float32
) -> tuple[int, int, int, int] | None:
    """A crop (y, x, height, width) of that aspect ratio with an area in range; None when there is none."""
    height_of_image, width_of_image = size
    whole = np.float32(height_of_image) * np.float32(width_of_image)
    least, most = np.float32(area[0]) * whole, np.float32(area[1]) * whole
    height = _round(np.sqrt(least / ratio))
    highest = _round(np.sqrt(most / ratio))
    if _round(highest * ratio) > width_of_image:
        highest = int((width_of_image + 0.5 - 1e-7) / float(ratio))
    highest = min(highest, height_of_image)
    height = min(height, highest)
    if height < highest:
        height += words.below(highest - height + 1)
    width = _round(height * ratio)
    if width * height < least:
        height += 1
        width = _round(height * ratio)
    if width * height > most:
        height -= 1
        width = _round(height * ratio)
    fits = 0 < width <= width_of_image and 0 < height <= height_of_image
    if not fits or not least <= width * height <= most:
        return None
    y = words.below(height_of_image - height) if height < height_of_image else 0
    x = words.below(width_of_image - width) if width < width_of_image else 0
    return y, x, height, width


def _covers(crop: tuple[int, int, int, int], boxes: list[tuple[int, int, int, int]], least: float) -> bool:
    """Whether the crop holds at least that fraction of one box (of any that has an area)."""
    y, x, height, width = crop
    for top, left, bottom, right in boxes:
        whole = (bottom - top) * (right - left)
        if whole <= 0:
            continue
        tall = min(bottom, y + height) - max(top, y)
        wide = min(right, x + width) - max(left, x)
        shared = tall * wide if tall > 0 and wide > 0 else 0
        if np.float32(shared) >= np.float32(whole) * np.float32(least):
            return True
    return False


def _sample(ctx: HostContext, image_size: Array, boxes: Array, least: float) -> tuple[Array, Array, Array]:
    attrs = ctx.op._attrs
    dims, boxes = np.asarray(image_size), np.asarray(boxes)
    require(
        dims.ndim == 1 and dims.size == 3, f"image_size must be 1-dimensional with 3 elements {dims.shape}"
    )
    require(
        boxes.ndim == 3 and boxes.shape[-1] == 4,
        f"bounding_boxes must have shape [batch, N, 4] {boxes.shape}",
    )
    height, width = int(dims[0]), int(dims[1])
    require(height > 0 and width > 0, f"image height and width must be positive, got {height} and {width}")
    flat = boxes.reshape(-1, 4)
    inside = bool(((flat >= 0) & (flat <= 1)).all())
    require(inside, "All bounding box coordinates must be in [0.0, 1.0]")
    scale = np.array([height, width, height, width], np.float32)
    frames = [tuple(int(v) for v in row * scale) for row in flat]
    if not frames:
        text = (
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish "
        )
        require(attrs["use_image_if_no_bounding_boxes"], text + "to not provide any bounding boxes.")
        frames = [(0, 0, height, width)]
    attempts = attrs["max_attempts"]
    words = _Words(ctx.random(attempts), min(attempts, 16))
    low, high = (np.float32(v) for v in attrs["aspect_ratio_range"])
    crop = (0, 0, height, width)
    for _ in range(attempts):
        ratio = words.unit() * (high - low) + low
        candidate = _random_crop(words, (height, width), tuple(attrs["area_range"]), ratio)
        if candidate is not None and _covers(candidate, frames, least):  # type: ignore[arg-type]
            crop = candidate
            break
    y, x, tall, wide = crop
    box = np.array([y / height, x / width, (y + tall) / height, (x + wide) / width], np.float32)
    begin, size = np.array([y, x, 0], dims.dtype), np.array([tall, wide, -1], dims.dtype)
    return begin, size, box.reshape(1, 1, 4)


_SAMPLED = "begin: T, size: T, bboxes: float"
_KIND = "T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0; "
_RANGES = "aspect_ratio_range: list(float) = [0.75, 1.33]; area_range: list(float) = [0.05, 1]; "
_RANGES += "max_attempts: int = 100; use_image_if_no_bounding_boxes: bool = false"
_SAMPLED_SHAPES = lambda op: [vector_of(3), vector_of(3), TensorShape([1, 1, 4])]  # noqa: E731


@op(
    "SampleDistortedBoundingBox",
    f"image_size: T[3,], bounding_boxes: float[3] -> {_SAMPLED}",
    f"{_KIND}min_object_covered: float = 0.1; {_RANGES}",
    shape=_SAMPLED_SHAPES,
    host=True,
    stateful=True,
)
def _sample_box(
    ctx: HostContext, image_size: Array, boxes: Array, *, min_object_covered: float
) -> tuple[Array, Array, Array]:
    return _sample(ctx, image_size, boxes, min_object_covered)


@op(
    "SampleDistortedBoundingBoxV2",
    f"image_size: T[3,], bounding_boxes: float[3], min_object_covered: float[0] -> {_SAMPLED}",
    _KIND + _RANGES,
    shape=_SAMPLED_SHAPES,
    host=True,
    stateful=True,
)
def _sample_box_v2(
    ctx: HostContext, image_size: Array, boxes: Array, min_object_covered: Array
) -> tuple[Array, Array, Array]:
    return _sample(ctx, image_size, boxes, float(min_object_covered))


not_differentiable("DrawBoundingBoxes", "DrawBoundingBoxesV2")
not_differentiable("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
