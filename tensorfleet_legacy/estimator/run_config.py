"""`tf.estimator.RunConfig`: the cluster that TF_CONFIG describes, and the settings of a run."""

from __future__ import annotations

import copy
import operator
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute.strategy import Strategy
from tensorfleet.cluster.membership import tf_config
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.membership.tf_config import CHIEF, EVALUATOR, MASTER, PS, WORKER
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_NOT_GIVEN = object()
_LOCAL = ""


class TaskType:
    """The jobs of a cluster."""

    MASTER = MASTER
    PS = PS
    WORKER = WORKER
    CHIEF = CHIEF
    EVALUATOR = EVALUATOR


# What `RunConfig.replace` may change, each with what it must be, and how to say so.
_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "model_dir": (bool, "model_dir should be non-empty"),
    "tf_random_seed": (lambda seed: isinstance(seed, int), "tf_random_seed must be integer."),
    "save_summary_steps": (lambda n: n >= 0, "save_summary_steps should be >= 0"),
    "save_checkpoints_steps": (lambda n: n >= 0, "save_checkpoints_steps should be >= 0"),
    "save_checkpoints_secs": (lambda n: n >= 0, "save_checkpoints_secs should be >= 0"),
    "session_config": (
        lambda config: type(config).__name__ == "ConfigProto",
        "session_config must be instance of ConfigProto",
    ),
    "keep_checkpoint_max": (lambda n: n >= 0, "keep_checkpoint_max should be >= 0"),
    "keep_checkpoint_every_n_hours": (lambda n: n > 0, "keep_checkpoint_every_n_hours should be > 0"),
    "log_step_count_steps": (lambda n: n > 0, "log_step_count_steps should be > 0"),
    "train_distribute": (
        lambda s: isinstance(s, Strategy),
        "train_distribute must be a tf.distribute.Strategy.",
    ),
    "device_fn": (
        lambda fn: callable(fn) and set(fn_args(fn)) == {"op"},
        'device_fn must be callable with exactly one argument "op".',
    ),
    "protocol": (lambda name: name in ("grpc", "grpc+verbs"), "protocol should be grpc or grpc+verbs"),
    "eval_distribute": (
        lambda s: isinstance(s, Strategy),
        "eval_distribute must be a tf.distribute.Strategy.",
    ),
    "experimental_distribute": (
        lambda c: hasattr(c, "train_distribute") and hasattr(c, "eval_distribute"),
        "experimental_distribute must be a tf.contrib.distribute.DistributeConfig.",
    ),
    "experimental_max_worker_delay_secs": (
        lambda n: isinstance(n, int),
        "experimental_max_worker_delay_secs must be an integer if set.",
    ),
    "session_creation_timeout_secs": (lambda n: n > 0, "session_creation_timeout_secs should be > 0"),
}
_FOUND = """
    cluster_spec evaluation_master global_id_in_cluster is_chief master num_ps_replicas num_worker_replicas service
    task_id task_type
"""


def _with_properties(cls: type) -> type:
    """A class whose instances' `_name` is read as `name`."""
    for name in (*_SETTINGS, *_FOUND.split()):
        if name != "experimental_distribute":
            setattr(cls, name, property(operator.attrgetter(f"_{name}")))
    return cls


