"""Hooks that watch a training: they stop it, log values, feed values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tensorfleet.api.train.waiting import step_stall_timer
from tensorfleet.base import counters, errors, logging
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import add_to_collection, get_collection, get_default_graph, name_scope

if TYPE_CHECKING:
    from tensorfleet.api.train.coordinator import Coordinator
    from tensorfleet.api.train.types import FeedDict, Fetches
    from tensorfleet.session.session import BaseSession

STEP_READ = "global_step_read_op_cache"


def _names(name: str) -> list[str]:
    """Where TensorFlow publishes a hook."""
    return [f"train.{name}", f"estimator.{name}", f"python.training.basic_session_run_hooks.{name}"]


def step_for(hook: str) -> Tensor:
    """A copy of the global step, which this hook cannot do without, usually from before a run increases it."""
    copies: list[Tensor] = get_collection(STEP_READ)
    if copies:
        return copies[0]
    step = get_global_step()
    if step is None:
        raise RuntimeError(f"Global step should be created to use {hook}.")
    with name_scope(None), name_scope(f"{step.op.name}/"):
        # Not the variable: a fetched reference is read at the end of the step, after it was increased.
        copy: Tensor = step + 0
    add_to_collection(STEP_READ, copy)
    return copy


@export(*_names("SecondOrStepTimer"))
class SecondOrStepTimer:
    """A timer for actions that are due every N seconds or steps."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self.reset()

    def reset(self) -> None:
        """Forgets the last time; the next step is due."""
        self._last_triggered_step: int | None = None
        self._last_triggered_time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is due at this step: at the first, then after the interval, never twice at one step."""
        if self._last_triggered_step is None or self._last_triggered_time is None:
            return True
        if step == self._last_triggered_step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_triggered_time + self._every_secs
        assert self._every_steps is not None
        return step >= self._last_triggered_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it was done at this step; returns the seconds and steps since the last time."""
        now = time.time()
        elapsed: tuple[float | None, int | None] = (None, None)
        if self._last_triggered_step is not None and self._last_triggered_time is not None:
            elapsed = now - self._last_triggered_time, step - self._last_triggered_step
        self._last_triggered_step, self._last_triggered_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step at which it was last done, or None."""
        return self._last_triggered_step


@export(*_names("StopAtStepHook"))
class StopAtStepHook(SessionRunHook):
    """Ends the training after `num_steps` more steps, or when the global step reaches `last_step`."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        """Finds the global step."""
        self._args = SessionRunArgs(step_for("StopAtStepHook"))

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        """Counts from the step a training starts at, also when that is restored; once."""
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = session.run(self._args.fetches) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the step."""
        return self._args

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks whether the last step is reached."""
        assert self._last_step is not None
        counters.note_global_step(run_values.results)
        # The step was read before or while it was increased, if at all: near the end, read it again.
        if (
            run_values.results + 1 >= self._last_step
            and run_context.session.run(self._args.fetches) >= self._last_step
        ):
            run_context.request_stop()


@export(*_names("LoggingTensorHook"))
class LoggingTensorHook(SessionRunHook):
    """Logs values every `every_n_iter` runs or `every_n_secs` seconds, at the end, or both.

    `tensors` is a list of tensors or their names, or a dictionary from tags to them. `formatter` makes the
    text from a dictionary of tags to values.
    """

    def __init__(
        self,
        tensors: Mapping[str, Any] | Iterable[Any],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        intervals = (every_n_iter is not None) + (every_n_secs is not None)
        if intervals > 1 or (intervals == 0 and not at_end):
            raise ValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        self._tensors = dict(tensors) if isinstance(tensors, dict) else {item: item for item in tensors}
        self._formatter = formatter
        self._at_end = at_end
        self._timer = SecondOrStepTimer(every_n_secs, every_n_iter) if intervals else None

    def begin(self) -> None:
        """Finds the tensors."""
        if self._timer is not None:
            self._timer.reset()
        self._iter_count = 0
        self._args = SessionRunArgs({tag: graph_element(t) for tag, t in self._tensors.items()})

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the values when they are due."""
        self._should_trigger = self._timer is not None and self._timer.should_trigger_for_step(
            self._iter_count
        )
        return self._args if self._should_trigger else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs the values when they were due."""
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session: BaseSession) -> None:
        """Logs the last values."""
        if self._at_end:
            self._log_tensors(session.run(self._args.fetches))

    def _log_tensors(self, values: dict[str, Any]) -> None:
        elapsed = self._timer.update_last_triggered_step(self._iter_count)[0] if self._timer else None
        if self._formatter:
            logging.info(self._formatter(values))
            return
        with np.printoptions(suppress=True):
            text = ", ".join(f"{tag} = {value!s}" for tag, value in values.items())
        if elapsed is None:
            logging.info("%s", text)
        else:
            logging.info("%s (%.3f sec)", text, elapsed)


def graph_element(obj: object) -> Any:
    """A tensor of the current graph, given itself or by name; an operation's name stands for its one output."""
    graph = get_default_graph()
    if not isinstance(obj, str):
        if getattr(obj, "graph", None) is not graph:
            raise ValueError(
                f"Passed {obj} should have graph attribute that is equal to current graph {graph}."
            )
        return obj
    if ":" in obj:
        return graph.as_graph_element(obj)
    element = graph.as_graph_element(obj + ":0")
    if len(element.op.outputs) > 1:
        raise ValueError(f"Name {obj} is ambiguous, as this `Operation` has multiple outputs (at least 2).")
    return element


