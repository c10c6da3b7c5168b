"""The engine that runs a session's graph in this process: devices, state, running steps."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.base.counters import StepTimer
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.kernels.parallel_for import use_threads
from tensorfleet.passes.pipeline import make_plan
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import Branches, Inner
from tensorfleet.runtime import observing, trace
from tensorfleet.runtime.devices import local_device_names
from tensorfleet.runtime.engine_protocol import Engine
from tensorfleet.runtime.placement_log import PlacementLog
from tensorfleet.runtime.resources import RandomStreams, ResourceManager
from tensorfleet.runtime.scheduling.program import Program
from tensorfleet.runtime.scheduling.step import ExecutionContext, MeasuredContext, StageGuard
from tensorfleet.runtime.scheduling.threads import Pool
from tensorfleet.runtime.variable_versions import VariableVersions, WatchedVariables
from tensorfleet.state.accumulators import maximums

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.runtime.values import Values

# What ends the steps of a session that is closed.
CLOSED = "Step was cancelled by an explicit call to `Session::Close()`."
_shared_pool: Pool | None = None
_shared_lock = threading.Lock()


# Of so many operations, the objects of a plan are enough for the garbage collector to go through all there are.
_MANY_OPS = 5000
_named_pools: dict[str, Pool] = {}
#: for steps that are to run in the thread that calls `run`
_CALLER = Pool(1, limit=1)


@contextlib.contextmanager
def _pause_collector() -> Iterator[Callable[[], None]]:
    """Keeps Python's garbage collector from running: a plan is nothing but new objects, of which none is garbage.

    In a plan of 50,000 operations the collector took as long as all passes, and half a second in the next step. It goes
    through all objects when many have become old. `keep`, which is returned, makes them old without being counted.
    """
    if not gc.isenabled():  # the user's choice, or another session is planning
        yield _do_nothing
        return
    gc.disable()
    try:
        yield _make_old
    finally:
        gc.enable()


def _make_old() -> None:
    gc.freeze()
    gc.unfreeze()


def _do_nothing() -> None:
    pass


def _default_pool(config: ConfigProto | None) -> tuple[Pool, bool]:
    """The thread pool a session uses, and whether it is its own."""
    global _shared_pool
    wanted = config.inter_op_parallelism_threads if config is not None else 0
    if wanted < 0:
        return _CALLER, False
    if wanted:
        return Pool(wanted, limit=wanted), True
    size = os.cpu_count() or 1
    if config is not None and config.use_per_session_threads:
        return Pool(size), True
    with _shared_lock:
        if _shared_pool is None:
            _shared_pool = Pool(size)
        return _shared_pool, False


def _pools(config: ConfigProto | None) -> tuple[list[Pool], list[Pool]]:
    """The thread pools that `inter_op_thread_pool` of RunOptions counts, and those that end with the session."""
    options = [] if config is None else config.session_inter_op_thread_pool
    pools: list[Pool] = []
    own: list[Pool] = []
    for option in options:
        size = option.num_threads if option.num_threads > 0 else os.cpu_count() or 1
        pool = Pool(size, limit=option.num_threads if option.num_threads > 0 else None)
        if option.global_name:
            with _shared_lock:
                pool = _named_pools.setdefault(option.global_name, pool)
        else:
            own.append(pool)
        pools.append(pool)
    if not pools:
        pool, is_own = _default_pool(config)
        return [pool], [pool] if is_own else []
    return pools, own


def shared_pool() -> Pool:
    """The threads that all sessions without their own share."""
    return _default_pool(None)[0]


#: those of all sessions of this process, and of the sessions that this task runs stages for
live_engines: weakref.WeakSet[LocalEngine] = weakref.WeakSet()


class LocalEngine(Engine[Program]):
    """Plans and runs steps of one graph."""

    def __init__(
        self,
        graph: Graph,
        config: ConfigProto | None = None,
        resources: ResourceManager | None = None,
        prefix: str | None = None,
        owner: str = "",
    ) -> None:
        self.graph = graph
        self.config = config
        self.resources = resources or ResourceManager()
        self.private = ResourceManager(owner)
        self.streams = RandomStreams()
        #: the variables whose versions are noted in measured steps
        self.watched = WatchedVariables()
        names = local_device_names(config, prefix) if prefix else local_device_names(config)
        soft = bool(config.allow_soft_placement) if config is not None else False
        self.placer = Placer(names, soft)
        self._pools, self._own_pools = _pools(config)
        self._placements = PlacementLog(None if prefix else config)  # a task leaves it to its session
        self._task = (prefix or "").replace("/replica:0", "")
        self._timeout = max(config.operation_timeout_in_ms, 0) if config is not None else 0
        if config is not None and config.intra_op_parallelism_threads > 0:
            use_threads(config.intra_op_parallelism_threads, "asked")
        if config is not None:
            _warn_of_unused(config)
        self._lock = threading.Lock()
        self._planning = threading.Lock()
        self.running: set[ExecutionContext] = set()
        self._closed: errors.OpError | None = None
        live_engines.add(self)

    def program(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        done: Iterable[Operation] = (),
        known: Mapping[Tensor, Any] | None = None,
        branches: Branches | None = None,
        inner: Inner | None = None,
    ) -> Program:
        """Plans and builds the program for these fetches and feeds."""
        # One plan at a time: the placer remembers where operations of earlier plans are.
        with self._planning, _pause_collector() as keep:
            plan = make_plan(self.graph, fetches, targets, feeds, self.placer, done, known, branches, inner)
            self._placements.tell(plan, self.placer.placed)
            program = Program(plan, self.resources)
            if self._task:  # a session by itself has nobody who could update between
                self.watched.add(*program.for_staleness())
            if len(plan.ops) >= _MANY_OPS:
                keep()
            return program

    def run(
        self,
        program: Program,
        feeds: Sequence[Any],
        timeout_ms: int = 0,
        collector: trace.StepObserver | None = None,
        began: Callable[[ExecutionContext], Any] | None = None,
        pool: int = 0,
        timer: StepTimer | None = None,
        versions: VariableVersions | None = None,
        guard: StageGuard | None = None,
    ) -> Values:
        """Runs one step, in a pool of the session's. `began` is told the step, if it is one that can be cancelled.

        `versions` notes which variables it reads and updates. `guard` runs its items, on a durable server.
        """
        threads = self._pools[0] if not pool else self._pool(pool)
        if collector is not None and collector.by_op:
            program = program.by_op()
        timeout = timeout_ms if timeout_ms > 0 else self._timeout
        deadline = time.monotonic() + timeout / 1000 if timeout else None
        if timer is None and versions is None and guard is None:
            ctx = ExecutionContext(self.resources, self.streams, deadline, not program.inline)
        else:
            ctx = measured = MeasuredContext(self.resources, self.streams, deadline, not program.inline)
            measured.timer, measured.versions, measured.guard = timer, versions, guard
            if versions is not None:
                versions.watched = self.watched.stores
        ctx.private, ctx.task = self.private, self._task
        ctx.trace = collector
        if observing.active:
            ctx.observer = observing.ValueObserver(self.private.owner)
        # Such a step never waits, so there is nothing to cancel: it takes no lock and is not registered.
        if program.inline:
            if self._closed is not None:
                raise self._closed
            results = program.run(ctx, feeds, threads)
            if deadline is not None and time.monotonic() > deadline:
                raise errors.DeadlineExceededError(
                    None,
                    None,
                    f"Timed out: the step took longer than {timeout} ms. Raise timeout_in_ms of tf.RunOptions (or "
                    "operation_timeout_in_ms of tf.ConfigProto).",
                )
            return results
        with self._lock:
            if self._closed is not None:
                raise self._closed
            self.running.add(ctx)
        try:
            if began is not None:
                began(ctx)
            return program.run(ctx, feeds, threads)
        finally:
            ctx.end()
            with self._lock:
                self.running.discard(ctx)

    def run_measured(
        self,
        program: Program,
        feeds: Sequence[Any],
        timer: StepTimer,
        timeout_ms: int = 0,
        collector: trace.StepObserver | None = None,
        began: Callable[[ExecutionContext], Any] | None = None,
        pool: int = 0,
        versions: VariableVersions | None = None,
    ) -> Values:
        """The same for a step whose parts are measured."""
        return self.run(program, feeds, timeout_ms, collector, began, pool, timer, versions)

    def repeat(self, program: Program) -> None:
        """Runs a step that its caller will ask for again: here that is one step."""
        self.run(program, ())

    def close(self, reason: errors.OpError, finished: bool = False) -> None:
        """Refuses new steps and wakes those that wait; `finished`: the session has done its work."""
        with self._lock:
            self._closed = reason
            running = list(self.running)
        for ctx in running:
            ctx.cancel(reason)
        self.private.finished = finished
        self.private.clear()  # nobody else can reach what is kept there
        for pool in self._own_pools:
            pool.close()

    def _pool(self, number: int) -> Pool:
        if number == -1:
            return _CALLER
        if not 0 <= number < len(self._pools):
            raise invalid_pool(number, len(self._pools))
        return self._pools[number]

    def device_names(self) -> list[str]:
        """The full names of the devices of this engine."""
        return self.placer.names

    def dropped(self) -> dict[str, int]:
        """How many steps' gradients were dropped as stale, by who computed them."""
        return maximums([a.dropped for a in self.resources.of_kind("accumulator", "sparse accumulator")])

    def collector(self) -> trace.Collector:
        """Something that records what a step does and when."""
        return trace.Collector(self.device_names()[0], self.placer.device_of)


