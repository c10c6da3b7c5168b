"""`tf.variable_scope` and `tf.get_variable`: variables by name, shared on purpose and never by accident."""

from __future__ import annotations

import enum
import functools
from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from tensorfleet.api.variables.getter import Store, find_or_make, store_of
from tensorfleet.api.variables.variable import VariableAggregation, VariableSynchronization
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, like
from tensorfleet.base.naming import export, publish
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import DTypeLike, ShapeLike
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_default_graph, graph_of, name_scope

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import (
        CollectionKeys,
        Constraint,
        DeviceLike,
        Getter,
        InitializerLike,
        Partitioner,
        Regularizer,
        Reuse,
    )


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE
publish(AUTO_REUSE, "AUTO_REUSE")


@export("VariableScope")
class VariableScope:
    """The defaults that `get_variable` uses, and the name it puts in front."""

    def __init__(
        self,
        reuse: Reuse,
        name: str = "",
        initializer: InitializerLike = None,
        regularizer: Regularizer | None = None,
        caching_device: DeviceLike = None,
        partitioner: Partitioner | None = None,
        custom_getter: Getter | None = None,
        name_scope: str = "",
        dtype: DTypeLike = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Constraint | None = None,
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

    name: str = readonly("_name", "The full name, without a slash at the end.")
    original_name_scope: str = readonly(
        "_name_scope", "The name scope that was opened with it, with a slash at the end."
    )
    reuse: Reuse = readonly("_reuse", "False, True or `tf.AUTO_REUSE`.")
    initializer: InitializerLike = readonly("_initializer", "The default initializer.")
    dtype: DTypeLike = readonly("_dtype", "The default type.")
    use_resource: bool | None = readonly("_use_resource", "Whether resource variables are made.")
    regularizer: Regularizer | None = readonly("_regularizer", "The default regularizer.")
    caching_device: DeviceLike = readonly("_caching_device", "Where reads are cached.")
    partitioner: Partitioner | None = readonly("_partitioner", "The default partitioner.")
    custom_getter: Getter | None = readonly(
        "_custom_getter", "The getter called instead of the standard one."
    )
    constraint: Constraint | None = readonly("_constraint", "The default constraint.")

    def reuse_variables(self) -> None:
        """From now on `get_variable` in this scope only finds variables."""
        self._reuse = True

    def set_initializer(self, initializer: InitializerLike) -> None:
        """Sets the default initializer."""
        self._initializer = initializer

    def set_dtype(self, dtype: DTypeLike) -> None:
        """Sets the default type."""
        self._dtype = dtype

    def set_use_resource(self, use_resource: bool) -> None:
        """Sets the form of variables."""
        self._use_resource = use_resource

    def set_regularizer(self, regularizer: Regularizer | None) -> None:
        """Sets the default regularizer."""
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: DeviceLike) -> None:
        """Sets where reads are cached."""
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Partitioner | None) -> None:
        """Sets the default partitioner."""
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Getter | None) -> None:
        """Sets the getter called instead of the standard one."""
        self._custom_getter = custom_getter

    def get_collection(self, name: Hashable) -> list[Any]:
        """The items of a collection whose names are in this scope."""
        prefix = self._name + "/" if self._name else self._name
        return get_default_graph().get_collection(name, prefix)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables in this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables in this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables in this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        var_store: Store | None,
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
        custom_getter: Getter | None = None,
        constraint: Constraint | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """Finds or makes a variable, with this scope's defaults for what is not given."""
        constant = initializer is not None and not callable(initializer)
        if constant:
            _check_types(initializer, dtype)
        arguments: dict[str, Any] = dict(
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
        # Names of variables come from variable scopes alone, and their initializers depend on nothing around.
        with name_scope(None), control_dependencies(None):
            if getter is not None:
                if not callable(getter):
                    raise ValueError(f"Passed a custom_getter which is not callable: {getter}")
                if trainable is None:  # custom getters expect a bool
                    arguments["trainable"] = synchronization != VariableSynchronization.ON_READ
                return getter(getter=find_or_make, **arguments)
            return find_or_make(**arguments)


def _check_types(initializer: InitializerLike, dtype: DTypeLike | None) -> None:
    own: Any = getattr(initializer, "dtype", None)
    if dtype is None or own is None:
        return
    if dtypes.as_dtype(own).base_dtype != dtypes.as_dtype(dtype).base_dtype:
        raise ValueError(f"Initializer type '{own}' and explicit dtype '{dtype}' don't match.")


@export("get_variable_scope")
def get_variable_scope() -> VariableScope:
    """The variable scope we are in."""
    return _current(store_of())


def _current(store: Store) -> VariableScope:
    if store.root is None:
        store.root = VariableScope(False)
    return getattr(store.current, "scope", store.root)


@export("get_variable")
def get_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike = None,
    regularizer: Regularizer | None = None,
    trainable: bool | None = None,
    collections: CollectionKeys | None = None,
    caching_device: DeviceLike = None,
    partitioner: Partitioner | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Getter | None = None,
    constraint: Constraint | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """The variable of that name in the current scope: made, or found if the scope reuses variables."""
    return get_variable_scope().get_variable(None, **locals())


def _local(given: dict[str, Any]) -> Any:
    collections = [*(given["collections"] or []), GraphKeys.LOCAL_VARIABLES]
    return get_variable(**{**given, "trainable": False, "collections": collections})


get_local_variable = function(
    like(get_variable, trainable=False),
    "get_local_variable",
    _local,
    "Like `tf.get_variable`, for a variable that is local to the task and never saved.",
)
publish(get_local_variable, "get_local_variable")


@export("variable_scope")
class variable_scope:
    """`with tf.variable_scope("layer1"):` prefixes the variables made inside and sets their defaults."""

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Iterable[Any] | None = None,
        initializer: InitializerLike = None,
        regularizer: Regularizer | None = None,
        caching_device: DeviceLike = None,
        partitioner: Partitioner | None = None,
        custom_getter: Getter | None = None,
        reuse: Reuse = None,
        dtype: DTypeLike | None = None,
        use_resource: bool | None = None,
        constraint: Constraint | None = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
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
        self._exits: list[tuple[AbstractContextManager[VariableScope], VariableScope]] = []
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(
                f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}"
            )

    def __enter__(self) -> VariableScope:
        entered = self._entered()
        scope = entered.__enter__()
        self._exits.append((entered, scope))
        return scope

    def __exit__(self, *error: Any) -> None:
        entered, scope = self._exits[-1]
        # Left in another order, later variables would get the names of the wrong scope.
        if get_variable_scope() is not scope:
            raise RuntimeError("Improper nesting of variable_scope.")
        self._exits.pop()
        entered.__exit__(*error)

    @contextmanager
    def _entered(self) -> Iterator[VariableScope]:
        graph = graph_of(self._values) if self._values else get_default_graph()
        with graph.as_default():
            store = store_of(graph)
            old = _current(store)
            scope_object = self._given if isinstance(self._given, VariableScope) else None
            if scope_object is not None:
                full, short = scope_object.name, scope_object.name.rsplit("/", 1)[-1]
            elif self._given is not None:
                short = str(self._given)
                full = f"{old.name}/{short}" if old.name else short
            else:
                short = _unique(store, old, self._default_name or "")
                full = f"{old.name}/{short}" if old.name else short
                if self._reuse:
                    raise ValueError("reuse=True cannot be used without a name_or_scope")
            with self._names(graph, short, scope_object) as names:
                new = self._derived(old, scope_object, full, names)
                if scope_object is None:
                    store.open_scope(full)
                    counts = None
                else:
                    # A scope that is entered again by its object numbers its default names from the start, then
                    # forgets that.
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
    def _names(self, graph: Graph, short: str, scope_object: VariableScope | None) -> Iterator[str]:
        """The name scope that goes with a variable scope."""
        if not self._auxiliary and scope_object is not None:
            yield scope_object.original_name_scope
        elif not self._auxiliary:
            current = graph.get_name_scope()
            yield current + "/" if current else ""
        elif not short:
            yield ""
        elif scope_object is None and self._given is None:
            with graph.name_scope(self._default_name) as names:
                yield names
        else:
            with graph.name_scope(short.rstrip("/")) as names:
                yield scope_object.original_name_scope if scope_object is not None else names

    def _derived(
        self, old: VariableScope, scope_object: VariableScope | None, full: str, names: str
    ) -> VariableScope:
        base = scope_object if scope_object is not None else old
        # Reuse is inherited and cannot be turned off inside, as in TensorFlow.
        reuse = self._reuse or base.reuse
        new = VariableScope(reuse, full, name_scope=names)
        for key in (
            "initializer",
            "regularizer",
            "caching_device",
            "partitioner",
            "dtype",
            "use_resource",
            "constraint",
        ):
            setting = self._settings[key]
            setattr(new, "_" + key, getattr(base, key) if setting is None else setting)
        outer = base.custom_getter
        new.set_custom_getter(outer if self._getter is None else _chained(self._getter, outer))
        return new


