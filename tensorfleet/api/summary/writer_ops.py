"""Ops that write summaries to event files as they run: the base of `tf.contrib.summary`."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.summary.events import EventFile
from tensorfleet.base import errors
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.tensor_proto import make_tensor_proto
from tensorfleet.ops.common import scalar
from tensorfleet.ops.input import summary_ops

if TYPE_CHECKING:
    from tensorfleet.base.protos import Event

_REAL = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
_VALUES = f"{_REAL[:-1]}, bool}}"


class _SummaryFile:
    """The event file behind a writer's handle, while it is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: EventFile | None = None
        self._waiting: list[bytes] = []
        self._limit, self._seconds, self._flushed = 0, 0.0, 0.0

    def open(self, folder: str, limit: int, seconds: float, suffix: str) -> None:
        """Starts a file, unless there is one."""
        with self._lock:
            if self._file is None:
                self._file = EventFile(folder, suffix)
                self._limit, self._seconds = limit, seconds
                self._write()

    def add(self, event: Event) -> None:
        """Keeps an event until there are more than the limit, or the last flush was long ago."""
        with self._lock:
            self._open_file()
            self._waiting.append(event.SerializeToString())
            # TensorFlow's rule: the queue is written when it is over its limit or the last flush is long ago.
            if len(self._waiting) > self._limit or time.monotonic() - self._flushed > self._seconds:
                self._write()

    def flush(self) -> None:
        """Writes the queued events."""
        with self._lock:
            self._open_file()
            self._write()

    def close(self) -> None:
        """Writes the queued events and closes the file."""
        with self._lock:
            if self._file is not None:
                self._write()
                self._file.close()
                self._file = None

    def __del__(self) -> None:
        self.close()  # with the session whose state it was

    def _open_file(self) -> EventFile:
        if self._file is None:
            raise errors.NotFoundError(
                None,
                None,
                "The summary writer is not open. Run tf.contrib.summary.summary_writer_initializer_op().",
            )
        return self._file

    def _write(self) -> None:
        file, events, self._waiting = self._open_file(), self._waiting, []
        file.write(events)
        file.flush()
        self._flushed = time.monotonic()


def _text(value: Array) -> str:
    return summary_ops.text_of(value)


def _event(writer: _SummaryFile, step: Array, **parts: Any) -> None:
    from tensorfleet.base.protos import Event

    writer.add(Event(wall_time=time.time(), step=int(step), **parts))


def _add(writer: _SummaryFile, step: Array, serialized: np.ndarray) -> None:
    from tensorfleet.base.protos import Summary

    _event(writer, step, summary=Summary.FromString(serialized.item()))


@op(
    "SummaryWriter",
    "-> writer: resource",
    "shared_name: string = ''; container: string = ''",
    shape=scalar,
    host=True,
    stateful=True,
)
def _summary_writer(ctx: HostContext, *, shared_name: bytes, container: bytes) -> _SummaryFile:
    name = shared_name.decode() or ctx.op.name
    return ctx.resources.get(container.decode(), "summary_writer", name, _SummaryFile)


@op(
    "CreateSummaryFileWriter",
    "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, filename_suffix: string ->",
    host=True,
    stateful=True,
)
def _create_file(
    ctx: HostContext,
    writer: _SummaryFile,
    logdir: Array,
    max_queue: Array,
    flush_millis: Array,
    suffix: Array,
) -> None:
    writer.open(_text(logdir), int(max_queue), int(flush_millis) / 1000, _text(suffix))


@op("FlushSummaryWriter", "writer: resource ->", host=True, stateful=True)
def _flush(ctx: HostContext, writer: _SummaryFile) -> None:
    writer.flush()


@op("CloseSummaryWriter", "writer: resource ->", host=True, stateful=True)
def _close(ctx: HostContext, writer: _SummaryFile) -> None:
    writer.close()


@op(
    "WriteScalarSummary",
    "writer: resource, step: int64, tag: string, value: T ->",
    f"T: {_REAL}",
    host=True,
    stateful=True,
)
def _write_scalar(ctx: HostContext, writer: _SummaryFile, step: Array, tag: Array, value: Array) -> None:
    _add(writer, step, summary_ops.scalar_summary(ctx, tag, value))


@op(
    "WriteHistogramSummary",
    "writer: resource, step: int64, tag: string, values: T ->",
    f"T: {_VALUES} = float",
    host=True,
    stateful=True,
)
def _write_histogram(ctx: HostContext, writer: _SummaryFile, step: Array, tag: Array, values: Array) -> None:
    _add(writer, step, summary_ops.histogram_summary(ctx, tag, values))


@op(
    "WriteImageSummary",
    "writer: resource, step: int64, tag: string, tensor: T, bad_color: uint8 ->",
    "max_images: int >= 1 = 3; T: {uint8, double, float, half} = float",
    host=True,
    stateful=True,
)
def _write_image(
    ctx: HostContext,
    writer: _SummaryFile,
    step: Array,
    tag: Array,
    tensor: Array,
    bad_color: Array,
    *,
    max_images: int,
) -> None:
    pixels = np.asarray(tensor, np.float32) if tensor.dtype == np.float64 else tensor
    _add(
        writer, step, summary_ops.image_summary(ctx, tag, pixels, max_images=max_images, bad_color=bad_color)
    )


@op(
    "WriteAudioSummary",
    "writer: resource, step: int64, tag: string, tensor: float, sample_rate: float ->",
    "max_outputs: int >= 1 = 3",
    host=True,
    stateful=True,
)
def _write_audio(
    ctx: HostContext,
    writer: _SummaryFile,
    step: Array,
    tag: Array,
    tensor: Array,
    sample_rate: Array,
    *,
    max_outputs: int,
) -> None:
    _add(writer, step, summary_ops.audio_summary(ctx, tag, tensor, sample_rate, max_outputs=max_outputs))


@op(
    "WriteSummary",
    "writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string ->",
    "T: type",
    host=True,
    stateful=True,
)
def _write_summary(
    ctx: HostContext, writer: _SummaryFile, step: Array, tensor: Array, tag: Array, metadata: Array
) -> None:
    from tensorfleet.base.protos import Summary, SummaryMetadata

    description = SummaryMetadata.FromString(np.asarray(metadata).item() or b"")
    value = Summary.Value(tag=_text(tag), tensor=make_tensor_proto(np.asarray(tensor)), metadata=description)
    _event(writer, step, summary=Summary(value=[value]))


@op("WriteGraphSummary", "writer: resource, step: int64, tensor: string ->", host=True, stateful=True)
def _write_graph(ctx: HostContext, writer: _SummaryFile, step: Array, tensor: Array) -> None:
    _event(writer, step, graph_def=np.asarray(tensor).item())


@op("ImportEvent", "writer: resource, event: string ->", host=True, stateful=True)
def _import_event(ctx: HostContext, writer: _SummaryFile, event: Array) -> None:
    from tensorfleet.base.protos import Event

    writer.add(Event.FromString(np.asarray(event).item()))


not_differentiable("SummaryWriter")
