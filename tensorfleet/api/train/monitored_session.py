"""`tf.train.MonitoredTrainingSession` and its relatives: sessions that start, save, recover and stop."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute.coordinating import get_current_worker_context
from tensorfleet.api.train.coordinator import Coordinator
from tensorfleet.api.train.hooks_saving import CheckpointSaverHook, StepCounterHook, SummarySaverHook
from tensorfleet.api.train.queue_runner import start_queue_runners
from tensorfleet.api.train.scaffold import Scaffold
from tensorfleet.api.train.session_layers import (
    StepContext,
    _CoordinatedSession,
    _HookedSession,
    _RecoverableSession,
)
from tensorfleet.api.train.session_manager import SessionManager
from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.platform import notice
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import GraphKeys, get_collection, get_default_graph

if TYPE_CHECKING:
    from tensorfleet.api.train.session_run_hook import SessionRunHook
    from tensorfleet.api.train.types import FeedDict, Fetches, PathLike
    from tensorfleet.base.protos import ConfigProto, RunMetadata, RunOptions
    from tensorfleet.session.session import BaseSession

USE_DEFAULT = object()


@export("train.SessionCreator", "python.training.monitored_session.SessionCreator")
class SessionCreator(abc.ABC):
    """Makes the `tf.Session` that a monitored session wraps; again, after a task was lost."""

    @abc.abstractmethod
    def create_session(self) -> Any:
        """A new session, ready to train."""


class _ScaffoldedCreator(SessionCreator):
    """Makes sessions with the operations of a scaffold."""

    def __init__(self, scaffold: Scaffold | None, master: str, config: ConfigProto | None) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._session_manager: SessionManager | None = None

    def _get_session_manager(self) -> SessionManager:
        if self._session_manager is None:
            self._session_manager = SessionManager(
                local_init_op=self._scaffold.local_init_op,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=get_default_graph(),
            )
        return self._session_manager


@export("train.ChiefSessionCreator", "python.training.monitored_session.ChiefSessionCreator")
class ChiefSessionCreator(_ScaffoldedCreator):
    """Makes sessions whose variables it restores or initializes."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: PathLike | None = None,
        checkpoint_filename_with_path: PathLike | None = None,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self) -> BaseSession:
        """A session restored from the latest checkpoint, or else initialized."""
        scaffold = self._scaffold
        scaffold.finalize()
        return self._get_session_manager().prepare_session(
            self._master,
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )


@export("train.WorkerSessionCreator", "python.training.monitored_session.WorkerSessionCreator")
class WorkerSessionCreator(_ScaffoldedCreator):
    """Makes sessions once the chief has made the variables ready."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> BaseSession:
        """A session, once it is ready; DeadlineExceededError after `max_wait_secs`."""
        self._scaffold.finalize()
        return self._get_session_manager().wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )


class _CoordinatedSessionCreator(SessionCreator):
    """Makes a session with its threads and hooks."""

    def __init__(
        self, session_creator: SessionCreator, hooks: list[SessionRunHook], stop_grace_period_secs: float
    ) -> None:
        self._session_creator = session_creator
        self._hooks = hooks
        self._stop_grace_period_secs = stop_grace_period_secs
        self.coord: Coordinator | None = None
        self.tf_sess: Any = None

    def create_session(self) -> _CoordinatedSession:
        """A session; its queue runners have started."""
        self.tf_sess = self._session_creator.create_session()
        # Errors end the training where the session is used, OutOfRangeError included.
        self.coord = Coordinator(clean_stop_exception_types=[])
        if get_collection(GraphKeys.QUEUE_RUNNERS):
            # Before the hooks: one that runs a step already finds the queues being filled.
            start_queue_runners(sess=self.tf_sess, coord=self.coord)
        for hook in self._hooks:
            hook.after_create_session(self.tf_sess, self.coord)
        hooked = _HookedSession(self.tf_sess, self._hooks)
        return _CoordinatedSession(hooked, self.coord, self._stop_grace_period_secs)


class _MonitoredSession:
    """The base of `MonitoredSession` and `SingularMonitoredSession`."""

    StepContext = StepContext

    def __init__(
        self,
        session_creator: SessionCreator | None,
        hooks: Iterable[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        # Creating the session finalizes the graph. A program may build a second session, so that closing
        # undoes it.
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        worker = get_current_worker_context()
        if session_creator is None:
            session_creator = ChiefSessionCreator() if worker is None else worker.session_creator()
        self._coordinated_creator = _CoordinatedSessionCreator(
            session_creator, self._hooks, stop_grace_period_secs
        )
        self._sess: Any
        if should_recover:
            self._sess = _RecoverableSession(self._coordinated_creator)
        else:
            self._sess = self._coordinated_creator.create_session()

    @property
    def graph(self) -> Graph | None:
        """The graph of the session, or None once it is closed."""
        sess = self._tf_sess()
        return None if sess is None else sess.graph

    def run(
        self,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """As `tf.Session.run`, with hooks."""
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn: Callable[[Any], Any]) -> Any:
        """Calls `step_fn(step_context)`, which may run several times with and without hooks.

        When a task is lost meanwhile it is called again. Returns its result.
        """
        arguments = [p.name for p in inspect.signature(step_fn).parameters.values()]
        if arguments != ["step_context"]:
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and `step_context` arguments if "
                f"it's an instance method. Got {arguments} instead."
            )
        return self._sess.run_step_fn(step_fn, self._tf_sess(), run_with_hooks=None)

    def should_stop(self) -> bool:
        """Whether to leave the training loop."""
        return self._sess is None or notice.received() or self._sess.should_stop()

    def close(self) -> None:
        """Calls the hooks' `end`, stops the threads and closes the session."""
        self._close_internal()

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if exception_type in (errors.OutOfRangeError, StopIteration):  # the data came to its end
            exception_type = None
        self._close_internal(exception_type)
        return exception_type is None

    def _end_hooks(self, session: BaseSession) -> None:
        """Ends all hooks. One that finds no room on its disk does not keep the next from saving on another."""
        full: errors.ResourceExhaustedError | None = None
        for hook in self._hooks:
            try:
                hook.end(session)
            except errors.ResourceExhaustedError as e:
                full = full or e
        if full is not None:
            raise full

    def _close_internal(self, exception_type: type[BaseException] | None = None) -> None:
        creator = self._coordinated_creator
        try:
            # After an error the state may be half of a step, so hooks do not save it. The session is closed in any case.
            if not exception_type:
                self._end_hooks(creator.tf_sess)
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = creator.tf_sess = creator.coord = None
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()

    def _is_closed(self) -> bool:
        return self._coordinated_creator.tf_sess is None

    def _tf_sess(self) -> Any:
        return self._coordinated_creator.tf_sess


