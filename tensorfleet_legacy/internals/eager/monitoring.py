"""`tensorflow.python.eager.monitoring`: numbers that libraries keep about themselves, by the labels they give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import export

_HERE = "python.eager.monitoring"


class Cell:
    """One value."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def value(self) -> Any:
        """The current value."""
        return self._value

    def set(self, value: Any) -> None:
        """Makes it another one."""
        self._value = type(self._value)(value)

    def increase_by(self, value: int) -> None:
        """Adds to it."""
        self._value += value


class Metric:
    """Values of one kind, one for each combination of labels."""

    _start: Callable[[], Any] = int

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self._name, self._description, self._labels = name, description, labels
        self._cells: dict[tuple, Cell] = {}

    def get_cell(self, *labels: str) -> Cell:
        """The value with these labels."""
        if len(labels) != len(self._labels):
            raise ValueError(
                f"The {type(self).__name__} expects taking {len(self._labels)} labels, but got {len(labels)}."
            )
        return self._cells.setdefault(labels, Cell(self._start()))


@export(f"{_HERE}.Counter")
class Counter(Metric):
    """Numbers that only grow."""


@export(f"{_HERE}.IntGauge")
class IntGauge(Metric):
    """Whole numbers that are set."""


@export(f"{_HERE}.StringGauge")
class StringGauge(Metric):
    """Texts that are set."""

    _start = str


@export(f"{_HERE}.BoolGauge")
class BoolGauge(Metric):
    """A gauge of a boolean."""

    _start = bool
