"""Hooks that end a training early: `tf.estimator.experimental.stop_if_no_decrease_hook` and its relatives."""

from __future__ import annotations

import glob
import operator
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.hooks import SecondOrStepTimer
from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.base import dtypes, errors, logging
from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.naming import find
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.estimator.estimator_export import for_checkpoints, global_step_in


def make_early_stopping_hook(
    estimator: Estimator,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook by which the chief ends the training of all workers once `should_stop_fn()` says so.

    It is asked every `run_every_secs` seconds, or every `run_every_steps` steps with `run_every_secs=None`. An evaluator
    that is a task of its own is not told, and goes on looking for checkpoints.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if estimator.config.is_chief:
        return _AsksHook(should_stop_fn, SecondOrStepTimer(run_every_secs, run_every_steps))
    return _FollowsHook()


def _stop_variable() -> Any:
    """Whether to stop: a variable that all workers share."""
    with find("variable_scope")("signal_early_stopping", values=[], reuse=find("AUTO_REUSE")):
        return find("get_variable")(
            "STOP",
            [],
            dtypes.bool_,
            initializer=find("constant_initializer")(False),
            collections=[GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _AsksHook(SessionRunHook):
    """Asks whether to stop, and tells the others."""

    def __init__(self, should_stop_fn: Callable[[], bool], timer: SecondOrStepTimer) -> None:
        self._should_stop_fn = should_stop_fn
        self._timer = timer

    def begin(self) -> None:
        self._step = get_global_step()
        self._stop_op = find("assign")(_stop_variable(), True)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = run_values.results
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop_fn():
                logging.info("Requesting early stopping at global step %d", step)
                run_context.session.run(self._stop_op)
                run_context.request_stop()


class _FollowsHook(SessionRunHook):
    """Stops when the chief has said so."""

    def begin(self) -> None:
        self._stop = _stop_variable()

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._stop)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results:
            logging.info("Early stopping requested, suspending run.")
            run_context.request_stop()


def evaluations(folder: str) -> dict[int, dict[str, float]]:
    """The metrics that evaluations have written to a folder, by global step."""
    by_name: dict[int, dict[str, float]] = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.tfevents.*"))):
        try:
            for event in find("train.summary_iterator")(path):
                values = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")}
                if values:
                    by_name.setdefault(event.step, {}).update(values)
        except errors.DataLossError as e:
            logging.warning("The rest of %s is not read: %s", path, e)
    return dict(sorted(by_name.items()))


def _beyond(better: Callable[[float, float], bool]) -> Callable[..., bool]:
    def decide(metric: str, values: Iterator[tuple[int, float]], threshold: float) -> bool:
        for step, value in values:
            if better(value, threshold):
                logging.info("At step %s %s is %s: stopping early.", step, metric, value)
                return True
        return False

    return decide


def _without_improvement(better: Callable[[float, float], bool]) -> Callable[..., bool]:
    def decide(metric: str, values: Iterator[tuple[int, float]], patience: int) -> bool:
        best: tuple[float, int] | None = None
        for step, value in values:
            if best is None or better(value, best[0]):
                best = value, step
            if step - best[1] >= patience:
                logging.info("%s has not improved for %s steps: stopping early.", metric, step - best[1])
                return True
        return False

    return decide


def _hook(name: str, limit: str, decide: Callable[..., bool], does: str) -> Callable[..., SessionRunHook]:
    """A function that makes a hook; `decide(metric, its value at each step, the limit)` says when to stop."""
    signature = signature_of(
        f"estimator, metric_name, {limit}, eval_dir=None, min_steps=0, run_every_secs=60, run_every_steps=None"
    )

    def make(given: dict[str, Any]) -> SessionRunHook:
        estimator, metric = given["estimator"], given["metric_name"]

        def should_stop() -> bool:
            result = evaluations(given["eval_dir"] or estimator.eval_dir())
            late = ((step, result[step][metric]) for step in result if step >= given["min_steps"])
            return decide(metric, late, given[limit])

        return make_early_stopping_hook(
            estimator, should_stop, given["run_every_secs"], given["run_every_steps"]
        )

    return function(signature, name, make, does)


stop_if_higher_hook = _hook(
    "stop_if_higher_hook",
    "threshold",
    _beyond(operator.gt),
    "Ends the training once an evaluation has found the metric above the threshold.",
)
stop_if_lower_hook = _hook(
    "stop_if_lower_hook",
    "threshold",
    _beyond(operator.lt),
    "Ends the training once an evaluation has found the metric below the threshold.",
)
stop_if_no_increase_hook = _hook(
    "stop_if_no_increase_hook",
    "max_steps_without_increase",
    _without_improvement(operator.gt),
    "Ends the training when evaluations of so many steps have found no higher metric.",
)
stop_if_no_decrease_hook = _hook(
    "stop_if_no_decrease_hook",
    "max_steps_without_decrease",
    _without_improvement(operator.lt),
    "Ends the training when evaluations of so many steps have found no lower metric.",
)


class _StopAtCheckpointStepHook(SessionRunHook):
    """Waits, at the last step, until the checkpoint of it is there."""

    def __init__(self, folder: str, last_step: int, wait_secs: float) -> None:
        self._folder = folder
        self._last_step = last_step
        self._wait_secs = wait_secs

    def begin(self) -> None:
        self._step = get_global_step()

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results + 1 < self._last_step:
            return
        if run_context.session.run(self._step) < self._last_step:
            return
        run_context.request_stop()
        patience = for_checkpoints()
        while (saved := global_step_in(self._folder)) < self._last_step:
            patience.look(saved, f"the checkpoint of step {self._last_step} in {self._folder}")
            logging.info("Waiting for the checkpoint of step %d.", self._last_step)
            time.sleep(self._wait_secs)


def make_stop_at_checkpoint_step_hook(
    estimator: Estimator, last_step: int, wait_after_file_check_secs: float = 30
) -> SessionRunHook:
    """A hook that ends the training at a step; workers wait until the chief has saved it, so that none starts anew."""
    if estimator.config.is_chief:
        return find("train.StopAtStepHook")(last_step=last_step)
    return _StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)
