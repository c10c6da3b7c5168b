"""Reading checkpoints in TensorFlow's format; every byte that is returned has had its checksum compared."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import errors_about as file_errors
from tensorfleet.base.files import file_path
from tensorfleet.base.formats.checkpoint_writer import (
    CHUNK_BYTES,
    data_file,
    fixed_length,
    index_file,
    shape_of,
)
from tensorfleet.base.formats.crc import crc32c, mask
from tensorfleet.base.formats.table import read_table
from tensorfleet.base.formats.tensor_slices import TensorSlice
from tensorfleet.base.formats.varint import read_varint

if TYPE_CHECKING:
    from tensorfleet.base.protos import BundleEntryProto
    from tensorfleet.base.types import PathLike


class BundleReader:
    """The tensors of the checkpoint `prefix`."""

    def __init__(self, prefix: PathLike) -> None:
        from tensorfleet.base.protos import BundleEntryProto, BundleHeaderProto

        self.prefix = file_path(prefix)
        path = index_file(self.prefix)
        with file_errors(path):
            if not file_system(path).isfile(path):
                raise _no_checkpoint(self.prefix)
            with file_system(path).open(path, "rb") as f:
                content = f.read()
        with unreadable(path):
            table = read_table(content)
            header = BundleHeaderProto.FromString(table.pop(b""))
            self.entries = {key: BundleEntryProto.FromString(v) for key, v in table.items()}
        if header.endianness != BundleHeaderProto.LITTLE:
            raise errors.UnimplementedError(
                None, None, f"{path} was written on a big-endian machine; write it anew on this one."
            )
        self.shards = header.num_shards

    def names(self) -> list[str]:
        """The names of the tensors, sorted."""
        return [key.decode() for key in self.entries if not key.startswith(b"\0")]

    def __contains__(self, name: str) -> bool:
        return name.encode() in self.entries

    def entry(self, name: str) -> BundleEntryProto:
        """The `BundleEntryProto` of a tensor; NotFoundError when there is none."""
        result = self.entries.get(name.encode())
        if result is None:
            raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint")
        return result

    def dtype(self, name: str) -> DType:
        """The type of a tensor's elements."""
        return dtypes.as_dtype(self.entry(name).dtype)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return shape_of(self.entry(name))

    def read(self, name: str, part: TensorSlice | None = None) -> np.ndarray:
        """A tensor, or a part of it, however it was cut when it was saved."""
        entry = self.entry(name)
        shape = shape_of(entry)
        if not entry.slices:
            array = self._load(entry)
            return array if part is None else array[_window(part.bounds(shape))]
        wanted = TensorSlice.whole(len(shape)) if part is None else part
        return self._gather(name, shape, entry, wanted.bounds(shape))

    def _gather(
        self, name: str, shape: tuple[int, ...], entry: BundleEntryProto, wanted: list[tuple[int, int]]
    ) -> np.ndarray:
        dtype = dtypes.as_dtype(entry.dtype)
        result = np.empty([end - start for start, end in wanted], dtype.np_dtype)
        filled = 0
        for proto in entry.slices:
            stored = TensorSlice.from_proto(proto)
            held = stored.bounds(shape)
            common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(wanted, held, strict=True)]
            if any(start >= end for start, end in common):
                continue
            source = self._part(name, stored, entry)
            if source is None:
                raise errors.DataLossError(None, None, f"A slice of {name} is missing from {self.prefix}")
            target = result[_moved(common, wanted)]
            target[...] = source[_moved(common, held)]
            filled += target.size
        if filled != result.size:
            raise errors.invalid(
                f"The slices of {name} in {self.prefix} do not fully cover the slice that is asked for; was it "
                "saved in full?"
            )
        return result

    def _part(self, name: str, part: TensorSlice, entry: BundleEntryProto) -> np.ndarray | None:
        """A part that was saved as such; None when it is not there."""
        stored = self.entries.get(part.key(name))
        return None if stored is None else self._load(stored)

    def _load(self, entry: BundleEntryProto) -> np.ndarray:
        path = data_file(self.prefix, entry.shard_id, self.shards)
        content = np.empty(entry.size, np.uint8)
        crc = 0
        with file_errors(path), file_system(path).open(path, "rb", buffering=0) as f:
            f.seek(entry.offset)
            view = content.data
            done = 0
            # Straight into the result, with the checksum while each piece is in the processor's cache.
            while done < entry.size and (got := f.readinto(view[done : done + CHUNK_BYTES])):  # type: ignore[attr-defined] # not in BinaryIO
                crc = crc32c(content[done : done + got], crc)
                done += got
        if done < entry.size:
            raise errors.OutOfRangeError(None, None, f"Read fewer bytes than requested from {path}")
        dtype, shape = dtypes.as_dtype(entry.dtype), shape_of(entry)
        if dtype in (dtypes.string, dtypes.variant):
            return self._strings(entry, content.tobytes(), shape)
        self._compare(entry, crc)
        expected = int(np.prod(shape, dtype=np.int64)) * dtype.np_dtype.itemsize
        if expected != entry.size:
            raise errors.DataLossError(
                None, None, f"Invalid size in bundle entry: stored {entry.size}; expected {expected}"
            )
        return content.view(dtype.np_dtype).reshape(shape)

    def _compare(self, entry: BundleEntryProto, crc: int) -> None:
        if mask(crc) != entry.crc32c:
            raise errors.DataLossError(
                None,
                None,
                f"TensorBundle at {self.prefix} shard {entry.shard_id} ({entry.size} bytes): Checksum does not "
                f"match: stored {entry.crc32c:08x} vs. calculated on the restored bytes {mask(crc):08x}",
            )

    def _strings(self, entry: BundleEntryProto, content: bytes, shape: Sequence[int]) -> np.ndarray:
        count = int(np.prod(shape, dtype=np.int64))
        lengths: list[int] = []
        position = 0
        try:
            for _ in range(count):
                length, position = read_varint(content, position)
                lengths.append(length)
        except IndexError:
            raise errors.DataLossError(
                None, None, f"A string tensor in {self.prefix} ends inside its lengths"
            ) from None
        crc = crc32c(b"".join(map(fixed_length, lengths)))
        checksum = content[position : position + 4]
        if checksum != struct.pack("<I", mask(crc)):
            raise errors.DataLossError(
                None, None, f"The lengths of a string tensor in {self.prefix} do not match their checksum"
            )
        position += 4
        # The strings follow each other, so the rest is covered in one go.
        self._compare(entry, crc32c(content[position:], crc32c(checksum, crc)))
        array = np.empty(count, object)
        for i, length in enumerate(lengths):
            array[i] = content[position : position + length]
            position += length
        return array.reshape(shape)


