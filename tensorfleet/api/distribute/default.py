"""The strategy that is at work when no scope is open: one replica, which is the program itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import context
from tensorfleet.api.distribute.context import Function, Keywords, Mode, ReduceOp
from tensorfleet.api.distribute.extended import StrategyExtended
from tensorfleet.api.distribute.replicas import ReplicaContext
from tensorfleet.api.distribute.strategy import Strategy
from tensorfleet.graph.operation import Operation

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset
    from tensorfleet.api.distribute.inputs import InputContext, InputReplicationMode
    from tensorfleet.api.variables.variable import Variable


class DefaultReplicaContext(ReplicaContext):
    """The only replica there is."""

    @property
    def replica_id_in_sync_group(self) -> int:
        """Zero."""
        return 0

    @property
    def devices(self) -> tuple[str, ...]:
        """No device in particular."""
        return ("",)


class DefaultExtended(StrategyExtended):
    """Changes nothing."""

    _is_default = True

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Not available without a strategy."""
        raise RuntimeError("worker_devices() method unsupported by default tf.distribute.Strategy.")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Not available without a strategy."""
        raise RuntimeError("parameter_devices() method unsupported by default tf.distribute.Strategy.")

    @property
    def _num_replicas_in_sync(self) -> int:
        return 1

    @contextmanager
    def _scope(self, strategy: Strategy) -> Iterator[Any]:
        if context.has_strategy():
            raise RuntimeError(
                "Cannot nest tf.distribute.Strategy scopes: the default strategy is inside another."
            )
        yield strategy

    def colocate_vars_with(self, colocate_with_variable: Variable) -> AbstractContextManager[Any]:
        """Places new variables with this one."""
        from tensorfleet.graph.scopes import colocate_with

        return colocate_with(colocate_with_variable.op)

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Whether the variable belongs to no strategy."""
        return getattr(v, "_distribute_strategy", None) is None

    def call_for_each_replica(self, fn: Function, args: Sequence[Any] = (), kwargs: Keywords = None) -> Any:
        """Calls the function once: there is one replica."""
        with context.entered(default_mode()):
            return fn(*args, **(kwargs or {}))

    def batch_reduce_to(
        self, reduce_op: ReduceOp | str, value_destination_pairs: Iterable[tuple[Any, Any]]
    ) -> list[Any]:
        """The values as they are: with one replica there is nothing to reduce."""
        return [value for value, _ in value_destination_pairs]

    def _reduce(self, reduce_op: ReduceOp, value: object) -> Any:
        return value

    def broadcast_to(self, tensor: object, destinations: object) -> Any:
        """The tensor as it is: there is one device."""
        return tensor

    def update(
        self,
        var: Variable,
        fn: Function,
        args: Sequence[Any] = (),
        kwargs: Keywords = None,
        group: bool = True,
    ) -> Any:
        """Calls `fn(var, *args, **kwargs)` where the variable is."""
        from tensorfleet.graph.scopes import colocate_with

        with colocate_with(var.op):
            result = fn(var, *args, **(kwargs or {}))
        return result if group else (result,)

    def update_non_slot(
        self,
        colocate_with: object,
        fn: Function,
        args: Sequence[Any] = (),
        kwargs: Keywords = None,
        group: bool = True,
    ) -> Any:
        """Calls `fn(*args, **kwargs)` with the given variable."""
        result = fn(*args, **(kwargs or {}))
        return result if group else (result,)

    def non_slot_devices(self, var_list: list[Variable]) -> Variable:
        """The first variable by name: other values are placed with it."""
        return min(var_list, key=lambda v: v.name)

    def read_var(self, v: Variable) -> Any:
        """The variable's value."""
        from tensorfleet.ops.array.basic import identity

        return identity(v)

    def _experimental_distribute_dataset(self, dataset: Dataset) -> Dataset:
        return dataset

    def _experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any]
    ) -> Any:
        return dataset_fn(self._input_context())

    def _make_dataset_iterator(self, dataset: Dataset) -> _DefaultIterator:
        return _DefaultIterator(dataset)

    def _make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Any], replication_mode: InputReplicationMode | None = None
    ) -> _DefaultIterator:
        return _DefaultIterator(input_fn(self._input_context()))


class _DefaultIterator:
    """An iterator over a dataset as it is."""

    def __init__(self, dataset: Dataset) -> None:
        self._iterator = dataset.make_initializable_iterator()

    def get_next(self) -> Any:
        """The next element."""
        return self._iterator.get_next()

    def initialize(self) -> Operation:
        """The operation that starts it."""
        return self._iterator.initializer


@functools.cache
def default_mode() -> Mode:
    """The default strategy and its replica."""
    strategy = Strategy(DefaultExtended(None))
    return Mode(strategy, DefaultReplicaContext(strategy, 0))
