"""Branches inside a segment: blocks of steps that run only if their conditions hold.

In numpy a block is run or left out. In XLA it becomes a conditional, unless its condition is known while
tracing; a Merge then selects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.passes.plan import Plan

if TYPE_CHECKING:
    from tensorfleet.base.types import Array, ArrayModule
    from tensorfleet.graph.kernel_types import Check
    from tensorfleet.graph.operation import Tensor
    from tensorfleet.runtime.segments.segment import Segment, SegmentStep
    from tensorfleet.runtime.segments.xla_barriers import Barriers
    from tensorfleet.runtime.values import Values

_CONCRETE = (np.ndarray, np.generic, bool)
Literals = tuple[tuple[int, bool], ...]


def guard(segment: Segment, plan: Plan, computed: set[Tensor]) -> bool:
    """Gives the steps of a segment their guards; returns whether there are any."""
    has_guards = False
    unguarded: set[int] = set()

    def coded(literals: Iterable[tuple[Tensor, bool]]) -> Literals:
        codes = ((segment.code_of(p, computed, plan.constants), value) for p, value in literals)
        return tuple(sorted(codes))

    for step in list(segment.steps):
        literals = plan.guards.get(step.op)
        if literals:
            step.guard = coded(literals)
            has_guards = True
        else:
            unguarded.update(~a for a in step.args if a < 0)
        choices = plan.merges.get(step.op)
        if choices is not None:
            step.choices = [coded(c) for c in choices]
            has_guards = True
    if has_guards:
        for step in segment.steps:
            if step.guard:  # if it does not run, the variable keeps its value, which must be there to be kept
                segment.reads += [u for u in step.updates if u not in segment.reads]
                segment.optional.update(u for u in (*step.updates, *(~a for a in step.args if a < 0)))
        segment.optional -= unguarded
    return has_guards


def alive(literals: Literals, values: Values, state: Values) -> Any:
    """Whether all conditions have the values they must have: True, False, or a tracer."""
    unknown = None
    for code, wanted in literals:
        value = values[code] if code >= 0 else state[~code]
        if value is None:
            return False
        if isinstance(value, _CONCRETE):
            if bool(value) != wanted:
                return False
        else:
            holds = value if wanted else ~value
            unknown = holds if unknown is None else unknown & holds
    return True if unknown is None else unknown


def settle_absent(plan: Plan) -> Callable[[Values], Values] | None:
    """A function for results of which some may lie in branches not taken; None if there are no branches."""
    if plan.told:  # another part of the step gets an empty array, which it does not look at
        instead = [np.zeros(0, t.dtype.np_dtype) for t in plan.fetches]
        return lambda found: [n if v is None else v for v, n in zip(found, instead, strict=True)]
    return _all_there if plan.guards else None


def _all_there(fetched: Values) -> Values:
    for i, value in enumerate(fetched):
        if value is None:
            raise errors.InvalidArgumentError(
                None, None, f"Retval[{i}] does not have value: it lies in a branch that was not taken."
            )
    return fetched


def run_guarded(
    segment: Segment,
    values: Values,
    state: Values,
    streams: Sequence[Any],
    jnp: ArrayModule | None,
    check: Check | None,
    traced: Barriers | None,
) -> None:
    """Runs the steps of a segment that has branches."""
    for key, block in groupby(segment.steps, key=lambda s: (s.guard, s.choices is not None)):
        steps = list(block)
        literals, merging = key
        holds = alive(literals, values, state) if literals else True
        if holds is False:
            continue
        if merging:
            for step in steps:
                _merge(step, values, state, jnp)
        elif holds is True:
            segment.interpret(values, state, streams, jnp, check, traced, steps)
        else:
            assert jnp is not None and check is not None  # a condition is unknown only while XLA traces
            _conditional(segment, steps, holds, values, state, streams, jnp, check)


def _merge(step: SegmentStep, values: Values, state: Values, jnp: ArrayModule | None) -> None:
    """Takes the input whose branch was taken; while tracing, perhaps a selection."""
    from tensorfleet.runtime.segments.segment import NeedsValue

    assert step.choices is not None
    result: Any = None
    index: Any = None
    for i, (code, literals) in enumerate(zip(step.args, step.choices, strict=True)):
        holds = alive(literals, values, state)
        value = values[code] if code >= 0 else state[~code]
        if holds is False or value is None:
            continue
        if result is None or holds is True:
            result, index = value, np.int32(i)
            if holds is True:
                break
            continue
        assert jnp is not None
        if np.shape(result) != np.shape(value):
            raise NeedsValue(next(c for c, _ in literals))
        result = jnp.where(holds, value, result)
        index = jnp.where(holds, np.int32(i), index)
    if result is None:
        raise errors.InternalError(None, step.op, f"No input of '{step.op.name}' is there.")
    for slot, output in zip(step.outs, (result, index), strict=True):
        if slot is not None:
            values[slot] = output


def _conditional(
    segment: Segment,
    steps: list[SegmentStep],
    holds: Array,
    values: Values,
    state: Values,
    streams: Sequence[Array],
    jnp: ArrayModule,
    check: Check,
) -> None:
    """Traces a block of steps as one conditional."""
    import jax

    from tensorfleet.runtime.segments.segment import NeedsValue

    own = {o for s in steps for o in s.outs if o is not None}
    for step in steps:
        if any(a >= 0 and a not in own and values[a] is None for a in step.args):
            # A block before this one was left out, on a known condition: this block's must be known, too.
            raise NeedsValue(step.guard[0][0])
    inside = set(map(id, steps))
    later = {a for s in segment.steps if id(s) not in inside for a in (*s.args, *_conditions(s)) if a >= 0}
    drawn = {o for s in steps if s.rng is not None for o in s.outs if o is not None}
    wanted = sorted(own & (later | drawn | {c for c in segment.output_codes if c >= 0}))
    written = sorted({u for s in steps for u in s.updates})
    known: dict[int, Any] = {}

    def run() -> tuple[Values, Values, Array]:
        flags: list[Array] = []

        def note(ok: Any, message: object, kind: object = None) -> None:
            if isinstance(ok, _CONCRETE):
                ok = np.all(ok)
            flags.append(jnp.all(ok))

        mine, current = list(values), list(state)
        segment.interpret(mine, current, streams, jnp, note, None, steps)
        known.clear()
        known.update((o, mine[o]) for o in wanted if isinstance(mine[o], _CONCRETE))
        ok = jnp.all(jnp.stack(flags)) if flags else jnp.array(True)
        return (
            [jnp.asarray(mine[o]) for o in wanted if o not in known],
            [jnp.asarray(current[w]) for w in written],
            ok,
        )

    shapes = jax.eval_shape(run)  # both branches of a conditional must give results of the same shapes

    def rest() -> tuple[Values, Values, Array]:
        outputs = [jnp.zeros(s.shape, s.dtype) for s in shapes[0]]
        return outputs, [jnp.asarray(state[w]) for w in written], jnp.array(True)

    for w, s in zip(written, shapes[1], strict=True):
        if np.shape(state[w]) != s.shape:
            raise NeedsValue(steps[0].guard[0][0])
    outs, updated, ok = jax.lax.cond(holds, run, rest)
    # Values that are known while tracing stay known: a shape or an axis may be computed from them.
    slots = [o for o in wanted if o not in known]
    for slot, value in (*zip(slots, outs, strict=True), *known.items()):
        values[slot] = value
    for w, value in zip(written, updated, strict=True):
        state[w] = value
    if any(s.kernel.checks for s in steps):
        check(ok, "")


def _conditions(step: SegmentStep) -> list[int]:
    return [code for literals in (step.guard, *(step.choices or ())) for code, _ in literals]
