"""`tf.summary.FileWriter`: summaries, graphs and run metadata into event files for TensorBoard."""

from __future__ import annotations

import threading
import time
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, TypeGuard

from tensorfleet.api.summary.events import EventFileWriter
from tensorfleet.api.summary.plugin_assets import write_plugin_assets
from tensorfleet.base import counters, logging
from tensorfleet.base import run_status as status
from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.meta_graph import export_meta_graph
from tensorfleet.graph.scopes import get_default_graph

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import Event, MetaGraphDef
    from tensorfleet.session.session import BaseSession


def _is_message(value: object, name: str) -> TypeGuard[Message]:
    """Whether a value is that message, in our form or in TensorFlow's own."""
    # By name, not by class: TensorFlow's own messages have the same fields and bytes.
    descriptor = getattr(value, "DESCRIPTOR", None)
    return descriptor is not None and descriptor.name == name


@export("summary.FileWriter")
class FileWriter:
    """Writes event files into `logdir`, which TensorBoard reads.

    Adding is cheap: a thread does the writing. At most `max_queue` events wait for it before adding blocks;
    events reach the disk every `flush_secs` seconds, on `flush` and on `close`. `graph` is written
    at once. `session` is accepted and changes nothing.
    """

    def __init__(
        self,
        logdir: PathLike,
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Graph | Message | None = None,
        filename_suffix: str | None = None,
        session: BaseSession | None = None,
    ) -> None:
        self.event_writer = EventFileWriter(logdir, max_queue, flush_secs, filename_suffix)
        self._closed = False
        self._described: set[str] = set()
        self._run_tags: set[str] = set()
        given = graph if graph is not None else graph_def
        if given is not None:
            self.add_graph(graph, graph_def=graph_def)
            self.add_meta_graph(_meta_graph(given))

    def get_logdir(self) -> str:
        """The folder of the files."""
        return self.event_writer.get_logdir()

    def add_summary(self, summary: Message | bytes, global_step: int | None = None) -> None:
        """Adds the output of a summary operation, or a `Summary` message, at a step of training."""
        from tensorfleet.base.protos import Event, Summary

        if isinstance(summary, bytes):
            summary = Summary.FromString(summary)
        elif not _is_message(summary, "Summary"):
            raise TypeError(f"summary must be a tf.Summary or its bytes, not {type(summary)}")
        event = Event()
        event.summary.MergeFromString(summary.SerializeToString())
        for value in event.summary.value:  # the description of a tag is written with its first value only
            if value.HasField("metadata"):
                if value.tag in self._described:
                    value.ClearField("metadata")
                self._described.add(value.tag)
        self._add(event, global_step)
        status.report_event(event)
        counters.note_event(event)

    def add_session_log(self, session_log: Message, global_step: int | None = None) -> None:
        """Adds a `SessionLog`: that a session started or stopped, or a checkpoint was written."""
        from tensorfleet.base.protos import Event

        event = Event()
        event.session_log.MergeFromString(session_log.SerializeToString())
        self._add(event, global_step)

    def add_graph(
        self,
        graph: Graph | Message | None,
        global_step: int | None = None,
        graph_def: Graph | Message | None = None,
    ) -> None:
        """Adds a graph, for TensorBoard to draw."""
        from tensorfleet.base.protos import Event

        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        given = graph if graph is not None else graph_def
        if isinstance(graph_def, Graph):
            logging.warning(
                "When passing a `Graph` object, please use the `graph` named argument instead of `graph_def`."
            )
        if isinstance(given, Graph):
            write_plugin_assets(self.get_logdir(), given)
            message: Message = given.as_graph_def(add_shapes=True)
        elif _is_message(given, "GraphDef"):
            logging.warning(
                "Passing a `GraphDef` to the SummaryWriter is deprecated. Pass a `Graph` object instead, such as "
                "`sess.graph`."
            )
            message = given
        else:
            raise TypeError("The passed graph must be an instance of `Graph` or the deprecated `GraphDef`")
        self._add(Event(graph_def=message.SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: Message, global_step: int | None = None) -> None:
        """Adds a `MetaGraphDef`."""
        from tensorfleet.base.protos import Event

        if not _is_message(meta_graph_def, "MetaGraphDef"):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}")
        self._add(Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: Message, tag: str, global_step: int | None = None) -> None:
        """Adds the measurements of a run (`tf.RunMetadata`), under a new tag."""
        from tensorfleet.base.protos import Event

        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
        event = Event()
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = run_metadata.SerializeToString()
        self._add(event, global_step)

    def add_event(self, event: Message) -> None:
        """Adds an `Event` as it is."""
        self._warn_if_closed()
        self.event_writer.add_event(event)

    def flush(self) -> None:
        """Returns when everything added so far is in the file."""
        self._warn_if_closed()
        self.event_writer.flush()

    def close(self) -> None:
        """Writes everything and closes the file."""
        self.event_writer.close()
        self._closed = True

    def reopen(self) -> None:
        """Makes a closed writer usable again; a new file is written. Nothing happens to an open one."""
        self.event_writer.reopen()
        self._closed = False

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self,
        unused_type: type[BaseException] | None,
        unused_value: BaseException | None,
        unused_traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _add(self, event: Event, global_step: int | None) -> None:
        event.wall_time = time.time()
        if global_step is not None:
            event.step = int(global_step)
        self.add_event(event)

    def _warn_if_closed(self) -> None:
        if self._closed:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is "
                "explicitly reopened.",
                stacklevel=3,
            )


def _meta_graph(given: Graph | Message) -> MetaGraphDef:
    from tensorfleet.base.protos import GraphDef

    meta: MetaGraphDef
    if isinstance(given, Graph):
        meta = export_meta_graph(graph=given)
    else:
        nodes = GraphDef.FromString(given.SerializeToString())
        meta = export_meta_graph(graph_def=nodes, collection_list=[])
    return meta


@export("summary.FileWriterCache")
class FileWriterCache:
    """One `FileWriter` per folder, shared by all parts of a program."""

    _cache: dict[PathLike, FileWriter] = {}
    _lock = threading.RLock()

    @staticmethod
    def get(logdir: PathLike) -> FileWriter:
        """The writer for `logdir`, made when there is none yet."""
        with FileWriterCache._lock:
            if logdir not in FileWriterCache._cache:
                FileWriterCache._cache[logdir] = FileWriter(logdir, graph=get_default_graph())
            return FileWriterCache._cache[logdir]

    @staticmethod
    def clear() -> None:
        """Closes all writers and forgets them."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache.clear()
