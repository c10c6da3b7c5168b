"""`tf.Variable`, in both of TensorFlow's forms: by reference (the default) and by resource handle."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

from tensorfleet.api.variables.base import (
    SaveSliceInfo,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)
from tensorfleet.api.variables.guard import guarded
from tensorfleet.base import dtypes, logging
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_op
from tensorfleet.graph.convert import register_tensor_conversion_function, to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import prepend_scope
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import (
    colocate_with,
    control_dependencies,
    device,
    get_default_graph,
    name_scope,
    session_for,
)

if TYPE_CHECKING:
    from tensorfleet.base.protos import VariableDef
    from tensorfleet.session.session import BaseSession

__all__ = [
    "RefVariable",
    "ResourceVariable",
    "SaveSliceInfo",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
]


def _check_outside(initial_value: Tensor, scope: str) -> None:
    """The error for an initial value that is only there in a branch or a loop."""
    if initial_value.op._get_control_flow_context() is not None:
        raise ValueError(
            f"Initializer for variable {scope} is from inside a control-flow construct, such as a loop or "
            "conditional. When creating a variable inside a loop or conditional, use a lambda as the initializer."
        )


class RefVariable(Variable):
    """A variable reached through a reference: the form `tf.Variable` has in TensorFlow 1.x."""

    _snapshot: Tensor

    def _build(
        self,
        value: object,
        fn: Callable[..., TensorLike] | None,
        name: str | None,
        dtype: DType | None,
        validate_shape: bool,
        shape: ShapeLike,
    ) -> None:
        graph = get_default_graph()
        with name_scope(name, "Variable", None if fn is not None else [value]) as scope:
            self._initial_value = self._initial(value, fn, scope, dtype)
            _check_outside(self._initial_value, scope)
            static = self._initial_value.shape if validate_shape else TensorShape(None)
            if shape is not None:
                static = as_shape(shape)
            elif validate_shape and not static.is_fully_defined():
                raise ValueError(f"initial_value must have a shape specified: {self._initial_value}")
            self._variable = apply(
                "VariableV2", shape=static, dtype=self._initial_value.dtype.base_dtype, name=scope
            )
            first = guarded(self._initial_value, scope)
            with colocate_with(self._variable.op):
                self._initializer_op = apply(
                    "Assign", self._variable, first, validate_shape=validate_shape, name="Assign"
                ).op
            self._snapshot = self._make_read(graph)

    def _is_initialized(self) -> Tensor:
        return apply("IsVariableInitialized", self._variable)

    def _make_read(self, graph: Graph) -> Tensor:
        with colocate_with(self._variable.op):
            read = apply("Identity", self._variable, name="read")
        if self._caching_device is not None:
            # The cache is on its own device, whatever device is open around.
            with graph.device(None), graph.device(self._caching_device):
                return apply("Identity", read)
        return read

    def _from_def(self, variable_def: VariableDef, import_scope: str | None) -> None:
        self._adopt(variable_def, import_scope)
        name = prepend_scope(variable_def.snapshot_name, import_scope)
        self._snapshot = get_default_graph().as_graph_element(name)

    def value(self) -> Tensor:
        """The value as a tensor: a snapshot taken when the step reaches it."""
        return self._snapshot

    def read_value(self) -> Tensor:
        """The value, read at this point of the graph."""
        return apply("Identity", self._variable, name="read")

    def _ref(self) -> Tensor:
        return self._variable

    def ref(self) -> Tensor:
        """The name of `_ref` before TensorFlow 1.0: the tensor that holds the value, to be changed."""
        logging.log_first_n(logging.WARN, "tf.Variable.ref is now tf.Variable._ref.", 1)
        return self._variable

    def _AsTensor(self) -> Tensor:
        return self._snapshot

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Writes a value."""
        updated = assign(self._variable, value, use_locking=use_locking, name=name)
        return updated if read_value else updated.op

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value."""
        updated = assign_add(self._variable, delta, use_locking=use_locking, name=name)
        return updated if read_value else updated.op

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value."""
        updated = assign_sub(self._variable, delta, use_locking=use_locking, name=name)
        return updated if read_value else updated.op

    def count_up_to(self, limit: int) -> Tensor:
        """Adds one until the value is `limit`, then raises `OutOfRangeError`."""
        return count_up_to(self, limit)

    def _scatter(self, kind: str, delta: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        if not isinstance(delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {delta}")
        return apply_any(
            f"Scatter{kind}", self._variable, delta.indices, delta.values, use_locking=use_locking, name=name
        )

    def _scatter_nd(self, kind: str, indices: TensorLike, updates: TensorLike, name: str | None) -> Any:
        return apply_any(f"ScatterNd{kind}", self._variable, indices, updates, use_locking=True, name=name)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The rows at these indices."""
        return apply("GatherV2", self._variable, indices, 0, name=name)


class ResourceVariable(Variable):
    """A variable reached through a handle; each read is an operation of its own."""

    def _build(
        self,
        value: object,
        fn: Callable[..., TensorLike] | None,
        name: str | None,
        dtype: DType | None,
        validate_shape: bool,
        shape: ShapeLike,
    ) -> None:
        with name_scope(name, "Variable", None if fn is not None else [value]) as scope:
            # Sessions of other processes find the variable by this name, so it is the full one.
            shared = scope.rstrip("/")
            self._initial_value = self._initial(value, fn, scope, dtype)
            _check_outside(self._initial_value, scope)
            static = as_shape(shape) if shape is not None else self._initial_value.shape
            if not self._initial_value.shape.is_compatible_with(static):
                raise ValueError(
                    f"The initial value's shape ({self._initial_value.shape}) is not compatible with the explicitly "
                    f"supplied `shape` argument ({static})."
                )
            if not validate_shape:
                static = TensorShape(None)
            self._dtype = self._initial_value.dtype.base_dtype
            self._variable = apply(
                "VarHandleOp", shape=static, dtype=self._dtype, shared_name=shared, name=scope
            )
            self._shape = static
            with name_scope("IsInitialized"):
                self._is_initialized_op = apply("VarIsInitializedOp", self._variable)
            first = guarded(self._initial_value, scope)
            with colocate_with(self._variable.op):
                self._initializer_op = apply_op("AssignVariableOp", self._variable, first, name="Assign")
            with name_scope("Read"):
                self._graph_element = self._read_variable_op()
            if self._caching_device is not None:
                with colocate_with(None, ignore_existing=True), device(self._caching_device):
                    self._cached = apply("Identity", self._graph_element)

    def _is_initialized(self) -> Tensor:
        return self.is_initialized()

    def _from_def(self, variable_def: VariableDef, import_scope: str | None) -> None:
        self._adopt(variable_def, import_scope)
        attrs = self._variable.op._attrs
        self._dtype, self._shape = attrs["dtype"], attrs["shape"]
        name = prepend_scope(variable_def.snapshot_name, import_scope)
        self._graph_element = get_default_graph().as_graph_element(name)
        if self._graph_element.op.type == "Identity":
            self._cached = self._graph_element

    def _read_variable_op(self) -> Tensor:
        with colocate_with(self._variable.op):
            value = apply("ReadVariableOp", self._variable, dtype=self._dtype)
        value.set_shape(self._shape)
        return value

    handle: Tensor = readonly("_variable", "The handle that operations take.")
    _handle: Tensor = readonly("_variable")
    dtype: DType = readonly("_dtype")
    shape: TensorShape = readonly("_shape")
    create: Operation = readonly("_initializer_op", "The operation that initializes the variable.")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise NotImplementedError(
            "__deepcopy__() is only available when eager execution is enabled: make another variable instead."
        )

    _cached_value = readonly("_cached")

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Whether it has a value."""
        return apply("VarIsInitializedOp", self._variable, name=name)

    def value(self) -> Tensor:
        """A read of the value."""
        if self._cached is not None:
            return self._cached
        # A colocation that is open around must not move the read: `_read_variable_op` puts it beside the variable.
        with colocate_with(None, ignore_existing=True):
            return self._read_variable_op()

    def _as_graph_element(self) -> Tensor:
        return self._graph_element

    def _read_name(self) -> str:
        return (self._graph_element if self._cached is None else self._cached).name

    def _AsTensor(self) -> Tensor:
        return self.value()

    def read_value(self) -> Tensor:
        """The value, read at this point of the graph."""
        with name_scope("Read"):
            value = self._read_variable_op()
        return apply("Identity", value)

    def eval(self, session: BaseSession | None = None) -> Any:
        """The value in a session."""
        return session_for(session, self.graph, "evaluate tensor").run(self._graph_element)

    def set_shape(self, shape: ShapeLike) -> None:
        """Merges the static shape with this one."""
        self._shape = self._shape.merge_with(as_shape(shape))

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The rows at these indices."""
        with name_scope("Gather" if name is None else name) as scope:
            value = apply("ResourceGather", self._variable, indices, dtype=self._dtype, name=scope)
        return apply("Identity", value)

    def count_up_to(self, limit: int) -> Tensor:
        """Adds one until the value is `limit`, then raises `OutOfRangeError`."""
        return count_up_to(self, limit)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements or slices that `indices` names, without reading the rest."""
        return apply("ResourceGatherNd", self._variable, indices, dtype=self._dtype, name=name)

    def _place(self) -> AbstractContextManager[Any]:
        """Where updates are made: in the variable's graph, or in the function that is being built."""
        # A function captures the variable's handle; in the outer graph the update would not be part of it.
        return nullcontext() if get_default_graph()._building_function else self.graph.as_default()

    def _written(self, op: Operation, read_value: bool) -> WrittenVariable | Operation:
        """The result of an update: the variable with its new value, or the operation."""
        return WrittenVariable(self, op) if read_value else op

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Writes a value."""
        with self._place():
            tensor = to_tensor(value, self._dtype)
            self._shape.assert_is_compatible_with(tensor.shape)
            return self._written(apply_op("AssignVariableOp", self._variable, tensor, name=name), read_value)

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value."""
        with self._place():
            tensor = to_tensor(delta, self._dtype)
            return self._written(
                apply_op("AssignAddVariableOp", self._variable, tensor, name=name), read_value
            )

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value."""
        with self._place():
            tensor = to_tensor(delta, self._dtype)
            return self._written(
                apply_op("AssignSubVariableOp", self._variable, tensor, name=name), read_value
            )

    def _scatter(self, kind: str, delta: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        if not isinstance(delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {delta}")
        values = to_tensor(delta.values, self._dtype)
        op = apply_any(f"ResourceScatter{kind}", self._variable, delta.indices, values, name=name)
        return self._written(op, True)

    def _scatter_nd(self, kind: str, indices: TensorLike, updates: TensorLike, name: str | None) -> Any:
        values = to_tensor(updates, self._dtype)
        return self._written(
            apply_any(f"ResourceScatterNd{kind}", self._variable, indices, values, name=name), True
        )


class WrittenVariable(ResourceVariable):
    """A resource variable after one of its updates: reading it waits for the update, waiting for it does not read."""

    def __init__(self, variable: ResourceVariable, op: Operation) -> None:
        # The same variable, down to its handle, with another read.
        self.__dict__.update(variable.__dict__)
        self._write = op
        self._cached = None
        with control_dependencies([op]):
            self._graph_element = variable._read_variable_op()

    op: Operation = readonly("_write", "The update.")

    name: str = readonly("_write.name", "The name of the update.")

    def value(self) -> Tensor:
        """The value after the update."""
        return self._graph_element

    def read_value(self) -> Tensor:
        """A new read, after the update."""
        with control_dependencies([self._write]):
            return super().read_value()


def _dense_to_tensor(
    var: Variable, dtype: DTypeLike | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(var.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtypes.as_dtype(dtype).name}' for variable of type "
            f"'{var.dtype.name}'"
        )
    if as_ref and isinstance(var, RefVariable):
        return var._ref()
    return var._AsTensor()


register_tensor_conversion_function(Variable, _dense_to_tensor)


def _reference(ref: Variable | Tensor) -> Tensor:
    return ref._variable if isinstance(ref, Variable) else ref


@export("assign")
def assign(
    ref: Any,
    value: TensorLike,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Makes `value` the new value of a variable, or of a slice of one; gives the variable, updated."""
    if not ref.dtype._is_ref_dtype:  # a resource variable, or a slice that knows its variable
        return ref.assign(value, name=name)
    checked = True if validate_shape is None else validate_shape
    locking = True if use_locking is None else use_locking
    return apply("Assign", _reference(ref), value, validate_shape=checked, use_locking=locking, name=name)


@export("assign_add")
def assign_add(ref: Any, value: TensorLike, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Adds `value` to a variable; gives the variable, updated."""
    if not ref.dtype._is_ref_dtype:
        return ref.assign_add(value, name=name)
    return apply("AssignAdd", _reference(ref), value, use_locking=bool(use_locking), name=name)


@export("assign_sub")
def assign_sub(ref: Any, value: TensorLike, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtracts `value` from a variable; gives the variable, updated."""
    if not ref.dtype._is_ref_dtype:
        return ref.assign_sub(value, name=name)
    return apply("AssignSub", _reference(ref), value, use_locking=bool(use_locking), name=name)


@export("count_up_to")
def count_up_to(ref: Variable | Tensor, limit: int, name: str | None = None) -> Tensor:
    """Increments a variable until `limit`, then raises OutOfRangeError; gives the value before."""
    if isinstance(ref, ResourceVariable):
        return apply("ResourceCountUpTo", ref.handle, limit=limit, T=ref.dtype, name=name)
    return apply("CountUpTo", _reference(ref), limit=limit, name=name)


@export("is_variable_initialized")
def is_variable_initialized(variable: Variable | Tensor) -> Tensor:
    """Whether a variable has a value."""
    if isinstance(variable, ResourceVariable):
        return variable.is_initialized()
    return apply("IsVariableInitialized", _reference(variable))
