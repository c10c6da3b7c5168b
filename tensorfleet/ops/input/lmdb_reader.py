"""`tf.LMDBReader`: the records of LMDB databases, through the `lmdb` package."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.input.readers import _MAKES, _PLACE, ReaderBase, ReaderState, _reader


class _DatabaseRecords:
    """A database as a work unit: its records in the order of their keys."""

    def __init__(self, path: bytes) -> None:
        try:
            import lmdb
        except ImportError as e:
            raise errors.UnimplementedError(
                None, None, "tf.LMDBReader reads through the lmdb package: run `pip install lmdb`."
            ) from e
        try:
            folder = os.path.isdir(path)
            self._base = lmdb.open(os.fsdecode(path), subdir=folder, readonly=True, lock=False)
        except lmdb.Error as e:
            raise errors.invalid(f"{e}: {os.fsdecode(path)}") from e
        self._records: Iterator[tuple[bytes, bytes]] = self._read()
        self.over = False

    def _read(self) -> Iterator[tuple[bytes, bytes]]:
        with self._base, self._base.begin() as transaction:
            yield from transaction.cursor()

    def take(self, count: int) -> list[tuple[bytes, bytes]]:
        """The next records, at most `count`."""
        records = list(itertools.islice(self._records, count))
        self.over = len(records) < count
        return records


@op("LMDBReader", "-> reader_handle: Ref(string)", _PLACE, **_MAKES)
def _lmdb_reader(ctx: HostContext, *, container: bytes, shared_name: bytes) -> ReaderState:
    return _reader(ctx, container, shared_name, _DatabaseRecords)


not_differentiable("LMDBReader")


@export("LMDBReader")
class LMDBReader(ReaderBase):
    """Gives the keys and the values of LMDB databases."""

    def __init__(self, name: str | None = None, options: object = None) -> None:
        super().__init__(apply("LMDBReader", name=name))
