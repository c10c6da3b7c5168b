"""A replica while it is built; several are built in turns, and meet where they call `merge_call`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import context
from tensorfleet.api.distribute.context import Function, Keywords, Mode, ReduceOp
from tensorfleet.api.distribute.values import regroup, select
from tensorfleet.api.variables.getter import store_of
from tensorfleet.api.variables.scope import get_variable_scope, variable_scope
from tensorfleet.base.nest import flatten, pack_sequence_as
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply_list, constant
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph, session_stack
from tensorfleet.graph.stacks import Stacks

if TYPE_CHECKING:
    from tensorfleet.api.distribute.strategy import Strategy


class ReplicaContext:
    """One replica, as the function that `experimental_run_v2` calls sees it: `tf.distribute.get_replica_context()`."""

    _replica_index = 0

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int | Tensor) -> None:
        self._strategy = strategy
        self._replica_id_in_sync_group = replica_id_in_sync_group

    def __enter__(self) -> ReplicaContext:
        """A block of this replica's operations, for strategies of your own."""
        block = context.entered(Mode(self._strategy, self))
        block.__enter__()
        self.__dict__.setdefault("_blocks", []).append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        self.__dict__["_blocks"].pop().__exit__(*error)

    num_replicas_in_sync: int = readonly(
        "_strategy.num_replicas_in_sync", "How many replicas there are, on all workers."
    )

    @property
    def replica_id_in_sync_group(self) -> int | Tensor:
        """The number of this replica among all, as a tensor."""
        context.require_replica(self)
        number = self._replica_id_in_sync_group
        return constant(number, name="replica_id_in_sync_group") if isinstance(number, int) else number

    strategy: Strategy = readonly("_strategy", "The strategy whose replica it is.")

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of this replica."""
        context.require_replica(self)
        return (self._strategy.extended.worker_devices[self._replica_index],)

    def merge_call(self, merge_fn: Function, args: Sequence[Any] = (), kwargs: Keywords = None) -> Any:
        """Calls `merge_fn(strategy, ...)` once for all replicas, with the arguments of each, and gives each its part of the result."""
        context.require_replica(self)
        return self._merge_call(merge_fn, args, kwargs or {})

    def _merge_call(self, merge_fn: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        with context.entered(Mode(self._strategy)):
            return merge_fn(self._strategy, *args, **kwargs)

    def all_reduce(self, reduce_op: ReduceOp | str, value: object) -> Any:
        """The sum or mean of `value`, which may be a nest of tensors, over all replicas."""
        wanted = ReduceOp.of(reduce_op)
        flat = flatten(value)

        def merge(strategy: Strategy, *flat: object) -> list[Any]:
            return strategy.extended.batch_reduce_to(wanted, [(v, v) for v in flat])

        reduced = list(self.merge_call(merge, args=flat))
        self._connect(wanted, flat, reduced)
        return pack_sequence_as(value, reduced)

    def _connect(self, wanted: ReduceOp, given: list[Any], reduced: list[Any]) -> None:
        """Gives results their gradient: all replicas have part in each, so it is that of all replicas, reduced alike."""
        pairs = enumerate(zip(given, reduced, strict=True))
        places = [i for i, pair in pairs if all(isinstance(t, Tensor) for t in pair)]
        if not places:
            return
        outputs = apply_list("IdentityN", [*[reduced[i] for i in places], *[given[i] for i in places]])

        def gradient(op: Operation, *grads: Tensor | None) -> list[Tensor | None]:
            known = [i for i, g in enumerate(grads[: len(places)]) if g is not None]
            reduced_grads = dict(zip(known, self.all_reduce(wanted, [grads[i] for i in known]), strict=True))
            nothing: list[Tensor | None] = [None] * len(places)
            return nothing + [reduced_grads.get(i) for i in range(len(places))]

        # Built above the replicas, the reduction has no gradient inside one of them.
        outputs[0]._op._gradient_function = gradient
        for i, output in zip(places, outputs[: len(places)], strict=True):
            reduced[i] = output


class _Abandoned(BaseException):
    """Ends a replica that nobody waits for any more."""


class ThreadedReplica(ReplicaContext):
    """One of several replicas: a thread that runs while its caller waits, and waits where it calls `merge_call`."""

    def __init__(
        self, strategy: Strategy, index: int, number: int, where: str, body: Callable[[], Any]
    ) -> None:
        super().__init__(strategy, number)
        self._replica_index = index
        self._where = where
        self._body = body
        self.asked: tuple[Callable[..., Any], Any, Any] | None = None
        self.given: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._abandoned = False
        self._mine, self._callers = threading.Event(), threading.Event()
        self._graph = get_default_graph()
        self.stacks = self._copied_stacks()
        self.scope = self._scope = get_variable_scope()
        self.counts: dict[str, int] = {}
        self._scopes = dict(store_of(self._graph).scopes)
        self._sessions = list(session_stack())
        self._thread = threading.Thread(target=self._run, name=f"tensorfleet-replica-{index}", daemon=True)

    def _copied_stacks(self) -> Stacks:
        """Copies of the caller's scopes, with this replica's name scope."""
        outer = self._graph._local()
        copied = Stacks([*outer.devices])
        copied.name_scope = outer.name_scope
        copied.colocation = list(outer.colocation)
        copied.control_groups = list(outer.control_groups)
        copied.control_flow_context = outer.control_flow_context
        copied.creators = list(outer.creators)
        copied.strategies = [Mode(self._strategy, self)]
        if self._replica_index:
            copied.name_scope = "/".join(filter(None, (outer.name_scope, f"replica_{self._replica_index}")))
        return copied

    def advance(self) -> None:
        """Lets the replica go on until it ends or calls `merge_call`."""
        store = store_of(self._graph)
        # Each replica numbers its scopes itself, so that all get the same names.
        outer, store.scopes = store.scopes, self._scopes
        if not self._thread.ident:
            self._thread.start()
        self._mine.set()
        self._callers.wait()
        self._callers.clear()
        self._scopes, store.scopes = store.scopes, outer
        if self.error is not None:
            raise self.error

    def leave(self) -> None:
        """Ends the replica where it waits."""
        self._abandoned = True
        if self._thread.ident and not self.done:
            self._mine.set()
            # It unwinds at once. The limit is for a user's `finally` that hangs.
            self._thread.join(60)

    def _pause(self) -> None:
        self._callers.set()
        self._mine.wait()
        self._mine.clear()
        if self._abandoned:
            raise _Abandoned

    def _run(self) -> None:
        self._mine.wait()
        self._mine.clear()
        try:
            if not self._abandoned:
                self._build()
        except _Abandoned:
            pass
        except BaseException as error:  # the caller raises it
            self.error = error
        finally:
            self.done = True
            self._callers.set()

    def _build(self) -> None:
        # Scopes, devices and dependencies of a graph are per thread: this one starts with its caller's.
        self._graph._thread_local.stacks = self.stacks
        session_stack().extend(self._sessions)
        store = store_of(self._graph)
        store.current.scope, counts = self._scope, self._scopes
        reuse = True if self._replica_index else None  # the first replica makes the variables of all
        with self._graph.as_default(), self._graph.device(self._where):
            with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False):
                store.scopes = counts
                self.result = self._body()
                self.counts = store.scopes

    def _merge_call(self, merge_fn: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self.asked = (merge_fn, args, kwargs)
        self.scope = get_variable_scope()
        self._pause()
        given, self.given = self.given, None
        return given


def run_replicas(strategy: Strategy, replicas: list[ThreadedReplica]) -> Any:
    """Builds the replicas in turns; gives their results, grouped."""
    try:
        while not all(r.done for r in replicas):
            for replica in replicas:
                if not replica.done:
                    replica.advance()
            if all(r.done for r in replicas):
                break
            if any(r.done for r in replicas):
                raise RuntimeError(
                    "Some replicas made a different number of replica_context().merge_call() calls."
                )
            _merge(strategy, replicas)
        store_of().scopes = replicas[0].counts
        return regroup([r.result for r in replicas])
    finally:
        for replica in replicas:
            replica.leave()


def _merge(strategy: Strategy, replicas: list[ThreadedReplica]) -> None:
    """Calls the function that all replicas wait for, above them, in the scopes of the first."""
    asked = [r.asked or (None, (), {}) for r in replicas]
    args = regroup([tuple(a[1]) for a in asked])
    kwargs = regroup([a[2] for a in asked])
    graph = get_default_graph()
    # In the scopes of the first replica, so that names are those of a program with one replica.
    own, first = graph._local(), replicas[0].stacks
    saved = own.name_scope, own.control_groups, own.control_flow_context, own.creators
    own.name_scope, own.control_flow_context = first.name_scope, first.control_flow_context
    own.control_groups, own.creators = list(first.control_groups), list(first.creators)
    scope = get_variable_scope()
    store_of().current.scope = replicas[0].scope
    try:
        with context.entered(Mode(strategy)):
            result = asked[0][0](strategy, *args, **kwargs)  # type: ignore[misc]
    finally:
        store_of().current.scope = scope
        own.name_scope, own.control_groups, own.control_flow_context, own.creators = saved
    for replica in replicas:
        replica.asked = None
        replica.given = select(replica._replica_index, result)
