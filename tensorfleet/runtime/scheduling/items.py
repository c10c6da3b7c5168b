"""What a program is made of: its parts, each bound to the slots of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tensorfleet.graph.operation import Operation

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class Item(Protocol):
    """One part of a program."""

    @property
    def name(self) -> str:
        """The name of its last operation."""

    @property
    def device(self) -> str:
        """The full name of the device it runs on."""

    @property
    def blocks(self) -> bool:
        """Whether it may wait for other steps, as a dequeue does."""

    def run(self, ctx: ExecutionContext, values: list[Any]) -> None:
        """Takes its inputs from their slots and puts its outputs into theirs."""


class OpItem(Item, Protocol):
    """A part that stands for one operation; a loop is one too."""

    @property
    def op(self) -> Operation:
        """The operation, or the last of those that are run together."""
