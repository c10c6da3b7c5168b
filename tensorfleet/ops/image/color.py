"""Colors of images: hue, saturation and contrast, and the way between RGB and HSV."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.nn.shapes import of_rank_at_least
from tensorfleet.ops.samples import case

_RGB = np.random.RandomState(0).rand(2, 2, 3)
_GRAYS = np.array([[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [1.0, 0.25, 0.25]], np.float32)


def _colored(op: Operation) -> TensorShape:
    shape = of_rank_at_least(op._inputs[0].shape, 1)
    if shape.rank is not None and shape.as_list()[-1] not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {shape.as_list()[-1]}")
    return shape if shape.rank is None else TensorShape([*shape.as_list()[:-1], 3])


def _hue_of(xp: ArrayModule, red: Array, green: Array, blue: Array, value: Array, span: Array) -> Array:
    """The hue in [0, 1): zero where there is no color."""
    one = value.dtype.type(1)
    scale = one / (value.dtype.type(6) * xp.where(span > 0, span, one))
    third = value.dtype.type(1.0 / 3), value.dtype.type(2.0 / 3)
    hue = xp.where(
        red == value,
        scale * (green - blue),
        xp.where(green == value, scale * (blue - red) + third[0], scale * (red - green) + third[1]),
    )
    hue = xp.where(span > 0, hue, value.dtype.type(0))
    return xp.where(hue < 0, hue + one, hue)


def to_hsv(xp: ArrayModule, rgb: Array) -> tuple[Any, Any, Any]:
    """Hue, saturation and value of RGB pixels (last axis)."""
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    value = xp.maximum(xp.maximum(red, green), blue)
    span = value - xp.minimum(xp.minimum(red, green), blue)
    zero, one = value.dtype.type(0), value.dtype.type(1)
    saturation = xp.where(value > 0, span / xp.where(value > 0, value, one), zero)
    return _hue_of(xp, red, green, blue, value, span), saturation, value


def to_rgb(xp: ArrayModule, hue: Array, saturation: Array, value: Array) -> Array:
    """RGB pixels (last axis) of hue, saturation and value."""
    number = value.dtype.type
    zero, one, two = number(0), number(1), number(2)
    turn = hue * number(6)
    red = xp.clip(xp.abs(turn - number(3)) - one, zero, one)
    green = xp.clip(two - xp.abs(turn - two), zero, one)
    blue = xp.clip(two - xp.abs(turn - number(4)), zero, one)
    parts = [((one - saturation) + saturation * part) * value for part in (red, green, blue)]
    return xp.stack(parts, axis=-1)


@op(
    "RGBToHSV",
    "images: T -> output: T",
    "T: floating = float",
    shape=_colored,
    examples=[case(_RGB), case(_GRAYS, grad=False), case(_RGB.astype(np.float32))],
)
def _rgb_to_hsv(xp: ArrayModule, images: Array) -> Array:
    return xp.stack(to_hsv(xp, images), axis=-1)


@export("image.rgb_to_hsv")
def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """RGB images with values in [0, 1] as hue, saturation and value, also in [0, 1]."""
    return apply("RGBToHSV", images, name=name)


@op(
    "HSVToRGB",
    "images: T -> output: T",
    "T: floating = float",
    shape=_colored,
    examples=[case(_RGB), case(_GRAYS, grad=False), case(_RGB.astype(np.float32))],
)
def _hsv_to_rgb(xp: ArrayModule, images: Array) -> Array:
    return to_rgb(xp, images[..., 0], images[..., 1], images[..., 2]).astype(images.dtype)


not_differentiable("HSVToRGB")


@export("image.hsv_to_rgb")
def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Images given by hue, saturation and value in [0, 1] as RGB."""
    return apply("HSVToRGB", images, name=name)


def _picture(op: Operation) -> TensorShape:
    return of_rank_at_least(op._inputs[0].shape, 3)


def _require_colors(images: Array) -> None:
    if images.shape[-1] != 3:
        raise errors.invalid(f"input must have 3 channels but instead has {images.shape[-1]} channels.")


@op(
    "AdjustHue",
    "images: T, delta: float -> output: T",
    "T: {half, float} = float",
    shape=_picture,
    examples=[case(_RGB.astype(np.float32), np.float32(d), grad=False) for d in (0.2, -0.7, 1.0)],
)
def _adjust_hue(xp: ArrayModule, images: Array, delta: Array) -> Array:
    _require_colors(images)
    hue, saturation, value = to_hsv(xp, images.astype(np.float32))
    turned = hue + delta
    return to_rgb(xp, turned - xp.floor(turned), saturation, value).astype(images.dtype)


@op(
    "AdjustSaturation",
    "images: T, scale: float -> output: T",
    "T: {half, float} = float",
    shape=_picture,
    examples=[case(_RGB.astype(np.float32), np.float32(s), grad=False) for s in (0.5, 3.0)],
)
def _adjust_saturation(xp: ArrayModule, images: Array, scale: Array) -> Array:
    _require_colors(images)
    hue, saturation, value = to_hsv(xp, images.astype(np.float32))
    scaled = xp.clip(saturation * scale, np.float32(0), np.float32(1))
    return to_rgb(xp, hue, scaled, value).astype(images.dtype)


@op(
    "AdjustContrastv2",
    "images: T[3+], contrast_factor: float[0] -> output: T",
    "T: {half, float} = float",
    shape=_picture,
    words={"images": "input must be at least 3-D, got shape{}"},
    examples=[case(_RGB.astype(np.float32)[None], np.float32(f)) for f in (0.5, 2.0)],
)
def _adjust_contrast(xp: ArrayModule, images: Array, contrast_factor: Array) -> Array:
    wide = images.astype(np.float32)
    # The sum of whole lines first: along the few channels of a pixel there is little to do at once.
    *outer, height, width, channels = wide.shape
    lines = wide.reshape(*outer, height, width * channels).sum(-2).reshape(*outer, width, channels)
    mean = (lines.sum(-2) / np.float32(height * width)).reshape(*outer, 1, 1, channels)
    result: Array = ((wide - mean) * contrast_factor + mean).astype(images.dtype)
    return result
