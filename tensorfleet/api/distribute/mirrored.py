"""Strategies of one machine: `OneDeviceStrategy`, `MirroredStrategy` and `CentralStorageStrategy`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute.context import ClusterLike
from tensorfleet.api.distribute.copies import (
    AggregatingVariable,
    DistributedVariable,
    MirroredVariable,
    SyncOnReadVariable,
)
from tensorfleet.api.distribute.cross_device import CrossDeviceOps
from tensorfleet.api.distribute.extended import StrategyExtended
from tensorfleet.api.distribute.reducing import placed
from tensorfleet.api.distribute.strategy import Strategy
from tensorfleet.api.variables.variable import (
    ResourceVariable,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.base.properties import readonly
from tensorfleet.cluster.membership import tf_config
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import VariableMaker
    from tensorfleet.base.protos import ConfigProto


def full_name(device: str | DeviceSpec, task: DeviceSpec | None = None) -> str:
    """A device's name with its task: `task`, unless the name has another."""
    # Full names, because devices are compared as text.
    spec = DeviceSpec(replica=0, task=0, device_type="CPU", device_index=0)
    if task is not None:
        spec.merge_from(task)
    spec.merge_from(DeviceSpec.from_string(device.to_string() if isinstance(device, DeviceSpec) else device))
    return spec.to_string()


def on_task(task: DeviceSpec, device: str | DeviceSpec) -> str:
    """A device's name, on another task."""
    spec = device if isinstance(device, DeviceSpec) else DeviceSpec.from_string(device)
    return full_name(spec.replace(job=task.job, replica=task.replica, task=task.task))


def trainers(cluster: ClusterSpec) -> list[DeviceSpec]:
    """The tasks of a cluster that train, the one that leads first. One with two names has the first of them."""
    jobs = [job for job in (tf_config.CHIEF, tf_config.MASTER, tf_config.WORKER) if job in cluster.jobs]
    tasks: dict[str, DeviceSpec] = {}
    for job in jobs:
        for i in cluster.task_indices(job):
            tasks.setdefault(cluster.task_address(job, i), DeviceSpec(job=job, replica=0, task=i))
    return list(tasks.values())


def local_devices() -> list[str]:
    """The GPUs of this machine, or else its CPUs: one, unless `tf.config` has made several of it."""
    from tensorfleet.session.config import list_logical_devices

    devices = list_logical_devices("GPU") or list_logical_devices("CPU")
    return [f"/device:{d.device_type}:{i}" for i, d in enumerate(devices)] or ["/device:CPU:0"]


