"""Calling the functions of `map`, `filter` and the rest: element by element, or a whole block at a time.

A function is planned like any graph and run by the same runtime. When nothing inside has an effect, a block of
elements goes through it operation by operation instead: most kernels take many elements as easily as one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorfleet.api.data.blocks import Block, Column, Element, Values, column_of, row
from tensorfleet.api.data.drawing import Draft, drawn, draws
from tensorfleet.base import errors
from tensorfleet.base.types import Array
from tensorfleet.graph.functions import FunctionGraph
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.sparse_tensor import SparseTensorValue
from tensorfleet.ops.array.slicing import slice_each
from tensorfleet.ops.input.example_ops import parse_each
from tensorfleet.passes.pipeline import make_plan
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import ordered
from tensorfleet.runtime.devices import local_device_names
from tensorfleet.runtime.engine import shared_pool
from tensorfleet.runtime.resources import RandomStreams
from tensorfleet.runtime.scheduling.host_ops import StepHostContext
from tensorfleet.runtime.scheduling.program import Program
from tensorfleet.runtime.scheduling.step import ExecutionContext

if TYPE_CHECKING:
    from tensorfleet.graph.kernel_types import Event, Wakeable
    from tensorfleet.kernels.interruptible_calls import Call
    from tensorfleet.state.long_waits import LongWait


class CallStep(ExecutionContext):
    """The step in which a function runs: that of its caller, with random streams of its own."""

    __slots__ = ("_step",)

    def __init__(self, step: ExecutionContext, streams: RandomStreams | Draft) -> None:
        # The constructor of the base class is left out: it makes a lock and a set for each call, and the caller's
        # step does the waiting.
        self._step = step
        self.resources = step.resources
        self.private = step.private
        self.deadline = step.deadline
        self.streams = streams  # type: ignore[assignment]  # kernels only call `take`, which a Draft has
        self.asker = self.trace = self.observer = self.versions = None

    @property
    def reason(self) -> errors.OpError | None:  # type: ignore[override]  # `cancel` below never sets it
        """Why the caller's step was cancelled, or None."""
        return self._step.reason

    def wait(self, event: Event, what: str, long: LongWait | None = None) -> None:
        """Waits in the caller's step."""
        self._step.wait(event, what, long)

    def stoppable(self, call: Call) -> Any:
        """Calls a Python function in the caller's step."""
        return self._step.stoppable(call)

    def hold(self, held: Wakeable) -> None:
        """Has the caller's step call `held.set()` when it ends, unless it is let go before."""
        self._step.hold(held)

    def release(self, held: Wakeable) -> None:
        """Takes back a `hold`."""
        self._step.release(held)

    def cancel(self, reason: errors.OpError) -> None:
        """Does nothing: the exception alone tells the caller of a failure inside."""


class DatasetFunction:
    """A function's body with the values it captured."""

    def __init__(self, graph: FunctionGraph, captured: Sequence[Any]) -> None:
        self.graph = graph
        self._captured = list(captured)
        self._streams = RandomStreams()
        self._program: Program | None = None
        self._planning = threading.Lock()
        self._pool = shared_pool()
        #: the arguments of a call, and after them the captured tensors
        self._arguments = [*graph.inputs, *graph.captures.values()]
        self._together: _BlockProgram | None = _BlockProgram.of(graph, self._arguments, len(self._captured))
        self._drawing = threading.Lock()

    @property
    def by_block(self) -> bool:
        """Whether blocks go through it operation by operation."""
        return self._together is not None

    def call(self, arguments: Sequence[Any], step: ExecutionContext) -> Element:
        """The function's results for one element."""
        # Read without the lock: a program never changes once it is planned.
        program = self._program
        if program is None:
            with self._planning:
                program = self._program = self._program or self._plan(step)
        inner = CallStep(step, self._streams)
        results = program.run(inner, [*arguments, *self._captured], self._pool)
        return [
            r if isinstance(r, np.ndarray) or not hasattr(r, "__array__") else np.asarray(r) for r in results
        ]

    def _plan(self, step: ExecutionContext) -> Program:
        graph = self.graph
        # Nothing fetches an operation that only has effects; as in TensorFlow, it runs all the same.
        effects = [op for op in graph._ops if (op.spec.stateful or op.spec.updates) and not op.spec.variable]
        placer = Placer(local_device_names(None)[:1], soft=True)
        return Program(make_plan(graph, graph.outputs, effects, self._arguments, placer), step.resources)

    def call_block(self, block: Block, step: ExecutionContext) -> list[Column] | None:
        """The columns of results for a block; None when the elements must go one by one."""
        if self._together is None:
            return None
        try:
            with np.errstate(all="ignore"):
                if not self._together.draws:
                    return self._together.run(block, self._captured, CallStep(step, self._streams))
                # Threads draw one block after the other: the order of the numbers is that of the elements.
                with self._drawing:
                    # If the block fails, nothing was drawn, and its elements draw the same numbers one by one.
                    draft = Draft(self._streams)
                    result = self._together.run(block, self._captured, CallStep(step, draft))
                    draft.keep()
                return result
        except Exception:  # one by one they tell which element it was
            return None


