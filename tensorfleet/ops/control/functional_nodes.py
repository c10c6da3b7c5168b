"""Branches and loops whose parts are functions: the ops If, Case, While and For."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.functions import FunctionGraph, find_function
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import UNKNOWN
from tensorfleet.ops.control.function_calls import call_body, kernels_of


def named_body(function: Any, tensors: Sequence[Tensor]) -> str:
    """The name in the graph's library of a function, for arguments of these types."""
    body = function._body([t.dtype.base_dtype for t in tensors])
    kernels_of(body)  # refuses what cannot be called
    if body.captures:
        raise ValueError(
            f"Function '{body.name}' uses tensors from around it: give them as arguments instead."
        )
    name: str = body.name
    return name


def _known(values: Sequence[Any]) -> bool:
    return all(isinstance(v, (np.ndarray, np.generic)) for v in values)


def _unchecked(*_: Any, **__: Any) -> None:
    """The `check` of kernels inside a traced branch or loop, which flags cannot leave."""


def _declared(op: Operation) -> list[TensorShape]:
    shapes = op._attrs.get("output_shapes") or []
    return list(shapes) if len(shapes) == len(op._outputs) else [UNKNOWN] * len(op._outputs)


def _truth(xp: ArrayModule, cond: Array) -> bool | Array:
    """Whether a condition holds as in TensorFlow: not zero, not an empty string; a non-scalar if it has elements."""
    if np.ndim(cond):
        return cond.size > 0
    value: Any = np.asarray(cond)[()] if isinstance(cond, (np.ndarray, np.generic)) else cond
    if isinstance(value, (bytes, str, np.generic)):
        return bool(value)
    traced: Array = xp.asarray(value) != 0
    return traced


def _refuse(text: str) -> NoReturn:
    raise errors.invalid(text)


_IF = (
    "cond: Tcond, input: list(Tin) -> output: list(Tout)",
    "Tcond: type; Tin: list(type); Tout: list(type); then_branch: func; else_branch: func; "
    "output_shapes: list(shape) = []",
)


def _if(
    xp: ArrayModule,
    cond: Array,
    args: list[Array],
    *,
    then_branch: str,
    else_branch: str,
    op: Operation,
    check: Check,
) -> tuple[Array, ...]:
    truth = _truth(xp, cond)
    branches = [find_function(op.graph, f) for f in (then_branch, else_branch)]
    if isinstance(truth, (bool, np.ndarray, np.generic)):
        return call_body(xp, branches[0 if truth else 1], args, check)
    import jax

    def branch(body: FunctionGraph) -> Callable[[list[Array]], tuple[Array, ...]]:
        return lambda given: tuple(xp.asarray(v) for v in call_body(xp, body, given, _unchecked))

    then, otherwise = map(branch, branches)
    return jax.lax.cond(truth, then, otherwise, [xp.asarray(a) for a in args])


def _case_shapes(op: Operation) -> list[TensorShape]:
    """Also puts functions that are given as such into the graph's library."""
    branches = op._attrs["branches"]
    op._attrs["branches"] = [named_body(f, op._inputs[1:]) if hasattr(f, "_body") else f for f in branches]
    return _declared(op)


def _case(
    xp: ArrayModule, index: Array, args: list[Array], *, branches: list[str], op: Operation, check: Check
) -> tuple[Array, ...]:
    bodies = [find_function(op.graph, f) for f in branches]
    last = len(bodies) - 1
    if isinstance(index, (np.ndarray, np.generic)):
        chosen = int(index) if 0 <= int(index) <= last else last
        return call_body(xp, bodies[chosen], args, check)
    import jax

    def branch(body: FunctionGraph) -> Callable[[list[Array]], tuple[Array, ...]]:
        return lambda given: tuple(xp.asarray(v) for v in call_body(xp, body, given, _unchecked))

    chosen = xp.where((index < 0) | (index > last), last, index)
    return jax.lax.switch(chosen, [branch(b) for b in bodies], [xp.asarray(a) for a in args])


for _name in ("Case", "StatelessCase"):
    op(
        _name,
        "branch_index: int32, input: list(Tin) -> output: list(Tout)",
        "Tin: list(type); Tout: list(type); branches: list(func) >= 1; output_shapes: list(shape) = []",
        shape=_case_shapes,
    )(_case)


_WHILE = (
    "input: list(T) -> output: list(T)",
    "T: list(type); cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = 10",
)


def _while(
    xp: ArrayModule, args: list[Array], *, cond: str, body: str, op: Operation, check: Check
) -> tuple[Array, ...]:
    test, step = find_function(op.graph, cond), find_function(op.graph, body)
    if len(test.outputs) != 1:
        _refuse(f"Expected a single scalar return value from WhileOp cond, got {len(test.outputs)} tensors.")
    own = len(args) - len(step.captures)
    if len(step.outputs) != own:
        _refuse(f"While loop body returned {len(step.outputs)} arguments. Expected: {own}.")
    values, around = args[:own], args[own:]
    if _known(args):
        while _truth(np, call_body(np, test, values, check)[0]):
            values = list(call_body(np, step, [*values, *around], check))
        return (*values, *around)
    import jax

    last = jax.lax.while_loop(
        lambda given: _truth(xp, call_body(xp, test, given, _unchecked)[0]),
        lambda given: tuple(xp.asarray(v) for v in call_body(xp, step, [*given, *around], _unchecked)),
        tuple(xp.asarray(a) for a in values),
    )
    return (*last, *around)


for _name in ("If", "StatelessIf"):
    op(_name, *_IF, shape=_declared)(_if)
for _name in ("While", "StatelessWhile"):
    op(_name, *_WHILE, shape=_declared)(_while)


@op(
    "For",
    "start: int32, limit: int32, delta: int32, input: list(T) -> output: list(T)",
    "T: list(type); body: func",
    shape=_declared,
    static=["start", "limit", "delta"],
)
def _for(
    xp: ArrayModule,
    start: Array,
    limit: Array,
    delta: Array,
    args: list[Array],
    *,
    body: str,
    op: Operation,
    check: Check,
) -> tuple[Array, ...]:
    for word, value in (("start", start), ("limit", limit), ("delta", delta)):
        if np.ndim(value):
            _refuse(f"{word} must be a scalar, but {list(np.shape(value))}")
    first, last, by = int(start), int(limit), int(delta)
    if (last - first) * by < 0 or (by == 0 and first != last):
        _refuse(f"Invalid start/limit/delta: {first} {last} {by}")
    step = find_function(op.graph, body)
    own = len(args) - len(step.captures)
    if len(step.outputs) != own:
        _refuse(f"For loop body returned {len(step.outputs)} arguments. Expected: {own}")
    values, around = args[:own], args[own:]
    for i in range(first, last, by) if by else ():
        values = list(call_body(xp, step, [np.int32(i), *values, *around], check))
    return (*values, *around)


not_differentiable("If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile", "For")
