"""Colors of images: brightness, contrast, hue, saturation, gamma, and the way between color spaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.image.checks import Conditions, at_least_3d, convert_image_dtype, is_tensor
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.shape import expand_dims, rank
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.tile_roll_reverse import tile
from tensorfleet.ops.image.codec import decode_jpeg
from tensorfleet.ops.linalg.contract import tensordot
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_mean, reduce_prod, reduce_std
from tensorfleet.ops.random.ops import random_uniform


def _adjusted(
    image: TensorLike,
    name: str,
    act: Callable[[Tensor, str], Tensor],
    scope_name: str | None = None,
    saturate: bool = True,
) -> Tensor:
    """`act` on the image as floats in [0, 1], and the result in the type the image came in."""
    with name_scope(scope_name, name, [image]) as scope:
        image = to_tensor(image, name="image")
        kind = image.dtype.base_dtype
        floats = (
            image if kind in (dtypes.float16, dtypes.float32) else convert_image_dtype(image, dtypes.float32)
        )
        return convert_image_dtype(act(floats, scope), kind, saturate=saturate)


@export("image.adjust_brightness")
def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """`delta`, a fraction of the whole range, added to every pixel."""
    return _adjusted(
        image, "adjust_brightness", lambda x, _: apply("AddV2", x, cast(delta, x.dtype.base_dtype))
    )


@export("image.random_brightness")
def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Brightness changed by a random amount in [-max_delta, max_delta)."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


@export("image.adjust_contrast")
def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """The distance of every pixel from the mean of its channel, in its image, times a factor."""
    return _adjusted(images, "adjust_contrast", lambda x, _: apply("AdjustContrastv2", x, contrast_factor))


def _ordered(lower: float, upper: float) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")


@export("image.random_contrast")
def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Contrast changed by a random factor in [lower, upper)."""
    _ordered(lower, upper)
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


@export("image.adjust_gamma")
def adjust_gamma(image: TensorLike, gamma: Any = 1, gain: TensorLike = 1) -> Tensor:
    """Every pixel, as a number in [0, 1], to the power of `gamma`, times `gain`."""

    def act(x: Tensor, _: str) -> Tensor:
        c = Conditions()
        c.require(gamma >= 0, ValueError, "Gamma should be a non-negative real number.")
        power = cast(gamma, x.dtype.base_dtype) if is_tensor(gamma) else gamma
        result: Tensor = gain * c.guard(x) ** power
        return result

    return _adjusted(image, "adjust_gamma", act)


@export("image.adjust_hue")
def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """The hue of RGB images turned by `delta`: 1 is the whole circle."""
    return _adjusted(image, "adjust_hue", lambda x, _: apply("AdjustHue", x, delta), name, saturate=False)


@export("image.random_hue")
def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """The hue turned by a random amount in [-max_delta, max_delta)."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


@export("image.adjust_saturation")
def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None) -> Tensor:
    """The saturation of RGB images times a factor."""
    act = lambda x, _: apply("AdjustSaturation", x, saturation_factor)  # noqa: E731
    return _adjusted(image, "adjust_saturation", act, name, saturate=False)


@export("image.random_saturation")
def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """The saturation times a random factor in [lower, upper)."""
    _ordered(lower, upper)
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


@export("image.adjust_jpeg_quality")
def adjust_jpeg_quality(image: TensorLike, jpeg_quality: TensorLike, name: str | None = None) -> Tensor:
    """The image after it went through a JPEG file of that quality."""
    with name_scope(name, "adjust_jpeg_quality", [image]):
        image = to_tensor(image, name="image")
        kind, channels = image.dtype.base_dtype, image.shape.as_list()[-1]
        pixels = convert_image_dtype(image, dtypes.uint8, saturate=True)
        coded = apply("EncodeJpegVariableQuality", pixels, to_tensor(jpeg_quality, dtypes.int32))
        return convert_image_dtype(decode_jpeg(coded, channels=channels or 0), kind, saturate=True)


@export("image.random_jpeg_quality")
def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """The image after it went through a JPEG file of random quality."""
    if min(min_jpeg_quality, max_jpeg_quality) < 0 or max(min_jpeg_quality, max_jpeg_quality) > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, seed=seed, dtype=dtypes.int32)
    return adjust_jpeg_quality(image, quality)


@export("image.per_image_standardization")
def per_image_standardization(image: TensorLike) -> Tensor:
    """Each image with mean 0 and variance 1; an image of one color becomes zeros."""
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = at_least_3d(to_tensor(image, name="image"))
        image = cast(image, dtypes.float32)
        pixels = reduce_prod(apply("StridedSlice", shape_of(image), [-3], [0], [1], end_mask=1))
        mean = reduce_mean(image, axis=[-1, -2, -3], keepdims=True)
        deviation = reduce_std(image, axis=[-1, -2, -3], keepdims=True)
        # TensorFlow's bound of the deviation, for images of one color.
        least = apply("Rsqrt", cast(pixels, dtypes.float32))
        return apply("RealDiv", image - mean, apply("Maximum", deviation, least), name=scope)


# -- color spaces ------------------------------------------------------------------------------------


@export("image.rgb_to_grayscale")
def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """RGB images as gray ones: the last axis has one channel, of the same type."""
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = to_tensor(images, name="images")
        floats = convert_image_dtype(images, dtypes.float32)
        gray = expand_dims(tensordot(floats, [0.2989, 0.5870, 0.1140], [-1, -1]), -1)
        return convert_image_dtype(gray, images.dtype.base_dtype, name=scope)


@export("image.grayscale_to_rgb")
def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Gray images with one channel as RGB images of the same grays."""
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = to_tensor(images, name="images")
        if images.shape.rank is not None and images.shape.as_list()[-1] not in (None, 1):
            raise ValueError("Last dimension of a grayscale image should be size 1.")
        others = apply("Fill", expand_dims(rank(images) - 1, 0), 1)
        result = tile(images, concat([others, [3]], 0), name=scope)
        if images.shape.rank is not None:
            result.set_shape([*images.shape.as_list()[:-1], 3])
        return result


def _space(forward: str, backward: str, long: str, there: list[list[float]], back: list[list[float]]) -> None:
    """Publishes the change of RGB images into a color space and back, by a matrix and its inverse."""

    def make(name: str, kernel: list[list[float]], doc: str) -> None:
        def convert(images: TensorLike) -> Tensor:
            images = to_tensor(images, name="images")
            weights = to_tensor(kernel, images.dtype.base_dtype, name="kernel")
            return tensordot(images, weights, axes=[[len(images.shape.as_list()) - 1], [0]])

        convert.__name__ = convert.__qualname__ = name
        convert.__doc__ = doc
        export(f"image.{name}")(convert)

    make(forward, there, f"RGB images, with values in [0, 1], as {long}.")
    make(backward, back, f"{long} images as RGB.")


_space(
    "rgb_to_yiq",
    "yiq_to_rgb",
    "YIQ",
    [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]],
    [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]],
)
_space(
    "rgb_to_yuv",
    "yuv_to_rgb",
    "YUV",
    [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]],
    [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]],
)
