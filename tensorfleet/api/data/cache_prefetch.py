"""Keeping elements: prefetched by a thread, cached in memory or in a file."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from typing import Any

import numpy as np

from tensorfleet.api.data import record_origin as places
from tensorfleet.api.data.blocks import Block, Element, block_of, joined
from tensorfleet.api.data.nodes import ColumnSlices, DatasetRun, DerivedRun, Node, cannot_save, other_dataset
from tensorfleet.api.data.ragged import nested
from tensorfleet.api.data.record_origin import Place
from tensorfleet.base import errors
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import exists, file_path, makedirs, remove, rename
from tensorfleet.base.formats.records import RecordReader, TFRecordWriter
from tensorfleet.base.formats.varint import read_varint, write_varint
from tensorfleet.graph.sparse_tensor import SparseTensorValue
from tensorfleet.graph.tensor_proto import array_of, proto_of
from tensorfleet.ops.ragged.value import RaggedTensorValue
from tensorfleet.runtime.resources import RandomStreams
from tensorfleet.runtime.scheduling.step import ExecutionContext


def lasting_step(step: ExecutionContext) -> ExecutionContext:
    """A step for threads that outlive those who take from them."""
    # Without a deadline: the step that asks first may be over long before the thread is.
    result = ExecutionContext(step.resources, RandomStreams(), None)
    result.private = step.private
    return result


# How long the end of a run waits for its thread.
_JOIN_SECONDS = 5


# -- prefetching -------------------------------------------------------------------------------------


class _PrefetchBuffer:
    """The elements that the thread has fetched and nobody has taken yet. It knows neither the run nor its owner."""

    def __init__(self, source: DatasetRun, room: int, step: ExecutionContext) -> None:
        self.source = source
        self.room = room
        # Once the buffer was full, the thread sleeps until this many of its places are free.
        self.wake_room = max(1, room // 4)
        self.lock = threading.Lock()
        self.working = threading.Lock()  # held while an element is on its way from the source to here
        self.ready: deque[Block | BaseException] = deque()  # blocks and errors
        self.held = 0
        self.ended = False
        self.closed = False
        self.arrived: threading.Event | None = None  # set for the one who waits
        self.taken = threading.Event()
        self.step = lasting_step(step)  # cancelled at the end of the run

    def fetch(self) -> None:
        """The life of the thread."""
        # Blocks double from one element: the first comes soon, later ones cost one lock for many elements.
        count = 1
        while True:
            with self.lock:
                # Cleared under the lock: what is taken after this wakes the thread again.
                free = self.room - self.held
                self.taken.clear()
                if self.closed:
                    return
            if free <= 0:
                self.taken.wait()
                continue
            with self.working:
                self._fetch_one(min(count, free))
            count = min(2 * count, max(1, self.room // 2))
            if self.ended:
                return

    def _fetch_one(self, n: int) -> None:
        fetched: Block | BaseException | None
        try:
            fetched = self.source.next(n, self.step)
        # Also what ends threads, such as an interrupted generator: whoever takes the element raises it.
        except BaseException as e:
            fetched = e
        with self.lock:
            if self.closed:
                return
            if fetched is None:
                self.ended = True
            else:
                self.ready.append(fetched)
                self.held += fetched.size if isinstance(fetched, Block) else 1
            if self.arrived is not None:
                self.arrived.set()
                self.arrived = None

    def close(self) -> None:
        """Tells the thread to end."""
        with self.lock:
            self.closed = True
            self.ready.clear()
        self.taken.set()
        self.step.cancel(errors.CancelledError(None, None, "The iterator was destroyed."))


class PrefetchRun(DatasetRun):
    """Elements fetched ahead by a thread, at most `room` of them."""

    def __init__(self, source: DatasetRun, room: int, step: ExecutionContext) -> None:
        self._source = source
        self._buffer = _PrefetchBuffer(source, room, step)
        self._thread: threading.Thread | None = None

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The elements that were fetched already, or the first that comes."""
        buffer = self._buffer
        self.begin()
        while True:
            with buffer.lock:
                if buffer.ready:
                    return self._take(n)
                if buffer.ended or buffer.closed:
                    return None
                event = buffer.arrived = threading.Event()
            step.wait(event, "for an element that is being prefetched")

    def may_read_ahead(self) -> bool:
        """The thread reads ahead in any case."""
        return True

    def begin(self) -> None:
        """Starts the thread, if it does not run yet."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._buffer.fetch, name="tensorfleet-prefetch", daemon=True
            )
            self._thread.start()

    def save(self) -> dict[str, Any]:
        """The fetched elements and the place of the source, between two elements."""
        buffer = self._buffer
        # `working` first: an element on its way is in neither the source nor the buffer.
        with buffer.working, buffer.lock:
            return {"ready": list(buffer.ready), "ended": buffer.ended, "source": self._source.save()}

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Takes over the elements that were fetched."""
        if state.keys() != {"ready", "ended", "source"}:
            raise other_dataset()
        buffer = self._buffer
        self._source.restore(state["source"], step)
        buffer.ready, buffer.ended = deque(state["ready"]), state["ended"]
        buffer.held = sum(item.size if isinstance(item, Block) else 1 for item in buffer.ready)

    def _take(self, n: int) -> Block:
        buffer = self._buffer
        item = buffer.ready.popleft()
        if not isinstance(item, Block):
            self._make_room(1)
            raise item
        parts = [item]
        count = item.size
        while count < n and buffer.ready and isinstance(following := buffer.ready[0], Block):
            buffer.ready.popleft()
            parts.append(following)
            count += following.size
        block = joined(parts)
        if block.size > n:
            buffer.ready.appendleft(block.part(n, block.size))
            block = block.part(0, n)
        self._make_room(block.size)
        return block

    def _make_room(self, taken: int) -> None:
        buffer = self._buffer
        buffer.held -= taken
        # Waking a thread takes as long as reading several small elements, so it sleeps until a quarter is free.
        if buffer.room - buffer.held >= buffer.wake_room:
            buffer.taken.set()

    def close(self) -> None:
        """Ends the thread, then its source."""
        self._buffer.close()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            # A source that never returns, such as a Python generator in C code, must not hang the session.
            thread.join(_JOIN_SECONDS)
        self._source.close()

    def __del__(self) -> None:
        # A run that was dropped without `close` must end its thread; `__init__` may have failed before.
        if hasattr(self, "_buffer"):
            self._buffer.close()


