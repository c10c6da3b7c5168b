"""`tf.train.QueueRunner`: threads that keep a queue filled."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.coordinator import Coordinator
from tensorfleet.base import errors, logging
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.graphdef import prepend_scope, strip_scope
from tensorfleet.graph.meta_graph import register_proto_function
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.scopes import (
    GraphKeys,
    add_to_collection,
    get_collection,
    get_default_graph,
    get_default_session,
)
from tensorfleet.session.session import BaseSession

if TYPE_CHECKING:
    from tensorfleet.base.protos import QueueRunnerDef


@export("train.QueueRunner", "train.queue_runner.QueueRunner")
class QueueRunner:
    """The enqueue operations of a queue, each to be run again and again by a thread of its own.

    When one raises one of `queue_closed_exception_types` (by default `tf.errors.OutOfRangeError`), its input
    has come to an end; with the last of them `close_op` closes the queue. Any other exception stops the
    coordinator, and a stopped coordinator runs `cancel_op`, which also wakes threads that wait for room.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Operation] | None = None,
        close_op: Operation | None = None,
        cancel_op: Operation | None = None,
        queue_closed_exception_types: tuple[type[errors.OpError], ...] | None = None,
        queue_runner_def: QueueRunnerDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops is not None:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._read(queue_runner_def, import_scope)
        else:
            self._take(queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types)
        self._lock = threading.Lock()
        # How many threads are filling the queue, by session.
        self._runs_per_session: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions_raised: list[BaseException] = []

    def _take(
        self,
        queue: Any,
        enqueue_ops: Sequence[Operation] | None,
        close_op: Operation | None,
        cancel_op: Operation | None,
        types: tuple[type[errors.OpError], ...] | None,
    ) -> None:
        if not queue or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        self._queue = queue
        self._enqueue_ops = enqueue_ops
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        if types is None:
            types = (errors.OutOfRangeError,)
        elif not isinstance(types, tuple) or not types or not all(_is_error(t) for t in types):
            raise TypeError(
                "queue_closed_exception_types, when provided, must be a tuple of tf.error types, but saw: "
                f"{types}"
            )
        self._queue_closed_exception_types = types

    def _read(self, proto: QueueRunnerDef, scope: str | None) -> None:
        graph = get_default_graph()

        def find(name: str) -> Any:
            return graph.as_graph_element(prepend_scope(name, scope)) if name else None

        self._queue = find(proto.queue_name)
        self._enqueue_ops = [find(name) for name in proto.enqueue_op_name]
        self._close_op = find(proto.close_op_name)
        self._cancel_op = find(proto.cancel_op_name)
        codes: list[int] = [*proto.queue_closed_exception_types] or [errors.OUT_OF_RANGE]
        self._queue_closed_exception_types = tuple(errors.exception_type_from_error_code(c) for c in codes)

    queue: Any = readonly("_queue", "The queue that is filled.")
    enqueue_ops: Sequence[Operation] = readonly("_enqueue_ops", "The operations that fill it.")
    close_op: Operation = readonly("_close_op", "The operation that closes the queue when the input ends.")
    cancel_op: Operation = readonly(
        "_cancel_op", "The operation that closes the queue when the threads are to stop."
    )
    queue_closed_exception_types: tuple[type[errors.OpError], ...] = readonly(
        "_queue_closed_exception_types", "The exceptions that mean the end of the input."
    )
    exceptions_raised: list[BaseException] = readonly(
        "_exceptions_raised", "The exceptions of the threads, for runners without a coordinator."
    )

    @property
    def name(self) -> str:
        """The name of the queue."""
        name: str = self._queue.name
        return name

    def _run(self, sess: BaseSession, enqueue_op: Operation, coord: Coordinator | None = None) -> None:
        """The body of a thread that fills the queue."""
        try:
            # Prepared once, so that a round is no more than the run itself.
            enqueue = repeater(sess, enqueue_op)
            while coord is None or not coord.should_stop():
                try:
                    enqueue()
                except self._queue_closed_exception_types:
                    self._ended(sess)
                    return
        except Exception as e:
            if coord is not None:
                # With a coordinator the error comes out of `join`; without one it is kept for
                # `exceptions_raised`.
                coord.request_stop(failure_in(sess, e))
            else:
                logging.error("Exception in QueueRunner: %s", e)
                with self._lock:
                    self._exceptions_raised.append(e)
        with self._lock:
            self._runs_per_session[sess] -= 1

    def _ended(self, sess: BaseSession) -> None:
        """The input of one operation is at its end; with the last of them, so is the queue."""
        with self._lock:
            self._runs_per_session[sess] -= 1
            last = self._runs_per_session[sess] == 0
        if last:
            try:
                sess.run(self._close_op)
            except Exception as e:
                logging.vlog(1, "Ignored exception: %s", e)

    def _close_on_stop(self, sess: BaseSession, cancel_op: Operation, coord: Coordinator) -> None:
        """The body of the thread that closes the queue when the coordinator stops."""
        coord.wait_for_stop()
        try:
            sess.run(cancel_op)
        except Exception as e:
            logging.vlog(1, "Ignored exception: %s", e)

    def create_threads(
        self, sess: BaseSession, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """One thread per enqueue operation, and one that closes the queue when `coord` stops.

        Without a coordinator, exceptions are kept in `exceptions_raised`. While threads made before for this
        session still run, the list is empty.
        """
        with self._lock:
            # Started twice, each element would be enqueued by two threads.
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        prefix = f"QueueRunnerThread-{self.name}"
        threads = [
            threading.Thread(
                target=self._run, args=(sess, op, coord), name=f"{prefix}-{getattr(op, 'name', op)}"
            )
            for op in self._enqueue_ops
        ]
        if coord is not None:
            args = (sess, self._cancel_op, coord)
            threads.append(
                threading.Thread(target=self._close_on_stop, args=args, name=f"{prefix}-close_on_stop")
            )
        for t in threads:
            if coord is not None:
                coord.register_thread(t)
            if daemon:
                t.daemon = True
            if start:
                t.start()
        return threads

    def to_proto(self, export_scope: str | None = None) -> QueueRunnerDef | None:
        """The runner as a `QueueRunnerDef`; None when it is not inside `export_scope`."""
        from tensorfleet.base.protos import QueueRunnerDef

        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        proto = QueueRunnerDef(queue_name=strip_scope(self.name, export_scope))
        proto.enqueue_op_name.extend(strip_scope(op.name, export_scope) for op in self._enqueue_ops)
        proto.close_op_name = strip_scope(self._close_op.name, export_scope)
        proto.cancel_op_name = strip_scope(self._cancel_op.name, export_scope)
        for cls in self._queue_closed_exception_types:
            code: Any = errors.error_code_from_exception_type(cls)
            proto.queue_closed_exception_types.append(code)
        return proto

    @staticmethod
    def from_proto(queue_runner_def: QueueRunnerDef, import_scope: str | None = None) -> QueueRunner:
        """The runner that a `QueueRunnerDef` describes, with the operations of the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def repeater(sess: BaseSession, operation: Operation) -> Callable[[], Any]:
    """A function that runs an operation, perhaps several times in each call."""
    return getattr(sess, "_make_repeater", sess.make_callable)(operation)


def failure_in(sess: BaseSession, error: Exception) -> Exception | None:
    """The error that a thread reports to its coordinator: None when the session was closed.

    In TensorFlow it is chance whether `join` raises the error of a closed session.
    """
    return None if getattr(sess, "_closed", False) else error


def _is_error(cls: type) -> bool:
    return issubclass(cls, errors.OpError)


@export("train.add_queue_runner", "train.queue_runner.add_queue_runner")
def add_queue_runner(qr: QueueRunner, collection: Hashable = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a runner to those that `tf.train.start_queue_runners` starts."""
    add_to_collection(collection, qr)


@export("train.start_queue_runners", "train.queue_runner.start_queue_runners")
def start_queue_runners(
    sess: BaseSession | None = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: Hashable = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts the threads of all queue runners of the graph; returns them."""
    if sess is None:
        sess = get_default_session()
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass "
                "an explicit session to tf.start_queue_runners(sess=sess)"
            )
    if not isinstance(sess, BaseSession):
        if type(sess).__name__ in ("MonitoredSession", "SingularMonitoredSession"):
            return []  # these have started their runners already
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    with sess.graph.as_default():
        runners = get_collection(collection)
    if not runners:
        logging.warning(
            "`tf.train.start_queue_runners()` was called when no queue runners were defined. You can safely remove "
            "the call to this deprecated function."
        )
    return [t for qr in runners for t in qr.create_threads(sess, coord=coord, daemon=daemon, start=start)]


register_proto_function(
    GraphKeys.QUEUE_RUNNERS, "QueueRunnerDef", QueueRunner.to_proto, QueueRunner.from_proto
)
