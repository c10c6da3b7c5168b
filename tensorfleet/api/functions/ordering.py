"""The order of a function's effects: each waits for those before it on the same resources."""

from __future__ import annotations

from typing import TypeAlias

from tensorfleet.graph.apply import apply
from tensorfleet.graph.functions import FunctionGraph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.control.context import ControlFlowContext
from tensorfleet.ops.control.gradients import inside_of

# Operations with a state whose order nobody sees; the shape of a variable is one of them.
_UNORDERED = {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "Multinomial"}
_UNORDERED |= {"VariableShape"}
# Operations that only hand values on, into branches and loops and from turn to turn.
_PASSING = {
    "Enter",
    "RefEnter",
    "Switch",
    "RefSwitch",
    "NextIteration",
    "RefNextIteration",
    "LoopCond",
    "Identity",
}
# Operations that read a variable without changing it.
_READS = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "VariableShape"}
_ALL = "everything"
#: What an effect has to do with: the handle of a variable or of another resource, or `_ALL`.
_Key: TypeAlias = Tensor | str
#: The operations that the next one waits for, by what they have to do with and the branch or loop they are in.
_Last: TypeAlias = dict[tuple[_Key, ControlFlowContext | None], list[Operation]]


def ordered(body: FunctionGraph) -> list[Operation]:
    """Makes effects wait for each other in the order they were made in; those that nothing waits for yet."""
    given = {t._op for t in (*body.inputs, *body.captures.values())}
    return in_order([op for op in body._ops if op not in given])


def in_order(ops: list[Operation]) -> list[Operation]:
    """Makes the effects among operations wait for each other; those that nothing waits for yet."""
    last: _Last = {}
    inside: dict[ControlFlowContext, set[_Key]] = {}
    changed: set[tuple[_Key, ControlFlowContext | None]] = set()  # what is not only looked at, and where
    for op in ops:
        # A Merge with a NextIteration begins a loop; any other ends branches.
        if op.type in ("Merge", "RefMerge") and not any("NextIteration" in t._op.type for t in op._inputs):
            for place in range(len(op._inputs)):
                _wait_inside(op, place, last, changed)
        elif op.type in ("NextIteration", "RefNextIteration"):
            _wait_inside(op, 0, last, changed)
        if op.type in ("Merge", "RefMerge", "Exit", "RefExit"):
            _leave(op, inside, last, changed)
            continue
        context = op._control_flow_context
        for key in _touched(op):
            before = last.get((key, context), [])
            missing = [
                b for b in before if b not in op._control_inputs and all(t._op is not b for t in op._inputs)
            ]
            if missing:
                op._add_control_inputs(missing)
            # It waited for those before it: whoever waits for it waits for them.
            last[key, context] = [op]
            if op.type not in _READS:
                changed.add((key, context))
            if context is not None:
                inside.setdefault(context, set()).add(key)
    return list(dict.fromkeys(op for (_, context), ops in last.items() if context is None for op in ops))


def _leave(
    op: Operation,
    inside: dict[ControlFlowContext, set[_Key]],
    last: _Last,
    changed: set[tuple[_Key, ControlFlowContext | None]],
) -> None:
    """Lets the results of a branch or a loop stand for the effects inside it."""
    context = op._control_flow_context
    ended = [context] if op.type.endswith("Exit") else [c for c in inside if c.outer_context is context]
    around = context.outer_context if op.type.endswith("Exit") else context
    for block in ended:
        for key in inside.get(block, ()):
            last.setdefault((key, around), []).append(op)
            if (key, block) in changed:
                changed.add((key, around))
            if around is not None:
                inside.setdefault(around, set()).add(key)


def _wait_inside(
    op: Operation, place: int, last: _Last, changed: set[tuple[_Key, ControlFlowContext | None]]
) -> None:
    """Makes a value that leaves a branch or a turn wait for the effects there: else nobody would."""
    tensor = op._inputs[place]
    context = tensor._op._control_flow_context
    if context is None:
        return
    done = dict.fromkeys(o for at, ops in last.items() if at[1] is context and at in changed for o in ops)
    missing = [o for o in done if o is not tensor._op and o not in tensor._op._control_inputs]
    if missing:
        graph = op.graph
        with graph.as_default(), inside_of(graph, context), graph.control_dependencies(missing):
            op._update_input(place, apply("Identity", tensor))


def _touched(op: Operation) -> list[_Key]:
    """The resources that an operation changes or reads: variables by their handles, else everything."""
    # Tensor arrays order their reads and writes by what flows between them.
    if op.spec.variable or op.type in _UNORDERED | _PASSING or op.type.startswith(("TensorArray", "Stack")):
        return []
    handles = [_origin(t) for t in op._inputs if t.dtype.name == "resource"]
    if handles:
        return [*handles]
    if op.spec.updates:
        return [_origin(op._inputs[0])]
    return [_ALL] if op.spec.stateful and not op.spec.rng else []


def _origin(tensor: Tensor) -> Tensor:
    while tensor._op.type in ("Identity", "Enter", "Switch", "RefSwitch", "RefEnter") and tensor._op._inputs:
        tensor = tensor._op._inputs[0]
    return tensor
