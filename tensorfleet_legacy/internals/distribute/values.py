"""Names inside `tf.distribute` that tests and libraries import: replica values and variables, collective keys."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.naming import export, find, publish, publish_lazily, publish_module
from tensorfleet.base.properties import readonly

_INNER = "python.distribute"
_OLD = "contrib.distribute.python"
_VALUES = {
    "DistributedValues": "values",
    "Mirrored": "values",
    "PerReplica": "values",
    "regroup": "values",
    "select_device_mirrored": "values.select_copy",
    "select_replica": "values.select",
    "MultiStepContext": "extended.StepsContext",
    "AggregatingVariable": "copies",
    "DistributedVariable": "copies",
    "MirroredVariable": "copies",
    "ReplicaLocalVariable": "copies.SyncOnReadVariable",
    "SyncOnReadVariable": "copies",
    "TowerLocalVariable": "copies.SyncOnReadVariable",
}


def _value(full: str) -> Any:
    """A name of `values`, from where it is here, under the name it has here."""
    short = full.rpartition(".")[2]
    module, _, name = _VALUES[short].partition(".")
    return getattr(importlib.import_module(f"tensorfleet.api.distribute.{module}"), name or short)


publish_lazily(_value, f"{_INNER}.input_lib.MultiStepContext")
for _place in (_INNER, _OLD):
    publish_lazily(_value, *(f"{_place}.values.{name}" for name in _VALUES))
    publish_module(f"{_place}.cross_device_utils")
publish_module(f"{_OLD}.cross_tower_utils", f"{_INNER}.cross_device_utils")
publish_module(f"{_OLD}.cross_tower_ops", "distribute")
for _name in ("mirrored", "one_device", "parameter_server", "collective_all_reduce"):
    publish_module(f"{_OLD}.{_name}_strategy", "contrib.distribute")


@export(f"{_INNER}.tpu_strategy.TPUStrategy", f"{_INNER}.tpu_strategy.TPUStrategyV1")
class TPUStrategy:
    """The strategy of TPUs, so that others can be told from it: there are none here to make one for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise errors.NotFoundError(
            None,
            None,
            "No TPU was found: TensorFleet computes on CPUs and GPUs. Use tf.distribute.MirroredStrategy, or "
            "MultiWorkerMirroredStrategy over several machines.",
        )


@export(f"{_INNER}.values.ReplicaDeviceMap", f"{_INNER}.values.SingleDeviceMap")
class ReplicaDeviceMap:
    """The devices of the replicas, one for each."""

    def __init__(self, devices: Any) -> None:
        given = [devices] if isinstance(devices, str) else devices
        self._devices = tuple(find(f"{_INNER}.device_util.canonicalize")(d) for d in given)

    all_devices = readonly("_devices", "The devices.")
    num_logical_devices = property(lambda self: 1)
    num_replicas_in_graph = property(lambda self: len(self._devices))

    @property
    def devices_by_replica(self) -> tuple:
        """The devices of each replica."""
        return tuple((d,) for d in self._devices)

    def logical_to_actual_devices(self, logical_device_id: int) -> tuple[str, ...]:
        """The devices that are meant by a number: each replica has but one."""
        return self._devices

    def replica_for_device(self, device: str) -> int:
        """The replica that a device is of."""
        return self._devices.index(find(f"{_INNER}.device_util.canonicalize")(device))


