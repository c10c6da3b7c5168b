"""Which strategy is at work here, and whether for one replica or for all of them together."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph

if TYPE_CHECKING:
    from tensorfleet.api.distribute.replicas import ReplicaContext
    from tensorfleet.api.distribute.strategy import Strategy
    from tensorfleet.api.variables.variable import VariableAggregation
    from tensorfleet.cluster.membership.spec import ClusterSpec


#: A function of the program, which is called with the program's arguments.
Function: TypeAlias = Callable[..., Any]

#: Keyword arguments of such a function.
Keywords: TypeAlias = "Mapping[str, Any] | None"

#: A cluster as users describe it.
ClusterLike: TypeAlias = "ClusterSpec | dict[str, Any]"


@export("distribute.ReduceOp")
class ReduceOp(enum.Enum):
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: VariableAggregation) -> ReduceOp:
        """The reduction that a variable's aggregation asks for."""
        if aggregation.name not in ReduceOp.__members__:
            raise ValueError(
                f"Could not convert from `tf.VariableAggregation` {aggregation} to `tf.distribute.ReduceOp` type"
            )
        return ReduceOp[aggregation.name]

    @staticmethod
    def of(given: ReduceOp | str) -> ReduceOp:
        """A reduction, which may be given by its name."""
        return ReduceOp(given.upper()) if isinstance(given, str) else ReduceOp(given)


@dataclass(frozen=True)
class Mode:
    """Where we are: in one replica, or (without a `replica`) above them all, perhaps updating one copy of a variable."""

    strategy: Strategy
    replica: ReplicaContext | None = None
    updating: int | None = None


def _modes() -> list[Mode]:
    graph: Graph = get_default_graph()
    modes = graph._local().strategies
    # The body of a function is built in a graph of its own, inside the scopes of the outer one.
    while not modes and graph.building_function and hasattr(graph, "outer"):
        graph = graph.outer
        modes = graph._local().strategies
    return modes


@contextmanager
def entered(mode: Mode) -> Iterator[None]:
    """A block in this mode."""
    stack = get_default_graph()._local().strategies
    stack.append(mode)
    try:
        yield
    finally:
        if stack[-1] is not mode:
            raise RuntimeError(
                "Scope nesting error: a strategy's scope must be left in the order of entering."
            )
        stack.pop()


def current() -> Mode:
    """The current mode; the default strategy's only replica when no scope is open."""
    modes = _modes()
    return modes[-1] if modes else _default()


def _default() -> Mode:
    from tensorfleet.api.distribute.default import default_mode

    return default_mode()


@export("distribute.get_strategy")
def get_strategy() -> Strategy:
    """The strategy whose scope is open, or the default one, which has one replica and changes nothing."""
    return current().strategy


@export("distribute.has_strategy")
def has_strategy() -> bool:
    """Whether the scope of a strategy other than the default one is open."""
    modes = _modes()
    return bool(modes) and not modes[-1].strategy.extended._is_default


@export("distribute.get_replica_context")
def get_replica_context() -> Any:
    """The replica that is being built, or None in a strategy's scope outside of its replicas."""
    return current().replica


_CONTEXTS = (
    "python.distribute.distribution_strategy_context",
    "python.training.distribution_strategy_context",
)


@export(*(f"{place}.get_cross_replica_context" for place in _CONTEXTS))
def get_cross_replica_context() -> Strategy | None:
    """The strategy above whose replicas we are, or None in one of them."""
    here = current()
    return here.strategy if here.replica is None else None


@export(*(f"{place}._get_default_strategy" for place in _CONTEXTS))
def get_default_strategy() -> Strategy:
    """The strategy that is at work when no scope is open."""
    return _default().strategy


@export(*(f"{place}._get_default_replica_context" for place in _CONTEXTS))
def get_default_replica_context() -> ReplicaContext:
    """The only replica of the default strategy."""
    replica = _default().replica
    assert replica is not None
    return replica


@export("distribute.in_cross_replica_context")
def in_cross_replica_context() -> bool:
    """Whether we are above the replicas: in a strategy's scope, or in a function that `merge_call` calls."""
    return current().replica is None


def require_cross_replica(strategy: Strategy) -> None:
    """RuntimeError inside a replica."""
    here = current()
    if here.replica is not None and not here.strategy.extended._is_default:
        raise RuntimeError(
            "Method requires being in cross-replica context, use get_replica_context().merge_call()"
        )
    if here.strategy is not strategy and not here.strategy.extended._is_default:
        raise mixed(here.strategy, strategy)


def mixed(here: Strategy, wanted: Strategy) -> RuntimeError:
    """The error for a strategy that is used in the scope of another."""
    return RuntimeError(
        f"Mixing different tf.distribute.Strategy objects: {here} is not {wanted}. Use one strategy at a time."
    )


def require_replica(context: ReplicaContext) -> None:
    """RuntimeError outside of this replica."""
    if current().replica is not context:
        raise RuntimeError("Need to be inside `call_for_each_replica()`")


_kept: list[Any] = []


@export("distribute.experimental_set_strategy")
def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Opens a strategy's scope for the rest of the program; None closes it again."""
    if _kept:
        _kept.pop().__exit__(None, None, None)
    elif has_strategy():
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _kept.append(scope)


@export("distribute.get_loss_reduction")
def get_loss_reduction() -> ReduceOp:
    """How the losses of replicas are put together: as a mean when an estimator trains with a mean loss, else a sum."""
    if not get_strategy()._scale_loss_for_estimator:
        return ReduceOp.SUM
    last = getattr(get_default_graph(), "_last_loss_reduction", None)
    return ReduceOp.SUM if last in ("weighted_sum", "sum") else ReduceOp.MEAN


def scaled_loss(loss: Tensor) -> Tensor:
    """A replica's part of the loss of all of them."""
    if not has_strategy() or get_loss_reduction() is ReduceOp.SUM:
        return loss
    replicas = get_strategy().num_replicas_in_sync
    return loss * (1.0 / replicas) if replicas > 1 else loss
