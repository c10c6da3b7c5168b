"""A segment of operations as an item of a program: in numpy at first, and compiled once that pays."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.passes.plan import Part, Plan
from tensorfleet.runtime.resources import ResourceManager, VariableStore
from tensorfleet.runtime.scheduling.step import ExecutionContext
from tensorfleet.runtime.segments.compiled import Compiler
from tensorfleet.runtime.segments.compiled_segment import CompiledSegment
from tensorfleet.runtime.segments.numpy_specialization import NumpySpecializer
from tensorfleet.runtime.segments.segment import Segment, uninitialized
from tensorfleet.runtime.variable_packs import WriterLocks, release
from tensorfleet.runtime.xla_exit_guard import stay_outside

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.graph.operation import Operation
    from tensorfleet.runtime.scheduling.program import Slots
    from tensorfleet.runtime.segments.packing import Packing
    from tensorfleet.runtime.segments.segment import SegmentStep
    from tensorfleet.runtime.values import Values

# Operations between two looks at the clock, while numpy tries a heavy segment.
_STEPS_PER_LOOK = 8


class TooLong(Exception):
    """Numpy would take longer than compiling. Nothing has changed yet, so the segment can start over."""


class SegmentItem:
    """A segment with its variables' stores, running in numpy or compiled, whichever pays."""

    blocks = False

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        self.device = part.device
        self.name = part.ops[-1].name
        self.segment = Segment(part, plan, slots.same)
        self.compiler = Compiler(
            self.segment, part.device, any("/device:CPU" not in p.device for p in plan.parts)
        )
        self.ins = [slots.of(t) for t in self.segment.inputs]
        self.outs = [slots.of(t) for t in self.segment.outputs]
        self.stores = [resources.variable(v) for v in self.segment.variables]
        self.specializer = NumpySpecializer(self.segment)
        self.compiler.stores = self.stores
        self.writing = sorted((self.stores[w] for w in self.segment.writes), key=lambda s: s.order)
        self.locks = WriterLocks(self.writing)
        self.kept_shape = self.segment.kept_shape()
        self.owned = [s for s in self.writing if s in [self.stores[i] for i in self.segment.owned]]
        self.reading = self.segment.only_reads()
        #: for the staleness of gradients: the variables that it reads only, and those that it does not just assign to
        self.taking = {self.stores[i] for i in set(self.segment.reads).difference(self.segment.writes)}
        self.changing = {self.stores[i] for i in self.segment.advanced()}

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the segment and makes its variable updates visible, all or none."""
        if self.reading is not None:
            read = {i: self.stores[i].hand_out() for i in self.segment.reads}
            for slot, i in zip(self.outs, self.reading, strict=True):
                values[slot] = read[i]
            for i, value in read.items():
                if value is None:
                    raise uninitialized(self.segment.variables[i])
            if ctx.versions is not None:
                ctx.versions.note_read(self.taking)
            return
        if ctx.versions is not None:  # before it computes: that may take long
            ctx.versions.note_read(self.taking)
        try:
            self._compute(ctx, values)
        except TooLong:
            self.compiler.numpy_first = False
            self._compute(ctx, values)

    def _compute(self, ctx: ExecutionContext, values: Values) -> None:
        stay_outside()
        inputs = [values[i] for i in self.ins]
        compiled = self._program(inputs) if self.compiler.wanted() else None
        opened: list[VariableStore] = []
        results: list[Any] = []
        held: list[Any] = []
        packing: Packing | None = None
        packs: list[Any] = []
        try:
            if self.writing:
                self.locks.acquire(held)
            if ctx.observer is not None:
                ctx.observer.look(self, ctx, inputs)
            if compiled is not None:
                compiled, packs = self._still_valid(compiled, inputs, held)
                packing = compiled.packing if compiled is not None and packs else None
            state = self._state(self.segment.reads if packing is None else packing.reads)
            for store in self.owned if compiled is None else self._owned_by(compiled):
                store.gate.acquire()
                opened.append(store)
            if compiled is None:
                outputs = self._interpreted(ctx, inputs, state)
            else:
                outputs = self._in_xla(ctx, compiled, inputs, state, packs, results)
            for w, op in self.kept_shape.items():
                _need_same_shape(op, self.stores[w].value, state[w])
            if self.writing:
                self._publish(ctx, state, packing, results)
        except BaseException:
            self._replace_consumed(packing, results)
            raise
        finally:
            for store in opened:
                store.gate.release()
            if held:
                release(held)
        for slot, value in zip(self.outs, outputs, strict=True):
            values[slot] = value

    def _program(self, inputs: Values) -> CompiledSegment | None:
        """The program for this run if it is to be compiled, None for numpy.

        It is found before the locks are taken: to compile takes seconds, and other steps may read and write meanwhile.
        """
        compiler = self.compiler
        if self._lacks_optional():
            return None
        result = self._found(inputs)
        if result is None:
            return compiler.program(inputs, self._state(self.segment.reads))
        if compiler.varying is not None:
            compiler.varying.runs += 1
        return result

    def _found(self, inputs: Values) -> CompiledSegment | None:
        """The program for this run, if it is compiled already."""
        compiler = self.compiler
        keyed = compiler.keyed()
        state = self._state(keyed) if keyed or self.segment.owned else ()
        return compiler.programs.get(compiler.key(inputs, state))

    def _still_valid(
        self, compiled: CompiledSegment, inputs: Values, held: list[Any]
    ) -> tuple[CompiledSegment | None, list[Any]]:
        """The program and the arrays of its packs. We have the locks now: what it was chosen for may have changed before."""
        if self.compiler.static_variables:
            program = self._found(inputs)
            if program is None:
                return None, []
            compiled = program
        if not compiled.packing.packs:
            return compiled, []
        packs = compiled.packing.take(held)
        if packs is None:
            self.compiler.drop(compiled)
            return None, []
        return compiled, packs

    def _publish(
        self, ctx: ExecutionContext, state: Values, packing: Packing | None, results: list[Any]
    ) -> None:
        """Makes new values current."""
        if ctx.versions is not None:
            ctx.versions.note_update(self.changing, () if packing is None else packing.packs)
        if packing is None or not results:
            packing, writes = None, self.segment.writes
        else:
            writes = packing.writes
        for w in writes:
            if state[w] is not None:
                self.stores[w].swap(state[w])
        if packing is not None:
            packing.replace(results[0][1][len(writes) :])

    def _owned_by(self, compiled: CompiledSegment | None) -> list[VariableStore]:
        """The variables whose memory this run changes, in the order of their locks."""
        if compiled is None or not compiled.reused:
            return self.owned
        indices = (*self.segment.owned, *compiled.reused)
        return sorted((self.stores[i] for i in indices), key=lambda s: s.order)

    def _own(self, state: Values) -> None:
        """Puts arrays that may be changed into the state, for the tables that this segment owns."""
        for i in self.segment.owned:
            state[i] = None  # another reference would mean that somebody holds it
            state[i] = self.stores[i].writable()

    def _consume(self, state: Values, compiled: CompiledSegment) -> bool:
        """Puts arrays whose memory a program may reuse into the state. Whether some had to be copied.

        The arrays are lost if the program fails. So it gets copies the first time, when memory may turn out to be too
        small; but not of tables, which may be most of the memory.
        """
        disturbed = False
        for i in (*self.segment.owned, *compiled.reused):
            store = self.stores[i]
            state[i] = None  # another reference would mean that somebody holds it
            state[i] = store.consumable(kept=not compiled.proven and i in compiled.reused)
            disturbed |= compiled.proven and state[i] is not store.value
        return disturbed

    def _lacks_optional(self) -> bool:
        """Whether a variable that only branches need has no value; numpy can still run without it."""
        optional = self.segment.optional
        return bool(optional) and any(self.stores[i].read() is None for i in optional)

    def _state(self, reads: Iterable[int]) -> Values:
        """The values of some variables."""
        state: Values = [None] * len(self.stores)
        for i in reads:
            value = self.stores[i].read()
            if value is None and i not in self.segment.optional:
                raise uninitialized(self.segment.variables[i])
            state[i] = value
        for i in self.segment.owned:
            state[i] = self.stores[i].value
            if state[i] is None:
                raise uninitialized(self.segment.variables[i])
        return state

    def _interpreted(self, ctx: ExecutionContext, inputs: Values, state: Values) -> Values:
        if not self.segment.rng_steps:
            return self._in_numpy(ctx, inputs, state)
        # How far a stream moves is known only after drawing from it; other programs may have the same op.
        with ctx.streams.drawing([step.op for step in self.segment.rng_steps]):
            return self._in_numpy(ctx, inputs, state)

    def _in_numpy(self, ctx: ExecutionContext, inputs: Values, state: Values) -> Values:
        segment = self.segment
        if segment.owned:
            self._own(state)
        started = time.perf_counter()
        for i in segment.reads:
            if not isinstance(state[i], np.ndarray) and state[i] is not None:
                state[i] = np.asarray(state[i])
        shapes = self.specializer.key(inputs, state)
        template, steps = self.specializer.steps_for(shapes)
        values = template.copy()
        for slot, value in zip(segment.input_slots, inputs, strict=True):
            known = value is None or isinstance(value, (np.ndarray, np.generic))
            values[slot] = value if known else np.asarray(value)
        streams = [ctx.streams.take(step.op, 0) for step in segment.rng_steps]
        seconds = self.compiler.seconds_to_try()
        with np.errstate(all="ignore"):
            if seconds is None:
                segment.interpret(values, state, streams, steps=steps)
            else:
                self._try(values, state, streams, steps or segment.steps, started + seconds)
        if steps is None and shapes is not None:
            self.specializer.learn(shapes, values)
        if self.compiler.varying is not None and steps is None:
            self.compiler.varying.note(inputs, values, self.compiler.pays())
        outputs = segment.collect(values, state)
        for step in segment.rng_steps:
            assert step.op.spec.rng is not None
            outs = [values[o] for o in step.outs if o is not None]
            if outs[0] is not None:  # None in a branch not taken
                ctx.streams.take(step.op, step.op.spec.rng(step.op, outs))
        self.compiler.timed(time.perf_counter() - started, inputs)
        return outputs

    def _try(
        self, values: Values, state: Values, streams: list[Array], steps: list[SegmentStep], end: float
    ) -> None:
        """Runs these steps; raises TooLong if they are not done in time."""
        for first in range(0, len(steps), _STEPS_PER_LOOK):
            self.segment.interpret(values, state, streams, steps=steps[first : first + _STEPS_PER_LOOK])
            if time.perf_counter() > end:
                raise TooLong

    def _in_xla(
        self,
        ctx: ExecutionContext,
        compiled: CompiledSegment,
        inputs: Values,
        state: Values,
        packs: list[Any],
        results: list[Any],
    ) -> Values:
        segment, packing = self.segment, compiled.packing
        streams = [ctx.streams.take(s.op, n) for s, n in zip(segment.rng_steps, compiled.skips, strict=True)]
        # Readers that have to wait until the program is done count as a disturbance, as copies do.
        waits = sum([self.stores[i].waits for i in compiled.reused])
        disturbed = self._consume(state, compiled)
        started = time.perf_counter()
        variables = [*[state[i] for i in packing.reads if i not in compiled.reused], *packs]
        owned = [state[i] for i in (*segment.owned, *compiled.reused)]
        given = inputs if compiled.padding is None else compiled.padding.arguments(inputs)
        args = self.compiler.arguments(given, variables, streams, compiled.joined, owned, compiled.cpu)
        try:
            outputs, written, ok = compiled.run(args, results)
            if compiled.padding is not None:
                outputs = compiled.padding.cut(inputs, outputs)
            if self.compiler.on_trial:
                self.compiler.called(time.perf_counter() - started)
            if compiled.reused:
                disturbed |= sum([self.stores[i].waits for i in compiled.reused]) > waits
                self.compiler.note_disturbance(disturbed)
        except TypeError as e:
            if self.compiler.loose:
                raise self._failure(e) from e
            # A variable has another shape than before (`tf.assign` with validate_shape=False). From now on shapes of
            # variables are part of the key; this run is numpy's.
            self.compiler.loose = list(segment.reads)
            self._complete(state)
            return self._interpreted(ctx, inputs, state)
        except Exception as e:
            raise self._failure(e) from e
        if ok and not np.asarray(ok[0]):  # JAX's own conversion to bool takes longer
            self._complete(state)
            for w, value in zip(packing.writes, written, strict=False):
                if w in segment.owned or w in compiled.reused:  # unchanged, but in new hands
                    self.stores[w].swap(value)
                    state[w] = np.array(value)
            # The flag says only that a check failed. Numpy finds which one, and raises (decision 3).
            self._explain(inputs, state, streams)
            raise self._unexplained()
        for w, value in zip(packing.writes, written, strict=False):  # packs come after these
            state[w] = value
        return outputs

    def _complete(self, state: Values) -> None:
        """Puts values of variables into the state that a program has taken in packs."""
        for i in self.segment.reads:
            if state[i] is None:
                state[i] = self.stores[i].value

    def _replace_consumed(self, packing: Packing | None, results: list[Any]) -> None:
        """After an interrupt: if the program has consumed old values, makes its new ones current; forgets them if it failed."""
        writes = self.segment.writes if packing is None else packing.writes
        stores = [self.stores[w] for w in writes]
        if not any(_is_gone(store.value) for store in stores):
            return
        _, written, ok = results[0] if results else ((), [None] * len(stores), [False])
        whole = not ok or np.asarray(ok[0])
        for store, value in zip(stores, written, strict=False):
            if _is_gone(store.value) or whole:
                store.swap(value)
        if packing is not None and whole:
            packing.replace(written[len(writes) :])

    def _explain(self, inputs: Values, state: Values, streams: list[Array]) -> None:
        values = self.segment.template.copy()
        for slot, value in zip(self.segment.input_slots, inputs, strict=True):
            values[slot] = None if value is None else np.asarray(value)
        state = [None if v is None else np.asarray(v) for v in state]
        with np.errstate(all="ignore"):
            self.segment.interpret(values, state, streams)

    def _unexplained(self) -> errors.OpError:
        """The error for a value so close to its limit that XLA finds it outside and numpy inside."""
        checking = [step.op for step in self.segment.steps if step.kernel.checks]
        names = ", ".join(op.name for op in checking[:5])
        return errors.InvalidArgumentError(
            None,
            checking[0],
            f"A check of one of these operations failed: {names}. Look at the values they are given.",
        )

    def _failure(self, error: Exception) -> errors.OpError:
        text = str(error)
        if "RESOURCE_EXHAUSTED" in text or isinstance(error, MemoryError) or "Out of memory" in text:
            return errors.ResourceExhaustedError(
                None,
                self.segment.ops[-1],
                f"OOM when running a step on {self.device}: {next(iter(text.splitlines()), 'no memory left')}. Use a smaller batch or model.",
            )
        return errors.about(self.segment.ops[-1], error)


def _is_gone(value: object) -> bool:
    """Whether a program has reused the memory of a value."""
    deleted = getattr(value, "is_deleted", None)
    return deleted is not None and deleted()


def _need_same_shape(op: Operation, before: Array | None, value: Array | None) -> None:
    """Raises when a variable would change its shape: another program may have left one of this name behind."""
    if before is None or value is None or before.shape == value.shape:
        return
    left, right = (str(list(v.shape)).replace(" ", "") for v in (before, value))
    raise errors.InvalidArgumentError(
        None,
        op,
        f"Assign requires shapes of both tensors to match. lhs shape= {left} rhs shape= {right}. The variable has a "
        "value of that shape already, perhaps from another program: use another name or container, "
        "tf.Session.reset, or validate_shape=False.",
    )