# -- caching -----------------------------------------------------------------------------------------


class MemoryCache(Node):
    """A dataset that is computed once: the first complete run keeps its elements."""

    def __init__(self, source: Node) -> None:
        self._source = source
        self._kept: Block | None = None
        self._lock = threading.Lock()

    def start(self, step: ExecutionContext) -> DatasetRun:
        """From memory if there is something, else from the source."""
        with self._lock:
            kept = self._kept
        if kept is not None:
            return ColumnSlices(kept.columns, kept.size, kept.places).start(step)
        return _Recording(self._source.start(step), self)

    def keep(self, blocks: list[Block]) -> None:
        """Takes over the elements of a complete run."""
        with self._lock:
            self._kept = joined(blocks) if blocks else Block(0, [])


class _Recording(DerivedRun):
    place = ("_blocks",)

    def __init__(self, source: DatasetRun, cache: MemoryCache) -> None:
        super().__init__(source)
        self._cache = cache
        self._blocks: list[Block] | None = []

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """Passes elements on and notes them."""
        block = self.source.next(n, step)
        if self._blocks is not None:
            if block is None:
                self._cache.keep(self._blocks)
                self._blocks = None
            else:
                self._blocks.append(block)
        return block


class FileCache(Node):
    """A dataset that is computed once and then read from a file."""

    def __init__(self, source: Node, name: str) -> None:
        self._source = source
        self._name = file_path(name)

    def start(self, step: ExecutionContext) -> DatasetRun:
        """From the file if it is complete, else from the source."""
        if exists(self._name + ".records"):
            return _Stored(RecordReader(self._name + ".records"))
        lock = self._name + "_0.lockfile"
        # The words are TensorFlow's. Two writers of one cache would mix their elements.
        if exists(lock):
            raise errors.AlreadyExistsError(
                None,
                None,
                "There appears to be a concurrent caching iterator running - cache lockfile already exists "
                f"('{lock}'). If you are sure no other running TF computations are using this cache prefix, delete "
                "the lockfile and re-initialize the iterator.",
            )
        return _Storing(self._source.start(step), self._name, lock)


