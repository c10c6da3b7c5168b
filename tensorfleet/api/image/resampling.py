"""Resizing as TensorFlow 2 does it: the centers of pixels are kept, and kernels may smooth images that get smaller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.image.resizing import as_batch, new_size
from tensorfleet.base import dtypes
from tensorfleet.base.naming import publish
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import squeeze
from tensorfleet.ops.math.cast import cast


class ResizeMethodV2:
    """How `resize_images_v2` finds the pixels of the new image."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


# The op of each method; those with a kernel use it when they smooth, the rest always.
_OPS = {
    "bilinear": "ResizeBilinear",
    "nearest": "ResizeNearestNeighbor",
    "bicubic": "ResizeBicubic",
    "area": "ResizeArea",
}
_KERNELS = {"bilinear": "triangle", "bicubic": "keyscubic"}
# These methods have no op of their own but the one with kernels.
_ALWAYS = ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")


def _resizer(method: str, antialias: bool) -> Callable[[Tensor, Tensor], Tensor]:
    if method in _ALWAYS or (antialias and method in _KERNELS):
        return lambda images, size: _smoothed(images, size, _KERNELS.get(method, method), antialias)
    if method not in _OPS:
        raise ValueError(f"Resize method is not implemented: {method}. Use one of ResizeMethod.")
    grid: dict[str, Any] = {} if method == "area" else {"half_pixel_centers": True}
    return lambda images, size: apply_any(_OPS[method], images, size, **grid)


def _smoothed(images: Tensor, size: Tensor, kernel: str, antialias: bool) -> Tensor:
    old = cast(apply("Shape", images)[1:3], dtypes.float32)
    scale = cast(size, dtypes.float32) / old
    return apply(
        "ScaleAndTranslate", images, size, scale, [0.0, 0.0], kernel_type=kernel, antialias=antialias
    )


def resize_images_v2(
    images: TensorLike,
    size: TensorLike,
    method: str = ResizeMethodV2.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """One image or a batch resized to `size` (height, width), pixels taken by their centers."""
    resize = _resizer(method, antialias)
    with name_scope(name, "resize", [images, size]):
        images, single = as_batch(images)
        wanted = new_size(images, size, preserve_aspect_ratio)
        resized = resize(images, wanted)
        known = constant_value(wanted)
        resized.set_shape([None, *([None, None] if known is None else [int(v) for v in known]), None])
        return squeeze(resized, axis=[0]) if single else resized


for _module in ("image_ops", "image_ops_impl"):
    publish(ResizeMethodV2, f"python.ops.{_module}.ResizeMethod")
    publish(resize_images_v2, f"python.ops.{_module}.resize_images_v2")
