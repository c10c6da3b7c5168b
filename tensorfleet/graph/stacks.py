"""What surrounds the operations a thread is making: scopes, devices, dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.graph.operation import Operation


class ControlGroup:
    """One `control_dependencies` block: what to wait for, and what was made inside it."""

    __slots__ = ("inputs", "members")

    def __init__(self, inputs: list[Operation]) -> None:
        self.inputs = inputs
        self.members: set[Operation] = set()


class Stacks:
    """What surrounds the operations a thread is making."""

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

    def __init__(self, devices: list) -> None:
        self.name_scope = ""
        self.devices: list = list(devices)
        #: (device, file, line) of the blocks that name devices, the outermost first
        self.device_lines: tuple[tuple[Any, str, int], ...] = ()
        self.colocation: list[Operation] = []
        #: where each operation was named that others are to be beside
        self.colocation_lines: dict[str, tuple[str, int]] = {}
        self.control_groups: list[ControlGroup] = []
        self.control_flow_context: Any = None
        self.original_op: Operation | None = None
        self.creators: list = []
        self.strategies: list = []


@contextmanager
def replaced(holder: Any, name: str, value: Any) -> Iterator[None]:
    """A block in which an attribute has another value."""
    old = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, old)
