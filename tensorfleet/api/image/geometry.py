"""Moving pixels around: flips, turns, crops, pads."""

from __future__ import annotations

from collections.abc import Callable

from tensorfleet.api.image.checks import Conditions, Size, at_least_3d, batched, dimensions, is_tensor
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.basic import identity
from tensorfleet.ops.array.pad import pad
from tensorfleet.ops.array.shape import reshape
from tensorfleet.ops.array.slicing import slice_
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.array.tile_roll_reverse import reverse
from tensorfleet.ops.array.transpose import transpose as transpose_axes
from tensorfleet.ops.control.cond import case
from tensorfleet.ops.math.binary import maximum, minimum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import less
from tensorfleet.ops.math.unary import round as round_numbers
from tensorfleet.ops.random.ops import random_uniform


def _flip_axes(image: Tensor, *axes: int) -> Tensor:
    """Reversed along axes given for one image [height, width, channels]; also for a batch."""
    rank = _rank(image)
    flipped = reverse(image, [a + rank - 3 for a in axes])
    flipped.set_shape([None] * rank)
    return flipped


def _rank(image: Tensor) -> int:
    """The rank of one image or of a batch; an unknown one counts as one image."""
    rank = image.shape.rank
    if rank not in (None, 3, 4):
        raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
    return rank or 3


@export("image.flip_left_right")
def flip_left_right(image: TensorLike) -> Tensor:
    """The mirror image, of one image or of each in a batch."""
    with name_scope(None, "flip_left_right", [image]):
        return _flip_axes(at_least_3d(to_tensor(image, name="image")), 1)


@export("image.flip_up_down")
def flip_up_down(image: TensorLike) -> Tensor:
    """Upside down, one image or each in a batch."""
    with name_scope(None, "flip_up_down", [image]):
        return _flip_axes(at_least_3d(to_tensor(image, name="image")), 0)


def _random_flip(image: TensorLike, axis: int, seed: int | None, name: str) -> Tensor:
    with name_scope(None, name, [image]) as scope:
        image = at_least_3d(to_tensor(image, name="image"))
        flipped = _flip_axes(image, axis)
        if image.shape.rank == 4:
            count = dimensions(image, 4)[0]
            # One number per image: rounded, it says which of them are flipped.
            drawn = random_uniform([count], 0, 1.0, seed=seed)
            flips = cast(round_numbers(reshape(drawn, [count, 1, 1, 1])), image.dtype.base_dtype)
            stays = apply("Sub", to_tensor(1, image.dtype.base_dtype), flips)
            return apply("AddV2", apply("Mul", flips, flipped), apply("Mul", stays, image), name=scope)
        mirror = less(random_uniform([], 0, 1.0, seed=seed), 0.5)
        result = apply("Select", mirror, flipped, image, name=scope)
        result.set_shape(flipped.shape)
        return result


@export("image.random_flip_left_right")
def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """The image or, as often, its mirror image; each image of a batch for itself."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


@export("image.random_flip_up_down")
def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """The image or, as often, the image upside down; each image of a batch for itself."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def _swapped(image: Tensor, name: str | None = None) -> Tensor:
    return transpose_axes(image, [1, 0, 2] if _rank(image) == 3 else [0, 2, 1, 3], name=name)