@_with_properties
class RunConfig:
    """The cluster that TF_CONFIG describes (`cluster_spec`, `task_type`, `task_id`, `is_chief`, `master`, ...), and how to
    train in it: where to save, how often, how many checkpoints to keep, the session's configuration.
    """

    if TYPE_CHECKING:  # the properties are made by name

        def __getattr__(self, name: str) -> Any: ...

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: Any = _NOT_GIVEN,
        save_checkpoints_secs: Any = _NOT_GIVEN,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Any = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in _SETTINGS}
        if experimental_distribute is not None:
            _choose_strategies(given, experimental_distribute)
        steps, secs = save_checkpoints_steps, save_checkpoints_secs
        if steps is _NOT_GIVEN and secs is _NOT_GIVEN:
            secs = 600
        given["save_checkpoints_steps"] = None if steps is _NOT_GIVEN else steps
        given["save_checkpoints_secs"] = None if secs is _NOT_GIVEN else secs
        config = tf_config.read()
        given["model_dir"] = _model_dir(config.fields, model_dir)
        self._global_id_in_cluster: int | None = 0
        self._session_config: Any = None
        self._set(given)
        self._find_cluster(config)
        if self._session_config is None and self._cluster_spec.jobs:
            self._session_config = self._filtered()

    def _set(self, given: dict[str, Any]) -> None:
        for name, value in given.items():
            if name not in _SETTINGS:
                raise ValueError(
                    f"Replacing {name} is not supported. Allowed properties are {list(_SETTINGS)}."
                )
            holds, message = _SETTINGS[name]
            if value is not None and not holds(value):
                raise ValueError(message)
            setattr(self, f"_{name}", value)
        pair = ("save_checkpoints_steps", "save_checkpoints_secs")
        if all(given.get(name) is not None for name in pair):
            raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set.")
        for name, other in (pair, pair[::-1]):
            if given.get(name) is not None and other not in given:
                setattr(self, f"_{other}", None)

    def _find_cluster(self, told: tf_config.TFConfig) -> None:
        """Learns from TF_CONFIG which task this is."""
        fields = told.fields
        self._service = fields.get("service")
        if self._service is not None and not isinstance(self._service, dict):
            raise TypeError(
                f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(self._service)}'
            )
        if told.cluster.jobs:
            self._find_task(told)
            return
        self._cluster_spec = told.cluster
        self._task_type = WORKER if told.task_type is None else told.task_type
        self._task_id = told.task_index or 0
        if self._task_type != WORKER:
            raise ValueError('If "cluster" is not set in TF_CONFIG, task type must be WORKER.')
        if self._task_id != 0:
            raise ValueError('If "cluster" is not set in TF_CONFIG, task index must be 0.')
        self._master = fields.get("session_master", _LOCAL)
        self._evaluation_master = fields.get("eval_session_master", _LOCAL)
        self._is_chief = True
        self._num_ps_replicas, self._num_worker_replicas = 0, 1

    def _find_task(self, told: tf_config.TFConfig) -> None:
        chief = MASTER if MASTER in told.cluster.jobs else CHIEF
        if self._train_distribute is not None and chief not in told.cluster.jobs and told.task_type:
            chief = WORKER  # workers of a strategy need no other to lead them
            self._task_type, self._task_id = told.task_type, told.task_index or 0
            self._is_chief = (self._task_type, self._task_id) == (WORKER, 0)
        else:
            self._task_type, self._task_id = _checked_task(told, chief)
            self._is_chief = self._task_type == chief
        evaluates = self._task_type == EVALUATOR
        self._evaluation_master = told.fields.get("eval_session_master", _LOCAL) if evaluates else _LOCAL
        if evaluates:  # it is no part of the cluster that trains
            self._cluster_spec, self._master = ClusterSpec({}), _LOCAL
            self._num_ps_replicas = self._num_worker_replicas = 0
            self._global_id_in_cluster = None
            return
        self._cluster_spec = told.cluster
        count = {job: told.cluster.num_tasks(job) for job in told.cluster.jobs}
        self._num_ps_replicas = count.get(PS, 0)
        self._num_worker_replicas = count.get(WORKER, 0) + (count[chief] if chief != WORKER else 0)
        self._global_id_in_cluster = self._task_id + sum(count[job] for job in self._jobs_before(chief))
        alone = sum(count.values()) == 1
        self._master = told.fields.get("session_master", _LOCAL if alone else f"grpc://{told.address}")

    def _jobs_before(self, chief: str) -> list[str]:
        """The jobs whose tasks are counted before this task's: the chief first, the parameter servers last."""
        jobs = sorted(self._cluster_spec.jobs, key=lambda job: (job != chief, job == PS, job))
        return jobs[: jobs.index(self._task_type)]

    def _filtered(self) -> Any:
        """The configuration of a session that speaks with its own task and the parameter servers only."""
        from tensorfleet.base.protos import ConfigProto

        seen = {
            MASTER: ["/job:ps", "/job:master"],
            CHIEF: ["/job:ps", "/job:chief"],
            WORKER: ["/job:ps", f"/job:worker/task:{self._task_id}"],
            PS: ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
        }
        if self._task_type not in seen:
            return None
        return ConfigProto(allow_soft_placement=True, device_filters=seen[self._task_type])

    def replace(self, **kwargs: Any) -> Any:
        """A copy with other settings; what TF_CONFIG says cannot be changed."""
        result = copy.copy(self)
        result._set(kwargs)
        return result


def _choose_strategies(given: dict[str, Any], wanted: Any) -> None:
    """Takes the strategies that a DistributeConfig names."""
    if getattr(wanted, "remote_cluster", None):
        raise ValueError(
            "TensorFleet's strategies find their cluster in TF_CONFIG: leave out remote_cluster."
        )
    for name in ("train_distribute", "eval_distribute"):
        if given[name] is not None:
            raise ValueError(f"Either `{name}` or `experimental_distribute.{name}` can be given, not both.")
        given[name] = getattr(wanted, name)


def _model_dir(fields: dict[str, Any], given: Any) -> str | None:
    """The folder given, or the one of TF_CONFIG, which must not contradict."""
    given = None if given is None else os.fspath(given)
    if "model_dir" not in fields:
        return given
    result = fields["model_dir"]
    if not result:
        raise ValueError("If set, model_dir in TF_CONFIG should not be empty.")
    if given is not None and given != result:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in "
            f'TF_CONFIG. model_dir: {given}\nTF_CONFIG["model_dir"]: {result}.'
        )
    return result


def _checked_task(told: tf_config.TFConfig, chief: str) -> tuple[str, int]:
    """This task's job and number, if estimators can train in the cluster."""
    jobs = told.cluster.jobs
    if MASTER in jobs and CHIEF in jobs:
        raise ValueError("If `master` node exists in `cluster`, job `chief` is not supported.")
    if chief not in jobs:
        raise ValueError(
            f'If "cluster" is set in TF_CONFIG, it must have one "{chief}" node. Rename the first worker, or start the '
            "script with `tensorfleet run --chief`."
        )
    if told.cluster.num_tasks(chief) > 1:
        raise ValueError(f'The "cluster" in TF_CONFIG must have only one "{chief}" node.')
    job, index = told.task_type, told.task_index
    if not job:
        raise ValueError('If "cluster" is set in TF_CONFIG, task type must be set.')
    if index is None:
        raise ValueError('If "cluster" is set in TF_CONFIG, task index must be set.')
    if index < 0:
        raise ValueError("Task index must be non-negative number.")
    if job == EVALUATOR:
        if chief == MASTER:
            raise ValueError("If `master` node exists in `cluster`, task_type `evaluator` is not supported.")
    elif job not in jobs:
        raise ValueError(
            f"{job} is not a valid task_type in the cluster_spec:\n{told.cluster}\n\nNote that these values may be "
            "coming from the TF_CONFIG environment variable."
        )
    return job, index
