"""`RecordInput`: the records of TFRecord files, in a new random order in every pass over them."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.files import glob
from tensorfleet.base.formats.records import TFRecordOptions, tf_record_iterator
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.concat import split
from tensorfleet.ops.array.shape import reshape


class _ShuffledRecords:
    """An endless stream of records; each pass gives every record once."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        self._attrs = attrs
        self._random = random.Random(attrs["file_random_seed"])
        self._stream = self._passes()
        self._lock = threading.Lock()

    def take(self, count: int) -> list[bytes]:
        """The next records."""
        with self._lock:
            return [next(self._stream) for _ in range(count)]

    def _passes(self) -> Iterator[bytes]:
        pattern = self._attrs["file_pattern"].decode()
        shift = 0.0
        while True:
            files = sorted(glob(pattern))
            if not files:
                raise errors.NotFoundError(None, None, f"No files found at: {pattern}")
            self._random.shuffle(files)
            start = int(shift * len(files)) % len(files)
            shift += self._attrs["file_shuffle_shift_ratio"]
            count = 0
            for record in self._shuffled(files[start:] + files[:start]):
                count += 1
                yield record
            if not count:
                raise errors.OutOfRangeError(None, None, f"The files at {pattern} hold no records.")

    def _shuffled(self, files: list[str]) -> Iterator[bytes]:
        """The records of files, mixed in a buffer."""
        buffer: list[bytes] = []
        options = TFRecordOptions(self._attrs["compression_type"].decode() or None)
        for path in files:
            for record in tf_record_iterator(path, options):
                buffer.append(record)
                if len(buffer) >= max(self._attrs["file_buffer_size"], 1):
                    yield self._drawn(buffer)
        while buffer:
            yield self._drawn(buffer)

    def _drawn(self, buffer: list[bytes]) -> bytes:
        at = self._random.randrange(len(buffer))
        buffer[at], buffer[-1] = buffer[-1], buffer[at]
        return buffer.pop()


@op(
    "RecordInput",
    "-> records: string",
    "file_pattern: string; file_random_seed: int = 301; file_shuffle_shift_ratio: float = 0; "
    "file_buffer_size: int = 10000; file_parallelism: int = 16; batch_size: int = 32; compression_type: string = ''",
    shape=lambda op: TensorShape(None),
    host=True,
    stateful=True,
)
def _record_input(ctx: HostContext, *, op: Operation) -> Array:
    records = ctx.private.get("", "record input", op.name, lambda: _ShuffledRecords(op._attrs))
    return np.array([*records.take(op._attrs["batch_size"]), None], object)[:-1]


not_differentiable("RecordInput")


@export("python.ops.data_flow_ops.RecordInput")
class RecordInput:
    """Reads TFRecord files in random order, for ever."""

    def __init__(
        self,
        file_pattern: str,
        batch_size: int = 1,
        buffer_size: int = 1,
        parallelism: int = 1,
        shift_ratio: float = 0,
        seed: int = 0,
        name: str | None = None,
        batches: int | None = None,
        compression_type: Any = None,
    ) -> None:
        self._batches = batches
        self._batch_size = batch_size if batches is None else batch_size * batches
        self._name = name
        self._attrs = {
            "file_pattern": file_pattern,
            "file_buffer_size": buffer_size,
            "file_parallelism": parallelism,
            "file_shuffle_shift_ratio": shift_ratio,
            "batch_size": self._batch_size,
            "file_random_seed": seed,
            "compression_type": TFRecordOptions.get_compression_type_string(compression_type),
        }

    def get_yield_op(self) -> Tensor | list[list[Tensor]]:
        """A vector of records; with `batches`, a list of lists of scalars."""
        records = apply("RecordInput", name=self._name, **self._attrs)
        if self._batches is None:
            return records
        with name_scope(self._name):
            batches: list[list[Tensor]] = [[] for _ in range(self._batches)]
            for i, record in enumerate(split(records, self._batch_size, 0)):
                batches[i % self._batches].append(reshape(record, []))
            return batches
