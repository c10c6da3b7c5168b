"""Reading and writing image files. JPEG, GIF and compressed PNG go through Pillow, an optional extra."""

from __future__ import annotations

import io
import struct
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.formats import png

if TYPE_CHECKING:
    from PIL.Image import Image

# libpng's integer weights (of 32768) of red, green and blue in a gray.
_GRAY = np.array([9797, 19234, 3737], np.int64)


def pillow() -> ModuleType:
    """Pillow's `Image`; UnimplementedError where it is not installed."""
    try:
        from PIL import Image
    except ImportError as e:
        raise errors.UnimplementedError(
            None,
            None,
            "Reading and writing image files needs Pillow, which is not installed. "
            "Install it with: pip install 'tensorfleet[images]'",
        ) from e
    return Image


def _fail(message: str) -> errors.InvalidArgumentError:
    return errors.invalid(message)


def kind_of(contents: bytes) -> str:
    """JPEG, PNG, GIF or BMP, by how the file starts; InvalidArgumentError for anything else."""
    if not contents:
        raise _fail("Input is empty.")
    for start, kind in ((b"\xff\xd8\xff", "JPEG"), (b"\x89PNG", "PNG"), (b"GIF8", "GIF"), (b"BM", "BMP")):
        if contents.startswith(start):
            return kind
    raise _fail(
        "Unknown image file format. One of JPEG, PNG, GIF, BMP required. Expected image (JPEG, PNG, or GIF), got "
        f"unknown format starting with {contents[:16]!r}"
    )


def _open(contents: bytes, kind: str) -> Image:
    opener = pillow()
    try:
        image: Image = opener.open(io.BytesIO(contents), formats=[kind])
        return image
    except (OSError, SyntaxError, ValueError) as e:
        text = "Invalid PNG. Failed to initialize decoder." if kind == "PNG" else f"Invalid {kind} data: {e}"
        raise _fail(f"{text} Size {len(contents)}") from e


def _pixels(image: Image, mode: str, kind: str) -> np.ndarray:
    try:
        array = np.array(image if image.mode == mode else image.convert(mode))
    except (OSError, SyntaxError, ValueError) as e:
        text = "Invalid JPEG data or crop window" if kind == "JPEG" else f"Invalid {kind} data"
        raise _fail(f"{text}: {e}") from e
    return array[..., None] if array.ndim == 2 else array


def _with_channels(pixels: np.ndarray, channels: int) -> np.ndarray:
    """Gray, color and transparency added or taken away to have so many channels (0: as they are)."""
    have = pixels.shape[-1]
    if channels in (0, have):
        return pixels
    alpha = pixels[..., -1:] if have in (2, 4) else np.full_like(pixels[..., :1], np.iinfo(pixels.dtype).max)
    color = pixels[..., :-1] if have in (2, 4) else pixels
    if channels == 1 and color.shape[-1] == 3:
        color = (color.astype(np.int64) @ _GRAY >> 15).astype(pixels.dtype)[..., None]
    if channels >= 3 and color.shape[-1] == 1:
        color = np.repeat(color, 3, axis=-1)
    return np.concatenate([color, alpha], axis=-1) if channels == 4 else color


def decode(contents: bytes, channels: int = 0, deep: bool = False, ratio: int = 1) -> np.ndarray:
    """The pixels [height, width, channels] of a file: uint8, or uint16 when `deep`. A GIF gives its first frame."""
    kind = kind_of(contents)
    if kind == "PNG":
        return _decode_png(contents, channels, deep)
    if kind == "JPEG":
        pixels = decode_jpeg(contents, channels, ratio)
    elif kind == "GIF":
        pixels = _with_channels(decode_gif(contents)[0], channels)
    else:
        pixels = decode_bmp(contents, channels)
    return pixels.astype(np.uint16) * np.uint16(256) if deep else pixels


