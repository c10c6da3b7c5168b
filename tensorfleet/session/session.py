"""`tf.Session`: runs parts of a graph and hands back numpy arrays."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tensorfleet.base import counters, errors
from tensorfleet.base.counters import INPUT, StepTimer, steps
from tensorfleet.base.naming import export
from tensorfleet.cluster.targets import engine_for
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import default_session, get_default_graph
from tensorfleet.runtime import recording
from tensorfleet.runtime.devices import is_narrow, wide_types
from tensorfleet.runtime.engine import CLOSED
from tensorfleet.runtime.engine_protocol import Engine, Planned
from tensorfleet.runtime.trace import StepObserver, begin_step, runs_by_op
from tensorfleet.session.device_attributes import DeviceAttributes
from tensorfleet.session.feeds import Converter, feed_plan
from tensorfleet.session.fetches import Build, fetch_plan, key_of
from tensorfleet.session.partial import PartialRuns

if TYPE_CHECKING:
    from types import TracebackType

    from tensorfleet.base.protos import CallableOptions, ConfigProto, GraphDef, RunMetadata, RunOptions
    from tensorfleet.base.types import FeedDict


class _Prepared:
    """A planned call of `run`: converters of the feeds, the program, and the arrangement of the results."""

    __slots__ = ("arrange", "convert", "program", "runs")

    def __init__(self, program: Planned, convert: list[Converter], arrange: Build) -> None:
        self.program = program
        self.convert = convert
        self.arrange = arrange
        self.runs = 0  # counted when a model of costs is wanted


@export("python.client.session.BaseSession", "python.client.session.SessionInterface")
class BaseSession:
    """Base of `Session` and `InteractiveSession`."""

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        if target is None:
            target = ""
        elif isinstance(target, bytes):
            target = target.decode()
        if not isinstance(target, str):
            raise TypeError(f"target must be a string, but got {type(target)}")
        if config is not None and not hasattr(config, "allow_soft_placement"):
            raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
        self._graph = graph if graph is not None else get_default_graph()
        self._target = target
        self._config = config
        self._closed = False
        self._engine: Engine[Any] = engine_for(target, self._graph, config)
        self._prepared: dict[Hashable, _Prepared] = {}
        self._prepared_edits = self._graph._edits
        self._checked = 0  # of the graph's operations, those whose devices there are
        self._partial = PartialRuns(self._graph, self._engine)
        # TensorFlow places the whole graph before its first run, also operations that no fetch needs.
        self._place_all = config is None or not config.graph_options.place_pruned_graph
        self._modelled = 0 if config is None else config.graph_options.build_cost_model
        self._entered: list[tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = []

    @property
    def graph(self) -> Graph:
        """The graph this session runs."""
        return self._graph

    @property
    def graph_def(self) -> GraphDef:
        """The graph as a `GraphDef`."""
        shapes = self._config is not None and self._config.graph_options.infer_shapes
        return self._graph.as_graph_def(add_shapes=shapes)

    @property
    def sess_str(self) -> str:
        """The target this session was made with."""
        return self._target

    def run(
        self,
        fetches: object,
        feed_dict: FeedDict | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs the operations that `fetches` need and returns their values in the same structure.

        `feed_dict` maps tensors (or their names) to values; `options` is a `tf.RunOptions`, and
        `run_metadata` a `tf.RunMetadata` to be filled.
        """
        if options is not None or run_metadata is not None or self._modelled:
            return self._run_traced(fetches, feed_dict, options, run_metadata)
        prepared = self._prepare(fetches, feed_dict)
        if steps.seconds >= steps.due:
            return prepared.arrange(self._measure(prepared, feed_dict.values() if feed_dict else ()))
        began = perf_counter()
        if feed_dict:
            feeds = [c(v) for c, v in zip(prepared.convert, feed_dict.values(), strict=True)]
            # A converter returns a list for a composite value such as a SparseTensor. Most steps have none.
            if list in map(type, feeds):
                feeds = _flattened(feeds)
        else:
            feeds = ()  # type: ignore[assignment]
        results = self._execute(prepared.program, feeds)
        # A call within the sum would let other threads come between.
        took = perf_counter() - began
        steps.count += 1
        steps.seconds += took
        return prepared.arrange(results)

    def _measure(
        self,
        prepared: _Prepared,
        values: Iterable[object],
        timeout_in_ms: int = 0,
        collector: StepObserver | None = None,
        pool: int = 0,
    ) -> list[Any]:
        """Runs a step and measures its parts. Most short steps are not measured: that takes longer than to count them."""
        began = perf_counter()
        timer = StepTimer()
        feeds = _flattened([c(v) for c, v in zip(prepared.convert, values, strict=True)])
        if feeds:
            timer.add(INPUT, perf_counter() - began)
        results = self._execute(prepared.program, feeds, timeout_in_ms, collector, pool, timer)
        steps.measured(timer, perf_counter() - began)
        return results

    def _execute(
        self,
        program: Planned,
        feeds: Sequence[Any],
        timeout_in_ms: int = 0,
        collector: StepObserver | None = None,
        pool: int = 0,
        timer: StepTimer | None = None,
    ) -> list[Any]:
        """Runs a program; the trace of an op's failure ends here: the op and its line are in the message."""
        current = recording.current
        if current is not None:
            return self._recorded(current, program, feeds, timeout_in_ms, collector, pool, timer)
        if is_narrow():
            with wide_types():
                return self._execute(program, feeds, timeout_in_ms, collector, pool, timer)
        try:
            if timer is None:
                return self._engine.run(program, feeds, timeout_in_ms, collector, pool=pool)
            return self._engine.run_measured(program, feeds, timer, timeout_in_ms, collector, pool=pool)
        except errors.OpError as failure:
            counters.failed(failure)
            raise failure.with_traceback(None) from failure.__cause__

    def _recorded(
        self,
        current: recording.Recording,
        program: Planned,
        feeds: Sequence[Any],
        timeout_in_ms: int = 0,
        collector: StepObserver | None = None,
        pool: int = 0,
        timer: StepTimer | None = None,
        counts: bool = True,
    ) -> list[Any]:
        """Runs a program while this process records its steps."""
        recorder = begin_step(current, self._target, program.plan, collector, counts)
        observer = recorder or collector
        try:
            if timer is None:
                return self._engine.run(program, feeds, timeout_in_ms, observer, pool=pool)
            return self._engine.run_measured(program, feeds, timer, timeout_in_ms, observer, pool=pool)
        except errors.OpError as failure:
            counters.failed(failure)
            raise failure.with_traceback(None) from failure.__cause__
        finally:
            if recorder is not None:
                recorder.end()

    def _run_traced(
        self,
        fetches: object,
        feed_dict: FeedDict | None,
        options: RunOptions | None,
        run_metadata: RunMetadata | None,
    ) -> Any:
        _check_message(options, "RunOptions", "options")
        _check_message(run_metadata, "RunMetadata", "run_metadata")
        if run_metadata is not None:
            run_metadata.Clear()
        prepared = self._prepare(fetches, feed_dict)
        watched = None
        if options is not None and options.debug_options.debug_tensor_watch_opts:
            from tensorfleet.session.debug_dumps import Watched

            watched = Watched(options.debug_options, prepared.program.plan)
            plan, prepared = prepared.program.plan, self._prepare((fetches, watched.tensors), feed_dict)
        timeout = options.timeout_in_ms if options is not None else 0
        pool = _pool_of(options)
        tracing = run_metadata is not None and options is not None and options.trace_level
        graphs = run_metadata is not None and options is not None and options.output_partition_graphs
        costs = self._is_modelled(prepared) and run_metadata is not None
        collector = self._engine.collector() if tracing or graphs or costs else None
        if collector is not None and options is not None:
            collector.by_op = runs_by_op(options)
        results = self._measure(prepared, (feed_dict or {}).values(), timeout, collector, pool)
        if collector is not None and run_metadata is not None:
            collector.fill(run_metadata, prepared.program.plan, bool(graphs), costs)
            if costs and self._target and not tracing:
                run_metadata.ClearField("step_stats")
        if watched is None:
            return prepared.arrange(results)
        wanted, seen = prepared.arrange(results)
        watched.write(self._graph, plan, seen)
        return wanted

    def _is_modelled(self, prepared: _Prepared) -> bool:
        """Whether this run of a program is due to record the costs of its operations."""
        if not self._modelled or self._config is None:
            return False
        prepared.runs += 1
        counted = prepared.runs - self._config.graph_options.build_cost_model_after
        return counted > 0 and counted % self._modelled == 0

    def _prepare(self, fetches: object, feed_dict: FeedDict | None) -> _Prepared:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        # An edited operation (`_update_input`, `_set_attr`) may change any cached plan; a new one changes none.
        if self._prepared_edits != self._graph._edits:
            self._prepared.clear()
            self._prepared_edits = self._graph._edits
            self._checked = 0
        if self._checked != len(self._graph._ops):
            self._check_devices()
        try:
            asked = key_of(fetches)
            key: Hashable = (asked, tuple(feed_dict)) if feed_dict else (asked,)
            result = self._prepared.get(key)
            if result is not None:
                return result
        except TypeError:  # something without a hash; it will be refused below, or planned anew each time
            key = None
        if feed_dict is not None and not hasattr(feed_dict, "items"):
            raise TypeError("`feed_dict` must be a dictionary of tensors or their names to values.")
        if not self._graph._ops:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        result = self._plan(fetches, list(feed_dict or ()))
        if key is not None:
            # A program that makes new fetches in every step would otherwise keep a plan for each of them.
            if len(self._prepared) > 10_000:
                self._prepared.clear()
            self._prepared[key] = result
        return result

    def _check_devices(self) -> None:
        """Refuses to run anything while an operation asks for a device that is not there."""
        ops = self._graph._ops
        count = len(ops)
        if self._place_all:
            self._engine.placer.check(ops[self._checked : count])
        self._checked = count

    def _plan(self, fetches: object, feed_keys: list[Any]) -> _Prepared:
        feeds, convert = feed_plan(self._graph, feed_keys)
        tensors, targets, arrange = fetch_plan(self._graph, fetches, feeds, self)
        return _Prepared(self._engine.program(tensors, targets, feeds), convert, arrange)

    def make_callable(
        self, fetches: object, feed_list: Sequence[object] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that runs `fetches`, taking one argument per tensor of `feed_list`."""
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError("`feed_list` must be a list or tuple.")
        self._check_open()
        self._check_devices()
        prepared = self._plan(fetches, list(feed_list or ()))
        count = len(prepared.convert)

        def call(
            *args: object, options: RunOptions | None = None, run_metadata: RunMetadata | None = None
        ) -> Any:
            self._check_open()
            if accept_options is False and (options is not None or run_metadata is not None):
                raise TypeError("This callable was made with accept_options=False.")
            if len(args) != count:
                raise ValueError(f"This callable takes {count} feeds, got {len(args)}.")
            collector = self._engine.collector() if run_metadata is not None else None
            timeout = options.timeout_in_ms if options is not None else 0
            if options is not None and options.debug_options.debug_tensor_watch_opts:
                warnings.warn("debug_options has no effect on a callable: use Session.run.", stacklevel=2)
            pool = _pool_of(options)
            if collector is not None or steps.seconds >= steps.due:
                results = self._measure(prepared, args, timeout, collector, pool)
            else:
                began = perf_counter()
                feeds = _flattened([c(v) for c, v in zip(prepared.convert, args, strict=True)])
                results = self._execute(prepared.program, feeds, timeout, collector, pool)
                took = perf_counter() - began
                steps.count += 1
                steps.seconds += took
            if collector is not None and run_metadata is not None:
                collector.fill(run_metadata, prepared.program.plan, False)
            return prepared.arrange(results)

        return call

    def _make_repeater(self, operation: object) -> Callable[[], None]:
        """A function that runs an operation once or, where another task does all of it, again and again for a while."""
        self._check_open()
        self._check_devices()
        program = self._plan(operation, []).program

        def call() -> None:
            self._check_open()
            current = recording.current
            if current is not None:
                self._recorded(current, program, (), counts=False)
                return
            try:
                self._engine.repeat(program)
            except errors.OpError as failure:
                raise failure.with_traceback(None) from failure.__cause__

        return call

    def _make_callable_from_options(self, callable_options: CallableOptions) -> Callable[..., list[Any]]:
        """A function that runs the fetches of a `tf.CallableOptions`, taking one argument per feed."""
        wanted = [list(callable_options.fetch), list(callable_options.target)]
        call = self.make_callable(wanted, list(callable_options.feed), accept_options=True)

        def run(*args: object, run_metadata: RunMetadata | None = None) -> list[Any]:
            values: list[Any] = call(*args, options=callable_options.run_options, run_metadata=run_metadata)[
                0
            ]
            return values

        return run

    def partial_run_setup(self, fetches: object, feeds: Iterable[object] | None = None) -> str:
        """Declares a step that will be run in pieces; returns its handle."""
        self._check_open()
        return self._partial.setup(fetches, feeds)

    def partial_run(self, handle: str, fetches: object, feed_dict: FeedDict | None = None) -> Any:
        """Runs the next piece of a step declared by `partial_run_setup`."""
        self._check_open()
        return self._partial.run(handle, fetches, feed_dict)

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices this session can use."""
        names = self._engine.device_names()
        # None of the numbers is 0, which stands for a device that does not exist.
        return [DeviceAttributes(n, n.rsplit(":", 2)[1], 256 << 20, i) for i, n in enumerate(names, 1)]

    def close(self) -> None:
        """Ends the session: blocked runs wake with CancelledError, state held only here is freed."""
        if not self._closed:
            self._closed = True
            self._engine.close(errors.CancelledError(None, None, CLOSED), finished=_ends_well())
            self._prepared.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    def as_default(self) -> AbstractContextManager[Any]:
        """Makes this the session that `eval()` and `run()` use inside the block."""
        return default_session(self)

    def __del__(self) -> None:
        # At the very end of the process there is nothing left to free, nor what freeing it would take.
        if getattr(self, "_engine", None) is not None and not self._closed and not sys.is_finalizing():
            self.close()


def _ends_well() -> bool:
    """Whether a session that is closed now has done its work. One closed while an error passes has not."""
    error = sys.exc_info()[1]
    # `sys.exit()` inside a `with` block is a normal end; the code tells.
    if isinstance(error, SystemExit):
        return not error.code
    return error is None or isinstance(error, (errors.OutOfRangeError, StopIteration))


def _check_message(given: object, name: str, argument: str) -> None:
    """A message may be TensorFlow's own as well as ours."""
    if given is not None and getattr(getattr(given, "DESCRIPTOR", None), "name", None) != name:
        raise TypeError(f"{argument} must be a tf.{name}, but got {type(given)}")


def _pool_of(options: RunOptions | None) -> int:
    """The thread pool that a run asks for."""
    return 0 if options is None else options.inter_op_thread_pool


def _flattened(feeds: list[Any]) -> list[Any]:
    """A feed of a composite value (such as sparse) stands for several tensors."""
    flat: list[Any] = []
    for f in feeds:
        if type(f) is list:
            flat += f
        else:
            flat.append(f)
    return flat


@export("Session")
class Session(BaseSession):
    """Runs a graph. `with tf.Session() as sess:` also makes it and its graph the defaults."""

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        super().__init__(target, graph, config)
        self._stack = threading.local()

    def __enter__(self) -> Session:
        if self._entered:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` if you want to enter a session "
                "multiple times."
            )
        graph, session = self.graph.as_default(), self.as_default()
        graph.__enter__()
        session.__enter__()
        self._entered.append((graph, session))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        graph, session = self._entered.pop()
        session.__exit__(kind, error, trace)
        graph.__exit__(kind, error, trace)
        self.close()

    @staticmethod
    def reset(
        target: str, containers: Sequence[str] | None = None, config: ConfigProto | None = None
    ) -> None:
        """Frees the variables and other state of the server at `target`, or only some containers."""
        from tensorfleet.cluster.targets import reset

        reset(target, containers, config)


@export("InteractiveSession")
class InteractiveSession(BaseSession):
    """A session that is the default from the moment it is made, for notebooks and shells."""

    _active_session_count = 0

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        super().__init__(target, graph, config)
        self._place_all = False  # what was tried in a shell and given up stays in the graph
        if InteractiveSession._active_session_count > 0:
            warnings.warn(
                "An interactive session is already active. This can cause out-of-memory errors in some cases. You must "
                "explicitly call `InteractiveSession.close()` to release resources held by the other session(s).",
                stacklevel=2,
            )
        InteractiveSession._active_session_count += 1
        self._default = default_session(self)
        self._default.enforce_nesting = False
        self._default.__enter__()
        self._default_graph: AbstractContextManager[Graph] | None = None
        if graph is not None:
            self._default_graph = graph.as_default()
            self._default_graph.__enter__()

    def close(self) -> None:
        """Ends the session; it is no longer the default."""
        already = self._closed
        super().close()
        if not already and getattr(self, "_default", None) is not None:
            InteractiveSession._active_session_count -= 1
            if self._default_graph is not None:
                self._default_graph.__exit__(None, None, None)
            self._default.__exit__(None, None, None)
