"""Exponential moving averages of variables and tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import context
from tensorfleet.api.train import slots
from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.api.variables.lists import global_variables, moving_average_variables, trainable_variables
from tensorfleet.api.variables.scope import get_variable, get_variable_scope, variable_scope
from tensorfleet.api.variables.variable import ResourceVariable, Variable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    colocate_with,
    control_dependencies,
    get_default_graph,
    name_scope,
)
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.math.cast import cast

if TYPE_CHECKING:
    from tensorfleet.api.distribute.strategy import Strategy

_AVERAGED_TYPES = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)


@export("python.training.moving_averages.assign_moving_average")
def assign_moving_average(
    variable: Variable, value: TensorLike, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Moves `variable` towards `value`: variable * decay + value * (1 - decay).

    With `zero_debias`, the variable is corrected for having started at zero; two more variables keep count. In a replica
    of a strategy, `value` is the mean of the values of all replicas.
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        with colocate_with(variable.op):
            rest = to_tensor(1.0 - decay, name="decay")
            rest = cast(rest, variable.dtype.base_dtype)
            # An update of one copy, or a variable without copies: nothing to put together.
            if not hasattr(variable, "_copies") or context.current().updating is not None:
                return _moved(variable, value, rest, scope, *_helpers(variable, zero_debias))
        replica = context.get_replica_context()
        if replica is None:
            return _moved_copies(variable._distribute_strategy, variable, value, rest, zero_debias)

        def merge(strategy: Strategy, variable: Variable, value: TensorLike) -> Any:
            mean = strategy.extended.reduce_to(context.ReduceOp.MEAN, value, variable)
            return _moved_copies(strategy, variable, mean, rest, zero_debias)

        return replica.merge_call(merge, args=(variable, to_tensor(value, variable.dtype.base_dtype)))


def _moved_copies(
    strategy: Strategy, variable: Variable, value: TensorLike, rest: Tensor, zero_debias: bool
) -> Any:
    """Moves each copy of a variable."""

    def update(copy: Variable, value: TensorLike, *helpers: Variable) -> Any:
        return _moved(copy, value, rest, None, *helpers)

    helpers = _helpers(variable, zero_debias)
    return strategy.extended.update(variable, update, args=(value, *helpers))


def _moved(
    variable: Variable,
    value: TensorLike,
    rest: Tensor,
    scope: str | None,
    biased: Variable | None = None,
    count: Variable | None = None,
) -> Any:
    if biased is None or count is None:
        return _assign("Sub", variable, (to_tensor(variable) - value) * rest, scope)
    moved = _assign("Sub", biased, (to_tensor(biased) - value) * rest)
    counted = _assign("Add", count, 1.0)
    # After n values the weights add up to 1 - decay^n: dividing by that removes the start at zero.
    factor = 1 - apply("Pow", 1.0 - rest, counted)
    return _assign("", variable, moved / factor, scope)


def _assign(kind: str, variable: Variable, value: TensorLike, name: str | None = None) -> Any:
    """`Assign<kind>`; like TensorFlow's it drops the name for a resource variable."""
    if isinstance(variable, ResourceVariable):
        return {"": variable.assign, "Add": variable.assign_add, "Sub": variable.assign_sub}[kind](value)
    return apply_any(f"Assign{kind}", variable, value, name=name)


def _helpers(unbiased: Variable, zero_debias: bool) -> tuple[Variable, ...]:
    """The variables that correct an average for its start at zero: the plain average, and the number of values in it."""
    if not zero_debias:
        return ()
    with variable_scope(unbiased.op.name, values=[unbiased]):
        return _helper(unbiased, "biased", unbiased.get_shape()), _helper(unbiased, "local_step", [])


def _helper(unbiased: Variable, name: str, shape: ShapeLike) -> Variable:
    variable: Variable = get_variable(
        _unused(name),
        shape=shape,
        dtype=unbiased.dtype.base_dtype,
        initializer=Zeros(),
        trainable=False,
        use_resource=isinstance(unbiased, ResourceVariable),
    )
    return variable


def _unused(name: str) -> str:
    """`name`, or with a number when the current scope has a variable of that name already."""
    scope = get_variable_scope()
    taken = {v.op.name for v in global_variables()}
    full = f"{scope.name}/{name}" if scope.name else name
    if scope.reuse or full not in taken:
        return name
    # As TensorFlow numbers them, so that checkpoints have the same names.
    number = 1
    while f"{full}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


@export("train.ExponentialMovingAverage")
class ExponentialMovingAverage:
    """Keeps moving averages of variables, to evaluate a model with steadier values than the last step's.

    `apply()` gives the operation that updates the averages; run it after each training step. With
    `num_updates`, the decay is smaller in the beginning: min(decay, (1 + num_updates) / (10 + num_updates)).
    """

    def __init__(
        self,
        decay: TensorLike,
        num_updates: TensorLike = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Variable] = {}

    name: str = readonly("_name", "The name given to the constructor.")

    def apply(self, var_list: Iterable[Variable | Tensor] | None = None) -> Operation:
        """An operation that updates the averages of these variables or tensors (all trainable variables)."""
        watched = trainable_variables() if var_list is None else list(var_list)
        debiased = set()
        for var in watched:
            if var.dtype.base_dtype not in _AVERAGED_TYPES:
                raise TypeError(f"The variables must be half, float, or double: {var.name}")
            if var not in self._averages:
                with control_dependencies(None):
                    self._averages[var] = self._make(var)
                # The average of a variable starts with its initial value; only that of a tensor starts at
                # zero.
                if self._zero_debias and not isinstance(var, Variable):
                    debiased.add(var)
        with name_scope(self.name) as scope:
            decay = self._current_decay()
            updates = [assign_moving_average(self._averages[v], v, decay, v in debiased) for v in watched]
            return group(*updates, name=scope)

    def _make(self, var: Variable | Tensor) -> Variable:
        if isinstance(var, Variable):
            get_default_graph().add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            return slots.create_slot(var, var.initialized_value(), self.name)
        beside = var.op.type in ("Variable", "VariableV2", "VarHandleOp")
        return slots.create_zeros_slot(var, self.name, colocate_with_primary=beside)

    def _current_decay(self) -> Tensor:
        decay = to_tensor(self._decay, name="decay")
        if self._num_updates is None:
            return decay
        count = cast(self._num_updates, dtypes.float32, name="num_updates")
        return apply("Minimum", decay, (1.0 + count) / (10.0 + count))

    def average(self, var: Variable | Tensor) -> Variable | None:
        """The variable that holds the average of `var`, or None."""
        return self._averages.get(var)

    def average_name(self, var: Variable | Tensor) -> str:
        """The name under which the average of `var` is, or would be, saved."""
        average = self._averages.get(var)
        if average is not None:
            return average.op.name
        return get_default_graph().unique_name(f"{var.op.name}/{self.name}", mark_as_used=False)

    def variables_to_restore(
        self, moving_avg_variables: Iterable[Variable] | None = None
    ) -> dict[str, Variable]:
        """For a `tf.train.Saver`: restores variables from their averages, others from themselves."""
        if moving_avg_variables is None:
            moving_avg_variables = trainable_variables() + moving_average_variables()
        averaged = list(dict.fromkeys(moving_avg_variables))
        restored = {self.average_name(v): v for v in averaged}
        names = {v.name for v in averaged}
        for v in global_variables():
            if v.name not in names and v.op.name not in restored:
                restored[v.op.name] = v
        return restored
