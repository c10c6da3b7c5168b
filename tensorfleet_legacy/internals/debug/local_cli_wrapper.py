"""`tf.python.debug`: sessions and hooks that look at the tensors of every step.

The debugger's command line is not there: steps run through, and what a filter finds is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.session.fetches import fetch_plan

_MAX_SHOWN_TENSORS = 5  # tensors that one step names


class DebugTensorDatum(NamedTuple):
    """The tensor that a filter is asked about."""

    node_name: str
    output_slot: int
    op_type: str

    @property
    def tensor_name(self) -> str:
        """The tensor's name."""
        return f"{self.node_name}:{self.output_slot}"


Filter = Callable[[DebugTensorDatum, Any], Any]


@export("python.debug.has_inf_or_nan", "python.debug.lib.debug_data.has_inf_or_nan")
def has_inf_or_nan(datum: Any, tensor: Any) -> bool:
    """Whether a value has an infinite number in it, or one that is none."""
    kind = getattr(getattr(tensor, "dtype", None), "kind", "")
    return kind in ("f", "c") and not bool(np.all(np.isfinite(tensor)))


class _Filters:
    """The filters of a session or a hook, and what each step is asked for because of them."""

    def __init__(self) -> None:
        self._filters: dict[str, Filter] = {}
        print(
            "tensorfleet: the debugger has no command line here. Steps run through; add_tensor_filter names tensors.",
            file=sys.stderr,
        )

    def add_tensor_filter(self, filter_name: str, tensor_filter: Filter) -> None:
        """Names each tensor of a step for which `tensor_filter(datum, value)` holds."""
        self._filters[filter_name] = tensor_filter

    def _watched(self, graph: Graph, fetches: Any, feed_dict: Any) -> list[Tensor]:
        """The numbers that a step computes, if a filter wants to see them."""
        if not self._filters:
            return []
        return [t for t in computed(graph, fetches, feed_dict) if _is_number(t)]

    def _look(self, tensors: list[Tensor], values: list[Any]) -> None:
        for name, keeps in self._filters.items():
            pairs = zip(tensors, values, strict=True)
            items = [t for t, v in pairs if keeps(DebugTensorDatum(t.op.name, t.value_index, t.op.type), v)]
            shown = ", ".join(f"{t.name} ({t.op.type})" for t in items[:_MAX_SHOWN_TENSORS])
            if items:
                print(f"tensorfleet: {name}: {len(items)} tensors, the first: {shown}", file=sys.stderr)


def computed(graph: Graph, fetches: Any, feed_dict: Any) -> list[Tensor]:
    """The tensors that a step computes for its fetches, outside of branches and loops."""
    fed = {graph.as_graph_element(key, allow_operation=False) for key in feed_dict or () if _is_key(key)}
    tensors, targets, _ = fetch_plan(graph, fetches, [], None)
    waiting: list[Operation] = [*(t.op for t in tensors if t not in fed), *targets]
    seen: set[Operation] = set(waiting)
    while waiting:
        op = waiting.pop()
        before = [*(t.op for t in op.inputs if t not in fed), *op.control_inputs]
        waiting += (fresh := [o for o in dict.fromkeys(before) if o not in seen])
        seen.update(fresh)
    return [t for op in sorted(seen, key=lambda op: op._id) for t in op.outputs if _can_be_seen(t)]


def _is_key(key: Any) -> bool:
    return isinstance(key, Tensor | str)


def _is_number(tensor: Tensor) -> bool:
    return tensor.dtype.base_dtype.is_floating or tensor.dtype.base_dtype.is_complex


def _can_be_seen(tensor: Tensor) -> bool:
    op = tensor.op
    return op._control_flow_context is None and op.graph.is_fetchable(tensor)


class WrappedSession:
    """A session around another one, whose attributes it has."""

    _session: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def __enter__(self) -> Self:
        self._session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return self._session.__exit__(kind, error, trace)


@export(
    "python.debug.LocalCLIDebugWrapperSession",
    "python.debug.wrappers.local_cli_wrapper.LocalCLIDebugWrapperSession",
)
class LocalCLIDebugWrapperSession(WrappedSession, _Filters):
    """A session that applies filters to the tensors of its steps. All else is the session's that it is made of."""

    def __init__(
        self,
        sess: Any,
        dump_root: str | None = None,
        log_usage: bool = True,
        ui_type: str = "curses",
        thread_name_filter: str | None = None,
        config_file_path: Any = False,
    ) -> None:
        super().__init__()
        self._session = sess

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The session's result for `fetches`."""
        watched = self._watched(self._session.graph, fetches, feed_dict)
        result, values = self._session.run((fetches, watched), feed_dict, options, run_metadata)
        self._look(watched, values)
        return result


@export("python.debug.LocalCLIDebugHook", "python.debug.wrappers.hooks.LocalCLIDebugHook")
class LocalCLIDebugHook(_Filters, SessionRunHook):
    """Applies filters to the tensors of a monitored session's steps."""

    def __init__(
        self,
        ui_type: str = "curses",
        dump_root: str | None = None,
        thread_name_filter: str | None = None,
        config_file_path: str | None = None,
    ) -> None:
        super().__init__()

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Asks for the tensors of the step."""
        asked = run_context.original_args
        self._tensors = self._watched(run_context.session.graph, asked.fetches, asked.feed_dict)
        return SessionRunArgs(self._tensors)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Looks at them."""
        self._look(self._tensors, run_values.results)
