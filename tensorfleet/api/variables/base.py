"""The base of both forms of `tf.Variable`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import prepend_scope, strip_scope
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.references import Reference
from tensorfleet.graph.scopes import (
    GraphKeys,
    control_dependencies,
    device,
    get_default_graph,
    name_scope,
    session_for,
)
from tensorfleet.ops.array.indexing import slice_helper
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.operators import install_on_variable

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import CollectionKeys, Constraint, DeviceLike, InitializerLike
    from tensorfleet.base.protos import SaveSliceInfoDef, VariableDef
    from tensorfleet.session.session import BaseSession


@export("VariableSynchronization")
class VariableSynchronization(enum.Enum):
    """How copies of a variable on several devices stay together."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


@export("VariableAggregation")
class VariableAggregation(enum.Enum):
    """How values written to copies of a variable are combined."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3


class VariableMeta(type):
    """Makes `tf.Variable(...)` give a reference or a resource variable, through the graph's creators."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """`Variable(...)` makes the kind of variable that the scope asks for; a subclass makes itself."""
        if cls is not Variable:
            return super().__call__(*args, **kwargs)
        from tensorfleet.api.variables import creation

        return creation.create_variable(*args, **kwargs)


def _by_rows(kind: str, does: str) -> Callable[..., Any]:
    def scatter(
        self: Variable, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return self._scatter(kind, sparse_delta, use_locking, name)

    scatter.__name__, scatter.__doc__ = f"scatter_{kind.lower()}", does
    return scatter


def _by_places(kind: str, does: str) -> Callable[..., Any]:
    def scatter(self: Variable, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        return self._scatter_nd(kind, indices, updates, name)

    scatter.__name__, scatter.__doc__ = f"scatter_nd_{kind.lower()}", does
    return scatter


@export("Variable")
class Variable(metaclass=VariableMeta):
    """State that outlives a step: a tensor that operations can read and assign.

    `initial_value` is a value, a tensor, or a function without arguments (then pass `dtype`). Run the
    variable's `initializer` (or `tf.global_variables_initializer()`) before using it.
    """

    _initial_value: Any
    _variable: Tensor
    _initializer_op: Operation
    _caching_device: DeviceLike = None
    _cached: Tensor | None = None
    _distribute_strategy: Any = None

    def __init__(
        self,
        initial_value: InitializerLike = None,
        trainable: bool | None = None,
        collections: CollectionKeys | None = None,
        validate_shape: bool = True,
        caching_device: DeviceLike = None,
        name: str | None = None,
        variable_def: VariableDef | None = None,
        dtype: DTypeLike | None = None,
        expected_shape: ShapeLike = None,
        import_scope: str | None = None,
        constraint: Constraint | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: ShapeLike = None,
    ) -> None:
        self._save_slice_info: Any = None
        self._constraint = constraint
        self._synchronization = synchronization
        self._aggregation = aggregation
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._from_def(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        initial_value_fn = initial_value if callable(initial_value) else None
        if trainable is None:
            trainable = synchronization != VariableSynchronization.ON_READ
        self._trainable = trainable
        keys = _collection_keys(collections, self._trainable)
        self._caching_device = caching_device
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        graph = get_default_graph()
        # An initializer inside a branch or under a dependency could not be run at the start.
        with graph.control_dependencies(None):
            self._build(initial_value, initial_value_fn, name, wanted, validate_shape, shape)
        graph.add_to_collections(keys, self)

    # -- the two forms differ in these --

    def _build(
        self,
        value: object,
        fn: Callable[..., TensorLike] | None,
        name: str | None,
        dtype: DType | None,
        validate_shape: bool,
        shape: ShapeLike,
    ) -> None:
        raise AssertionError("made by RefVariable or ResourceVariable")

    def _from_def(self, variable_def: VariableDef, import_scope: str | None) -> None:
        raise AssertionError("made by RefVariable or ResourceVariable")

    def value(self) -> Tensor:
        """The value as a tensor."""
        raise AssertionError("made by RefVariable or ResourceVariable")

    def read_value(self) -> Tensor:
        """A new read, ordered by the control dependencies around this call."""
        raise AssertionError("made by RefVariable or ResourceVariable")

    def _AsTensor(self) -> Tensor:
        raise AssertionError("made by RefVariable or ResourceVariable")

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Makes `value` the new value."""
        raise AssertionError("made by RefVariable or ResourceVariable")

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value."""
        raise AssertionError("made by RefVariable or ResourceVariable")

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value."""
        raise AssertionError("made by RefVariable or ResourceVariable")

    def _initial(
        self, value: object, fn: Callable[..., TensorLike] | None, scope: str, dtype: DType | None
    ) -> Tensor:
        """The initial value as a tensor; one that comes from a function is built next to the variable."""
        graph = get_default_graph()
        if fn is None:
            return to_tensor(value, dtype, name="initial_value")
        # Beside the variable on its server, so that the initial value does not travel; no outer device
        # counts.
        own = [b"loc:@" + scope.rstrip("/").encode()]
        with graph._attr_scope({"_class": own}), name_scope("Initializer"), device(None):
            return to_tensor(fn(), dtype, name="initial_value")

    name: str = readonly("_variable.name", "The name, ending in `:0`.")

    @property
    def _shared_name(self) -> str:
        return self.name[: self.name.index(":")]

    op: Operation = readonly("_variable.op", "The operation that stands for the variable.")
    device: str = readonly("_variable.device", "The device asked for.")
    graph: Graph = readonly("_variable.graph", "The graph it belongs to.")
    dtype: DType = readonly("_variable.dtype", "The type of the elements.")
    shape: TensorShape = readonly("_variable.shape", "The static shape.")

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Adds knowledge about the shape."""
        self._variable.set_shape(shape)
        self.value().set_shape(shape)

    initializer: Operation = readonly(
        "_initializer_op", "The operation that gives the variable its initial value."
    )
    initial_value: Tensor = readonly("_initial_value", "The tensor it is initialized with.")
    trainable: bool = readonly("_trainable", "Whether optimizers train it by default.")
    constraint: Constraint | None = readonly(
        "_constraint", "A function applied to the value after an optimizer's update."
    )
    synchronization: VariableSynchronization = readonly("_synchronization", "How copies of it stay together.")
    aggregation: VariableAggregation = readonly(
        "_aggregation", "How values written to its copies are combined."
    )

    def initialized_value(self) -> Tensor:
        """The value, or the initial value while the variable is uninitialized."""
        with control_dependencies(None):
            value: Tensor = cond(self._is_initialized(), self.read_value, lambda: self.initial_value)
        return value

    def _is_initialized(self) -> Tensor:
        raise AssertionError("made by RefVariable or ResourceVariable")

    def eval(self, session: BaseSession | None = None) -> Any:
        """The current value as a numpy array."""
        return session_for(session, self.graph, "evaluate tensor").run(self.value())

    def load(self, value: TensorLike, session: BaseSession | None = None) -> None:
        """Writes a new value straight into the variable."""
        session_for(session, self.graph, "load variable", "load").run(
            self.initializer, {self.initializer.inputs[1]: value}
        )

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def count_up_to(self, limit: int) -> Tensor:
        """Increments until `limit`, then raises OutOfRangeError; gives the value before."""
        raise AssertionError("made by RefVariable or ResourceVariable")

    scatter_sub = _by_rows("Sub", "Subtracts rows.")
    scatter_add = _by_rows("Add", "Adds rows.")
    scatter_update = _by_rows("Update", "Replaces rows.")
    scatter_mul = _by_rows("Mul", "Multiplies rows.")
    scatter_div = _by_rows("Div", "Divides rows.")
    scatter_max = _by_rows("Max", "Keeps the larger of each row's elements.")
    scatter_min = _by_rows("Min", "Keeps the smaller of each row's elements.")

    def _scatter(self, kind: str, delta: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        raise AssertionError("made by RefVariable or ResourceVariable")

    scatter_nd_sub = _by_places("Sub", "Subtracts from the elements or slices that `indices` names.")
    scatter_nd_add = _by_places("Add", "Adds to the elements or slices that `indices` names.")
    scatter_nd_update = _by_places("Update", "Replaces the elements or slices that `indices` names.")

    def _scatter_nd(self, kind: str, indices: TensorLike, updates: TensorLike, name: str | None) -> Any:
        raise AssertionError("made by RefVariable or ResourceVariable")

    def batch_scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replaces rows, for each item of a batch."""
        from tensorfleet.ops.state.scatter_variables import batch_scatter_update

        return batch_scatter_update(self, sparse_delta.indices, sparse_delta.values, use_locking, name)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The rows that `indices` names."""
        raise AssertionError("made by RefVariable or ResourceVariable")

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements or slices that `indices` names."""
        return apply("GatherNd", self.value(), indices, name=name)

    def to_proto(self, export_scope: str | None = None) -> VariableDef | None:
        """The variable as a `VariableDef`, or None when it is outside `export_scope`."""
        from tensorfleet.base.protos import VariableDef

        if export_scope is not None and not self._variable.name.startswith(export_scope):
            return None
        proto = VariableDef(
            variable_name=strip_scope(self._variable.name, export_scope),
            initializer_name=strip_scope(self.initializer.name, export_scope),
            snapshot_name=strip_scope(self._read_name(), export_scope),
            trainable=self.trainable,
            synchronization=self._synchronization.value,  # type: ignore[arg-type]  # the message's number
            aggregation=self._aggregation.value,  # type: ignore[arg-type]  # the message's number
        )
        if self._initial_value is not None:
            proto.initial_value_name = strip_scope(self._initial_value.name, export_scope)
        proto.is_resource = hasattr(self, "handle")
        if self._save_slice_info is not None:
            proto.save_slice_info_def.MergeFrom(self._save_slice_info.to_proto(export_scope))
        return proto

    def _read_name(self) -> str:
        return self.value().name

    @staticmethod
    def from_proto(variable_def: VariableDef, import_scope: str | None = None) -> Variable:
        """The variable of the current graph that a `VariableDef` describes."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    def _adopt(self, variable_def: VariableDef, import_scope: str | None) -> None:
        """Finds the operations and tensors of a `VariableDef` in the current graph."""
        graph = get_default_graph()

        def find(name: str) -> Any:
            return graph.as_graph_element(prepend_scope(name, import_scope)) if name else None

        self._variable = find(variable_def.variable_name)
        self._initializer_op = find(variable_def.initializer_name)
        self._initial_value = find(variable_def.initial_value_name)
        self._trainable = variable_def.trainable
        self._synchronization = VariableSynchronization(variable_def.synchronization)
        self._aggregation = VariableAggregation(variable_def.aggregation)
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = SaveSliceInfo.from_proto(variable_def.save_slice_info_def, import_scope)

    def experimental_ref(self) -> Reference:
        """A key for this variable in sets and dictionaries; its `deref()` gives the variable back."""
        return Reference(self)

    def _set_save_slice_info(self, info: SaveSliceInfo) -> None:
        self._save_slice_info = info

    def _get_save_slice_info(self) -> Any:
        return self._save_slice_info

    def __getitem__(self, spec: object) -> Tensor:
        """A slice of the value, which can also be assigned: `v[1:3].assign(...)`."""
        return slice_helper(self.value(), spec, var=self)

    def __iter__(self) -> NoReturn:
        raise TypeError("'Variable' object is not iterable.")

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.get_shape()} dtype={self.dtype.name}>"


class SaveSliceInfo:
    """Where one part of a partitioned variable lies in the whole."""

    full_name: str
    full_shape: Sequence[int]
    var_offset: Sequence[int]
    var_shape: Sequence[int]

    def __init__(
        self, full_name: Any = None, full_shape: Any = None, var_offset: Any = None, var_shape: Any = None
    ) -> None:
        self.full_name = full_name
        self.full_shape = full_shape
        self.var_offset = var_offset
        self.var_shape = var_shape

    @property
    def spec(self) -> str:
        """The slice as checkpoints write it: `full shape offset,length:...`."""
        full = " ".join(str(d) for d in self.full_shape) + " "
        return full + ":".join(f"{o},{n}" for o, n in zip(self.var_offset, self.var_shape, strict=True))

    def to_proto(self, export_scope: str | None = None) -> SaveSliceInfoDef:
        """The slice as a `SaveSliceInfoDef`."""
        from tensorfleet.base.protos import SaveSliceInfoDef

        return SaveSliceInfoDef(
            full_name=strip_scope(self.full_name, export_scope),
            full_shape=self.full_shape,
            var_offset=self.var_offset,
            var_shape=self.var_shape,
        )

    @staticmethod
    def from_proto(proto: SaveSliceInfoDef, import_scope: str | None = None) -> SaveSliceInfo:
        """The info that a `SaveSliceInfoDef` describes."""
        name = prepend_scope(proto.full_name, import_scope)
        return SaveSliceInfo(name, list(proto.full_shape), list(proto.var_offset), list(proto.var_shape))


Variable.SaveSliceInfo = SaveSliceInfo  # type: ignore[attr-defined]


def _collection_keys(collections: CollectionKeys | None, trainable: bool) -> list[Hashable]:
    keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    if not isinstance(keys, (list, tuple, set)):
        raise ValueError(
            f"collections argument to Variable constructor must be a list, tuple, or set. Got {keys} of type {type(keys)}"
        )
    keys = list(keys)
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
        keys.append(GraphKeys.TRAINABLE_VARIABLES)
    return keys


install_on_variable(Variable)
