"""Whether a segment is worth compiling: numpy runs it first, and the program has to be faster."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensorfleet.runtime.segments import background
from tensorfleet.runtime.segments.batches import Batch, units_of
from tensorfleet.runtime.segments.repetition import StepPieces
from tensorfleet.runtime.segments.segment import Segment

if TYPE_CHECKING:
    from tensorfleet.runtime.segments.batches import Unit
    from tensorfleet.runtime.segments.compiled_segment import CompiledSegment
    from tensorfleet.runtime.values import Signature

# The table in docs/journey-of-a-step.md shows how these work together.

# A call into XLA takes about this long, whatever it computes: a faster segment would only lose.
_MIN_NUMPY_SECONDS = 60e-6
# A segment this slow is compiled after its first runs; a faster one when numpy has taken as long as compiling might.
_SLOW_RUN_SECONDS = 1e-3
_COMPILE_AFTER_SECONDS = 20e-3
# Compiling takes about 8 ms per operation, however fast it runs: numpy may take a tenth of that first.
_COMPILE_AFTER_SECONDS_PER_STEP = 0.8e-3
# Where numpy takes less than this for an operation, most of it is the call: ops are small, and there are many of them.
# Such a segment runs on in numpy while it is compiled beside the steps. Where an operation takes longer, a step waits for
# the program, because numpy and XLA would share the cores, and each take twice as long.
_CALL_SECONDS = 3e-6
# Small operations compile in about 0.3 ms, and no step waits for it: numpy may take a quarter of that first.
_COMPILE_BESIDE_AFTER_SECONDS_PER_STEP = 0.08e-3
# Convolutions and the like run in numpy for so long at first, a fifth of what compiling takes: a script that runs a
# model once is done before XLA would have been.
_FIRST_RUN_SECONDS, _FIRST_RUN_SECONDS_PER_STEP = 0.25, 1e-3
_ONLY_XLA = {"FleetVjp", "FleetJaxCall", "FleetJaxUpdate", "FleetResourceJaxUpdate"}
_TRIAL_RUNS = 12  # of a program, by which it must have beaten numpy's fastest run once
# A program that has lost gets one more trial, a longer one: the machine may have been busy.
_RUNS_BEFORE_SECOND_TRIAL = 200
_SECOND_TRIAL_RUNS = 60
_HOPELESS_RATIO = 4  # times slower than numpy: no second trial
# The first runs import libraries, fault pages in and start threads. So many say nothing, unless they are very slow.
_COLD_RUNS = 3
# In a segment of few operations XLA has little to fuse. Numpy is timed again if it had only cold runs, or if XLA won by
# less than the ratio; but not where one run takes long.
_MAX_RETIMED_STEPS = 8
_RETIMING_RUNS = 6
_CLOSE_RATIO = 2
_MAX_RETIMED_SECONDS = 0.3
# With more arguments and results than this, XLA takes minutes and gigabytes to compile a program.
_MAX_ARGUMENTS_AND_RESULTS = 1000
# A random op that makes more numbers than this is worth compiling even if it runs once.
_MANY_RANDOM_NUMBERS = 1 << 22
# These only pass values on: nothing for XLA to do (restoring a checkpoint is a segment of Assigns). The same is true of
# simple updates by values that come from elsewhere, as a parameter server gets them.
_MOVES = {"Assign", "AssignVariableOp", "Const", "Fill", "Identity", "NoOp", "ReadVariableOp"}


class Trial:
    """Times a segment in numpy and compiled, and decides which of them runs it."""

    def __init__(self, segment: Segment, device: str) -> None:
        self.segment = segment
        self.programs: dict[Signature, CompiledSegment | None] = {}
        self.spent = 0.0
        self.runs = 0
        self.fastest = float("inf")  # not the mean: a slow run may only mean a busy machine
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
        narrow = len(segment.inputs) + len(segment.outputs) <= _MAX_ARGUMENTS_AND_RESULTS
        self.possible = numeric and works and (narrow or self.heavy)
        self.on_trial = not self.heavy and "/device:CPU" in device  # whether numpy may turn out to be faster
        self.calls = 0
        self.fastest_call = float("inf")
        self.trial_runs = _TRIAL_RUNS
        self.lost = False  # a program lost, and may have a second trial
        self.doubted = False  # numpy gets some more runs before it is decided
        self.held = False  # while the loop around it waits to be compiled as a whole
        # Computed once: a segment that stays in numpy asks before every run.
        self._compiled_steps = sum(step.op.spec.compiles_like for step in segment.steps)
        self._calling = _CALL_SECONDS * len(segment.steps)
        self._sought = False  # whether it was looked for equal steps and repetitions
        self.batches = True  # whether equal steps may be compiled as one

    @cached_property
    def pieces(self) -> StepPieces:
        """The steps, with what repeats among them."""
        return StepPieces(self.segment)

    @cached_property
    def units(self) -> list[Unit] | None:
        """What is traced at once, if not all steps one by one. Made when the segment may be compiled: it takes some time."""
        return units_of(self.segment)

    def _count_compiled_steps(self) -> None:
        """Counts equal steps once, or where there are few of them, the rounds of a repetition."""
        if self.units is None:
            self._compiled_steps = self.pieces.compiled_steps()
            return
        traced = [
            step for unit in self.units for step in (unit.steps[:1] if isinstance(unit, Batch) else unit)
        ]
        self._compiled_steps = sum(step.op.spec.compiles_like for step in traced)

    def mostly_calls(self) -> bool:
        """Whether numpy takes its time for calling operations rather than for what they compute."""
        return not self.heavy and self.fastest < self._calling

    def timed(self, seconds: float, inputs: Sequence[Any] | None = None) -> None:
        """Notes what one run in numpy took."""
        self.shapes = shapes_of(inputs) if inputs is not None and seconds > _SLOW_RUN_SECONDS else None
        self.runs += 1
        self.spent += seconds
        self.fastest = min(self.fastest, seconds)

    def called(self, seconds: float) -> None:
        """Notes what one run of a program took. If numpy was faster, numpy takes over, but for one more trial later.

        If numpy had only a run or two, because these were slow, it is timed again before it takes over. It is also timed
        again when it seemed slower and the segment has few operations. XLA divides even small work among threads and
        waits for them; numpy does not.
        """
        self.calls += 1
        self.fastest_call = min(self.fastest_call, seconds)
        if self.calls >= self.trial_runs:
            self.on_trial = False
            cold = self.runs < _COLD_RUNS
            close = (
                self.runs < _TRIAL_RUNS
                and self.fastest_call <= self.fastest < self.fastest_call * _CLOSE_RATIO
            )
            few = len(self.segment.steps) <= _MAX_RETIMED_STEPS and self.fastest < _MAX_RETIMED_SECONDS
            unsure = few and (cold or close)
            if (self.fastest_call > self.fastest or unsure) and len(self.programs) == 1:
                self.doubted = cold or unsure
                if self.doubted:
                    self.runs, self.fastest = 0, float("inf")
                else:
                    self._lose()

    def _lose(self) -> None:
        self.possible = False
        hopeless = self.fastest_call > _HOPELESS_RATIO * self.fastest
        self.lost = self.trial_runs == _TRIAL_RUNS and not hopeless
        self.runs = 0

    def _second_trial(self) -> bool:
        """Gives a program that has lost its second trial, once numpy has run long enough."""
        if not self.lost or self.runs < _RUNS_BEFORE_SECOND_TRIAL or self.fastest < _MIN_NUMPY_SECONDS:
            return False
        self.lost, self.possible, self.on_trial = False, True, True
        self.calls, self.fastest_call, self.trial_runs = 0, float("inf"), _SECOND_TRIAL_RUNS
        return True

    def seconds_to_try(self) -> float | None:
        """How long numpy may take for the first run of a heavy segment; None for no limit."""
        if self.runs or not (self.heavy and self.possible and self.numpy_first) or self.held:
            return None
        return _FIRST_RUN_SECONDS + _FIRST_RUN_SECONDS_PER_STEP * len(self.segment.steps)

    def pays(self) -> bool:
        """Whether compiling could gain anything, as far as is known."""
        return self.heavy or self.fastest >= _MIN_NUMPY_SECONDS

    def wanted(self) -> bool:
        """Whether the next run should be compiled."""
        if self.held or not (self.possible or (self.lost and self._second_trial())):
            return False
        if self.heavy:
            return self.runs > 0 or not self.numpy_first
        if self.doubted:
            if self.runs < _RETIMING_RUNS:
                return False
            self.doubted = False
            if self.fastest_call > self.fastest:
                self._lose()
            return self.possible
        if self.runs < _COLD_RUNS and self.spent < _COMPILE_AFTER_SECONDS:
            return False
        if not self.pays():
            return False
        if not self._sought and self.spent > _COMPILE_AFTER_SECONDS:
            self._sought = True
            background.start(self._count_compiled_steps)
        each = _COMPILE_AFTER_SECONDS_PER_STEP
        if self.mostly_calls():
            each = _COMPILE_BESIDE_AFTER_SECONDS_PER_STEP
        by_steps = self._compiled_steps * each
        return self.spent > (
            by_steps if self.fastest > _SLOW_RUN_SECONDS else max(_COMPILE_AFTER_SECONDS, by_steps)
        )


def shapes_of(inputs: Sequence[Any]) -> Signature:
    """The shapes of arrays; None for a missing one."""
    return tuple([None if x is None else x.shape for x in inputs])


def _large(segment: Segment) -> bool:
    """Whether some random op makes enough numbers to be worth compiling even once."""
    for step in segment.rng_steps:
        for t in step.op._outputs:
            if (t.shape.num_elements() or 0) > _MANY_RANDOM_NUMBERS:
                return True
    return False
