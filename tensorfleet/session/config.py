"""`tf.config`: which devices there are and how a process uses them; `device_lib` under its old name.

Sessions take their options from their own ConfigProto. What is set here is remembered and reported back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorfleet.base.naming import export, publish
from tensorfleet.runtime import gpus
from tensorfleet.runtime.devices import divide_cpu, gpu_count, local_device_names

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that operations can be placed on."""

    name: str
    device_type: str


class VirtualDeviceConfiguration(NamedTuple):
    """The share of a virtual device: `memory_limit` in megabytes, or None."""

    memory_limit: int | None = None


publish(VirtualDeviceConfiguration, "config.experimental.VirtualDeviceConfiguration")


class _Settings:
    """The options that the functions below set, with the values of a fresh process."""

    def __init__(self) -> None:
        self.memory_growth: dict[PhysicalDevice, bool] = {}
        self.virtual: dict[PhysicalDevice, list[VirtualDeviceConfiguration]] = {}
        self.visible: list[PhysicalDevice] | None = None
        self.soft_device_placement = self.log_device_placement = self.jit = False
        self.synchronous = True
        self.device_policy = "silent"
        self.inter_op_threads = self.intra_op_threads = 0
        self.optimizer: dict[str, Any] = {}


_settings = _Settings()
_POLICIES = ("silent", "silent_for_int32", "warn", "explicit")
_OPTIONS = [
    "layout_optimizer",
    "constant_folding",
    "shape_optimization",
    "remapping",
    "arithmetic_optimization",
    "dependency_optimization",
    "loop_optimization",
    "function_optimization",
    "debug_stripper",
    "disable_model_pruning",
    "scoped_allocator_optimization",
    "pin_to_host_optimization",
    "implementation_selector",
    "auto_mixed_precision",
    "disable_meta_optimizer",
    "min_graph_nodes",
]


@export("config.experimental.list_physical_devices", "config.list_physical_devices")
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The CPUs and GPUs of this machine, of one type when asked for one."""
    devices = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    if device_type != "CPU":
        devices += [PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(_physical_gpus())]
    return [d for d in devices if device_type in (None, d.device_type)]


def _physical_gpus() -> int:
    """How many GPUs there are, found without starting JAX where that is possible: options come before that."""
    if not gpus.has_driver():
        return 0
    count = gpus.card_count()
    return gpu_count() if count is None else count


@export("config.experimental.list_logical_devices")
def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that operations can be placed on, of one type when asked for one."""
    result: list[LogicalDevice] = []
    for device in get_visible_devices(device_type):
        for _ in range(len(_settings.virtual.get(device, ())) or 1):
            index = sum(d.device_type == device.device_type for d in result)
            result.append(LogicalDevice(f"/device:{device.device_type}:{index}", device.device_type))
    return result


@export("config.experimental.get_visible_devices")
def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that this process may use."""
    visible = _settings.visible
    return [d for d in list_physical_devices(device_type) if visible is None or d in visible]


@export("config.experimental.set_visible_devices")
def set_visible_devices(
    devices: PhysicalDevice | Sequence[PhysicalDevice] | None, device_type: str | None = None
) -> None:
    """Chooses the devices to use; with a type, among those of that type."""
    # A device is a named tuple: asked first, or it would be taken for a sequence of its fields.
    one = devices is not None and (
        isinstance(devices, PhysicalDevice) or not isinstance(devices, (list, tuple))
    )
    wanted: list[Any] = [devices] if one else list(devices or ())
    known = list_physical_devices(device_type)
    for device in wanted:
        if device not in known:
            raise ValueError(f"Unrecognized device: {device!r}")
    others = [d for d in get_visible_devices() if device_type is not None and d.device_type != device_type]
    cards = tuple(int(d.name.rsplit(":", 1)[1]) for d in wanted if d.device_type == "GPU")
    if cards:
        if gpus.is_started():
            raise RuntimeError("Visible devices cannot be modified after being initialized")
        gpus.choose(gpus.GpuSettings(visible=cards))
    _settings.visible = [*others, *wanted]


def _check_known(device: PhysicalDevice) -> None:
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")


@export("config.experimental.get_memory_growth")
def get_memory_growth(device: PhysicalDevice) -> bool | None:
    """Whether a GPU's memory is allocated as needed; None when it was never set."""
    _check_known(device)
    return _settings.memory_growth.get(device)


@export("config.experimental.set_memory_growth")
def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Chooses whether a GPU's memory is allocated as needed, rather than all at once."""
    _check_known(device)
    if device.device_type != "GPU":
        raise ValueError("Cannot set memory growth on non-GPU devices")
    if gpus.is_started():
        raise RuntimeError("Physical devices cannot be modified after being initialized")
    _settings.memory_growth[device] = enable
    if enable:
        gpus.choose(gpus.GpuSettings(growth=True))  # JAX has one setting for all of them


