"""`tf.train.SessionRunHook`: calls around every `run` of a monitored session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly

if TYPE_CHECKING:
    from tensorfleet.api.train.coordinator import Coordinator
    from tensorfleet.api.train.types import FeedDict, Fetches
    from tensorfleet.base.protos import RunMetadata, RunOptions
    from tensorfleet.session.session import BaseSession


@export("train.SessionRunHook", "estimator.SessionRunHook", "python.training.session_run_hook.SessionRunHook")
class SessionRunHook:
    """The base of hooks. Override the methods you need; those here do nothing.

    The order of calls: `begin`, `after_create_session` (again after each recovery), then `before_run` and
    `after_run` around every run, and `end` unless an error ended the training.
    """

    def begin(self) -> None:
        """Called once, before the graph is finalized: operations may be added here."""

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        """Called with every new `tf.Session`, its variables initialized and its queue runners started."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; a `SessionRunArgs` that is returned adds fetches and feeds to it."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that raised no error, with the values that `before_run` asked for."""

    def end(self, session: BaseSession) -> None:
        """Called with the `tf.Session` when training ends without an error."""


@export("train.SessionRunArgs", "estimator.SessionRunArgs", "python.training.session_run_hook.SessionRunArgs")
class SessionRunArgs(NamedTuple):
    """The arguments of a run: fetches in any nesting, feeds, and `tf.RunOptions`."""

    fetches: Fetches
    feed_dict: FeedDict | None = None
    options: RunOptions | None = None


@export(
    "train.SessionRunValues",
    "estimator.SessionRunValues",
    "python.training.session_run_hook.SessionRunValues",
)
class SessionRunValues(NamedTuple):
    """The results of a run: those of a hook's fetches in the same nesting, the options, the metadata."""

    results: Any
    options: RunOptions
    run_metadata: RunMetadata


@export(
    "train.SessionRunContext",
    "estimator.SessionRunContext",
    "python.training.session_run_hook.SessionRunContext",
)
class SessionRunContext:
    """One call of `run`, for the hooks: its arguments, its session, and the way to end the training."""

    __slots__ = ("_original_args", "_session", "_stop_requested")

    def __init__(self, original_args: SessionRunArgs, session: BaseSession) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    original_args: SessionRunArgs = readonly(
        "_original_args", "The arguments that the program gave to `run`."
    )
    session: BaseSession = readonly("_session", "The `tf.Session`; runs on it do not call hooks.")
    stop_requested: bool = readonly("_stop_requested", "Whether somebody called `request_stop`.")

    def request_stop(self) -> None:
        """Ends the training: `should_stop()` is true after this run."""
        self._stop_requested = True
