"""`tf.contrib.learn.monitors`: what looked at a training before there were hooks. An estimator's `fit` runs them as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorfleet.api.train.hooks import graph_element
from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook
from tensorfleet.base import logging
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly


class BaseMonitor:
    """The base of monitors: `step_begin` asks for tensors, `step_end` gets them and may end the training."""

    run_on_all_workers = False

    def __init__(self) -> None:
        self._begun = False
        self._epoch: int | None = None
        self._current: int | None = None
        self._estimator: Any = None
        self._max_steps: int | None = None

    def set_estimator(self, estimator: Any) -> None:
        """Told once which estimator trains."""
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Before the training."""
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._max_steps, self._begun = max_steps, True

    def end(self, session: Any = None) -> None:
        """After the training."""
        if not self._begun:
            raise ValueError("end called without begin.")
        self._max_steps, self._begun = None, False

    def epoch_begin(self, epoch: int) -> None:
        """Before an epoch."""
        if self._epoch is not None:
            raise ValueError("epoch_begin called twice without epoch_end.")
        if epoch < 0:
            raise ValueError(f"Invalid epoch {epoch}.")
        self._epoch = epoch

    def epoch_end(self, epoch: int) -> None:
        """After an epoch."""
        if self._epoch != epoch:
            raise ValueError(f"epoch_end expected {self._epoch} but got {epoch}.")
        self._epoch = None

    def step_begin(self, step: int) -> list:
        """Before a step: the tensors to fetch with it."""
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"Invalid step {step}.")
        self._current = step
        return []

    def step_end(self, step: int, output: Any) -> bool:
        """After a step, with what was fetched, by names: whether to end the training."""
        if self._current != step:
            raise ValueError(f"step_end expected {self._current} but got {step}.")
        self._current = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """After a step, with the session."""


def fetched(outputs: Any, request: Any) -> Any:
    """The fetched value of a tensor or of its name."""
    return outputs[request] if request in outputs else outputs[request.name]


class EveryN(BaseMonitor):
    """Looks at the first steps, at every `every_n_steps`th after a look, and with the session at the last too."""

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every, self._first = every_n_steps, first_n_steps
        self._looks = False
        self._last_active = 0
        self._last_successful: int | None = None

    def every_n_step_begin(self, step: int) -> list:
        """Before a step that is looked at: the tensors to fetch with it."""
        return []

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """After a step that is looked at: whether to end the training."""
        return False

    def every_n_post_step(self, step: int | None, session: Any) -> None:
        """After a step that is looked at, with the session."""

    def step_begin(self, step: int) -> list:
        """Asks for tensors when it is time."""
        super().step_begin(step)
        self._looks = (
            step <= self._first or step >= self._last_active + self._every or step == self._max_steps
        )
        return self.every_n_step_begin(step) if self._looks else []

    def step_end(self, step: int, output: Any) -> bool:
        """Looks when it is time."""
        super().step_end(step, output)
        return bool(self._looks and self.every_n_step_end(step, output))

    def post_step(self, step: int, session: Any) -> None:
        """Looks when it is time."""
        if self._looks:
            self.every_n_post_step(step, session)
            self._last_active = step
        self._last_successful = step

    def end(self, session: Any = None) -> None:
        """Looks at the last step if that was not done."""
        super().end(session)
        if self._last_successful != self._last_active:
            self.every_n_post_step(self._last_successful, session)


class StopAtStep(BaseMonitor):
    """Ends the training after `num_steps`, or at the global step `last_step`."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        if (num_steps is None) == (last_step is None):
            raise ValueError("Exactly one of num_steps or last_step must be specified.")
        self._num_steps, self._last_step = num_steps, last_step

    def step_begin(self, step: int) -> list:
        """Finds out where to end."""
        super().step_begin(step)
        if self._last_step is None:
            self._last_step = step + (self._num_steps or 0) - 1
        return []

    def step_end(self, step: int, output: Any) -> bool:
        """Ends."""
        super().step_end(step, output)
        return step >= (self._last_step or 0)


class PrintTensor(EveryN):
    """Logs tensors: a list of names, or a dictionary of tags and names."""

    def __init__(self, tensor_names: Any, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._names = tensor_names if isinstance(tensor_names, dict) else {n: n for n in tensor_names}

    def every_n_step_begin(self, step: int) -> list:
        """Asks for them."""
        return [getattr(tensor, "name", tensor) for tensor in self._names.values()]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Logs them."""
        pairs = [f"{tag} = {fetched(outputs, getattr(t, 'name', t))}" for tag, t in self._names.items()]
        logging.info("Step %d: %s", step, ", ".join(pairs))
        return False