@export("train.MonitoredSession", "python.training.monitored_session.MonitoredSession")
class MonitoredSession(_MonitoredSession):
    """A session with hooks that starts again, from the last checkpoint, when a task was lost.

    Used as `with tf.train.MonitoredSession(...) as sess: while not sess.should_stop(): sess.run(...)`.
    OutOfRangeError, the end of the input, leaves the block quietly.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


@export("train.SingularMonitoredSession", "python.training.monitored_session.SingularMonitoredSession")
class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks that lets the error of a lost task through, and can be saved: `raw_session()`."""

    def __init__(
        self,
        hooks: Iterable[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: PathLike | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: PathLike | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> BaseSession:
        """The `tf.Session` inside; runs on it call no hooks."""
        session: BaseSession = self._tf_sess()
        return session


@export("train.MonitoredTrainingSession", "python.training.monitored_session.MonitoredTrainingSession")
def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: PathLike | None = None,
    scaffold: Scaffold | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
    chief_only_hooks: Iterable[SessionRunHook] | None = None,
    save_checkpoint_secs: float | object | None = USE_DEFAULT,
    save_summaries_steps: float | object | None = USE_DEFAULT,
    save_summaries_secs: float | object | None = USE_DEFAULT,
    config: ConfigProto | None = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: float | object | None = USE_DEFAULT,
    summary_dir: PathLike | None = None,
) -> MonitoredSession:
    """A `MonitoredSession` for training.

    The chief initializes or restores the variables, and with `checkpoint_dir` saves checkpoints (every 600
    seconds), summaries (every 100 steps) and its speed there. The others wait until it has done its part.
    """
    scaffold = scaffold or Scaffold()
    worker = get_current_worker_context()
    if worker is not None:
        # Under a distribution strategy every worker makes a session of its own; the strategy knows who saves.
        is_chief = True
        chief_only_hooks = chief_only_hooks if worker.is_chief else None
    if not is_chief:
        return MonitoredSession(
            _workers_creator(scaffold, master, config, checkpoint_dir, max_wait_secs),
            hooks or [],
            stop_grace_period_secs,
        )
    all_hooks = list(chief_only_hooks or [])
    summaries = _one_of(save_summaries_secs, save_summaries_steps, default=(None, 100))
    checkpoints = _one_of(save_checkpoint_secs, save_checkpoint_steps, default=(600, None))
    chief: SessionCreator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    summary_dir = summary_dir or checkpoint_dir
    if worker is not None:
        chief = worker.session_creator(scaffold, config, checkpoint_dir, max_wait_secs=max_wait_secs)
        summary_dir = worker.folder(summary_dir, worker.should_save_summary)
        checkpoint_dir = worker.folder(checkpoint_dir, worker.should_checkpoint)
        if not worker.should_save_summary:
            log_step_count_steps = None
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(StepCounterHook(output_dir=summary_dir, every_n_steps=log_step_count_steps))
        if any(n and n > 0 for n in summaries):
            secs, steps = summaries
            all_hooks.append(
                SummarySaverHook(scaffold=scaffold, save_steps=steps, save_secs=secs, output_dir=summary_dir)
            )
    if checkpoint_dir and any(n and n > 0 for n in checkpoints):
        secs, steps = checkpoints
        all_hooks.append(
            CheckpointSaverHook(checkpoint_dir, save_secs=secs, save_steps=steps, scaffold=scaffold)
        )
    # The caller's hooks come last, as in TensorFlow: they see the checkpoint of the same step.
    return MonitoredSession(chief, all_hooks + list(hooks or []), stop_grace_period_secs)


def _workers_creator(
    scaffold: Scaffold, master: str, config: ConfigProto | None, folder: PathLike | None, max_wait_secs: float
) -> SessionCreator:
    """The session creator of a worker that is not the chief. One with copies of all variables initializes its own."""
    # Each worker of MultiWorkerMirroredStrategy has copies of its own, which nobody else initializes.
    workers = get_default_graph().__dict__.get("_of_workers")
    if workers is not None and workers._num_workers > 1:
        return ChiefSessionCreator(scaffold, master, config, folder)
    return WorkerSessionCreator(scaffold, master, config, max_wait_secs)


def _one_of(secs: object, steps: object, default: tuple[float | None, float | None]) -> tuple[Any, Any]:
    """Seconds and steps as given; the default when neither is."""
    if secs is USE_DEFAULT and steps is USE_DEFAULT:
        return default
    return (None if secs is USE_DEFAULT else secs), (None if steps is USE_DEFAULT else steps)
