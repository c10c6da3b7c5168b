"""What a script asks about the cluster it is in: `tf.estimator.RunConfig`, `tf.contrib.learn.RunConfig`, `ModeKeys`.

There are no estimators here. Scripts that write their own loops use these to read TF_CONFIG.
"""

from __future__ import annotations

import copy
from typing import Any

from tensorfleet.api import export
from tensorfleet.cluster import tf_config
from tensorfleet.cluster.spec import ClusterSpec

_NOT_GIVEN = object()


@export("estimator.ModeKeys")
class EstimatorModeKeys:
    """What a model is built for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


@export("contrib.learn.ModeKeys")
class ModeKeys:
    """What a model function is called for."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


@export("contrib.learn.TaskType")
class TaskType:
    """The jobs of a cluster."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"


_MEMBERS = """
    cluster_spec device_fn eval_distribute evaluation_master experimental_max_worker_delay_secs global_id_in_cluster
    is_chief keep_checkpoint_every_n_hours keep_checkpoint_max log_step_count_steps master model_dir num_ps_replicas
    num_worker_replicas protocol save_checkpoints_secs save_checkpoints_steps save_summary_steps service session_config
    session_creation_timeout_secs task_id task_type tf_random_seed train_distribute
"""


def _with_members(cls: type) -> type:
    """A class that has its instances' attributes by name, as None."""
    for name in _MEMBERS.split():
        setattr(cls, name, None)
    return cls


@_with_members
class _ClusterConfig:
    """What TF_CONFIG says, beside the settings of one run."""

    def __init__(self, settings: dict[str, Any]) -> None:
        config = tf_config.read()
        job, index = config.task_type or tf_config.WORKER, config.task_index or 0
        count = {name: config.cluster.num_tasks(name) for name in config.cluster.jobs}
        self.cluster_spec: ClusterSpec = config.cluster
        self.task_type = job
        self.task_id = index
        self.is_chief = config.is_chief
        self.master = f"grpc://{config.address}" if config.address else ""
        self.evaluation_master = ""
        self.num_ps_replicas = count.get(tf_config.PS, 0)
        workers = sum(count.get(name, 0) for name in (tf_config.WORKER, tf_config.CHIEF, tf_config.MASTER))
        self.num_worker_replicas = workers or 1
        chiefs = count.get(tf_config.CHIEF, 0) + count.get(tf_config.MASTER, 0)
        self.global_id_in_cluster = index + chiefs if job == tf_config.WORKER else index
        self.service = None
        for name, value in settings.items():
            if name not in ("self", "__class__") and value is not _NOT_GIVEN:
                setattr(self, name, value)

    def replace(self, **kwargs: Any) -> Any:
        """A copy with other settings."""
        made = copy.copy(self)
        for name, value in kwargs.items():
            if not hasattr(self, name):
                raise ValueError(f"Replacing {name} is not supported.")
            setattr(made, name, value)
        return made


@export("estimator.RunConfig")
class RunConfig(_ClusterConfig):
    """The cluster that TF_CONFIG describes (`cluster_spec`, `task_type`, `task_id`, `is_chief`, ...), and the settings given."""

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: Any = None,
        save_summary_steps: Any = 100,
        save_checkpoints_steps: Any = _NOT_GIVEN,
        save_checkpoints_secs: Any = _NOT_GIVEN,
        session_config: Any = None,
        keep_checkpoint_max: Any = 5,
        keep_checkpoint_every_n_hours: Any = 10000,
        log_step_count_steps: Any = 100,
        train_distribute: Any = None,
        device_fn: Any = None,
        protocol: Any = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: Any = None,
        session_creation_timeout_secs: Any = 7200,
    ) -> None:
        if train_distribute is not None or eval_distribute is not None:
            raise ValueError("TensorFleet has no strategies: leave out train_distribute and eval_distribute.")
        if save_checkpoints_steps is _NOT_GIVEN and save_checkpoints_secs is _NOT_GIVEN:
            save_checkpoints_secs = 600
        super().__init__(locals())


@export("contrib.learn.RunConfig")
class LearnRunConfig(_ClusterConfig):
    """The same with the arguments of before estimators left `tf.contrib`."""

    def __init__(
        self,
        master: Any = None,
        num_cores: Any = 0,
        log_device_placement: Any = False,
        gpu_memory_fraction: Any = 1,
        tf_random_seed: Any = None,
        save_summary_steps: Any = 100,
        save_checkpoints_secs: Any = 600,
        save_checkpoints_steps: Any = None,
        keep_checkpoint_max: Any = 5,
        keep_checkpoint_every_n_hours: Any = 10000,
        log_step_count_steps: Any = 100,
        protocol: Any = None,
        evaluation_master: Any = "",
        model_dir: Any = None,
        session_config: Any = None,
    ) -> None:
        super().__init__(
            {name: value for name, value in locals().items() if name != "master" or value is not None}
        )
        from tensorfleet.protos import ConfigProto, GPUOptions

        self.environment = tf_config.read().environment or "local"
        self.tf_config = ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )
