"""Device names: `/job:ps/replica:0/task:1/device:CPU:0`, in whole or in part."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

# Job, replica, task, device type and device index.
_Parts: TypeAlias = tuple[str | None, int | None, int | None, str | None, int | None]
#: A device as users write it.
DeviceLike: TypeAlias = "str | DeviceSpec | None"


class DeviceSpec:
    """A partly or fully specified device; parts left None are open."""

    __slots__ = ("device_index", "device_type", "job", "replica", "task")

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = job
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        self.device_type = _type_name(device_type)
        self.device_index = None if device_index is None else int(device_index)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Replaces every part by that of `spec`, and returns self."""
        job, replica, task, kind, index = _parse(spec)
        self.job, self.replica, self.task = job, replica, task
        self.device_type, self.device_index = kind, index
        return self

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """A new spec from a string such as `/job:worker/task:3/gpu:0`."""
        return cls(*_parse(spec))

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A new spec: this one, with every part that `dev` specifies taken from it."""
        merged = type(self)(*self.parts())
        merged.merge_from(dev)
        return merged

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """A new spec: this one with the named parts changed."""
        return type(self)(**{**dict(zip(_PARTS, self.parts(), strict=True)), **kwargs})

    def merge_from(self, dev: DeviceSpec) -> None:
        """Takes over every part that `dev` specifies."""
        for part in DeviceSpec.__slots__:
            value = getattr(dev, part)
            if value is not None:
                setattr(self, part, value)

    def to_string(self) -> str:
        """The canonical string of the specified parts."""
        text = ""
        if self.job is not None:
            text += f"/job:{self.job}"
        if self.replica is not None:
            text += f"/replica:{self.replica}"
        if self.task is not None:
            text += f"/task:{self.task}"
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            text += f"/device:{self.device_type}:{index}"
        return text

    def parts(self) -> _Parts:
        """(job, replica, task, device_type, device_index)."""
        return self.job, self.replica, self.task, self.device_type, self.device_index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.parts() == other.parts()

    def __hash__(self) -> int:
        return hash(self.parts())

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"DeviceSpec({self.to_string()!r})"


_PARTS = ("job", "replica", "task", "device_type", "device_index")


def _type_name(kind: str | None) -> str | None:
    return kind.upper() if kind is not None and kind.lower() in ("cpu", "gpu", "tpu") else kind


@lru_cache(maxsize=4096)
def _parse(spec: str) -> _Parts:
    job = replica = task = kind = index = None
    # TensorFlow takes the type as "device:GPU:0" and in the older form "gpu:0".
    for part in spec.split("/") if spec else ():
        key, *rest = part.split(":")
        if not part:
            continue
        try:
            if key == "job" and len(rest) == 1:
                job = rest[0]
            elif key == "replica" and len(rest) == 1:
                replica = int(rest[0])
            elif key == "task" and len(rest) == 1:
                task = int(rest[0])
            elif key.lower() in ("cpu", "gpu", "tpu") and len(rest) <= 1 and kind is None:
                kind = key.upper()
                index = int(rest[0]) if rest and rest[0] != "*" else None
            elif key == "device" and 1 <= len(rest) <= 2 and kind is None:
                kind = _type_name(rest[0])
                index = int(rest[1]) if len(rest) == 2 and rest[1] != "*" else None
            elif key.lower() in ("cpu", "gpu", "tpu", "device") and kind is not None:
                raise ValueError(f"Cannot specify multiple device types: {spec!r}")
            else:
                raise ValueError(
                    f"Unknown attribute: '{key}' in device {spec!r}; write it as "
                    "/job:NAME/replica:N/task:N/device:CPU:N, any part left out."
                )
        except ValueError as e:
            # The errors raised above name the device; those of int() do not.
            if "device" in str(e):
                raise
            raise ValueError(
                f"Malformed device specification {spec!r}: {part!r} needs a number: {e}"
            ) from None
    return job, replica, task, kind, index


def canonical_name(device: DeviceLike) -> str:
    """The canonical string of a device given as a string, a `DeviceSpec` or None."""
    if not device:
        return ""
    return device.to_string() if isinstance(device, DeviceSpec) else _canonical(str(device))


@lru_cache(maxsize=4096)
def _canonical(device: str) -> str:
    return DeviceSpec(*_parse(device)).to_string()


@lru_cache(maxsize=4096)
def hardware(device: str) -> str:
    """The name of the processor behind a device: all CPUs of a task are the same one."""
    task, separator, name = device.rpartition("/device:")
    return f"{task}{separator}CPU" if name.startswith("CPU:") else device


@lru_cache(maxsize=4096)
def merged(outer: str, inner: str) -> str:
    """`inner` where it says something, `outer` for the rest."""
    spec = DeviceSpec(*_parse(outer))
    spec.merge_from(DeviceSpec(*_parse(inner)))
    return spec.to_string()


def merge_device(spec: DeviceLike) -> Callable[[Any], str]:
    """A device function that fills the parts an op leaves open from `spec`."""
    outer = canonical_name(spec)
    return lambda op: merged(outer, op if isinstance(op, str) else op.device or "")
