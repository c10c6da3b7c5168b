"""`tf.variable_scope` and `tf.get_variable`: variables by name, shared on purpose and never by accident."""

from __future__ import annotations

import enum
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet import dtypes
from tensorfleet.api import export, publish
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import GraphKeys, colocate_with, control_dependencies, get_default_graph, name_scope
from tensorfleet.shapes import as_shape
from tensorfleet.variables import initializers
from tensorfleet.variables.partitioned import PartitionedVariable, PartitionInfo, partition
from tensorfleet.variables.variable import (
    RefVariable,
    ResourceVariable,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE
publish(AUTO_REUSE, "AUTO_REUSE")

_use_resource_by_default = False


@export("enable_resource_variables")
def enable_resource_variables() -> None:
    """Makes resource variables the default form."""
    global _use_resource_by_default
    _use_resource_by_default = True


@export("disable_resource_variables")
def disable_resource_variables() -> None:
    """Makes reference variables the default form again."""
    global _use_resource_by_default
    _use_resource_by_default = False


@export("resource_variables_enabled")
def resource_variables_enabled() -> bool:
    """Whether resource variables are the default form."""
    return _use_resource_by_default


_creators = threading.local()


@export("variable_creator_scope")
@contextmanager
def variable_creator_scope(variable_creator: Callable) -> Iterator[None]:
    """Inside the block `variable_creator(next_creator, **kwargs)` makes the variables."""
    stack = getattr(_creators, "stack", [])
    _creators.stack = [*stack, variable_creator]
    try:
        yield
    finally:
        _creators.stack = stack


_ARGUMENTS = (
    "initial_value trainable collections validate_shape caching_device name variable_def dtype expected_shape "
    "import_scope constraint use_resource synchronization aggregation shape"
).split()


def create_variable(*args: Any, **kwargs: Any) -> Variable:
    """`tf.Variable(...)`: asks the creators around, innermost first, then makes one."""
    unknown = set(kwargs) - set(_ARGUMENTS)
    if unknown or len(args) > len(_ARGUMENTS):
        raise TypeError(f"tf.Variable got an unexpected keyword argument '{next(iter(unknown), 'positional')}'")
    kwargs = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
    if kwargs.get("variable_def") is not None:
        return _make(**kwargs)
    make: Callable = _make
    for creator in getattr(_creators, "stack", ()):
        make = functools.partial(creator, make)
    return make(**kwargs)


def _make(**kwargs: Any) -> Variable:
    use_resource = kwargs.pop("use_resource", None)
    if use_resource is None:
        use_resource = get_variable_scope().use_resource
    if use_resource is None:
        use_resource = _use_resource_by_default
    return (ResourceVariable if use_resource else RefVariable)(**kwargs)


class _Store:
    """The variables that `get_variable` made in one graph, by full name."""

    def __init__(self) -> None:
        self.vars: dict[str, Variable] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}
        self.scopes: dict[str, int] = {}
        self.current = threading.local()
        self.root = VariableScope(False)

    def open_scope(self, name: str) -> None:
        """Counts how often a scope was entered."""
        self.scopes[name] = self.scopes.get(name, 0) + 1

    def close_subscopes(self, name: str) -> None:
        """Forgets the counts below a scope that is entered anew."""
        for key in self.scopes:
            if not name or key.startswith(name + "/"):
                self.scopes[key] = 0


def _store(graph: Graph | None = None) -> _Store:
    graph = graph or get_default_graph()
    found = getattr(graph, "_variable_store", None)
    if found is None:
        found = graph._variable_store = _Store()  # type: ignore[attr-defined]
    return found