def _decode_png(contents: bytes, channels: int, deep: bool) -> np.ndarray:
    # Pillow cuts 16 bits to 8. Byte 28 says whether the image is interlaced.
    if png.bits_per_channel(contents) == 16 and contents[28] == 0:
        try:
            pixels = png.decode_deep(contents)
        except Exception as e:
            raise _fail(f"Invalid PNG data, size {len(contents)}") from e
        return _with_channels(pixels if deep else (pixels >> 8).astype(np.uint8), channels)
    image = _open(contents, "PNG")
    mode = {"1": "L", "L": "L", "LA": "LA", "RGBA": "RGBA", "I;16": "L", "I": "L"}.get(image.mode, "RGB")
    if image.mode in ("P", "RGB", "L") and "transparency" in image.info:
        mode = "RGBA" if image.mode == "P" or channels == 4 else mode
    pixels = _with_channels(_pixels(image, mode, "PNG"), channels)
    return pixels.astype(np.uint16) * np.uint16(257) if deep else pixels


def decode_jpeg(contents: bytes, channels: int = 0, ratio: int = 1) -> np.ndarray:
    """The uint8 pixels of a JPEG file, at one `ratio`-th of its size."""
    if channels == 4:
        raise _fail("JPEG does not support 4 channels")
    image = _open(contents, "JPEG")
    mode = "L" if channels == 1 or (channels == 0 and image.mode == "L") else "RGB"
    width, height = image.size
    # Pillow decodes at the largest scale that leaves at least this size. Rounded up, it would miss the scale
    # by one step for each side that `ratio` does not divide.
    draft = image.draft(mode, (max(width // ratio, 1), max(height // ratio, 1)))
    scale = 1 if draft is None else round(width / draft[1][2])
    # A side shorter than `ratio` stops the draft early: average what is left to do.
    return _pixels(image.reduce(ratio // scale) if scale < ratio else image, mode, "JPEG")


def jpeg_shape(contents: bytes) -> tuple[int, int, int]:
    """Height, width and channels of a JPEG file, from its header alone."""
    if not contents.startswith(b"\xff\xd8\xff"):
        raise _fail(f"Invalid JPEG data, size {len(contents)}")
    position = 2
    while position + 9 < len(contents):
        marker, length = contents[position + 1], int.from_bytes(contents[position + 2 : position + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width, channels = struct.unpack(">HHB", contents[position + 5 : position + 10])
            return height, width, channels
        position += 2 + length
    raise _fail(f"Invalid JPEG data, size {len(contents)}")


def decode_gif(contents: bytes) -> np.ndarray:
    """The frames [frames, height, width, 3] of a GIF file."""
    image = _open(contents, "GIF")
    frames = []
    for i in range(getattr(image, "n_frames", 1)):
        image.seek(i)
        frames.append(_pixels(image, "RGB", "GIF"))
    return np.stack(frames)


def decode_bmp(contents: bytes, channels: int = 0) -> np.ndarray:
    """The pixels of an uncompressed BMP file of 8, 24 or 32 bits a pixel."""
    if not contents.startswith(b"BM"):
        raise _fail(f"Expected BMP image, got unknown format starting with {contents[:16]!r}")
    if len(contents) < 32:
        raise _fail("Incomplete bmp content, requires at least 32 bytes")
    offset, _, width, height = struct.unpack("<iiii", contents[10:26])
    bits = int.from_bytes(contents[28:30], "little")
    have = bits // 8
    if bits not in (8, 24, 32):
        raise _fail(f"Number of channels inherent in the image must be 1, 3 or 4, was {have}")
    if channels not in (0, have) and (have == 1 or channels == 1):
        raise _fail(f"channels attribute {channels} does not match bits per pixel from file {have}")
    row = (width * have + 3) // 4 * 4
    if width <= 0 or len(contents) < offset + row * abs(height):
        raise _fail("Incomplete bmp content: the file is shorter than its header says")
    lines = np.frombuffer(contents, np.uint8, row * abs(height), offset).reshape(abs(height), row)
    pixels = lines[:, : width * have].reshape(abs(height), width, have)
    pixels = pixels[::-1] if height > 0 else pixels
    if have >= 3:
        stored, pixels = pixels, pixels.copy()
        pixels[..., 0], pixels[..., 2] = stored[..., 2], stored[..., 0]
    return np.ascontiguousarray(_with_channels(pixels, channels))


def encode_jpeg(
    pixels: np.ndarray, quality: int = 95, density: tuple[int, int] = (300, 300), **options: Any
) -> bytes:
    """The JPEG file of an array [height, width, 1 or 3] of uint8."""
    opener = pillow()
    image = opener.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, dpi=density, **options)
    return out.getvalue()
