"""`ParameterServerStrategy`: variables on parameter servers, a replica on each worker, updates as they come."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tensorfleet.cluster.resolvers import TFConfigClusterResolver
from tensorfleet.cluster.spec import ClusterSpec
from tensorfleet.distribute import inputs, mirrored
from tensorfleet.distribute.extended import StrategyExtended
from tensorfleet.distribute.strategy import Strategy
from tensorfleet.graph.scopes import colocate_with, device, get_default_graph
from tensorfleet.train.device_setter import replica_device_setter


class ParameterServerExtended(StrategyExtended):
    """One replica in this process, on its worker; its variables in turn on the parameter servers."""

    def __init__(self, container_strategy: Any, resolver: Any) -> None:
        super().__init__(container_strategy)
        self._learn(resolver.cluster_spec(), resolver.task_type, resolver.task_id)

    def _learn(self, cluster: ClusterSpec, job: Any, index: Any) -> None:
        self._cluster = cluster
        self._job, self._index = job, int(index or 0)
        self._servers = cluster.num_tasks("ps") if "ps" in cluster.jobs else 0
        self._in_cluster = bool(self._servers) and job in cluster.jobs
        task = f"/job:{job}/task:{self._index}" if self._in_cluster else ""
        self._worker = mirrored.full_name(f"{task}/device:CPU:0")
        self._setter = None
        if self._in_cluster:
            self._setter = replica_device_setter(worker_device=task, cluster=cluster)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """This worker."""
        return (self._worker,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The parameter servers."""
        if not self._in_cluster:
            return (self._worker,)
        return tuple(f"/job:ps/replica:0/task:{i}/device:CPU:0" for i in range(self._servers))

    @property
    def experimental_between_graph(self) -> bool:
        """Each worker builds a graph of its own."""
        return True

    def _is_chief(self) -> bool:
        if not self._in_cluster:
            return True
        leads = [job for job in ("chief", "master") if job in self._cluster.jobs]
        return self._job in leads if leads else (self._job == "worker" and self._index == 0)

    @property
    def experimental_should_init(self) -> bool:
        """Whether this is the chief."""
        return self._is_chief()

    @property
    def should_checkpoint(self) -> bool:
        """Whether this is the chief."""
        return self._is_chief()

    @property
    def should_save_summary(self) -> bool:
        """Whether this is the chief."""
        return self._is_chief()

    def _configure(self, session_config: Any, cluster_spec: Any, task_type: Any, task_id: Any) -> None:
        if cluster_spec:
            self._learn(ClusterSpec(cluster_spec), task_type, task_id)
        if session_config is not None:
            session_config.CopyFrom(self._update_config_proto(session_config))

    def _update_config_proto(self, config_proto: Any) -> Any:
        made = super()._update_config_proto(config_proto)
        if self._in_cluster:
            del made.device_filters[:]
            own = "/job:chief" if self._job == "chief" else f"/job:{self._job}/task:{self._index}"
            made.device_filters.extend([own, "/job:ps"])
        return made

    def _surround(self, blocks: ExitStack) -> None:
        if self._setter is not None:
            blocks.enter_context(get_default_graph().device(self._setter))

    def _create_variable(self, next_creator: Callable, **kwargs: Any) -> Any:
        with ExitStack() as blocks:
            if self._colocated is not None:
                blocks.enter_context(colocate_with(self._colocated.op))
            elif self._setter is None:
                blocks.enter_context(device(self._worker))
            made = next_creator(**kwargs)
        made._distribute_strategy = self._strategy
        return made

    def call_for_each_replica(self, fn: Callable, args: Any = (), kwargs: Any = None) -> Any:
        """Calls `fn` once, for the replica of this worker."""
        if self._setter is None:
            return super().call_for_each_replica(fn, args, kwargs)
        with self._surrounded():
            return fn(*args, **(kwargs or {}))

    def _surrounded(self) -> Any:
        from tensorfleet.distribute import context
        from tensorfleet.distribute.replicas import ReplicaContext

        context.require_cross_replica(self._strategy)
        return context.entered(context.Mode(self._strategy, ReplicaContext(self._strategy, 0)))

    def _input_context(self) -> inputs.InputContext:
        if not self._in_cluster:
            return super()._input_context()
        jobs = [job for job in ("chief", "master", "worker") if job in self._cluster.jobs]
        tasks = [(job, i) for job in jobs for i in self._cluster.task_indices(job)]
        number = tasks.index((self._job, self._index)) if (self._job, self._index) in tasks else 0
        return inputs.InputContext(len(tasks), number, 1)


class ParameterServerStrategy(Strategy):
    """Asynchronous training in the cluster that TF_CONFIG, or a resolver, describes: each worker builds its own graph.

    Variables are in turn on the parameter servers. Each worker applies its gradients when it has them. Run a
    `tf.train.Server` in each task, or let `tf.estimator.train_and_evaluate` do so.
    """

    def __init__(self, cluster_resolver: Any = None) -> None:
        resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver
        super().__init__(ParameterServerExtended(None, resolver))