@export("VariableScope")
class VariableScope:
    """The defaults that `get_variable` uses, and the name it puts in front."""

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self._reuse = reuse
        self._name = name
        self._initializer = initializer
        self._regularizer = regularizer
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = dtype
        self._use_resource = use_resource
        self._constraint = constraint

    @property
    def name(self) -> str:
        """The full name, without a slash at the end."""
        return self._name

    @property
    def original_name_scope(self) -> str:
        """The name scope that was opened with it, with a slash at the end."""
        return self._name_scope

    @property
    def reuse(self) -> Any:
        """False, True or `tf.AUTO_REUSE`."""
        return self._reuse

    @property
    def initializer(self) -> Any:
        """The default initializer."""
        return self._initializer

    @property
    def dtype(self) -> Any:
        """The default type."""
        return self._dtype

    @property
    def use_resource(self) -> bool | None:
        """Whether resource variables are made."""
        return self._use_resource

    @property
    def regularizer(self) -> Any:
        """The default regularizer."""
        return self._regularizer

    @property
    def caching_device(self) -> Any:
        """Where reads are cached."""
        return self._caching_device

    @property
    def partitioner(self) -> Any:
        """The default partitioner."""
        return self._partitioner

    @property
    def custom_getter(self) -> Any:
        """The getter called instead of the standard one."""
        return self._custom_getter

    @property
    def constraint(self) -> Any:
        """The default constraint."""
        return self._constraint

    def reuse_variables(self) -> None:
        """From now on `get_variable` in this scope only finds variables."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self._initializer = initializer

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default type."""
        self._dtype = dtype

    def set_use_resource(self, use_resource: bool) -> None:
        """Sets the form of variables."""
        self._use_resource = use_resource

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Sets where reads are cached."""
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets the getter called instead of the standard one."""
        self._custom_getter = custom_getter

    def get_collection(self, name: Any) -> list:
        """The items of a collection whose names are in this scope."""
        prefix = self._name + "/" if self._name else self._name
        return get_default_graph().get_collection(name, prefix)

    def trainable_variables(self) -> list:
        """The trainable variables in this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list:
        """The global variables in this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list:
        """The local variables in this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        var_store: Any,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Any = None,
        constraint: Any = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
    ) -> Any:
        """Finds or makes a variable, with this scope's defaults for what is not given."""
        constant = initializer is not None and not callable(initializer)
        arguments = dict(
            name=f"{self._name}/{name}" if self._name else name,
            shape=shape,
            dtype=dtype if dtype is not None or (constant and dtype is None) else self._dtype,
            initializer=self._initializer if initializer is None else initializer,
            regularizer=self._regularizer if regularizer is None else regularizer,
            reuse=self._reuse if reuse is None else reuse,
            trainable=trainable,
            collections=collections,
            caching_device=self._caching_device if caching_device is None else caching_device,
            partitioner=self._partitioner if partitioner is None else partitioner,
            validate_shape=validate_shape,
            use_resource=self._use_resource if use_resource is None else use_resource,
            constraint=self._constraint if constraint is None else constraint,
            synchronization=synchronization,
            aggregation=aggregation,
        )
        getter = self._custom_getter if custom_getter is None else custom_getter
        with name_scope(None), control_dependencies(None):
            if getter is not None:
                return getter(getter=_find_or_make, **arguments)
            return _find_or_make(**arguments)


@export("get_variable_scope")
def get_variable_scope() -> VariableScope:
    """The variable scope we are in."""
    store = _store()
    return getattr(store.current, "scope", store.root)


