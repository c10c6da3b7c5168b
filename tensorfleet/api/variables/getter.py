"""Finding or making one variable by its full name, whole or in parts."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from tensorfleet.api.variables import initializers
from tensorfleet.api.variables.creation import create_variable
from tensorfleet.api.variables.partitioned import PartitionedVariable, PartitionInfo, partition
from tensorfleet.api.variables.variable import (
    SaveSliceInfo,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)
from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import DTypeLike, ShapeLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, colocate_with, get_default_graph, name_scope

if TYPE_CHECKING:
    from tensorfleet.api.variables.scope import VariableScope
    from tensorfleet.api.variables.types import (
        CollectionKeys,
        Constraint,
        DeviceLike,
        InitializerLike,
        Partitioner,
        Regularizer,
        Reuse,
        VariableMaker,
    )


class Store:
    """The variables that `get_variable` made in one graph, by full name."""

    def __init__(self) -> None:
        self.vars: dict[str, Variable] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}
        self.scopes: dict[str, int] = {}
        self.current = threading.local()
        self.root: VariableScope | None = None

    _vars = readonly("vars")
    _partitioned_vars = readonly("partitioned")

    def get_variable(self, name: str, shape: ShapeLike = None, reuse: Reuse = None, **kwargs: Any) -> Any:
        """Finds or makes a variable by its full name, whatever scope is open."""
        return find_or_make(name, shape, reuse=reuse, **kwargs)

    def open_scope(self, name: str) -> None:
        """Counts how often a scope was entered."""
        self.scopes[name] = self.scopes.get(name, 0) + 1

    def close_subscopes(self, name: str) -> None:
        """Resets the counts below a scope that is entered again."""
        for key in self.scopes:
            if not name or key.startswith(name + "/"):
                self.scopes[key] = 0


def store_of(graph: Graph | None = None) -> Store:
    """The graph's store of variables by name, made when first asked for."""
    graph = graph or get_default_graph()
    store = getattr(graph, "_variable_store", None)
    if store is None:
        store = graph._variable_store = Store()  # type: ignore[attr-defined]
    return store


