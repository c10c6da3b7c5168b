"""More of `tf.contrib.learn.monitors`: those that save, count, capture and dump."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from tensorfleet.base import logging
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.scopes import GraphKeys, get_collection, get_default_graph
from tensorfleet_legacy.contrib.learn.monitors import BaseMonitor, EveryN, PrintTensor, fetched


class LoggingTrainable(EveryN):
    """Logs the variables that are trained, of a scope or all."""

    def __init__(self, scope: str | None = None, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._scope = scope

    def every_n_step_begin(self, step: int) -> list:
        """Asks for them."""
        collected = get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=self._scope)
        self._names = {variable.name: variable.value().name for variable in collected}
        return list(self._names.values())

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Logs them."""
        message = [
            f"{tag} = {fetched(outputs, name)}" for tag, name in self._names.items() if name in outputs
        ]
        logging.info("Logging Trainable: Step %d: %s", step, ", ".join(message))
        return False


class _Writes(EveryN):
    """Writes events, to the estimator's folder if to no other."""

    def __init__(self, every_n_steps: int, output_dir: str | None, summary_writer: Any) -> None:
        super().__init__(every_n_steps)
        self._writer = summary_writer
        if summary_writer is None and output_dir:
            self._writer = find("summary.FileWriterCache").get(output_dir)

    def set_estimator(self, estimator: Any) -> None:
        """Told once which estimator trains."""
        super().set_estimator(estimator)
        if self._writer is None:
            self._writer = find("summary.FileWriterCache").get(estimator.model_dir)


class SummarySaver(_Writes):
    """Writes summaries."""

    def __init__(
        self,
        summary_op: Any,
        save_steps: int = 100,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
    ) -> None:
        super().__init__(save_steps, output_dir, summary_writer)
        self._summary_op, self._scaffold = summary_op, scaffold

    def every_n_step_begin(self, step: int) -> list:
        """Asks for them."""
        if self._summary_op is None and self._scaffold is not None:
            self._summary_op = self._scaffold.summary_op
        return [] if self._summary_op is None else [self._summary_op]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Writes them."""
        if self._summary_op is not None and self._writer:
            self._writer.add_summary(fetched(outputs, self._summary_op), step)
        return False

    def end(self, session: Any = None) -> None:
        """Sees that they are written."""
        super().end(session)
        if self._writer:
            self._writer.flush()


class StepCounter(_Writes):
    """Writes how many steps are done in a second."""

    def __init__(
        self, every_n_steps: int = 100, output_dir: str | None = None, summary_writer: Any = None
    ) -> None:
        super().__init__(every_n_steps, output_dir, summary_writer)
        self._reported: tuple[int, float] | None = None

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Writes it, from the second time on."""
        now = time.time()
        if self._reported is not None and self._writer:
            speed = (step - self._reported[0]) / (now - self._reported[1])
            value = find("Summary").Value(tag="global_step/sec", simple_value=speed)
            self._writer.add_summary(find("Summary")(value=[value]), step)
        self._reported = (step, now)
        return False


class CaptureVariable(EveryN):
    """Keeps the values of a variable, by step."""

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._var_name = var_name
        self._values: dict[int, Any] = {}

    values = readonly("_values", "The values, by step.")

    def every_n_step_begin(self, step: int) -> list:
        """Asks for it."""
        return [self._var_name]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Keeps it."""
        self._values[step] = fetched(outputs, self._var_name)
        return False


def get_default_monitors(
    loss_op: Any = None,
    summary_op: Any = None,
    save_summary_steps: int = 100,
    output_dir: str | None = None,
    summary_writer: Any = None,
) -> list[BaseMonitor]:
    """Monitors that log the loss and write the summaries that are given."""
    result: list[BaseMonitor] = []
    if loss_op is not None:
        result.append(PrintTensor(tensor_names={"loss": loss_op.name}))
    if summary_op is not None:
        result.append(SummarySaver(summary_op, save_summary_steps, output_dir, summary_writer))
    return result


class GraphDump(BaseMonitor):
    """Keeps almost all tensors of each step: slow, for finding where two trainings differ."""

    IGNORE_OPS = ("Const", "Assign", "Identity", "Placeholder", "RandomUniform", "Cast", "RestoreSlice")

    def __init__(self, ignore_ops: Any = None) -> None:
        super().__init__()
        self._ignored = ignore_ops or GraphDump.IGNORE_OPS
        self._data: dict[int, Any] = {}

    data = readonly("_data", "What was fetched, by step.")

    def begin(self, max_steps: int | None = None) -> None:
        """Finds the tensors."""
        super().begin(max_steps)
        ops = [op for op in get_default_graph().get_operations() if op.type not in self._ignored]
        self._tensors = [op.outputs[0] for op in ops if op.outputs]

    def step_begin(self, step: int) -> list:
        """Asks for them."""
        super().step_begin(step)
        return self._tensors

    def step_end(self, step: int, output: Any) -> bool:
        """Keeps them."""
        super().step_end(step, output)
        self._data[step] = output
        return False

    def compare(self, other_dump: GraphDump, step: int, atol: float = 1e-06) -> tuple[list, dict]:
        """The names whose values another dump has too at a step, and the differences of the others."""
        same, differing = [], {}
        mine, others = self._data.get(step, {}), other_dump.data.get(step, {})
        for key in (key for key in mine if isinstance(key, str)):
            if key not in others:
                raise ValueError(f"{key} missing at step {step}.")
            one, other = mine[key], others[key]
            if isinstance(one, str):
                continue
            is_array = isinstance(one, np.ndarray)
            if np.allclose(one, other, atol=atol) if is_array else one == other:
                same.append(key)
            else:
                differing[key] = one - other if is_array else (one, other)
        return same, differing


class CheckpointSaver(BaseMonitor):
    """Saves the first step, then every `save_steps` steps or `save_secs` seconds, and the last step."""

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
    ) -> None:
        super().__init__()
        if save_steps is None and save_secs is None:
            raise ValueError("Either save_steps or save_secs should be provided")
        if save_steps is not None and save_secs is not None:
            raise ValueError("Can not provide both save_steps and save_secs.")
        self._saver, self._scaffold = saver, scaffold
        self._writer = find("summary.FileWriterCache").get(checkpoint_dir)
        self._path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._secs, self._steps = save_secs or 0.0, save_steps
        self._begun_step: int | None = None
        self._saved: tuple[int, float] | None = None

    def begin(self, max_steps: int | None = None) -> None:
        """Begins anew."""
        super().begin(max_steps)
        self._saved, self._begun_step = None, None

    def step_begin(self, step: int) -> list:
        """Notes the step."""
        self._begun_step = step
        return super().step_begin(step)

    def post_step(self, step: int, session: Any) -> None:
        """Saves when it is time."""
        if self._saved is None:
            self._save(step, session)
        saved, when = self._saved  # type: ignore[misc]
        due = step >= saved + self._steps if self._steps is not None else time.time() >= when + self._secs
        if due:
            self._save(step, session)

    def end(self, session: Any = None) -> None:
        """Saves the last step."""
        super().end(session)
        self._save(self._begun_step, session)

    def _save(self, step: Any, session: Any) -> None:
        if self._saved is not None and step == self._saved[0]:
            return
        logging.info("Saving checkpoints for %d into %s.", step, self._path)
        self._saved = (step, time.time())
        (self._saver or self._scaffold.saver).save(session, self._path, global_step=step)
        log = find("SessionLog")
        self._writer.add_session_log(log(status=log.CHECKPOINT, checkpoint_path=self._path), step)
