"""Evaluating checkpoints while another process trains: `tf.train.checkpoints_iterator`, `tf.contrib.training.evaluate_once`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tensorfleet.api.summary.summary import merge_all
from tensorfleet.api.summary.writer import FileWriter, FileWriterCache
from tensorfleet.api.train.checkpoint_state import latest_checkpoint
from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.hooks import FinalOpsHook
from tensorfleet.api.train.monitored_session import ChiefSessionCreator, MonitoredSession
from tensorfleet.api.train.scaffold import Scaffold
from tensorfleet.api.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.api.variables.scope import get_variable
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_collection

if TYPE_CHECKING:
    from tensorfleet.api.train.types import FeedDict, Fetches
    from tensorfleet.api.variables.variable import Variable
    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.session.session import BaseSession

_PRIVATE = "python.training.evaluation._"
_CONTRIB = "contrib.training."
# TensorFlow's default.
_POLL_SECONDS = 1.0  # seconds between looks for a new checkpoint


def _names(name: str) -> list[str]:
    return [_CONTRIB + name, _PRIVATE + name, f"{_CONTRIB}python.training.evaluation.{name}"]


_WAIT = ("wait_for_new_checkpoint", "python.training.checkpoint_utils.wait_for_new_checkpoint")
_ITERATE = ("checkpoints_iterator", "python.training.checkpoint_utils.checkpoints_iterator")


@export(f"{_CONTRIB}{_WAIT[0]}", _WAIT[1], f"{_CONTRIB}python.training.evaluation.{_WAIT[0]}")
def wait_for_new_checkpoint(
    checkpoint_dir: str,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = _POLL_SECONDS,
    timeout: float | None = None,
) -> str | None:
    """The path of the latest checkpoint once there is one that is not `last_checkpoint`; None after `timeout` seconds."""
    logging.info("Waiting for new checkpoint at %s", checkpoint_dir)
    deadline = None if timeout is None else time.time() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            logging.info("Found new checkpoint at %s", path)
            return path
        if deadline is not None and time.time() + seconds_to_sleep > deadline:
            return None
        time.sleep(seconds_to_sleep)


@export(f"train.{_ITERATE[0]}", f"{_CONTRIB}{_ITERATE[0]}", _ITERATE[1])
def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The path of each new checkpoint of a folder, at most one per `min_interval_secs`.

    Ends when none came for `timeout` seconds, unless `timeout_fn` is given and returns False.
    """
    last = None
    while True:
        path = wait_for_new_checkpoint(checkpoint_dir, last, timeout=timeout)
        if path is None:
            # Without a function to ask, one timeout is the end.
            if timeout_fn is None:
                logging.info("Timed-out waiting for a checkpoint.")
                return
            if timeout_fn():
                return
            continue
        began = time.time()
        last = path
        yield path
        wait = began + min_interval_secs - time.time()
        if wait > 0:
            time.sleep(wait)


@export(*_names("get_or_create_eval_step"))
def get_or_create_eval_step() -> Variable:
    """The variable that counts the steps of an evaluation."""
    steps: list[Variable] = get_collection(GraphKeys.EVAL_STEP)
    if len(steps) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if steps:
        return steps[0]
    step: Variable = get_variable(
        "eval_step",
        shape=[],
        dtype=dtypes.int64,
        initializer=Zeros(),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )
    return step


