"""Sorted tables of keys and values: the format of a checkpoint's `.index` file.

A table is a run of blocks. In a block, a key is written as what differs from the key before; every sixteenth
is written whole, and their positions stand at the block's end. After each block come its compression (0, none)
and a checksum. The index block names the last key of every data block with its place; the footer, always
48 bytes, says where the index block is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tensorfleet import errors
from tensorfleet.io.crc import masked_crc
from tensorfleet.io.varint import read_varint, write_varint

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER = 48
_BLOCK = 256 * 1024
_RESTART_EVERY = 16


class _Block:
    """A block being written."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.restarts = [0]
        self.count = 0
        self.last = b""

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self.count % _RESTART_EVERY:
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
        if len(block.data) >= _BLOCK:
            index.add(key, append(block.finish()))
            block = _Block()
    if block.count:
        index.add(_successor(block.last), append(block.finish()))
    places = append(_Block().finish()) + append(index.finish())
    return bytes(out) + places.ljust(_FOOTER - len(_MAGIC), b"\0") + _MAGIC


def read_table(content: bytes) -> dict[bytes, bytes]:
    """The keys, in rising order, and values of a table; DataLossError when it is damaged."""
    if len(content) < _FOOTER:
        raise errors.DataLossError(None, None, "file is too short to be an sstable")
    footer = content[-_FOOTER:]
    if footer[-len(_MAGIC) :] != _MAGIC:
        raise errors.DataLossError(None, None, "not an sstable (bad magic number)")
    found: dict[bytes, bytes] = {}
    try:
        position = 0
        for _ in range(2):  # past the place of the metaindex block, which says nothing
            _, position = read_varint(footer, position)
        for _, place in _entries(_block_at(content, footer, position)):
            found.update(_entries(_block_at(content, place, 0)))
    except (IndexError, struct.error) as e:
        raise errors.DataLossError(None, None, f"bad entry in block: {e}") from e
    return found


def _block_at(content: bytes, place: bytes, position: int) -> bytes:
    offset, position = read_varint(place, position)
    size, _ = read_varint(place, position)
    end = offset + size
    if end + 5 > len(content):
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
