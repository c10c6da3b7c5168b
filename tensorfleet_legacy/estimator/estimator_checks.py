"""Checks of an Estimator's arguments; the parts of a run that follow from its configuration."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet.api.train.device_setter import replica_device_setter
from tensorfleet.api.train.hooks_saving import CheckpointSaverListener
from tensorfleet.api.train.saver import Saver
from tensorfleet.base import logging
from tensorfleet_legacy.estimator.run_config import RunConfig
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_ARGUMENTS = {"features", "labels", "mode", "params", "self", "config"}


def with_folder(config: RunConfig | None, model_dir: Any) -> RunConfig:
    """The configuration with a folder, a temporary one if need be, and a session's configuration."""
    if config is None:
        config = RunConfig()
        logging.info("Using default config.")
    if not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    if config.session_config is None:
        from tensorfleet.base.protos import ConfigProto

        config = config.replace(session_config=ConfigProto(allow_soft_placement=True))
    model_dir = None if model_dir is None else os.fspath(model_dir)
    if model_dir is not None and config.model_dir not in (None, model_dir):
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. In constructor: "
            f"'{model_dir}', in `RunConfig`: '{config.model_dir}' "
        )
    if not model_dir and config.model_dir is None:
        model_dir = tempfile.mkdtemp()
        logging.warning("Using temporary folder as model directory: %s", model_dir)
    return config.replace(model_dir=model_dir) if model_dir else config


def device_setter(config: RunConfig) -> Any:
    """Variables on the parameter servers, if there are any, and everything else on this task."""
    if not config.num_ps_replicas:
        return None
    return replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device=f"/job:{config.task_type}/task:{config.task_id}",
        merge_devices=True,
        cluster=config.cluster_spec,
    )


def check_arguments(model_fn: Callable, params: Any) -> None:
    """ValueError when a model function cannot be called as an Estimator calls it."""
    names = set(fn_args(model_fn))
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed to Estimator."
        )
    if params is None and "params" in names:
        logging.warning(
            "Estimator's model_fn (%s) includes params argument, but params are not passed.", model_fn
        )
    if names - _ARGUMENTS:
        raise ValueError(
            f"model_fn ({model_fn}) has following not expected args: {sorted(names - _ARGUMENTS)}"
        )


def check_steps(steps: int | None, max_steps: int | None) -> None:
    """ValueError when the steps of a training contradict or are none."""
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    for name, value in (("steps", steps), ("max_steps", max_steps)):
        if value is not None and value <= 0:
            raise ValueError(f"Must specify {name} > 0, given: {value}")


def checked_listeners(listeners: Any) -> list:
    """Listeners as a list; TypeError when one is none."""
    listeners = list(listeners or ())
    for listener in listeners:
        if not isinstance(listener, CheckpointSaverListener):
            raise TypeError(
                f"saving_listeners must be a list of CheckpointSaverListener instances, given: {listener}"
            )
    return listeners


def saver_of(config: RunConfig) -> Saver:
    """The Saver of a training; it is built when the graph is complete."""
    return Saver(
        sharded=True,
        max_to_keep=config.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
        defer_build=True,
        save_relative_paths=True,
    )


def chosen(predictions: Any, keys: Any) -> Any:
    """The predictions that the caller asked for."""
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    chosen = {key: value for key, value in predictions.items() if key in keys}
    if not chosen:
        raise ValueError(f"Expected to run at least one output from {list(predictions)}, provided {keys}.")
    return chosen


def examples_of(values: Any) -> Iterator[Any]:
    """One prediction after the other of a batch."""
    if not isinstance(values, dict):
        yield from values
        return
    size = None
    for key, value in values.items():
        size = value.shape[0] if size is None else size
        if value.shape[0] != size:
            raise ValueError(
                f"Batch length of predictions should be same. {key} has different batch length than others."
            )
    for i in range(size or 0):
        yield {key: value[i] for key, value in values.items()}
