"""Whether a segment is worth compiling: numpy runs it first, and the program has to be faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.runtime.segments.segment import Segment

if TYPE_CHECKING:
    from tensorfleet.runtime.segments.compiled import CompiledSegment
    from tensorfleet.runtime.values import Signature

# A segment this fast in numpy would only lose by a call into XLA.
_NEVER_BELOW = 60e-6
# One this slow is compiled after its first runs; in between, once it has cost as much as compiling might.
_AT_ONCE_ABOVE = 1e-3
_PATIENCE = 20e-3
# Many operations take long to compile, though they may take little time: numpy has had a tenth of that first.
_PATIENCE_BY_STEP = 0.8e-3
# What XLA is better at runs in numpy at first, for so many seconds: a fifth of what compiling takes.
_FIRST_TRY, _FIRST_TRY_BY_STEP = 0.25, 1e-3
_ONLY_XLA = {"FleetVjp"}
_TRIAL_RUNS = 12  # of a program tell whether it is faster than numpy was
# A program that has lost gets another trial after so many runs, once: perhaps the machine was busy. That one is longer.
_LOST_FOR = 200
_SECOND_TRIAL_RUNS = 60
_HOPELESS = 4  # times slower than numpy: it does not get one
# First runs are slow for reasons of their own; these many tell nothing yet, unless they are very slow.
_COLD_RUNS = 3
# A segment of so few operations has numpy timed again, for so many runs, if those are all there was or XLA was less than so
# many times faster; unless a run took so many seconds.
_FEW_STEPS = 8
_ASKED_AGAIN_RUNS = 6
_CLOSE = 2
_NOT_WORTH_ASKING = 0.3
# With more arguments and results than this, XLA takes minutes and gigabytes to compile a program.
_WIDEST = 1000
# These only pass values on: nothing for XLA to do (restoring a checkpoint is a segment of Assigns). The same is true of
# simple updates by values that come from elsewhere, as a parameter server gets them.
_MOVES = {"Assign", "AssignVariableOp", "Const", "Fill", "Identity", "NoOp", "ReadVariableOp"}


class Trial:
    """What numpy and the programs of a segment took, and which of them is to run it."""

    def __init__(self, segment: Segment, device: str) -> None:
        self.segment = segment
        self.programs: dict[Signature, CompiledSegment | None] = {}
        self.spent = 0.0
        self.runs = 0
        self.fastest = float("inf")  # one slow run may only mean a busy machine
        self.shapes: Signature | None = None  # of the inputs of the last run in numpy, if that took long
        self.compiling = float("inf")  # seconds that compiling took, the shortest time
        numeric = segment.numeric
        self.heavy = any(op.spec.heavy for op in segment.ops) or _large(segment)
        # Numpy may have the first run of all: a model that runs once is done before it would have been compiled.
        only_xla = any(op.type in _ONLY_XLA for op in segment.ops) or segment.guarded or segment.owned
        self.numpy_first = not only_xla and not _large(segment)
        works = any(
            not (step.op.type in _MOVES or (step.op.spec.elementwise and step.updates))
            for step in segment.steps
        )
        narrow = len(segment.inputs) + len(segment.outputs) <= _WIDEST
        self.possible = numeric and works and (narrow or self.heavy)
        self.on_trial = not self.heavy and "/device:CPU" in device  # whether numpy may turn out to be faster
        self.calls = 0
        self.fastest_call = float("inf")
        self.trial_runs = _TRIAL_RUNS
        self.lost = False  # a program lost, and may have a second trial
        self.doubted = False  # numpy gets some more runs before it is decided
        self.held = False  # while the loop around it waits to be compiled as a whole

    def timed(self, seconds: float, inputs: Sequence[Any] | None = None) -> None:
        """Notes what one run in numpy took."""
        self.shapes = shapes_of(inputs) if inputs is not None and seconds > _AT_ONCE_ABOVE else None
        self.runs += 1
        self.spent += seconds
        self.fastest = min(self.fastest, seconds)

    def called(self, seconds: float) -> None:
        """Notes what one run of a program took. Where numpy was faster, it takes over, but for one more trial later.

        Numpy may have had a run or two only, when these were slow; before it takes over, it runs again. So it does when it
        seemed slower, if there are only a few operations, which XLA may have nothing to gain from: its first runs had
        pages of memory to ask for, a library to import, threads to start.
        XLA divides even small work among threads, and waits for them; numpy does not.
        """
        self.calls += 1
        self.fastest_call = min(self.fastest_call, seconds)
        if self.calls >= self.trial_runs:
            self.on_trial = False
            cold = self.runs < _COLD_RUNS
            close = self.runs < _TRIAL_RUNS and self.fastest_call <= self.fastest < self.fastest_call * _CLOSE
            few = len(self.segment.steps) <= _FEW_STEPS and self.fastest < _NOT_WORTH_ASKING
            unsure = few and (cold or close)
            if (self.fastest_call > self.fastest or unsure) and len(self.programs) == 1:
                self.doubted = cold or unsure
                if self.doubted:
                    self.runs, self.fastest = 0, float("inf")
                else:
                    self._lose()

    def _lose(self) -> None:
        self.possible = False
        hopeless = self.fastest_call > _HOPELESS * self.fastest
        self.lost = self.trial_runs == _TRIAL_RUNS and not hopeless
        self.runs = 0

    def _second_trial(self) -> bool:
        """Whether a program that has lost is tried again now."""
        if not self.lost or self.runs < _LOST_FOR or self.fastest < _NEVER_BELOW:
            return False
        self.lost, self.possible, self.on_trial = False, True, True
        self.calls, self.fastest_call, self.trial_runs = 0, float("inf"), _SECOND_TRIAL_RUNS
        return True

    def seconds_to_try(self) -> float | None:
        """How long numpy may take for the first run of what XLA is better at; None for as long as it likes."""
        if self.runs or not (self.heavy and self.possible and self.numpy_first) or self.held:
            return None
        return _FIRST_TRY + _FIRST_TRY_BY_STEP * len(self.segment.steps)

    def pays(self) -> bool:
        """Whether XLA could gain anything, as far as is known."""
        return self.heavy or self.fastest >= _NEVER_BELOW

    def wanted(self) -> bool:
        """Whether the next run should be compiled."""
        if self.held or not (self.possible or self._second_trial()):
            return False
        if self.heavy:
            return self.runs > 0 or not self.numpy_first
        if self.doubted:
            if self.runs < _ASKED_AGAIN_RUNS:
                return False
            self.doubted = False
            if self.fastest_call > self.fastest:
                self._lose()
            return self.possible
        if self.runs < _COLD_RUNS and self.spent < _PATIENCE:
            return False
        if not self.pays():
            return False
        by_steps = _PATIENCE_BY_STEP * sum(step.op.spec.compiles_like for step in self.segment.steps)
        return self.spent > (by_steps if self.fastest > _AT_ONCE_ABOVE else max(_PATIENCE, by_steps))


def shapes_of(inputs: Sequence[Any]) -> Signature:
    """The shapes of arrays; None for what is missing."""
    return tuple([None if x is None else x.shape for x in inputs])


def _large(segment: Segment) -> bool:
    """Whether some random op makes enough numbers to be worth compiling even once."""
    for step in segment.rng_steps:
        for t in step.op._outputs:
            if (t.shape.num_elements() or 0) > 1 << 22:
                return True
    return False
