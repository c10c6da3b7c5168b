"""What `Session.list_devices` says of each device."""

from __future__ import annotations

from tensorfleet.base.devices import canonical_name
from tensorfleet.base.naming import export


@export("python.client.session._DeviceAttributes")
class DeviceAttributes:
    """One device in the result of `list_devices`."""

    def __init__(self, name: str, device_type: str, memory_limit_bytes: int, incarnation: int) -> None:
        self._name = canonical_name(name)
        self._device_type = device_type
        self._memory = memory_limit_bytes
        self._incarnation = incarnation

    @property
    def name(self) -> str:
        """The full name."""
        return self._name

    @property
    def device_type(self) -> str:
        """CPU or GPU."""
        return self._device_type

    @property
    def memory_limit_bytes(self) -> int:
        """How much memory it may use."""
        return self._memory

    @property
    def incarnation(self) -> int:
        """Tells one life of a device from the next."""
        return self._incarnation

    def __repr__(self) -> str:
        return f"_DeviceAttributes({self._name}, {self._device_type}, {self._memory}, {self._incarnation})"
