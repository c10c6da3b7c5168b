"""`tf.train.Supervisor`: starts, saves and stops a training, alone or on a cluster."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tensorfleet.api.summary.summary import merge_all
from tensorfleet.api.summary.writer import FileWriter
from tensorfleet.api.train.coordinator import Coordinator, LooperThread, StopReason
from tensorfleet.api.train.global_step import global_step as value_of_step
from tensorfleet.api.train.saver import Saver
from tensorfleet.api.train.session_manager import SessionManager
from tensorfleet.api.train.supervisor_threads import (
    SVStepCounterThread,
    SVSummaryThread,
    SVTimerCheckpointThread,
)
from tensorfleet.api.variables.lists import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.meta_graph import export_meta_graph, write_graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, add_to_collection, get_collection, get_default_graph
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.state.lookup import tables_initializer

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tensorfleet.api.train.queue_runner import QueueRunner
    from tensorfleet.api.train.types import FeedDict, Fetches, GlobalStep, PathLike
    from tensorfleet.base.protos import ConfigProto, RunOptions
    from tensorfleet.session.session import BaseSession, Session


@export("train.Supervisor", "python.training.supervisor.Supervisor")
class Supervisor:
    """Starts a training, saves checkpoints and summaries meanwhile, and stops its threads.

    The chief initializes the variables, or restores them from the latest checkpoint in `logdir`; the other
    tasks (`is_chief=False`) wait for that. An argument that is not given (`USE_DEFAULT`) is taken from the graph's
    collections or added; None means to do without. The graph is finalized.

        sv = tf.train.Supervisor(logdir="/tmp/train", is_chief=task_index == 0)
        with sv.managed_session(server.target) as sess:
            while not sv.should_stop():
                sess.run(train_op)
    """

    # Tells an argument that was not given from None.
    USE_DEFAULT = 0

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Fetches = USE_DEFAULT,
        ready_for_local_init_op: Fetches = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Fetches = USE_DEFAULT,
        init_feed_dict: FeedDict | None = None,
        local_init_op: Fetches = USE_DEFAULT,
        logdir: PathLike | None = None,
        summary_op: Tensor | int | None = USE_DEFAULT,
        saver: Saver | int | None = USE_DEFAULT,
        global_step: GlobalStep | int | None = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: FileWriter | int | None = USE_DEFAULT,
        init_fn: Callable[[BaseSession], Any] | None = None,
        local_init_run_options: RunOptions | None = None,
    ) -> None:
        graph = get_default_graph() if graph is None else graph
        with graph.as_default():
            self._ready_op = _given(ready_op, GraphKeys.READY_OP, report_uninitialized_variables)
            self._ready_for_local_init_op = _given(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None
            )
            self._init_op = _given(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = _given(local_init_op, GraphKeys.LOCAL_INIT_OP, _local_init_op)
            self._saver = _given(saver, GraphKeys.SAVERS, _saver)
            self._summary_op = _given(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self._global_step = _given(global_step, GraphKeys.GLOBAL_STEP, _global_step)
        self._graph = graph
        self._meta_graph_def = export_meta_graph(
            graph=graph, saver_def=self._saver.saver_def if self._saver else None
        )
        self._is_chief = is_chief
        self._coord = Coordinator()
        self._stop_grace_secs = stop_grace_secs
        self._init_feed_dict = init_feed_dict
        self._init_fn = init_fn
        self._graph_added_to_summary = False
        self._set_outputs(logdir, save_summaries_secs, save_model_secs, checkpoint_basename, summary_writer)
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._verify_setup()
        graph.finalize()

    def _set_outputs(
        self,
        logdir: PathLike | None,
        summaries: float,
        model: float,
        basename: str,
        writer: FileWriter | int | None,
    ) -> None:
        """Where to save and how often; only the chief does."""
        chief = self._is_chief
        self._logdir = os.fspath(logdir) if chief and logdir else None
        self._save_summaries_secs = summaries if chief else None
        self._save_model_secs = model if chief else None
        self._save_path = os.path.join(self._logdir, basename) if self._logdir else None
        if not chief:
            writer = None
        elif writer is Supervisor.USE_DEFAULT:
            writer = FileWriter(self._logdir) if self._logdir else None
        self._summary_writer: Any = writer

    def _verify_setup(self) -> None:
        """A variable with no device would be this worker's own, and nobody would initialize it."""
        if self._is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise ValueError(f"When using replicas, all Variables must have their device set: {op}")

    # -- its parts --

    is_chief: bool = readonly("_is_chief", "Whether this is the task that initializes and saves.")
    session_manager: SessionManager = readonly("_session_manager", "Makes the sessions.")
    coord: Coordinator = readonly("_coord", "Stops the threads together.")
    init_op: Fetches = readonly("_init_op", "Initializes the variables.")
    init_feed_dict: FeedDict | None = readonly("_init_feed_dict", "Values to feed to `init_op`.")
    ready_op: Fetches = readonly("_ready_op", "Gives the names of variables without a value.")
    ready_for_local_init_op: Fetches = readonly(
        "_ready_for_local_init_op",
        "Gives the names of variables that `local_init_op` needs and that have no value yet.",
    )
    summary_writer: Any = readonly("_summary_writer", "The chief's writer of events, or None.")
    summary_op: Any = readonly("_summary_op", "All summaries as one tensor, or None.")
    save_summaries_secs: float | None = readonly(
        "_save_summaries_secs", "Seconds between summaries; None when this is not the chief."
    )
    global_step: Any = readonly("_global_step", "The variable that counts steps, or None.")
    saver: Any = readonly("_saver", "Writes checkpoints, or None.")
    save_model_secs: float | None = readonly(
        "_save_model_secs", "Seconds between checkpoints; None when this is not the chief."
    )
    save_path: str | None = readonly(
        "_save_path",
        "How the paths of checkpoints begin; None without `logdir`, or when this is not the chief.",
    )

    # -- starting --

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:
        """A session that is ready to train, with queue runners started, and on the chief the services."""
        # A supervisor can be used again after `stop`, with a new session.
        self._coord.clear_stop()
        if self._summary_writer:
            self._summary_writer.reopen()
        if self._is_chief:
            sess = self._session_manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                logging.info("Starting standard services.")
                self.start_standard_services(sess)
        else:
            sess = self._session_manager.wait_for_session(master, config=config, max_wait_secs=max_wait_secs)
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(sess)
        return sess

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self._summary_writer and not self._graph_added_to_summary:
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(self._meta_graph_def)
            self._graph_added_to_summary = True

    def start_standard_services(self, sess: BaseSession) -> list[LooperThread] | None:
        """Starts the threads that save checkpoints, write summaries and count steps; the chief only."""
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write "
                "events."
            )
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        if self._global_step is not None and self._summary_writer:
            self._log_session("START", value_of_step(sess, self._global_step))
        threads: list[LooperThread] = []
        if self._save_summaries_secs and self._summary_writer:
            if self._summary_op is not None:
                threads.append(SVSummaryThread(self, sess))
            if self._global_step is not None:
                threads.append(SVStepCounterThread(self, sess))
        if self._saver and self._save_model_secs:
            threads.append(SVTimerCheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(
        self, sess: BaseSession, queue_runners: Iterable[QueueRunner] | None = None
    ) -> list[threading.Thread]:
        """Starts the threads of the graph's queue runners, or of those given."""
        runners = (
            self._graph.get_collection(GraphKeys.QUEUE_RUNNERS) if queue_runners is None else queue_runners
        )
        threads: list[threading.Thread] = []
        for runner in runners:
            threads += runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        return threads

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A session for a `with` block; at its end the threads are stopped and the session is closed.

        Errors of the block and of the threads come out of it; OutOfRangeError, the end of the input, does not.
        """
        sess = None
        try:
            sess = self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services
            )
            yield sess
        except Exception as e:
            self.request_stop(e)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                # Wakes threads that wait in a queue and did not look whether to stop.
                with contextlib.suppress(Exception):
                    if sess is not None:
                        sess.close()

    # -- while training --

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls `target` every `timer_interval_secs` until the training stops."""
        looper = LooperThread(
            self._coord, timer_interval_secs=timer_interval_secs, target=target, args=args, kwargs=kwargs
        )
        looper.start()
        return looper

    def summary_computed(
        self, sess: BaseSession, summary: Message | bytes, global_step: int | None = None
    ) -> None:
        """Writes a summary that the program computed itself, at the current step if none is given."""
        if not self._summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = value_of_step(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    # -- stopping --

    def stop(
        self,
        threads: Iterable[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Asks all threads to stop, waits for them, and raises the error of one that failed."""
        self._coord.request_stop()
        try:
            self._coord.join(
                threads, stop_grace_period_secs=self._stop_grace_secs, ignore_live_threads=ignore_live_threads
            )
        finally:
            if close_summary_writer and self._summary_writer:
                self._log_session("STOP", None)
                self._summary_writer.close()
                # A reopened writer starts a new file, which needs the graph again.
                self._graph_added_to_summary = False

    def request_stop(self, ex: StopReason | None = None) -> None:
        """Asks all threads to stop; with an error, `stop` raises it."""
        self._coord.request_stop(ex=ex)

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> AbstractContextManager[None]:
        """A context in which an error asks all threads to stop."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until a stop is requested."""
        self._coord.wait_for_stop()

    def _log_session(self, status: str, step: int | None) -> None:
        from tensorfleet.base.protos import SessionLog

        self._summary_writer.add_session_log(SessionLog(status=getattr(SessionLog, status)), step)

    PrepareSession = prepare_or_wait_for_session
    StartStandardServices = start_standard_services
    StartQueueRunners = start_queue_runners
    Loop = loop
    SummaryComputed = summary_computed
    Stop = stop
    RequestStop = request_stop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop


def _given(value: Any, key: str, make: Callable[[], Any]) -> Any:
    """An argument as given, or the first item of a collection, or the result of `make`, which is added to it."""
    if value is not Supervisor.USE_DEFAULT:
        return value
    items = get_collection(key)
    if len(items) > 1:
        logging.info("Found %d %s operations. Returning the first one.", len(items), key)
    if items:
        return items[0]
    item = make()
    if item is not None:
        add_to_collection(key, item)
    return item


def _local_init_op() -> Operation:
    return group(local_variables_initializer(), tables_initializer())


def _saver() -> Saver | None:
    return Saver() if global_variables() else None


def _global_step() -> Tensor | None:
    try:
        step = get_default_graph().get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    if step.dtype.base_dtype in (dtypes.int32, dtypes.int64):
        return step
    logging.warning("Found 'global_step' is not an int type: %s", step.dtype)
    return None