@contextlib.contextmanager
def unreadable(path: str) -> Iterator[None]:
    """Turns errors about the bytes of a file into the one TensorFlow raises for it."""
    try:
        yield
    except (errors.DataLossError, KeyError, ValueError, DecodeError) as e:
        reason = e.message if isinstance(e, errors.OpError) else f"{type(e).__name__}: {e}"
        raise errors.DataLossError(
            None,
            None,
            f"Unable to read file ({path}). Perhaps the file is corrupt or was produced by a newer version "
            f"of TensorFlow with format changes: {reason}. Name a checkpoint by its path without .index, .meta or "
            ".data-...",
        ) from e


def _no_checkpoint(prefix: str) -> errors.OpError:
    text = f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}"
    return errors.NotFoundError(None, None, text)


def _window(bounds: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    return tuple(slice(start, end) for start, end in bounds)


def _moved(bounds: Sequence[tuple[int, int]], base: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """Bounds as seen from where `base` starts."""
    return tuple(slice(s - b, e - b) for (s, e), (b, _) in zip(bounds, base, strict=True))


def is_complete(prefix: str) -> bool:
    """Whether there is a checkpoint of that name, and its files are as long as its index says. Reads the index only."""
    try:
        reader = BundleReader(prefix)
        getsize = file_system(prefix).getsize
        sizes = [getsize(data_file(prefix, i, reader.shards)) for i in range(reader.shards)]
        return all(e.offset + e.size <= sizes[e.shard_id] for e in reader.entries.values())
    except (OSError, IndexError, errors.OpError):
        return file_system(prefix).isfile(prefix)  # the older format is one file
