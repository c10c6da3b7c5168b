"""Sorted tables of keys and values: the format of a checkpoint's `.index` file.

A table is a run of blocks. In a block, a key is written as its difference from the key before; every sixteenth
is written whole, and their positions stand at the block's end. After each block come its compression (0, none)
and a checksum. The index block names the last key of every data block with its place; the footer, always
48 bytes, says where the index block is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tensorfleet.base import errors
from tensorfleet.base.formats.crc import masked_crc
from tensorfleet.base.formats.varint import read_varint, write_varint

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER_BYTES = 48
_TRAILER_BYTES = 5  # compression and checksum
# Sizes of TensorFlow's writer.
_BLOCK_BYTES = 256 * 1024
_RESTART_ENTRIES = 16


class _Block:
    """A block being written."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.restarts = [0]
        self.count = 0
        self.last = b""

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self.count % _RESTART_ENTRIES:
            shared = _common(self.last, key)
        elif self.count:
            self.restarts.append(len(self.data))
        self.data += write_varint(shared) + write_varint(len(key) - shared) + write_varint(len(value))
        self.data += key[shared:] + value
        self.count += 1
        self.last = key

    def finish(self) -> bytes:
        return bytes(self.data) + struct.pack(
            f"<{len(self.restarts) + 1}I", *self.restarts, len(self.restarts)
        )


def _common(a: bytes, b: bytes) -> int:
    length = min(len(a), len(b))
    return next((i for i in range(length) if a[i] != b[i]), length)


def _successor(key: bytes) -> bytes:
    """A short key that is not below this one."""
    for i, c in enumerate(key):
        if c != 0xFF:
            return key[:i] + bytes([c + 1])
    return key


def write_table(items: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The bytes of a table of these keys, which must come in rising order, and values."""
    out = bytearray()
    index, block = _Block(), _Block()

    def append(content: bytes) -> bytes:
        """Adds a finished block; gives the bytes that tell its place."""
        place = write_varint(len(out)) + write_varint(len(content))
        out.extend(content + b"\0" + struct.pack("<I", masked_crc(content + b"\0")))
        return place

    for key, value in items:
        block.add(key, value)
        if len(block.data) >= _BLOCK_BYTES:
            index.add(key, append(block.finish()))
            block = _Block()
    if block.count:
        index.add(_successor(block.last), append(block.finish()))
    places = append(_Block().finish()) + append(index.finish())
    return bytes(out) + places.ljust(_FOOTER_BYTES - len(_MAGIC), b"\0") + _MAGIC


def read_table(content: bytes) -> dict[bytes, bytes]:
    """The keys, in rising order, and values of a table; DataLossError when it is damaged."""
    if len(content) < _FOOTER_BYTES:
        raise errors.DataLossError(None, None, "file is too short to be an sstable")
    footer = content[-_FOOTER_BYTES:]
    if footer[-len(_MAGIC) :] != _MAGIC:
        raise errors.DataLossError(None, None, "not an sstable (bad magic number)")
    result: dict[bytes, bytes] = {}
    try:
        places, rest = _places(footer, 2)
        if footer[rest : -len(_MAGIC)].strip(b"\0"):
            raise errors.DataLossError(None, None, "bad footer")
        data = [_places(value, 1)[0][0] for _, value in _entries(_block_at(content, places[1]))]
        _check_covered([*data, *places], len(content) - _FOOTER_BYTES)
        for place in data:
            result.update(_entries(_block_at(content, place)))
        _block_at(content, places[0])  # it says nothing, but it must be whole
    except (IndexError, struct.error) as e:
        raise errors.DataLossError(None, None, f"bad entry in block: {e}") from e
    return result


def _places(text: bytes, count: int) -> tuple[list[tuple[int, int]], int]:
    """Where blocks are, as (offset, size), and where the bytes that say so end."""
    places, position = [], 0
    for _ in range(count):
        offset, position = read_varint(text, position)
        size, position = read_varint(text, position)
        places.append((offset, size))
    written = b"".join(write_varint(n) for place in places for n in place)
    # One place has one spelling: a longer varint is a damaged one.
    if text[:position] != written:
        raise errors.DataLossError(None, None, "bad block handle")
    return places, position


def _check_covered(places: list[tuple[int, int]], end: int) -> None:
    """Every byte belongs to a block, and so to a checksum."""
    position = 0
    for offset, size in places:
        if offset != position:
            raise errors.DataLossError(None, None, "bad block handle")
        position = offset + size + _TRAILER_BYTES
    if position != end:
        raise errors.DataLossError(None, None, "bytes that belong to no block")


def _block_at(content: bytes, place: tuple[int, int]) -> bytes:
    offset, size = place
    end = offset + size
    if end + _TRAILER_BYTES > len(content):
        raise errors.DataLossError(None, None, "truncated block read")
    (stored,) = struct.unpack_from("<I", content, end + 1)
    if stored != masked_crc(content[offset : end + 1]):
        raise errors.DataLossError(None, None, "block checksum mismatch")
    if content[end]:
        raise errors.UnimplementedError(
            None, None, "compressed blocks cannot be read; TensorFlow writes its index files uncompressed"
        )
    return content[offset:end]


def _entries(block: bytes) -> Iterable[tuple[bytes, bytes]]:
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (restarts + 1)
    position, key = 0, b""
    while position < end:
        shared, position = read_varint(block, position)
        unshared, position = read_varint(block, position)
        size, position = read_varint(block, position)
        if shared > len(key) or position + unshared + size > end:
            raise IndexError("an entry reaches past its block")
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + size]
        position += size
