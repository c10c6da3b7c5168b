"""Numbers of seven bits a byte, lowest first: how TensorFlow's files write lengths and offsets."""

from __future__ import annotations


def write_varint(value: int) -> bytes:
    """The bytes of a non-negative number."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at a position, and the position after it; IndexError when the bytes end before it does."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
