"""Incremental checkpoints: one that has only what changed since the one before, up to a full one.

All are bundles (checkpoint_writer.py). An incremental one has, beside the tensors that changed as a whole, under names of its
own: which rows of a tensor changed and their values, and for each task that wrote it a link. The link says which checkpoint
has the rest, the checksum of that one's index, and for which tensors it does.

Whoever writes remembers the values that it wrote last, and compares: what changed is exact however it changed.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import errors_about as file_errors
from tensorfleet.base.files import file_path
from tensorfleet.base.formats.checkpoint_reader import BundleReader
from tensorfleet.base.formats.checkpoint_writer import BundleWriter, index_file
from tensorfleet.base.formats.crc import crc32c
from tensorfleet.base.formats.tensor_slices import TensorSlice, parse_spec

if TYPE_CHECKING:
    from tensorfleet.base.protos import BundleEntryProto
    from tensorfleet.base.types import PathLike

#: how the names begin under which incremental checkpoints have what is no tensor of the model
PRIVATE = "_TENSORFLEET_CHANGES/"
_LINK, _ROWS, _VALUES = f"{PRIVATE}link/", f"{PRIVATE}rows/", f"{PRIVATE}values/"
_MIN_ROWS_BYTES = 1 << 14  # a smaller tensor is written whole
_COMPARED_BYTES = 1 << 22
# What a Saver adds to the path of the whole checkpoint for the part that a task writes (api/train/saver_graph.py).
_PART = re.compile(r"(_temp_[0-9a-f]{32}/part|\.part)-(\d{5}-of-\d{5})$")


@dataclass(frozen=True)
class SavedTensor:
    """A tensor to write, or with a `spec` a part of one."""

    name: str
    spec: str
    array: np.ndarray
    dtype: DType

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.name, self.spec


@dataclass
class _Change:
    """What is written of a tensor: all of it (`rows` is None) or some rows."""

    tensor: SavedTensor
    rows: np.ndarray | None
    values: np.ndarray


@dataclass
class SavedValues:
    """What a task wrote last, in memory. Of saves at the same time the first one uses it; the others are full."""

    #: the checkpoint that has it; those that it needs, the full one first
    path: str = ""
    needs: list[str] = field(default_factory=list)
    values: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    #: the checksums of the entries that this task wrote
    written: dict[bytes, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def clear(self) -> None:
        """Forgets everything: the next save is a full one."""
        self.path, self.needs, self.values, self.written = "", [], {}, {}


def write_changes(
    saved: SavedValues,
    prefix: PathLike,
    tensors: Sequence[SavedTensor],
    full_every: int,
    writing: AbstractContextManager[None],
) -> None:
    """Writes what has changed since the last save; all of it in each `full_every`th one, or when it cannot be compared.

    While it is `writing`, the tensors may change already.
    """
    if not saved.lock.acquire(
        blocking=False
    ):  # another save is under way, which may need a lock of the caller's to end
        write_changes(SavedValues(), prefix, tensors, full_every, writing)
        return
    try:
        _write_changes(saved, prefix, tensors, full_every, writing)
    finally:
        saved.lock.release()


def _write_changes(
    saved: SavedValues,
    prefix: PathLike,
    tensors: Sequence[SavedTensor],
    full_every: int,
    writing: AbstractContextManager[None],
) -> None:
    path = file_path(prefix)
    found = _PART.search(path)
    whole_path, part = (path[: found.start()], found[2]) if found else (path, "00000-of-00001")
    crc = _index_crc(saved, whole_path, tensors) if len(saved.needs) + 1 < full_every else None
    if crc is None:
        saved.clear()
    changes = [change for tensor in tensors if (change := _changed(saved, tensor)) is not None]
    with writing, BundleWriter(path) as writer:
        for change in changes:
            _write(writer, change)
        if crc is not None:
            names = [tensor.name for tensor in tensors]
            link = {"previous": os.path.basename(saved.path), "crc": crc, "names": names}
            writer.add(_LINK + part, np.array(json.dumps(link).encode(), object))
    saved.needs = [*saved.needs, saved.path] if crc is not None else []
    saved.path, saved.written = whole_path, writer.checksums()
    for change in changes:
        _remember(saved, change)


def _index_crc(saved: SavedValues, path: str, tensors: Sequence[SavedTensor]) -> int | None:
    """The checksum of the index of the last checkpoint; None if the new one cannot be based on it."""
    before = saved.path
    if not before or os.path.dirname(before) != os.path.dirname(path) or path in (before, *saved.needs):
        return None
    if [t.key for t in tensors] != list(saved.values):
        return None
    try:
        entries = BundleReader(before).entries
        crc = index_crc(before)
    except (OSError, errors.OpError):
        return None  # that save failed for another task, or somebody has deleted it
    same = all(key in entries and entries[key].crc32c == value for key, value in saved.written.items())
    return crc if same else None


def index_crc(prefix: str) -> int:
    """The checksum of the index of a checkpoint, and by that of all that it has."""
    path = index_file(prefix)
    with file_errors(path), file_system(path).open(path, "rb") as file:
        return crc32c(file.read())


def _changed(saved: SavedValues, tensor: SavedTensor) -> _Change | None:
    """What has changed of a tensor, as a copy; None if nothing has."""
    array = np.asarray(tensor.array)
    before = saved.values.get(tensor.key)
    if before is None or before.shape != array.shape or before.dtype != array.dtype:
        return _Change(tensor, None, np.array(array, order="C"))
    if array.dtype.hasobject or not array.ndim or array.nbytes < _MIN_ROWS_BYTES:
        copy = np.array(array, order="C")
        same = (
            copy.tolist() == before.tolist() if array.dtype.hasobject else copy.tobytes() == before.tobytes()
        )
        return None if same else _Change(tensor, None, copy)
    rows = _changed_rows(before, array)
    if not rows.size:
        return None
    if 2 * rows.size > len(array):
        return _Change(tensor, None, np.array(array, order="C"))
    return _Change(tensor, rows, array[rows])


def _changed_rows(before: np.ndarray, array: np.ndarray) -> np.ndarray:
    """The numbers of the rows with other bits: as numbers, NaN would differ from itself."""
    count = len(array)
    row_bytes = array.nbytes // count if count else 0
    if not row_bytes:
        return np.zeros(0, np.int64)
    step = max(_COMPARED_BYTES // row_bytes, 1)
    found = [
        start
        + np.flatnonzero(
            (_bits(before[start : start + step]) != _bits(array[start : start + step])).any(axis=1)
        )
        for start in range(0, count, step)
    ]
    return np.concatenate(found)


def _bits(rows: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    return flat.view(np.uint64) if flat.shape[1] % 8 == 0 else flat


def _write(writer: BundleWriter, change: _Change) -> None:
    tensor = change.tensor
    if change.rows is not None:
        writer.add(f"{_ROWS}{tensor.spec}/{tensor.name}", change.rows.astype(np.int64))
        writer.add(f"{_VALUES}{tensor.spec}/{tensor.name}", change.values, tensor.dtype)
    elif tensor.spec:
        shape, part = parse_spec(tensor.spec)
        writer.add_slice(tensor.name, shape, part, change.values, tensor.dtype)
    else:
        writer.add(tensor.name, change.values, tensor.dtype)


def _remember(saved: SavedValues, change: _Change) -> None:
    if change.rows is None:
        saved.values[change.tensor.key] = change.values
    else:
        saved.values[change.tensor.key][change.rows] = change.values


# -- reading ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Link:
    previous: str
    crc: int


class IncrementalReader(BundleReader):
    """The tensors of an incremental checkpoint, with the rest from the checkpoints before it."""

    def __init__(self, prefix: PathLike) -> None:
        super().__init__(prefix)
        self._links: dict[str, _Link] = {}
        self._specs: dict[str, list[str]] = {}  # of the parts of which rows are here, by tensor
        self._readers: dict[_Link, BundleReader] = {}
        for name in super().names():
            if name.startswith(_LINK):
                self._add_link(name)
            elif name.startswith(_ROWS):
                spec, _, tensor = name.removeprefix(_ROWS).partition("/")
                self._specs.setdefault(tensor, []).append(spec)

    def _add_link(self, name: str) -> None:
        try:
            said = json.loads(super().read(name).item())
            link = _Link(str(said["previous"]), int(said["crc"]))
            self._links.update(dict.fromkeys(map(str, said["names"]), link))
        except (ValueError, KeyError, TypeError) as e:
            raise errors.DataLossError(
                None,
                None,
                f"The link {name} in {self.prefix} cannot be read: {e}. Restore an older checkpoint.",
            ) from e

    def previous(self) -> list[str]:
        """The checkpoints that have the rest."""
        folder = os.path.dirname(self.prefix)
        return sorted({os.path.join(folder, link.previous) for link in self._links.values()})

    def names(self) -> list[str]:
        """The names of the tensors, sorted."""
        own = {name for name in super().names() if not name.startswith(PRIVATE)}
        return sorted(own | set(self._links))

    def __contains__(self, name: str) -> bool:
        return super().__contains__(name) or name in self._links

    def entry(self, name: str) -> BundleEntryProto:
        """The `BundleEntryProto` of a tensor; NotFoundError when there is none."""
        if super().__contains__(name) or name not in self._links:
            return super().entry(name)
        return self._before(name).entry(name)

    def read(self, name: str, part: TensorSlice | None = None) -> np.ndarray:
        """A tensor, or a part of it, as it was when this checkpoint was saved."""
        own = self.entries.get(name.encode())
        if name not in self._links or (own is not None and not own.slices):
            return super().read(name, part)
        shape = self.shape(name)
        wanted = (TensorSlice.whole(len(shape)) if part is None else part).bounds(shape)
        result = self._before(name).read(name, part)
        for proto in () if own is None else own.slices:
            stored = TensorSlice.from_proto(proto)
            values = self._part(name, stored, own)  # type: ignore[arg-type] # there are slices of it
            if values is None:
                raise errors.DataLossError(None, None, f"A slice of {name} is missing from {self.prefix}")
            _put(result, wanted, stored.bounds(shape), np.arange(len(values)), values)
        for spec in self._specs.get(name, ()):
            bounds = parse_spec(spec)[1].bounds(shape) if spec else [(0, size) for size in shape]
            rows, values = (
                super(IncrementalReader, self).read(f"{what}{spec}/{name}") for what in (_ROWS, _VALUES)
            )
            _put(result, wanted, bounds, rows, values)
        return result

    def _before(self, name: str) -> BundleReader:
        """The reader of the checkpoint that has the rest of a tensor."""
        link = self._links[name]
        reader = self._readers.get(link)
        if reader is None:
            reader = self._readers[link] = self._open(link)
        return reader

    def _open(self, link: _Link) -> BundleReader:
        path = os.path.join(os.path.dirname(self.prefix), link.previous)
        has_only = f"{self.prefix} has only what changed since {path}"
        if not file_system(path).isfile(index_file(path)):
            raise errors.DataLossError(
                None,
                None,
                f"{has_only}, which is missing. Put its files back, or restore an older checkpoint.",
            )
        if index_crc(path) != link.crc:
            raise errors.DataLossError(
                None,
                None,
                f"{has_only}, but that was written again since then, or is damaged. Restore another checkpoint.",
            )
        return open_bundle(path)


def _put(
    result: np.ndarray,
    wanted: list[tuple[int, int]],
    held: list[tuple[int, int]],
    rows: np.ndarray,
    values: np.ndarray,
) -> None:
    """Puts rows of the part that lies at `held` into the part that lies at `wanted`, as far as they overlap."""
    common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(wanted, held, strict=True)]
    if any(start >= end for start, end in common):
        return
    (first, last), places = common[0], rows + held[0][0]
    inside = (places >= first) & (places < last)
    mine = [slice(s - b, e - b) for (s, e), (b, _) in zip(common[1:], wanted[1:], strict=True)]
    theirs = [slice(s - b, e - b) for (s, e), (b, _) in zip(common[1:], held[1:], strict=True)]
    into: tuple[Any, ...] = (places[inside] - wanted[0][0], *mine)
    out_of: tuple[Any, ...] = (inside, *theirs)
    result[into] = values[out_of]


def open_bundle(prefix: PathLike) -> BundleReader:
    """A reader of a checkpoint, incremental or full."""
    reader = BundleReader(prefix)
    return (
        IncrementalReader(prefix) if any(key.startswith(_LINK.encode()) for key in reader.entries) else reader
    )


def needed_by(prefix: str) -> list[str]:
    """The checkpoints that an incremental one needs, as far as they can be read; none for a full one."""
    found: list[str] = []
    waiting = [prefix]
    while waiting:
        try:
            reader: Any = open_bundle(waiting.pop())
        except (OSError, errors.OpError):
            continue
        if isinstance(reader, IncrementalReader):
            new = [path for path in reader.previous() if path not in found]
            found += new
            waiting += new
    return found
