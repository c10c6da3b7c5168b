"""Which variables there are, and the operations that initialize and check them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorfleet.api.variables.variable import Variable, is_variable_initialized
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, device, get_collection, name_scope
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.array.indexing import boolean_mask
from tensorfleet.ops.array.stack import stack


@export("global_variables")
def global_variables(scope: str | None = None) -> list[Any]:
    """The variables shared by all tasks."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


@export("all_variables")
def all_variables() -> list[Any]:
    """The old name of `tf.global_variables`."""
    return global_variables()


@export("local_variables")
def local_variables(scope: str | None = None) -> list[Any]:
    """The variables that belong to this task alone."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


@export("model_variables")
def model_variables(scope: str | None = None) -> list[Any]:
    """The variables used to make predictions."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


@export("trainable_variables")
def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers train by default."""
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


@export("moving_average_variables")
def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that have a moving average."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


@export("variables_initializer", "initializers.variables")
def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """An operation that initializes these variables."""
    if var_list:
        return group(*[v.initializer for v in var_list], name=name)
    return group(name=name)


@export("initialize_variables")
def initialize_variables(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """The old name of `tf.variables_initializer`."""
    return variables_initializer(var_list, name=name)


@export("global_variables_initializer", "initializers.global_variables")
def global_variables_initializer() -> Operation:
    """An operation that initializes all global variables."""
    return variables_initializer(global_variables())


@export("initialize_all_variables")
def initialize_all_variables() -> Operation:
    """The old name of `tf.global_variables_initializer`."""
    return global_variables_initializer()


@export("local_variables_initializer", "initializers.local_variables")
def local_variables_initializer() -> Operation:
    """An operation that initializes all local variables."""
    return variables_initializer(local_variables())


@export("initialize_local_variables")
def initialize_local_variables() -> Operation:
    """The old name of `tf.local_variables_initializer`."""
    return local_variables_initializer()


@export("assert_variables_initialized")
def assert_variables_initialized(var_list: Sequence[Variable] | None = None) -> Tensor | None:
    """An operation that fails when one of the variables has no value."""
    variables = global_variables() + local_variables() if var_list is None else var_list
    if not variables:
        return None
    ranks = []
    for v in variables:
        ranks.append(apply("Rank", v._AsTensor()))
    return ranks[0] if len(ranks) == 1 else apply("Pack", ranks)


@export("report_uninitialized_variables")
def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """A string vector with the names of the variables that have no value yet."""
    variables = global_variables() + local_variables() if var_list is None else list(var_list)
    if not variables:
        variables = [v for v in get_collection("variables") if isinstance(v, Variable)]
    with name_scope(name), control_dependencies(None):
        if not variables:
            return constant([], dtypes.string)
        with device("/cpu:0"):
            missing = apply("LogicalNot", stack([is_variable_initialized(v) for v in variables]))
            return boolean_mask(constant([v.op.name for v in variables], dtypes.string), missing)
