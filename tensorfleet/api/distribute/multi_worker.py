"""`MultiWorkerMirroredStrategy`: replicas on several workers that keep their variables equal."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import inputs, mirrored
from tensorfleet.api.distribute.context import ReduceOp
from tensorfleet.api.distribute.reducing import placed
from tensorfleet.api.distribute.strategy import Strategy
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.base.types import DTypeLike
from tensorfleet.cluster.membership import tf_config
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.control.collectives import RANK

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import InitializerLike, VariableMaker
    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.cluster.server import Server

_GROUP_KEY = 1
# The types that collectives carry; a string or a resource starts from the worker's own initializer.
_BROADCAST_DTYPES = {"bool", "float16", "bfloat16", "float32", "float64", "int32", "int64"}


class CollectiveCommunication(enum.Enum):
    """How workers add up their gradients. All ways give the same sum; TensorFleet has one, and takes any of these."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class MultiWorkerExtended(mirrored.MirroredExtended):
    """A replica on each device of each worker, and a copy of each variable beside it."""

    def __init__(
        self, container_strategy: Strategy | None, cluster: ClusterSpec, job: str | None, index: int
    ) -> None:
        super().__init__(container_strategy, mirrored.local_devices())
        self._num_workers = 1
        self._rank = 0
        self._leader = ""
        self._task: DeviceSpec | None = None
        self._cluster = cluster
        self._server: Server | None = None
        self._set_cluster(cluster, job, index)

    def _set_cluster(self, cluster: ClusterSpec, job: str | None, index: int) -> None:
        """Finds this worker in the cluster. A task of another job, such as an evaluator, works alone."""
        tasks = mirrored.trainers(cluster)
        own = DeviceSpec(job=job, replica=0, task=index)
        if tasks and job in cluster.jobs and job not in {task.job for task in tasks}:
            raise ValueError(
                f"MultiWorkerMirroredStrategy has no job {job!r}: its tasks are workers, and perhaps a chief. Leave "
                "parameter servers out of TF_CONFIG, or use ParameterServerStrategy."
            )
        if job is None or own not in tasks:
            return
        self._num_workers, self._rank = len(tasks), tasks.index(own)
        self._cluster = cluster
        self._first_replica = self._rank * len(self._devices)
        self._task = own
        self._leader = mirrored.full_name("/device:CPU:0", tasks[0])
        self._devices = tuple(mirrored.on_task(self._task, name) for name in self._devices)

    def _update_config_proto(self, config_proto: ConfigProto) -> ConfigProto:
        updated = super()._update_config_proto(config_proto)
        # With several workers the state is on servers, where all sessions of a worker must find it.
        updated.isolate_session_state = self._num_workers == 1
        if self._num_workers > 1:
            # Workers meet at the first one; other tasks of the cluster need not run.
            del updated.device_filters[:]
            wanted = {
                f"/job:{s.job}/task:{s.task}"
                for s in map(DeviceSpec.from_string, (self._leader, self._devices[0]))
            }
            updated.device_filters.extend(sorted(wanted))
        return updated

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._num_workers * len(self._devices)

    @property
    def experimental_between_graph(self) -> bool:
        """Each worker builds a graph of its own."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Whether this is the first worker."""
        return self._rank == 0

    @property
    def should_save_summary(self) -> bool:
        """Whether this is the first worker."""
        return self._rank == 0

    def _input_context(self) -> inputs.InputContext:
        return inputs.InputContext(self._num_workers, self._rank, self._num_replicas_in_sync)

    # -- collectives --

    def _keys(self) -> dict[str, Any]:
        """The next keys: programs of all workers ask in the same order."""
        graph = get_default_graph()
        number = graph.__dict__["_collective_instances"] = graph.__dict__.get("_collective_instances", 0) + 1
        return {"group_size": self._num_workers, "group_key": _GROUP_KEY, "instance_key": number}

    def _collective(self, kind: str, *values: Tensor, **attrs: Any) -> Tensor:
        graph = get_default_graph()
        with placed(self._leader), graph._attr_scope({RANK: self._rank, "_class": None}):
            return apply(kind, *values, **self._keys(), **attrs)

    def _differs(self, value: object) -> bool:
        return self._num_workers > 1 and isinstance(value, (Tensor, IndexedSlices, Variable))

    def _sum_over_workers(self, values: list[Any], reduce_op: ReduceOp) -> list[Any]:
        """The sums over all workers: those of one type travel together."""
        if self._num_workers == 1 or not values:
            return values
        tensors = [to_tensor(v) for v in values]
        sums: dict[int, Tensor] = {}
        for dtype in dict.fromkeys(t.dtype.base_dtype for t in tensors):
            numbers = [i for i, t in enumerate(tensors) if t.dtype.base_dtype == dtype]
            with placed(self._devices[0]):
                flat = [apply("Reshape", tensors[i], [-1]) for i in numbers]
                sizes = apply("Pack", [apply("Size", t) for t in flat])
                packed = flat[0] if len(flat) == 1 else concat(flat, 0)
            total = self._collective(
                "CollectiveReduce", packed, merge_op="Add", final_op="Id", subdiv_offsets=[0]
            )
            with placed(self._devices[0]):
                parts = (
                    [total] if len(flat) == 1 else apply_list("SplitV", total, sizes, 0, num_split=len(flat))
                )
                for i, part in zip(numbers, parts, strict=True):
                    sums[i] = apply("Reshape", part, apply("Shape", tensors[i]))
                    sums[i].set_shape(tensors[i].shape)
        return [sums[i] for i in range(len(tensors))]

    def _mean_over_workers(self, values: list[Any]) -> list[Any]:
        if self._num_workers == 1:
            return values
        totals = self._sum_over_workers(values, ReduceOp.SUM)
        return [t / to_tensor(self._num_workers, t.dtype.base_dtype) for t in totals]

    def _start_server(self) -> tuple[str, ConfigProto]:
        """The server of this worker, which its process starts once, and the configuration of sessions with it."""
        from tensorfleet.base.protos import ConfigProto
        from tensorfleet.cluster.server import Server

        if self._server is None and self._num_workers > 1:
            assert self._task is not None
            self._server = Server(self._cluster, job_name=self._task.job, task_index=self._task.task)
        target = "" if self._server is None else self._server.target
        return target, self._update_config_proto(ConfigProto(allow_soft_placement=True))

    def _part_of(self, size: int) -> slice:
        """Which rows of a batch are this worker's: all of one that is too small to be divided."""
        # Rounded up, so that only the last worker has fewer rows.
        part = -(-size // self._num_workers)
        if self._num_workers == 1 or part * (self._num_workers - 1) >= size:
            return slice(None)
        return slice(part * self._rank, part * (self._rank + 1))

    def _create_variable(self, next_creator: VariableMaker, **kwargs: Any) -> Variable:
        get_default_graph().__dict__["_of_workers"] = self
        local = GraphKeys.LOCAL_VARIABLES in (kwargs.get("collections") or ())
        if self._num_workers > 1 and not local:
            kwargs["initial_value"] = self._from_first(kwargs.get("initial_value"), kwargs.get("dtype"))
        return super()._create_variable(next_creator, **kwargs)

    def _from_first(self, given: InitializerLike, dtype: DTypeLike | None) -> Callable[[], Any]:
        """The initial value that the first worker has, so that all start alike."""

        def value() -> Tensor:
            mine = to_tensor(given() if callable(given) else given, dtype)
            if not mine.shape.is_fully_defined() or mine.dtype.base_dtype.name not in _BROADCAST_DTYPES:
                return mine
            if self._rank == 0:
                return self._collective("CollectiveBcastSend", mine, shape=mine.shape)
            return self._collective("CollectiveBcastRecv", T=mine.dtype.base_dtype, shape=mine.shape)

        return value


class MultiWorkerMirroredStrategy(Strategy):
    """Replicas on the devices of all workers of the cluster that TF_CONFIG describes, each program building its own graph.

    Each step's gradients are added over all workers, which therefore make the same number of steps. Without a cluster it
    is `MirroredStrategy`.
    """

    def __init__(self, communication: CollectiveCommunication | str = CollectiveCommunication.AUTO) -> None:
        CollectiveCommunication(communication)
        config = tf_config.read()
        super().__init__(MultiWorkerExtended(None, config.cluster, config.task_type, config.task_index or 0))
