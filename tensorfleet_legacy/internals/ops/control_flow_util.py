"""Queries about conds and loops from inside TensorFlow: `control_flow_util`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import nest
from tensorfleet.base.naming import export, publish
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.control import context as contexts
from tensorfleet.ops.control import nodes

_UTIL = "python.ops.control_flow_util."
_OPS = "python.ops.control_flow_ops."

# What is public, or elsewhere, here.
_SAME: dict[str, Any] = {
    "IsLoopEnter": nodes.is_enter,
    "IsLoopConstantEnter": nodes.is_constant_enter,
    "IsLoopExit": nodes.is_exit,
    "IsSwitch": nodes.is_switch,
    "IsMerge": nodes.is_merge,
    "IsLoopSwitch": nodes.is_loop_switch,
    "GetOutputContext": contexts.output_context,
    "OpInContext": contexts.in_context,
    "TensorInContext": lambda tensor, ctxt: contexts.in_context(tensor.op, ctxt),
    "IsContainingContext": contexts.lies_in,
    "ENABLE_CONTROL_FLOW_V2": False,
}
for _name, _value in _SAME.items():
    publish(_value, _UTIL + _name)


@export(f"{_UTIL}IsInWhileContext", f"{_UTIL}IsInWhileLoop")
def is_in_while_context(op: Operation) -> bool:
    """Whether an operation lies in a loop."""
    return contexts.while_context(op._get_control_flow_context()) is not None


@export(f"{_UTIL}IsInCond")
def is_in_cond(op: Operation) -> bool:
    """Whether an operation lies in a branch of a cond."""
    return containing_cond_context(op._get_control_flow_context()) is not None


@export(f"{_UTIL}IsInXLAContext")
def is_in_xla_context(op: Operation) -> bool:
    """Whether an operation lies in a context of XLA's."""
    return containing_xla_context(op._get_control_flow_context()) is not None


@export(f"{_UTIL}InXlaContext", f"{_UTIL}GraphOrParentsInXlaContext")
def in_xla_context(graph: Any) -> bool:
    """Whether operations that are added to a graph now lie in a context of XLA's."""
    return containing_xla_context(graph._get_control_flow_context()) is not None


@export(f"{_UTIL}GetContainingXLAContext")
def containing_xla_context(ctxt: Any) -> Any:
    """The innermost context of XLA's around, itself included; None without one."""
    while ctxt is not None and not ctxt.IsXLAContext():
        ctxt = ctxt.outer_context
    return ctxt


@export(f"{_UTIL}EnableControlFlowV2")
def enable_control_flow_v2(_: Any) -> bool:
    """False: conds and loops are made of Switch, Merge and their kin."""
    return False


@export(f"{_UTIL}IsCondSwitch")
def is_cond_switch(op: Operation) -> bool:
    """Whether a Switch belongs to a cond."""
    return nodes.is_switch(op) and not nodes.is_loop_switch(op)


@export(f"{_UTIL}IsCondMerge")
def is_cond_merge(op: Operation) -> bool:
    """Whether a Merge belongs to a cond."""
    return nodes.is_merge(op) and not is_loop_merge(op)


@export(f"{_UTIL}IsLoopMerge")
def is_loop_merge(op: Operation) -> bool:
    """Whether a Merge starts the iterations of a loop."""
    return nodes.is_merge(op) and any(nodes.is_enter(t.op) for t in op.inputs)


@export(f"{_UTIL}GetLoopConstantEnter")
def loop_constant_enter(value: Tensor) -> Any:
    """The Enter through which a value that stays the same came into a loop; None when it did not."""
    op = value.op
    while op.type in ("Identity", "RefIdentity", "Switch", "RefSwitch"):
        op = op.inputs[0].op
    return op if nodes.is_constant_enter(op) else None


@export(f"{_UTIL}GetContainingWhileContext")
def containing_while_context(ctxt: Any, stop_ctxt: Any = None) -> Any:
    """The innermost loop around, itself included; None when there is none, or `stop_ctxt` comes first."""
    while ctxt is not None:
        if ctxt.IsWhileContext() or ctxt is stop_ctxt:
            return ctxt if ctxt is not stop_ctxt or ctxt.IsWhileContext() else None
        ctxt = ctxt.outer_context
    return None


@export(f"{_UTIL}GetContainingCondContext")
def containing_cond_context(ctxt: Any) -> Any:
    """The innermost branch of a cond around, itself included."""
    while ctxt is not None and not ctxt.IsCondContext():
        ctxt = ctxt.outer_context
    return ctxt


def _each(data: Any, made: Callable[[Tensor], Tensor], name: str | None, default: str) -> Any:
    """Applies a function to a tensor, or to each part of a composite one."""
    if not isinstance(data, CompositeTensor):
        return made(to_tensor(data, as_ref=True))
    with name_scope(name, default):
        parts = [made(t) for t in nest.flatten(data, expand_composites=True)]
    return nest.pack_sequence_as(data, parts, expand_composites=True)


@export(f"{_OPS}_Enter")
def _enter(
    data: Any,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_ref: bool = True,
    use_input_shape: bool = True,
    name: str | None = None,
) -> Any:
    """A value, or a reference to a variable, in a frame of its own."""

    def made(tensor: Tensor) -> Tensor:
        if tensor.dtype._is_ref_dtype and not use_ref:
            tensor = apply("Identity", tensor)
        return contexts.enter(tensor, frame_name, is_constant, parallel_iterations, name)

    return _each(data, made, name, "Enter")


@export(f"{_OPS}exit", f"{_OPS}_Exit")
def _exit(data: Any, name: str | None = None) -> Any:
    """A value as it leaves its frame."""
    return _each(data, lambda t: apply_any(_kind(t, "Exit"), t, name=name), name, "Exit")


@export(f"{_OPS}_NextIteration")
def _next_iteration(data: Any, name: str | None = None) -> Any:
    """A value in the next iteration of its frame."""
    return _each(data, lambda t: apply_any(_kind(t, "NextIteration"), t, name=name), name, "NextIteration")


def _kind(tensor: Tensor, kind: str) -> str:
    return f"Ref{kind}" if tensor.dtype._is_ref_dtype else kind
