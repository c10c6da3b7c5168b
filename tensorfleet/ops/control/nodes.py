"""The nodes that branches and loops are made of. A plan resolves them before it runs (passes/control_flow.py)."""

from __future__ import annotations

import functools
from typing import NoReturn

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.kernel_types import HostContext, VariableMemory
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.ops.common import SCALAR, same_as_input, scalar


@op(
    "Switch",
    "data: T, pred: bool[0] -> output_false: T, output_true: T",
    "T: type",
    shape=same_as_input,
    stateful=True,
)
def _switch(xp: ArrayModule, data: Array, pred: Array) -> tuple[Array, Array]:
    return data, data  # operations behind the output that is not taken never run


@op(
    "RefSwitch",
    "data: Ref(T), pred: bool[0] -> output_false: Ref(T), output_true: Ref(T)",
    "T: type",
    shape=same_as_input,
    stateful=True,
)
def _ref_switch(xp: ArrayModule, data: Array, pred: Array) -> tuple[()]:
    return ()


def _merged_shape(op: Operation) -> list[TensorShape]:
    shapes = [t.shape for t in op._inputs]
    return [functools.reduce(common_shape, shapes), SCALAR]


def common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """The dimensions that two shapes agree on."""
    if a.rank is None or b.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list(), strict=True)])


@op(
    "Merge",
    "inputs: N * T -> output: T, value_index: int32",
    "T: type; N: int",
    shape=_merged_shape,
    stateful=True,
)
def _merge(xp: ArrayModule, inputs: list[Array]) -> NoReturn:
    raise AssertionError("a plan chooses the input of a Merge")


@op(
    "RefMerge",
    "inputs: Ref(N * T) -> output: Ref(T), value_index: int32",
    "T: type; N: int",
    shape=_merged_shape,
    stateful=True,
)
def _ref_merge(xp: ArrayModule, inputs: list[Array]) -> NoReturn:
    raise AssertionError("a plan chooses the input of a Merge")


def _selected_shape(op: Operation) -> TensorShape:
    """The shape of the variables, if it is known and the same for all of them."""
    dims = {t.shape._d for t in op._inputs[1:]}
    return (
        op._inputs[1].shape
        if len(dims) == 1 and op._inputs[1].shape.is_fully_defined()
        else TensorShape(None)
    )


@op(
    "RefSelect",
    "index: int32[0], inputs: Ref(N * T) -> output: Ref(T)",
    "T: type; N: int >= 1",
    shape=_selected_shape,
    host=True,
    stateful=True,
)
def _ref_select(ctx: HostContext, index: Array, inputs: list[VariableMemory]) -> Array | None:
    if not 0 <= index < len(inputs):
        raise errors.invalid(f"Index must be in the range [0, {len(inputs)}) but got {int(index)}")
    values = [store.read() for store in inputs]
    for tensor, value in zip(ctx.op._inputs[1:], values, strict=True):
        if value is None:
            raise errors.FailedPreconditionError(
                None, ctx.op, f"Attempting to use uninitialized value {tensor.op.name}"
            )
    return values[int(index)]


_ENTER = "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10"


@op("Enter", "data: T -> output: T", _ENTER, shape=same_as_input, stateful=True)
def _enter(xp: ArrayModule, data: Array) -> Array:
    return data


@op("RefEnter", "data: Ref(T) -> output: Ref(T)", _ENTER, shape=same_as_input, stateful=True)
def _ref_enter(xp: ArrayModule, data: Array) -> tuple[()]:
    return ()


@op(
    "RefIdentity",
    "input: Ref(T) -> output: Ref(T)",
    "T: type",
    shape=same_as_input,
    host=True,
    stateful=True,
)
def _ref_identity(ctx: HostContext, data: Array) -> tuple[()]:
    return ()


@gradient("RefIdentity")
def _ref_identity_grad(op: Operation, grad: Tensor) -> Tensor:
    return grad


@op("Exit", "data: T -> output: T", "T: type", shape=same_as_input, stateful=True)
def _exit(xp: ArrayModule, data: Array) -> Array:
    return data


@op("RefExit", "data: Ref(T) -> output: Ref(T)", "T: type", shape=same_as_input, stateful=True)
def _ref_exit(xp: ArrayModule, data: Array) -> tuple[()]:
    return ()


@op("NextIteration", "data: T -> output: T", "T: type", shape=same_as_input, stateful=True)
def _next_iteration(xp: ArrayModule, data: Array) -> Array:
    return data


@op("RefNextIteration", "data: Ref(T) -> output: Ref(T)", "T: type", shape=same_as_input, stateful=True)
def _ref_next_iteration(xp: ArrayModule, data: Array) -> tuple[()]:
    return ()


@op("LoopCond", "input: bool[0] -> output: bool", shape=scalar, stateful=True)
def _loop_cond(xp: ArrayModule, pred: Array) -> Array:
    return pred


@op("ControlTrigger", "->", stateful=True)
def _control_trigger(xp: ArrayModule) -> tuple[()]:
    return ()


@op("Abort", "->", "error_msg: string = ''; exit_without_error: bool = false", host=True, stateful=True)
def _abort(ctx: HostContext, *, error_msg: bytes) -> NoReturn:
    raise errors.AbortedError(None, ctx.op, error_msg.decode())


not_differentiable("LoopCond", "ControlTrigger", "Abort")


def is_enter(node: Operation) -> bool:
    """Whether a value enters a loop through this operation."""
    return node.type in ("Enter", "RefEnter")


def is_constant_enter(node: Operation) -> bool:
    """Whether this operation brings in a value that stays the same in every iteration."""
    return is_enter(node) and bool(node._attrs["is_constant"])


def is_exit(node: Operation) -> bool:
    """Whether a value leaves a loop through this operation."""
    return node.type in ("Exit", "RefExit")


def is_switch(node: Operation) -> bool:
    """Whether this operation sends a value into one of two branches."""
    return node.type in ("Switch", "RefSwitch")


def is_merge(node: Operation) -> bool:
    """Whether this operation takes whichever of its inputs there is."""
    return node.type in ("Merge", "RefMerge")


def is_loop_switch(node: Operation) -> bool:
    """Whether a Switch belongs to a loop rather than to a cond."""
    return is_switch(node) and node._inputs[1]._op.type == "LoopCond"


def source(tensor: Tensor) -> Tensor:
    """The tensor outside all loops and branches that a captured tensor stands for."""
    while is_enter(tensor._op) or is_switch(tensor._op):
        tensor = tensor._op._inputs[0]
    return tensor
