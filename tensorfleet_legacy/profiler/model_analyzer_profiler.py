"""`tf.profiler.Profiler`: profiles of several steps of one graph."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import find
from tensorfleet_legacy.profiler.model_analyzer import GraphNodeProto, profile
from tensorfleet_legacy.profiler.model_analyzer_advice import advice_of
from tensorfleet_legacy.profiler.tfprof_logger import op_log_of


class Profiler:
    """Collects the metadata of traced runs by step, and shows what they cost: one step's, or the mean of all."""

    def __init__(self, graph: Any = None, op_log: Any = None) -> None:
        self._graph = graph or find("get_default_graph")()
        self._op_log = op_log
        self._runs: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Adds a run."""
        self._runs[step] = run_meta

    def _profiled(self, cmd: str, options: dict) -> GraphNodeProto:
        step = options.get("step", -1)
        if step >= 0 and step not in self._runs:
            raise find("errors.InvalidArgumentError")(
                None,
                None,
                f"step {step} was not added: there are {sorted(self._runs)}. Add it with add_step.",
            )
        runs = [self._runs[step]] if step >= 0 else list(self._runs.values())
        return profile(self._graph, runs, self._op_log, cmd, options)

    def profile_python(self, options: dict) -> GraphNodeProto:
        """The costs of the program's lines."""
        return self._profiled("code", options)

    def profile_operations(self, options: dict) -> GraphNodeProto:
        """The costs of the types of operations."""
        return self._profiled("op", options)

    def profile_name_scope(self, options: dict) -> GraphNodeProto:
        """The costs of the name scopes."""
        return self._profiled("scope", options)

    def profile_graph(self, options: dict) -> GraphNodeProto:
        """The costs of the operations."""
        return self._profiled("graph", options)

    def advise(self, options: Any) -> Any:
        """The advice of the checks that `options` names about the steps."""
        return advice_of(self._graph, list(self._runs.values()), options)

    def serialize_to_string(self) -> bytes:
        """The known properties of the operations, as an `OpLogProto`."""
        return op_log_of(self._graph, self._op_log).SerializeToString()
