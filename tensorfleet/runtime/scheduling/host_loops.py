"""Loops that run on the host: read the condition, run the body, again and again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.passes.pipeline import divide_by_op
from tensorfleet.passes.plan import Guard, Part, Plan
from tensorfleet.runtime.segments.loop_analysis import traceable
from tensorfleet.runtime.segments.traced_loops import TracedLoop

if TYPE_CHECKING:
    from tensorfleet.runtime.resources import ResourceManager
    from tensorfleet.runtime.scheduling.items import Item, OpItem
    from tensorfleet.runtime.scheduling.program import Program, Slots
    from tensorfleet.runtime.scheduling.step import ExecutionContext
    from tensorfleet.runtime.trace import StepObserver
    from tensorfleet.runtime.values import Values


# A loop that has taken this long in all its runs is compiled as a whole. In one run that takes longer, its parts are.
_COMPILE_AFTER_SECONDS = 5e-3
_LONG_RUN_SECONDS = 0.3


class LoopItem:
    """A loop: the programs of its condition and of its body, and where its variables come from and go to."""

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        from tensorfleet.runtime.scheduling.program import Program

        loop: Any = part.ops[0]
        self.op = loop
        self.name = loop.name
        self.device = part.device
        cond, body = loop.cond, loop.body
        if plan.by_op:
            cond, body = divide_by_op(cond), divide_by_op(body)
        self.cond = Program(cond, resources)
        self.body = Program(body, resources)
        self.blocks = any(item.blocks for item in (*self.cond.items, *self.body.items))
        self.initial = [slots.of(t) for t in loop.initial]
        self.fixed = [slots.of(t) for t, _ in loop.fixed]
        self.results = [(i, slots.made_by(t)) for i, t in loop.results]
        self.count = len(loop.initial)
        self.traced: TracedLoop | None = None
        if traceable(loop) and not plan.by_op:
            self.traced = TracedLoop(loop, part.device, resources)
        compilers = [getattr(item, "compiler", None) for item in (*self.cond.items, *self.body.items)]
        heavy = any(compiler is not None and compiler.heavy for compiler in compilers)
        self.spent = _LONG_RUN_SECONDS if heavy else 0.0  # a heavy loop is compiled at its first run
        self.pace: float | None = None  # seconds of an iteration on the host
        self._hold(self.traced is not None)

    def _hold(self, held: bool) -> None:
        """Keeps parts of the loop from being compiled, because soon the whole of it will be."""
        for item in (*self.cond.items, *self.body.items):
            compiler = getattr(item, "compiler", None)
            if compiler is not None:
                compiler.held = held

    def follow(self, other: LoopItem) -> None:
        """Takes over what the same loop of another program has learned: its compiled form and its times."""
        self.traced, self.spent, self.pace = other.traced, other.spent, other.pace

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the loop until its condition fails."""
        variables = [values[s] for s in self.initial]
        fixed = [values[s] for s in self.fixed]
        if self.traced is not None and self.spent > _COMPILE_AFTER_SECONDS:
            results = self.traced.run(variables, fixed, ctx.streams, self.pace, lambda: self._look(ctx))
            if results is not None:
                for i, slot in self.results:
                    values[slot] = results[i]
                return
            self._hold(False)
        started = time.monotonic()
        variables = self._on_host(ctx, variables, fixed, started)
        self.spent += time.monotonic() - started
        for i, slot in self.results:
            values[slot] = variables[i]

    def _on_host(self, ctx: ExecutionContext, variables: Values, fixed: Values, started: float) -> Values:
        test, body, n = self.cond, self.body, self.count
        first, again = _filled(test, n, fixed), _filled(body, 2 * n, fixed)
        slots, work = test.feed_slots[:n], test.work
        inner, doing = body.feed_slots[: 2 * n], body.work
        wanted: list[Any] = test.fetch_slots
        nexts: list[Any] = body.fetch_slots
        lent = body.feed_slots[2 * n + len(fixed) :]
        turns = 0
        if ctx.trace is not None and ctx.trace.by_op:
            work, doing = _observed(work, ctx.trace), _observed(doing, ctx.trace)
        while True:
            self._look(ctx)
            turns += 1
            # The clock is read in every 64th iteration: a short body takes little longer than that.
            if not turns & 63 and time.monotonic() - started > _LONG_RUN_SECONDS:
                self._hold(False)
            now = first.copy()
            for slot, value in zip(slots, variables, strict=True):
                now[slot] = value
            for item in work:
                item.run(ctx, now)
            if not now[wanted[0]]:
                break
            then = again.copy()
            for slot, value in zip(inner, (*variables, *variables), strict=True):
                then[slot] = value
            for slot, source in zip(lent, wanted[1:], strict=True):
                then[slot] = now[source]
            for item in doing:
                item.run(ctx, then)
            variables = [then[s] for s in nexts]
        self.pace = max((time.monotonic() - started) / turns, 1e-9)
        return variables

    def _look(self, ctx: ExecutionContext) -> None:
        """Raises if the loop is to end."""
        if ctx.reason is not None:
            raise ctx.reason
        if ctx.deadline is not None and time.monotonic() > ctx.deadline:
            raise errors.DeadlineExceededError(
                None, self.op.start, "Timed out in a loop. Raise timeout_in_ms of tf.RunOptions."
            )


class _Observed:
    """An item that is seen by an observer in each iteration."""

    def __init__(self, item: Item, observer: StepObserver) -> None:
        self._item, self._observer = item, observer
        self.name, self.device, self.blocks = item.name, item.device, item.blocks

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the item."""
        self._observer.run(self._item, ctx, values)


def _observed(items: list[Item], observer: StepObserver) -> list[Item]:
    return [_Observed(item, observer) for item in items]


def _filled(program: Program, variables: int, fixed: Values) -> Values:
    """A program's values with everything that stays the same in every iteration."""
    values = program.template.copy()
    for slot, value in zip(program.feed_slots[variables:], fixed, strict=False):
        values[slot] = value
    return values


class Guarded:
    """An item that runs only if its conditions hold."""

    def __init__(self, item: OpItem, guard: Guard, slots: Slots) -> None:
        self.item = item
        self.blocks, self.device, self.name = item.blocks, item.device, item.name
        self.op = item.op
        self.literals = [(slots.of(p), value) for p, value in guard]

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the item, or does nothing."""
        if _holds(self.literals, values):
            self.item.run(ctx, values)


class MergeItem:
    """A Merge of Python objects: strings, handles."""

    blocks = False

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        (self.op,) = part.ops
        self.name = self.op.name
        self.device = part.device
        self.ins = [slots.of(t) for t in self.op._inputs]
        self.out, self.place = (slots.made_by(t) for t in self.op._outputs)
        self.choices = [[(slots.of(p), v) for p, v in choice] for choice in plan.merges[self.op]]

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Takes the input whose branch was taken."""
        for i, (slot, literals) in enumerate(zip(self.ins, self.choices, strict=True)):
            if _holds(literals, values) and values[slot] is not None:
                values[self.out], values[self.place] = values[slot], np.int32(i)
                return
        raise errors.InternalError(None, self.op, f"No input of '{self.op.name}' is there.")


def _holds(literals: list[tuple[int, bool]], values: Values) -> bool:
    return all(values[slot] is not None and bool(values[slot]) == wanted for slot, wanted in literals)
