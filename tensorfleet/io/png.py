"""PNG images from arrays of bytes."""

from __future__ import annotations

import struct
import zlib

import numpy as np

# Number of channels -> PNG's color type: gray, gray with alpha, color, color with alpha.
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def encode(pixels: np.ndarray) -> bytes:
    """The PNG file of an array [height, width, channels] of uint8."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row starts with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