def _chained(inner: Getter, outer: Getter | None) -> Getter:
    """A custom getter that sees the outer scope's getter as the one to call."""
    if outer is None:
        return inner

    def chain(getter: Getter, *args: Any, **kwargs: Any) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return chain


@export("python.ops.variable_scope._pure_variable_scope")
@contextmanager
def pure_variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    old_name_scope: str | None = None,
    **settings: Any,
) -> Iterator[VariableScope]:
    """A variable scope without a name scope: for that, its own name stands."""
    around = get_variable_scope().name
    with variable_scope(name_or_scope, default_name, auxiliary_name_scope=False, **settings) as scope:
        if not isinstance(name_or_scope, VariableScope):
            scope._name_scope = old_name_scope or scope.name.removeprefix(around + "/")
        yield scope


def _unique(store: Store, scope: VariableScope, prefix: str) -> str:
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
    values: Iterable[Any],
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    initializer: InitializerLike = None,
    regularizer: Regularizer | None = None,
    caching_device: DeviceLike = None,
    partitioner: Partitioner | None = None,
    custom_getter: Getter | None = None,
    reuse: Reuse = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    constraint: Constraint | None = None,
) -> Iterator[VariableScope]:
    """The old argument order of `tf.variable_scope`."""
    with variable_scope(**locals()) as scope:
        yield scope


@export("no_regularizer")
def no_regularizer(_: object) -> None:
    """A regularizer that adds nothing."""
