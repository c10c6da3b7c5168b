"""Checks that functions on images share: of their dimensions, known or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.array.shape import expand_dims, shape, squeeze
from tensorfleet.ops.array.stack import unstack
from tensorfleet.ops.math.cast import cast, saturate_cast

#: A length in pixels: a number, or a tensor when only the step knows it.
Size: TypeAlias = "int | Tensor"


def dimensions(image: Tensor, rank: int) -> list[Size]:
    """The dimensions as ints where they are known, else as tensors."""
    if image.shape.is_fully_defined():
        return image.shape.as_list()
    known = image.shape.with_rank(rank).as_list()
    measured = unstack(shape(image), rank)
    return [m if k is None else k for k, m in zip(known, measured, strict=True)]


def is_tensor(x: object) -> bool:
    """Whether a size is only known when the graph runs."""
    return isinstance(x, Tensor) or hasattr(x, "_as_graph_element")


class Conditions:
    """Requirements on sizes: refused at once when they are numbers, asserted in the graph otherwise."""

    def __init__(self) -> None:
        self._asserts: list[Operation] = []

    def require(self, condition: object, error: type[Exception], message: str) -> None:
        """Adds one requirement."""
        if is_tensor(condition):
            # Only the step knows the size: the result waits for the assertion.
            self._asserts.append(Assert(condition, [message]))
        elif not condition:
            raise error(message)

    def guard(self, tensor: Tensor) -> Tensor:
        """The tensor, available only when all requirements hold."""
        if not self._asserts:
            return tensor
        with control_dependencies(self._asserts):
            return apply("Identity", tensor, name="control_dependency")


def at_least_3d(image: Tensor) -> Tensor:
    """The image; ValueError when it is known not to be one, an assertion when that is not known."""
    rank = image.shape.rank
    if rank is not None and rank < 3:
        raise ValueError(f"'image' (shape {image.shape}) must be at least three-dimensional.")
    conditions = Conditions()
    inner = None if rank is None else image.shape.as_list()[-3:]
    if inner is not None and None not in inner:
        if 0 in inner:
            raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {image.shape}")
        return image
    sizes = apply("StridedSlice", shape(image), [-3], [0], [1], end_mask=1)
    positive = apply("All", apply("Greater", sizes, 0), [0])
    conditions.require(positive, ValueError, "inner 3 dims of 'image.shape' must be > 0.")
    return conditions.guard(image)


def batched(image: TensorLike, act: Callable[[Tensor], Tensor], what: str = "image") -> Tensor:
    """`act` on a batch of images, or on one image that is a batch of its own meanwhile; of unknown rank it is one image."""
    image = to_tensor(image, name=what)
    rank = image.shape.rank
    if rank not in (None, 3, 4):
        raise ValueError(f"'{what}' (shape {image.shape}) must have either 3 or 4 dimensions.")
    images = image if rank == 4 else expand_dims(image, 0)
    images.set_shape([None] * 4)
    result = act(at_least_3d(images))
    return result if rank == 4 else squeeze(result, axis=[0])


@export("image.convert_image_dtype")
def convert_image_dtype(
    image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Changes the type of pixels and scales them: [0, 1] for floats, the whole range for integers.

    With `saturate`, values beyond the new range stay at its ends instead of wrapping around.
    """
    image = to_tensor(image, name="image")
    target = dtypes.as_dtype(dtype)
    if not target.is_floating and not target.is_integer:
        raise AttributeError("dtype must be either floating point or integer")
    if target == image.dtype.base_dtype:
        return apply("Identity", image, name=name)
    with name_scope(name, "convert_image", [image]) as scope:
        return _scaled(image, target, cast if not saturate else saturate_cast, scope)


def _scaled(image: Tensor, target: dtypes.DType, convert: Callable[..., Tensor], scope: str) -> Tensor:
    source = image.dtype.base_dtype
    if source.is_floating and target.is_floating:
        result: Tensor = cast(image, target, name=scope)
        return result
    if source.is_integer and target.is_floating:
        return apply("Mul", cast(image, target), 1.0 / source.max, name=scope)
    if target.is_floating or source.is_floating:
        # The half keeps a value just below one from being cut to the value below the highest.
        return convert(apply("Mul", image, target.max + 0.5), target, name=scope)
    # Between integers the factor is a power of two, the quotient of the sizes of their ranges.
    if source.max > target.max:
        return convert(apply("FloorDiv", image, (source.max + 1) // (target.max + 1)), target, name=scope)
    return apply("Mul", convert(image, target), (target.max + 1) // (source.max + 1), name=scope)