@export("image.transpose_image", "image.transpose")
def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Rows become columns, in one image or in each of a batch."""
    with name_scope(name, "transpose", [image]) as scope:
        return _swapped(at_least_3d(to_tensor(image, name="image")), scope)


@export("image.rot90")
def rot90(image: TensorLike, k: TensorLike = 1, name: str | None = None) -> Tensor:
    """The image turned counter-clockwise by `k` times 90 degrees."""
    with name_scope(name, "rot90", [image, k]) as scope:
        image = at_least_3d(to_tensor(image, name="image"))
        turns = to_tensor(k, dtypes.int32, name="k")
        turns.shape.assert_has_rank(0)
        rotations: list[Callable[[], Tensor]] = [
            lambda: identity(image),
            lambda: _swapped(_flip_axes(image, 1)),
            lambda: _flip_axes(image, 0, 1),
            lambda: _flip_axes(_swapped(image), 1),
        ]
        # A number that is known needs no branches in the graph.
        known = constant_value(turns)
        if known is not None:
            return rotations[int(known) % 4]()
        rest = apply("FloorMod", turns, 4)
        pairs = [(apply("Equal", rest, i), rotations[i]) for i in (1, 2, 3)]
        result: Tensor = case(pairs, default=rotations[0], exclusive=True, name=scope)
        result.set_shape([None] * (image.shape.rank or 3))
        return result


# -- crops and pads ----------------------------------------------------------------------------------


@export("image.crop_to_bounding_box")
def crop_to_bounding_box(
    image: TensorLike, offset_height: Size, offset_width: Size, target_height: Size, target_width: Size
) -> Tensor:
    """The window of an image (or of each in a batch) whose upper left corner is at the offsets."""
    with name_scope(None, "crop_to_bounding_box", [image]):

        def crop(images: Tensor) -> Tensor:
            batch, height, width, depth = dimensions(images, 4)
            c = Conditions()
            c.require(offset_width >= 0, ValueError, "offset_width must be >= 0.")
            c.require(offset_height >= 0, ValueError, "offset_height must be >= 0.")
            c.require(target_width > 0, ValueError, "target_width must be > 0.")
            c.require(target_height > 0, ValueError, "target_height must be > 0.")
            c.require(width >= target_width + offset_width, ValueError, "width must be >= target + offset.")
            c.require(
                height >= target_height + offset_height, ValueError, "height must be >= target + offset."
            )
            begin = stack([0, offset_height, offset_width, 0])
            size = stack([batch, target_height, target_width, depth])
            return _shaped(slice_(c.guard(images), begin, size), batch, target_height, target_width, depth)

        return batched(image, crop)


def _shaped(result: Tensor, *dims: Size) -> Tensor:
    result.set_shape([None if isinstance(d, Tensor) else d for d in dims])
    return result


@export("image.pad_to_bounding_box")
def pad_to_bounding_box(
    image: TensorLike, offset_height: Size, offset_width: Size, target_height: Size, target_width: Size
) -> Tensor:
    """The image (or each in a batch) on a larger canvas of zeros, its upper left corner at the offsets."""
    with name_scope(None, "pad_to_bounding_box", [image]):

        def widen(images: Tensor) -> Tensor:
            batch, height, width, depth = dimensions(images, 4)
            below = target_height - offset_height - height
            beside = target_width - offset_width - width
            c = Conditions()
            c.require(offset_height >= 0, ValueError, "offset_height must be >= 0")
            c.require(offset_width >= 0, ValueError, "offset_width must be >= 0")
            c.require(beside >= 0, ValueError, "width must be <= target - offset")
            c.require(below >= 0, ValueError, "height must be <= target - offset")
            amounts = stack([0, 0, offset_height, below, offset_width, beside, 0, 0])
            padded = pad(c.guard(images), reshape(amounts, [4, 2]))
            return _shaped(padded, batch, target_height, target_width, depth)

        return batched(image, widen)


def _larger(a: Size, b: Size) -> Size:
    return maximum(a, b) if is_tensor(a) or is_tensor(b) else max(a, b)


def _smaller(a: Size, b: Size) -> Size:
    return minimum(a, b) if is_tensor(a) or is_tensor(b) else min(a, b)


@export("image.resize_image_with_crop_or_pad", "image.resize_with_crop_or_pad")
def resize_image_with_crop_or_pad(image: TensorLike, target_height: Size, target_width: Size) -> Tensor:
    """The middle of the image, cropped where it is larger than the target and padded where smaller."""
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):

        def fit(images: Tensor) -> Tensor:
            c = Conditions()
            c.require(target_width > 0, ValueError, "target_width must be > 0.")
            c.require(target_height > 0, ValueError, "target_height must be > 0.")
            images = c.guard(images)
            batch, height, width, depth = dimensions(images, 4)
            taller, wider = target_height - height, target_width - width
            cropped = crop_to_bounding_box(
                images,
                _larger(-taller // 2, 0),
                _larger(-wider // 2, 0),
                _smaller(target_height, height),
                _smaller(target_width, width),
            )
            result = pad_to_bounding_box(
                cropped, _larger(taller // 2, 0), _larger(wider // 2, 0), target_height, target_width
            )
            return _shaped(result, batch, target_height, target_width, depth)

        return batched(image, fit)


@export("image.central_crop")
def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """The middle of an image (or of each in a batch): that fraction of its height and of its width."""
    with name_scope(None, "central_crop", [image]):
        image = to_tensor(image, name="image")
        if not 0.0 < central_fraction <= 1.0:
            raise ValueError("central_fraction must be within (0, 1]")
        image = at_least_3d(image)
        rank = image.shape.rank
        if rank not in (3, 4):
            raise ValueError(
                f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {rank}."
            )
        if central_fraction == 1.0:
            return image
        dims = dimensions(image, rank)
        starts, sizes = zip(*(_middle(d, central_fraction) for d in dims[-3:-1]), strict=True)
        begin = stack([*([0] * (rank - 3)), *starts, 0])
        size = stack([*([-1] * (rank - 3)), *sizes, -1])
        kept = [None if is_tensor(s) else s for s in sizes]
        result = slice_(image, begin, size)
        result.set_shape([*image.shape.as_list()[: rank - 3], *kept, image.shape.as_list()[-1]])
        return result


def _middle(size: Size, fraction: float) -> tuple[Size, Size]:
    """Where the middle starts along one axis, and how long it is."""
    if isinstance(size, int):
        start = int((size - size * fraction) / 2)
        return start, size - start * 2
    wide = cast(size, dtypes.float64)
    start = cast((wide - wide * fraction) / 2, dtypes.int32)
    return start, size - start * 2
