"""`strategy_combinations`: the strategies and optimizers that TensorFlow's own tests are run with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet_legacy.testing.combinations import NamedDistribution, NamedObject, combine

_TWO = ["/gpu:0", "/gpu:1"]
_MIXED = ["/gpu:0", "/cpu:0"]


def _named(title: str, name: str, *args: Any, gpus: int | None = None) -> NamedDistribution:
    return NamedDistribution(title, lambda: find(f"distribute.{name}")(*args), required_gpus=gpus)


def _of_tpus(title: str) -> NamedDistribution:
    return NamedDistribution(title, find("python.distribute.tpu_strategy.TPUStrategyV1"), required_tpu=True)


default_strategy = _named("Default", "get_strategy")
one_device_strategy = _named("OneDeviceCPU", "OneDeviceStrategy", "/cpu:0")
one_device_strategy_gpu = _named("OneDeviceGPU", "OneDeviceStrategy", "/gpu:0", gpus=1)
one_device_strategy_on_worker_1 = _named(
    "OneDeviceOnWorker1CPU", "OneDeviceStrategy", "/job:worker/replica:0/task:1/cpu:0"
)
one_device_strategy_gpu_on_worker_1 = _named(
    "OneDeviceOnWorker1GPU", "OneDeviceStrategy", "/job:worker/replica:0/task:1/gpu:0", gpus=1
)
mirrored_strategy_with_one_cpu = _named("Mirrored1CPU", "MirroredStrategy", ["/cpu:0"])
mirrored_strategy_with_one_gpu = _named("Mirrored1GPU", "MirroredStrategy", ["/gpu:0"], gpus=1)
mirrored_strategy_with_gpu_and_cpu = _named("MirroredCPUAndGPU", "MirroredStrategy", _MIXED, gpus=1)
mirrored_strategy_with_two_gpus = _named("Mirrored2GPUs", "MirroredStrategy", _TWO, gpus=2)
mirrored_strategy_with_cpu_1_and_2 = _named("Mirrored2CPU", "MirroredStrategy", ["/cpu:1", "/cpu:2"])
core_mirrored_strategy_with_one_cpu = mirrored_strategy_with_one_cpu
core_mirrored_strategy_with_one_gpu = mirrored_strategy_with_one_gpu
core_mirrored_strategy_with_gpu_and_cpu = mirrored_strategy_with_gpu_and_cpu
core_mirrored_strategy_with_two_gpus = mirrored_strategy_with_two_gpus
central_storage_strategy_with_two_gpus = _named(
    "CentralStorage2GPUs", "experimental.CentralStorageStrategy", _TWO, gpus=2
)
central_storage_strategy_with_gpu_and_cpu = _named(
    "CentralStorageCPUAndGPU", "experimental.CentralStorageStrategy", _MIXED, gpus=1
)
tpu_strategy = _of_tpus("TPU")
tpu_strategy_one_step = _of_tpus("TPUOneStep")
tpu_strategy_one_core = _of_tpus("TPUOneCore")
tpu_strategy_one_step_one_core = _of_tpus("TPUOneStepOneCore")
cloud_tpu_strategy = _of_tpus("CloudTPU")


def _optimizer(title: str, name: str, *args: Any, **kwargs: Any) -> NamedObject:
    return NamedObject(title, lambda: find(name)(*args, **kwargs))


gradient_descent_optimizer_v1_fn = _optimizer("GradientDescentV1", "train.GradientDescentOptimizer", 0.2)
adagrad_optimizer_v1_fn = _optimizer("AdagradV1", "train.AdagradOptimizer", 0.001)
adam_optimizer_v1_fn = _optimizer("AdamV1", "train.AdamOptimizer", 0.001, epsilon=1)
rmsprop_optimizer_v1_fn = _optimizer("RmsPropV1", "train.RMSPropOptimizer", 0.001)
gradient_descent_optimizer_keras_v2_fn = _optimizer("GradientDescentKerasV2", "keras.optimizers.SGD", 0.2)
adagrad_optimizer_keras_v2_fn = _optimizer("AdagradKerasV2", "keras.optimizers.Adagrad", 0.001)
adam_optimizer_keras_v2_fn = _optimizer("AdamKerasV2", "keras.optimizers.Adam", 0.001, epsilon=1.0)
rmsprop_optimizer_keras_v2_fn = _optimizer("RmsPropKerasV2", "keras.optimizers.RMSprop", 0.001)
optimizers_v1 = [gradient_descent_optimizer_v1_fn, adagrad_optimizer_v1_fn]
optimizers_v2 = [gradient_descent_optimizer_keras_v2_fn, adagrad_optimizer_keras_v2_fn]
optimizers_v1_and_v2 = optimizers_v1 + optimizers_v2

graph_and_eager_modes = ["graph", "eager"]
one_replica_strategies = [default_strategy, one_device_strategy, one_device_strategy_gpu]
two_replica_strategies = [mirrored_strategy_with_gpu_and_cpu, mirrored_strategy_with_two_gpus]
strategies_minus_default_and_tpu = [one_device_strategy, one_device_strategy_gpu, *two_replica_strategies]
strategies_minus_tpu = [default_strategy, *strategies_minus_default_and_tpu]
tpu_strategies = [tpu_strategy, tpu_strategy_one_step]
all_strategies = strategies_minus_tpu + tpu_strategies
multidevice_strategies = [*two_replica_strategies, tpu_strategy]


def _with(optimizers: list) -> Callable[[], list[OrderedDict]]:
    strategies = [one_device_strategy, *two_replica_strategies]
    return lambda: combine(distribution=strategies, optimizer_fn=optimizers)


distributions_and_v1_optimizers = _with(optimizers_v1)
distributions_and_v2_optimizers = _with(optimizers_v2)
distributions_and_v1_and_v2_optimizers = _with(optimizers_v1_and_v2)


def strategy_minus_tpu_combinations() -> list[OrderedDict]:
    """Every strategy that needs no TPU."""
    return combine(distribution=strategies_minus_tpu, mode=graph_and_eager_modes)


def tpu_strategy_combinations() -> list[OrderedDict]:
    """Every strategy of TPUs."""
    return combine(distribution=tpu_strategies, mode=["graph"])


def all_strategy_combinations() -> list[OrderedDict]:
    """Every strategy."""
    return strategy_minus_tpu_combinations() + tpu_strategy_combinations()


def all_strategy_minus_default_and_tpu_combinations() -> list[OrderedDict]:
    """Every strategy that needs no TPU, but for the default one."""
    return combine(distribution=strategies_minus_default_and_tpu, mode=graph_and_eager_modes)


def all_strategy_combinations_minus_default() -> list[OrderedDict]:
    """Every strategy but the default one."""
    return all_strategy_minus_default_and_tpu_combinations() + tpu_strategy_combinations()


def set_virtual_cpus_to_at_least(num_virtual_cpus: int) -> None:
    """Sessions have at least so many CPUs from here on."""
    if num_virtual_cpus < 1:
        raise ValueError(f"`num_virtual_cpus` must be at least 1 not {num_virtual_cpus!r}")
    (cpu,) = find("config.experimental.list_physical_devices")("CPU")
    have = find("config.experimental.get_virtual_device_configuration")(cpu)
    if have is None:
        virtual = [find("config.experimental.VirtualDeviceConfiguration")() for _ in range(num_virtual_cpus)]
        find("config.experimental.set_virtual_device_configuration")(cpu, virtual)
    elif len(have) < num_virtual_cpus:
        raise RuntimeError(f"Already configured with {len(have)} < {num_virtual_cpus} virtual CPUs")
