"""`tf.train.SessionManager`: a session whose variables have values, by restoring, initializing or waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.train.checkpoint_state import get_checkpoint_state
from tensorfleet.api.train.live_state import LiveState
from tensorfleet.base import errors, logging
from tensorfleet.base.naming import export, publish
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.session.session import Session

if TYPE_CHECKING:
    from tensorfleet.api.train.saver import Saver
    from tensorfleet.api.train.types import AnySession, FeedDict, Fetches, PathLike
    from tensorfleet.base.protos import ConfigProto, RunOptions

# TensorFlow looks every 30 seconds. A look is one small run; with two per second workers start with the
# chief.
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.1, 0.5


@export("train.SessionManager", "python.training.session_manager.SessionManager")
class SessionManager:
    """Makes sessions that are ready to train: the chief restores or initializes, the others wait for it.

    `ready_op` gives the names of variables without a value; the model is ready when there is none.
    `local_init_op` runs in every new session, once `ready_for_local_init_op` gives no name.
    Waiting looks again after 0.1 seconds, later twice per second; `recovery_wait_secs` is the time between log lines.
    """

    def __init__(
        self,
        local_init_op: Fetches = None,
        ready_op: Fetches = None,
        ready_for_local_init_op: Fetches = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: RunOptions | None = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , "
                f"ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph if graph is not None else get_default_graph()
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._target: str | None = None
        # Local variables are new in each session: only global ones tell whether servers still have their
        # state.
        of_globals = ready_op if ready_for_local_init_op is None else ready_for_local_init_op
        self._live = LiveState(self._graph, of_globals)

    def prepare_session(
        self,
        master: str,
        init_op: Fetches = None,
        saver: Saver | None = None,
        checkpoint_dir: PathLike | None = None,
        checkpoint_filename_with_path: PathLike | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
        init_feed_dict: FeedDict | None = None,
        init_fn: Callable[[Session], Any] | None = None,
    ) -> Session:
        """A session restored from the latest checkpoint, or else initialized by `init_op` and `init_fn(sess)`.

        Servers keep the variables that they have when all have a value and their global step is not behind the
        checkpoint's; also without a checkpoint, when an earlier session of this manager has made them ready.
        """
        sess, restored = self._restore_checkpoint(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        if not restored and not self._live.survives(sess):
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError(
                    "Model is not initialized and no init_op or init_fn or local_init_op was given"
                )
            if init_op is not None:
                sess.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(sess)
        init_text = (
            f"Init op: {_name(init_op)}, init fn: {init_fn}, local_init op: {_name(self._local_init_op)}"
        )
        done, missing = self._try_run_local_init_op(sess)
        if not done:
            raise RuntimeError(
                f"Init operations did not make model ready for local_init.  {init_text}, error: {missing}"
            )
        done, missing = self._model_ready(sess)
        if not done:
            raise RuntimeError(f"Init operations did not make model ready.  {init_text}, error: {missing}")
        # From here on the servers have the state of this training, which a later session may keep.
        self._live.note(sess)
        return sess

    def recover_session(
        self,
        master: str,
        saver: Saver | None = None,
        checkpoint_dir: PathLike | None = None,
        checkpoint_filename_with_path: PathLike | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
    ) -> tuple[Session, bool]:
        """A session, restored if that can be done, and whether that made the model ready."""
        sess, restored = self._restore_checkpoint(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        done, missing = self._try_run_local_init_op(sess)
        if not restored:
            return sess, False
        source = checkpoint_dir or checkpoint_filename_with_path
        if not done:
            logging.info(
                "Restoring model from %s did not make model ready for local init: %s", source, missing
            )
            return sess, False
        done, missing = self._model_ready(sess)
        if not done:
            logging.info("Restoring model from %s did not make model ready: %s", source, missing)
            return sess, False
        logging.info("Restored model from %s", source)
        return sess, True

    def wait_for_session(
        self, master: str, config: ConfigProto | None = None, max_wait_secs: float | None = float("Inf")
    ) -> Session:
        """A session whose model another task, usually the chief, has made ready.

        DeadlineExceededError when that did not happen within `max_wait_secs`.
        """
        self._target = master
        wait = _PollingWait(max_wait_secs)
        sess = None
        local_done = False
        while True:
            for_local = missing = None
            try:
                if sess is None:
                    sess = Session(master, graph=self._graph, config=config)
                    local_done = False
                if not local_done:
                    local_done, for_local = self._try_run_local_init_op(sess)
                done, missing = self._model_ready(sess) if local_done else (False, None)
                if done:
                    return sess
            except errors.UnavailableError as e:  # a task that has not started yet, or restarts
                missing = e.message
                _close(sess)
                sess = None
            except BaseException:
                _close(sess)
                raise
            if not wait.pause():
                _close(sess)
                raise errors.DeadlineExceededError(
                    None,
                    None,
                    f"Session was not ready after waiting {wait.limit:.0f} secs. {for_local or missing}. Is the "
                    "chief running? It initializes or restores the variables.",
                )
            if wait.log_due_after(self._recovery_wait_secs):
                logging.info(
                    "Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s",
                    for_local,
                    missing,
                )

    def _restore_checkpoint(
        self,
        master: str,
        saver: Saver | None = None,
        checkpoint_dir: PathLike | None = None,
        checkpoint_filename_with_path: PathLike | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
    ) -> tuple[Session, bool]:
        """A new session, and whether its variables come from a checkpoint."""
        self._target = master
        if checkpoint_dir and checkpoint_filename_with_path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        sess = Session(master, graph=self._graph, config=config)
        if not saver:
            return sess, False
        if checkpoint_filename_with_path:
            if not self._live.replaces_file(sess, checkpoint_filename_with_path):
                saver.restore(sess, checkpoint_filename_with_path)
            return sess, True
        if not checkpoint_dir:
            return sess, False
        wait = _PollingWait(max_wait_secs)
        state = get_checkpoint_state(checkpoint_dir)
        while state is None:
            if not wait_for_checkpoint or not wait.pause():
                return sess, False
            if wait.log_due_after(self._recovery_wait_secs):
                logging.info("Waiting for checkpoint to be available.")
            state = get_checkpoint_state(checkpoint_dir)
        if not self._live.replaces(sess, state.model_checkpoint_path):
            saver.restore(sess, state.model_checkpoint_path)
        # Otherwise the checkpoints of the run before would never be deleted.
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return sess, True

    def _model_ready(self, sess: Session) -> tuple[bool, str | None]:
        return ready(self._ready_op, sess, "Model not ready")

    def _model_not_ready(self, sess: Session) -> str | None:
        """The missing variables as text, or None. Supervisors of scripts from before 0.12 call this."""
        return self._model_ready(sess)[1]

    def _model_ready_for_local_init(self, sess: Session) -> tuple[bool, str | None]:
        return ready(self._ready_for_local_init_op, sess, "Model not ready for local init")

    def _try_run_local_init_op(self, sess: Session) -> tuple[bool, str | None]:
        """Runs the local initialization when the model is ready for it."""
        if self._local_init_op is None:
            return True, None
        done, missing = self._model_ready_for_local_init(sess)
        if not done:
            return False, missing
        logging.info("Running local_init_op.")
        sess.run(self._local_init_op, options=self._local_init_run_options)
        logging.info("Done running local_init_op.")
        return True, None


def ready(op: Fetches, sess: AnySession, msg: str) -> tuple[bool, str | None]:
    """Whether `op` finds nothing missing; if not, a text that names the missing variables."""
    if op is None:
        return True, None
    try:
        missing = sess.run(op)
    except errors.FailedPreconditionError as e:
        if "uninitialized" not in str(e):
            logging.warning("%s : error [%s]", msg, e)
            raise
        return False, str(e)
    # Old programs pass an operation that fails unless all is well, and otherwise gives numbers or nothing.
    if missing is None or missing.dtype == np.int32 or missing.size == 0:
        return True, None
    return False, "Variables not initialized: " + ", ".join(name.decode() for name in missing)


class _PollingWait:
    """Pauses between looking, short at first; ends when a limit is reached."""

    def __init__(self, limit: float | None) -> None:
        self.limit = float("inf") if limit is None else limit
        self._end = time.monotonic() + self.limit
        self._next = _FIRST_PAUSE_SECONDS
        self._last_logged = float("-inf")

    def pause(self) -> bool:
        """Sleeps; False when no time is left for that."""
        left = self._end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(self._next, left))
        self._next = min(self._next * 1.5, _MAX_PAUSE_SECONDS)
        return True

    def log_due_after(self, seconds: float) -> bool:
        """Whether the last log line is that old; the caller writes one now if it is."""
        now = time.monotonic()
        if now < self._last_logged + seconds:
            return False
        self._last_logged = now
        return True


def _name(op: Fetches) -> str:
    return op.name if isinstance(op, Operation) else str(op)


def _close(sess: Session | None) -> None:
    """Closes a session that is not needed, and ignores errors of closing."""
    try:
        if sess is not None:
            sess.close()
    except errors.OpError:
        pass


publish(ready, "python.training.session_manager._ready")