@export(*_names("StopAfterNEvalsHook"))
class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after `num_evals` steps; never, with None."""

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._log_progress = log_progress
        self._evals_completed: Tensor | None = None
        # About ten lines per evaluation, and every step of a short one.
        self._log_every = 1 if num_evals is None or num_evals < 20 else math.floor(num_evals / 10)

    def _set_evals_completed_tensor(self, updated_eval_step: Tensor) -> None:
        self._evals_completed = updated_eval_step

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the number of steps so far."""
        return SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Ends the evaluation when it has had enough steps."""
        done = run_values.results["evals_completed"]
        if self._log_progress and (done % self._log_every == 0 or done == self._num_evals):
            logging.info("Evaluation [%d%s]", done, "" if self._num_evals is None else f"/{self._num_evals}")
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


@export(*_names("SummaryAtEndHook"))
class SummaryAtEndHook(SessionRunHook):
    """Writes the summaries when an evaluation ends."""

    def __init__(
        self,
        log_dir: str | None = None,
        summary_writer: FileWriter | None = None,
        summary_op: Tensor | None = None,
        feed_dict: FeedDict | None = None,
    ) -> None:
        if (log_dir is None) == (summary_writer is None):
            raise ValueError("exactly one of log_dir or summary_writer should be provided.")
        self._log_dir = log_dir
        self._writer: Any = summary_writer
        self._summary_op = summary_op
        self._feed_dict = feed_dict

    def begin(self) -> None:
        """Looks for the summaries of the graph."""
        if self._log_dir is not None:
            self._writer = FileWriterCache.get(self._log_dir)
        if self._summary_op is None:
            self._summary_op = merge_all()
        self._global_step = get_global_step()

    def end(self, session: BaseSession) -> None:
        """Writes them."""
        if self._summary_op is not None:
            step = 0 if self._global_step is None else session.run(self._global_step)
            self._writer.add_summary(session.run(self._summary_op, self._feed_dict), step)
        self._writer.flush()


def _counting(eval_ops: Fetches, step: Variable) -> tuple[Any, Any]:
    """The operations of a step together with one that counts it, and the number after it."""
    updated = step.assign_add(1, use_locking=True)
    if isinstance(eval_ops, dict):
        return {**eval_ops, "update_eval_step": updated}, updated
    if isinstance(eval_ops, (tuple, list)):
        return [*eval_ops, updated], updated
    return ([updated] if eval_ops is None else [eval_ops, updated]), updated


@export(*_names("evaluate_once"))
def evaluate_once(
    checkpoint_path: str,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Fetches = None,
    feed_dict: FeedDict | None = None,
    final_ops: Fetches = None,
    final_ops_feed_dict: FeedDict | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
    config: ConfigProto | None = None,
) -> Any:
    """Evaluates the default graph with the variables of one checkpoint; gives the values of `final_ops` at the end.

    `eval_ops` are run until a hook, such as `StopAfterNEvalsHook`, or the end of the input stops it; without them only
    `final_ops` are run.
    """
    evaluation = Evaluation(scaffold or Scaffold(), eval_ops, final_ops, final_ops_feed_dict, hooks)
    logging.info("Starting evaluation of %s", checkpoint_path)
    values = evaluation.run(checkpoint_path, master, feed_dict, config)
    logging.info("Finished evaluation of %s", checkpoint_path)
    return values


@export(f"{_CONTRIB}evaluate_repeatedly", f"{_CONTRIB}python.training.evaluation.evaluate_repeatedly")
def evaluate_repeatedly(
    checkpoint_dir: str,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Fetches = None,
    feed_dict: FeedDict | None = None,
    final_ops: Fetches = None,
    final_ops_feed_dict: FeedDict | None = None,
    eval_interval_secs: float = 60,
    hooks: Iterable[SessionRunHook] | None = None,
    config: ConfigProto | None = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:
    """`evaluate_once` for each new checkpoint of a folder; gives the values of the last evaluation."""
    evaluation = Evaluation(scaffold or Scaffold(), eval_ops, final_ops, final_ops_feed_dict, hooks)
    values = None
    for i, path in enumerate(checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)):
        values = evaluation.run(path, master, feed_dict, config)
        if max_number_of_evaluations is not None and i + 1 >= max_number_of_evaluations:
            break
    return values


class Evaluation:
    """The operations of all evaluations of one graph, built once."""

    def __init__(
        self,
        scaffold: Scaffold,
        eval_ops: Fetches,
        final_ops: Fetches,
        final_feed: FeedDict | None,
        hooks: Iterable[SessionRunHook] | None,
    ) -> None:
        step = get_or_create_eval_step()
        self._scaffold = scaffold
        self._ops = eval_ops
        self._hooks = list(hooks or ())
        if eval_ops is not None:
            self._ops, updated = _counting(eval_ops, step)
            now = apply("Identity", updated)
            for hook in self._hooks:
                if isinstance(hook, StopAfterNEvalsHook):
                    hook._set_evals_completed_tensor(now)
        self._final = FinalOpsHook(final_ops, final_feed)

    def run(
        self, path: str | None, master: str, feed_dict: FeedDict | None, config: ConfigProto | None
    ) -> Any:
        """Evaluates one checkpoint."""
        creator = ChiefSessionCreator(
            scaffold=self._scaffold, checkpoint_filename_with_path=path, master=master, config=config
        )
        with MonitoredSession(session_creator=creator, hooks=[*self._hooks, self._final]) as session:
            if self._ops is not None:
                while not session.should_stop():
                    session.run(self._ops, feed_dict)
        return self._final.final_ops_values
