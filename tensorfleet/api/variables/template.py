"""`tf.make_template`: a function that makes its variables at the first call and shares them afterwards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.variables.getter import find_or_make
from tensorfleet.api.variables.scope import VariableScope, pure_variable_scope, variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import DTypeLike
from tensorfleet.graph.scopes import GraphKeys, get_default_graph, name_scope

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import CollectionKeys, Getter, InitializerLike


@export("make_template")
def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Getter | None = None,
    **kwargs: Any,
) -> Template:
    """`func_` in a variable scope of its own: every call after the first reuses the first one's variables.

    `kwargs` are passed at each call. With `create_scope_now_` the scope is that of this line, not of the
    first call; `unique_name_` is a name that no two templates may share.
    """
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """The result of `tf.make_template`. Call it like the function."""

    def __init__(
        self, name: str, func: Callable[..., Any], now: bool, unique_name: str | None, getter: Getter | None
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self._func = func
        self._name = name
        self._unique_name = unique_name
        self._getter = getter
        self._variables_created = False
        self._scope: VariableScope | None = None
        if now:
            # The name scope is left to the first call.
            with pure_variable_scope(unique_name, name, custom_getter=getter) as self._scope:
                pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function: the first call makes its variables, later calls share them."""
        if self._scope is None:
            with variable_scope(self._unique_name, self._name, custom_getter=self._getter) as self._scope:
                return self._first(args, kwargs)
        with variable_scope(self._scope, reuse=self._variables_created or None):
            if not self._variables_created:
                return self._first(args, kwargs)
            return self._again(args, kwargs)

    def _first(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = self._func(*args, **kwargs)
        self._variables_created = True
        return result

    def _again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        graph = get_default_graph()
        # Reuse refuses new names of `get_variable`; only the count shows a new `tf.Variable`.
        before = len(graph.get_collection(GraphKeys.TRAINABLE_VARIABLES))
        result = self._func(*args, **kwargs)
        if len(graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)) != before:
            raise ValueError(
                "New variable(s) created when calling a template after the first time, perhaps you used "
                "tf.Variable when you meant tf.get_variable."
            )
        return result

    name: str = readonly("_name", "The name it was made with.")
    func = readonly("_func", "The function inside.")
    variable_scope = readonly("_scope", "The variable scope, None before the first call.")
    var_scope = readonly("_scope", "The variable scope, None before the first call.")

    @property
    def variable_scope_name(self) -> str | None:
        """The name of the variable scope, ending in a slash."""
        name = None if self._scope is None else self._scope.name
        return name if not name or name.endswith("/") else name + "/"

    def _collected(self, key: str) -> list[Any]:
        if self._scope is None:
            return []
        return get_default_graph().get_collection(key, self.variable_scope_name)

    @property
    def variables(self) -> list[Any]:
        """The variables made so far, global and local."""
        return self.global_variables + self.local_variables

    @property
    def global_variables(self) -> list[Any]:
        """The global variables made so far."""
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """The local variables made so far."""
        return self._collected(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable variables made so far."""
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The variables made so far that are not trained."""
        trained = {id(v) for v in self.trainable_variables}
        return [v for v in self.variables if id(v) not in trained]

    non_trainable_weights = readonly(
        "non_trainable_variables", "The variables made so far that are not trained."
    )
    trainable_weights = readonly("trainable_variables", "The trainable variables made so far.")
    weights = readonly("variables", "The variables made so far.")


@export("create_partitioned_variables")
def create_partitioned_variables(
    shape: Sequence[int],
    slicing: Sequence[int],
    initializer: InitializerLike,
    dtype: DTypeLike = dtypes.float32,
    trainable: bool = True,
    collections: CollectionKeys | None = None,
    name: str | None = None,
    reuse: bool | None = None,
) -> list[Any]:
    """The parts of a variable cut into `slicing[i]` pieces along axis i."""
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: "
            f"shape: {shape}, slicing: {slicing}"
        )
    if len(shape) < 1:
        raise ValueError(f"A partitioned Variable must have rank at least 1: shape: {shape}")
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope, name_scope(None):
        whole = find_or_make(
            scope.name,
            shape,
            dtype,
            initializer,
            reuse=scope.reuse,
            trainable=trainable,
            collections=collections,
            partitioner=lambda **_: list(slicing),
        )
        return list(whole)
