"""`tf.estimator.train_and_evaluate`: one script for one process, or for every task of the cluster of TF_CONFIG."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorfleet.api.train.checkpoint_state import checkpoint_exists
from tensorfleet.api.train.hooks import SecondOrStepTimer
from tensorfleet.api.train.hooks_saving import CheckpointSaverListener
from tensorfleet.base import errors, logging
from tensorfleet.base import run_status as status
from tensorfleet.cluster.process_servers import server_at
from tensorfleet.cluster.server import Server
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.estimator.estimator_export import for_checkpoints
from tensorfleet_legacy.estimator.exporter import Exporter
from tensorfleet_legacy.estimator.model_fn import checked_hooks
from tensorfleet_legacy.estimator.run_config import CHIEF, EVALUATOR, MASTER, PS, WORKER

_DELAY_SECS_PER_WORKER, _MAX_DELAY_SECS = 5, 60  # scripts read them, under these names
_REMINDER_SECONDS = 600.0


class _TrainFields(NamedTuple):
    input_fn: Callable
    max_steps: int | None
    hooks: tuple


class TrainSpec(_TrainFields):
    """How `train_and_evaluate` trains: with which input, until which global step (for ever, with None)."""

    def __new__(cls, input_fn: Callable, max_steps: int | None = None, hooks: Any = None) -> TrainSpec:
        _check_callable(input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return super().__new__(cls, input_fn, max_steps, checked_hooks(hooks))


class _EvalFields(NamedTuple):
    input_fn: Callable
    steps: int | None
    name: str | None
    hooks: tuple
    exporters: tuple
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalFields):
    """How `train_and_evaluate` evaluates each new checkpoint, and what exports it.

    `steps` batches, or all of the input with None; not twice within `throttle_secs`. An evaluator waits `start_delay_secs`
    before it begins.
    """

    def __new__(
        cls,
        input_fn: Callable,
        steps: int | None = 100,
        name: str | None = None,
        hooks: Any = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        _check_callable(input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        for what, value in (("start_delay_secs", start_delay_secs), ("throttle_secs", throttle_secs)):
            if value < 0:
                raise ValueError(f"Must specify {what} >= 0, given: {value}")
        hooks, exporters = checked_hooks(hooks), _checked_exporters(exporters)
        return super().__new__(cls, input_fn, steps, name, hooks, exporters, start_delay_secs, throttle_secs)


def _check_callable(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"`input_fn` must be callable, given: {input_fn}")


def _checked_exporters(given: Any) -> tuple:
    if not given:
        return ()
    try:
        exporters = (given,) if isinstance(given, Exporter) else tuple(given)
    except TypeError:
        exporters = (given,)
    if not all(isinstance(e, Exporter) for e in exporters):
        raise TypeError(
            f"`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {given}."
        )
    names = [e.name for e in exporters]
    for name in names:
        if not name:
            raise ValueError(
                f"An Exporter cannot have a name that is `None` or empty. All exporter names: {names}"
            )
        if not isinstance(name, str):
            raise ValueError(f"An Exporter must have a string name. Given: {type(name)}")
    if len(set(names)) < len(names):
        raise ValueError(f"`exporters` must have unique names. All exporter names: {names}")
    return exporters


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    """Trains until `train_spec.max_steps` and evaluates the checkpoints on the way.

    Without a cluster in TF_CONFIG this process does both in turn; the result is the last evaluation's metrics and what the
    exporters gave. In a cluster each task does its part: the chief and the workers train, parameter servers serve until
    the others have finished, an evaluator evaluates each new checkpoint until it has seen one of `max_steps`; a master
    trains and evaluates. The result is None then.
    """
    if not isinstance(eval_spec, EvalSpec):
        raise TypeError(f"`eval_spec` must have type `tf.estimator.EvalSpec`. Got: {type(eval_spec)}")
    if not isinstance(train_spec, TrainSpec):
        raise TypeError(f"`train_spec` must have type `tf.estimator.TrainSpec`. Got: {type(train_spec)}")
    if not isinstance(estimator, Estimator):
        raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
    config = estimator.config
    job = config.task_type
    if job == EVALUATOR and config.task_id > 0:
        raise ValueError(
            "For distributed training, there can only be one `evaluator` task (with task id 0). Given task id "
            f"{config.task_id}"
        )
    if not config.cluster_spec.jobs and job != EVALUATOR:
        logging.info("Running training and evaluation locally (non-distributed).")
        return _run_alone(estimator, train_spec, eval_spec)
    if job not in _RUNS:
        raise ValueError(f"Task type {job} is not supported. Supported task types are {sorted(_RUNS)}")
    _RUNS[job](estimator, train_spec, eval_spec)
    return None


def _run_alone(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> tuple[Any, Any]:
    config = estimator.config
    logging.info(
        "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint frequency is determined "
        "based on RunConfig arguments: save_checkpoints_steps %s or save_checkpoints_secs %s.",
        config.save_checkpoints_steps,
        config.save_checkpoints_secs,
    )
    listener = _EvaluatesCheckpoints(_Evaluator(estimator, eval_spec, train_spec.max_steps))
    _train(estimator, train_spec, [listener])
    return listener.metrics, listener.exported


def _run_worker(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    config = estimator.config
    server = start_server(config)
    strategy = config.train_distribute
    if server is not None and strategy is not None and not strategy.extended.experimental_between_graph:
        if not config.is_chief:  # its devices are in the graph of the chief
            return _run_server(estimator, train_spec, eval_spec)
        strategy.configure(cluster_spec=config.cluster_spec)
    if config.task_type == WORKER and config.train_distribute is None:
        # Workers that come one after the other disturb a model less that has just begun.
        longest = config.experimental_max_worker_delay_secs
        delay = min(
            _MAX_DELAY_SECS if longest is None else longest, (config.task_id + 1) * _DELAY_SECS_PER_WORKER
        )
        if delay > 0:
            logging.info("Waiting %d secs before starting training.", delay)
            time.sleep(delay)
    _train(estimator, train_spec, [])


def _run_master(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    start_server(estimator.config)
    _train(
        estimator, train_spec, [_EvaluatesCheckpoints(_Evaluator(estimator, eval_spec, train_spec.max_steps))]
    )


def _run_server(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    start_server(estimator.config).join()


def _run_evaluator(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    if eval_spec.start_delay_secs:
        logging.info("Waiting %f secs before starting eval.", eval_spec.start_delay_secs)
        status.pause(eval_spec.start_delay_secs)
    evaluator = _Evaluator(estimator, eval_spec, train_spec.max_steps)
    patience = for_checkpoints()
    while not evaluator.finished:
        began = time.monotonic()
        last = status.is_alone()  # nobody is left to write another checkpoint
        result = evaluator.evaluate(last)
        if last:
            logging.info("Training has ended, and so does its evaluation.")
            return
        patience.look(evaluator.seen, f"a new checkpoint to evaluate in {estimator.model_dir}")
        # Without a pause of its own it looks for checkpoints once a second.
        rest = began + (eval_spec.throttle_secs or (0 if result else 1)) - time.monotonic()
        if rest > 0 and not evaluator.finished:
            logging.info("Waiting %f secs before starting next eval run.", rest)
            status.pause(rest)


_RUNS: dict[str, Callable[[Estimator, TrainSpec, EvalSpec], None]] = {
    CHIEF: _run_worker,
    WORKER: _run_worker,
    MASTER: _run_master,
    PS: _run_server,
    EVALUATOR: _run_evaluator,
}


def _train(estimator: Estimator, train_spec: TrainSpec, listeners: list) -> None:
    estimator.train(
        train_spec.input_fn,
        hooks=train_spec.hooks,
        max_steps=train_spec.max_steps,
        saving_listeners=listeners,
    )


def start_server(config: Any) -> Any:
    """Starts this task's server, unless the script has; a cluster of one task that trains needs none."""
    if not config.master and config.task_type != PS:
        logging.info("Skip starting Tensorflow server as there is only one node in the cluster.")
        return None
    address = config.cluster_spec.task_address(config.task_type, config.task_id)
    result = server_at(f"grpc://{address}")
    if result is not None:
        return result
    from tensorfleet.base.protos import ConfigProto

    logging.info("Start Tensorflow server.")
    options = None if config.session_config is None else config.session_config.gpu_options
    return Server(
        config.cluster_spec,
        job_name=config.task_type,
        task_index=config.task_id,
        protocol=config.protocol,
        config=ConfigProto(gpu_options=options),
    )


