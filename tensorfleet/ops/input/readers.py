"""`tf.TextLineReader` and its relatives: records of files whose names come from a queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.files import whole_file
from tensorfleet.base.formats.record_sources import Lines, Pieces
from tensorfleet.base.formats.records import RecordReader, TFRecordOptions
from tensorfleet.base.formats.varint import read_varint, write_varint
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.example_wire import objects
from tensorfleet.kernels.record_origin import Origin, note
from tensorfleet.ops.common import SCALAR, vector_of
from tensorfleet.ops.input.files import one_string
from tensorfleet.ops.input.step_lock import StepLock
from tensorfleet.ops.state.queue_ops import complete, handle_shape, shared
from tensorfleet.ops.state.queues import QueueBase
from tensorfleet.state.queues import Queue, TakeAttempt

# -- readers at run time --------------------------------------------------------------------


class WorkUnit(Protocol):
    """The records of a file, or of anything else that a queue names."""

    over: bool

    def take(self, count: int) -> list[tuple[bytes, bytes]]:
        """The next records with their keys, at most `count`. It sets `over` at the end."""


#: Opens a work unit by name.
Start: TypeAlias = Callable[[bytes], WorkUnit]


class ReaderState:
    """Reads one work unit (a file) after the other, as a queue names them."""

    def __init__(self, origin: Origin, name: str, start: Start) -> None:
        self.origin = origin
        self.kind = origin.kind
        self.name = name
        self._start = start
        self.lock = StepLock()
        self.forget()

    def forget(self) -> None:
        """Back to the state of a new reader."""
        self.unit: bytes | None = None
        self._records: WorkUnit | None = None
        self.produced = self.completed = 0

    @property
    def _serializable(self) -> bool:
        return self.kind in ("IdentityReader", "WholeFileReader")

    def read(self, ctx: HostContext, queue: Queue, count: int) -> tuple[list[bytes], list[bytes]]:
        """Up to `count` records of the current work unit, and their keys; of the next unit if it has none left."""
        keys: list[bytes] = []
        values: list[bytes] = []
        while not values:
            unit = self._records or self._begin(ctx, queue)
            records = unit.take(count)
            keys += [k for k, _ in records]
            values += [v for _, v in records]
            if not records or unit.over:
                self._records = None
                self.completed += 1
        self.produced += len(values)
        note(self.origin, keys, values)
        return keys, values

    def _begin(self, ctx: HostContext, queue: Queue) -> WorkUnit:
        attempt = TakeAttempt(1)
        if list(queue.types) != [dtypes.string]:
            raise errors.invalid(f"A reader takes names of type string from its queue, not {queue.types}.")
        self.unit = None
        complete(ctx, queue, attempt, f"for a file name in queue '{queue.name}'")
        (name,) = queue.single(attempt.taken)
        self.unit = one_string(name, "file name")
        try:
            self._records = self._start(self.unit)
        except BaseException:
            self.unit = None
            raise
        return self._records

    # The state as TensorFlow's ReaderBaseState message has it.

    def saved(self) -> bytes:
        """The state, for `restore`."""
        if not self._serializable:
            raise errors.UnimplementedError(None, None, "Reader SerializeState")
        fields = [(1, self.completed), (2, self.completed), (3, self.produced)]
        data = b"".join(write_varint(n << 3) + write_varint(v) for n, v in fields if v)
        if self.unit:
            data += write_varint(4 << 3 | 2) + write_varint(len(self.unit)) + self.unit
        return data

    def restore(self, state: bytes) -> None:
        """Goes on from a saved state."""
        if not self._serializable:
            raise errors.UnimplementedError(None, None, "Reader RestoreState")
        try:
            numbers, unit = _fields(state)
        except (IndexError, ValueError):
            raise errors.invalid(f"Could not parse state for {self.kind} '{self.name}': {state!r}") from None
        self.forget()
        self.completed, self.produced, self.unit = numbers.get(2, 0), numbers.get(3, 0), unit

    def clear(self) -> None:
        """Drops the open file."""
        self._records = None


def _fields(data: bytes) -> tuple[dict[int, int], bytes | None]:
    at, numbers, unit = 0, {}, None
    while at < len(data):
        tag, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if tag >> 3 not in (1, 2, 3, 4) or tag & 7 != (2 if tag >> 3 == 4 else 0):
            raise ValueError
        if tag >> 3 == 4:
            if at + value > len(data):
                raise ValueError
            unit, at = data[at : at + value], at + value
        else:
            numbers[tag >> 3] = value
    return numbers, unit


class _Once:
    """A work unit that is one record."""

    def __init__(self, key: bytes, value: bytes) -> None:
        self._record = (key, value)
        self.over = False

    def take(self, count: int) -> list[tuple[bytes, bytes]]:
        """The record."""
        self.over = True
        return [self._record]


class _Many:
    """A work unit that is a file of records; `place` gives the position of the last record."""

    def __init__(self, name: bytes, source: Any, place: Callable[[Any], int]) -> None:
        self._name = name
        self._source = source
        self._place = place
        self.over = False

    def take(self, count: int) -> list[tuple[bytes, bytes]]:
        """The next records, one at a time so that each has its own key."""
        records: list[tuple[bytes, bytes]] = []
        while len(records) < count:
            try:
                record = self._source.read_many(1)
            except errors.OpError:
                if not records:
                    raise
                break  # the records before the error come first
            if not record:
                self.over = True
                break
            records.append((b"%s:%d" % (self._name, self._place(self._source)), record[0]))
        return records


# -- making ------------------------------------------------------------------------------------------

_PLACE = "container: string = ''; shared_name: string = ''"
_MAKES: dict[str, Any] = {"shape": handle_shape, "host": True, "stateful": True}


def _reader(ctx: HostContext, container: bytes, shared_name: bytes, start: Start) -> ReaderState:
    make = lambda name: ReaderState(Origin.of(ctx.op), ctx.op.name, start)  # noqa: E731
    return shared(ctx, "reader", container, shared_name, make)


def _text_line(
    ctx: HostContext, *, skip_header_lines: int, container: bytes, shared_name: bytes
) -> ReaderState:
    if skip_header_lines < 0:
        raise errors.invalid(f"skip_header_lines must be >= 0 not {skip_header_lines}")

    def start(name: bytes) -> WorkUnit:
        return _Many(name, Lines(name, skip=skip_header_lines), lambda s: s.number)

    return _reader(ctx, container, shared_name, start)


def _whole_file(ctx: HostContext, *, container: bytes, shared_name: bytes) -> ReaderState:
    return _reader(ctx, container, shared_name, lambda name: _Once(name, whole_file(name)))


def _identity(ctx: HostContext, *, container: bytes, shared_name: bytes) -> ReaderState:
    return _reader(ctx, container, shared_name, lambda name: _Once(name, name))


def _tf_record(
    ctx: HostContext, *, container: bytes, shared_name: bytes, compression_type: bytes
) -> ReaderState:
    def start(name: bytes) -> WorkUnit:
        return _Many(name, RecordReader(name, compression_type.decode()), lambda s: s.start)

    return _reader(ctx, container, shared_name, start)


def _fixed_length(
    ctx: HostContext,
    *,
    header_bytes: int,
    record_bytes: int,
    footer_bytes: int,
    hop_bytes: int,
    container: bytes,
    shared_name: bytes,
    encoding: bytes = b"",
) -> ReaderState:
    for what, value, least in (
        ("header_bytes", header_bytes, 0),
        ("record_bytes", record_bytes, 1),
        ("footer_bytes", footer_bytes, 0),
        ("hop_bytes", hop_bytes, 0),
    ):
        if value < least:
            rule = "must be > 0" if least else "must be >= 0"
            raise errors.invalid(f"{what} {rule} but got {value}")
    kind = encoding.decode() if encoding in (b"ZLIB", b"GZIP") else ""

    def start(name: bytes) -> WorkUnit:
        source = Pieces(name, record_bytes, header_bytes, footer_bytes, hop_bytes, kind, exact=False)
        return _Many(name, source, lambda s: s.number)

    return _reader(ctx, container, shared_name, start)


_FIXED = "header_bytes: int = 0; record_bytes: int; footer_bytes: int = 0; hop_bytes: int = 0; "
_REFERENCE, _RESOURCE = "-> reader_handle: Ref(string)", "-> reader_handle: resource"
op("WholeFileReader", _REFERENCE, _PLACE, **_MAKES)(_whole_file)
op("WholeFileReaderV2", _RESOURCE, _PLACE, **_MAKES)(_whole_file)
for _kind, _attrs, _later, _kernel in (
    ("TextLineReader", f"skip_header_lines: int = 0; {_PLACE}", "", _text_line),
    ("IdentityReader", _PLACE, "", _identity),
    ("TFRecordReader", f"{_PLACE}; compression_type: string = ''", "", _tf_record),
    ("FixedLengthRecordReader", f"{_FIXED}{_PLACE}", "; encoding: string = ''", _fixed_length),
):
    op(_kind, _REFERENCE, _attrs, removed=(26, f"Use {_kind}V2"), **_MAKES)(_kernel)
    op(f"{_kind}V2", _RESOURCE, _attrs + _later, **_MAKES)(_kernel)


# -- using -------------------------------------------------------------------------------------------


def _text(value: bytes) -> Array:
    out = np.empty((), object)
    out[()] = value
    return out


def _read(ctx: HostContext, reader: ReaderState, queue: Queue) -> tuple[Array, Array]:
    reader.lock.acquire(ctx)
    try:
        (key,), (value,) = reader.read(ctx, queue, 1)
    finally:
        reader.lock.release()
    return _text(key), _text(value)


def _read_up_to(
    ctx: HostContext, reader: ReaderState, queue: Queue, num_records: Array
) -> tuple[Array, Array]:
    count = int(num_records)
    if count < 1:
        return objects([]), objects([])
    reader.lock.acquire(ctx)
    try:
        keys, values = reader.read(ctx, queue, count)
    finally:
        reader.lock.release()
    return objects(keys), objects(values)


def _produced(ctx: HostContext, reader: ReaderState) -> Any:
    return np.int64(reader.produced)


def _completed(ctx: HostContext, reader: ReaderState) -> Any:
    return np.int64(reader.completed)


def _serialize(ctx: HostContext, reader: ReaderState) -> Any:
    return _text(reader.saved())


def _restore(ctx: HostContext, reader: ReaderState, state: Array) -> None:
    reader.lock.acquire(ctx)
    try:
        reader.restore(one_string(state, "state"))
    finally:
        reader.lock.release()


def _reset(ctx: HostContext, reader: ReaderState) -> None:
    reader.lock.acquire(ctx)
    try:
        reader.forget()
    finally:
        reader.lock.release()


def _check_state(op: Operation) -> list[TensorShape]:
    op._inputs[1].shape.with_rank(0)
    return []


_WAITS: dict[str, Any] = {"host": True, "blocks": True, "stateful": True}
_ASKS: dict[str, Any] = {"host": True, "stateful": True, "shape": lambda op: SCALAR}
for _v, _t in (("", "Ref(string)"), ("V2", "resource")):
    _r, _q = f"reader_handle: {_t}", f"queue_handle: {_t}"
    op(f"ReaderRead{_v}", f"{_r}, {_q} -> key: string, value: string", shape=lambda op: SCALAR, **_WAITS)(
        _read
    )
    op(
        f"ReaderReadUpTo{_v}",
        f"{_r}, {_q}, num_records: int64 -> keys: string, values: string",
        shape=lambda op: vector_of(None),
        **_WAITS,
    )(_read_up_to)
    op(f"ReaderNumRecordsProduced{_v}", f"{_r} -> records_produced: int64", **_ASKS)(_produced)
    op(f"ReaderNumWorkUnitsCompleted{_v}", f"{_r} -> units_completed: int64", **_ASKS)(_completed)
    op(f"ReaderSerializeState{_v}", f"{_r} -> state: string", **_ASKS)(_serialize)
    op(f"ReaderRestoreState{_v}", f"{_r}, state: string ->", shape=_check_state, **_WAITS)(_restore)
    op(f"ReaderReset{_v}", f"{_r} ->", **_WAITS)(_reset)
    not_differentiable(f"ReaderRead{_v}", f"ReaderReadUpTo{_v}", f"ReaderNumRecordsProduced{_v}")
    not_differentiable(f"ReaderNumWorkUnitsCompleted{_v}", f"ReaderSerializeState{_v}")
    not_differentiable(f"ReaderRestoreState{_v}", f"ReaderReset{_v}", f"TextLineReader{_v}")
    not_differentiable(f"WholeFileReader{_v}", f"IdentityReader{_v}", f"TFRecordReader{_v}")
    not_differentiable(f"FixedLengthRecordReader{_v}")


# -- the client's side -------------------------------------------------------------------------------


@export("ReaderBase")
class ReaderBase:
    """The base of all readers. A record is a (key, value) pair of strings."""

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    reader_ref = readonly("_reader_ref", "The handle of the reader.")
    supports_serialize = readonly("_supports_serialize", "Whether the state can be saved.")

    def _apply(self, what: str, *args: TensorLike, name: str | None) -> Operation:
        version = "V2" if self._reader_ref.dtype == dtypes.resource else ""
        return apply_op(f"Reader{what}{version}", self._reader_ref, *args, name=name)

    def read(self, queue: QueueBase | Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record; takes a file name from `queue` when the file before has no more."""
        key, value = self._apply("Read", self._queue(queue), name=name).outputs
        return key, value

    def read_up_to(
        self, queue: QueueBase | Tensor, num_records: TensorLike, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Up to `num_records` records, fewer at the end of a file."""
        handle = self._queue(queue)
        keys, values = self._apply("ReadUpTo", handle, num_records, name=name).outputs
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records were read so far."""
        return self._apply("NumRecordsProduced", name=name).outputs[0]

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files were read to their end."""
        return self._apply("NumWorkUnitsCompleted", name=name).outputs[0]

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The state of the reader as a string, where supported."""
        return self._apply("SerializeState", name=name).outputs[0]

    def _queue(self, queue: QueueBase | Tensor) -> Tensor:
        handle: Any = getattr(queue, "queue_ref", queue)
        older = self._reader_ref.dtype.base_dtype == dtypes.string and handle.dtype == dtypes.resource
        return apply("FakeQueue", handle) if older else handle

    def restore_state(self, state: TensorLike, name: str | None = None) -> Operation:
        """Goes on from a state that `serialize_state` gave."""
        return self._apply("RestoreState", state, name=name)

    def reset(self, name: str | None = None) -> Operation:
        """Back to the state of a new reader."""
        return self._apply("Reset", name=name)


# A queue for readers by reference, which are older than resources.
op(
    "FakeQueue",
    "resource: resource -> handle: Ref(string)",
    shape=lambda op: SCALAR,
    host=True,
    stateful=True,
)(lambda ctx, queue: queue)
not_differentiable("FakeQueue")


@export("WholeFileReader")
class WholeFileReader(ReaderBase):
    """Gives whole files: the name is the key, the contents the value."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply("WholeFileReaderV2", name=name), supports_serialize=True)


@export("TextLineReader")
class TextLineReader(ReaderBase):
    """Gives the lines of text files, without the newlines."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(apply("TextLineReaderV2", skip_header_lines=skip_header_lines, name=name))


@export("FixedLengthRecordReader")
class FixedLengthRecordReader(ReaderBase):
    """Gives pieces of `record_bytes` bytes each from between the header and the footer of files."""

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        handle = apply(
            "FixedLengthRecordReaderV2",
            record_bytes=record_bytes,
            header_bytes=header_bytes,
            footer_bytes=footer_bytes,
            hop_bytes=hop_bytes,
            encoding=encoding,
            name=name,
        )
        super().__init__(handle)


@export("TFRecordReader")
class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files; `options` is a `tf.python_io.TFRecordOptions`."""

    def __init__(self, name: str | None = None, options: TFRecordOptions | None = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        super().__init__(apply("TFRecordReaderV2", compression_type=kind, name=name))


@export("IdentityReader")
class IdentityReader(ReaderBase):
    """Gives the names themselves, as keys and as values."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply("IdentityReaderV2", name=name), supports_serialize=True)
