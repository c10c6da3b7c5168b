"""`tf.train.replica_device_setter`: variables spread over parameter servers, everything else on the worker."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.devices import DeviceSpec
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.graph.operation import Operation

# The default of `ps_ops`: every op that holds parameters lives on parameter servers.
STANDARD_PS_OPS = [
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "VarHandleOp",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
]


@export("train.replica_device_setter")
def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: ClusterSpec | dict[str, Any] | None = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """A function for `tf.device` that builds replicas: each variable on the next parameter server.

    The number of servers comes from `cluster`, else from `ps_tasks`; without servers the result is None,
    which places nothing. `ps_strategy(op)` chooses the server's number in place of turns.
    """
    if cluster is not None:
        jobs = ClusterSpec(cluster).as_dict()
        job = DeviceSpec.from_string(ps_device).job
        if job not in jobs:
            return None
        ps_tasks = len(jobs[job])
    if ps_tasks == 0:
        return None
    strategy = RoundRobinStrategy(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise TypeError("ps_strategy must be callable")
    on_servers = frozenset(STANDARD_PS_OPS if ps_ops is None else ps_ops)
    return ReplicaDeviceChooser(ps_device, worker_device, merge_devices, on_servers, strategy).device_function


class ReplicaDeviceChooser:
    """Which device an operation of a replica is on. Scripts ask whether a setter is a method: it is one of this."""

    def __init__(
        self,
        ps_device: str,
        worker_device: str,
        merge_devices: bool,
        on_servers: frozenset[str],
        strategy: Callable[[Any], int],
    ) -> None:
        self._ps_device = ps_device
        self._worker_device = worker_device
        self._merge_devices = merge_devices
        self._on_servers = on_servers
        self._strategy = strategy

    def device_function(self, op: Operation) -> str:
        """The device of `op`: a server's for what holds state, else the worker's, under what `op` has already."""
        if not self._merge_devices and op.device:
            return op.device
        current = DeviceSpec.from_string(op.device or "")
        if self._ps_device and op.type in self._on_servers:
            spec = DeviceSpec.from_string(self._ps_device)
            if spec.job and current.job in (None, spec.job):
                spec.task = self._strategy(op)
        else:
            spec = DeviceSpec.from_string(self._worker_device or "")
        spec.merge_from(current)
        return spec.to_string()


class RoundRobinStrategy:
    """Server after server, in turn."""

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = num_tasks
        self._next_task = 0

    def __call__(self, unused_op: Operation) -> int:
        """The next task, in turn."""
        task = self._next_task
        self._next_task = (task + 1) % self._num_tasks
        return task


@export("contrib.training.RandomStrategy")
class RandomStrategy:
    """A task of the parameter servers for each variable, by chance but the same for a name in every process."""

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_ps_tasks
        self._seed = seed

    def __call__(self, op: Operation) -> int:
        """The task that the op's name hashes to."""
        # Not `hash`: Python salts it in each process, and all workers must agree.
        number = int(hashlib.sha256(op.name.encode()).hexdigest(), 16)
        return (number ^ self._seed) % self._num_tasks


@export("contrib.training.GreedyLoadBalancingStrategy")
class GreedyLoadBalancingStrategy:
    """Each variable to the server that has the least so far, by `load_fn(op)`."""

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        self._num_tasks = num_tasks
        self._load_fn = load_fn
        self._ps_loads = np.zeros(num_tasks)

    def __call__(self, op: Operation) -> int:
        """The task with the smallest load so far."""
        task = int(np.argmin(self._ps_loads))
        self._ps_loads[task] += self._load_fn(op)
        return task


@export("contrib.training.byte_size_load_fn")
def byte_size_load_fn(op: Operation) -> int:
    """The bytes of an operation's first output: the load of a variable."""
    if op.type == "VarHandleOp":
        dtype, shape = op.get_attr("dtype"), TensorShape(op.get_attr("shape"))
    else:
        dtype, shape = op.outputs[0].dtype, op.outputs[0].shape
    shape.assert_is_fully_defined()
    size: int = shape.num_elements() * dtype.size
    return size
