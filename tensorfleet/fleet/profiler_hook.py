"""`tf.train.ProfilerHook`: traces of single steps, every so often, while training."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tensorfleet.api.summary.writer import FileWriterCache
from tensorfleet.api.train.hooks import SecondOrStepTimer, step_for
from tensorfleet.api.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tensorfleet.base import logging
from tensorfleet.base.naming import export
from tensorfleet.fleet.timeline import Timeline

if TYPE_CHECKING:
    from tensorfleet.base.protos import StepStats


@export(
    "train.ProfilerHook", "estimator.ProfilerHook", "python.training.basic_session_run_hooks.ProfilerHook"
)
class ProfilerHook(SessionRunHook):
    """Traces a run every `save_steps` steps or `save_secs` seconds into `timeline-<step>.json`.

    Open the files in chrome://tracing or Perfetto. TensorBoard shows the same runs with the graph.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._output_file = os.path.join(output_dir, "timeline-{}.json")
        self._file_writer = FileWriterCache.get(output_dir)
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        """Finds the global step."""
        self._next_step: int | None = None
        self._global_step_tensor = step_for("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the step, and for a trace when it is due."""
        self._request_summary = self._next_step is not None and self._timer.should_trigger_for_step(
            self._next_step
        )
        options = None
        if self._request_summary:
            from tensorfleet.base.protos import RunOptions

            options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        return SessionRunArgs({"global_step": self._global_step_tensor}, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the trace when there is one."""
        before = run_values.results["global_step"]
        if self._next_step is None:
            self._timer.update_last_triggered_step(before)
        step = before + 1
        if self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
            self._timer.update_last_triggered_step(step)
            self._save(step, self._output_file.format(step), run_values.run_metadata.step_stats)
            self._file_writer.add_run_metadata(run_values.run_metadata, f"step_{step}")
        self._next_step = step + 1

    def _save(self, step: int, save_path: str, step_stats: StepStats) -> None:
        logging.info("Saving timeline for %d into '%s'.", step, save_path)
        trace = Timeline(step_stats).generate_chrome_trace_format(
            show_dataflow=self._show_dataflow, show_memory=self._show_memory
        )
        with open(save_path, "w") as f:
            f.write(trace)
