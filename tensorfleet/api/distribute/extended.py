"""`tf.distribute.StrategyExtended`: the part of a strategy that optimizers, variables and input use.

Strategies differ in their devices (`worker_devices`, `parameter_devices`), in how they make variables
(`_create_variable`) and, with several workers, in how they add up their values (`_sum_over_workers`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import context, inputs, reducing
from tensorfleet.api.distribute.context import ClusterLike, Function, Keywords, Mode, ReduceOp
from tensorfleet.api.distribute.values import Mirrored, is_distributed, parts_of, regroup, select, select_copy
from tensorfleet.api.variables.creation import variable_creator_scope
from tensorfleet.api.variables.scope import get_variable_scope
from tensorfleet.api.variables.variable import Variable, VariableAggregation, VariableSynchronization
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, get_default_graph, name_scope
from tensorfleet.graph.stacks import replaced
from tensorfleet.ops.array.basic import group as group_ops

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset
    from tensorfleet.api.distribute.cross_device import CrossDeviceOps
    from tensorfleet.api.distribute.inputs import InputContext, InputIterator, InputReplicationMode
    from tensorfleet.api.distribute.strategy import Strategy
    from tensorfleet.api.variables.types import VariableMaker
    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.session.session import BaseSession

_NAME_SUFFIX = re.compile(r"_\d+(?=/|$)")


class StrategyExtended:
    """The part of a strategy that libraries use; see `tf.distribute.Strategy` for the part that programs use."""

    _is_default = False
    _has_copies = False
    _cross_device_ops: CrossDeviceOps | None = None
    _default_device: str | None = None
    _first_replica = 0

    def __init__(self, container_strategy: Strategy | None) -> None:
        self._strategy: Strategy = container_strategy  # type: ignore[assignment]  # `Strategy` sets it
        self._colocated: Variable | None = None
        self._shared: dict[str, list[Variable]] | None = None

    def _container_strategy_is(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def _container_strategy(self) -> Strategy:
        return self._strategy

    # -- devices and roles --

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of the replicas of this process."""
        raise AssertionError("each strategy names its devices")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices of the variables."""
        return self.worker_devices

    @property
    def _num_replicas_in_sync(self) -> int:
        return len(self.worker_devices)

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each worker builds a graph of its own."""
        return False

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether all shapes must be known."""
        return False

    @property
    def experimental_should_init(self) -> bool:
        """Whether this process initializes variables."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process writes checkpoints."""
        return True

    @property
    def should_save_summary(self) -> bool:
        """Whether this process writes summaries."""
        return True

    def _configure(
        self,
        session_config: ConfigProto | None,
        cluster_spec: ClusterLike | None,
        task_type: str | None,
        task_id: int | None,
    ) -> None:
        """A strategy of one machine has nothing to learn of a cluster."""

    def _update_config_proto(self, config_proto: ConfigProto) -> ConfigProto:
        updated = type(config_proto)()
        updated.CopyFrom(config_proto)
        return updated

    # -- variables --

    def _scope(self, strategy: Strategy) -> AbstractContextManager[Strategy]:
        return Scope(self, strategy)

    def _enter_scopes(self, blocks: ExitStack) -> None:
        """Enters the other contexts of the scope: the default device, if there is one."""
        if self._default_device is not None:
            blocks.enter_context(get_default_graph().device(self._default_device))

    def _creator(self, next_creator: VariableMaker, **kwargs: Any) -> Variable:
        kwargs["use_resource"] = True
        kwargs.setdefault("name", None)
        synchronization = kwargs["synchronization"] = (
            kwargs.get("synchronization") or VariableSynchronization.AUTO
        )
        kwargs["aggregation"] = kwargs.get("aggregation") or VariableAggregation.NONE
        if synchronization is VariableSynchronization.NONE:
            raise ValueError(
                "`NONE` variable synchronization mode is not supported with tf.distribute strategy. Please change "
                f"the `synchronization` for variable: {kwargs.get('name')}"
            )
        if self._shared is None:
            return self._create_variable(next_creator, **kwargs)
        return self._create_shared(next_creator, kwargs)

    def _create_shared(self, next_creator: VariableMaker, kwargs: dict[str, Any]) -> Variable:
        """The first replica makes a variable, the others find it, by the order in which they ask."""
        replica = context.get_replica_context()
        if replica is None:
            return self._create_variable(next_creator, **kwargs)
        assert self._shared is not None
        # By the name without numbers: in a second replica `unique_name` has counted on.
        variables: list[Variable] = self._shared.setdefault(
            _NAME_SUFFIX.sub("", kwargs.get("name") or "Variable"), []
        )
        if replica._replica_index == 0:
            variables.append(self._create_variable(next_creator, **kwargs))
            return variables[-1]
        taken = replica.__dict__.setdefault("_taken", {})
        number: int = taken.get(id(variables), 0) + 1
        taken[id(variables)] = number
        if number > len(variables):
            raise RuntimeError(
                f"Replica {replica._replica_index} makes a variable {kwargs.get('name')!r} that the first replica does not make."
            )
        return variables[number - 1]

    def _create_variable(self, next_creator: VariableMaker, **kwargs: Any) -> Variable:
        return next_creator(**kwargs)

    def colocate_vars_with(self, colocate_with_variable: Variable) -> AbstractContextManager[Any]:
        """A block whose new variables are where another one is."""
        return replaced(self, "_colocated", colocate_with_variable)

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Whether a variable belongs to this strategy."""
        return getattr(v, "_distribute_strategy", None) is self._strategy

    def read_var(self, v: Variable) -> Tensor:
        """A variable's value, above the replicas."""
        return v.value() if hasattr(v, "_copies") else apply("Identity", to_tensor(v))

    def value_container(self, value: object) -> Any:
        """The variable that something is a copy of, or itself."""
        return getattr(value, "_copy_of", value)

    def non_slot_devices(self, var_list: list[Variable]) -> Any:
        """Where an optimizer's own variables, those without a slot, belong."""
        return self.worker_devices

    # -- replicas --

    def call_for_each_replica(self, fn: Function, args: Sequence[Any] = (), kwargs: Keywords = None) -> Any:
        """Calls `fn` for each replica, with its part of the arguments."""
        context.require_cross_replica(self._strategy)
        with self._strategy.scope():
            return self._call_for_each_replica(fn, args, kwargs or {})

    def _call_for_each_replica(self, fn: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        devices = self.worker_devices
        from tensorfleet.api.distribute.replicas import ReplicaContext, ThreadedReplica, run_replicas

        if len(devices) == 1:
            replica = ReplicaContext(self._strategy, self._first_replica)
            graph = get_default_graph()
            with context.entered(Mode(self._strategy, replica)), graph.device(devices[0]):
                return fn(*select(0, args), **select(0, kwargs))

        def body(i: int) -> Callable[[], Any]:
            return lambda: fn(*select(i, args), **select(i, kwargs))

        with replaced(self, "_shared", {}):
            replicas = [
                ThreadedReplica(self._strategy, i, self._first_replica + i, where, body(i))
                for i, where in enumerate(devices)
            ]
            return run_replicas(self._strategy, replicas)

    def _local_results(self, value: object) -> tuple[Any, ...]:
        if isinstance(value, (list, tuple, dict)):
            count = len(self.worker_devices)
            return tuple(select_copy(i, value) for i in range(count)) if count > 1 else (value,)
        return parts_of(value)

    # -- reductions --

    def _sum_over_workers(self, values: list[Any], reduce_op: ReduceOp) -> list[Any]:
        """The sums of values over all workers; here, with one worker, the values."""
        return values

    def _mean_over_workers(self, values: list[Any]) -> list[Any]:
        """The means, over all workers, of values that each has one of."""
        return values

    def reduce_to(self, reduce_op: ReduceOp | str, value: object, destinations: object) -> Any:
        """The sum or mean over the replicas, on each of the devices asked for."""
        context.require_cross_replica(self._strategy)
        return self._reduce_to(ReduceOp.of(reduce_op), value, destinations)

    def _reduce_to(self, reduce_op: ReduceOp, value: object, destinations: object) -> Any:
        return self._batch_reduce_to(reduce_op, [(value, destinations)])[0]

    def batch_reduce_to(
        self, reduce_op: ReduceOp | str, value_destination_pairs: Iterable[tuple[Any, Any]]
    ) -> list[Any]:
        """`reduce_to` for many values at once."""
        context.require_cross_replica(self._strategy)
        pairs, wanted = list(value_destination_pairs), ReduceOp.of(reduce_op)
        # A strategy of a user's own overrides `_reduce_to` only.
        if type(self)._reduce_to is not StrategyExtended._reduce_to:
            return [self._reduce_to(wanted, value, destinations) for value, destinations in pairs]
        return self._batch_reduce_to(wanted, pairs)

    def _batch_reduce_to(self, wanted: ReduceOp, pairs: list[tuple[Any, Any]]) -> list[Any]:
        done: dict[int, Any] = {}
        totals, places, own = [], [], []
        own_ops = self._cross_device_ops
        for i, (value, destinations) in enumerate(pairs):
            if not is_distributed(value) and not self._differs(value):
                done[i] = reducing.not_distributed(wanted, value, self._num_replicas_in_sync)
            elif isinstance(value, Mirrored) and wanted is ReduceOp.MEAN:
                done[i] = value
            elif own_ops is not None:
                own.append(i)
            else:
                where = reducing.devices_of(destinations)
                parts = list(parts_of(value))
                totals.append(reducing.combine(wanted, parts, where[0], self._num_replicas_in_sync))
                places.append((i, where))
        # All sums in one call: between workers they travel together.
        for (i, where), total in zip(places, self._sum_over_workers(totals, wanted), strict=True):
            done[i] = reducing.copied(total, where)
        if own_ops is not None and own:
            reduced = own_ops.batch_reduce(wanted, [pairs[i] for i in own])
            done.update(zip(own, reduced, strict=True))
        return [done[i] for i in range(len(pairs))]

    def _differs(self, value: object) -> bool:
        """Whether a value that is one in this process may be another in other workers."""
        return False

    def _reduce(self, reduce_op: ReduceOp, value: object) -> Any:
        named = type(self).worker_devices is not StrategyExtended.worker_devices
        where = getattr(parts_of(value)[0], "device", "") or (
            self.worker_devices[0] if named else "/device:CPU:0"
        )
        return self._local_results(self.reduce_to(reduce_op, value, where))[0]

    def broadcast_to(self, tensor: TensorLike, destinations: object) -> Any:
        """A value on each of the devices asked for."""
        context.require_cross_replica(self._strategy)
        return reducing.copied(tensor, reducing.devices_of(destinations))

    # -- updates --

    def update(
        self,
        var: Variable,
        fn: Function,
        args: Sequence[Any] = (),
        kwargs: Keywords = None,
        group: bool = True,
    ) -> Any:
        """Calls `fn(copy, ...)` for each copy of a variable, with its part of the arguments."""
        context.require_cross_replica(self._strategy)
        return self._update(var, fn, args, kwargs or {}, group)

    def _update(
        self, var: Variable, fn: Function, args: Sequence[Any], kwargs: Mapping[str, Any], group: bool
    ) -> Any:
        results = []
        copies = parts_of(var)
        for i, copy in enumerate(copies):
            with ExitStack() as blocks:
                blocks.enter_context(context.entered(Mode(self._strategy, None, i)))
                if len(copies) > 1:
                    blocks.enter_context(name_scope(f"update_{i}"))
                blocks.enter_context(reducing.placed(copy.device))
                results.append(fn(copy, *select_copy(i, args), **select_copy(i, kwargs)))
        return self._updated(results, group)

    def update_non_slot(
        self,
        colocate_with: object,
        fn: Function,
        args: Sequence[Any] = (),
        kwargs: Keywords = None,
        group: bool = True,
    ) -> Any:
        """Calls `fn` on each of the devices of `non_slot_devices`."""
        context.require_cross_replica(self._strategy)
        return self._update_non_slot(colocate_with, fn, args, kwargs or {}, group)

    def _update_non_slot(
        self, colocate_with: object, fn: Function, args: Sequence[Any], kwargs: Mapping[str, Any], group: bool
    ) -> Any:
        results = []
        devices = reducing.devices_of(colocate_with)
        for i, where in enumerate(devices):
            with context.entered(Mode(self._strategy, None, i)), reducing.placed(where):
                results.append(fn(*select_copy(i, args), **select_copy(i, kwargs)))
        return self._updated(results, group)

    def _updated(self, results: list[Any], group: bool) -> Any:
        """The results of updates; with `group`, none is available before all are."""
        if not group:
            return tuple(results)
        if len(results) == 1:
            return results[0]
        if any(isinstance(r, (list, tuple, dict)) for r in results):
            return regroup(results)
        live = [r for r in results if r is not None]
        if not live:
            return None
        # Nothing may read one copy before all are updated: copies would differ.
        together = group_ops(*[r if isinstance(r, Operation) else r.op for r in live])
        if any(isinstance(r, Operation) for r in live):
            return together
        copies = []
        for result in live:
            with reducing.placed(result.device), control_dependencies([together]):
                copies.append(apply("Identity", to_tensor(result)))
        return Mirrored(copies)

    # -- input --

    def _experimental_distribute_dataset(self, dataset: Dataset) -> Any:
        return inputs.DistributedDataset(self, dataset, True)

    def _experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any]
    ) -> Any:
        return inputs.DistributedDataset(self, dataset_fn(self._input_context()), False)

    def _make_dataset_iterator(self, dataset: Dataset) -> Any:
        return inputs.DistributedDataset(self, dataset, True).make_initializable_iterator()

    def _make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Any], replication_mode: InputReplicationMode | None = None
    ) -> Any:
        return inputs.FunctionIterator(self, input_fn(self._input_context()))

    def _input_context(self) -> inputs.InputContext:
        return inputs.InputContext(1, 0, self._num_replicas_in_sync)

    def experimental_make_numpy_dataset(self, numpy_input: object, session: BaseSession | None = None) -> Any:
        """A dataset of the rows of arrays."""
        context.require_cross_replica(self._strategy)
        return self._experimental_make_numpy_dataset(numpy_input, session)

    def _experimental_make_numpy_dataset(self, numpy_input: object, session: BaseSession | None) -> Any:
        return inputs.numpy_dataset(numpy_input)

    def experimental_run_steps_on_iterator(
        self, fn: Function, iterator: InputIterator, iterations: int = 1, initial_loop_values: object = None
    ) -> StepsContext:
        """Calls `fn(context, element)` for a number of elements, one after the other; gives one operation for all."""
        context.require_cross_replica(self._strategy)
        with self._strategy.scope():
            return self._experimental_run_steps_on_iterator(fn, iterator, iterations, initial_loop_values)

    def _experimental_run_steps_on_iterator(
        self, fn: Function, iterator: InputIterator, iterations: int, initial_loop_values: object = None
    ) -> StepsContext:
        done: list[Operation] = []
        steps = StepsContext()
        for _ in range(iterations):
            with control_dependencies(done):
                result = fn(steps, iterator.get_next())
                done = [group_ops(*_operations(result))]
        steps.run_op = done[0]
        return steps


