"""The steps of a segment with its repetitions, as passes/repetition.py finds them, ready to be traced as loops."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.graph.kernels import Kernel
from tensorfleet.passes.repetition import (
    MIN_REPEATED_STEPS,
    Stretch,
    constant_token,
    exact,
    find_repetitions,
    made_token,
    may_repeat,
    numbered,
)

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.runtime.segments.segment import Segment, SegmentStep

# The constants of all rounds are put into the program: XLA takes long to compile one that has more in it.
_MAX_STACKED_BYTES = 1 << 20
# The loop's body has about so many operations, of several rounds if the block is shorter. Measured on chains of 1,000 and
# 10,000: with 2 a loop takes twice as long, with 64 compiling does.
_BODY_STEPS = 16


class Repetition:
    """A block of operations that repeats: its rounds, and what goes from one to the next."""

    def __init__(self, segment: Segment, stretch: Stretch) -> None:
        self.stretch = stretch
        self.steps = segment.steps[stretch.first : stretch.end]  # of all rounds
        self.unroll = max(_BODY_STEPS // stretch.period, 1)
        #: the block with the slots of its second round; constants that differ between rounds have slots of their own
        self.body: list[SegmentStep] = []
        #: slots of the first round that the second takes: the value before the first round, then the same in the second
        self.carried: dict[int, tuple[int, int]] = {}
        #: slots for the constants that differ, and their values in all rounds
        self.stacked: dict[int, Array] = {}
        #: results of the last round that are used behind it, by their slot in the second
        self.last: dict[int, int] = {}


class StepPieces:
    """The steps of a segment in order, cut into repetitions and the steps between them."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._last_use: dict[int, int] = {}  # the last step that takes each slot
        steps = segment.steps
        self.pieces: list[list[SegmentStep] | Repetition] = []
        if segment.guarded or len(steps) < MIN_REPEATED_STEPS:
            self.pieces.append(steps)
            return
        self._last_use.update({code: i for i, step in enumerate(steps) for code in step.args})
        self._last_use.update(dict.fromkeys(segment.output_codes, len(steps)))
        outs = [[out for out in step.outs if out is not None] for step in steps]
        done = 0
        for stretch in find_repetitions(numbered(_tokens(segment, self._last_use)), outs, self._last_use):
            repetition = _described(segment, stretch, self._last_use)
            if repetition is not None:
                if stretch.first > done:
                    self.pieces.append(steps[done : stretch.first])
                self.pieces.append(repetition)
                done = stretch.end
        if done < len(steps):
            self.pieces.append(steps[done:])

    def compiled_steps(self) -> int:
        """How many ordinary operations XLA takes as long to compile."""
        return sum(
            len(piece.body) * piece.unroll
            if isinstance(piece, Repetition)
            else sum([step.op.spec.compiles_like for step in piece])
            for piece in self.pieces
        )

    def without_first(self, repetition: Repetition) -> Repetition | None:
        """A repetition without its first round, which may only have brought a value to its shape."""
        first, period, rounds = repetition.stretch
        return _described(self._segment, Stretch(first + period, period, rounds - 1), self._last_use)


def _tokens(segment: Segment, last_use: Mapping[int, int]) -> Iterable[Hashable]:
    """What each step has in common with those it may repeat; None for one that must not."""
    makers: dict[int, tuple[int, int]] = {}  # slot → the step that makes it, and as which of its results
    for i, step in enumerate(segment.steps):
        kernel = step.kernel
        if not may_repeat(step.op.spec) or type(kernel) is not Kernel:
            yield None
        else:
            arguments: list[Hashable] = []
            for position, code in enumerate(step.args):
                maker = makers.get(code)
                if maker is not None:
                    arguments.append(made_token(i, maker, last_use[code]) or code)
                else:
                    constant = segment.template[code] if code >= 0 else None
                    arguments.append(constant_token(constant, position in step.static) or code)
            grouped = None if kernel.groups is None else tuple(kernel.groups)
            yield (kernel.function, grouped, *map(exact, kernel.attrs.values()), *arguments)
        for position, out in enumerate(step.outs):
            if out is not None:
                makers[out] = i, position


def _described(segment: Segment, stretch: Stretch, last_use: Mapping[int, int]) -> Repetition | None:
    """A repetition with what its rounds take and make; None if they take more than a loop can hand on."""
    result = Repetition(segment, stretch)
    first, period, rounds = stretch
    end = stretch.end
    steps = segment.steps
    second = steps[first + period : first + 2 * period]
    makers = {out: q for q, step in enumerate(steps[first : first + period]) for out in step.outs}
    own = {out for step in second for out in step.outs}
    spare = len(segment.template)
    for q, step in enumerate(second):
        args = list(step.args)
        for position, code in enumerate(step.args):
            if code < 0 or code in own:
                continue
            if code in makers:
                source = steps[first + makers[code]]
                again = second[makers[code]].outs[source.outs.index(code)]
                assert again is not None
                result.carried[code] = steps[first + q].args[position], again
                continue
            others = [steps[i].args[position] for i in range(first + q, end, period)]
            if others.count(code) == rounds:
                continue
            values = [segment.template[other] for other in others]
            if any(value is None for value in values):
                return None  # taken from further back than the last round
            if len({value.tobytes() for value in values}) > 1:
                args[position] = spare
                result.stacked[spare] = np.stack(values)
                spare += 1
        changed = copy.copy(step)
        changed.args = args
        result.body.append(changed)
    if sum(array.nbytes for array in result.stacked.values()) > _MAX_STACKED_BYTES:
        return None
    for step, last in zip(second, steps[end - period : end], strict=True):
        for out, at_last in zip(step.outs, last.outs, strict=True):
            if out is not None and at_last is not None and last_use.get(at_last, -1) >= end:
                result.last[out] = at_last
    return result
