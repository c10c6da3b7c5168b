"""`tf.contrib.summary`: summaries that are written by the operations themselves, without a serialized string between."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorfleet.api.summary.summary import _scope
from tensorfleet.api.train.global_step import get_or_create_global_step
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    control_dependencies,
    device,
    get_collection,
    get_default_graph,
    get_default_session,
    name_scope,
)
from tensorfleet.ops.array.basic import no_op
from tensorfleet.ops.control.cond import smart_cond

INITIALIZERS = "_SUMMARY_WRITER_V2"
_RED = np.array([255, 0, 0, 255], np.uint8)


class _Defaults(threading.local):
    """The writer and the condition that hold for this thread."""

    def __init__(self) -> None:
        self.writer: Any = None
        self.record: Any = None
        self.step: Any = None


now = _Defaults()


def _public(made: Any) -> Any:
    name = made.__name__
    inner = "all_v2_summary_ops" if name == "all_summary_ops" else name
    return export(
        f"contrib.summary.{name}", f"contrib.summary.summary.{name}", f"python.ops.summary_ops_v2.{inner}"
    )(made)


@contextlib.contextmanager
def replaced_here(**values: Any) -> Iterator[None]:
    """A block with another writer or condition, in this thread."""
    before = {key: getattr(now, key) for key in values}
    now.__dict__.update(values)
    try:
        yield
    finally:
        now.__dict__.update(before)


@_public
def always_record_summaries() -> Any:
    """A block in which all summaries are written."""
    return replaced_here(record=True)


@_public
def never_record_summaries() -> Any:
    """A block in which none is written."""
    return replaced_here(record=False)


@_public
def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A block in which summaries are written at each n-th step."""
    step = get_or_create_global_step() if global_step is None else global_step
    with device("cpu:0"):
        due = apply("Equal", apply("FloorMod", to_tensor(step), np.int64(n)), np.int64(0))
    return replaced_here(record=due)


@_public
def should_record_summaries() -> Any:
    """Whether summaries are written here: a bool, or a tensor that tells."""
    return now.record() if callable(now.record) else (False if now.record is None else now.record)


@_public
class SummaryWriter:
    """Writes summaries; what `create_file_writer` gives, or one that writes nothing."""

    _resource: Any = None

    def set_as_default(self) -> None:
        """Summaries made from here on go to it."""
        now.writer = self

    def as_default(self) -> Any:
        """A block whose summaries go to it."""
        return contextlib.nullcontext()

    def init(self) -> Operation:
        """Opens it."""
        return no_op()

    def flush(self) -> Operation:
        """Writes what waits."""
        return no_op()

    def close(self) -> Operation:
        """Writes what waits, and closes it."""
        return no_op()


class _FileSummaryWriter(SummaryWriter):
    def __init__(self, shared_name: str, **file: Any) -> None:
        self._resource = apply("SummaryWriter", shared_name=shared_name.encode())
        self._init_op = apply_op("CreateSummaryFileWriter", self._resource, *file.values())
        get_default_graph().add_to_collection(INITIALIZERS, self._init_op)

    def as_default(self) -> Any:
        return self._as_default()

    @contextlib.contextmanager
    def _as_default(self) -> Iterator[SummaryWriter]:
        with replaced_here(writer=self):
            yield self

    def init(self) -> Operation:
        return self._init_op

    def flush(self) -> Operation:
        return apply_op("FlushSummaryWriter", self._resource)

    def close(self) -> Operation:
        with control_dependencies([self.flush()]):
            return apply_op("CloseSummaryWriter", self._resource)


@_public
def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
) -> SummaryWriter:
    """A writer of event files in a folder. Writers of the same `name` (by default, of the folder) are the same.

    More than `max_queue` summaries (10), or `flush_millis` (two minutes), are waited for before they are written.
    """
    if logdir is None:
        return SummaryWriter()
    with device("cpu:0"):
        shared = name if name is not None else f"logdir:{os.fspath(logdir)}"
        return _FileSummaryWriter(
            shared,
            logdir=to_tensor(os.fspath(logdir), dtypes.string),
            max_queue=to_tensor(10 if max_queue is None else max_queue, dtypes.int32),
            flush_millis=to_tensor(2 * 60 * 1000 if flush_millis is None else flush_millis, dtypes.int32),
            suffix=to_tensor(".v2" if filename_suffix is None else filename_suffix, dtypes.string),
        )


@_public
def create_summary_file_writer(*args: Any, **kwargs: Any) -> SummaryWriter:
    """The old name of `create_file_writer`."""
    return create_file_writer(*args, **kwargs)


@_public
def summary_writer_initializer_op() -> list[Operation]:
    """Operations that open all writers of the graph."""
    return get_collection(INITIALIZERS)


@export("summary.all_v2_summary_ops")
@_public
def all_summary_ops() -> list[Any]:
    """Operations that write all summaries of the graph."""
    return get_collection(GraphKeys._SUMMARY_COLLECTION)