class Scope:
    """The block of a strategy's variables. It may be entered again, also inside itself."""

    def __init__(self, extended: StrategyExtended, strategy: Strategy) -> None:
        self._extended, self._strategy = extended, strategy
        self._entered: list[tuple[ExitStack, Any] | None] = []

    def __enter__(self) -> Strategy:
        here = context.current()
        if here.strategy is self._strategy:
            if here.replica is not None and not self._extended._is_default:
                raise RuntimeError(
                    "A strategy's scope is entered above its replicas: use merge_call inside one."
                )
            self._entered.append(None)
            return self._strategy
        if context.has_strategy():
            raise context.mixed(here.strategy, self._strategy)
        with ExitStack() as blocks:
            blocks.enter_context(context.entered(Mode(self._strategy)))
            blocks.enter_context(variable_creator_scope(self._extended._creator))
            self._extended._enter_scopes(blocks)
            self._entered.append((blocks.pop_all(), _open_scopes()))
        return self._strategy

    def __exit__(self, *error: Any) -> None:
        if self._entered[-1] is not None:
            blocks, before = self._entered[-1]
            for what, was, now in zip(_SCOPE_KINDS, before, _open_scopes(), strict=True):
                if was != now and (what != "Device" or self._extended._default_device is not None):
                    raise RuntimeError(
                        f"{what} scope nesting error: leave the blocks inside a strategy's scope before the scope."
                    )
            blocks.__exit__(*error)
        self._entered.pop()


_SCOPE_KINDS = ("Variable creator", "Variable", "Device")


def _open_scopes() -> tuple[Any, ...]:
    """The state that must be the same when a strategy's scope is left as when it was entered."""
    state = get_default_graph()._local()
    return list(state.creators), get_variable_scope(), list(state.devices)


class StepsContext:
    """The results of several steps in one run."""

    def __init__(self) -> None:
        self.run_op: Operation | None = None
        self.last_step_outputs: dict[str, Any] = {}
        self.non_tensor_outputs: dict[str, Any] = {}

    def set_last_step_output(
        self, name: str, output: object, reduce_op: ReduceOp | str | None = None
    ) -> None:
        """Keeps a result of the last step."""
        if reduce_op is not None:
            output = context.get_strategy().reduce(reduce_op, output)
        self.last_step_outputs[name] = output

    def set_non_tensor_output(self, name: str, output: object) -> None:
        """Keeps a result that is no tensor."""
        self.non_tensor_outputs[name] = output


def _operations(result: object) -> list[Any]:
    if result is None:
        return []
    if isinstance(result, (list, tuple)):
        return [op for r in result for op in _operations(r)]
    return list(parts_of(result))
