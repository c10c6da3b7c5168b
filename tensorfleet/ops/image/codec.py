"""Image files as tensors: decoding and encoding JPEG, PNG, GIF and BMP."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.formats import images as pictures
from tensorfleet.base.formats import png
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.common import UNKNOWN, require, scalar, static_value
from tensorfleet.ops.nn.shapes import of_rank, of_rank_at_least
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_PIXELS = (np.arange(4 * 5 * 3) * 4).reshape(4, 5, 3).astype(np.uint8)
_PNG = np.array(png.encode(_PIXELS), object)


def _contents(value: Array) -> bytes:
    array = np.asarray(value, object)
    require(array.ndim == 0, f"contents must be scalar, got shape {list(array.shape)}")
    result: bytes = array.item()
    return result


def _text(data: bytes) -> Array:
    out = np.empty((), object)
    out[()] = data
    return out


def _decoded(op: Operation) -> TensorShape:
    of_rank(op._inputs[0].shape, 0)
    channels = op._attrs["channels"]
    if channels < 0:
        raise ValueError(f"channels must be non-negative, got {channels}")
    return TensorShape([None, None, channels or None])


def _check_channels(channels: int) -> None:
    require(channels in (0, 1, 3, 4), f"`channels` must be 0, 1, 3 or 4 but got {channels}")


@op(
    "DecodePng",
    "contents: string -> image: dtype",
    "channels: int = 0; dtype: {uint8, uint16} = uint8",
    shape=_decoded,
    host=True,
    examples=[case(_PNG), case(_PNG, channels=1), case(_PNG, channels=4, dtype=dtypes.uint16)],
)
def _decode_png(ctx: HostContext, contents: Array, *, channels: int, dtype: dtypes.DType) -> Array:
    _check_channels(channels)
    return pictures.decode(_contents(contents), channels, deep=dtype == dtypes.uint16)


_JPEG = (
    "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; try_recover_truncated: bool = false; "
    "acceptable_fraction: float = 1; dct_method: string = ''"
)


def _check_ratio(channels: int, ratio: int) -> None:
    _check_channels(channels)
    require(ratio in (1, 2, 4, 8), f"ratio must be 1, 2, 4, or 8, got {ratio}")


@op(
    "DecodeJpeg",
    "contents: string -> image: uint8",
    _JPEG,
    shape=_decoded,
    host=True,
    examples=[case(_PNG, channels=3)],
)
def _decode_jpeg(ctx: HostContext, contents: Array, *, channels: int, ratio: int) -> Array:
    _check_ratio(channels, ratio)
    return pictures.decode(_contents(contents), channels, ratio=ratio)


def _decoded_part(op: Operation) -> TensorShape:
    window = static_value(op, 1)
    height, width = (None, None) if window is None else (int(window[2]), int(window[3]))
    return TensorShape([height, width, op._attrs["channels"] or None])


@op(
    "DecodeAndCropJpeg",
    "contents: string[0], crop_window: int32[4,] -> image: uint8",
    _JPEG,
    shape=_decoded_part,
    host=True,
)
def _decode_and_crop_jpeg(
    ctx: HostContext, contents: Array, window: Array, *, channels: int, ratio: int
) -> Array:
    _check_ratio(channels, ratio)
    require(np.shape(window) == (4,), f"crop_window must have four elements {list(np.shape(window))}")
    y, x, height, width = np.asarray(window).tolist()
    image = pictures.decode(_contents(contents), channels, ratio=ratio)
    inside = y >= 0 and x >= 0 and height > 0 and width > 0
    inside = inside and y + height <= image.shape[0] and x + width <= image.shape[1]
    require(inside, f"Invalid JPEG data or crop window: {[y, x, height, width]} of {list(image.shape)}")
    return image[y : y + height, x : x + width]


@op(
    "DecodeGif",
    "contents: string[0] -> image: uint8",
    shape=lambda op: TensorShape([None, None, None, 3]),
    host=True,
)
def _decode_gif(ctx: HostContext, contents: Array) -> Array:
    data = _contents(contents)
    if pictures.kind_of(data) != "GIF":
        return pictures.decode(data, 3)[None]
    return pictures.decode_gif(data)


@op("DecodeBmp", "contents: string -> image: uint8", "channels: int = 0", shape=_decoded, host=True)
def _decode_bmp(ctx: HostContext, contents: Array, *, channels: int) -> Array:
    require(channels in (0, 3, 4), f"`channels` must be 0, 3 or 4 for BMP, but got {channels}")
    data = _contents(contents)
    return (
        pictures.decode(data, channels)
        if pictures.kind_of(data) != "BMP"
        else pictures.decode_bmp(data, channels)
    )


def _any_decoded(op: Operation) -> TensorShape:
    return UNKNOWN if op._attrs["expand_animations"] else _decoded(op)


@op(
    "DecodeImage",
    "contents: string[0] -> image: dtype",
    "channels: int = 0; dtype: {uint8, uint16, float} = uint8; expand_animations: bool = true",
    shape=_any_decoded,
    host=True,
    examples=[case(_PNG), case(_PNG, dtype=dtypes.float32, expand_animations=False)],
)
def _decode_image(
    ctx: HostContext, contents: Array, *, channels: int, dtype: dtypes.DType, expand_animations: bool
) -> Array:
    _check_channels(channels)
    data = _contents(contents)
    deep = dtype == dtypes.uint16
    if pictures.kind_of(data) == "GIF" and expand_animations:
        require(channels in (0, 3), f"channels must be 0 or 3 for GIF, got {channels}")
        frames = pictures.decode_gif(data)
        pixels = frames.astype(np.uint16) * np.uint16(256) if deep else frames
    else:
        pixels = pictures.decode(data, channels, deep)
    return pixels.astype(np.float32) / np.float32(255) if dtype == dtypes.float32 else pixels


@op(
    "ExtractJpegShape",
    "contents: string[0] -> image_shape: output_type",
    "output_type: index = int32",
    shape=lambda op: TensorShape([3]),
    host=True,
)
def _extract_jpeg_shape(ctx: HostContext, contents: Array, *, output_type: dtypes.DType) -> Array:
    return np.array(pictures.jpeg_shape(_contents(contents)), output_type.np_dtype)


def _encoded_many(op: Operation) -> TensorShape:
    shape = of_rank_at_least(op._inputs[0].shape, 3)
    return UNKNOWN if shape.rank is None else TensorShape(shape.as_list()[:-3])


@op(
    "EncodePng",
    "image: T -> contents: string",
    "compression: int = -1; T: {uint8, uint16} = uint8",
    shape=_encoded_many,
    host=True,
)
def _encode_png(ctx: HostContext, image: Array, *, compression: int) -> Array:
    image = np.asarray(image)
    require(image.ndim >= 3, f"images must be at least rank 3, got {list(image.shape)}")
    require(image.size > 0, "image cannot be empty")
    channels = image.shape[-1]
    require(1 <= channels <= 4, f"image must have 1, 2, 3, or 4 channels, got {channels}")
    flat = image.reshape(-1, *image.shape[-3:])
    out = np.empty(len(flat), object)
    out[:] = [png.encode(i, compression) for i in flat]
    return out.reshape(image.shape[:-3])


def _check_jpeg(image: Array) -> None:
    require(image.ndim == 3, f"image must be 3-dimensional {list(image.shape)}")
    dims = ",".join(map(str, image.shape))
    require(image.shape[2] in (1, 3), f"image must have 1 or 3 channels, got [{dims}]")


@op(
    "EncodeJpeg",
    "image: uint8[3] -> contents: string",
    "format: string(|grayscale|rgb) = ''; quality: int = 95; progressive: bool = false; "
    "optimize_size: bool = false; chroma_downsampling: bool = true; density_unit: string(in|cm) = 'in'; "
    "x_density: int = 300; y_density: int = 300; xmp_metadata: string = ''",
    shape=scalar,
    host=True,
)
def _encode_jpeg(ctx: HostContext, image: Array, *, op: Operation) -> Array:
    image, attrs = np.asarray(image), op._attrs
    _check_jpeg(image)
    wanted = {b"": image.shape[2], b"grayscale": 1, b"rgb": 3}[attrs["format"]]
    dims = ",".join(map(str, image.shape))
    require(
        image.shape[2] == wanted, f"format {attrs['format'].decode()} expects {wanted} channels, got [{dims}]"
    )
    per_inch = 1.0 if attrs["density_unit"] == b"in" else 2.54
    options: dict[str, Any] = {"progressive": attrs["progressive"], "optimize": attrs["optimize_size"]}
    options["subsampling"] = 2 if attrs["chroma_downsampling"] else 0
    if attrs["xmp_metadata"]:
        options["xmp"] = attrs["xmp_metadata"]
    density = (attrs["x_density"] * per_inch, attrs["y_density"] * per_inch)
    require(0 <= attrs["quality"] <= 100, f"quality must be in [0,100], got {attrs['quality']}")
    return _text(pictures.encode_jpeg(image, attrs["quality"], density, **options))


@op(
    "EncodeJpegVariableQuality",
    "images: uint8[3], quality: int32 -> contents: string",
    shape=scalar,
    host=True,
)
def _encode_jpeg_variable(ctx: HostContext, image: Array, quality: Array) -> Array:
    image = np.asarray(image)
    _check_jpeg(image)
    require(0 <= int(quality) <= 100, f"quality must be in [0,100], got {int(quality)}")
    return _text(pictures.encode_jpeg(image, int(quality), subsampling=2))


not_differentiable("DecodePng", "DecodeJpeg", "DecodeAndCropJpeg", "DecodeGif", "DecodeBmp", "DecodeImage")
not_differentiable("ExtractJpegShape", "EncodePng", "EncodeJpeg", "EncodeJpegVariableQuality")


# -- names -------------------------------------------------------------------------------------------


@export("image.decode_png", "io.decode_png")
def decode_png(
    contents: TensorLike, channels: int = 0, dtype: DTypeLike = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The pixels [height, width, channels] of a PNG file; `channels` 0 keeps the file's own."""
    return apply("DecodePng", contents, channels=channels, dtype=dtype, name=name)


