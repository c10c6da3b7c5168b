"""Variables as the graph sees them, reference and resource, with the assign family.

A kernel that updates a variable takes its current value and returns the new one. The runtime decides where the value
lives, who may write it and when the new value becomes visible.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.kernel_types import Check, HostContext, Kernel, VariableMemory
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.aligned_memory import is_final
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.common import SCALAR, same_as_input


@op(
    "VariableV2",
    "-> ref: Ref(dtype)",
    "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
    shape=lambda op: op._attrs["shape"],
    stateful=True,
    variable=True,
)
def _variable_v2(xp: ArrayModule) -> None: ...


@op(
    "Variable",
    "-> ref: Ref(dtype)",
    "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
    # Graphs this old write an unknown shape as a scalar's.
    shape=lambda op: op._attrs["shape"] if op._attrs["shape"].rank else TensorShape(None),
    stateful=True,
    variable=True,
)
def _variable(xp: ArrayModule) -> None: ...


@op(
    "VarHandleOp",
    "-> resource: resource",
    "container: string = ''; shared_name: string = ''; dtype: type; shape: shape; "
    "allowed_devices: list(string) = []",
    shape=lambda op: SCALAR,
    stateful=True,
    variable=True,
)
def _var_handle(xp: ArrayModule) -> None: ...


not_differentiable("VariableV2", "Variable", "VarHandleOp")


def handle_shape(op: Operation) -> TensorShape:
    """The shape of the variable that the first input is a handle of."""
    handle: Tensor | None = op._inputs[0]
    while handle is not None:
        source = handle.op
        if source.type in ("Identity", "IdentityN", "Enter", "Switch"):
            handle = source._inputs[handle.value_index if source.type == "IdentityN" else 0]
        else:
            # In a function a placeholder stands for a handle that is outside.
            captured = getattr(handle.graph, "captures", {})
            handle = next((outer for outer, inner in captured.items() if inner is handle), None)
    return source._attrs["shape"] if source.type == "VarHandleOp" else TensorShape(None)


def _read_shape(op: Operation) -> TensorShape:
    source, got = op._inputs[0].op, op._attrs["dtype"]
    if source.type == "VarHandleOp" and source._attrs["dtype"] != got:
        raise ValueError(
            f"Trying to read variable with wrong dtype. Expected {source._attrs['dtype'].name} got {got.name}"
        )
    return handle_shape(op)


def _assigned_shape(op: Operation) -> list[TensorShape]:
    want, got = _read_shape(op), op._inputs[1].shape
    if want.rank is not None and got.rank is not None and want.rank != got.rank:
        raise ValueError(f"Shapes must be equal rank, but are {want.rank} and {got.rank}")
    want.assert_is_compatible_with(got)
    return []


@op(
    "ReadVariableOp",
    "resource: resource -> value: dtype",
    "dtype: type",
    shape=_read_shape,
    stateful=True,
    reads=["resource"],
)
def _read_variable(xp: ArrayModule, value: Array) -> Array:
    return value


@gradient("ReadVariableOp")
def _read_grad(op: Operation, dy: Tensor) -> Tensor:
    return dy


@op(
    "VariableShape",
    "input: resource -> output: out_type",
    "out_type: index = int32",
    shape=lambda op: TensorShape._of((handle_shape(op).rank,)),
    stateful=True,
    reads=["input"],
)
def _variable_shape(xp: ArrayModule, value: Array, *, out_type: dtypes.DType) -> Array:
    return np.array(value.shape, out_type.np_dtype)


not_differentiable("VariableShape")


def _assign_shape(op: Operation) -> TensorShape:
    ref, value = op._inputs[0].shape, op._inputs[1].shape
    if op._attrs.get("validate_shape", True):
        return ref.merge_with(value)
    return value


def _fresh(xp: ArrayModule, value: Array) -> Array:
    """A value that nobody else can change: in numpy, a store must not keep the caller's own array."""
    return np.array(value) if is_numpy(xp) and not is_final(value) else value


@op(
    "Assign",
    "ref: Ref(T), value: T -> output_ref: Ref(T)",
    "T: type; validate_shape: bool = true; use_locking: bool = true",
    shape=_assign_shape,
    updates=["ref"],
    overwrites=True,
)
def _assign(xp: ArrayModule, ref: Array, value: Array, *, op: Operation) -> Array:
    want = op._inputs[0].shape
    if op._attrs["validate_shape"] and not want.is_compatible_with(value.shape):
        raise errors.InvalidArgumentError(
            None,
            op,
            f"Assign requires shapes of both tensors to match. lhs shape= {_text(want)} rhs shape= "
            f"{_text(TensorShape(value.shape))}. Pass validate_shape=False to change the shape.",
        )
    return _fresh(xp, value)


def _text(shape: TensorShape) -> str:
    return "[" + ",".join("?" if d is None else str(d) for d in shape.as_list()) + "]"


def _same_shape(op: Operation) -> TensorShape:
    return op._inputs[0].shape.merge_with(op._inputs[1].shape)


def _add_in_place(op: Operation, ref: Array, value: Array) -> None:
    np.add(ref, value, out=ref)


def _subtract_in_place(op: Operation, ref: Array, value: Array) -> None:
    np.subtract(ref, value, out=ref)


