"""Variables of which each device has a copy: kept equal (`MirroredVariable`), or put together when read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import context
from tensorfleet.api.distribute.context import Function, Mode, ReduceOp
from tensorfleet.api.distribute.values import PerReplica
from tensorfleet.api.train.saveables import SaveableObject, SaveSpec
from tensorfleet.api.variables.variable import ResourceVariable, VariableAggregation
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, device, name_scope, session_for
from tensorfleet.ops.array.basic import group

if TYPE_CHECKING:
    from tensorfleet.api.distribute.strategy import Strategy
    from tensorfleet.base.protos import VariableDef
    from tensorfleet.session.session import BaseSession


class DistributedVariable(ResourceVariable):
    """A variable with copies. Reading it takes the copy of the replica that reads, or else the first."""

    def __init__(
        self, strategy: Strategy, copies: list[ResourceVariable], aggregation: VariableAggregation
    ) -> None:
        self._distribute_strategy = strategy
        self._copies = tuple(copies)
        first = copies[0]
        self._primary = first
        self._dtype, self._shape = first._dtype, first._shape
        self._trainable, self._constraint = first.trainable, first.constraint
        self._synchronization, self._aggregation = first.synchronization, aggregation
        self._save_slice_info = None
        for copy in copies:
            # From a copy back to the variable: optimizers keep one slot for all copies.
            copy._copy_of = self  # type: ignore[attr-defined]
        self._all = first._initializer_op
        if len(copies) > 1:
            # The group waits for copies on several devices: it belongs to none of them.
            with control_dependencies(None), colocate_with(None, ignore_existing=True), device(None):
                with name_scope(f"{first.op.name}/"):
                    self._all = group(*[copy.initializer for copy in copies], name="initialize_copies")

    def _where(self) -> Mode:
        """Where we are; outside of the strategy's scope, above its replicas."""
        here = context.current()
        return here if here.strategy is self._distribute_strategy else Mode(self._distribute_strategy)

    @property
    def _chosen(self) -> ResourceVariable:
        here = self._where()
        index = here.updating if here.replica is None else here.replica._replica_index
        # Fewer copies than replicas: a variable of parameter servers has one for all.
        return self._copies[index if index is not None and index < len(self._copies) else 0]

    _variable = readonly("_chosen._variable")
    _graph_element = readonly("_chosen._graph_element")
    _initial_value = readonly("_chosen._initial_value")
    _is_initialized_op = readonly("_chosen._is_initialized_op")
    _initializer_op = readonly("_all")
    _cached = readonly("_chosen._cached")
    _caching_device = readonly("_chosen._caching_device")
    name = readonly("_primary.name", "The name of the first copy.")
    graph = readonly("_primary.graph", "The graph it belongs to.")
    distribute_strategy = readonly("_distribute_strategy", "The strategy in whose scope it was made.")
    values = readonly("_copies", "The copies.")

    @property
    def devices(self) -> tuple[str, ...]:
        """Where the copies are."""
        return tuple(copy.device for copy in self._copies)

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Whether all copies have a value."""
        all_initialized = self._copies[0].is_initialized()
        for copy in self._copies[1:]:
            all_initialized = apply("LogicalAnd", all_initialized, copy.is_initialized())
        return all_initialized

    def load(self, value: object, session: BaseSession | None = None) -> None:
        """Writes a new value straight into all copies."""
        first = [copy._initializer_op for copy in self._copies]
        feeds = {op.inputs[1]: value for op in first}
        session_for(session, self.graph, "load variable", "load").run(first, feeds)

    def to_proto(self, export_scope: str | None = None) -> VariableDef | None:
        """The first copy as a `VariableDef`."""
        return self._primary.to_proto(export_scope)

    def __repr__(self) -> str:
        lines = ",\n".join(f"  {i}: {v!r}" for i, v in enumerate(self._copies))
        return f"{type(self).__name__}:{{\n{lines}\n}}"

    def assign(
        self, value: object, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Writes a value to every copy."""
        return self._write("assign", value, name, read_value)

    def assign_add(
        self, delta: object, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to every copy."""
        return self._write("assign_add", delta, name, read_value)

    def assign_sub(
        self, delta: object, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from every copy."""
        return self._write("assign_sub", delta, name, read_value)

    def _write(self, method: str, value: object, name: str | None, read_value: bool) -> Any:
        def update(copy: ResourceVariable, x: object) -> Any:
            # A name that ends in "/" is the full name of one operation.
            own = name if copy is self._primary or not str(name).endswith("/") else None
            return getattr(copy, method)(x, name=own, read_value=read_value)

        return self._updated(update, value, method)

    def _scatter(self, kind: str, delta: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        return self._updated(
            lambda v, x: v._scatter(kind, x, use_locking, name), delta, f"scatter_{kind.lower()}"
        )

    def _updated(self, update: Function, value: object, method: str) -> Any:
        raise AssertionError("made by MirroredVariable or SyncOnReadVariable")


class MirroredVariable(DistributedVariable):
    """A variable whose copies are equal: values of replicas are combined by its aggregation, then written to all."""

    def _updated(self, update: Function, value: object, method: str) -> Any:
        here = self._where()
        if here.updating is not None:
            return update(self._chosen, value)
        if here.replica is None:
            return self._distribute_strategy.extended.update(self, update, args=(value,))
        if self._aggregation is VariableAggregation.NONE:
            raise ValueError(
                "You must specify an aggregation method to update a MirroredVariable in Replica Context: make the "
                f"variable {self.name!r} with aggregation=tf.VariableAggregation.SUM, MEAN or ONLY_FIRST_REPLICA."
            )

        def merge(strategy: Strategy, value: object) -> Any:
            return strategy.extended.update(self, update, args=(self._aggregated(strategy, value),))

        return here.replica.merge_call(merge, args=(value,))

    def _aggregated(self, strategy: Strategy, value: object) -> Any:
        if self._aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            first = value.values[0] if isinstance(value, PerReplica) else value
            given = first if isinstance(first, IndexedSlices) else to_tensor(first, self._dtype)
            return strategy.extended.broadcast_to(given, self)
        wanted = ReduceOp.from_variable_aggregation(self._aggregation)
        return strategy.extended.reduce_to(wanted, value, self)

    def _saveable(self, name: str) -> SaveableObject:
        return _Saveable(self._copies, self._primary._graph_element, name)


class AggregatingVariable(MirroredVariable):
    """A variable that all replicas share: there is one copy, on a device of its own."""


class SyncOnReadVariable(DistributedVariable):
    """A variable of which each replica writes its own copy; outside of replicas it is the copies combined."""

    _together: Tensor | None = None
    #: whether a replica that reads it gets all copies combined, as the value of a metric must be
    _summed_for_replicas = False

    def _updated(self, update: Function, value: object, method: str) -> Any:
        here = self._where()
        if here.replica is not None or here.updating is not None:
            return update(self._chosen, value)
        if self._aggregation is VariableAggregation.SUM:
            if method != "assign":
                raise ValueError(
                    f"SyncOnReadVariable does not support `{method}` in cross-replica context when aggregation is set "
                    "to `tf.VariableAggregation.SUM`."
                )
            value = self._share(value)
        return self._distribute_strategy.extended.update(self, update, args=(value,))

    def _share(self, value: TensorLike) -> Tensor:
        """A copy's part of a sum."""
        whole = to_tensor(value, self._dtype)
        count = self._distribute_strategy.num_replicas_in_sync
        kind = "FloorDiv" if self._dtype.is_integer else "RealDiv"
        return whole if count == 1 else apply_any(kind, whole, to_tensor(count, self._dtype))

    def _read_variable_op(self) -> Tensor:
        here = self._where()
        if here.replica is not None and self._summed_for_replicas:
            value: Tensor = here.replica.merge_call(lambda strategy: self._read_variable_op())
            return value
        if here.replica is not None or here.updating is not None:
            return self._chosen._read_variable_op()
        if self._aggregation in (VariableAggregation.ONLY_FIRST_REPLICA, VariableAggregation.NONE):
            return self._primary._read_variable_op()
        wanted = ReduceOp.from_variable_aggregation(self._aggregation)
        # Each copy is read on its device; a colocation with the first copy may be open around.
        with colocate_with(None, ignore_existing=True):
            reads = [copy._read_variable_op() for copy in self._copies]
        each = PerReplica(reads) if len(reads) > 1 else reads[0]
        reduced: Tensor = self._distribute_strategy.extended._reduce(wanted, each)
        return reduced

    def _as_graph_element(self) -> Tensor:
        here = self._where()
        if here.replica is not None or here.updating is not None:
            return self._chosen._graph_element
        if self._together is None:
            with control_dependencies(None), colocate_with(None, ignore_existing=True):
                self._together = self._read_variable_op()
        return self._together

    def value(self) -> Tensor:
        """A read: this replica's copy, or all copies combined."""
        return self._read_variable_op()

    def eval(self, session: BaseSession | None = None) -> Any:
        """The value of all copies combined."""
        return session_for(session, self.graph, "evaluate tensor").run(self._as_graph_element())

    def _saveable(self, name: str) -> SaveableObject:
        share = self._share if self._aggregation is VariableAggregation.SUM else None
        return _Saveable(self._copies, self._as_graph_element(), name, share)


class _Saveable(SaveableObject):
    """One value in the checkpoint for all copies, or for `share` to make a copy's part of."""

    def __init__(
        self,
        copies: Sequence[ResourceVariable],
        value: Tensor,
        name: str,
        share: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self._copies, self._share = copies, share
        first = copies[0]
        super().__init__(first.handle, [SaveSpec(value, "", name, first.dtype, first.device)], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: list[Any] | None) -> Operation:
        """Assigns the restored value to all copies."""
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = apply("Reshape", value, restored_shapes[0])
        if self._share is not None:
            value = self._share(value)
        done = []
        for copy in self._copies:
            with device(copy.device):
                here = apply("Identity", value)
                copy.shape.assert_is_compatible_with(here.shape)
                done.append(apply_op("AssignVariableOp", copy.handle, here))
        return done[0] if len(done) == 1 else group(*done)
