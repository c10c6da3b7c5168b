"""The steps of `tf.Variable(...)`: creators of the open scopes, then one of the two forms."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensorfleet.api.variables.variable import RefVariable, ResourceVariable, Variable
from tensorfleet.base.naming import export
from tensorfleet.graph.scopes import get_default_graph

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import VariableMaker

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


@export("variable_creator_scope")
@contextmanager
def variable_creator_scope(variable_creator: VariableMaker) -> Iterator[None]:
    """Inside the block `variable_creator(next_creator, **kwargs)` makes the variables of the default graph."""
    graph = get_default_graph()
    old = graph._variable_creator_stack
    new = graph._variable_creator_stack = [*old, variable_creator]
    try:
        yield
    finally:
        if graph._variable_creator_stack is not new:
            raise RuntimeError("Exiting variable_creator_scope without proper nesting.")
        graph._variable_creator_stack = old


_ARGUMENTS = [
    "initial_value",
    "trainable",
    "collections",
    "validate_shape",
    "caching_device",
    "name",
    "variable_def",
    "dtype",
    "expected_shape",
    "import_scope",
    "constraint",
    "use_resource",
    "synchronization",
    "aggregation",
    "shape",
]


def create_variable(*args: Any, **kwargs: Any) -> Variable:
    """`tf.Variable(...)`: asks the creators around, innermost first, then makes one."""
    unknown = set(kwargs) - set(_ARGUMENTS)
    if unknown or len(args) > len(_ARGUMENTS):
        raise TypeError(
            f"tf.Variable got an unexpected keyword argument '{next(iter(unknown), 'positional')}'"
        )
    kwargs = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
    # A variable that is imported exists already: creators would make another one.
    if kwargs.get("variable_def") is not None:
        return _make(**kwargs)
    make: VariableMaker = _make
    for creator in get_default_graph()._variable_creator_stack:
        make = functools.partial(creator, make)
    return make(**kwargs)


def _scope_default() -> bool | None:
    from tensorfleet.api.variables.scope import get_variable_scope

    return get_variable_scope().use_resource


def _make(**kwargs: Any) -> Variable:
    definition = kwargs.get("variable_def")
    if definition is not None:
        kwargs["use_resource"] = definition.is_resource
    use_resource = kwargs.pop("use_resource", None)
    if use_resource is None:
        use_resource = _scope_default()
    if use_resource is None:
        use_resource = _use_resource_by_default
    return (ResourceVariable if use_resource else RefVariable)(**kwargs)
