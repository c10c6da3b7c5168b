"""The interpreted mode of a segment, without the operations that need not run again.

Much of a training step only computes shapes, and nobody uses some of it: the gradient of a placeholder is there because
other gradients are kept in step with it. XLA drops both. In numpy they are dropped here, once the shapes of the arguments
have come before: values that follow from the shapes alone are kept from an earlier run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.runtime.segments.segment import Segment, SegmentStep

if TYPE_CHECKING:
    from tensorfleet.runtime.values import Signature, Values

_SHAPES = {"Shape", "ShapeN", "Size", "Rank", "VariableShape"}
# A larger value is computed again: to keep one for each signature would take more memory than it saves time.
_MAX_KEPT_BYTES = 1 << 14
_MAX_SIGNATURES = 8


class NumpySpecializer:
    """The steps of a segment that have to run, by the shapes of its arguments."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._by_shapes: dict[Any, tuple[Values, list[SegmentStep]] | None] = {}
        some = any(s.op.type in _SHAPES for s in segment.steps)
        self.possible = not segment.guarded and (
            some or len(_used(segment, segment.steps)) < len(segment.steps)
        )

        self._whole: tuple[Values, list[SegmentStep] | None] = (segment.template, None)

    def key(self, inputs: Values, state: Values) -> Signature | None:
        """The shapes of all inputs and variables; None where there is nothing to leave out."""
        if not self.possible:
            return None
        segment = self._segment
        return (*[np.shape(x) for x in inputs], *[state[i].shape for i in (*segment.reads, *segment.owned)])

    def steps_for(self, key: Signature | None) -> tuple[Values, list[SegmentStep] | None]:
        """The values to begin with and the steps to run for these shapes; None for all steps."""
        return self._by_shapes.get(key) or self._whole

    def learn(self, key: Signature, values: Values) -> None:
        """Learns from the values of a run of all steps, when its shapes come for the second time."""
        if key not in self._by_shapes:
            if len(self._by_shapes) >= _MAX_SIGNATURES:  # shapes that keep changing are not worth remembering
                self._by_shapes.clear()
            self._by_shapes[key] = None
            return
        segment = self._segment
        known = _known(segment, values)
        template = [values[i] if i in known else value for i, value in enumerate(segment.template)]
        steps = [s for s in segment.steps if not (_is_pure(s) and known.issuperset(s.outs))]
        self._by_shapes[key] = template, _used(segment, steps)


def _is_pure(step: SegmentStep) -> bool:
    """Whether a step only computes values from values."""
    return not step.updates and step.rng is None and not step.op.spec.stateful


def _known(segment: Segment, values: Values) -> set[int]:
    """The slots whose values follow from the shapes of the arguments."""
    results = set(segment.output_codes)  # computed anew each time: the caller may write into them
    known = {i for i, value in enumerate(segment.template) if value is not None}
    settled = known | set(segment.input_slots) | {~i for i in (*segment.reads, *segment.owned)}
    for step in segment.steps:
        outs = [o for o in step.outs if o is not None]
        if not settled.issuperset(step.args) or not known.issuperset(step.args[i] for i in step.static):
            settled -= {~u for u in step.updates}
            continue
        settled.update(outs, (~u for u in step.updates))
        from_shapes = step.op.type in _SHAPES or known.issuperset(step.args)
        small = all(getattr(values[o], "nbytes", _MAX_KEPT_BYTES) < _MAX_KEPT_BYTES for o in outs)
        if from_shapes and small and _is_pure(step) and results.isdisjoint(outs):
            known.update(outs)
    return known


def _used(segment: Segment, steps: list[SegmentStep]) -> list[SegmentStep]:
    """The steps that change something, may fail, or compute a value that is needed."""
    needed = set(segment.output_codes)
    used = []
    for step in reversed(steps):
        if not _is_pure(step) or step.kernel.checks or not needed.isdisjoint(step.outs):
            needed.update(step.args)
            used.append(step)
    return used[::-1]