@export("config.experimental.get_virtual_device_configuration")
def get_virtual_device_configuration(device: PhysicalDevice) -> list[VirtualDeviceConfiguration] | None:
    """How a device was divided; None when it was not."""
    _check_known(device)
    return _settings.virtual.get(device)


@export("config.experimental.set_virtual_device_configuration")
def set_virtual_device_configuration(
    device: PhysicalDevice, virtual_devices: Sequence[VirtualDeviceConfiguration]
) -> None:
    """Divides a device into several."""
    _check_known(device)
    if device.device_type == "CPU" and any(v.memory_limit is not None for v in virtual_devices):
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    _settings.virtual[device] = list(virtual_devices)
    if device.device_type == "CPU":
        divide_cpu(len(_settings.virtual[device]))


@export("config.experimental_list_devices")
def experimental_list_devices() -> list[str]:
    """The full names of the devices of this process."""
    return local_device_names()


@export("config.experimental.set_device_policy")
def set_device_policy(device_policy: str | None) -> None:
    """Sets the policy for inputs on another device than their operation."""
    if device_policy is not None and device_policy not in _POLICIES:
        raise ValueError(f"Not a valid device policy: {device_policy!r}")
    _settings.device_policy = device_policy or "silent"


@export("config.experimental.get_device_policy")
def get_device_policy() -> str:
    """The policy for inputs on another device than their operation."""
    return _settings.device_policy


@export("config.experimental.get_synchronous_execution")
def get_synchronous_execution() -> bool:
    """Whether operations run one by one."""
    return _settings.synchronous


@export("config.experimental.set_synchronous_execution")
def set_synchronous_execution(enable: bool) -> None:
    """Sets whether operations run one by one."""
    _settings.synchronous = bool(enable)


@export("config.get_soft_device_placement")
def get_soft_device_placement() -> bool:
    """Whether an operation may move to a device that can run it."""
    return _settings.soft_device_placement


@export("config.set_soft_device_placement")
def set_soft_device_placement(enabled: bool) -> None:
    """Sets whether an operation may move to a device that can run it."""
    _settings.soft_device_placement = bool(enabled)


@export("debugging.get_log_device_placement")
def get_log_device_placement() -> bool:
    """Whether placements are logged."""
    return _settings.log_device_placement


@export("debugging.set_log_device_placement")
def set_log_device_placement(enabled: bool) -> None:
    """Sets whether placements are logged."""
    _settings.log_device_placement = bool(enabled)


@export("config.optimizer.get_jit")
def get_jit() -> bool:
    """Whether compilation was asked for."""
    return _settings.jit


@export("config.optimizer.set_jit")
def set_jit(enabled: bool) -> None:
    """Asks for compilation. Programs are compiled anyway, once they are run often."""
    _settings.jit = bool(enabled)


def _threads(count: int) -> int:
    if int(count) < 0:
        raise ValueError(f"A number of threads must be non-negative, not {count}.")
    return int(count)


@export("config.threading.get_inter_op_parallelism_threads")
def get_inter_op_parallelism_threads() -> int:
    """How many threads were asked for to run operations side by side; 0 leaves it to the system."""
    return _settings.inter_op_threads


@export("config.threading.set_inter_op_parallelism_threads")
def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Asks for so many threads to run operations side by side."""
    _settings.inter_op_threads = _threads(num_threads)


@export("config.threading.get_intra_op_parallelism_threads")
def get_intra_op_parallelism_threads() -> int:
    """How many threads were asked for within one operation; 0 leaves it to the system."""
    return _settings.intra_op_threads


@export("config.threading.set_intra_op_parallelism_threads")
def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Asks for so many threads within one operation."""
    _settings.intra_op_threads = _threads(num_threads)


@export("config.optimizer.get_experimental_options")
def get_experimental_options() -> dict[str, Any]:
    """The graph optimizer's options that were set."""
    return dict(_settings.optimizer)


@export("config.optimizer.set_experimental_options")
def set_experimental_options(options: dict[str, Any]) -> None:
    """Sets options of TensorFlow's graph optimizer. XLA optimizes by itself: they are remembered only."""
    _settings.optimizer.update({k: v for k, v in options.items() if k in _OPTIONS})


@export("python.client.device_lib.list_local_devices")
def list_local_devices(session_config: ConfigProto | None = None) -> list[Any]:
    """The devices of this process as DeviceAttributes messages."""
    from tensorfleet.base.protos import DeviceAttributes

    result = []
    for i, name in enumerate(local_device_names(session_config, prefix="")):
        kind = name.split(":")[1]
        result.append(
            DeviceAttributes(name=name, device_type=kind, memory_limit=256 << 20, incarnation=i + 1)
        )
    return result