decode_jpeg = op_function(
    "DecodeJpeg",
    "contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, "
    "acceptable_fraction=1, dct_method='', name=None",
    "image.decode_jpeg io.decode_jpeg",
    "The pixels [height, width, channels] of a JPEG file; `ratio` 2, 4 or 8 gives a smaller image fast.",
)


decode_and_crop_jpeg = op_function(
    "DecodeAndCropJpeg",
    "contents, crop_window, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, "
    "acceptable_fraction=1, dct_method='', name=None",
    "image.decode_and_crop_jpeg io.decode_and_crop_jpeg",
    "The window [y, x, height, width] of a JPEG file.",
)


@export("image.decode_gif", "io.decode_gif")
def decode_gif(contents: TensorLike, name: str | None = None) -> Tensor:
    """The frames [frames, height, width, 3] of a GIF file."""
    return apply("DecodeGif", contents, name=name)


@export("image.decode_bmp", "io.decode_bmp")
def decode_bmp(contents: TensorLike, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels [height, width, channels] of a BMP file."""
    return apply("DecodeBmp", contents, channels=channels, name=name)


@export("image.decode_image", "io.decode_image")
def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DTypeLike = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """The pixels of a JPEG, PNG, GIF or BMP file; a GIF gives all its frames unless `expand_animations` is off."""
    with name_scope(name, "decode_image", [contents]):
        kind = dtypes.as_dtype(dtype)
        if kind not in (dtypes.float32, dtypes.uint8, dtypes.uint16):
            kind = dtypes.float32 if kind.is_floating else dtypes.uint8
        image = apply(
            "DecodeImage", contents, channels=channels or 0, dtype=kind, expand_animations=expand_animations
        )
        return image if kind == dtypes.as_dtype(dtype) else apply("Cast", image, DstT=dtypes.as_dtype(dtype))


@export("image.encode_png")
def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """The PNG file of an image [height, width, 1 to 4] of uint8 or uint16."""
    return apply("EncodePng", to_tensor(image, name="image"), compression=compression, name=name)


encode_jpeg = op_function(
    "EncodeJpeg",
    "image, format='', quality=95, progressive=False, optimize_size=False, chroma_downsampling=True, "
    "density_unit='in', x_density=300, y_density=300, xmp_metadata='', name=None",
    "image.encode_jpeg io.encode_jpeg",
    "The JPEG file of an image [height, width, 1 or 3] of uint8.",
)


@export("image.extract_jpeg_shape", "io.extract_jpeg_shape")
def extract_jpeg_shape(
    contents: TensorLike, output_type: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """Height, width and channels of a JPEG file, without decoding it."""
    return apply("ExtractJpegShape", contents, output_type=output_type, name=name)