class NanLossDuringTrainingError(RuntimeError):
    """The loss was no number."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanLoss(EveryN):
    """Ends the training, with an error or without, when the loss is no number."""

    def __init__(self, loss_tensor: Any, every_n_steps: int = 100, fail_on_nan_loss: bool = True) -> None:
        super().__init__(every_n_steps)
        self._loss, self._fails = getattr(loss_tensor, "name", loss_tensor), fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> list:
        """Asks for the loss."""
        return [self._loss]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Looks at it."""
        if not np.isnan(outputs[self._loss]).any():
            return False
        if self._fails:
            logging.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        logging.warning("Model diverged with loss = NaN.")
        return True


class ValidationMonitor(EveryN):
    """Evaluates the model while it trains, each time there is a new checkpoint, and ends a training that gets no better."""

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Any = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        check_interval_secs: float = 5,
    ) -> None:
        super().__init__(every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self._given = {"x": x, "y": y, "input_fn": input_fn, "batch_size": batch_size}
        self._given |= {"steps": eval_steps, "metrics": metrics, "hooks": hooks, "name": name}
        self._rounds, self._metric = early_stopping_rounds, early_stopping_metric
        self._minimize = early_stopping_metric_minimize
        self._evaluated: str | None = None
        self._best_step: int | None = None
        self._best_value: Any = None
        self._best_metrics: dict | None = None
        self._early_stopped = False

    early_stopped = readonly("_early_stopped", "Whether the training was ended because it got no better.")
    best_step = readonly("_best_step", "The step of the best evaluation.")
    best_value = readonly("_best_value", "Its value.")
    best_metrics = readonly("_best_metrics", "All its metrics.")

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        """Evaluates, and compares with the best so far."""
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        latest = find("train.latest_checkpoint")(self._estimator.model_dir)
        if latest is None or latest == self._evaluated:
            logging.debug("Skipping evaluation at step %d: no checkpoint since the last one.", step)
            return False
        self._evaluated = latest
        result = self._estimator.evaluate(**self._given)
        message = ", ".join(f"{name} = {value}" for name, value in sorted(result.items()))
        logging.info("Validation (step %d): %s", step, message)
        return self._rounds is not None and self._no_better(step, result)

    def _no_better(self, step: int, found: dict) -> bool:
        if self._metric not in found:
            raise ValueError(
                f"Metric {self._metric} missing from outputs {set(found)}. Give early_stopping_metric one of these."
            )
        value = found[self._metric]
        better = self._best_value is None or (
            value < self._best_value if self._minimize else value > self._best_value
        )
        if better:
            self._best_value, self._best_metrics, self._best_step = value, found, step
        self._early_stopped = step - (self._best_step or 0) >= (self._rounds or 0)
        if self._early_stopped:
            logging.info(
                "Stopping. Best step: %s with %s = %s.", self._best_step, self._metric, self._best_value
            )
        return self._early_stopped


class RunHookAdapterForMonitors(SessionRunHook):
    """Monitors as a hook."""

    def __init__(self, monitors: Iterable[BaseMonitor]) -> None:
        self._monitors = list(monitors)
        self._next: Any = None  # the step that comes; where a session starts is found out in its first run

    def begin(self) -> None:
        """Starts the monitors."""
        self._step, self._next = find("train.get_global_step")(), None
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for what the monitors want."""
        if self._next is None:
            self._next = int(run_context.session.run(self._step)) + 1
        asked = []
        for monitor in self._monitors:
            wanted = monitor.step_begin(self._next) or []
            if not isinstance(wanted, list):
                raise ValueError("Monitor.step_begin should return a list.")
            asked += wanted
        return SessionRunArgs({"step": self._step, "asked": {one: graph_element(one) for one in asked}})

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        """Hands it to them."""
        ends = [monitor.step_end(self._next, run_values.results["asked"]) for monitor in self._monitors]
        if any(ends):
            run_context.request_stop()
        for monitor in self._monitors:
            monitor.post_step(self._next, run_context.session)
        self._next = int(run_values.results["step"]) + 1

    def end(self, session: Any) -> None:
        """Ends the monitors."""
        self._next = None
        for monitor in self._monitors:
            monitor.end(session)


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> list[SessionRunHook]:
    """The hooks of a list as they are, and one for the monitors in it, which are told the estimator."""
    given = list(monitors_or_hooks or ())
    monitors = [one for one in given if not isinstance(one, SessionRunHook)]
    for monitor in monitors:
        monitor.set_estimator(estimator)
    hooks = [one for one in given if isinstance(one, SessionRunHook)]
    return [*hooks, RunHookAdapterForMonitors(monitors)] if monitors else hooks
