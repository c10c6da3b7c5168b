"""`tf.contrib.learn.Experiment` and `learn_runner.run`: `train_and_evaluate` from before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorfleet.api.train.checkpoint_state import latest_checkpoint
from tensorfleet.api.train.hooks_saving import CheckpointSaverListener
from tensorfleet.base import logging
from tensorfleet.base.naming import find
from tensorfleet.cluster.membership.tf_config import MASTER, PS, WORKER
from tensorfleet_legacy.contrib.learn.estimator import Estimator
from tensorfleet_legacy.contrib.learn.model_fn import receiver_of
from tensorfleet_legacy.contrib.learn.run_config import RunConfig
from tensorfleet_legacy.estimator.estimator import Estimator as CoreEstimator
from tensorfleet_legacy.estimator.exporter import keep_last
from tensorfleet_legacy.estimator.training import start_server
from tensorfleet_legacy.internals.util.tf_decorator import fn_args


class ExportStrategy(NamedTuple):
    """How a model is exported after an evaluation: `export_fn(estimator, folder, checkpoint_path, eval_result)`."""

    name: str
    export_fn: Callable
    strip_default_attrs: bool | None = None

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str | None = None, eval_result: Any = None
    ) -> Any:
        """Exports the model; gives the path of what was written."""
        given = {"checkpoint_path": checkpoint_path, "eval_result": eval_result}
        asked = fn_args(self.export_fn)
        return self.export_fn(estimator, export_path, **{k: v for k, v in given.items() if k in asked})


def make_export_strategy(
    serving_input_fn: Callable,
    default_output_alternative_key: str | None = None,
    assets_extra: dict | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """A strategy, named "Servo", that writes SavedModels and keeps the last few."""

    def export_fn(estimator: Any, export_dir_base: str, checkpoint_path: str | None = None) -> Any:
        options: dict[str, Any] = {
            "assets_extra": assets_extra,
            "as_text": as_text,
            "checkpoint_path": checkpoint_path,
        }
        if isinstance(estimator, Estimator):
            key = default_output_alternative_key
            result = estimator.export_savedmodel(export_dir_base, serving_input_fn, key, **options)
        else:
            result = estimator.export_savedmodel(
                export_dir_base, lambda: receiver_of(serving_input_fn()), **options
            )
        keep_last(export_dir_base, exports_to_keep)
        return result

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


class _Saved(CheckpointSaverListener):
    """Evaluates after a checkpoint, when enough steps were made since the last time."""

    def __init__(self, experiment: Experiment, every: int) -> None:
        self._experiment = experiment
        self._every = every
        self._last: int | None = None

    def after_save(self, session: Any, global_step_value: int) -> None:
        if self._last is None:
            self._last = global_step_value
        elif global_step_value >= self._last + self._every:
            self._last = global_step_value
            self._experiment.evaluate(delay_secs=0)


class Experiment:
    """A model with the input it is trained and evaluated on."""

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable,
        eval_input_fn: Callable,
        eval_metrics: Any = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Any = None,
        eval_hooks: Any = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Any = None,
        check_interval_secs: float = 5,
    ) -> None:
        if not isinstance(estimator, (Estimator, CoreEstimator)):
            raise ValueError(
                f"`estimator` must be an Estimator of tf.contrib.learn or tf.estimator, not {estimator}."
            )
        if isinstance(estimator, CoreEstimator) and eval_metrics is not None:
            raise ValueError(
                "`eval_metrics` must be `None` with `tf.estimator.Estimator`. Use `eval_metric_ops` in `EstimatorSpec`."
            )
        self.estimator = estimator
        self.train_steps = train_steps
        self.eval_steps = eval_steps
        self.eval_metrics = eval_metrics
        self.min_eval_frequency = (
            min_eval_frequency if min_eval_frequency is not None else local_eval_frequency
        )
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._monitors, self._eval_hooks = list(train_monitors or ()), list(eval_hooks or ())
        self._eval_delay_secs = eval_delay_secs
        self._throttle_secs = continuous_eval_throttle_secs
        self._steps_at_a_time = train_steps_per_iteration
        self._waits_for_steps = delay_workers_by_global_step
        self._strategies = _listed(export_strategies)
        self._listeners = list(saving_listeners or ())

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Adds hooks to those that are called in training."""
        self._monitors.extend(additional_hooks)

    def extend_eval_hooks(self, additional_hooks: Any) -> None:
        """Adds hooks to those that are called in evaluation."""
        self._eval_hooks.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> list:
        """Exports in other ways from now on, by default in none; gives those of before."""
        before, self._strategies = self._strategies, _listed(new_export_strategies)
        return before

    @property
    def _core(self) -> CoreEstimator:
        return self.estimator if isinstance(self.estimator, CoreEstimator) else self.estimator._core

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains until global step `train_steps`; in a cluster this task's server is started first.

        Workers begin five seconds apart, or after some steps with `delay_workers_by_global_step`.
        """
        config = self.estimator.config
        if len(config.cluster_spec.jobs) > 1 and config.master:
            start_server(config)
        extra = []
        if delay_secs is None and self._waits_for_steps:
            wait = int(5500 * config.task_id**0.5)
            extra = [find("train.GlobalStepWaiterHook")(wait)] if wait else []
        elif delay_secs is None:
            delay_secs = min(60, (config.task_id if config.task_type == WORKER else 0) * 5)
        if delay_secs:
            logging.info("Waiting %d secs before starting training.", delay_secs)
            time.sleep(delay_secs)
        return self._core.train(
            self._train_input_fn,
            hooks=[*self._monitors, *extra],
            max_steps=self.train_steps,
            saving_listeners=self._listeners,
        )

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> dict:
        """The metrics of the latest checkpoint."""
        delay = self._eval_delay_secs if delay_secs is None else delay_secs
        if delay:
            logging.info("Waiting %d secs before starting eval.", delay)
            time.sleep(delay)
        return self._evaluated(self._eval_input_fn, name)

    def _evaluated(self, input_fn: Callable, name: str | None, path: str | None = None) -> dict:
        options: dict[str, Any] = {"steps": self.eval_steps, "hooks": self._eval_hooks, "name": name}
        if isinstance(self.estimator, Estimator):
            options["metrics"] = self.eval_metrics
        return self.estimator.evaluate(input_fn=input_fn, checkpoint_path=path, **options)

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Callable | None = None,
        name: str = "continuous",
    ) -> None:
        """Evaluates checkpoint after checkpoint, until one has made `train_steps` or the predicate says so."""
        times = (delay_secs, throttle_delay_secs)
        self._keep_evaluating(
            self._eval_input_fn, name, *times, evaluate_checkpoint_only_once, continuous_eval_predicate_fn
        )

    def continuous_eval_on_train_data(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        continuous_eval_predicate_fn: Callable | None = None,
        name: str = "continuous_on_train_data",
    ) -> None:
        """As `continuous_eval`, with the input of training."""
        times = (delay_secs, throttle_delay_secs)
        self._keep_evaluating(self._train_input_fn, name, *times, True, continuous_eval_predicate_fn)

    def _keep_evaluating(
        self,
        input_fn: Callable,
        name: str,
        delay: float | None,
        throttle: float | None,
        once: bool,
        predicate: Callable | None,
    ) -> None:
        time.sleep(self._eval_delay_secs if delay is None else delay)
        throttle = self._throttle_secs if throttle is None else throttle
        result: dict | None = None
        before = None
        while _wanted(predicate, result, before) and not self._trained(result):
            began = time.monotonic()
            latest = latest_checkpoint(self.estimator.model_dir)
            if latest is None:
                logging.warning(
                    "Estimator is not trained yet. Will start an evaluation when a checkpoint is ready."
                )
            elif not (once and latest == before):
                result, before = self._evaluated(input_fn, name, latest), latest
                self._export(result)
            if not self._trained(result):
                time.sleep(max(throttle - (time.monotonic() - began), 0))

    def continuous_train_and_eval(self, continuous_eval_predicate_fn: Callable | None = None) -> tuple:
        """Trains some steps and evaluates, in turns, until `train_steps` are made or the predicate says so."""
        steps = self._steps_at_a_time or (max(int(self.train_steps / 10), 1) if self.train_steps else 1000)
        result: dict | None = None
        exported: list | None = None
        while _wanted(continuous_eval_predicate_fn, result, None) and not self._trained(result):
            self._core.train(
                self._train_input_fn, hooks=self._monitors, steps=steps, saving_listeners=self._listeners
            )
            result = self.evaluate(delay_secs=0)
            exported = self._export(result)
        return result, exported

    def _trained(self, result: dict | None) -> bool:
        return bool(result and self.train_steps and result.get("global_step", 0) >= self.train_steps)

    def local_run(self) -> tuple[dict, list]:
        """The former name of `train_and_evaluate`."""
        return self.train_and_evaluate()

    def train_and_evaluate(self) -> tuple[dict, list]:
        """Trains, evaluates after checkpoints `min_eval_frequency` steps apart and at the end, and exports."""
        kept = list(self._listeners)
        if self.min_eval_frequency:
            self._listeners.append(_Saved(self, self.min_eval_frequency))
        try:
            self.train(delay_secs=0)
        finally:
            self._listeners = kept
        result = self.evaluate(delay_secs=0)
        return result, self._export(result)

    def test(self) -> tuple[dict, list]:
        """One step of training, one of evaluation, and the export."""
        self._core.train(self._train_input_fn, hooks=self._monitors, steps=1)
        steps, self.eval_steps = self.eval_steps, 1
        try:
            result = self.evaluate(delay_secs=0)
        finally:
            self.eval_steps = steps
        return result, self._export(result)

    def run_std_server(self) -> None:
        """Serves as a parameter server until the others have finished."""
        start_server(self.estimator.config).join()

    def _export(self, result: dict) -> list:
        base = os.path.join(self.estimator.model_dir, "export")
        return [
            strategy.export(self.estimator, os.path.join(base, strategy.name), eval_result=result)
            for strategy in self._strategies
        ]


def _listed(strategies: Any) -> list:
    return [strategies] if isinstance(strategies, ExportStrategy) else list(strategies or ())


def _wanted(predicate: Callable | None, result: dict | None, path: str | None) -> bool:
    """The answer of a predicate that takes a result, or a result and the path of its checkpoint."""
    if predicate is None:
        return True
    return bool(predicate(result, path) if "checkpoint_path" in fn_args(predicate) else predicate(result))


def run(
    experiment_fn: Callable,
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Makes an experiment and does this task's part of it.

    `experiment_fn(output_dir)`, or `experiment_fn(run_config, hparams)` when a `run_config` is given. `schedule` names the
    method; by default it is `train_and_evaluate` alone and for a master, `train` for a worker, `run_std_server` for a
    parameter server.
    """
    if not callable(experiment_fn):
        raise TypeError(f"Experiment builder [{experiment_fn}] is not callable.")
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`.")
    if run_config is not None and not run_config.model_dir:
        raise ValueError("Must specify a model directory in `run_config`.")
    if run_config is None and not output_dir:
        raise ValueError("Must specify an output directory.")
    result = experiment_fn(run_config, hparams) if run_config is not None else experiment_fn(output_dir)
    if not isinstance(result, Experiment):
        raise TypeError(
            f"Experiment builder did not return an Experiment instance, got {type(result)} instead."
        )
    task = schedule or _default_schedule(run_config or result.estimator.config or RunConfig())
    if not callable(getattr(result, task, None)) or task.startswith("_"):
        raise ValueError(f"Schedule references non-existent task {task}")
    return getattr(result, task)()


def _default_schedule(config: Any) -> str:
    if len(config.cluster_spec.jobs) < 2:
        return "train_and_evaluate"
    by_name = {
        MASTER: "train_and_evaluate",
        "chief": "train_and_evaluate",
        PS: "run_std_server",
        WORKER: "train",
    }
    if config.task_type not in by_name:
        raise ValueError(f"No default schedule for task type: {config.task_type}")
    return by_name[config.task_type]
