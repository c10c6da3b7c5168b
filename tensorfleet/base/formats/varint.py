"""Numbers of seven bits a byte, lowest first: how TensorFlow's files write lengths and offsets."""

from __future__ import annotations


def write_varint(value: int) -> bytes:
    """The bytes of a non-negative number."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


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
