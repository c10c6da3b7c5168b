"""Traces the steps of a segment for XLA: a repetition becomes a loop, equal steps one, and a check a flag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.runtime.segments.batches import take_apart, trace_units
from tensorfleet.runtime.segments.repetition import Repetition, StepPieces
from tensorfleet.runtime.segments.segment import _CONCRETE, Segment

if TYPE_CHECKING:
    from tensorfleet.base.types import Array, ArrayModule, Dims
    from tensorfleet.runtime.segments.batches import Unit
    from tensorfleet.runtime.segments.segment import SegmentStep
    from tensorfleet.runtime.segments.xla_barriers import Barriers
    from tensorfleet.runtime.values import Values


# Of a stretch that was to be a loop and cannot be one. XLA would take minutes for more: numpy keeps the segment.
_MAX_UNROLLED_STEPS = 4000


class TooManySteps(Exception):
    """While tracing: a long repetition turns out not to be a loop."""


class Checks:
    """Collects the checks of kernels while they are traced."""

    def __init__(self, jnp: ArrayModule) -> None:
        self._jnp = jnp
        self.flags: list[Any] = []

    def __call__(
        self, ok: Any, message: Callable[[], str] | str, kind: Callable[..., errors.OpError] | None = None
    ) -> None:
        """Keeps a traced check; raises one that has failed already."""
        if not isinstance(ok, (bool, *_CONCRETE)):
            self.flags.append(self._jnp.all(ok))
        elif not np.all(ok):
            text = message() if callable(message) else message
            raise (kind or errors.InvalidArgumentError)(None, None, text)

    def passed(self) -> Array:
        """Whether none of the checks has failed so far."""
        return self._jnp.all(self._jnp.stack(self.flags)) if self.flags else self._jnp.asarray(True)


def ignore_check(ok: object, message: object, kind: object = None) -> None:
    """Drops a check: it is made in the iteration itself, not in its rehearsal."""


class Tracer:
    """One tracing of a segment's steps: fills `values` and `state` with what XLA will compute."""

    def __init__(
        self,
        segment: Segment,
        values: Values,
        state: Values,
        streams: Sequence[Any],
        barriers: Barriers | None,
    ) -> None:
        from tensorfleet.runtime.devices import load_jax

        self._jax, self._jnp = load_jax()
        self._segment = segment
        self._values = values
        self._state = state
        self._streams = streams
        self._barriers = barriers
        self._inside: list[tuple[Repetition, list[list[Dims]]]] = []  # loops, and the shapes in a round
        self.check = Checks(self._jnp)

    def trace(self, parts: StepPieces | list[Unit] | None) -> None:
        """Traces all steps: with repetitions as loops, with equal ones as one, or each by itself."""
        if parts is None or isinstance(parts, StepPieces):
            take_apart(self._jax, self._state)
            self._trace_pieces(parts)
            return
        trace_units(
            self._jax,
            self._segment,
            parts,
            self._values,
            self._state,
            self._streams,
            self.check,
            self._barriers,
        )

    def _trace_pieces(self, pieces: StepPieces | None) -> None:
        if pieces is None or self._segment.guarded:
            self._unrolled(None)
            return
        for piece in pieces.pieces:
            if not isinstance(piece, Repetition):
                self._unrolled(piece)
            elif not self._rolled(piece):
                rest = pieces.without_first(piece)
                self._unrolled(piece.steps[: piece.stretch.period])
                if rest is None or not self._rolled(rest):
                    if len(piece.steps) > _MAX_UNROLLED_STEPS:
                        raise TooManySteps
                    self._unrolled(piece.steps[piece.stretch.period :])

    def _unrolled(self, steps: list[SegmentStep] | None) -> None:
        self._segment.interpret(
            self._values, self._state, self._streams, self._jnp, self.check, self._barriers, steps
        )

    def _rolled(self, repetition: Repetition) -> bool:
        """Traces a repetition as a loop; False if that is impossible, and nothing has changed."""
        jnp, values = self._jnp, self._values
        barriers = None if self._barriers is None else self._barriers.inner()
        carried, last = repetition.carried, repetition.last
        again = [slot for _, slot in carried.values()]
        beside = [slot for slot in last if slot not in again]
        outs: list[Any] = []

        def one_round(taken: Values, constants: Values) -> tuple[Values, Values, list[Array]]:
            inner = [*values, *constants]
            for slot, value in zip(carried, taken, strict=True):
                inner[slot] = value
            check = Checks(jnp)
            self._segment.interpret(inner, self._state, (), jnp, check, barriers, repetition.body)
            outs[:] = [[inner[out] for out in step.outs if out is not None] for step in repetition.body]
            given = [jnp.asarray(inner[slot]) for slot in again]
            flags = [check.passed()] if check.flags else []
            return given, [jnp.asarray(inner[slot]) for slot in beside], flags

        constants = list(repetition.stacked.values())
        first = [jnp.asarray(values[slot]) for slot, _ in carried.values()]
        try:
            shapes = self._jax.eval_shape(one_round, first, [array[0] for array in constants])
        except Exception:  # unrolled it may be possible, or raises what the user is to see
            return False
        if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(first, shapes[0], strict=True)):
            return False
        empty = [jnp.zeros(one.shape, one.dtype) for one in shapes[1]]

        def body(carry: tuple[Values, Values], constants: Values) -> tuple[Any, list[Array]]:
            given, outputs, flags = one_round(carry[0], constants)
            return (given, outputs), flags

        (given, made), flags = self._jax.lax.scan(
            body, (first, empty), constants, length=repetition.stretch.rounds, unroll=repetition.unroll
        )
        for slot, value in zip((*again, *beside), (*given, *made), strict=True):
            if slot in last:
                values[last[slot]] = value
        self.check.flags += [jnp.all(flag) for flag in flags]
        if barriers is not None and self._barriers is not None:
            self._barriers.largest = max(self._barriers.largest, barriers.largest)
        self._inside.append((repetition, [[np.shape(value) for value in of_step] for of_step in outs]))
        return True

    def with_shapes(self) -> Values:
        """The values traced, with something of the right shape for those inside a loop."""
        result = list(self._values)
        for repetition, shapes in self._inside:
            for i, step in enumerate(repetition.steps):
                outputs = [out for out in step.outs if out is not None]
                for out, shape in zip(outputs, shapes[i % repetition.stretch.period], strict=True):
                    result[out] = self._jax.ShapeDtypeStruct(shape, np.bool_)
        return result
