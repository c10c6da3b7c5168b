"""`tf.python.debug`: a session with a command line, and hooks and sessions that look at the tensors of every step.

The command line is that of `ui_type="readline"`. Where there is nobody to type (the standard input is at its end, as in a
task of a cluster), steps run through, and what a filter finds is printed.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.session import debug_dumps
from tensorfleet.session.fetches import fetch_plan
from tensorfleet_legacy.internals.debug.command_line import Analyzer, CommandError, parse_run
from tensorfleet_legacy.internals.debug.debug_data import DebugDumpDir, has_inf_or_nan

_MAX_SHOWN_TENSORS = 5  # tensors that one step names
_PROMPT = "tfdbg> "

Filter = Callable[[Any, Any], Any]


class _Datum:
    """The tensor that a filter is asked about when nothing is dumped."""

    def __init__(self, tensor: Tensor) -> None:
        self.node_name, self.output_slot = tensor.op.name, tensor.value_index
        self.op_type, self.tensor_name = tensor.op.type, tensor.name
        self.debug_op = debug_dumps.IDENTITY


class _Filters:
    """The filters of a session or a hook, and what each step is asked for because of them."""

    def __init__(self) -> None:
        self._filters: dict[str, Filter] = {}

    def add_tensor_filter(self, filter_name: str, tensor_filter: Filter) -> None:
        """Names each tensor of a step for which `tensor_filter(datum, value)` holds; `run -f` and `lt -f` take it."""
        self._filters[filter_name] = tensor_filter

    def _watched(self, graph: Graph, fetches: Any, feed_dict: Any) -> list[Tensor]:
        """The numbers that a step computes, if a filter wants to see them."""
        if not self._filters:
            return []
        return [t for t in computed(graph, fetches, feed_dict) if _is_number(t)]

    def _look(self, tensors: list[Tensor], values: list[Any]) -> None:
        for name, keeps in self._filters.items():
            items = [t for t, v in zip(tensors, values, strict=True) if keeps(_Datum(t), v)]
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


class _NobodyTypes(Exception):
    """The standard input is at its end."""


@export(
    "python.debug.LocalCLIDebugWrapperSession",
    "python.debug.wrappers.local_cli_wrapper.LocalCLIDebugWrapperSession",
)
class LocalCLIDebugWrapperSession(WrappedSession, _Filters):
    """A session that asks for commands before and after each run. All else is the session's that it is made of.

    `help` lists the commands. Dumps are under `dump_root`, or in a temporary folder that ends with the session.
    """

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
        self._root = dump_root
        self._runs = 0
        self._is_asking = True
        self._skip = 0  # runs that go without a prompt
        self._until: str | None = None  # the filter that ends them
        self._is_debugged = True
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - `input` then has a history

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The session's result for `fetches`."""
        self._runs += 1
        if self._is_asking and not self._skip and self._until is None:
            try:
                self._before(fetches, feed_dict)
            except _NobodyTypes:
                self._stop_asking()
        if not self._is_asking:
            watched = self._watched(self._session.graph, fetches, feed_dict)
            result, values = self._session.run((fetches, watched), feed_dict, options, run_metadata)
            self._look(watched, values)
            return result
        if self._skip:
            self._skip -= 1
            if self._skip or not self._is_debugged:
                return self._session.run(fetches, feed_dict, options, run_metadata)
        return self._debugged(fetches, feed_dict, options, run_metadata)

    def _debugged(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        graph = self._session.graph
        watched = computed(graph, fetches, feed_dict)
        error: BaseException | None = None
        result, values = None, []
        try:
            result, values = self._session.run((fetches, watched), feed_dict, options, run_metadata)
        except Exception as e:
            error, watched = e, []
        with self._folder() as folder:
            dump = self._dumped(folder, fetches, feed_dict, watched, values)
            analyzer = Analyzer(dump, self._filters)
            if self._until is not None and error is None and not dump.find(self._filter(self._until)):
                return result
            passed, self._until = self._until, None
            try:
                self._after(analyzer, passed, error)
            except _NobodyTypes:
                self._stop_asking()
        if error is not None:
            raise error
        return result

    def _filter(self, name: str) -> Filter:
        return {"has_inf_or_nan": has_inf_or_nan, **self._filters}[name]

    @contextlib.contextmanager
    def _folder(self) -> Any:
        folder = tempfile.mkdtemp(prefix=f"run_{self._runs}_", dir=self._root)
        try:
            yield folder
        finally:
            if self._root is None:
                shutil.rmtree(folder, ignore_errors=True)

    def _dumped(
        self, folder: str, fetches: Any, feed_dict: Any, watched: list[Tensor], values: list[Any]
    ) -> DebugDumpDir:
        from tensorfleet_legacy.internals.debug.dumping_wrapper import write_run

        graph, now = self._session.graph, time.time_ns() // 1000
        write_run(folder, self._runs - 1, graph, fetches, feed_dict)
        for i, (tensor, value) in enumerate(zip(watched, values, strict=True)):
            debug_dumps.write_tensor(folder, tensor, value, now + i)
        dump = DebugDumpDir(folder)
        dump.set_python_graph(graph)
        return dump

    # -- prompts --------------------------------------------------------------------------------------

    def _before(self, fetches: Any, feed_dict: Any) -> None:
        names = [t.name for t in fetch_plan(self._session.graph, fetches, [], None)[0]]
        fed = [str(getattr(key, "name", key)) for key in feed_dict or ()]
        print(f"\nrun-start: run #{self._runs}: {len(names)} fetch(es) {names}; {len(fed)} feed(s) {fed}")
        while not self._goes_on(line := _asked()):
            print(
                f"Before a run there are `run` and `exit`, not {line.partition(' ')[0]!r}. `help` lists all."
            )

    def _after(self, analyzer: Analyzer, passed: str | None, error: BaseException | None) -> None:
        print(f"\nrun-end: run #{self._runs}" + (f', filter "{passed}" passed' if passed else ""))
        if error is not None:
            print(f"The run failed: {error}")
        print(analyzer.do(f"lt -f {passed}" if passed else "lt"))
        while True:
            line = _asked()
            if line.split()[0] in ("run", "r", "exit", "quit"):
                if self._goes_on(line, is_end=True):
                    return
                continue
            try:
                print(analyzer.do(line))
            except CommandError as e:
                print(e)

    def _goes_on(self, line: str, is_end: bool = False) -> bool:
        """Takes `run` and `exit`; whether the program goes on."""
        words = line.split()
        if words[0] in ("exit", "quit"):
            sys.exit(1)
        if words[0] not in ("run", "r"):
            return False
        try:
            options = parse_run(words[1:])
            if options.f is not None:
                self._filter(options.f)
        except (CommandError, KeyError) as e:
            print(e if isinstance(e, CommandError) else f"There is no tensor filter named {e}.")
            return False
        self._until = options.f
        self._is_debugged = not options.n
        # After `run` at the end of a run comes the prompt of the next one.
        self._skip = 0 if is_end and options.t == 1 and not options.n else max(options.t, 1)
        return True

    def _stop_asking(self) -> None:
        self._is_asking = False
        print("tensorfleet: nobody types: steps run through, and filters name tensors.", file=sys.stderr)


def _asked() -> str:
    """The next line that is not empty."""
    while True:
        try:
            line = input(_PROMPT).strip()
        except (EOFError, OSError):
            raise _NobodyTypes from None
        if line:
            return line


@export("python.debug.LocalCLIDebugHook", "python.debug.wrappers.hooks.LocalCLIDebugHook")
class LocalCLIDebugHook(_Filters, SessionRunHook):
    """Applies filters to the tensors of a monitored session's steps. It has no prompt."""

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
