"""Checkpoints in TensorFlow's first format (V1): one sorted table, or several that hold parts, with tensors as messages.

The empty key says which tensors there are and how they were cut; each part is under a key of its own.
"""

from __future__ import annotations

from glob import escape
from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import errors_about as file_errors
from tensorfleet.base.files import file_path
from tensorfleet.base.formats.checkpoint_changes import open_bundle
from tensorfleet.base.formats.checkpoint_reader import BundleReader, unreadable
from tensorfleet.base.formats.checkpoint_writer import index_file, shape_of
from tensorfleet.base.formats.table import read_table
from tensorfleet.base.formats.tensor_slices import TensorSlice

if TYPE_CHECKING:
    from tensorfleet.base.dtypes import DType
    from tensorfleet.base.protos import BundleEntryProto, TensorProto
    from tensorfleet.base.types import PathLike


class OldReader(BundleReader):
    """The tensors of a checkpoint of the older format: a file, or files for which `prefix` is a pattern."""

    def __init__(self, prefix: PathLike) -> None:
        from tensorfleet.base.protos import BundleEntryProto, SavedTensorSlices

        self.prefix = file_path(prefix)
        self.shards = 0
        self.entries: dict[bytes, BundleEntryProto] = {}
        self._parts: dict[bytes, bytes] = {}
        for path in old_files(self.prefix):
            with file_errors(path), file_system(path).open(path, "rb") as f:
                content = f.read()
            with unreadable(path):
                table = read_table(content)
                meta = SavedTensorSlices.FromString(table.pop(b"")).meta
                if not all(key.startswith(b"\0") for key in table):
                    raise ValueError("it holds no slices of tensors")
            for tensor in meta.tensor:
                new = BundleEntryProto(dtype=tensor.type, shape=tensor.shape, slices=tensor.slice)
                known = self.entries.setdefault(tensor.name.encode(), new)
                if known is not new:
                    known.slices.extend(tensor.slice)
            self._parts.update(table)
            self.shards += 1
        self.entries = dict(sorted(self.entries.items()))

    def read(self, name: str, part: TensorSlice | None = None) -> np.ndarray:
        """A tensor, or a part of it, however it was cut when it was saved."""
        entry = self.entry(name)
        if shape_of(entry) or not entry.slices:
            return super().read(name, part)
        result = self._part(name, TensorSlice.from_proto(entry.slices[0]), entry)
        if result is None:
            raise errors.DataLossError(None, None, f"The value of {name} is missing from {self.prefix}")
        return result

    def _part(self, name: str, part: TensorSlice, entry: BundleEntryProto) -> np.ndarray | None:
        from tensorfleet.base.protos import SavedTensorSlices

        stored = self._parts.get(part.key(name))
        if stored is None:
            return None
        with unreadable(self.prefix):
            proto = SavedTensorSlices.FromString(stored).data.data
        dtype, shape = dtypes.as_dtype(entry.dtype), part.shape(shape_of(entry))
        array = _elements(proto, dtype)
        if array.size != int(np.prod(shape, dtype=np.int64)):
            text = f"{array.size} elements of {name} in {self.prefix}, where its shape is {list(shape)}"
            raise errors.DataLossError(None, None, text)
        return array.reshape(shape)


def _elements(proto: TensorProto, dtype: DType) -> np.ndarray:
    values = getattr(proto, dtypes.PROTO_FIELDS.get(dtype.name, "int_val"))
    if dtype.name == "string":
        array = np.empty(len(values), object)
        array[:] = list(values)
        return array
    if dtype.name in ("float16", "bfloat16"):
        return np.array(values, np.uint16).view(dtype.np_dtype)
    if dtype.name.startswith("complex"):
        return np.array(values, dtype.real_dtype.np_dtype).view(dtype.np_dtype)
    return np.array(values, dtype.np_dtype)


def old_files(prefix: str) -> list[str]:
    """The files of a checkpoint of the older format."""
    files = file_system(prefix)
    if files.isfile(prefix):
        return [prefix]
    return sorted(files.glob(prefix)) or sorted(files.glob(escape(prefix) + "-?????-of-?????"))


def open_checkpoint(prefix: PathLike) -> BundleReader:
    """A reader of a checkpoint, of whichever format it is; NotFoundError when there is none."""
    path = file_path(prefix)
    with file_errors(path):
        older = not file_system(path).isfile(index_file(path)) and bool(old_files(path))
    if older:
        return OldReader(path)
    return open_bundle(path)
