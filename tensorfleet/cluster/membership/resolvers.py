"""`tf.distribute.cluster_resolver`: how a program learns which cluster it is in."""

from __future__ import annotations

import abc
from collections import Counter
from typing import TYPE_CHECKING, Any

from tensorfleet.base.naming import export
from tensorfleet.cluster.membership import tf_config
from tensorfleet.cluster.membership.spec import ClusterSpec, Tasks

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto


def _names(name: str) -> list[str]:
    return [f"distribute.cluster_resolver.{name}", f"contrib.cluster_resolver.{name}"]


def format_master_url(master: str, rpc_layer: str | None = None) -> str:
    """An address with the protocol before it."""
    return f"{rpc_layer}://{master}" if rpc_layer else master


@export(*_names("ClusterResolver"))
class ClusterResolver(abc.ABC):
    """The base of all resolvers."""

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    @abc.abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The cluster as it is now."""

    @abc.abstractmethod
    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for `tf.Session`; empty when there is no cluster."""

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: ConfigProto | None = None,
    ) -> dict[str, int]:
        """How many devices of each kind this task has."""
        from tensorfleet.runtime.devices import local_device_names

        return dict(Counter(name.rsplit(":", 2)[-2] for name in local_device_names(config_proto)))

    @property
    def environment(self) -> str | None:
        """What the cluster runs in; empty when nobody said."""
        return ""


class OwnTaskResolver(ClusterResolver):
    """A resolver that knows which task this process is, by its own job and number."""

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task, of this one by default; empty when it is not known which that is."""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            return ""
        return format_master_url(self.cluster_spec().task_address(job, index), rpc_layer or self.rpc_layer)


@export(*_names("SimpleClusterResolver"))
class SimpleClusterResolver(ClusterResolver):
    """A cluster that the program gives itself."""

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        if not isinstance(master, str):
            raise TypeError("master must be a string.")
        self._cluster_spec = cluster_spec
        self._master = master
        self.task_type = task_type
        self.task_id = task_id
        self._environment = environment
        self._num_accelerators = num_accelerators
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The cluster given."""
        return self._cluster_spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task, or the master given."""
        address = self._master
        if task_type is not None and task_id is not None:
            address = self._cluster_spec.task_address(task_type, task_id)
        return format_master_url(address, rpc_layer or self.rpc_layer) if address else ""

    @property
    def environment(self) -> str:
        """What the cluster runs in."""
        return self._environment

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: ConfigProto | None = None,
    ) -> dict[str, int]:
        """As given, or as this task has."""
        if self._num_accelerators is not None:
            return self._num_accelerators
        return super().num_accelerators(task_type, task_id, config_proto)


@export(*_names("TFConfigClusterResolver"))
class TFConfigClusterResolver(ClusterResolver):
    """The cluster that the environment variable `TF_CONFIG` describes; arguments override what it says."""

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer
        self._environment = environment

    @property
    def task_type(self) -> str | None:
        """The job of this task."""
        return self._task_type if self._task_type is not None else tf_config.read().task_type

    @task_type.setter
    def task_type(self, value: str | None) -> None:
        self._task_type = value

    @property
    def task_id(self) -> int | None:
        """The number of this task."""
        return self._task_id if self._task_id is not None else tf_config.read().task_index

    @task_id.setter
    def task_id(self, value: int | None) -> None:
        self._task_id = value

    @property
    def environment(self) -> str | None:
        """What the cluster runs in."""
        return self._environment

    @property
    def rpc_layer(self) -> str | None:
        """The protocol."""
        return self._rpc_layer if self._rpc_layer is not None else tf_config.read().rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, value: str | None) -> None:
        self._rpc_layer = value

    def cluster_spec(self) -> ClusterSpec:
        """The cluster; empty when `TF_CONFIG` is not set."""
        return tf_config.read().cluster

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task, of this one by default; empty when the cluster is this task alone, or none.

        A `session_master` in `TF_CONFIG` is the address, whatever else is asked for.
        """
        session_master: str | None = tf_config.read().fields.get("session_master")
        if session_master is not None:
            return session_master
        cluster = self.cluster_spec()
        if sum(cluster.num_tasks(job) for job in cluster.jobs) <= 1:
            return ""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            raise ValueError(
                'TF_CONFIG does not say which task this is. Add "task": {"type": ..., "index": ...} to it, or '
                "pass task_type and task_id."
            )
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return format_master_url(cluster.task_address(job, index), layer)


@export(*_names("UnionResolver"))
class UnionResolver(ClusterResolver):
    """Several clusters as one; what else is asked is answered by the first."""

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        if not args:
            raise ValueError("At least one resolver is required.")
        if not all(isinstance(resolver, ClusterResolver) for resolver in args):
            raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        unknown = set(kwargs) - {"rpc_layer", "task_type", "task_id"}
        if unknown:
            raise ValueError(f"Unexpected keyword arguments: {sorted(unknown)}.")
        self._resolvers: tuple[ClusterResolver, ...] = args
        self.rpc_layer = kwargs.get("rpc_layer", args[0].rpc_layer)
        self.task_type = kwargs.get("task_type", args[0].task_type)
        self.task_id = kwargs.get("task_id", args[0].task_id)

    def cluster_spec(self) -> ClusterSpec:
        """The jobs of all; tasks of the same job one after the other, unless they are numbered."""
        merged: dict[str, Tasks] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                merged[job] = _joined(job, merged[job], tasks) if job in merged else tasks
        return ClusterSpec(merged)

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task, or what the first resolver gives."""
        layer = rpc_layer or self.rpc_layer
        if task_type is not None and task_id is not None:
            return format_master_url(self.cluster_spec().task_address(task_type, task_id), layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    @property
    def environment(self) -> str | None:
        """What the first cluster runs in."""
        return self._resolvers[0].environment

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: ConfigProto | None = None,
    ) -> dict[str, int]:
        """As the first resolver says."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


def _joined(job: str, first: Tasks, second: Tasks) -> Tasks:
    if isinstance(first, list) and isinstance(second, list):
        return first + [address for address in second if address not in first]
    one, two = (dict(enumerate(t)) if isinstance(t, list) else dict(t) for t in (first, second))
    for index in one.keys() & two.keys():
        if one[index] != two[index]:
            raise KeyError(f"Task {index} of job {job!r} has two addresses: {one[index]} and {two[index]}.")
    return {**one, **two}
