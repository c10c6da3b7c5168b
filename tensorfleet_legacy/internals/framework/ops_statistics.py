"""Costs of operations: functions that libraries register by op type, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet_legacy.profiler.model_analyzer import FLOPS

_FUNCTIONS: dict[tuple[str, str], Callable[[Any, Any], OpStats]] = {}


@export("python.framework.ops.OpStats")
class OpStats:
    """An amount of something, "flops" for instance; None while nothing is known of it."""

    def __init__(self, statistic_type: str, value: Any = None) -> None:
        self.statistic_type = statistic_type
        self.value = value

    @property
    def statistic_type(self) -> str:
        """The name of the statistic."""
        return self._statistic_type

    @statistic_type.setter
    def statistic_type(self, statistic_type: str) -> None:
        self._statistic_type = statistic_type

    @property
    def value(self) -> Any:
        """The amount."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value

    def __iadd__(self, other: OpStats) -> OpStats:
        if other.statistic_type != self.statistic_type:
            raise ValueError(f"Cannot add {other.statistic_type} to {self.statistic_type}.")
        if self.value is None:
            self.value = other.value
        elif other.value is not None:
            self.value += other.value
        return self


@export("python.framework.ops.RegisterStatistics")
class RegisterStatistics:
    """`@RegisterStatistics("MatMul", "flops")` over a function of a graph and a NodeDef that gives `OpStats`."""

    def __init__(self, op_type: str, statistic_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string.")
        if "," in op_type:
            raise TypeError("op_type must not contain a comma.")
        if not isinstance(statistic_type, str):
            raise TypeError("statistic_type must be a string.")
        if "," in statistic_type:
            raise TypeError("statistic_type must not contain a comma.")
        self._key = op_type, statistic_type

    def __call__(self, f: Callable) -> Callable:
        if self._key in _FUNCTIONS:
            raise KeyError(f"Statistics {self._key[1]!r} of {self._key[0]!r} are registered already.")
        _FUNCTIONS[self._key] = f
        return f


@export("python.framework.ops.get_stats_for_node_def")
def get_stats_for_node_def(graph: Any, node: Any, statistic_type: str) -> OpStats:
    """The cost of a node; an `OpStats` without value if nothing is known of its type."""
    function = _FUNCTIONS.get((node.op, statistic_type))
    if function is not None:
        return function(graph, node)
    counted = FLOPS.get(node.op) if statistic_type == "flops" else None
    return OpStats(statistic_type, counted and counted(graph.get_operation_by_name(node.name)))