def invalid_pool(number: int, count: int) -> errors.OpError:
    """For a number of a thread pool that a session does not have."""
    return errors.InvalidArgumentError(
        None,
        None,
        f"Invalid inter_op_thread_pool: {number}. Pass RunOptions(inter_op_thread_pool=) a number below {count} (-1 for "
        "the calling thread), or describe more pools in session_inter_op_thread_pool of tf.ConfigProto.",
    )


# Fields of ConfigProto that are honoured, or that only tune TensorFlow's own executor.
_UNDERSTOOD = {"device_count", "intra_op_parallelism_threads", "inter_op_parallelism_threads"}
_UNDERSTOOD |= {
    "session_inter_op_thread_pool",
    "use_per_session_threads",
    "gpu_options",
    "allow_soft_placement",
    "log_device_placement",
}
_UNDERSTOOD |= {
    "operation_timeout_in_ms",
    "graph_options",
    "placement_period",
    "experimental",
    "device_filters",
    "isolate_session_state",
    "rpc_options",
    "cluster_def",
}
_warned: set[str] = set()


def _warn_of_unused(config: ConfigProto) -> None:
    """Says once per field which wishes of a `ConfigProto` have no effect here."""
    for field, _ in config.ListFields():
        if field.name not in _UNDERSTOOD and field.name not in _warned:
            _warned.add(field.name)
            warnings.warn(f"tf.ConfigProto.{field.name} has no effect in TensorFleet.", stacklevel=5)
