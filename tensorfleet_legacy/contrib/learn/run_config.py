"""`tf.contrib.learn.RunConfig`, `ModeKeys`, `TaskType`: what a script asks about its cluster, from before `tf.estimator`."""

from __future__ import annotations

from typing import Any

from tensorfleet.cluster.membership import tf_config
from tensorfleet.cluster.membership.tf_config import CHIEF, MASTER, PS, WORKER
from tensorfleet_legacy.estimator.run_config import RunConfig as EstimatorRunConfig


class ModeKeys:
    """The mode that a model function is called in."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """Refuses what is no mode."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


class TaskType:
    """The jobs of a cluster."""

    MASTER = MASTER
    PS = PS
    WORKER = WORKER


class RunConfig(EstimatorRunConfig):
    """`tf.estimator.RunConfig` with the arguments of before; a cluster without a chief has the first worker for one."""

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: float | None = 600,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: Any = None,
        session_config: Any = None,
        session_creation_timeout_secs: int = 7200,
    ) -> None:
        from tensorfleet.base.protos import ConfigProto, GPUOptions

        if save_checkpoints_steps is not None:
            save_checkpoints_secs = None
        super().__init__(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            protocol=protocol,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        if master is not None:
            self._master = master
        self._evaluation_master = evaluation_master
        self.environment = tf_config.read().environment or "local"
        self.tf_config = ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )

    def _find_cluster(self, told: tf_config.TFConfig) -> None:
        job, index = told.task_type or WORKER, told.task_index or 0
        count = {name: told.cluster.num_tasks(name) for name in told.cluster.jobs}
        self._service = None
        self._cluster_spec = told.cluster
        self._task_type, self._task_id, self._is_chief = job, index, told.is_chief
        self._evaluation_master = ""
        alone = sum(count.values()) == 1
        self._master = f"grpc://{told.address}" if told.address and not alone else ""
        self._num_ps_replicas = count.get(PS, 0)
        chiefs = count.get(CHIEF, 0) + count.get(MASTER, 0)
        self._num_worker_replicas = chiefs + count.get(WORKER, 0) or 1
        self._global_id_in_cluster = index + chiefs if job == WORKER else index
