"""`tf.contrib.image`: images turned, moved and seen from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import export, find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

_RANKS = {2: lambda x: x[None, :, :, None], 3: lambda x: x[None], 4: lambda x: x}
_BACK = {2: lambda x: x[0, :, :, 0], 3: lambda x: x[0], 4: lambda x: x}


def _sampled(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The pixels at whole places [batch, height, width]; zeros outside the images."""
    size = find("shape")(images)
    inside = (rows >= 0) & (rows < size[1]) & (columns >= 0) & (columns < size[2])
    batch = find("range")(size[0])[:, None, None] + 0 * rows
    places = find("stack")(
        [batch, find("clip_by_value")(rows, 0, size[1] - 1), find("clip_by_value")(columns, 0, size[2] - 1)],
        -1,
    )
    return find("gather_nd")(images, places) * find("cast")(inside, images.dtype)[..., None]


def _between(images: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The pixels around a place, weighted by how near they are."""
    cast, low_y, low_x = find("cast"), find("floor")(y), find("floor")(x)
    values = cast(images, np.float32)
    total: Any = 0.0
    for right in (0, 1):
        for below in (0, 1):
            weight_x = x - low_x if right else 1 - (x - low_x)
            weight_y = y - low_y if below else 1 - (y - low_y)
            seen = _sampled(values, cast(low_y, np.int32) + below, cast(low_x, np.int32) + right)
            total = total + (weight_x * weight_y)[..., None] * seen
    return cast(total, images.dtype)


@export("contrib.image.transform")
def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Images seen through projections [a0, a1, a2, b0, b1, b2, c0, c1], one or one for each.

    The pixel (x, y) of the output is that at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1.
    """
    if interpolation.upper() not in ("NEAREST", "BILINEAR"):
        raise ValueError(f"Invalid interpolation: {interpolation}. Give NEAREST or BILINEAR.")
    with name_scope(name, "transform"):
        given = to_tensor(images, name="images")
        rank = given.shape.rank
        if rank is None:
            raise TypeError("image_or_images rank must be statically known")
        if rank not in _RANKS:
            raise TypeError("Images should have rank between 2 and 4.")
        whole = _RANKS[rank](given)
        flat = to_tensor(transforms, np.float32, name="transforms")
        if flat.shape.rank not in (1, 2):
            raise TypeError("Transforms should have rank 1 or 2.")
        flat = flat[None] if flat.shape.rank == 1 else flat
        size = find("shape")(whole)
        height, width = (size[1], size[2]) if output_shape is None else find("unstack")(output_shape, num=2)
        y, x = _places(flat, height, width, size[0])
        if interpolation.upper() == "NEAREST":
            # A place halfway between two pixels belongs to the one further out.
            whole_y, whole_x = (
                find("cast")(find("sign")(v) * find("floor")(find("abs")(v) + 0.5), np.int32) for v in (y, x)
            )
            result = _sampled(whole, whole_y, whole_x)
        else:
            result = _between(whole, y, x)
        known = [None, None] if output_shape is not None else whole.shape.as_list()[1:3]
        result.set_shape([whole.shape.as_list()[0], *known, whole.shape.as_list()[3]])
        return _BACK[rank](result)


def _places(flat: Tensor, height: Any, width: Any, batch: Any) -> tuple[Tensor, Tensor]:
    """Where each pixel of the outputs comes from, [batch, height, width] each."""
    cast, span = find("cast"), find("range")
    x = cast(span(width), np.float32)[None, None, :]
    y = cast(span(height), np.float32)[None, :, None]
    a0, a1, a2, b0, b1, b2, c0, c1 = (part[:, None, None] for part in find("unstack")(flat, num=8, axis=1))
    scale = c0 * x + c1 * y + 1.0
    zeros = find("zeros")(find("stack")([batch, height, width]))
    return (b0 * x + b1 * y + b2) / scale + zeros, (a0 * x + a1 * y + a2) / scale + zeros


@export("contrib.image.angles_to_projective_transforms")
def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Tensor:
    """Projections that turn images around their middle, counterclockwise."""
    with name_scope(name, "angles_to_projective_transforms"):
        turn = to_tensor(angles, np.float32, name="angles")
        turn = turn[None] if turn.shape.rank == 0 else turn
        cos, sin, cast = find("cos")(turn), find("sin")(turn), find("cast")
        right, bottom = cast(image_width, np.float32) - 1, cast(image_height, np.float32) - 1
        x = (right - (cos * right - sin * bottom)) / 2.0
        y = (bottom - (sin * right + cos * bottom)) / 2.0
        none = find("zeros_like")(turn)
        return find("stack")([cos, -sin, x, sin, cos, y, none, none], 1)


@export("contrib.image.rotate")
def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> Tensor:
    """Images turned around their middle, counterclockwise, by an angle or one for each."""
    with name_scope(name, "rotate"):
        given = to_tensor(images)
        if given.shape.rank not in _RANKS:
            raise TypeError("Images should have rank between 2 and 4.")
        first = 0 if given.shape.rank < 4 else 1
        size = find("shape")(given)
        flat = angles_to_projective_transforms(angles, size[first], size[first + 1])
        return transform(given, flat, interpolation)


@export("contrib.image.translations_to_projective_transforms")
def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Tensor:
    """Projections that move images by (dx, dy)."""
    with name_scope(name, "translations_to_projective_transforms"):
        moves = to_tensor(translations, np.float32, name="translations")
        moves = moves[None] if moves.shape.rank == 1 else moves
        if moves.shape.rank != 2:
            raise TypeError("Translations should have rank 1 or 2.")
        one = find("ones_like")(moves[:, 0])
        none = find("zeros_like")(one)
        return find("stack")([one, none, -moves[:, 0], none, one, -moves[:, 1], none, none], 1)


@export("contrib.image.translate")
def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Images moved by (dx, dy), the same for all or one for each."""
    with name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


@export("contrib.image.flat_transforms_to_matrices")
def flat_transforms_to_matrices(transforms: Any) -> Tensor:
    """Projections as matrices of three rows."""
    flat = find("reshape")(to_tensor(transforms, np.float32), [-1, 8])
    one = find("ones")(find("stack")([find("shape")(flat)[0], 1]))
    return find("reshape")(find("concat")([flat, one], 1), [-1, 3, 3])


@export("contrib.image.matrices_to_flat_transforms")
def matrices_to_flat_transforms(transform_matrices: Any) -> Tensor:
    """Matrices of three rows as projections of eight numbers."""
    flat = find("reshape")(to_tensor(transform_matrices, np.float32), [-1, 9])
    return (flat / flat[:, 8:])[:, :8]


@export("contrib.image.compose_transforms")
def compose_transforms(*transforms: Any) -> Tensor:
    """One projection for several, the first applied first."""
    if not transforms:
        raise ValueError("transforms cannot be empty")
    with name_scope("compose_transforms"):
        output = flat_transforms_to_matrices(transforms[0])
        for more in transforms[1:]:
            output = find("matmul")(output, flat_transforms_to_matrices(more))
        return matrices_to_flat_transforms(output)