@export("get_variable")
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """The variable of that name in the current scope: made, or found where the scope says reuse."""
    return get_variable_scope().get_variable(
        None,
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


@export("get_local_variable")
def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """Like `tf.get_variable`, for a variable that is local to the task and never saved."""
    keys = [*(collections or []), GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        keys,
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        custom_getter,
        constraint,
        synchronization,
        aggregation,
    )


def _find_or_make(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """The standard getter, after the scope's defaults have been filled in."""
    if initializer is not None and not callable(initializer):
        if shape is not None and getattr(initializer, "shape", None) is not None and not _same(shape, initializer):
            raise ValueError("If initializer is a constant, do not specify shape.")
        if dtype is not None and hasattr(initializer, "dtype"):
            if dtypes.as_dtype(initializer.dtype).base_dtype != dtypes.as_dtype(dtype).base_dtype:
                raise ValueError("Initializer type '%s' and explicit dtype '%s' don't match." % (initializer.dtype, dtype))
    make = functools.partial(
        _single,
        dtype=dtype,
        regularizer=regularizer,
        reuse=reuse,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        validate_shape=validate_shape,
        use_resource=use_resource,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )
    if partitioner is None:
        if f"{name}/part_0" in _store().vars:
            raise ValueError(
                f"No partitioner was provided, but a partitioned version of the variable was found: {name}/part_0. "
                "Perhaps a variable of the same name was already created with partitioning?"
            )
        return make(name=name, shape=shape, initializer=initializer)
    if not callable(partitioner):
        raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
    return _partitioned(name, shape, dtype, initializer, partitioner, reuse, make)


def _same(shape: Any, initializer: Any) -> bool:
    try:
        return as_shape(shape).is_compatible_with(initializer.shape)
    except (TypeError, ValueError):
        return False


def _partitioned(
    name: str, shape: Any, dtype: Any, initializer: Any, partitioner: Any, reuse: Any, make: Callable
) -> PartitionedVariable:
    store = _store()
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
        return store.partitioned[name]
    if reuse is True:
        raise ValueError(
            f"PartitionedVariable {name} does not exist, or was not created with tf.get_variable(). Did you mean to "
            "set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
        )
    slices = partition(partitioner, whole, dtypes.as_dtype(dtype or dtypes.float32))
    parts = []
    for i, (offset, length) in enumerate(slices.offsets()):
        info = PartitionInfo(whole.as_list(), offset)
        start = _slice_of(initializer, offset, length, info)
        part = make(name=f"{name}/part_{i}", shape=None if not callable(start) else length, initializer=start)
        part._set_save_slice_info(Variable.SaveSliceInfo(name, whole.as_list(), offset, length))  # type: ignore[attr-defined]
        parts.append(part)
    made = PartitionedVariable(name, whole, parts[0].dtype.base_dtype, parts, slices.counts)
    store.partitioned[name] = made
    return made


def _slice_of(initializer: Any, offset: list[int], length: list[int], info: PartitionInfo) -> Any:
    if initializer is None:
        return None
    if not callable(initializer):
        from tensorfleet.graph.apply import apply

        return apply("Slice", initializer, offset, length)
    takes_info = initializers.takes_partition_info(initializer)
    if isinstance(initializer, type) or not takes_info:
        return initializer
    return initializers.WithPartition(initializer, info)


def _single(
    name: str,
    shape: Any,
    dtype: Any,
    initializer: Any,
    regularizer: Any,
    reuse: Any,
    trainable: bool | None,
    collections: Any,
    caching_device: Any,
    validate_shape: bool,
    use_resource: bool | None,
    constraint: Any,
    synchronization: Any,
    aggregation: Any,
) -> Variable:
    store = _store()
    wanted = as_shape(shape)
    if name in store.vars:
        return _share(store.vars[name], name, wanted, dtype, reuse)
    if reuse is True:
        raise ValueError(
            f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you mean to set "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    kind = dtypes.as_dtype(dtype).base_dtype if dtype is not None else None
    if initializer is None:
        initializer = initializers.default_for(kind or dtypes.float32, name)
    value, kind = _initial_value(name, wanted, kind, initializer)
    made = create_variable(
        initial_value=value,
        name=name,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        dtype=kind,
        validate_shape=validate_shape,
        constraint=constraint,
        use_resource=use_resource,
        synchronization=synchronization,
        aggregation=aggregation,
    )
    store.vars[name] = made
    if regularizer is not None:
        _regularize(made, name, regularizer)
    return made


def _share(found: Variable, name: str, wanted: Any, dtype: Any, reuse: Any) -> Variable:
    if reuse is False or reuse is None:
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
            f"{found.dtype.base_dtype.name}."
        )
    return found


def _initial_value(name: str, shape: Any, dtype: Any, initializer: Any) -> tuple[Any, Any]:
    """What `tf.Variable` gets: a value, or a function that makes one inside the variable's own scope."""
    if not callable(initializer):
        return (lambda: initializer), dtype
    made = initializer(dtype=dtype) if isinstance(initializer, type) else initializer
    if not shape.is_fully_defined():
        if initializers.takes_shape(made) or shape.rank is not None:
            raise ValueError(
                f"Shape of a new variable ({name}) must be fully defined, but instead was {shape}."
            )
        return made, dtype
    if not initializers.takes_shape(made):
        return made, dtype
    kind = dtype or dtypes.float32
    return (lambda: made(shape.as_list(), dtype=kind)), kind


def _regularize(variable: Variable, name: str, regularizer: Callable) -> None:
    def loss() -> Any:
        with name_scope(name + "/Regularizer/"):
            return regularizer(variable)

    with colocate_with(variable.op):
        value = loss()
    if value is not None:
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, value)


@export("variable_scope")
class variable_scope:
    """`with tf.variable_scope("layer1"):` prefixes the variables made inside and sets their defaults."""

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
            raise TypeError(
                "VariableScope: name_or_scope must be a string or VariableScope."
            )
        if reuse not in (None, False, True, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        self._given = name_or_scope
        self._default_name = default_name
        self._values = values or []
        self._settings = dict(
            initializer=initializer,
            regularizer=regularizer,
            caching_device=caching_device,
            partitioner=partitioner,
            dtype=dtype,
            use_resource=use_resource,
            constraint=constraint,
        )
        self._getter = custom_getter
        self._reuse = False if reuse is False else reuse
        self._auxiliary = auxiliary_name_scope
        self._exits: list = []

    def __enter__(self) -> VariableScope:
        entered = _entered_scope(self)
        scope = entered.__enter__()
        self._exits.append(entered)
        return scope

    def __exit__(self, *error: Any) -> None:
        self._exits.pop().__exit__(*error)


@contextmanager
def _entered_scope(asked: variable_scope) -> Iterator[VariableScope]:
    from tensorfleet.graph.scopes import graph_of

    graph = graph_of(asked._values) if asked._values else get_default_graph()
    with graph.as_default():
        store = _store(graph)
        old = getattr(store.current, "scope", store.root)
        scope_object = asked._given if isinstance(asked._given, VariableScope) else None
        if scope_object is not None:
            full, short = scope_object.name, scope_object.name.rsplit("/", 1)[-1]
        elif asked._given is not None:
            short = asked._given
            full = f"{old.name}/{short}" if old.name else short
        else:
            short = _unique(store, old, asked._default_name or "")
            full = f"{old.name}/{short}" if old.name else short
            if asked._reuse:
                raise ValueError("reuse=True cannot be used without a name_or_scope")
        with _names(graph, asked, short, scope_object) as names:
            new = _derived(asked, old, scope_object, full, names)
            if scope_object is None:
                store.open_scope(full)
                counts = None
            else:
                counts = dict(store.scopes)
                store.close_subscopes(full)
            store.current.scope = new
            try:
                yield new
            finally:
                store.current.scope = old
                store.close_subscopes(full)
                if counts is not None:
                    store.scopes = counts


@contextmanager
def _names(graph: Graph, asked: variable_scope, short: str, scope_object: Any) -> Iterator[str]:
    """The name scope that goes with a variable scope."""
    if not asked._auxiliary:
        current = graph.get_name_scope()
        yield current + "/" if current else ""
    elif not short:
        yield ""
    elif scope_object is None and asked._given is None:
        with graph.name_scope(asked._default_name) as names:
            yield names
    else:
        with graph.name_scope(short.rstrip("/")) as names:
            yield scope_object.original_name_scope if scope_object is not None else names


def _derived(asked: variable_scope, old: VariableScope, scope_object: Any, full: str, names: str) -> VariableScope:
    base = scope_object if scope_object is not None else old
    reuse = asked._reuse
    if scope_object is not None:
        reuse = scope_object.reuse if reuse is None else reuse
    reuse = reuse or old.reuse
    new = VariableScope(reuse, full, name_scope=names)
    for key in ("initializer", "regularizer", "caching_device", "partitioner", "dtype", "use_resource", "constraint"):
        given = asked._settings[key]
        setattr(new, "_" + key, getattr(base, key) if given is None else given)
    outer = base.custom_getter
    new._custom_getter = outer
    if asked._getter is not None:
        new._custom_getter = _chained(asked._getter, outer)
    return new


def _chained(inner: Callable, outer: Callable | None) -> Callable:
    """A custom getter that sees the outer scope's getter as the one to call."""
    if outer is None:
        return inner

    def chain(getter: Callable, *args: Any, **kwargs: Any) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return chain


def _unique(store: _Store, scope: VariableScope, prefix: str) -> str:
    name = f"{scope.name}/{prefix}" if scope.name else prefix
    if not store.scopes.get(name):
        return prefix
    i = 1
    while store.scopes.get(f"{name}_{i}"):
        i += 1
    return f"{prefix}_{i}"


@export("variable_op_scope")
@contextmanager
def variable_op_scope(
    values: Any,
    name_or_scope: Any,
    default_name: str | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
) -> Iterator[VariableScope]:
    """The old argument order of `tf.variable_scope`."""
    with variable_scope(
        name_or_scope,
        default_name=default_name,
        values=values,
        initializer=initializer,
        regularizer=regularizer,
        caching_device=caching_device,
        partitioner=partitioner,
        custom_getter=custom_getter,
        reuse=reuse,
        dtype=dtype,
        use_resource=use_resource,
        constraint=constraint,
    ) as scope:
        yield scope


@export("no_regularizer")
def no_regularizer(_: Any) -> None:
    """A regularizer that adds nothing."""
