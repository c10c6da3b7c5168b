"""`tf.image.resize_images` and functions built on it."""

from __future__ import annotations

from collections.abc import Callable

from tensorfleet.api.image.checks import Conditions, Size, batched, dimensions
from tensorfleet.api.image.geometry import pad_to_bounding_box
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.argument_order import takes_old_order
from tensorfleet.ops.array.shape import expand_dims, squeeze
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.image import resize as images_resize
from tensorfleet.ops.math.binary import maximum, minimum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.unary import floor
from tensorfleet.ops.math.unary import round as round_numbers


@export("image.ResizeMethod")
class ResizeMethod:
    """How `tf.image.resize_images` finds the pixels of the new image."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_METHODS: dict[int | str, Callable[..., Tensor]] = {
    ResizeMethod.BILINEAR: images_resize.resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: images_resize.resize_nearest_neighbor,
    ResizeMethod.BICUBIC: images_resize.resize_bicubic,
    ResizeMethod.AREA: images_resize.resize_area,
}
_METHODS |= dict(zip(("bilinear", "nearest", "bicubic", "area"), _METHODS.values(), strict=True))


def _height_and_width(*args: object) -> bool:
    return len(args) > 2 and isinstance(args[1], int)


def as_batch(images: TensorLike) -> tuple[Tensor, bool]:
    """A batch of images, and whether it was one image before."""
    tensor = to_tensor(images, name="images")
    if tensor.shape.rank is None:
        raise ValueError("'images' contains no shape.")
    if tensor.shape.rank == 3:
        return expand_dims(tensor, 0), True
    if tensor.shape.rank != 4:
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    return tensor, False


@export("image.resize_images", "image.resize")
@takes_old_order("image.resize_images", "images size size method align_corners", _height_and_width)
def resize_images(
    images: TensorLike,
    size: TensorLike,
    method: int | str = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """One image or a batch resized to `size` (height, width).

    The result is float32, except by nearest neighbour, or when the size does not change: then as it came.
    """
    with name_scope(name, "resize", [images, size]):
        images, single = as_batch(images)
        resized = _resized(images, new_size(images, size, preserve_aspect_ratio), method, align_corners)
        return squeeze(resized, axis=[0]) if single else resized


def new_size(images: Tensor, size: TensorLike, preserve_aspect_ratio: bool) -> Tensor:
    """The height and width to resize to: `size`, or the largest inside it with the proportions of the images."""
    try:
        wanted = to_tensor(size, dtypes.int32, name="size")
    except (TypeError, ValueError) as e:
        raise ValueError("'size' must be a 1-D int32 Tensor") from e
    if not wanted.shape.is_compatible_with([2]):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    if not preserve_aspect_ratio:
        return wanted
    _, height, width, _ = dimensions(images, 4)
    known = constant_value(wanted)
    if known is not None and isinstance(height, int) and isinstance(width, int):
        new_height, new_width = (int(v) for v in known)
        scale = min(new_height / height, new_width / width)
        return to_tensor([round(scale * height), round(scale * width)], dtypes.int32, name="size")
    tall, wide = cast(height, dtypes.float32), cast(width, dtypes.float32)
    ratio = minimum(cast(wanted[0], dtypes.float32) / tall, cast(wanted[1], dtypes.float32) / wide)
    return stack([cast(round_numbers(ratio * side), dtypes.int32) for side in (tall, wide)])


def _resized(images: Tensor, size: Tensor, method: int | str, align_corners: bool) -> Tensor:
    known = constant_value(size)
    height, width = (None, None) if known is None else (int(v) for v in known)
    # TensorFlow returns the images themselves, in their own type.
    if known is not None and images.shape.as_list()[1:3] == [height, width]:
        return images
    if method not in _METHODS:
        raise ValueError("Resize method is not implemented.")
    resized = _METHODS[method](images, size, align_corners=align_corners)
    resized.set_shape([None, height, width, None])
    return resized


@export("image.resize_image_with_pad")
def resize_image_with_pad(
    image: TensorLike,
    target_height: Size,
    target_width: Size,
    method: int | str = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """The image resized to fit into the target with its proportions kept, with zeros around it."""
    with name_scope(None, "resize_image_with_pad", [image]):

        def fit(images: Tensor) -> Tensor:
            c = Conditions()
            c.require(target_width > 0, ValueError, "target_width must be > 0.")
            c.require(target_height > 0, ValueError, "target_height must be > 0.")
            images = c.guard(images)
            _, height, width, _ = dimensions(images, 4)
            high, wide, room_high, room_wide = (
                cast(v, dtypes.float32) for v in (height, width, target_height, target_width)
            )
            ratio = maximum(wide / room_wide, high / room_high)
            new_high, new_wide = high / ratio, wide / ratio
            size = stack([cast(floor(v), dtypes.int32) for v in (new_high, new_wide)])
            resized = resize_images(images, size, method, align_corners)
            above, beside = (
                maximum(0, cast(floor((room - new) / 2), dtypes.int32))
                for room, new in ((room_high, new_high), (room_wide, new_wide))
            )
            padded = pad_to_bounding_box(resized, above, beside, target_height, target_width)
            if padded.shape.rank is None:
                raise ValueError("padded contains no shape.")
            return padded

        return batched(image, fit)
