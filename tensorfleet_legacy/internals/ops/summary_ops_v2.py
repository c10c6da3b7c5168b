"""`tf.compat.v2.summary`: summaries that are written as tensors, at a step that the program tells."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    control_dependencies,
    device,
    get_default_graph,
    name_scope,
)
from tensorfleet.ops.array.basic import no_op
from tensorfleet.ops.control.cond import smart_cond
from tensorfleet_legacy.contrib.summary import summary as summaries

_HERE = "compat.v2.summary"
_INSIDE = "python.ops.summary_ops_v2"
_BUCKETS = 30
# What names of operations cannot have and tags can.
_NOT_IN_NAMES = re.compile(r"[^-_/.A-Za-z0-9]")
publish(_NOT_IN_NAMES, f"{_INSIDE}._INVALID_SCOPE_CHARACTERS")
publish(summaries.SummaryWriter, f"{_HERE}.SummaryWriter")


@export(f"{_HERE}.create_file_writer", f"{_INSIDE}.create_file_writer_v2")
def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: Any = None,
) -> summaries.SummaryWriter:
    """A writer of event files in a folder, of its own even where another one has the same folder."""
    if logdir is None:
        raise ValueError("logdir cannot be None")
    graph = get_default_graph()
    with name_scope(name, "create_file_writer") as scope, device("cpu:0"):
        suffix = to_tensor(".v2" if filename_suffix is None else filename_suffix, dtypes.string)
        own = f".{os.getpid()}.{len(graph.get_collection(summaries.INITIALIZERS))}"
        return summaries.create_file_writer(
            logdir, max_queue, flush_millis, find("strings.join")([own, suffix]), scope.rstrip("/")
        )


@export(f"{_HERE}.create_noop_writer", f"{_INSIDE}.create_noop_writer")
def create_noop_writer() -> summaries.SummaryWriter:
    """A writer that writes nothing."""
    return summaries.SummaryWriter()


@export(f"{_HERE}.record_if", f"{_INSIDE}.record_if")
def record_if(condition: Any) -> Any:
    """A block whose summaries are written where a bool, a tensor or what a function gives says so."""
    return summaries.replaced_here(record=condition)


@export(f"{_HERE}.flush", f"{_INSIDE}._flush_fn")
def flush(writer: Any = None, name: str | None = None) -> Operation:
    """Writes what waits in a writer, or in the one of this block."""
    writer = summaries.now.writer if writer is None else writer
    return no_op() if writer is None else writer.flush()


@export(f"{_HERE}.experimental.get_step", f"{_INSIDE}.get_step")
def get_step() -> Any:
    """The step of summaries that are given none; None where nothing was set."""
    return summaries.now.step


@export(f"{_HERE}.experimental.set_step", f"{_INSIDE}.set_step")
def set_step(step: Any) -> None:
    """Sets the step of summaries that are given none, in this thread."""
    summaries.now.step = step


@export(f"{_HERE}.experimental.summary_scope", f"{_INSIDE}.summary_scope")
@contextlib.contextmanager
def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """A name scope for one summary, with the tag that it has."""
    name = name or default_name
    outer = get_default_graph().get_name_scope()
    tag = f"{outer}/{name}" if outer else name
    with name_scope(_NOT_IN_NAMES.sub("", name) or None, default_name, values) as scope:
        yield tag, scope


@export(f"{_HERE}.write", f"{_INSIDE}.write")
def write(tag: Any, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Tensor:
    """Writes a tensor with a writer's `as_default()` around; gives whether it was written."""
    with name_scope(name, "write_summary"), device("cpu:0"):
        writer = summaries.now.writer
        if writer is None or writer._resource is None:
            return to_tensor(False)
        step = get_step() if step is None else step
        if step is None:
            raise ValueError("No step set via 'step' argument or tf.summary.experimental.set_step()")
        serialized = getattr(metadata, "SerializeToString", lambda: metadata or b"")()

        def record() -> Tensor:
            inputs = (
                find("cast")(step, dtypes.int64),
                to_tensor(tensor),
                tag,
                to_tensor(serialized, dtypes.string),
            )
            with control_dependencies([apply_op("WriteSummary", writer._resource, *inputs)]):
                return to_tensor(True)

        condition = True if summaries.now.record is None else summaries.should_record_summaries()
        result = smart_cond(condition, record, lambda: to_tensor(False))
    get_default_graph().add_to_collection(GraphKeys._SUMMARY_COLLECTION, result)
    return result


def _write(name: str, kind: str, tensor: Any, step: Any, description: str | None) -> Tensor:
    """Writes what a plugin of TensorBoard shows."""
    from tensorfleet.base.protos import SummaryMetadata

    plugin = SummaryMetadata.PluginData(plugin_name=kind)
    metadata = SummaryMetadata(plugin_data=plugin, summary_description=description or "")
    with summary_scope(name, f"{kind.rstrip('s')}_summary", [tensor]) as (tag, _):
        return write(tag, tensor, step, metadata)


@export(f"{_HERE}.scalar")
def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes a number."""
    return _write(name, "scalars", find("cast")(data, dtypes.float32), step, description)


@export(f"{_HERE}.text")
def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes strings."""
    return _write(name, "text", to_tensor(data, dtypes.string), step, description)


@export(f"{_HERE}.histogram")
def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None
) -> Tensor:
    """Writes how values are distributed: the bounds of each bucket (there are 30), and how many are in it."""
    values = find("reshape")(find("cast")(data, dtypes.float64), [-1])
    count = _BUCKETS if buckets is None else buckets
    low, high = find("reduce_min")(values), find("reduce_max")(values)
    size = find("cast")(find("size")(values), dtypes.float64)
    alike = find("stack")([[low - 0.5, high + 0.5, size]])  # the only bucket where all values are the same
    rows = find("case")(
        [
            (find("equal")(size, 0.0), lambda: find("zeros")([0, 3], dtypes.float64)),
            (find("less")(low, high), lambda: _in_buckets(values, low, high, count)),
        ],
        default=lambda: alike,
    )
    rows.set_shape([None, 3])
    return _write(name, "histograms", rows, step, description)


def _in_buckets(values: Tensor, low: Tensor, high: Tensor, count: int) -> Tensor:
    places = find("cast")(find("floor")((values - low) / (high - low) * count), dtypes.int32)
    numbers = find("math.bincount")(find("minimum")(places, count - 1), minlength=count, dtype=dtypes.float64)
    edges = low + (high - low) * find("constant")(np.arange(count + 1) / count)
    return find("stack")([edges[:-1], edges[1:], numbers], axis=1)


@export(f"{_HERE}.image")
def image(
    name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None
) -> Tensor:
    """Writes the first pictures of a batch."""
    shape = find("shape")(data)
    pictures = find("image.convert_image_dtype")(data, dtypes.uint8, saturate=True)[:max_outputs]
    encoded = find("map_fn")(find("image.encode_png"), pictures, dtype=dtypes.string)
    size = find("as_string")(find("stack")([shape[2], shape[1]]))
    return _write(name, "images", find("concat")([size, encoded], 0), step, description)