@export("train.NanLossDuringTrainingError", "estimator.NanLossDuringTrainingError")
class NanLossDuringTrainingError(RuntimeError):
    """The loss became NaN."""

    def __str__(self) -> str:
        return "NaN loss during training."


@export(*_names("NanTensorHook"))
class NanTensorHook(SessionRunHook):
    """Raises `NanLossDuringTrainingError` when the loss is NaN, or with `fail_on_nan_loss=False` just stops."""

    def __init__(self, loss_tensor: Tensor, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the loss."""
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks at the loss."""
        if not np.isnan(run_values.results):
            return
        message = "Model diverged with loss = NaN."
        if self._fail_on_nan_loss:
            logging.error(message)
            raise NanLossDuringTrainingError
        logging.warning(message)
        run_context.request_stop()


@export(*_names("GlobalStepWaiterHook"))
class GlobalStepWaiterHook(SessionRunHook):
    """Holds the first run back until the global step reaches `wait_until_step`.

    DeadlineExceededError when it has not moved for a day, or for `TENSORFLEET_STEP_SECONDS`.
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step

    def begin(self) -> None:
        """Finds the global step."""
        self._worker_is_started = False
        self._global_step_tensor = step_for("_GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits, the first time."""
        if self._worker_is_started:
            return
        self._worker_is_started = True
        if self._wait_until_step <= 0:
            return
        logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
        logged = 0
        patience = step_stall_timer()
        while (step := run_context.session.run(self._global_step_tensor)) < self._wait_until_step:
            patience.look(step, f"global step {self._wait_until_step} before starting training; it is {step}")
            # A line for each look would fill the log: the wait may take hours.
            if step - logged > 1000:
                logging.info(
                    "Waiting for global step %d before starting training. Current step is %d.",
                    self._wait_until_step,
                    step,
                )
                logged = step
            time.sleep(0.1)


@export(*_names("FinalOpsHook"))
class FinalOpsHook(SessionRunHook):
    """Runs `final_ops` when training ends; `final_ops_values` has their values."""

    def __init__(self, final_ops: Fetches, final_ops_feed_dict: FeedDict | None = None) -> None:
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values: Any = None

    final_ops_values: Any = readonly("_final_ops_values", "The values, once training has ended.")

    def end(self, session: BaseSession) -> None:
        """Runs the operations."""
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(self._final_ops, feed_dict=self._final_ops_feed_dict)
        except (errors.OutOfRangeError, StopIteration) as e:
            logging.warning(
                "An OutOfRangeError or StopIteration exception is raised by the code in FinalOpsHook. The final "
                "operations probably have a dependency back to some input source that has come to its end: %s",
                e,
            )
            raise


@export(*_names("FeedFnHook"))
class FeedFnHook(SessionRunHook):
    """Feeds the dictionary that `feed_fn()` returns to every run."""

    def __init__(self, feed_fn: Callable[[], FeedDict]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Adds the feeds."""
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
