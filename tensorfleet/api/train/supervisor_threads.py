"""The threads of a chief's Supervisor: summaries, the speed of training, checkpoints."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorfleet.api.train.coordinator import LooperThread
from tensorfleet.api.train.global_step import global_step as value_of_step
from tensorfleet.api.train.hooks_saving import save_or_log
from tensorfleet.base import logging
from tensorfleet.base.naming import export

if TYPE_CHECKING:
    from tensorfleet.api.train.supervisor import Supervisor
    from tensorfleet.api.train.types import GlobalStep
    from tensorfleet.session.session import BaseSession


@export("python.training.supervisor.SVSummaryThread")
class SVSummaryThread(LooperThread):
    """Writes the summaries every `save_summaries_secs`."""

    def __init__(self, sv: Supervisor, sess: BaseSession) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv = sv
        self._sess = sess

    def run_loop(self) -> None:
        """Writes them once."""
        if self._sv.global_step is not None:
            summary, step = self._sess.run([self._sv.summary_op, self._sv.global_step])
        else:
            summary, step = self._sess.run(self._sv.summary_op), None
        if self._sv.summary_writer:
            logging.info("Recording summary at step %s.", step)
            self._sv.summary_writer.add_summary(summary, step)


@export("python.training.supervisor.SVStepCounterThread")
class SVStepCounterThread(LooperThread):
    """Logs, and writes as a summary, how many steps per second the training makes."""

    def __init__(self, sv: Supervisor, sess: BaseSession, step_counter: GlobalStep | None = None) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv = sv
        self._sess = sess
        self._last_time = 0.0
        self._last_step = 0
        self._step_counter = sv.global_step if step_counter is None else step_counter
        self._summary_tag = f"{self._step_counter.op.name}/sec"

    def start_loop(self) -> None:
        """Notes where it starts."""
        self._last_time = time.time()
        self._last_step = value_of_step(self._sess, self._step_counter)

    def run_loop(self) -> None:
        """Reports the speed since the last time."""
        from tensorfleet.base.protos import Summary

        step, now = value_of_step(self._sess, self._step_counter), time.time()
        steps, secs = step - self._last_step, now - self._last_time
        self._last_step, self._last_time = step, now
        speed = steps / secs if secs > 0 else float("inf")
        if self._sv.summary_writer:
            value = Summary.Value(tag=self._summary_tag, simple_value=speed)
            self._sv.summary_writer.add_summary(Summary(value=[value]), step)
        logging.log_first_n(logging.INFO, "%s: %g", 10, self._summary_tag, speed)


@export("python.training.supervisor.SVTimerCheckpointThread")
class SVTimerCheckpointThread(LooperThread):
    """Saves a checkpoint every `save_model_secs`."""

    def __init__(self, sv: Supervisor, sess: BaseSession) -> None:
        super().__init__(sv.coord, sv.save_model_secs)
        self._sv = sv
        self._sess = sess

    def run_loop(self) -> None:
        """Saves once."""
        from tensorfleet.base.protos import SessionLog

        sv = self._sv
        assert sv.save_path is not None  # a supervisor starts this thread only if it has a logdir
        logging.info("Saving checkpoint to path %s", sv.save_path)
        if not save_or_log(sv.saver, self._sess, sv.save_path, sv.global_step):
            return
        if sv.summary_writer and sv.global_step is not None:
            done = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=sv.save_path)
            sv.summary_writer.add_session_log(done, value_of_step(self._sess, sv.global_step))
