"""Slots: variables an optimizer keeps beside each variable it trains, of the same shape and place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.api.variables.scope import AUTO_REUSE, get_variable, get_variable_scope, variable_scope
from tensorfleet.api.variables.variable import ResourceVariable, SaveSliceInfo, Variable
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import as_shape
from tensorfleet.base.types import ShapeLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import InitializerLike


def create_slot(
    primary: Variable | Tensor, val: Tensor, name: str, colocate_with_primary: bool = True
) -> Variable:
    """A slot of `primary` that starts as the tensor `val`."""
    # A shape that only a running step knows cannot be checked against the variable's.
    validate = val.shape.is_fully_defined()
    return _in_scope_of(primary, name, colocate_with_primary, validate, initializer=val)


def create_slot_with_initializer(
    primary: Variable | Tensor,
    initializer: InitializerLike,
    shape: ShapeLike,
    dtype: DType,
    name: str,
    colocate_with_primary: bool = True,
) -> Variable:
    """A slot of `primary` that an initializer fills."""
    shape = as_shape(shape)
    validate = shape.is_fully_defined()
    wanted = {"initializer": initializer, "shape": shape, "dtype": dtype.base_dtype}
    return _in_scope_of(primary, name, colocate_with_primary, validate, **wanted)


def create_zeros_slot(
    primary: Variable | Tensor, name: str, dtype: DType | None = None, colocate_with_primary: bool = True
) -> Variable:
    """A slot of `primary` that starts at zero, also when the shape is known only to a running step."""
    dtype = (primary.dtype if dtype is None else dtype).base_dtype
    if primary.shape.is_fully_defined():
        return create_slot_with_initializer(
            primary, Zeros(), primary.shape, dtype, name, colocate_with_primary
        )
    first = primary.initialized_value() if isinstance(primary, Variable) else primary
    zeros = apply("Fill", apply("Shape", first), apply("Cast", 0, DstT=dtype))
    return create_slot(primary, zeros, name, colocate_with_primary)


def _in_scope_of(
    primary: Variable | Tensor, name: str, colocate: bool, validate: bool, **wanted: Any
) -> Variable:
    # A scope of that name is opened anew for each slot, which makes "w/Adam", "w/Adam_1", ...
    with variable_scope(None, f"{primary.op.name}/{name}"):
        if not colocate:
            return _create(primary, validate, **wanted)
        with colocate_with(primary.op):
            return _create(primary, validate, **wanted)


def _create(primary: Variable | Tensor, validate: bool, **wanted: Any) -> Variable:
    scope = get_variable_scope()
    outer, partitioner = scope.name, scope.partitioner
    scope.set_partitioner(None)  # a slot of one part is one variable
    if scope.reuse is True:
        # Before 0.12 slots were made where variables are reused, too. In 1.15 that is an error, unless there is such a slot.
        scope._reuse = AUTO_REUSE
    try:
        slot: Variable = get_variable(
            "",
            trainable=False,
            use_resource=isinstance(primary, ResourceVariable),
            validate_shape=validate,
            **wanted,
        )
    finally:
        scope.set_partitioner(partitioner)
    info = primary._get_save_slice_info() if isinstance(primary, Variable) else None
    if info is not None:
        # Checkpoints hold the slots of all parts as one tensor, named after the whole variable.
        own = outer[outer.rindex(primary.op.name) + len(primary.op.name) + 1 :]
        slot._set_save_slice_info(
            SaveSliceInfo(
                f"{info.full_name}/{own}", list(info.full_shape), list(info.var_offset), list(info.var_shape)
            )
        )
    return slot
