"""`tf.distribute.Strategy`, and `StrategyExtended`, behind which each strategy does its work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import context
from tensorfleet.api.distribute.context import ClusterLike, Function, Keywords, ReduceOp
from tensorfleet.api.distribute.extended import StrategyExtended
from tensorfleet.api.distribute.inputs import InputContext, InputIterator, InputReplicationMode
from tensorfleet.api.distribute.values import is_distributed, parts_of
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation
from tensorfleet.ops.array.basic import group as group_ops
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_sum

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset
    from tensorfleet.api.variables.variable import Variable
    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.session.session import BaseSession


class Strategy:
    """How a model is trained by several replicas: build it inside `scope()`, call `experimental_run_v2` with a replica's step.

    Variables made inside the scope are shared by the replicas in the way the strategy has.
    """

    _scale_loss_for_estimator = False

    def __init__(self, extended: StrategyExtended) -> None:
        self._extended = extended
        extended._container_strategy_is(self)

    extended: StrategyExtended = readonly(
        "_extended", "The part of the strategy that optimizers and other libraries use."
    )

    def scope(self) -> AbstractContextManager[Strategy]:
        """A block in which this strategy makes the variables."""
        return self._extended._scope(self)

    num_replicas_in_sync: int = readonly(
        "_extended._num_replicas_in_sync", "How many replicas' gradients make one update."
    )

    def experimental_run_v2(self, fn: Function, args: Sequence[Any] = (), kwargs: Keywords = None) -> Any:
        """Calls `fn` for each replica, with its part of the arguments; gives the results, one value per replica."""
        with self.scope():
            return self._extended.call_for_each_replica(fn, args=args, kwargs=kwargs)

    def run(self, fn: Function, args: Sequence[Any] = (), kwargs: Keywords = None) -> Any:
        """`experimental_run_v2` by its later name."""
        return self.experimental_run_v2(fn, args, kwargs)

    def experimental_run(self, fn: Function, input_iterator: InputIterator | None = None) -> Any:
        """Calls `fn` for each replica with the next element of an iterator of `make_dataset_iterator`."""
        with self.scope():
            args = () if input_iterator is None else (input_iterator.get_next(),)
            return self._extended.call_for_each_replica(fn, args=args)

    def reduce(self, reduce_op: ReduceOp | str, value: object, axis: int | None = None) -> Any:
        """The sum or mean over the replicas, and before that over the dimension `axis` of each tensor, if given."""
        wanted = ReduceOp.of(reduce_op)
        context.require_cross_replica(self)
        with self.scope():
            if isinstance(value, (list, tuple, dict)) and not hasattr(value, "_fields"):
                return _over_structure(lambda v: self.reduce(wanted, v, axis), value)
            if axis is None:
                return self._extended._reduce(wanted, value)
            if wanted is ReduceOp.SUM:
                summed = self.experimental_run_v2(lambda v: reduce_sum(v, axis=axis), args=(value,))
                return self._extended._reduce(wanted, summed)
            return self._mean_over(value, axis)

    def _mean_over(self, value: object, axis: int) -> Any:
        """Elements weigh the same in whatever replica they are, so sums and counts are added before they are divided."""

        def sums(v: TensorLike) -> tuple[Any, Any]:
            tensor = to_tensor(v)
            if tensor.dtype.is_integer:
                tensor = cast(tensor, "float64")
            count = cast(apply("Shape", tensor)[axis], tensor.dtype)
            return reduce_sum(tensor, axis=axis), count

        total, count = self.experimental_run_v2(sums, args=(value,))
        add = self._extended._reduce
        return add(ReduceOp.SUM, total) / add(ReduceOp.SUM, count)

    def experimental_local_results(self, value: object) -> tuple[Any, ...]:
        """The parts of a value that the replicas of this process have."""
        return self._extended._local_results(value)

    def unwrap(self, value: object) -> tuple[Any, ...]:
        """The old name of `experimental_local_results`."""
        return self.experimental_local_results(value)

    def group(self, value: object, name: str | None = None) -> Operation:
        """One operation that finishes when all parts of a value have."""
        parts = _flat_parts(value)
        if len(parts) == 1 and name is None:
            only: Operation = getattr(parts[0], "op", parts[0])
            return only
        return group_ops(*parts, name=name)

    def experimental_distribute_dataset(self, dataset: Dataset) -> Any:
        """A dataset whose batches, those of all replicas together, are divided among them."""
        return self._extended._experimental_distribute_dataset(dataset)

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any]
    ) -> Any:
        """The dataset of `dataset_fn(input_context)`; each replica takes batches of its own from it."""
        return self._extended._experimental_distribute_datasets_from_function(dataset_fn)

    def make_dataset_iterator(self, dataset: Dataset) -> Any:
        """An iterator that divides each batch of a dataset among the replicas; run its `initialize()` first."""
        return self._extended._make_dataset_iterator(dataset)

    def make_input_fn_iterator(
        self,
        input_fn: Callable[[InputContext], Any],
        replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
    ) -> Any:
        """An iterator over `input_fn(input_context)`, of which each replica takes elements of its own."""
        if replication_mode is not InputReplicationMode.PER_WORKER:
            raise ValueError(
                "Input replication mode not supported: use tf.distribute.InputReplicationMode.PER_WORKER."
            )
        with self.scope():
            return self._extended._make_input_fn_iterator(input_fn, replication_mode=replication_mode)

    def experimental_make_numpy_dataset(self, numpy_input: object, session: BaseSession | None = None) -> Any:
        """A dataset of the rows of arrays."""
        with self.scope():
            return self._extended.experimental_make_numpy_dataset(numpy_input, session)

    def configure(
        self,
        session_config: ConfigProto | None = None,
        cluster_spec: ClusterLike | None = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        """Tells the strategy which cluster it is in, and prepares a session's configuration."""
        self._extended._configure(session_config, cluster_spec, task_type, task_id)

    def update_config_proto(self, config_proto: ConfigProto) -> ConfigProto:
        """A copy of a session's configuration, with the settings that this strategy needs."""
        return self._extended._update_config_proto(config_proto)

    def colocate_vars_with(self, colocate_with_variable: Variable) -> AbstractContextManager[Any]:
        """A block whose new variables are where another one is."""
        return self._extended.colocate_vars_with(colocate_with_variable)

    def __deepcopy__(self, memo: dict[int, Any]) -> Strategy:
        return self  # a configuration that is copied still means the same replicas

    def __copy__(self) -> Strategy:
        raise RuntimeError("Must only deepcopy DistributionStrategy.")


def _over_structure(function: Function, value: Any) -> Any:
    if isinstance(value, dict):
        return type(value)((k, function(v)) for k, v in value.items())
    return type(value)(function(v) for v in value)


def _flat_parts(value: object) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _flat_parts(item)]
    return list(parts_of(value)) if is_distributed(value) else [value]