class OneDeviceExtended(StrategyExtended):
    """One replica, variables and all, on one device."""

    def __init__(self, container_strategy: Strategy | None, device: str) -> None:
        super().__init__(container_strategy)
        self._device = full_name(device)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The device."""
        return (self._device,)

    def _create_variable(self, next_creator: VariableMaker, **kwargs: Any) -> Variable:
        with placed(self._device):
            variable = next_creator(**kwargs)
        variable._distribute_strategy = self._strategy
        return variable


class OneDeviceStrategy(Strategy):
    """Everything on one device: a way to try a program that is written for strategies."""

    def __init__(self, device: str) -> None:
        super().__init__(OneDeviceExtended(None, device))


class ClusterExtended(StrategyExtended):
    """A strategy that uses the cluster it is configured with."""

    def _set_cluster(self, cluster: ClusterSpec, job: str | None, index: int) -> None:
        raise AssertionError("each strategy uses a cluster in its own way")

    def _configure(
        self,
        session_config: ConfigProto | None,
        cluster_spec: ClusterLike | None,
        task_type: str | None,
        task_id: int | None,
    ) -> None:
        if cluster_spec:
            self._set_cluster(ClusterSpec(cluster_spec), task_type, task_id or 0)
        if session_config is not None:
            session_config.CopyFrom(self._update_config_proto(session_config))


class MirroredExtended(ClusterExtended):
    """A replica on each device, and a copy of each variable beside it."""

    _has_copies = True

    def __init__(
        self,
        container_strategy: Strategy | None,
        devices: Sequence[Any],
        cross_device_ops: CrossDeviceOps | None = None,
    ) -> None:
        super().__init__(container_strategy)
        self._devices = tuple(full_name(d) for d in devices)
        if not self._devices:
            raise ValueError("Must specify at least one device for MirroredStrategy.")
        if len(set(self._devices)) != len(self._devices):
            raise ValueError(f"No duplicates allowed in `devices` argument: {list(devices)}")
        if cross_device_ops is not None and not isinstance(cross_device_ops, CrossDeviceOps):
            raise ValueError("cross_device_ops must be an instance of tf.distribute.CrossDeviceOps.")
        self._cross_device_ops = cross_device_ops

    worker_devices: tuple[str, ...] = readonly("_devices", "The device of each replica of this process.")

    def _set_cluster(self, cluster: ClusterSpec, job: str | None, index: int) -> None:
        """Takes the same devices of every worker: one graph has the replicas of all."""
        tasks = trainers(cluster)
        if tasks:
            own = dict.fromkeys(DeviceSpec.from_string(d).replace(job=None, task=None) for d in self._devices)
            self._devices = tuple(on_task(task, device) for task in tasks for device in own)

    def _update_config_proto(self, config_proto: ConfigProto) -> ConfigProto:
        updated = super()._update_config_proto(config_proto)
        updated.isolate_session_state = True
        tasks = {(spec.job, spec.task) for spec in map(DeviceSpec.from_string, self._devices) if spec.job}
        if tasks:  # one session has them all
            del updated.device_filters[:]
            updated.device_filters.extend(f"/job:{job}/task:{index}" for job, index in sorted(tasks))
        return updated

    def _create_variable(self, next_creator: VariableMaker, **kwargs: Any) -> Variable:
        if self._colocated is not None and not hasattr(self._colocated, "_copies"):
            with placed(self._colocated.device):
                return next_creator(**kwargs)
        return copies(self, self.parameter_devices, next_creator, kwargs)


def copies(
    extended: StrategyExtended, devices: Sequence[Any], next_creator: VariableMaker, kwargs: dict[str, Any]
) -> DistributedVariable:
    """A variable with a copy on each device; fewer devices than there are replicas are those of parameter servers."""
    collections = kwargs.pop("collections", None)
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    synchronization = kwargs.get("synchronization") or VariableSynchronization.AUTO
    aggregation = kwargs.get("aggregation") or VariableAggregation.NONE
    on_read = synchronization is VariableSynchronization.ON_READ
    trainable = kwargs.get("trainable")
    trainable = not on_read if trainable is None else trainable
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
        collections = [*collections, GraphKeys.TRAINABLE_VARIABLES]
    if not on_read:
        kwargs["synchronization"] = VariableSynchronization.ON_WRITE
    kwargs.update(collections=[], trainable=False)  # the whole is in the collections, not its copies
    parts: list[Any] = []
    for i, where in enumerate(devices):
        if i:
            kwargs["name"] = f"{parts[0].op.name}/replica_{i}/"
            kwargs["initial_value"] = _same_as(parts[0], where)
        with placed(where):
            parts.append(next_creator(**kwargs))
        # Set afterwards: a trainable copy would have joined the collection.
        parts[-1]._trainable = trainable
    own = on_read and len(devices) == len(extended.worker_devices)
    shared = AggregatingVariable if len(devices) < len(extended.worker_devices) else MirroredVariable
    kind = SyncOnReadVariable if own else shared
    result: DistributedVariable = kind(extended._container_strategy(), parts, aggregation)
    if isinstance(result, SyncOnReadVariable):
        result._summed_for_replicas = GraphKeys.METRIC_VARIABLES in collections
    graph = get_default_graph()
    for key in dict.fromkeys(collections):
        graph.add_to_collection(key, result)
    return result


def _same_as(first: ResourceVariable, where: str) -> Callable[[], Any]:
    def value() -> Tensor:
        with placed(where):
            return apply("Identity", first.initial_value)

    return value


class MirroredStrategy(Strategy):
    """A replica on each of a machine's devices; all have the same variables, and apply the sum of their gradients."""

    def __init__(
        self,
        devices: Sequence[str | DeviceSpec] | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
    ) -> None:
        wanted = local_devices() if devices is None else list(devices)
        super().__init__(MirroredExtended(None, wanted, cross_device_ops))


class CentralStorageExtended(MirroredExtended):
    """A replica on each device, the variables on one."""

    def __init__(
        self, container_strategy: Strategy | None, devices: Sequence[Any], parameter_device: str | None
    ) -> None:
        super().__init__(container_strategy, devices)
        default = self._devices[0] if len(self._devices) == 1 else "/device:CPU:0"
        self._parameter_device = full_name(parameter_device or default)
        self._cluster_spec = None

    def _create_variable(self, next_creator: VariableMaker, **kwargs: Any) -> Variable:
        if len(self._devices) > 1:
            return super()._create_variable(next_creator, **kwargs)
        with placed(self._parameter_device):
            variable = next_creator(**kwargs)
        variable._distribute_strategy = self._strategy
        return variable

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The device of the variables."""
        return (self._parameter_device,)

    def non_slot_devices(self, var_list: list[Variable]) -> str:
        """The device that holds all variables."""
        return self._parameter_device

    def _enter_scopes(self, blocks: ExitStack) -> None:
        blocks.enter_context(get_default_graph().device(self._parameter_device))


class CentralStorageStrategy(Strategy):
    """A replica on each of a machine's devices, and the variables, once, on the CPU or on the only device."""

    def __init__(
        self, compute_devices: Sequence[str | DeviceSpec] | None = None, parameter_device: str | None = None
    ) -> None:
        wanted = local_devices() if compute_devices is None else list(compute_devices)
        super().__init__(CentralStorageExtended(None, wanted, parameter_device))

    @classmethod
    def _from_num_gpus(cls, num_gpus: int) -> CentralStorageStrategy:
        return cls([f"/device:GPU:{i}" for i in range(num_gpus)] or ["/device:CPU:0"])
