"""Checkpoints in TensorFlow's format: many tensors in data files, found through a sorted table.

`prefix.index` is a table from names to `BundleEntryProto`s, `prefix.data-00000-of-00001` the bytes they point
into. A tensor saved in parts has an entry that lists them, and each part an entry of its own.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import uuid
from collections.abc import Sequence
from glob import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import errors_about as file_errors
from tensorfleet.base.files import file_path
from tensorfleet.base.formats.atomic_files import sync_now, whole_file
from tensorfleet.base.formats.crc import crc32c, mask
from tensorfleet.base.formats.table import write_table
from tensorfleet.base.formats.tensor_slices import TensorSlice
from tensorfleet.base.formats.varint import write_varint

if TYPE_CHECKING:
    from tensorfleet.base.protos import BundleEntryProto
    from tensorfleet.base.types import PathLike

CHUNK_BYTES = 1 << 20  # bytes: they are still in the processor's cache when their checksum is computed


def data_file(prefix: str, shard: int, shards: int) -> str:
    """The name of a data file."""
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


def index_file(prefix: str) -> str:
    """The name of the index file."""
    return f"{prefix}.index"


class BundleWriter:
    """Writes a checkpoint: `add` tensors, then `finish`. Nothing appears under `prefix` before that.

    The directory of `prefix` is made when only its last level is missing.
    """

    def __init__(self, prefix: PathLike) -> None:
        self._prefix = file_path(prefix)
        self._files = file_system(self._prefix)
        self._entries: dict[str, Any] = {}
        self._slices: dict[bytes, Any] = {}
        self._offset = 0
        self._temporary = f"{data_file(self._prefix, 0, 1)}.tempstate{uuid.uuid4().hex}"
        _make_folder(self._prefix)
        with file_errors(self._temporary):
            self._file = self._files.open(self._temporary, "wb")

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    def add(self, name: str, array: np.ndarray, dtype: DType | None = None) -> None:
        """Writes a tensor."""
        if name in self._entries:
            raise errors.invalid(f"Adding duplicate key: {name}")
        self._entries[name] = self._write(np.asarray(array), dtype)

    def add_slice(
        self,
        name: str,
        full_shape: Sequence[int],
        part: TensorSlice,
        array: np.ndarray,
        dtype: DType | None = None,
    ) -> None:
        """Writes a part of a tensor."""
        from tensorfleet.base.protos import BundleEntryProto

        array = np.asarray(array)
        if part.shape(full_shape) != array.shape:
            raise errors.invalid(
                f"Slice of '{name}' has shape {list(part.shape(full_shape))}, but its tensor has shape "
                f"{list(array.shape)}"
            )
        key = part.key(name)
        if key in self._slices or (name in self._entries and not self._entries[name].slices):
            raise errors.invalid(f"Adding duplicate slice of tensor: {name}")
        stored = self._write(array, dtype)
        whole = self._entries.setdefault(name, BundleEntryProto(dtype=stored.dtype))
        if not whole.slices:
            set_shape(whole, full_shape)
        elif shape_of(whole) != tuple(full_shape):
            raise errors.invalid(f"Slices of '{name}' disagree about its full shape")
        whole.slices.append(part.to_proto())
        self._slices[key] = stored

    def _write(self, array: np.ndarray, dtype: DType | None) -> BundleEntryProto:
        from tensorfleet.base.protos import BundleEntryProto

        kind = dtypes.as_dtype(array.dtype) if dtype is None else dtype.base_dtype
        with file_errors(self._temporary):
            if kind in (dtypes.string, dtypes.variant):  # a variant is what it is saved as
                size, crc = self._write_strings(array)
            else:
                # As bytes: neither the checksum nor the file knows all of our types.
                flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                size, crc = flat.nbytes, 0
                for start in range(0, size, CHUNK_BYTES):
                    piece = flat[start : start + CHUNK_BYTES]
                    self._file.write(piece.data)
                    crc = crc32c(piece, crc)
        entry = BundleEntryProto(offset=self._offset, size=size, crc32c=mask(crc))
        entry.dtype = kind.as_datatype_enum
        set_shape(entry, array.shape)
        self._offset += size
        return entry

    def _write_strings(self, array: np.ndarray) -> tuple[int, int]:
        """Lengths, a checksum of them, then the strings. The checksums see lengths as fixed-size numbers."""
        values = [v.encode() if isinstance(v, str) else bytes(v) for v in array.ravel().tolist()]
        lengths = b"".join(write_varint(len(v)) for v in values)
        crc = crc32c(b"".join(fixed_length(len(v)) for v in values))
        checksum = struct.pack("<I", mask(crc))
        crc = crc32c(checksum, crc)
        self._file.write(lengths + checksum)
        for value in values:
            self._file.write(value)
            crc = crc32c(value, crc)
        return len(lengths) + 4 + sum(map(len, values)), crc

    def checksums(self) -> dict[bytes, int]:
        """The checksums of what was written, by key."""
        stored = {name.encode(): entry for name, entry in self._entries.items() if not entry.slices}
        return {key: entry.crc32c for key, entry in (stored | self._slices).items()}

    def finish(self) -> None:
        """Makes the checkpoint visible, the index last."""
        try:
            with file_errors(self._prefix):
                self._file.close()
        except BaseException:
            self.discard()
            raise
        entries = {k.encode(): v for k, v in self._entries.items()} | self._slices
        publish(self._prefix, [self._temporary], entries)

    def discard(self) -> None:
        """Gives up: nothing is left behind."""
        with contextlib.suppress(OSError):  # the disk may be full still
            self._file.close()
        with contextlib.suppress(FileNotFoundError):
            self._files.remove(self._temporary)


def _make_folder(prefix: str) -> None:
    """Makes the directory of a checkpoint, one level at most. Other shards may do the same at this moment."""
    folder, files = os.path.dirname(prefix), file_system(prefix)
    with file_errors(folder), contextlib.suppress(FileExistsError):
        if folder and not files.isdir(folder):
            files.mkdir(folder)


def fixed_length(length: int) -> bytes:
    """A string's length as its checksum sees it."""
    return struct.pack("<I" if length < 1 << 32 else "<Q", length)


