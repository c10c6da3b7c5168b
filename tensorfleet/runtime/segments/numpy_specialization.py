"""The numpy life of a segment without what need not be done again.

Much of a training step only works out shapes, and some of it nobody uses: the gradient of a placeholder is there
because other gradients are kept in step with it. XLA drops both. In numpy they are dropped here, once the
shapes of the arguments have been seen before: what follows from them alone is kept from the first run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.runtime.segments.segment import Segment, SegmentStep

if TYPE_CHECKING:
    from tensorfleet.runtime.values import Signature, Values

_SHAPES = {"Shape", "ShapeN", "Size", "Rank", "VariableShape"}
# A value larger than this is computed again rather than kept.
_MOST_KEPT = 1 << 14
# Shapes that keep changing are not worth remembering.
_MOST_SIGNATURES = 8


class Trimmer:
    """What is left of a segment, by the shapes of its arguments."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._found: dict[Any, tuple[Values, list[SegmentStep]] | None] = {}
        some = any(s.op.type in _SHAPES for s in segment.steps)
        self.possible = not segment.guarded and (
            some or len(_used(segment, segment.steps)) < len(segment.steps)
        )

        self._whole: tuple[Values, list[SegmentStep] | None] = (segment.template, None)

    def key(self, inputs: Values, state: Values) -> Signature | None:
        """The shapes of all that comes in; None where there is nothing to leave out."""
        if not self.possible:
            return None
        segment = self._segment
        return (*[np.shape(x) for x in inputs], *[state[i].shape for i in (*segment.reads, *segment.owned)])

    def left(self, key: Signature | None) -> tuple[Values, list[SegmentStep] | None]:
        """The values to begin with and the steps to run for such shapes; None is all of them."""
        return self._found.get(key) or self._whole

    def learn(self, key: Signature, values: Values) -> None:
        """Notes what a run of all steps has computed. One that is not repeated is not worth looking at."""
        if key not in self._found:
            if len(self._found) >= _MOST_SIGNATURES:
                self._found.clear()
            self._found[key] = None
            return
        segment = self._segment
        known = _known(segment, values)
        template = [values[i] if i in known else value for i, value in enumerate(segment.template)]
        steps = [s for s in segment.steps if not (_is_pure(s) and known.issuperset(s.outs))]
        self._found[key] = template, _used(segment, steps)


def _is_pure(step: SegmentStep) -> bool:
    """Whether a step only computes values from values."""
    return not step.updates and step.rng is None and not step.op.spec.stateful


def _known(segment: Segment, values: Values) -> set[int]:
    """The slots whose values follow from the shapes of the arguments."""
    results = set(segment.output_codes)  # these are computed anew: whoever gets them may write into them
    known = {i for i, value in enumerate(segment.template) if value is not None}
    settled = known | set(segment.input_slots) | {~i for i in (*segment.reads, *segment.owned)}
    for step in segment.steps:
        outs = [o for o in step.outs if o is not None]
        if not settled.issuperset(step.args) or not known.issuperset(step.args[i] for i in step.static):
            settled -= {~u for u in step.updates}
            continue
        settled.update(outs, (~u for u in step.updates))
        from_shapes = step.op.type in _SHAPES or known.issuperset(step.args)
        small = all(getattr(values[o], "nbytes", _MOST_KEPT) < _MOST_KEPT for o in outs)
        if from_shapes and small and _is_pure(step) and results.isdisjoint(outs):
            known.update(outs)
    return known


def _used(segment: Segment, steps: list[SegmentStep]) -> list[SegmentStep]:
    """The steps that change something, may fail, or compute what is needed."""
    needed = set(segment.output_codes)
    found = []
    for step in reversed(steps):
        if not _is_pure(step) or step.kernel.checks or not needed.isdisjoint(step.outs):
            needed.update(step.args)
            found.append(step)
    return found[::-1]
