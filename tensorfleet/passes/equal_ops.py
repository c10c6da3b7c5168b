"""Which operations of a long segment XLA has to compile, if equal ones are compiled as one.

`runtime/segments/batches.py` compiles them so. Here is only counted, to decide where a long segment is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorfleet.graph.operation import Operation

MIN_EQUAL = 8  # fewer equal operations are compiled one by one: XLA fuses them, and to stack their arguments is a copy
_UPDATES_LEVEL = -1  # updates wait for each other, whatever their gradients need


def distinct_ops(ops: Sequence[Operation]) -> list[bool]:
    """For each operation whether XLA has to compile it: of equal ones, only the first."""
    levels: dict[Operation, int] = {}
    keys: list[Hashable] = []
    for op in ops:
        levels[op] = level = 1 + max([levels.get(t._op, 0) for t in op._inputs], default=0)
        shapes = tuple([t._shape._d for t in op._inputs])
        keys.append((_UPDATES_LEVEL if op.spec.updates else level, op.type, shapes))
    equal = Counter(keys)
    counts, seen = [], set()
    for key in keys:
        counts.append(key not in seen or equal[key] < MIN_EQUAL)
        seen.add(key)
    return counts
