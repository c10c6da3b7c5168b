"""The blocks around the operations that a thread is making: scopes, devices, dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from tensorfleet.base.devices import DeviceLike
from tensorfleet.graph.operation import Operation

#: Gives the device of a new operation.
DeviceFunction: TypeAlias = "Callable[[Operation], DeviceLike]"
#: (device, file, line) of the blocks that name devices, the outermost first
DeviceLines: TypeAlias = "tuple[tuple[DeviceLike | DeviceFunction, str, int], ...]"
#: file and line of the block in which each operation was named that others are to be beside
ColocationLines: TypeAlias = dict[str, tuple[str, int]]


class ControlGroup:
    """One `control_dependencies` block: its control inputs, and the operations made inside it."""

    __slots__ = ("inputs", "members")

    def __init__(self, inputs: list[Operation]) -> None:
        self.inputs = inputs
        self.members: set[Operation] = set()


class Stacks:
    """The blocks around the operations that a thread is making."""

    __slots__ = (
        "colocation",
        "colocation_lines",
        "control_flow_context",
        "control_groups",
        "creators",
        "device_lines",
        "devices",
        "name_scope",
        "original_op",
        "strategies",
    )

    def __init__(self, devices: Iterable[DeviceFunction | None]) -> None:
        self.name_scope = ""
        self.devices: list[DeviceFunction | None] = list(devices)
        self.device_lines: DeviceLines = ()
        self.colocation: list[Operation] = []
        self.colocation_lines: ColocationLines = {}
        self.control_groups: list[ControlGroup] = []
        self.control_flow_context: Any = None
        self.original_op: Operation | None = None
        self.creators: list[Any] = []
        self.strategies: list[Any] = []


@contextmanager
def replaced(holder: object, name: str, value: object) -> Iterator[None]:
    """A block in which an attribute has another value."""
    old = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, old)
