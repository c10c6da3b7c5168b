"""The order of what a function does: each effect waits for those before it that it may have to do with."""

from __future__ import annotations

from typing import Any

from tensorfleet.graph.functions import FunctionGraph
from tensorfleet.graph.operation import Operation, Tensor

# Operations with a state whose order nobody sees.
_UNORDERED = {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "Multinomial"}
# What only hands values on, into branches and loops and from turn to turn.
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
_ALL = "everything"


def ordered(body: FunctionGraph) -> list[Operation]:
    """Makes effects wait for each other in the order they were made in; those that nothing waits for yet."""
    last: dict[Any, list[Operation]] = {}
    inside: dict[Any, set] = {}
    given = {t._op for t in (*body.inputs, *body.captures.values())}
    for op in list(body._ops):
        if op in given:
            continue
        if op.type in ("Merge", "RefMerge", "Exit", "RefExit"):
            _leave(op, inside, last)
            continue
        context = op._control_flow_context
        for key in _touched(op):
            before = last.get((key, context), [])
            missing = [
                b for b in before if b not in op._control_inputs and all(t._op is not b for t in op._inputs)
            ]
            if missing:
                op._add_control_inputs(missing)
            last[key, context] = [op]
            if context is not None:
                inside.setdefault(context, set()).add(key)
    return list(dict.fromkeys(op for (_, context), ops in last.items() if context is None for op in ops))


def _leave(op: Operation, inside: dict[Any, set], last: dict[Any, list[Operation]]) -> None:
    """What a branch or a loop did is done when its results are known."""
    context = op._control_flow_context
    ended = [context] if op.type.endswith("Exit") else [c for c in inside if c.outer_context is context]
    around = context.outer_context if op.type.endswith("Exit") else context
    for block in ended:
        for key in inside.get(block, ()):
            last.setdefault((key, around), []).append(op)
            if around is not None:
                inside.setdefault(around, set()).add(key)


def _touched(op: Operation) -> list[Any]:
    """What an operation changes or looks at: variables by their handle, else the world."""
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