def find_or_make(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike = None,
    regularizer: Regularizer | None = None,
    reuse: Reuse = None,
    trainable: bool | None = None,
    collections: CollectionKeys | None = None,
    caching_device: DeviceLike = None,
    partitioner: Partitioner | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Constraint | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """The standard getter, after the scope's defaults have been filled in."""
    arguments = locals()
    # A function's graph keeps no variables: they are made in the graph that it belongs to.
    if (around := get_default_graph().__dict__.get("_variables_live_in")) is not None:
        with around.as_default():
            return find_or_make(**arguments)
    if initializer is not None and not callable(initializer) and shape is not None and partitioner is None:
        raise ValueError("If initializer is a constant, do not specify shape.")
    parted = ("name", "shape", "initializer", "partitioner")
    make = functools.partial(_single, **{key: value for key, value in arguments.items() if key not in parted})
    if partitioner is None and reuse is True and name in store_of().partitioned:
        return _shared_parts(store_of().partitioned[name], shape, dtype, None)
    # A scalar cannot be divided: TensorFlow ignores the partitioner then.
    if partitioner is None or (shape is not None and as_shape(shape).rank == 0):
        if f"{name}/part_0" in store_of().vars:
            raise ValueError(
                f"No partitioner was provided, but a partitioned version of the variable was found: {name}/part_0. "
                "Perhaps a variable of the same name was already created with partitioning?"
            )
        return make(name=name, shape=shape, initializer=initializer)
    if not callable(partitioner):
        raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
    return _partitioned(name, shape, dtype, initializer, partitioner, reuse, make)


def _partitioned(
    name: str,
    shape: ShapeLike,
    dtype: DTypeLike | None,
    initializer: InitializerLike,
    partitioner: Partitioner,
    reuse: Reuse,
    make: VariableMaker,
) -> PartitionedVariable:
    store = store_of()
    whole = as_shape(shape if shape is not None else getattr(initializer, "shape", None))
    if name in store.vars:
        raise ValueError(
            f"A partitioner was provided, but an unpartitioned version of the variable was found: {name}. Perhaps "
            "a variable of the same name was already created without partitioning?"
        )
    if name in store.partitioned:
        if reuse is False:
            raise ValueError(
                f"Partitioned variable with name {name} already exists. Did you mean to set reuse=True or "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
        return _shared_parts(store.partitioned[name], shape, dtype, partitioner)
    if reuse is True:
        raise ValueError(
            f"PartitionedVariable {name} does not exist, or was not created with tf.get_variable(). Did you mean to "
            "set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
        )
    slices = partition(partitioner, whole, dtypes.as_dtype(dtype or dtypes.float32))
    parts = []
    for i, (offset, length) in enumerate(slices.offsets()):
        info = PartitionInfo(slices.shape, offset)
        start = _slice_of(initializer, offset, length, info, f"{name}/part_{i}")
        part = make(
            name=f"{name}/part_{i}",
            shape=length if start is None or callable(start) else None,
            initializer=start,
        )
        part._set_save_slice_info(SaveSliceInfo(name, whole.as_list(), offset, length))
        parts.append(part)
    variable = PartitionedVariable(name, whole, parts[0].dtype.base_dtype, parts, slices.counts)
    store.partitioned[name] = variable
    return variable


def _shared_parts(
    found: PartitionedVariable, shape: ShapeLike, dtype: DTypeLike | None, partitioner: Partitioner | None
) -> PartitionedVariable:
    """An existing partitioned variable, after a check that shape, type and parts are as asked."""
    wrong = f"Trying to reuse partitioned variable {found.name}, but specified"
    wanted = as_shape(shape)
    if not wanted.is_compatible_with(found.shape):
        raise ValueError(f"{wrong} shape {wanted} and found shape {found.shape}.")
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(found.dtype):
        raise ValueError(
            f"{wrong} dtype {dtypes.as_dtype(dtype).name} and found dtype {dtypes.as_dtype(found.dtype).name}."
        )
    if partitioner is not None:
        asked = partition(partitioner, found.shape, found.dtype).counts
        if asked != list(found._get_partitions()):
            raise ValueError(f"{wrong} partitions {asked} and found partitions {found._get_partitions()}.")
    return found


def _slice_of(
    initializer: InitializerLike, offset: list[int], length: list[int], info: PartitionInfo, part: str
) -> InitializerLike:
    if initializer is None:
        return None
    if not callable(initializer):
        with name_scope(f"{part}/PartitionedInitializer/"):
            return apply("Slice", initializer, offset, length)
    takes_info = initializers.takes_partition_info(initializer)
    # It gets the part's shape, and draws each part as if it were a variable of that size.
    if isinstance(initializer, type) or not takes_info:
        return initializer
    return initializers.WithPartition(initializer, info)


def _single(
    name: str,
    shape: ShapeLike,
    dtype: DTypeLike | None,
    initializer: InitializerLike,
    regularizer: Regularizer | None,
    reuse: Reuse,
    **options: Any,
) -> Variable:
    store = store_of()
    wanted = as_shape(shape)
    if name in store.vars:
        return _share(store.vars[name], name, wanted, dtype, reuse)
    if reuse is True:
        raise ValueError(
            f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you mean to set "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    kind = dtypes.as_dtype(dtype).base_dtype if dtype is not None else None
    asked = initializer is not None
    if not asked:
        initializer = initializers.default_for(kind or dtypes.float32, name)
    value, kind = _initial_value(name, wanted, kind, initializer, asked)
    variable = create_variable(initial_value=value, name=name, dtype=kind, **options)
    store.vars[name] = variable
    if regularizer is not None:
        _regularize(variable, name, regularizer)
    return variable


def _share(
    found: Variable, name: str, wanted: TensorShape, dtype: DTypeLike | None, reuse: Reuse
) -> Variable:
    if reuse is False:  # None, as custom getters pass it, means to take the existing variable
        where = found.op.source_line
        raise ValueError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in "
            f"VarScope? Originally defined at:\n\n  {where}\n"
        )
    if not wanted.is_compatible_with(found.shape):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {wanted} and found shape {found.shape}."
        )
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(found.dtype.base_dtype):
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {dtypes.as_dtype(dtype).name} and found dtype "
            f"{found.dtype.name}."
        )
    return found


_NOT_AN_INITIALIZER = (
    "The initializer passed is not valid. It should be a callable with no arguments and the shape should not be "
    "provided or an instance of `tf.keras.initializers.*' and `shape` should be fully defined. The shape of "
    "variable {} is {}."
)


def _initial_value(
    name: str, shape: TensorShape, dtype: DType | None, initializer: InitializerLike, asked: bool
) -> tuple[Any, Any]:
    """The argument of `tf.Variable`: a value, or a function that makes one inside the variable's own scope."""
    if not callable(initializer):
        return initializer, None if isinstance(initializer, Tensor) else dtype
    function = initializer(dtype=dtype) if isinstance(initializer, type) else initializer
    if not shape.is_fully_defined():
        if asked and shape.rank is None and not initializers.needs_arguments(function):
            return function, None
        if asked:
            raise ValueError(_NOT_AN_INITIALIZER.format(name, shape))
        raise ValueError(f"Shape of a new variable ({name}) must be fully defined, but instead was {shape}.")
    # A function without arguments knows the shape itself.
    if not initializers.takes_shape(function):
        return function, dtype
    kind = dtype or dtypes.float32
    # A function of a user's own may take it without a default.
    more = {"partition_info": None} if initializers.names_partition_info(function) else {}
    return (lambda: function(shape.as_list(), dtype=kind, **more)), kind


def _regularize(variable: Variable, name: str, regularizer: Regularizer) -> None:
    def loss() -> Tensor | None:
        with name_scope(name + "/Regularizer/"):
            return regularizer(variable)

    # The penalty is computed beside the variable: on a server one number travels, not the weights.
    with colocate_with(variable.op):
        value = loss()
    if value is not None:
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, value)
