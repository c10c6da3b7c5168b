"""Find the operations that only prepare indices, and keep them out of XLA's programs.

Rows are gathered and scattered on the host, by indices that are mostly fed or sampled there. Sending these
through a compiled program, only to reshape or join them, costs more than the operation. So does a program for
every number of elements that a host operation may give, where the result always has the same shape, or where it
only goes on to the host: the sums over equal indices that a sparse update begins with, and what is made of them.
"""

from __future__ import annotations

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import PartKind, Plan

_MOVES = {"Cast", "ConcatV2", "ExpandDims", "Identity", "Pack", "Reshape", "Squeeze", "StopGradient"}
_COUNTS = {"GatherNd", "GatherV2", "Prod", "Shape", "Size", "StridedSlice"}
_COMPARES = {"Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual"}
# Members of an enum are slow to look up in Python 3.11, and this one is compared with for every operation.
_SEGMENT = PartKind.SEGMENT
_HOST = {PartKind.GATHER, PartKind.HOST, PartKind.SAME}
# What an optimizer makes of the sums over equal indices before it updates rows by them.
_ARITHMETIC = {"Add", "AddV2", "Cast", "Div", "Identity", "Mul"}
_ARITHMETIC |= {"Neg", "RealDiv", "Rsqrt", "Sqrt", "Square", "Sub"}
_MAX_FILL_ELEMENTS = 1 << 16  # elements that numpy fills as fast as XLA


def index_ops(plan: Plan, kinds: dict[Operation, PartKind], known: set[Tensor]) -> set[Operation]:
    """The operations of segments that are better done in numpy, beside the host operations they serve."""
    able: set[Operation] = set()
    for op, kind in kinds.items():
        if (
            kind is _SEGMENT
            and (_prepares(op, plan) or _hands_on(op, plan, kinds))
            and _on_host(op, plan, kinds, known, able)
        ):
            able.add(op)
    result = _for_rows(_duplicates_summed(plan, kinds), kinds)
    serving: set[Operation] = set()
    for op in reversed(kinds):
        if op in able and (op in serving or op.type == "SparseToDense"):
            result.add(op)
        if op in result or kinds[op] is not _SEGMENT:
            serving.update(t._op for t in op._inputs if t not in known)
    return result


def _prepares(op: Operation, plan: Plan) -> bool:
    if "/device:CPU" not in plan.devices[op] or op in plan.guards or plan.nested:
        return False
    if op.type == "SparseToDense":
        size = op._outputs[0].shape.num_elements()
        return (size is None or size <= _MAX_FILL_ELEMENTS) and not op._inputs[0].shape.is_fully_defined()
    if op.type in _COMPARES:  # ids with the least of them, to find those to leave out
        return op._inputs[0].dtype.is_integer
    return op.type in _MOVES | _COUNTS and op._outputs[0].dtype.is_integer


def _hands_on(op: Operation, plan: Plan, kinds: dict[Operation, PartKind]) -> bool:
    """Whether an operation only hands on rows of a table."""
    plain = op.type == "Identity" and op not in plan.guards and not plan.nested
    return plain and kinds.get(op._inputs[0]._op) is PartKind.GATHER


def _duplicates_summed(plan: Plan, kinds: dict[Operation, PartKind]) -> list[Operation]:
    """The operations that add up rows of equal indices, as many as there happen to be, and those on such rows."""
    sums_of: dict[Operation, None] = {}
    for op, kind in kinds.items():
        if kind is not _SEGMENT or plan.nested or op in plan.guards or "/device:CPU" not in plan.devices[op]:
            continue
        if op.type == "UnsortedSegmentSum":
            unique = op._inputs[1]._op
            sums = unique.type == "Unique" and kinds.get(unique) in _HOST
        else:
            sums = op.type in _ARITHMETIC and any(t._op in sums_of for t in op._inputs)
        if sums:
            sums_of[op] = None
    return list(sums_of)


def _for_rows(sums: list[Operation], kinds: dict[Operation, PartKind]) -> set[Operation]:
    """Those of `sums` that nothing needs but updates by rows."""
    result: set[Operation] = set()
    for op in reversed(sums):
        users = [c for c in op._outputs[0]._consumers if c in kinds]
        if users and all(c in result or kinds[c] is PartKind.ROWS for c in users):
            result.add(op)
    return result


def _on_host(
    op: Operation, plan: Plan, kinds: dict[Operation, PartKind], known: set[Tensor], able: set[Operation]
) -> bool:
    """Whether all that an operation needs is there before any segment has run."""
    return all(
        (op, i) not in plan.live and (t in known or t._op in able or kinds.get(t._op, _SEGMENT) in _HOST)
        for i, t in enumerate(op._inputs)
    )