#: The columns of an operation's results; None when its rule does not fit and the elements must go one by one.
_Results: TypeAlias = "Sequence[Column] | None"
_Rule: TypeAlias = Callable[[Operation, Values, Values, int], _Results]

# One kernel call does the same to any number of elements.
_ELEMENTWISE = {"Abs", "Add", "AddV2", "Cast", "Ceil", "Div", "Equal", "Exp", "Floor", "FloorDiv", "FloorMod"}
_ELEMENTWISE |= {
    "Greater",
    "GreaterEqual",
    "Identity",
    "IsFinite",
    "IsInf",
    "IsNan",
    "Less",
    "LessEqual",
    "Log",
}
_ELEMENTWISE |= {"Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "Neg"}
_ELEMENTWISE |= {"NotEqual", "Pow", "RealDiv", "Relu", "Relu6", "Round", "Rsqrt", "Sigmoid", "Sign", "Sqrt"}
_ELEMENTWISE |= {"Square", "SquaredDifference", "StopGradient", "Sub", "Tanh", "TruncateDiv"}
# These have to do with variants that are no datasets.
_SPARSE = {"FleetSparseToVariant", "FleetVariantToSparse"}
_CONTROL = {
    "Switch",
    "Merge",
    "Enter",
    "Exit",
    "NextIteration",
    "LoopCond",
    "RefSwitch",
    "RefMerge",
    "RefEnter",
}


class _BlockProgram:
    """A function's operations in order, each with the way a block goes through it."""

    def __init__(
        self, graph: FunctionGraph, ops: list[Operation], arguments: list[Tensor], captured: int
    ) -> None:
        self._inputs = arguments[: len(arguments) - captured]
        self._captures = arguments[len(arguments) - captured :]
        self._outputs = list(graph.outputs)
        fed = {*self._inputs, *self._captures}
        self._steps = [(op, Kernel(op), _RULES.get(op.type)) for op in ops if op._outputs[0] not in fed]
        self.draws = any(draws(op) for op in ops)

    @classmethod
    def of(cls, graph: FunctionGraph, arguments: list[Tensor], captured: int) -> _BlockProgram | None:
        """For functions without effects (but on random streams), branches, variables or heavy work."""
        needed: set[Operation] = set()
        stack = [t._op for t in graph.outputs]
        while stack:
            op = stack.pop()
            if op not in needed:
                needed.add(op)
                stack.extend(t._op for t in op._inputs)
                stack.extend(op._control_inputs)
        # Effects count even when no output needs them.
        for op in graph._ops:
            spec = op.spec
            if (spec.stateful or spec.updates or spec.variable) and not (_makes_dataset(op) or draws(op)):
                return None
        for op in needed:
            spec = op.spec
            if (
                op.type in _CONTROL
                or (spec.rng and not draws(op))
                or spec.heavy
                or spec.blocks
                or spec.reads
                or _makes_dataset(op)
            ):
                return None
            if not op._outputs:
                return None
        return cls(graph, ordered(needed, set(arguments)), arguments, captured)

    def run(self, block: Block, captured: list[Any], step: ExecutionContext) -> list[Column]:
        """The columns of results."""
        n = block.size
        many: Values = dict(zip(self._inputs, block.columns, strict=True))
        once: dict[Tensor, Any] = dict(zip(self._captures, captured, strict=True))
        for op, kernel, rule in self._steps:
            results: _Results = None
            if draws(op):
                results = drawn(op, kernel, many, once, n, step.streams)
                if results is None:
                    results = _one_by_one(op, kernel, many, once, n, step)
                many.update(zip(op._outputs, results, strict=True))
                continue
            # The same for all elements: computed once for the block.
            if all(t in once for t in op._inputs):
                first = StepHostContext(op, step) if op.spec.host else np
                once.update(zip(op._outputs, kernel.call(first, [once[t] for t in op._inputs]), strict=True))
                continue
            if op.type in _ANY_LENGTHS:
                results = _ANY_LENGTHS[op.type](op, many, once, n)
            elif not any(isinstance(many.get(t), list) for t in op._inputs):
                if op.type in _ELEMENTWISE:
                    results = kernel.call(np, _aligned(op, many, once, n))
                elif rule is not None:
                    results = rule(op, many, once, n)
            if results is None:
                results = _one_by_one(op, kernel, many, once, n, step)
            many.update(zip(op._outputs, results, strict=True))
        return [many[t] if t in many else _repeated(once[t], n) for t in self._outputs]


def _makes_dataset(op: Operation) -> bool:
    return op.type not in _SPARSE and any(t.dtype.name == "variant" for t in (*op._outputs, *op._inputs))


def _repeated(value: object, n: int) -> Column:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.broadcast_to(value, (n, *np.shape(value)))
    return [value] * n


def _aligned(op: Operation, many: Values, once: Values, n: int) -> list[Array]:
    """Arguments that broadcast against each other as those of one element do."""
    ranks = [np.ndim(many[t]) - 1 if t in many else np.ndim(once[t]) for t in op._inputs]
    top = max(ranks)
    result = []
    for t, rank in zip(op._inputs, ranks, strict=True):
        if t not in many:
            result.append(once[t])
        elif rank == top:
            result.append(many[t])
        else:
            column = many[t]
            result.append(column.reshape(n, *([1] * (top - rank)), *column.shape[1:]))
    return result


def _one_by_one(
    op: Operation, kernel: Kernel, many: Values, once: Values, n: int, step: ExecutionContext
) -> list[Column]:
    first = StepHostContext(op, step) if op.spec.host else np
    results = []
    for i in range(n):
        arguments = [row(many[t], i) if t in many else once[t] for t in op._inputs]
        results.append(kernel.call(first, arguments))
    return [column_of([_array(r) for r in column]) for column in zip(*results, strict=True)]


def _array(value: object) -> Array:
    return np.asarray(value) if not isinstance(value, np.ndarray) else value


# -- operations that treat a block in their own way --------------------------------------------------


def _parse(op: Operation, many: Values, once: Values, n: int) -> _Results:
    defaults = op._inputs[1:]
    if not all(t in once for t in defaults):
        return None
    return parse_each(many[op._inputs[0]].tolist(), [once[t] for t in defaults], op._attrs)


def _natural(op: Operation, many: Values, once: Values, n: int) -> _Results:
    """Operations whose first input may have any shape, which the outputs then start with."""
    if any(t in many for t in op._inputs[1:]):
        return None
    arguments = [many[op._inputs[0]], *(once[t] for t in op._inputs[1:])]
    return Kernel(op).call(None, arguments)


def _reshape(op: Operation, many: Values, once: Values, n: int) -> _Results:
    value, shape = op._inputs
    if value not in many or shape not in once:
        return None
    column = many[value]
    target = [int(d) for d in np.asarray(once[shape]).ravel()]
    size = int(np.prod(column.shape[1:], dtype=np.int64))
    if -1 in target:
        rest = int(np.prod([d for d in target if d >= 0], dtype=np.int64))
        target[target.index(-1)] = size // rest if rest else 0
    # The kernel raises the error, element by element.
    if any(d < 0 for d in target) or int(np.prod(target, dtype=np.int64)) != size:
        return None
    return (column.reshape(n, *target),)


def _expand(op: Operation, many: Values, once: Values, n: int) -> _Results:
    value, axis = op._inputs
    if value not in many or axis not in once:
        return None
    column, at = many[value], int(once[axis])
    rank = column.ndim - 1
    if not -rank - 1 <= at <= rank:
        return None
    return (np.expand_dims(column, at + 1 if at >= 0 else at),)


def _pack(op: Operation, many: Values, once: Values, n: int) -> _Results:
    axis = op._attrs["axis"]
    parts = [many[t] if t in many else _repeated(once[t], n) for t in op._inputs]
    return (np.stack(parts, axis + 1 if axis >= 0 else axis),)


def _sliced(op: Operation, many: Values, once: Values, n: int) -> _Results:
    value, *limits = op._inputs
    if value not in many or any(t in many for t in limits):
        return None
    return (slice_each(op, many[value], *(once[t] for t in limits)),)


def _reduced(op: Operation, many: Values, once: Values, n: int) -> _Results:
    value, axes = op._inputs
    if value not in many or axes not in once:
        return None
    column = many[value]
    rank = column.ndim - 1
    inside = [a + rank if a < 0 else a for a in np.ravel(once[axes]).tolist()]
    if any(not 0 <= a < rank for a in inside):
        return None
    return Kernel(op).call(np, [column, np.array([a + 1 for a in inside], np.int64)])


def _one_hot(op: Operation, many: Values, once: Values, n: int) -> _Results:
    indices, *rest = op._inputs
    if op._attrs["axis"] != -1 or any(t in many for t in rest):
        return None
    return Kernel(op).call(np, [many[indices], *(once[t] for t in rest)])


def _gather(op: Operation, many: Values, once: Values, n: int) -> _Results:
    """Rows of one table for all elements."""
    params, indices, axis = op._inputs
    if params in many or axis in many or int(once[axis]) != 0 or op._attrs["batch_dims"]:
        return None
    return Kernel(op).call(np, [once[params], many[indices], once[axis]])


def _shape(op: Operation, many: Values, once: Values, n: int) -> _Results:
    """The shapes of rows that may differ, if only in their lengths."""
    (column,) = (many[t] for t in op._inputs)
    kind = op._attrs["out_type"].np_dtype
    if isinstance(column, np.ndarray):
        return (np.broadcast_to(np.array(column.shape[1:], kind), (n, column.ndim - 1)),)
    shapes = [np.shape(v) for v in column]
    if any(
        len(s) != len(shapes[0]) or not isinstance(v, np.ndarray) for s, v in zip(shapes, column, strict=True)
    ):
        return None
    return (np.array(shapes, kind).reshape(n, len(shapes[0])),)


def _size(op: Operation, many: Values, once: Values, n: int) -> _Results:
    (column,) = (many[t] for t in op._inputs)
    if isinstance(column, list) and not all(isinstance(v, np.ndarray) for v in column):
        return None
    sizes = [v.size for v in column] if isinstance(column, list) else [column.size // n] * n
    return (np.array(sizes, op._attrs["out_type"].np_dtype),)


def _sparse(op: Operation, many: Values, once: Values, n: int) -> _Results:
    parts = [many[t] if t in many else [once[t]] * n for t in op._inputs]
    return ([SparseTensorValue(*each) for each in zip(*parts, strict=True)],)


def _to_dense(op: Operation, many: Values, once: Values, n: int) -> _Results:
    """Sparse vectors as dense ones, all of them in one array."""
    parts: list[Any] = [many.get(t) for t in op._inputs]
    places, shape, values, default = parts
    lists = isinstance(places, list) and isinstance(values, list) and default is None
    if not lists or not isinstance(shape, np.ndarray) or shape.shape != (n, 1):
        return None
    if any(p.ndim != 2 or v.ndim != 1 or len(p) != len(v) for p, v in zip(places, values, strict=True)):
        return None
    lengths = shape[:, 0]
    row = np.repeat(np.arange(n), [len(p) for p in places])
    column = np.concatenate(places)[:, 0]
    in_order = (column[1:] > column[:-1]) | (row[1:] != row[:-1])
    if not in_order.all() or (column < 0).any() or (column >= lengths[row]).any():
        return None  # one by one, the kernel raises the error
    ends = np.cumsum(lengths)
    flat = np.concatenate(values)
    out = np.full(int(lengths.sum()), once[op._inputs[3]], flat.dtype)
    out[(ends - lengths)[row] + column] = flat
    return ([out[end - size : end] for end, size in zip(ends.tolist(), lengths.tolist(), strict=True)],)


# Rules for columns whose rows differ in length.
_ANY_LENGTHS: dict[str, _Rule] = {
    "FleetSparseToVariant": _sparse,
    "SparseToDense": _to_dense,
    "Shape": _shape,
    "Size": _size,
}

_RULES: dict[str, _Rule] = {
    "ParseSingleExample": _parse,
    "DecodeRaw": _natural,
    "DecodeCSV": _natural,
    "Reshape": _reshape,
    "ExpandDims": _expand,
    "Pack": _pack,
    "StridedSlice": _sliced,
    "OneHot": _one_hot,
    "GatherV2": _gather,
    **dict.fromkeys(("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"), _reduced),
}
