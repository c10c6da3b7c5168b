"""Learns what of a segment changes its shape from run to run, so that the rest can be compiled without it.

How many different words a batch has, how many elements a mask leaves, how many values a sparse tensor holds: each step
has another number. One such value would give the whole segment it is part of a new signature every time, and XLA a new
program to compile, or none. So the shapes of a few runs are compared, and the program is divided where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.graph.operation import Operation
from tensorfleet.runtime.segments.segment import Segment, SegmentStep

if TYPE_CHECKING:
    from tensorfleet.base.types import Dims
    from tensorfleet.runtime.values import Signature

# A segment of so few operations has nothing to gain, nor has one of which so few would be left.
_FEW = 16
_LEFT = 8
# So many different signatures are enough to know; where one program takes long to compile, fewer.
_SIGNATURES = 6
_SIGNATURES_OF_HEAVY = 3
# Unless they are less than this part of all runs: then they come back, and each is worth a program of its own.
_NEW = 0.6
_LONG_ENOUGH = 200  # runs after which nothing is expected any more
_SMALL = 64  # elements of what only counts or tells a shape


class Watch:
    """Whether some segment of a program is to be divided, as one of them has found."""

    def __init__(self) -> None:
        self.asked = False


class Varying:
    """The shapes of a segment's values, as they were seen."""

    def __init__(self, segment: Segment, heavy: bool, watch: Watch) -> None:
        self._segment = segment
        self._watch = watch
        self._enough = _SIGNATURES_OF_HEAVY if heavy else _SIGNATURES
        self._signatures: set[Signature] = set()
        self._shapes: list[Dims | None] = [None] * len(segment.template)
        self._changing: set[int] = set()
        self.runs = 0
        self.over = len(segment.steps) < _FEW  # whether nothing more is to be learned
        self._asks = False  # whether the segment is to be divided

    def note(self, inputs: Sequence[Any], values: Sequence[Any], pays: bool) -> None:
        """Looks at the values of a run, or at what stands for them while a program is traced; `pays` if compiling may."""
        self.runs += 1
        if self.over or self.runs > _LONG_ENOUGH:
            self.over = True
            return
        signature = tuple([np.shape(x) for x in inputs])
        if signature in self._signatures:
            return
        self._signatures.add(signature)
        for slot, value in enumerate(values):
            if value is not None:
                shape, seen = np.shape(value), self._shapes[slot]
                if seen is not None and seen != shape:
                    self._changing.add(slot)
                self._shapes[slot] = shape
        if len(self._signatures) >= max(self._enough, _NEW * self.runs):
            self.over = self._asks = True
            self._watch.asked |= pays and bool(self.found())

    def found(self) -> list[Operation]:
        """The operations to keep apart; none, where too little would be left without them."""
        if not self._asks:
            return []
        behind: set[int] = set()  # values that come from such operations
        apart: list[SegmentStep] = []
        for step in self._segment.steps:
            outs = [o for o in step.outs if o is not None]
            if not self._changing.isdisjoint((*step.args, *outs)) or (
                not behind.isdisjoint(step.args) and all(map(self._counts, outs)) and not step.updates
            ):
                apart.append(step)
                behind.update(outs)
        if not apart or len(self._segment.steps) - len(apart) < _LEFT:
            return []
        return [step.op for step in apart]

    def _counts(self, slot: int) -> bool:
        """Whether a value is only a number, or a few, that tell a shape."""
        tensor, shape = self._segment.tensor_of(slot), self._shapes[slot]
        return tensor.dtype.is_integer and shape is not None and int(np.prod(shape)) <= _SMALL
