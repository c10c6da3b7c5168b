"""PNG images from arrays, and back from those with 16 bits a channel, which Pillow cannot keep."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

# Number of channels -> PNG's color type: gray, gray with alpha, color, color with alpha.
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


_CHANNELS = {color: channels for channels, color in _COLOR_TYPES.items()}
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode(pixels: np.ndarray, compression: int = -1) -> bytes:
    """The PNG file of an array [height, width, channels] of uint8 or uint16."""
    height, width, channels = pixels.shape
    bits = 8 * pixels.dtype.itemsize
    header = struct.pack(">IIBBBBB", width, height, bits, _COLOR_TYPES[channels], 0, 0, 0)
    line = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).view(np.uint8).reshape(height, -1)
    packer = zlib.compressobj(compression, strategy=zlib.Z_FILTERED)
    packed = packer.compress(_filtered(line, channels * pixels.dtype.itemsize).tobytes()) + packer.flush()
    parts = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _filtered(line: np.ndarray, step: int) -> np.ndarray:
    """Rows of bytes minus a prediction from their neighbours: of five predictions, the best for each row.

    Each row starts with the number of its way: nothing, the left, the upper, their mean, the nearest (Paeth).
    """
    left, up, corner = np.zeros_like(line), np.zeros_like(line), np.zeros_like(line)
    left[:, step:], up[1:], corner[1:, step:] = line[:, :-step], line[:-1], line[:-1, :-step]
    mean = (left & up) + ((left ^ up) >> 1)  # cannot overflow
    ways = [line, *(line - guess for guess in (left, up, mean, _nearest(left, up, corner)))]
    remains = [np.minimum(way, -way).sum(axis=1, dtype=np.uint32) for way in ways]
    chosen = np.argmin(remains, axis=0)
    rows = np.empty((len(line), 1 + line.shape[1]), np.uint8)
    rows[:, 0] = chosen
    for number, way in enumerate(ways):
        rows[chosen == number, 1:] = way[chosen == number]
    return rows


def _nearest(left: np.ndarray, up: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """`_paeth` for whole arrays."""
    from_left = up.astype(np.int16) - corner
    from_up = left.astype(np.int16) - corner
    near_left, near_up, near_corner = np.abs(from_left), np.abs(from_up), np.abs(from_left + from_up)
    other = np.where(near_up <= near_corner, up, corner)
    return np.where((near_left <= near_up) & (near_left <= near_corner), left, other)


def bits_per_channel(contents: bytes) -> int:
    """8 or 16 (or less, for images of few colors); 0 when the header is cut off."""
    return contents[24] if len(contents) > 24 else 0


def decode_deep(contents: bytes) -> np.ndarray:
    """The uint16 pixels [height, width, channels] of a PNG file with 16 bits a channel, not interlaced."""
    width, height, bits, color, _, _, interlaced = struct.unpack(">IIBBBBB", contents[16:29])
    if bits != 16 or interlaced:
        raise ValueError("only whole images with 16 bits a channel")
    channels = _CHANNELS[color]
    data = zlib.decompress(b"".join(body for kind, body in _chunks(contents) if kind == b"IDAT"))
    rows = np.frombuffer(data, np.uint8).reshape(height, 1 + 2 * width * channels)
    above = bytearray(rows.shape[1] - 1)
    lines = []
    for row in rows:
        above = _unfilter(row[0], bytearray(row[1:].tobytes()), above, 2 * channels)
        lines.append(bytes(above))
    pixels = np.frombuffer(b"".join(lines), ">u2").astype(np.uint16)
    return pixels.reshape(height, width, channels)


def _chunks(contents: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = len(SIGNATURE)
    while position + 8 <= len(contents):
        length = int.from_bytes(contents[position : position + 4], "big")
        yield contents[position + 4 : position + 8], contents[position + 8 : position + 8 + length]
        position += 12 + length


def _unfilter(kind: int, line: bytearray, above: bytearray, step: int) -> bytearray:
    """One row as it was before the encoder subtracted a prediction from it."""
    if kind == 2:
        return bytearray((np.frombuffer(line, np.uint8) + np.frombuffer(above, np.uint8)).tobytes())
    for i in range(len(line) if kind else 0):
        left = line[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + above[i]) // 2
        else:
            guess = _paeth(left, above[i], corner)
        line[i] = (line[i] + guess) & 255
    return line


def _paeth(left: int, up: int, corner: int) -> int:
    """Whichever of the three neighbours is nearest to left + up - corner."""
    near_left, near_up, near_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if near_left <= near_up and near_left <= near_corner:
        return left
    return up if near_up <= near_corner else corner


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