def set_shape(entry: BundleEntryProto, shape: Sequence[int]) -> None:
    """Gives an entry a shape."""
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)


def shape_of(entry: BundleEntryProto) -> tuple[int, ...]:
    """The shape in an entry."""
    return tuple(d.size for d in entry.shape.dim)


# Who saves twice under one name at the same time, such as a supervisor and its program, takes turns.
_TURNS = [threading.Lock() for _ in range(16)]


def publish(prefix: str, files: Sequence[str], entries: dict[bytes, Any]) -> None:
    """Makes files the data of the checkpoint `prefix`.

    Where there is a checkpoint of that name already, the new data must not take the place of the old before the
    index does, or a crash in between would leave neither. So the data files are first put on disk and numbered as if
    there were one more, and get their usual names once the index leads to them. A checkpoint of a new name replaces
    none: who deletes older ones sees to it that this one is on disk before.
    """
    with _TURNS[hash(prefix) % len(_TURNS)]:
        _publish(prefix, files, entries)


def _publish(prefix: str, files: Sequence[str], entries: dict[bytes, Any]) -> None:
    count = len(files)
    system = file_system(prefix)
    replaced = system.exists(index_file(prefix))
    # Other numbers of files have other names already.
    aside = replaced and _count_in_use(prefix) == count
    used = count + 1 if aside else count
    places = [data_file(prefix, i, used) for i in range(count)]
    with file_errors(prefix):
        try:
            for source, place in zip(files, places, strict=True):
                system.replace(source, place)
            if replaced:
                sync_now(places)
            write_index(prefix, used, entries)
        except BaseException:
            for path in (*files, *places):
                with contextlib.suppress(OSError):
                    system.remove(path)
            raise
        if aside:
            places = _usual_names(prefix, places, entries)
        for path in set(system.glob(escape(prefix) + ".data-?????-of-?????")) - set(places):
            system.remove(path)


def _usual_names(prefix: str, places: list[str], entries: dict[bytes, Any]) -> list[str]:
    """Gives data files that the index leads to their usual names; where that fails they keep the ones they have."""
    usual = [data_file(prefix, i, len(places)) for i in range(len(places))]
    system = file_system(prefix)
    try:
        for source, place in zip(places, usual, strict=True):
            second = f"{place}.tempstate{uuid.uuid4().hex}"
            system.link(source, second)
            system.replace(second, place)
        sync_now(usual)
        write_index(prefix, len(places), entries)
    except (OSError, errors.OpError):  # a file system without links, or a full one: the checkpoint is whole
        return places
    return usual


def _count_in_use(prefix: str) -> int | None:
    """How many data files the checkpoint of that name has, if it can be read."""
    from tensorfleet.base.formats.checkpoint_reader import BundleReader

    try:
        return BundleReader(prefix).shards
    except errors.OpError:
        return None


def write_index(prefix: str, shards: int, entries: dict[bytes, Any]) -> None:
    """Writes an index file."""
    from tensorfleet.base.protos import BundleHeaderProto

    header = BundleHeaderProto(num_shards=shards)
    header.version.producer = 1
    items = [(b"", header.SerializeToString())]
    items += [(key, entries[key].SerializeToString()) for key in sorted(entries)]
    with whole_file(index_file(prefix)) as f:
        f.write(write_table(items))


def merge(
    prefixes: Sequence[PathLike],
    destination: PathLike,
    delete_old_dirs: bool = True,
    allow_missing_files: bool = False,
) -> None:
    """Makes one checkpoint of several, moving their data files; some may be allowed to be missing."""
    from tensorfleet.base.formats.checkpoint_reader import BundleReader

    target = file_path(destination)
    sources = list(dict.fromkeys(map(file_path, prefixes)))
    if allow_missing_files:
        sources = [p for p in sources if file_system(p).exists(index_file(p))]
    readers = [BundleReader(p) for p in sources]
    merged: dict[bytes, Any] = {}
    files: list[str] = []
    for reader in readers:
        first = len(files)
        for key, entry in reader.entries.items():
            entry.shard_id += first
            _merge_entry(merged, key, entry)
        files += [data_file(reader.prefix, i, reader.shards) for i in range(reader.shards)]
    _make_folder(target)
    publish(target, files, merged)
    with file_errors(target):
        for reader in readers:
            file_system(reader.prefix).remove(index_file(reader.prefix))
    if delete_old_dirs:
        for folder in {os.path.dirname(r.prefix) for r in readers}:
            _remove_if_empty(folder)


def _merge_entry(merged: dict[bytes, Any], key: bytes, entry: BundleEntryProto) -> None:
    known = merged.setdefault(key, entry)
    if known is entry:
        return
    if not (known.slices and entry.slices) or shape_of(known) != shape_of(entry):
        raise errors.invalid(f"Merging two checkpoints that both hold '{key.decode(errors='replace')}'")
    known.slices.extend(entry.slices)


def _remove_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):  # somebody else's files are in it: it stays
        file_system(folder).rmdir(folder)