@export(f"{_INNER}.input_lib.InputWorkers")
class InputWorkers:
    """The workers that read input, and the devices that each of them reads for: pairs of a device and those."""

    def __init__(self, device_map: Any, worker_device_pairs: Any = None, logical_device: int = 0) -> None:
        pairs = worker_device_pairs or [(d, [d]) for d in device_map.all_devices]
        self.device_map = device_map
        self._pairs = [(worker, tuple(devices)) for worker, devices in pairs]

    num_workers = property(lambda self: len(self._pairs))

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where the workers are."""
        return tuple(worker for worker, _ in self._pairs)

    def compute_devices_for_worker(self, worker_index: int) -> tuple[str, ...]:
        """The devices that a worker reads for."""
        return self._pairs[worker_index][1]


@export(f"{_INNER}.input_lib.InputFunctionIterator")
class InputFunctionIterator:
    """An iterator over what an input function gives for each of several workers."""

    def __init__(self, input_fn: Callable, input_workers: Any, input_contexts: Any, strategy: Any) -> None:
        if input_workers.num_workers != len(input_contexts):
            raise ValueError(
                f"Number of input workers ({input_workers.num_workers}) is not same as number of input_contexts "
                f"({len(input_contexts)})"
            )
        from tensorfleet.api.distribute.inputs import FunctionIterator

        self._parts = []
        for i, item in enumerate(input_contexts):
            devices = input_workers.compute_devices_for_worker(i)
            self._parts.append(FunctionIterator(SimpleNamespace(worker_devices=devices), input_fn(item)))

    def initialize(self) -> list:
        """The operation to run before the first element."""
        begun = [part.initialize() for part in self._parts]
        return [op for one in begun for op in (one if isinstance(one, list) else [one])]

    initializer = property(initialize)

    def get_next(self, name: str | None = None) -> Any:
        """The next element of each replica of all workers."""
        from tensorfleet.api.distribute.values import parts_of, regroup

        items = [part.get_next(name) for part in self._parts]
        return items[0] if len(items) == 1 else regroup([v for one in items for v in parts_of(one)])


class _Step:
    """Something to be done again and again under a strategy."""

    def __init__(self, distribution: Any) -> None:
        self._distribution = distribution

    @property
    def distribution(self) -> Any:
        """The strategy."""
        return self._distribution

    def initialize(self) -> list:
        """The operation to run before the first step."""
        return []

    def __call__(self) -> Any:
        """The operation of one step."""
        raise NotImplementedError("must be implemented in descendants")


@export(
    f"{_INNER}.step_fn.StandardInputStep",
    f"{_OLD}.step_fn.StandardInputStep",
    "contrib.distribute.StandardInputStep",
)
class StandardInputStep(_Step):
    """A step that takes elements of a dataset."""

    def __init__(self, dataset_fn: Callable, distribution: Any) -> None:
        super().__init__(distribution)
        self._iterator = distribution.make_input_fn_iterator(lambda _: dataset_fn())

    def initialize(self) -> Any:
        """Begins the dataset."""
        return self._iterator.initialize()


@export(
    f"{_INNER}.step_fn.StandardSingleLossStep",
    f"{_OLD}.step_fn.StandardSingleLossStep",
    "contrib.distribute.StandardSingleLossStep",
)
class StandardSingleLossStep(StandardInputStep):
    """A step that minimizes one loss, `loss_fn(context, element)`, for a number of elements."""

    def __init__(
        self,
        dataset_fn: Callable,
        loss_fn: Callable,
        optimizer: Any,
        distribution: Any,
        iterations_per_step: int = 1,
    ) -> None:
        super().__init__(dataset_fn, distribution)
        self._loss_fn, self._optimizer = loss_fn, optimizer
        self._iterations = iterations_per_step

    def __call__(self) -> Any:
        strategy = self._distribution

        def one(context: Any, element: Any) -> Any:
            def replica(x: Any) -> Any:
                return self._optimizer.minimize(lambda: self._loss_fn(context, x))

            return strategy.group(strategy.extended.call_for_each_replica(replica, args=(element,)))

        with strategy.scope():
            steps = strategy.extended.experimental_run_steps_on_iterator
            return steps(one, self._iterator, self._iterations).run_op


publish(_Step, f"{_INNER}.step_fn.Step", f"{_OLD}.step_fn.Step", "contrib.distribute.Step")


@export(f"{_INNER}.cross_device_utils.CollectiveKeys")
class CollectiveKeys:
    """Numbers by which workers find each other in a collective: of groups of devices, of variables, of operations."""

    def __init__(
        self,
        group_key_start: int = 1,
        op_instance_key_start: int = 100,
        variable_instance_key_start: int = 1000000,
        instance_key_start: int | None = None,
        instance_key_with_id_start: int | None = None,
    ) -> None:
        self._group_key = group_key_start
        self._groups: dict[str, int] = {}
        self._of_operations = op_instance_key_start if instance_key_start is None else instance_key_start
        of_variables = instance_key_with_id_start
        self._of_variables = variable_instance_key_start if of_variables is None else of_variables
        self._own = threading.local()
        self._lock = threading.Lock()

    def get_group_key(self, devices: Any) -> int:
        """The number of a set of devices, in whatever order and whichever task they are named."""
        kinds = sorted(d.lower().rpartition("device:")[2].lstrip("/") for d in devices)
        with self._lock:
            if ",".join(kinds) not in self._groups:
                self._groups[",".join(kinds)] = self._group_key
                self._group_key += 1
            return self._groups[",".join(kinds)]

    def get_op_instance_key(self) -> int:
        """The next number of this thread's operations."""
        result = getattr(self._own, "operations", self._of_operations)
        self._own.operations = result + 1
        return result

    def get_variable_instance_key(self) -> int:
        """The next number of this thread's variables."""
        result = getattr(self._own, "variables", self._of_variables)
        self._own.variables = result + 1
        return result

    def get_instance_key(self, key_id: Any = None) -> int:
        """The next number of an operation, or that of a variable with an id."""
        return self.get_op_instance_key() if key_id is None else self._of_variables + int(key_id)
