"""A worker's part in a cluster that a coordinator has started: whether it leads, initializes, saves, and its target."""

from __future__ import annotations

import tempfile
import threading
from typing import TYPE_CHECKING

from tensorfleet.api.distribute.context import ClusterLike
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.cluster.membership.spec import ClusterSpec

if TYPE_CHECKING:
    from tensorfleet.api.distribute.coordinator import WorkerBarrier
    from tensorfleet.api.distribute.strategy import Strategy
    from tensorfleet.api.train.monitored_session import SessionCreator
    from tensorfleet.api.train.scaffold import Scaffold
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import ConfigProto

_CONTEXT = "python.distribute.distribute_coordinator_context"
_current = threading.local()


@export(f"{_CONTEXT}.get_current_worker_context")
def get_current_worker_context() -> WorkerContext | None:
    """The worker whose block this thread is in, or None."""
    return getattr(_current, "context", None)


class WorkerContext:
    """One worker of a strategy. In its block `MonitoredTrainingSession` does this worker's part."""

    def __init__(
        self,
        strategy: Strategy,
        cluster_spec: ClusterLike | None,
        task_type: str | None,
        task_id: int | None,
        session_config: ConfigProto | None = None,
        rpc_layer: str | None = "grpc",
        worker_barrier: WorkerBarrier | None = None,
    ) -> None:
        self._strategy, self._extended = strategy, strategy.extended
        self._cluster_spec = ClusterSpec(cluster_spec) if cluster_spec else None
        self._task_type, self._task_id = task_type, task_id
        self._session_config, self._rpc_layer = session_config, rpc_layer
        self._worker_barrier = worker_barrier

    strategy: Strategy = readonly("_strategy", "The strategy.")
    session_config: ConfigProto | None = readonly("_session_config", "The configuration of sessions.")
    task_type: str | None = readonly("_task_type", "The job of this task.")
    task_id: int | None = readonly("_task_id", "The number of this task.")
    has_barrier = property(lambda self: self._worker_barrier is not None)
    experimental_should_init: bool = readonly(
        "_extended.experimental_should_init", "Whether it initializes variables."
    )
    should_checkpoint: bool = readonly("_extended.should_checkpoint", "Whether it writes checkpoints.")
    should_save_summary: bool = readonly("_extended.should_save_summary", "Whether it writes summaries.")

    @property
    def is_chief(self) -> bool:
        """Whether it leads: the chief, the first worker of a cluster without one, or a task without a cluster."""
        if self._cluster_spec is None or self._task_type in ("chief", "master", "evaluator", None):
            return True
        return "chief" not in self._cluster_spec.jobs and self._task_type == "worker" and self._task_id == 0

    @property
    def master_target(self) -> str:
        """The target of sessions: this worker's own server, or this process."""
        if self._cluster_spec is None:
            return ""
        # One that builds the graph of all workers has its sessions on the first of them.
        lead = "chief" if "chief" in self._cluster_spec.jobs else "worker"
        address = self._cluster_spec.task_address(self._task_type or lead, self._task_id or 0)
        return f"{self._rpc_layer}://{address}" if self._rpc_layer else address

    @property
    def num_workers(self) -> int:
        """How many tasks train."""
        cluster = self._cluster_spec or ClusterSpec({})
        return sum(cluster.num_tasks(job) for job in ("chief", "worker") if job in cluster.jobs)

    @property
    def distributed_mode(self) -> bool:
        """Whether it trains in a cluster. An evaluator works alone."""
        return self._cluster_spec is not None and self._task_type != "evaluator"

    def wait_for_other_workers(self) -> None:
        """Waits until every worker of this process has come to the same place."""
        if self._worker_barrier is None:
            raise ValueError("`worker_barrier is not set in the worker context.`")
        self._worker_barrier.wait()

    def session_creator(
        self,
        scaffold: Scaffold | None = None,
        config: ConfigProto | None = None,
        checkpoint_dir: PathLike | None = None,
        checkpoint_filename_with_path: PathLike | None = None,
        max_wait_secs: float = 7200,
    ) -> SessionCreator:
        """A session creator that initializes variables, or waits for the worker that does."""
        from tensorfleet.api.train.monitored_session import ChiefSessionCreator, WorkerSessionCreator

        config = config or self._session_config
        if self.experimental_should_init:
            return ChiefSessionCreator(
                scaffold, self.master_target, config, checkpoint_dir, checkpoint_filename_with_path
            )
        return WorkerSessionCreator(scaffold, self.master_target, config, max_wait_secs)

    def folder(self, wanted: PathLike | None, writes: bool) -> PathLike | None:
        """The folder it writes to. All workers compute checkpoints together; those that keep none write to a temporary folder."""
        return wanted if writes or not wanted else tempfile.mkdtemp()

    def __enter__(self) -> WorkerContext:
        if get_current_worker_context() is not None:
            raise ValueError("You cannot run distribute coordinator in a `worker_fn`.")
        _current.context = self
        return self

    def __exit__(self, *error: object) -> None:
        _current.context = None