@export("summary.initialize")
@_public
def initialize(graph: Any = None, session: Any = None) -> None:
    """Opens all writers of the graph in a session (the default one), and writes a graph if one is given."""
    if now.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found. Call its as_default().")
    session = session or get_default_session()
    if session is None:
        raise ValueError("Argument `session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        text = (
            graph
            if isinstance(graph, bytes)
            else (
                graph.as_graph_def(add_shapes=True) if hasattr(graph, "as_graph_def") else graph
            ).SerializeToString()
        )
        session.run(apply_op("WriteGraphSummary", now.writer._resource, np.int64(0), to_tensor(text)))


def _step(step: Any) -> Tensor:
    if step is None:
        return apply("Cast", to_tensor(get_or_create_global_step()), DstT=dtypes.int64)
    return (
        apply("Cast", step, DstT=dtypes.int64) if isinstance(step, Tensor) else to_tensor(step, dtypes.int64)
    )


def _written(name: str, tensor: Any, family: str | None, write: Callable[[str], Operation]) -> Any:
    """The operation that writes a summary if it is time to; it is collected, for `all_summary_ops`."""
    graph = get_default_graph()
    if now.writer is None or now.writer._resource is None:
        return no_op()
    outer = graph.get_name_scope()

    def record() -> Tensor:
        # The tag is that of where the summary is made, not of the condition around it.
        with name_scope(f"{outer}/" if outer else None), _scope(name, family, values=[tensor]) as (tag, _):
            with control_dependencies([write(tag)]):
                return to_tensor(True)

    with device("cpu:0"):
        result = smart_cond(should_record_summaries(), record, lambda: to_tensor(False))
    graph.add_to_collection(GraphKeys._SUMMARY_COLLECTION, result)
    return result


def _write(op_type: str, step: Any, *inputs: Any, **attrs: Any) -> Operation:
    return apply_op(op_type, _now_resource(), _step(step), *inputs, **attrs)


def _now_resource() -> Tensor:
    return now.writer._resource


@_public
def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes a number."""
    value = to_tensor(tensor)
    return _written(name, value, family, lambda tag: _write("WriteScalarSummary", step, tag, value))


@_public
def generic(name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None) -> Any:
    """Writes a tensor, with the metadata that a plugin of TensorBoard wants."""
    value = to_tensor(tensor)
    message = (
        b""
        if metadata is None
        else metadata.SerializeToString()
        if hasattr(metadata, "HasField")
        else metadata
    )
    return _written(
        name,
        value,
        family,
        lambda tag: _write("WriteSummary", step, value, tag, to_tensor(message, dtypes.string)),
    )


@_public
def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes how values are distributed."""
    values = to_tensor(tensor)
    return _written(name, values, family, lambda tag: _write("WriteHistogramSummary", step, tag, values))


@_public
def image(
    name: str,
    tensor: Any,
    bad_color: Any = None,
    max_images: int = 3,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Writes pictures; pixels that are no numbers get the bad color (red)."""
    pixels, color = to_tensor(tensor), to_tensor(_RED if bad_color is None else bad_color, dtypes.uint8)
    return _written(
        name,
        pixels,
        family,
        lambda tag: _write("WriteImageSummary", step, tag, pixels, color, max_images=max_images),
    )


@_public
def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int, family: str | None = None, step: Any = None
) -> Any:
    """Writes sounds."""
    sounds, rate = to_tensor(tensor, dtypes.float32), to_tensor(sample_rate, dtypes.float32)
    return _written(
        name,
        sounds,
        family,
        lambda tag: _write("WriteAudioSummary", step, tag, sounds, rate, max_outputs=max_outputs),
    )


@_public
def graph(param: Any, step: Any = None, name: str | None = None) -> Any:
    """Writes a graph, given as a `GraphDef` or a tensor of it serialized."""
    if not isinstance(param, Tensor):
        if not hasattr(param, "SerializeToString"):
            raise TypeError(
                f"graph() needs a tf.Tensor (e.g. tf.placeholder) or tf.GraphDef, but got: {type(param).__name__}"
            )
        param = to_tensor(param.SerializeToString(), dtypes.string)
    if now.writer is None:
        return no_op()
    with device("cpu:0"):
        return apply_op("WriteGraphSummary", _now_resource(), _step(step), param, name=name)


@_public
def import_event(tensor: Any, name: str | None = None) -> Operation:
    """Writes an `Event`, given serialized."""
    return apply_op("ImportEvent", _now_resource(), to_tensor(tensor, dtypes.string), name=name)


@_public
def flush(writer: Any = None, name: str | None = None) -> Operation:
    """Writes what waits in a writer, or its resource; in the default one if None."""
    chosen = now.writer if writer is None else writer
    if chosen is None:
        return no_op()
    resource = chosen._resource if isinstance(chosen, SummaryWriter) else chosen
    with device("cpu:0"):
        return no_op() if resource is None else apply_op("FlushSummaryWriter", resource, name=name)


@_public
def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The folder for the summaries of an evaluation."""
    return os.path.join(model_dir, f"eval_{name}" if name else "eval")