def _written(element: Element, place: Place | None) -> bytes:
    """An element as bytes: for each component its tensors and how many; none, and where it came from.

    A sparse one has three, a ragged one its splits, its values and two empty ones.
    """
    parts = []
    for value in element:
        arrays = list(value) if isinstance(value, SparseTensorValue) else [value]
        if isinstance(value, RaggedTensorValue):
            arrays = [*value.nested_row_splits, value.flat_values, *[np.zeros(0)] * 2]
        parts.append(write_varint(len(arrays)))
        for array in arrays:
            data = proto_of(np.asarray(array)).SerializeToString()
            parts += [write_varint(len(data)), data]
    if place is not None:
        parts += [write_varint(0), places.to_bytes(place)]
    return b"".join(parts)


def _read(data: bytes) -> tuple[Element, Place]:
    """An element and where it came from."""
    from tensorfleet.base.protos import TensorProto

    element: Element = []
    at = 0
    while at < len(data):
        count, at = read_varint(data, at)
        if not count:
            return element, places.from_bytes(data[at:]) if at < len(data) else places.UNKNOWN
        arrays = []
        for _ in range(count):
            size, at = read_varint(data, at)
            arrays.append(array_of(TensorProto.FromString(data[at : at + size])))
            at += size
        if count > 3:
            element.append(nested(arrays[:-3], arrays[-3]))
        else:
            element.append(SparseTensorValue(*arrays) if count == 3 else arrays[0])
    return element, places.UNKNOWN


class _Storing(DerivedRun):
    def __init__(self, source: DatasetRun, name: str, lock: str) -> None:
        super().__init__(source)
        makedirs(os.path.dirname(name) or ".")
        file_system(lock).open(lock, "wb").close()
        self._name, self._lock = name, lock
        self._writer: TFRecordWriter | None = TFRecordWriter(name + ".part")

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """Passes elements on and writes them."""
        block = self.source.next(n, step)
        if self._writer is not None:
            if block is None:
                self._writer.close()
                self._writer = None
                # The name appears when the file is complete: a reader never sees half of it.
                rename(self._name + ".part", self._name + ".records", overwrite=True)
                remove(self._lock)
            else:
                for i in range(block.size):
                    place = None if block.places is None else block.places[i]
                    self._writer.write(_written(block.element(i), place))
        return block

    def save(self) -> dict[str, Any]:
        """The file is half written."""
        raise cannot_save("a file cache that is being written")

    def close(self) -> None:
        """An incomplete file is not kept."""
        super().close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            for name in (self._name + ".part", self._lock):
                with contextlib.suppress(errors.NotFoundError):  # the user may have cleared the folder
                    remove(name)


class _Stored(DatasetRun):
    place = ("_given",)

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self._given = 0

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """Elements from the file."""
        records = self._reader.read_many(n)
        self._given += len(records)
        if not records:
            return None
        elements, come = zip(*map(_read, records), strict=True)
        several = any(np.ndim(place) for place in come)
        return block_of(elements, list(come) if several else np.array(come))

    def restore(self, state: dict[str, Any], step: ExecutionContext) -> None:
        """Passes over the elements that were given."""
        super().restore(state, step)
        self._reader.read_many(self._given)

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()
