"""What TensorFlow's inside asks of conds and loops: `control_flow_util`."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import export, publish
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops import control_flow_context as contexts
from tensorfleet.ops import control_flow_nodes as nodes

_UTIL = "python.ops.control_flow_util."

publish(nodes.is_enter, f"{_UTIL}IsLoopEnter")

publish(nodes.is_constant_enter, f"{_UTIL}IsLoopConstantEnter")

publish(nodes.is_exit, f"{_UTIL}IsLoopExit")

publish(nodes.is_switch, f"{_UTIL}IsSwitch")

publish(nodes.is_merge, f"{_UTIL}IsMerge")

publish(nodes.is_loop_switch, f"{_UTIL}IsLoopSwitch")

publish(contexts.output_context, f"{_UTIL}GetOutputContext")

publish(contexts.in_context, f"{_UTIL}OpInContext")

publish(False, f"{_UTIL}ENABLE_CONTROL_FLOW_V2")


@export(f"{_UTIL}IsInWhileContext", f"{_UTIL}IsInWhileLoop")
def is_in_while_context(op: Operation) -> bool:
    """Whether an operation lies in a loop."""
    return contexts.while_context(op._get_control_flow_context()) is not None


@export(f"{_UTIL}IsInCond")
def is_in_cond(op: Operation) -> bool:
    """Whether an operation lies in a branch of a cond."""
    return containing_cond_context(op._get_control_flow_context()) is not None


@export(f"{_UTIL}IsInXLAContext", f"{_UTIL}InXlaContext", f"{_UTIL}GraphOrParentsInXlaContext")
def is_in_xla_context(_: Any) -> bool:
    """False: there are no contexts of XLA's; what is compiled is decided when it runs."""
    return False


@export(f"{_UTIL}GetContainingXLAContext")
def containing_xla_context(_: Any) -> None:
    """None: there are no contexts of XLA's."""


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


@export(f"{_UTIL}IsContainingContext")
def is_containing_context(ctxt: Any, maybe_containing_ctxt: Any) -> bool:
    """Whether a context is another, or lies in it."""
    while ctxt is not maybe_containing_ctxt:
        if ctxt is None:
            return False
        ctxt = ctxt.outer_context
    return True


@export(f"{_UTIL}CheckInputFromValidContext")
def check_input_from_valid_context(op: Operation, input_op: Operation) -> None:
    """ValueError when an operation uses a tensor from a loop that it does not lie in."""
    mine = contexts.while_context(op._get_control_flow_context())
    theirs = contexts.while_context(contexts.output_context(input_op))
    if theirs is None or is_containing_context(mine, theirs):
        return
    if mine is None:
        why = f"'{input_op.name}' is in a while loop"
    elif mine.outer_context is None and theirs.outer_context is None:
        why = "they are in different while loops"
    else:
        why = "they are in different while loops"
    raise ValueError(
        f"Cannot use '{input_op.name}' as input to '{op.name}' because {why}. See info log for more details."
    )
