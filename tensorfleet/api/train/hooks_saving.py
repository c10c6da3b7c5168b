"""Hooks that write: checkpoints, summaries, the speed of training."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tensorfleet.api.summary.writer import FileWriter, FileWriterCache
from tensorfleet.api.train.checkpoint_state import latest_checkpoint
from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.hooks import SecondOrStepTimer, _names, step_for
from tensorfleet.api.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tensorfleet.base import counters, errors, logging
from tensorfleet.base.naming import export
from tensorfleet.graph.meta_graph import export_meta_graph, write_graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_collection, get_default_graph

if TYPE_CHECKING:
    from tensorfleet.api.train.coordinator import Coordinator
    from tensorfleet.api.train.saver import Saver
    from tensorfleet.api.train.scaffold import Scaffold
    from tensorfleet.api.train.types import GlobalStep, PathLike
    from tensorfleet.session.session import BaseSession


@export(*_names("CheckpointSaverListener"))
class CheckpointSaverListener:
    """The base of listeners of a `CheckpointSaverHook`. Its methods do nothing."""

    def begin(self) -> None:
        """Called once, before the graph is finalized."""

    def before_save(self, session: BaseSession, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: BaseSession, global_step_value: int) -> bool | None:
        """Called after a checkpoint is written; return True to end the training."""

    def end(self, session: BaseSession, global_step_value: int) -> None:
        """Called when training ends, after the last checkpoint."""


def save_or_log(
    saver: Saver, session: BaseSession, path: str, step: int | GlobalStep | None, last: bool = False
) -> bool:
    """Saves a checkpoint. On a full disk the one before is left as it was, and that is logged: training goes on.

    A failure of the `last` one is an error: a program that ends well has saved its variables.
    """
    try:
        saver.save(session, path, global_step=step)
    except errors.ResourceExhaustedError as e:
        kept = latest_checkpoint(os.path.dirname(path))
        if last:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"Could not save the last checkpoint, of step {step}: {e.message}. The one before it is "
                f"{kept or 'none'}. Make room on the disk, and train again from there.",
            ) from None
        logging.error(
            "Could not save a checkpoint: %s. Training goes on without it; the last checkpoint is %s. Make room on "
            "the disk.",
            e.message,
            kept or "none",
        )
        return False
    return True


@export(*_names("CheckpointSaverHook"))
class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint at the start, every `save_steps` steps or `save_secs` seconds, and at the end."""

    def __init__(
        self,
        checkpoint_dir: PathLike,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Scaffold | None = None,
        listeners: list[CheckpointSaverListener] | None = None,
    ) -> None:
        logging.info("Create CheckpointSaverHook.")
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or ())  # a copy: an Estimator adds listeners of its own
        self._steps_per_run = 1
        self._unsaved_step: int | None = None  # for which the disk was full
        self._is_last = False
        self._summary_writer: Any = None

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the global step and the writer of events."""
        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._args = SessionRunArgs(step_for("CheckpointSaverHook"))
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        """Writes the graph and the first checkpoint."""
        step = session.run(self._args.fetches)
        graph = get_default_graph()
        write_graph(graph.as_graph_def(add_shapes=True), os.fspath(self._checkpoint_dir), "graph.pbtxt")
        saver = self._get_saver()
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(
            export_meta_graph(graph=graph, saver_def=saver.saver_def if saver else None)
        )
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the step."""
        return self._args

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves when it is due."""
        # The step was read before this run increased it, or not at all: when close, read it again.
        if not self._timer.should_trigger_for_step(run_values.results + self._steps_per_run):
            return
        step = run_context.session.run(self._args.fetches)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: BaseSession) -> None:
        """Saves the last state, unless that was done."""
        step = session.run(self._args.fetches)
        # The last state is saved already, unless the disk was full then.
        if step != self._timer.last_triggered_step() or step == self._unsaved_step:
            self._is_last = True
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: BaseSession, step: int) -> bool:
        """Saves; returns whether a listener wants the training to end."""
        from tensorfleet.base.protos import SessionLog

        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        saver = self._get_saver()
        assert saver is not None
        if not save_or_log(saver, session, self._save_path, step, self._is_last):
            self._unsaved_step = step
            return False
        self._unsaved_step = None
        self._summary_writer.add_session_log(
            SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=self._save_path), step
        )
        stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                logging.info(
                    "A CheckpointSaverListener requested that training be stopped. listener: %s", listener
                )
                stop = True
        return stop

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = get_collection(GraphKeys.SAVERS)
        if not savers:
            raise RuntimeError(
                f"No items in collection {GraphKeys.SAVERS}. Please add a saver to the collection or provide a "
                "saver or scaffold."
            )
        if len(savers) > 1:
            raise RuntimeError(
                f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one to use by "
                "passing it to the constructor."
            )
        self._saver = savers[0]
        return self._saver


@export(*_names("StepCounterHook"))
class StepCounterHook(SessionRunHook):
    """Logs, and writes as a summary, how many steps per second the training makes."""

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: PathLike | None = None,
        summary_writer: FileWriter | None = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_steps)
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._last_global_step: int | None = None
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the global step and the writer of events."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._args = SessionRunArgs(step_for("StepCounterHook"))
        step = get_global_step()
        self._summary_tag = f"{step.op.name}/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the step."""
        return self._args

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Reports when it is due."""
        before = run_values.results
        counters.note_global_step(before)
        if self._timer.should_trigger_for_step(before + self._steps_per_run):
            step = run_context.session.run(self._args.fetches)
            if self._timer.should_trigger_for_step(step):
                secs, steps = self._timer.update_last_triggered_step(step)
                if secs is not None and steps is not None:
                    self._log_and_record(steps, secs, step)
        if before == self._last_global_step:
            logging.log_first_n(  # a few times only: with some optimizers not every run moves it on
                logging.WARN,
                "It seems that global step (tf.train.get_global_step) has not been increased. Current value "
                "(could be stable): %s vs previous value: %s. You could increase the global step by passing "
                "tf.train.get_global_step() to Optimizer.apply_gradients or Optimizer.minimize.",
                5,
                before,
                self._last_global_step,
            )
        self._last_global_step = before

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        from tensorfleet.base.protos import Summary

        speed = elapsed_steps / elapsed_time if elapsed_time > 0 else float("inf")
        if self._summary_writer is not None:
            value = Summary.Value(tag=self._summary_tag, simple_value=speed)
            self._summary_writer.add_summary(Summary(value=[value]), global_step)
        logging.info("%s: %g", self._summary_tag, speed)


@export(*_names("SummarySaverHook"))
class SummarySaverHook(SessionRunHook):
    """Writes summaries every `save_steps` steps or `save_secs` seconds.

    The summaries are those of `summary_op` (one or a list), or those of the `scaffold`.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: PathLike | None = None,
        summary_writer: FileWriter | None = None,
        scaffold: Scaffold | None = None,
        summary_op: Tensor | list[Tensor] | tuple[Tensor, ...] | None = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        """Finds the global step and the writer of events."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step: int | None = None
        self._global_step_tensor = step_for("SummarySaverHook")
        self._step_only = SessionRunArgs({"global_step": self._global_step_tensor})

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the step, and for the summaries when they are due."""
        self._request_summary = self._next_step is None or self._timer.should_trigger_for_step(
            self._next_step
        )
        operations = self._get_summary_op() if self._request_summary else None
        if operations is None:
            return self._step_only
        return SessionRunArgs({"global_step": self._global_step_tensor, "summary": operations})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the summaries when they were due."""
        if not self._summary_writer:
            return
        results = run_values.results
        step = results["global_step"] + 1
        if self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
            if self._next_step is None:
                from tensorfleet.base.protos import SessionLog

                self._summary_writer.add_session_log(SessionLog(status=SessionLog.START), step)
            self._timer.update_last_triggered_step(step)
            for summary in results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: BaseSession | None = None) -> None:
        """Sees that everything reaches the file."""
        if self._summary_writer:
            self._summary_writer.flush()
            # Summaries that were lost in between are logged; at the end it is an error, as for the last
            # checkpoint.
            lost = getattr(getattr(self._summary_writer, "event_writer", None), "lost", None)
            if lost is not None:
                raise errors.ResourceExhaustedError(
                    None, None, f"Could not write the last summaries: {lost.message}. Make room on the disk."
                )

    def _get_summary_op(self) -> list[Tensor] | None:
        summaries = self._summary_op
        if summaries is None and self._scaffold is not None and self._scaffold.summary_op is not None:
            summaries = self._scaffold.summary_op
        if summaries is None:
            return None
        return list(summaries) if isinstance(summaries, (list, tuple)) else [summaries]
