"""`ParameterServerStrategy`: variables on parameter servers, a replica on each worker, updates as they come."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import inputs, mirrored, reducing
from tensorfleet.api.distribute.strategy import Strategy
from tensorfleet.api.train.device_setter import replica_device_setter
from tensorfleet.base.properties import readonly
from tensorfleet.cluster.membership.resolvers import ClusterResolver, TFConfigClusterResolver
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.graph.scopes import get_default_graph

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import VariableMaker
    from tensorfleet.api.variables.variable import Variable
    from tensorfleet.base.protos import ConfigProto


class ParameterServerExtended(mirrored.ClusterExtended):
    """The replicas of this process on its worker's devices; their variables in turn on the parameter servers."""

    def __init__(
        self, container_strategy: Strategy | None, resolver: ClusterResolver, gpus: int | None = None
    ) -> None:
        super().__init__(container_strategy)
        self._gpus = resolver.num_accelerators().get("GPU", 0) if gpus is None else gpus
        self._set_cluster(resolver.cluster_spec(), resolver.task_type, resolver.task_id)

    def _set_cluster(self, cluster: ClusterSpec, job: str | None, index: int | None) -> None:
        self._cluster = cluster
        self._job, self._index = job, int(index or 0)
        self._servers = cluster.num_tasks("ps") if "ps" in cluster.jobs else 0
        self._in_cluster = bool(self._servers) and job in cluster.jobs
        self._cluster_spec = cluster if self._in_cluster else None
        self._task = f"/job:{job}/task:{self._index}" if self._in_cluster else ""
        kinds = [f"GPU:{i}" for i in range(self._gpus)] or ["CPU:0"]
        self._devices = tuple(mirrored.full_name(f"{self._task}/device:{kind}") for kind in kinds)
        alone = self._devices[0] if len(self._devices) == 1 else mirrored.full_name("/device:CPU:0")
        self._variable_device: Any = alone
        if self._in_cluster:
            self._variable_device = replica_device_setter(worker_device=self._task, cluster=cluster)

    worker_devices: tuple[str, ...] = readonly("_devices", "The devices of this worker.")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The parameter servers."""
        if not self._in_cluster:
            return (self._variable_device,)
        return tuple(f"/job:ps/task:{i}" for i in range(self._servers))

    def non_slot_devices(self, var_list: list[Variable]) -> str:
        """Where the first variable is: an optimizer has one set of them for all replicas."""
        return min(var_list, key=lambda v: v.name).device

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

    def _update_config_proto(self, config_proto: ConfigProto) -> ConfigProto:
        updated = super()._update_config_proto(config_proto)
        updated.isolate_session_state = not self._in_cluster
        if self._in_cluster:
            del updated.device_filters[:]
            # A worker needs the servers and itself; it must not wait for other workers that start late.
            own = "/job:chief" if self._job == "chief" else f"/job:{self._job}/task:{self._index}"
            updated.device_filters.extend([own, "/job:ps"])
        return updated

    def _enter_scopes(self, blocks: ExitStack) -> None:
        if self._in_cluster:
            blocks.enter_context(get_default_graph().device(self._task))

    def _create_variable(self, next_creator: VariableMaker, **kwargs: Any) -> Variable:
        where = self._variable_device if self._colocated is None else self._colocated.device
        if len(self._devices) > 1:
            return mirrored.copies(self, [where], next_creator, kwargs)
        with reducing.placed(where):
            variable = next_creator(**kwargs)
        variable._distribute_strategy = self._strategy
        return variable

    def _input_context(self) -> inputs.InputContext:
        if not self._in_cluster:
            return super()._input_context()
        jobs = [job for job in ("chief", "master", "worker") if job in self._cluster.jobs]
        tasks: list[tuple[str | None, int]] = [
            (job, i) for job in jobs for i in self._cluster.task_indices(job)
        ]
        number = tasks.index((self._job, self._index)) if (self._job, self._index) in tasks else 0
        return inputs.InputContext(len(tasks), number, self._num_replicas_in_sync)


class ParameterServerStrategy(Strategy):
    """Asynchronous training in the cluster that TF_CONFIG, or a resolver, describes: each worker builds its own graph.

    Variables are in turn on the parameter servers. Each worker applies its gradients when it has them. Run a
    `tf.train.Server` in each task, or let `tf.estimator.train_and_evaluate` do so.
    """

    def __init__(self, cluster_resolver: ClusterResolver | None = None) -> None:
        super().__init__(ParameterServerExtended(None, cluster_resolver or TFConfigClusterResolver()))
