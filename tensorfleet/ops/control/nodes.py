"""The nodes that branches and loops are made of. A plan resolves them before it runs (passes/control_flow.py)."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
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
def _switch(xp: Any, data: Any, pred: Any) -> Any:
    return data, data  # what is behind the output not taken never runs


@op(
    "RefSwitch",
    "data: Ref(T), pred: bool[0] -> output_false: Ref(T), output_true: Ref(T)",
    "T: type",
    shape=same_as_input,
    stateful=True,
)
def _ref_switch(xp: Any, data: Any, pred: Any) -> Any:
    return ()


def _merged_shape(op: Operation) -> list[TensorShape]:
    shapes = [t.shape for t in op._inputs]
    found = shapes[0]
    for other in shapes[1:]:
        found = common_shape(found, other)
    return [found, SCALAR]


def common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """What two shapes agree on."""
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
def _merge(xp: Any, inputs: Any) -> Any:
    raise AssertionError("a plan chooses the input of a Merge")


@op(
    "RefMerge",
    "inputs: Ref(N * T) -> output: Ref(T), value_index: int32",
    "T: type; N: int",
    shape=_merged_shape,
    stateful=True,
)
def _ref_merge(xp: Any, inputs: Any) -> Any:
    raise AssertionError("a plan chooses the input of a Merge")


def _selected_shape(op: Operation) -> TensorShape:
    """That of the variables, if it is known and the same for all of them."""
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
def _ref_select(ctx: Any, index: Any, inputs: Any) -> Any:
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
def _enter(xp: Any, data: Any) -> Any:
    return data


@op("RefEnter", "data: Ref(T) -> output: Ref(T)", _ENTER, shape=same_as_input, stateful=True)
def _ref_enter(xp: Any, data: Any) -> Any:
    return ()


@op(
    "RefIdentity",
    "input: Ref(T) -> output: Ref(T)",
    "T: type",
    shape=same_as_input,
    host=True,
    stateful=True,
)
def _ref_identity(ctx: Any, data: Any) -> Any:
    return ()


@gradient("RefIdentity")
def _ref_identity_grad(op: Operation, grad: Any) -> Any:
    return grad


@op("Exit", "data: T -> output: T", "T: type", shape=same_as_input, stateful=True)
def _exit(xp: Any, data: Any) -> Any:
    return data


@op("RefExit", "data: Ref(T) -> output: Ref(T)", "T: type", shape=same_as_input, stateful=True)
def _ref_exit(xp: Any, data: Any) -> Any:
    return ()


@op("NextIteration", "data: T -> output: T", "T: type", shape=same_as_input, stateful=True)
def _next_iteration(xp: Any, data: Any) -> Any:
    return data


@op("RefNextIteration", "data: Ref(T) -> output: Ref(T)", "T: type", shape=same_as_input, stateful=True)
def _ref_next_iteration(xp: Any, data: Any) -> Any:
    return ()


@op("LoopCond", "input: bool[0] -> output: bool", shape=scalar, stateful=True)
def _loop_cond(xp: Any, pred: Any) -> Any:
    return pred


@op("ControlTrigger", "->", stateful=True)
def _control_trigger(xp: Any) -> Any:
    return ()


@op("Abort", "->", "error_msg: string = ''; exit_without_error: bool = false", host=True, stateful=True)
def _abort(ctx: Any, *, error_msg: bytes) -> Any:
    raise errors.AbortedError(None, ctx.op, error_msg.decode())


not_differentiable("LoopCond", "ControlTrigger", "Abort")


def is_enter(node: Operation) -> bool:
    """Whether a value enters a loop through this operation."""
    return node.type in ("Enter", "RefEnter")


def is_constant_enter(node: Operation) -> bool:
    """Whether this operation brings in a value that stays the same in every iteration."""
    return is_enter(node) and node._attrs["is_constant"]


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
