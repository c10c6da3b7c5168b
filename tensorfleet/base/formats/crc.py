"""The checksum of TensorFlow's files: CRC-32C, masked so that a checksum of checksums stays a good one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorfleet.base.types import Buffer

MASK_DELTA = 0xA282EAD8


def crc32c(data: Buffer, start: int = 0) -> int:
    """The CRC-32C of bytes or of a contiguous array, carried on from `start`."""
    import google_crc32c

    return int(google_crc32c.extend(start, data))


def mask(crc: int) -> int:
    """The form in which a checksum is stored."""
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF


def masked_crc(data: Buffer) -> int:
    """The stored form of the bytes' checksum."""
    return mask(crc32c(data))


def unmask(stored: int) -> int:
    """The checksum that is stored in that form."""
    turned = (stored - MASK_DELTA) & 0xFFFFFFFF
    return (turned >> 17 | turned << 15) & 0xFFFFFFFF


def checksum_function() -> Callable[[int, bytes], int]:
    """The function of a checksum so far and more bytes, for loops that cannot afford another call."""
    import google_crc32c

    extend: Callable[[int, bytes], int] = google_crc32c.extend
    return extend
