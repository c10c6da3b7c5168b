"""The layers of a monitored session, from the inside out.

Session              runs the graph
_HookedSession       calls hooks before and after each run
_CoordinatedSession  ends together with the threads of a Coordinator
_RecoverableSession  makes all of the above anew when a task was lost
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.coordinator import Coordinator
from tensorfleet.api.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tensorfleet.api.train.waiting import StallTimer
from tensorfleet.base import errors, logging, settings
from tensorfleet.base.naming import export, publish
from tensorfleet.base.properties import readonly
from tensorfleet.base.run_status import count_run

if TYPE_CHECKING:
    from tensorfleet.api.train.types import FeedDict, Fetches
    from tensorfleet.base.protos import RunMetadata, RunOptions
    from tensorfleet.session.session import BaseSession

# A task went away; its replacement continues from the last checkpoint.
PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)
_SESSION_LOST = (
    "An error was raised. This may be due to a preemption in a connected worker or parameter server. The current "
    "session will be closed and a new session will be created. If this error occurs repeatedly, look at the logs "
    "of the tasks it names. Error: %s"
)
_SESSION_NOT_CREATED = (
    "An error was raised while a session was being created. This may be due to a preemption of a connected worker or "
    "parameter server. A new session will be created. Error: %s"
)
publish(PREEMPTION_ERRORS, "python.training.monitored_session._PREEMPTION_ERRORS")


class StepContext:
    """The argument of a `step_fn`: the session, a run with hooks, and the way to end the training."""

    def __init__(self, session: BaseSession, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn

    session: BaseSession = readonly("_session", "The `tf.Session`; runs on it call no hooks.")

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """As `MonitoredSession.run`."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the training: leaves the `step_fn` with StopIteration, and `should_stop()` is true."""
        raise StopIteration("step_fn has requested the iterations to stop.")


@export("python.training.monitored_session._WrappedSession")
class _WrappedSession:
    """A session around another one, which may be stopped."""

    def __init__(self, sess: Any) -> None:
        self._sess = sess
        # The innermost layer is a plain session, which has no `should_stop`.
        self._wrapped_is_stoppable = isinstance(sess, _WrappedSession)

    graph: Any = readonly("_sess.graph", "The graph it runs.")

    @property
    def sess_str(self) -> str:
        """Its target."""
        target: str = self._sess.sess_str
        return target

    def should_stop(self) -> bool:
        """Whether this session or one inside has come to its end."""
        if self._check_stop() or not self._sess:
            return True
        return self._wrapped_is_stoppable and self._sess.should_stop()

    def _check_stop(self) -> bool:
        """Whether this layer wants to stop."""
        return False

    def close(self) -> None:
        """Closes the session inside."""
        if self._sess:
            try:
                self._sess.close()
            except PREEMPTION_ERRORS as e:
                logging.warning(
                    "An error occurred when attempting to close the session. This may be due to a preemption in a "
                    "connected worker or parameter server. Error: %s",
                    e,
                )
            finally:
                self._sess = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs in the session inside."""
        return self._sess.run(*args, **kwargs)

    def run_step_fn(
        self,
        step_fn: Callable[[StepContext], Any],
        raw_session: BaseSession,
        run_with_hooks: Callable[..., Any] | None,
    ) -> Any:
        """Calls `step_fn` with a context."""
        return step_fn(StepContext(raw_session, run_with_hooks or self.run))


@export("python.training.monitored_session._RecoverableSession")
class _RecoverableSession(_WrappedSession):
    """Makes a new session and runs again whenever a task was lost.

    DeadlineExceededError when no run has succeeded for a day of that, or for `TENSORFLEET_RECOVERY_SECONDS`.
    """

    def __init__(self, sess_creator: Any) -> None:
        self._sess_creator = sess_creator
        self._stall_timer: StallTimer | None = None  # since the first loss after a run that succeeded
        super().__init__(self._create_session())

    def _create_session(self) -> Any:
        while True:
            try:
                return self._sess_creator.create_session()
            except PREEMPTION_ERRORS as e:
                self._note_loss(_SESSION_NOT_CREATED, e)

    def _note_loss(self, text: str, error: errors.OpError) -> None:
        """Logs a lost task, at first and then now and again; raises when losses do not end."""
        if self._stall_timer is None:
            logging.info(text, error)
            self._stall_timer = StallTimer(settings.RECOVERY_SECONDS, "Check the task that the error names")
            return
        self._stall_timer.look(None, f"a session that can run; the last error was: {error.message}")
        self._stall_timer.pause()

    def _check_stop(self) -> bool:
        try:
            # Errors of the coordinator's threads come out of `_check_stop`: a lost task among them is
            # recovered here, too.
            return self._sess._check_stop() if self._sess else True
        except PREEMPTION_ERRORS as e:
            self._lost(e)
            self._sess = self._create_session()
            return False
        except Exception:  # it comes out where the session is closed
            return True

    def run(
        self,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs, if need be several times, each time in a new session."""
        while True:
            try:
                if not self._sess:
                    self._sess = self._create_session()
                result = self._sess.run(
                    fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata
                )
                self._stall_timer = None
                return result
            except PREEMPTION_ERRORS as e:
                self._lost(e)

    def run_step_fn(
        self,
        step_fn: Callable[[StepContext], Any],
        raw_session: BaseSession,
        run_with_hooks: Callable[..., Any] | None,
    ) -> Any:
        """Calls `step_fn`, again with a new session when that was lost."""
        while True:
            try:
                if not self._sess:
                    self._sess = self._create_session()
                    # The caller's session is closed by now: `step_fn` has to run in the new one.
                    raw_session = _innermost(self._sess)
                result = self._sess.run_step_fn(step_fn, raw_session, self._sess.run)
                self._stall_timer = None
                return result
            except PREEMPTION_ERRORS as e:
                self._lost(e)

    def _lost(self, error: errors.OpError) -> None:
        # Closing stops the threads of the old session before new ones start on the same queues.
        self.close()
        self._sess = None
        self._note_loss(_SESSION_LOST, error)