def _updating(name: str, in_place: Callable[[Operation, Array, Array], None]) -> Callable[[Kernel], Kernel]:
    return op(
        name,
        "ref: Ref(T), value: T -> output_ref: Ref(T)",
        "T: number; use_locking: bool = false",
        shape=_same_shape,
        updates=["ref"],
        elementwise=in_place,
    )


def _need_same(current: Array, value: Array, what: str) -> None:
    if current.shape != value.shape:
        raise errors.invalid(
            f"{what} requires shapes of both tensors to match: the variable has {list(current.shape)}, the "
            f"value {list(value.shape)}."
        )


@_updating("AssignAdd", _add_in_place)
def _assign_add(xp: ArrayModule, ref: Array, value: Array) -> Array:
    _need_same(ref, value, "assign_add")
    return ref + value


@_updating("AssignSub", _subtract_in_place)
def _assign_sub(xp: ArrayModule, ref: Array, value: Array) -> Array:
    _need_same(ref, value, "assign_sub")
    return ref - value


not_differentiable("Assign", "AssignAdd", "AssignSub")


@op(
    "AssignVariableOp",
    "resource: resource, value: dtype ->",
    "dtype: type; validate_shape: bool = false",
    shape=_assigned_shape,
    updates=["resource"],
    overwrites=True,
    stateful=True,
)
def _assign_variable(xp: ArrayModule, current: Array, value: Array, *, op: Operation) -> Array:
    want = handle_shape(op)
    if op._attrs["validate_shape"] and not want.is_compatible_with(value.shape):
        raise errors.InvalidArgumentError(
            None,
            op,
            f"Trying to assign to variable with tensor with wrong shape. Expected {_text(want)} got "
            f"{_text(TensorShape(value.shape))}.",
        )
    return _fresh(xp, value)


op(
    "AssignAddVariableOp",
    "resource: resource, value: dtype ->",
    "dtype: type",
    shape=_assigned_shape,
    updates=["resource"],
    elementwise=_add_in_place,
    stateful=True,
)(_assign_add)


op(
    "AssignSubVariableOp",
    "resource: resource, value: dtype ->",
    "dtype: type",
    shape=_assigned_shape,
    updates=["resource"],
    elementwise=_subtract_in_place,
    stateful=True,
)(_assign_sub)


not_differentiable("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


@op(
    "IsVariableInitialized",
    "ref: Ref(dtype) -> is_initialized: bool",
    "dtype: type",
    shape=lambda op: SCALAR,
    host=True,
    stateful=True,
)
def _is_variable_initialized(ctx: HostContext, store: VariableMemory) -> Array:
    return np.array(store.value is not None)


@op(
    "VarIsInitializedOp",
    "resource: resource -> is_initialized: bool",
    shape=lambda op: SCALAR,
    host=True,
    stateful=True,
)
def _var_is_initialized(ctx: HostContext, store: VariableMemory) -> Array:
    return np.array(store.value is not None)


@op(
    "DestroyResourceOp",
    "resource: resource ->",
    "ignore_lookup_error: bool = true",
    host=True,
    stateful=True,
)
def _destroy(ctx: HostContext, store: VariableMemory) -> tuple[()]:
    store.clear()
    return ()


@op(
    "TemporaryVariable",
    "-> ref: Ref(dtype)",
    "shape: shape; dtype: type; var_name: string = ''",
    shape=lambda op: op._attrs["shape"],
    stateful=True,
    variable=True,
)
def _temporary_variable(xp: ArrayModule) -> None: ...


@op(
    "DestroyTemporaryVariable",
    "ref: Ref(T) -> value: T",
    "T: type; var_name: string",
    shape=same_as_input,
    host=True,
    stateful=True,
)
def _destroy_temporary_variable(ctx: HostContext, store: VariableMemory, *, var_name: bytes) -> Array | None:
    source = ctx.op._inputs[0]._op
    while source.type != "TemporaryVariable" and source._inputs:
        source = source._inputs[0]._op
    name = source._attrs.get("var_name") or source.name.encode()
    if name != var_name:
        raise errors.NotFoundError(
            None,
            None,
            f"Resource {var_name.decode()} does not exist: the temporary variable here is {name.decode()!r}.",
        )
    # The next use of this name gets new memory: the caller owns the old value.
    value = store.value
    store.value = np.zeros_like(value)
    return value


not_differentiable("TemporaryVariable", "DestroyTemporaryVariable")
not_differentiable("IsVariableInitialized", "VarIsInitializedOp", "DestroyResourceOp")


@op(
    "CountUpTo",
    "ref: Ref(T) -> output: T",
    "limit: int; T: index",
    shape=lambda op: SCALAR,
    updates=["ref"],
)
def _count_up_to(xp: ArrayModule, ref: Array, *, limit: int, check: Check) -> tuple[Array, Array]:
    check(ref < limit, lambda: f"Reached limit of {limit}", errors.OutOfRangeError)
    return ref + xp.ones_like(ref), ref


op(
    "ResourceCountUpTo",
    "resource: resource -> output: T",
    "limit: int; T: index",
    shape=lambda op: SCALAR,
    updates=["resource"],
    stateful=True,
)(_count_up_to)


not_differentiable("CountUpTo", "ResourceCountUpTo")
