"""Learns which values of a segment change their shape from run to run, so that the rest can be compiled without them.

The number of different words in a batch, of elements that a mask leaves, or of values in a sparse tensor is another one
in each step. One such value would give its whole segment a new signature every time, and XLA a new program to compile, or
none. So the shapes of a few runs are compared, and the program is divided where they differ (decision 17). Where most of
a segment depends on such a size, as all of a sentence's layers do on its length, it is padded to a few sizes instead
(decision 28).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.graph.operation import Operation
from tensorfleet.runtime.segments.padded_sizes import PaddedSizes
from tensorfleet.runtime.segments.segment import Segment, SegmentStep

if TYPE_CHECKING:
    from tensorfleet.base.types import Dims
    from tensorfleet.runtime.values import Signature

# A smaller segment gains nothing by being divided, nor does one of which less would be left.
_MIN_STEPS = 16
_MIN_STEPS_LEFT = 8
# So many different signatures show which shapes change; fewer where one program takes long to compile.
_ENOUGH_SIGNATURES = 6
_ENOUGH_SIGNATURES_OF_HEAVY = 3
# If new signatures are a smaller share of all runs, they come back, and each is worth a program of its own.
_MIN_NEW_SHARE = 0.6
_MIN_PADDED_SHARE = 0.5  # of a segment's operations
_MAX_OBSERVED_RUNS = 200  # then the shapes are settled, and looking at them would only cost time
_MAX_COUNT_ELEMENTS = 64  # of an integer value that only counts something or describes a shape


class Watch:
    """Whether a program is to be divided: its segments share this, and any of them may ask for it."""

    def __init__(self) -> None:
        self.asked = False


class Varying:
    """Compares the shapes of a segment's values between runs."""

    def __init__(self, segment: Segment, heavy: bool, watch: Watch) -> None:
        self._segment = segment
        self._watch = watch
        self._enough = _ENOUGH_SIGNATURES_OF_HEAVY if heavy else _ENOUGH_SIGNATURES
        self._signatures: set[Signature] = set()
        #: the lengths that the shapes of the inputs depend on, for programs that pad them
        self.lengths: PaddedSizes | None = None
        self._shapes: list[Dims | None] = [None] * len(segment.template)
        self._changing: set[int] = set()
        self.runs = 0
        self.over = len(segment.steps) < _MIN_STEPS  # whether nothing more is to be learned
        self._asks = False  # whether the segment is to be divided

    def note(self, inputs: Sequence[Any], values: Sequence[Any], pays: bool) -> None:
        """Looks at the values of a run, or at the tracers of one; `pays` tells whether compiling may gain anything."""
        self.runs += 1
        if self.over or self.runs > _MAX_OBSERVED_RUNS:
            self.over = True
            return
        signature = tuple([np.shape(x) for x in inputs])
        if signature in self._signatures:
            return
        self._signatures.add(signature)
        for slot, value in enumerate(values):
            if value is not None:
                shape, before = np.shape(value), self._shapes[slot]
                if before is not None and before != shape:
                    self._changing.add(slot)
                self._shapes[slot] = shape
        if len(self._signatures) >= max(self._enough, _MIN_NEW_SHARE * self.runs):
            self.over = True
            # Where most of a segment varies, one padded program serves several lengths. Else the rest needs only one.
            varies = len(self._varying_steps()) >= _MIN_PADDED_SHARE * len(self._segment.steps)
            self.lengths = PaddedSizes.learned(list(self._signatures)) if pays and varies else None
            if self.lengths is None:
                self.divide(pays)

    def divide(self, pays: bool) -> None:
        """Asks for the program to be divided, where that leaves enough."""
        self._asks = True
        self._watch.asked |= pays and bool(self.varying_ops())

    def varying_ops(self) -> list[Operation]:
        """The operations to keep apart; none, where too little would be left without them."""
        apart = self._varying_steps() if self._asks else []
        if not apart or len(self._segment.steps) - len(apart) < _MIN_STEPS_LEFT:
            return []
        return [step.op for step in apart]

    def _varying_steps(self) -> list[SegmentStep]:
        """The operations that take or make a value of changing shape, or count such values."""
        behind: set[int] = set()  # values that come from such operations
        apart: list[SegmentStep] = []
        for step in self._segment.steps:
            outs = [o for o in step.outs if o is not None]
            # Numbers computed from such values (how many there are, a shape made of that) go along.
            if not self._changing.isdisjoint((*step.args, *outs)) or (
                not behind.isdisjoint(step.args) and all(map(self._counts, outs)) and not step.updates
            ):
                apart.append(step)
                behind.update(outs)
        return apart

    def _counts(self, slot: int) -> bool:
        """Whether a value is only a number, or a few, that tell a shape."""
        tensor, shape = self._segment.tensor_of(slot), self._shapes[slot]
        return tensor.dtype.is_integer and shape is not None and int(np.prod(shape)) <= _MAX_COUNT_ELEMENTS