def _innermost(sess: Any) -> Any:
    while isinstance(sess, _WrappedSession):
        sess = sess._sess
    return sess


@export("python.training.monitored_session._CoordinatedSession")
class _CoordinatedSession(_WrappedSession):
    """Stops when its Coordinator does, and stops the threads of that when it is closed."""

    def __init__(self, sess: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def _check_stop(self) -> bool:
        # An error in one of the threads comes out here.
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        """Waits for the threads, then closes the session inside."""
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            try:
                super().close()
            except Exception as e:
                logging.debug("Closing the session failed: %s", e)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs; the error of a thread that lost a task takes precedence over the error of this run."""
        try:
            return self._sess.run(*args, **kwargs)
        except PREEMPTION_ERRORS:
            raise
        except Exception as original:
            try:
                self._coord.raise_requested_exception()
            except PREEMPTION_ERRORS:
                raise
            except Exception:
                raise original from None
            raise


@export("python.training.monitored_session._HookedSession")
class _HookedSession(_WrappedSession):
    """Calls hooks around every run and adds their fetches."""

    def __init__(self, sess: Any, hooks: list[SessionRunHook]) -> None:
        super().__init__(sess)
        self._hooks = hooks
        self._should_stop = False

    def _check_stop(self) -> bool:
        return self._should_stop

    def run(
        self,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs with the fetches and feeds of all hooks."""
        if self._should_stop:
            raise RuntimeError("Run called even after should_stop requested.")
        # One run fetches for the caller and all hooks: hooks add fetches, not round trips.
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        asked = {"caller": fetches}
        feeds, wanted = self._ask(context, asked, feed_dict)
        if wanted:
            options = _merged(options, wanted)
        # Hooks that ask for tracing find the trace in their values, also when the caller wants no metadata.
        if options is not None and run_metadata is None:
            from tensorfleet.base.protos import RunMetadata

            run_metadata = RunMetadata()
        results = self._sess.run(asked, feed_dict=feeds, options=options, run_metadata=run_metadata)
        count_run()
        if options is None or run_metadata is None:
            options, run_metadata = _none_given(options, run_metadata)
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(results.get(hook), options, run_metadata))
        self._should_stop = self._should_stop or context.stop_requested
        return results["caller"]

    def _ask(
        self, context: SessionRunContext, asked: dict[Any, Any], feed_dict: FeedDict | None
    ) -> tuple[Any, list[RunOptions]]:
        """Calls `before_run` of all hooks; gives the feeds of the run and the options they want."""
        hook_feeds: dict[Any, Any] = {}
        wanted = []
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            if request.fetches is not None:
                asked[hook] = request.fetches
            if request.feed_dict:
                _refuse_common(hook_feeds, request.feed_dict, "Same tensor is fed by two hooks.")
                hook_feeds.update(request.feed_dict)
            if request.options:
                wanted.append(request.options)
        if not hook_feeds:
            return feed_dict, wanted
        if feed_dict:
            _refuse_common(feed_dict, hook_feeds, "Same tensor is fed by a SessionRunHook and user.")
            hook_feeds.update(feed_dict)
        return hook_feeds, wanted


def _refuse_common(feeds: FeedDict, others: FeedDict, message: str) -> None:
    common = [key for key in feeds if key in others]
    if common:
        raise RuntimeError(f"{message} Conflict(s): {common}")


def _merged(options: RunOptions | None, wanted: list[RunOptions]) -> RunOptions:
    """The options of a run and of its hooks in one: the most tracing, the longest time."""
    from tensorfleet.base.protos import RunOptions

    merged = RunOptions()
    for one in [options, *wanted] if options is not None else wanted:
        # Each field is merged as TensorFlow does it; `MergeFrom` would let the last hook win.
        merged.trace_level = max(merged.trace_level, one.trace_level)
        merged.timeout_in_ms = max(merged.timeout_in_ms, one.timeout_in_ms)
        merged.inter_op_thread_pool = max(merged.inter_op_thread_pool, one.inter_op_thread_pool)
        merged.output_partition_graphs |= one.output_partition_graphs
        merged.report_tensor_allocations_upon_oom |= one.report_tensor_allocations_upon_oom
        if one.HasField("debug_options"):
            merged.debug_options.MergeFrom(one.debug_options)
    return merged


def _none_given(options: RunOptions | None, run_metadata: RunMetadata | None) -> tuple[Any, Any]:
    """Empty messages for hooks in place of options and metadata that nobody gave."""
    # Made once, at the first run: hooks get them after every run, and messages are slow to make.
    global _EMPTY
    if _EMPTY is None:
        from tensorfleet.base.protos import RunMetadata, RunOptions

        _EMPTY = RunOptions(), RunMetadata()
    return options or _EMPTY[0], run_metadata or _EMPTY[1]


_EMPTY: tuple[Any, Any] | None = None