class _Evaluator:
    """Evaluates and exports each new checkpoint once."""

    def __init__(self, estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator = estimator
        self.spec = spec
        self._max_steps = max_steps
        self.seen: str | None = None  # the checkpoint that was evaluated last
        self._told = -_REMINDER_SECONDS
        self.finished = False  # a checkpoint of the last step was evaluated

    def evaluate(self, last: bool = False) -> tuple[dict, list] | None:
        """The metrics of the latest checkpoint and what the exporters gave; None when there is no new one.

        With `last` there will be no newer one, whatever its step.
        """
        path = self._estimator.latest_checkpoint()
        if not path:
            self._remind("Estimator is not trained yet. Will start an evaluation when a checkpoint is ready.")
            return None
        if path == self.seen:
            self._remind("No new checkpoint ready for evaluation. Skip the current evaluation pass.")
            return None
        try:
            metrics, exported = self._evaluate(path, last)
        except (errors.OpError, ValueError):
            if checkpoint_exists(path):
                raise
            logging.warning("%s was deleted during its evaluation, as newer ones have come.", path)
            return None
        self.seen, self._told = path, -_REMINDER_SECONDS
        return metrics, exported

    def _evaluate(self, path: str, last: bool) -> tuple[dict, list]:
        spec = self.spec
        metrics = self._estimator.evaluate(
            spec.input_fn, steps=spec.steps, hooks=spec.hooks, checkpoint_path=path, name=spec.name
        )
        self.finished = last or bool(self._max_steps and metrics[GraphKeys.GLOBAL_STEP] >= self._max_steps)
        folder = os.path.join(self._estimator.model_dir, "export")
        exported = [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(folder, exporter.name),
                checkpoint_path=path,
                eval_result=metrics,
                is_the_final_export=self.finished,
            )
            for exporter in spec.exporters
        ]
        return metrics, exported

    def _remind(self, message: str) -> None:
        now = time.monotonic()
        if now - self._told > _REMINDER_SECONDS:
            logging.warning(message)
            self._told = now


class _EvaluatesCheckpoints(CheckpointSaverListener):
    """Evaluates whenever the training that it listens to has saved; not the beginning, and not too often."""

    def __init__(self, evaluator: _Evaluator) -> None:
        self._evaluator = evaluator
        self.metrics: dict | None = None
        self.exported: list | None = None

    def begin(self) -> None:
        """Starts to count the time."""
        self._timer = SecondOrStepTimer(every_secs=self._evaluator.spec.throttle_secs)
        self._is_first = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        """Evaluates what was saved."""
        if self._is_first:
            self._is_first = False
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            secs = self._evaluator.spec.throttle_secs
            logging.info("Skip the current checkpoint eval due to throttle secs (%s secs).", secs)

    def end(self, session: Any, global_step_value: int) -> None:
        """Evaluates the last checkpoint, unless that was done."""
        if global_step_value != self._timer.last_triggered_step():
            self._evaluate(global_step_value)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        result = self._evaluator.evaluate()
        if result is None:
            raise RuntimeError("There was no new checkpoint after the training.")
        self.metrics, self.exported = result
