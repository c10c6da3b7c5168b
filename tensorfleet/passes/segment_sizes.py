"""Cut segments that XLA would take long to compile."""

from __future__ import annotations

from tensorfleet.passes.equal_ops import distinct_ops
from tensorfleet.passes.plan import Part, PartKind, Plan
from tensorfleet.passes.repetition import compiled_ops

# The time XLA needs to compile a program grows faster than the program: longer ones are cut.
_MAX_SEGMENT_OPS = 2000


def cut(plan: Plan, segment: Part) -> list[Part]:
    """A segment as several, none of which has more operations for XLA to compile than it does in a second or two."""
    if len(segment.ops) <= _MAX_SEGMENT_OPS:
        return [segment]
    parts: list[Part] = []
    compiled = _MAX_SEGMENT_OPS
    wanted = zip(compiled_ops(plan, segment.ops), distinct_ops(segment.ops), strict=True)
    for op, counts in zip(segment.ops, map(all, wanted), strict=True):
        if counts and compiled == _MAX_SEGMENT_OPS:
            parts.append(Part(PartKind.SEGMENT, [], plan.devices[op]))
            compiled = 0
        parts[-1].ops.append(op)
        compiled += counts
    return parts
