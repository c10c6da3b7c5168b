"""Which part of a step operations are: waiting for input, reading variables, updating them, waiting for others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tensorfleet.base.counters import INPUT, PULL, PUSH, WAIT
from tensorfleet.passes.plan import variable_of

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Operation

_NEXT = {"IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional", "DatasetToSingleElement"}
_READER = "Reader"  # in the names of ops that read files
# A queue of single numbers or flags passes tokens between tasks; one of anything else is an input queue.
_TOKENS = {"int32", "int64", "bool"}
_MAKES_PUSH = {
    "AccumulatorApplyGradient",
    "SparseAccumulatorApplyGradient",
    "ResourceAccumulatorApplyGradient",
}


def part_of(ops: Iterable[Operation]) -> str | None:
    """The part of a step that these operations are together; None for computing."""
    kinds = {_kind(op) for op in ops}
    # Whoever waits spends the time with it; a stage that also updates something sends what it updates by.
    return next((kind for kind in (WAIT, INPUT, PUSH, PULL) if kind in kinds), None)


def _kind(op: Operation) -> str | None:
    if op.type in _NEXT or op.type.startswith(_READER):
        return INPUT
    if op.spec.blocks:
        return _kind_of_wait(op)
    if op.spec.updates or op.type in _MAKES_PUSH:
        return PUSH
    if op.spec.variable or any(variable_of(t) is not None for t in op._inputs[:1]):
        return PULL
    return None


def _kind_of_wait(op: Operation) -> str:
    if op.type.startswith("QueueEnqueue"):
        return PUSH
    if not op.type.startswith("QueueDequeue"):
        return WAIT
    types = [t.dtype.name for t in op._outputs]
    return WAIT if types and len(types) == 1 and types[0] in _TOKENS and _is_single(op) else INPUT


def _is_single(op: Operation) -> bool:
    """Whether a dequeue takes single numbers, as far as is known."""
    shape = op._outputs[0].shape
    many = op.type.startswith(("QueueDequeueMany", "QueueDequeueUpTo"))
    return shape.ndims is None or shape.ndims == int(many)
