"""A whole loop as one XLA program.

TensorArrays and stacks become dense buffers that the loop carries along, which is possible when their lengths are
known while tracing: of an array always, of a stack when the loop's condition bounds the number of iterations. Where
lengths turn out to change from run to run, as those of sentences do, buffers get room for more: one program then
serves all lengths up to the next power of two.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.graph.operation import Operation
from tensorfleet.kernels.philox import later
from tensorfleet.passes.plan import Part, PartKind, Plan
from tensorfleet.runtime.segments.loop_analysis import iteration_limits
from tensorfleet.runtime.segments.loop_stores import (
    SIZE,
    STORES,
    Content,
    NotTraceable,
    StoreKernel,
    TracedArray,
    TracedStack,
    content_of,
    put,
    room_for,
    roomy,
    signature,
    store_at,
    traced_stores,
)
from tensorfleet.runtime.segments.loop_sums import LoopSum, loop_sums, product_of_stacks
from tensorfleet.runtime.segments.segment import NeedsValue, Segment
from tensorfleet.runtime.segments.tracing import ignore_check
from tensorfleet.runtime.segments.xla_options import compile_loop
from tensorfleet.runtime.xla_exit_guard import stay_outside, within_xla
from tensorfleet.state.tensor_arrays import ArrayStore, StackStore

if TYPE_CHECKING:
    from jax import Device

    from tensorfleet.base.types import Array, ArrayModule, Dims
    from tensorfleet.graph.kernel_types import Check
    from tensorfleet.passes.control_flow import Loop
    from tensorfleet.runtime.resources import RandomStreams, ResourceManager
    from tensorfleet.runtime.values import Signature, Values


_MAX_PROGRAMS = 16  # of one loop; then new signatures run on the host
# A stack gets a buffer for the most iterations that there can be. Longer loops run on the host.
_MAX_STACKED_ITERATIONS = 1 << 14
# Fixed values of so few elements may be sizes or axes: these become part of the program when one has to be known.
_MAX_STATIC_ELEMENTS = 16
# XLA cannot be interrupted. So a loop runs some iterations at a time, by how long they took before.
_FIRST_ITERATIONS = 1 << 10
_FIRST_HOST_SECONDS = 2.0  # on the host, which is slower
_SECONDS_BETWEEN_LOOKS = 0.2
_FAILED = -1  # in place of the number of iterations: a check failed


class TracedLoop:
    """The XLA programs of one loop, one per signature."""

    def __init__(self, loop: Loop, device: str, resources: ResourceManager) -> None:
        self.loop = loop
        self.device = device
        self.cond = _Part(loop, loop.cond, device)
        self.body = _Part(loop, loop.body, device)
        self.sums = loop_sums(loop, self.body.segment) if "/device:CPU" in device else []
        self.body.leave_out(self.sums)
        variables = dict.fromkeys((*self.cond.segment.variables, *self.body.segment.variables))
        self.variables: list[Operation] = list(variables)
        self.stores = [resources.variable(v) for v in self.variables]
        places = {inside: i for i, (_, inside) in enumerate(loop.fixed)}
        pushes = [op._inputs[0] for op in loop.body.ops if op.type == "StackPushV2"]
        self.pushes = bool(pushes)
        #: the fixed values that are stacks to push on
        self.pushed = {places[t] for t in pushes if t in places}
        self.limits = iteration_limits(loop) if self.pushes else []
        self.static: set[int] = set()  # positions of fixed values that must be known
        self.programs: dict[Signature, _LoopProgram | None] = {}
        self.lock = threading.Lock()

    def run(
        self,
        initial: Values,
        fixed: Values,
        streams: RandomStreams,
        pace: float | None,
        look: Callable[[], None],
    ) -> Values | None:
        """The final values of the variables; None if the loop cannot, or not yet, run this way.

        `pace` is how many seconds an iteration has taken on the host. `look` is called now and then, to end the loop.
        """
        stay_outside()
        state = [store.read() for store in self.stores]
        if any(v is None for v in state) or any(v is None for v in (*initial, *fixed)):
            return None
        if any(isinstance(v, ArrayStore) and v.dynamic for v in fixed):
            return None
        max_iterations = self._max_iterations(initial, fixed) if self.pushes else None
        if self.pushes and max_iterations is None:
            return None
        contents = [content_of(v, i in self.pushed) for i, v in enumerate(fixed)]
        key = self._key(initial, fixed, contents, max_iterations)
        if self.programs and key not in self.programs:
            # Lengths change from run to run: this program gets room, and serves all lengths up to the next power of two.
            contents = [roomy(c, v) for c, v in zip(contents, fixed, strict=True)]
            max_iterations = max_iterations and room_for(max_iterations)
            key = self._key(initial, fixed, contents, max_iterations)
        program = self._program(key, initial, fixed, contents, state, max_iterations)
        if program is None:
            return None
        if not program.iterations:
            program.iterations = (
                _FIRST_ITERATIONS if pace is None else max(int(_FIRST_HOST_SECONDS / pace), 1)
            )
        drawing = self.body.segment.rng_steps
        if not drawing:
            return program.run(initial, fixed, contents, state, [], look)[0]
        # How far the streams move is known only after drawing from them.
        with streams.drawing([step.op for step in drawing]):
            taken = [streams.take(step.op, 0) for step in drawing]
            result, iterations = program.run(initial, fixed, contents, state, taken, look)
            if result is not None:
                for step, blocks in zip(drawing, program.blocks, strict=True):
                    streams.take(step.op, blocks * iterations)
            return result

    def _key(
        self, initial: Values, fixed: Values, contents: list[Content], max_iterations: int | None
    ) -> Signature:
        """Tells programs apart: by shapes, room, and the values that are part of them."""
        return (
            tuple(np.shape(v) for v in initial),
            tuple(map(signature, contents)),
            max_iterations,
            tuple(np.asarray(fixed[i]).tobytes() for i in sorted(self.static)),
        )

    def _program(
        self,
        key: Signature,
        initial: Values,
        fixed: Values,
        contents: list[Content],
        state: Values,
        max_iterations: int | None,
    ) -> _LoopProgram | None:
        """The program for these arguments, compiled now if need be; None to run on the host."""
        if key not in self.programs:
            if len(self.programs) >= _MAX_PROGRAMS:
                return None
            with self.lock, within_xla:
                # Compiling may find values that must be part of the key: here, or in another thread meanwhile.
                key = self._key(initial, fixed, contents, max_iterations)
                if key not in self.programs:
                    program = self._compile(initial, fixed, contents, state, max_iterations)
                    key = self._key(initial, fixed, contents, max_iterations)
                    self.programs[key] = program
        return self.programs[key]

    def _max_iterations(self, initial: Values, fixed: Values) -> int | None:
        """How many iterations the condition allows at most; None if that is unknown or too many."""
        lowest = None
        for variable, limit, constant in self.limits:
            end = constant if limit is None else fixed[limit]
            if isinstance(end, (ArrayStore, StackStore)) or np.size(end) != 1:
                continue
            count = max(0, int(end) - int(initial[variable]))
            lowest = count if lowest is None else min(lowest, count)
        return lowest if lowest is not None and lowest <= _MAX_STACKED_ITERATIONS else None

    def _compile(
        self,
        initial: Values,
        fixed: Values,
        contents: list[Content],
        state: Values,
        max_iterations: int | None,
    ) -> _LoopProgram | None:
        while True:
            try:
                return _LoopProgram(self, max_iterations, fixed).compiled(initial, contents, state)
            except NotTraceable:
                return None
            except NeedsValue:
                numbers = {
                    i for i, c in enumerate(contents) if len(c) == 1 and np.size(c[0]) <= _MAX_STATIC_ELEMENTS
                }
                if numbers <= self.static:
                    return None
                self.static |= numbers
            except Exception:  # the host raises it again, with the operation's name
                return None


class _Part:
    """The condition or the body of a loop, as one segment."""

    def __init__(self, loop: Loop, plan: Plan, device: str) -> None:
        feeds = {t: i for i, t in enumerate(plan.feeds)}
        computed = [t for t in dict.fromkeys(plan.fetches) if t not in feeds and t not in plan.constants]
        ops = [op for op in plan.ops if not op.spec.variable]
        self.segment = Segment(Part(PartKind.SEGMENT, ops, device, computed), plan)
        for step in self.segment.steps:
            if step.op.type in STORES:
                step.kernel = StoreKernel(step.op)
        self.feeds = [
            (slot, feeds[t]) for slot, t in zip(self.segment.input_slots, self.segment.inputs, strict=True)
        ]
        self.blocks: list[int] = []  # how far one run moves each random stream
        self._steps = None if self.segment.guarded else self.segment.steps
        self._sums: list[LoopSum] = []
        self.factors: Values = []  # the right factors of products that are added up after the loop
        self.fetches: list[tuple[str, Any]] = []
        for t in plan.fetches:
            if t in feeds:
                self.fetches.append(("feed", feeds[t]))
            elif t in plan.constants:
                self.fetches.append(("constant", plan.constants[t]))
            else:
                self.fetches.append(("made", self.segment.output_codes[computed.index(t)]))

    def leave_out(self, sums: list[LoopSum]) -> None:
        """Leaves these sums to be computed after the loop."""
        self._sums = sums
        if self._steps is not None and sums:
            replaced = {op for one in sums for op in one.replaced}
            self._steps = [step for step in self._steps if step.op not in replaced]
        for one in sums:
            self.fetches[one.variable] = ("feed", one.variable)

    def run(
        self,
        given: Values,
        state: dict[Operation, Any],
        jnp: ArrayModule,
        check: Check,
        streams: Sequence[Array] = (),
    ) -> Values:
        """Traces one run; `given` are the values of the plan's feeds."""
        segment = self.segment
        values = list(segment.template)
        for slot, i in self.feeds:
            values[slot] = given[i]
        current: Values = [state.get(v) for v in segment.variables]
        segment.interpret(values, current, streams, jnp, check, steps=self._steps)
        self.factors = [values[one.right] for one in self._sums]
        self.blocks = [
            step.op.spec.rng(step.op, [values[o] for o in step.outs if o is not None])
            for step in segment.rng_steps
            if step.op.spec.rng is not None
        ]
        result = []
        for kind, what in self.fetches:
            if kind == "made":
                result.append(values[what] if what >= 0 else current[~what])
            else:
                result.append(given[what] if kind == "feed" else what)
        return result


class _LoopProgram:
    """One tracing of a loop, and then the program."""

    call: Callable[..., Any]

    def __init__(self, loop: TracedLoop, max_iterations: int | None, fixed: Values) -> None:
        from tensorfleet.runtime.devices import load_jax

        self.loop = loop
        self.max_iterations = max_iterations
        self.jax, self.jnp = load_jax()
        self.fixed = fixed
        self.known = {i: np.asarray(fixed[i]) for i in loop.static}
        self.written: list[tuple[int, bytes | None]] = []
        self.moved: list[int] = []
        self.blocks: list[int] = []
        self.buffers: set[Dims] = set()  # the shapes of arrays and stacks
        self.roomy: list[bool] = []  # whether each fixed value is an array that has room for more
        self.iterations = 0  # to run at a time
        self.cpu: Device | None = None  # which of the CPU's devices it runs on, None for the usual one
        self._resume: Callable[..., Any] | None = None
        self._first: tuple[int, Any] | None = None

    def compiled(self, initial: Values, contents: list[Content], state: Values) -> _LoopProgram:
        """Compiles the loop for arguments like these."""
        self.roomy = [any(part is SIZE for part in c) for c in contents]
        streams = [np.zeros(6, np.uint32)] * len(self.loop.body.segment.rng_steps)
        args = self._arguments(initial, contents, state, streams)
        traced = self.jax.jit(self._trace).trace(np.uint64(0), None, *args)
        self.call, self.cpu = compile_loop(self.jax, traced, "/device:CPU" in self.loop.device, self.buffers)
        return self

    def _go_on(self, limit: np.uint64, carried: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Runs on to a later limit. That is another program, compiled here because few loops are so long."""
        if self._resume is None:
            traced = self.jax.jit(self._trace).trace(limit, carried, *args)
            self._resume, _ = compile_loop(self.jax, traced, "/device:CPU" in self.loop.device, self.buffers)
        resumed: tuple[Any, ...] = self._resume(limit, carried, *args)
        return resumed

    def _arguments(
        self, initial: Values, contents: list[Content], state: Values, streams: list[Array]
    ) -> tuple[Any, ...]:
        from tensorfleet.runtime.devices import jax_device, on_cpu

        arrays = [[a for a in c if not isinstance(a, (str, bytes))] for c in contents]
        if "CPU" not in self.loop.device:
            args = (list(initial), arrays, list(state), list(streams))
            moved: tuple[Any, ...] = self.jax.device_put(args, jax_device(self.loop.device, True))
            return moved
        arrays = [list(on_cpu(self.cpu, a)) for a in arrays]
        return list(on_cpu(self.cpu, initial)), arrays, list(on_cpu(self.cpu, state)), list(streams)

    def _trace(
        self,
        limit: Array,
        carried: tuple[Any, ...] | None,
        initial: Values,
        arrays: list[Values],
        state: Values,
        streams: list[Array],
    ) -> tuple[Any, ...]:
        """The loop up to `limit` iterations, from its start or from what was `carried` so far."""
        loop, jax, jnp = self.loop, self.jax, self.jnp
        self.written, self.moved = [], []
        held = dict(zip(loop.variables, state, strict=True))
        fixed = [self._fixed(i, a) for i, a in enumerate(arrays)]
        start = tuple(jnp.asarray(v) for v in initial)
        checked: list[bool] = []

        def test(variables: Sequence[Array], check: Check = ignore_check) -> Values:
            return loop.cond.run([*variables, *fixed], held, jnp, check)

        def iterate(variables: Sequence[Array], check: Check, drawn: list[Array]) -> Values:
            lent = test(variables, check)[1:]
            return loop.body.run([*variables, *variables, *fixed, *lent], held, jnp, check, drawn)

        factors = self._rehearse(start, fixed, lambda variables: iterate(variables, ignore_check, streams))
        self.blocks = loop.body.blocks
        stores = [s for s in fixed if isinstance(s, (TracedArray, TracedStack))]
        stores += [grad for s in stores if isinstance(s, TracedArray) for grad in s.grads.values()]
        self.buffers = {s.buffer.shape for s in stores if s.buffer is not None}
        arrays_written = [(k, s, store_at(fixed, k, s)) for k, s in self.written]
        stacks = [(k, fixed[k]) for k in self.moved]

        def resume(carry: tuple[Any, ...]) -> None:
            for (_, _, store), buffer in zip(arrays_written, carry[1], strict=True):
                store.buffer = buffer
            for (_, stack), count in zip(stacks, carry[2], strict=True):
                stack.count = count

        def taken() -> tuple[tuple[Array, ...], tuple[Array, ...]]:
            return tuple(s.buffer for _, _, s in arrays_written), tuple(s.count for _, s in stacks)

        def go_on(carry: tuple[Any, ...]) -> Array:
            resume(carry)
            holds: Array = jnp.reshape(test(carry[0])[0], ()) & (carry[4] < limit)
            return holds

        def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            resume(carry)
            flags: list[Array] = []

            def note(ok: Any, message: object, kind: object = None) -> None:
                flags.append(jnp.all(jnp.asarray(ok)))
                checked.append(True)

            moved = [later(jnp, s, carry[4] * n) for s, n in zip(streams, self.blocks, strict=True)]
            results = iterate(carry[0], note, moved)
            new = tuple(jnp.asarray(v) for v in results)
            ok = carry[3]
            for flag in flags:
                ok = ok & flag
            # A right factor goes to the place that its left factor was popped from.
            kept = [
                put(buffer, fixed[one.stack].count, factor)
                for one, buffer, factor in zip(loop.sums, carry[5], loop.body.factors, strict=True)
            ]
            return (new, *taken(), ok, carry[4] + 1, kept)

        empty = [
            jnp.zeros((len(fixed[one.stack].buffer), *factor.shape), factor.dtype)
            for one, factor in zip(loop.sums, factors, strict=True)
        ]
        self.buffers |= {buffer.shape for buffer in empty}
        begin = (start, *taken(), jnp.zeros((), np.int64), empty) if carried is None else carried
        carry = (*begin[:3], jnp.array(True), begin[3].astype(np.uint64), begin[4])
        *rest, ok, iterations, kept = jax.lax.while_loop(go_on, step, carry)
        iterations = iterations.astype(np.int64)
        return (*rest, jnp.where(ok, iterations, _FAILED) if checked else iterations, kept)

    def _fixed(self, i: int, arrays: Values) -> Any:
        value = self.fixed[i]
        if isinstance(value, ArrayStore):
            shape = tuple(value.shape.as_list()) if value.shape.is_fully_defined() else None
            known = next((tuple(s) for s in value.shapes if s is not None), shape)
            count = len(value.elements)
            size, room = (arrays.pop(), room_for(count)) if self.roomy[i] else (count, count)
            result = TracedArray(size, room, value.dtype.np_dtype, known, arrays[0], value.adds)
            for source, buffer in zip(sorted(value.grads), arrays[1:], strict=True):
                result.grad(source).buffer = buffer
            return result
        if isinstance(value, StackStore):
            return TracedStack(arrays[0], arrays[1], self.max_iterations)
        return self.known.get(i, arrays[0])

    def _rehearse(
        self, start: tuple[Array, ...], fixed: Values, iterate: Callable[[tuple[Array, ...]], Values]
    ) -> Values:
        """Traces one iteration to learn which buffers change, and their shapes; then sets them up.

        Gives the shapes of the right factors of products that are added up after the loop.
        """
        jax, jnp = self.jax, self.jnp
        before = {id(s): s.buffer for _, s in traced_stores(fixed)}
        counts = {id(s): s.count for s in fixed if isinstance(s, TracedStack)}
        learnt: dict[tuple[int, bytes | None], tuple[TracedArray | TracedStack, tuple[Dims, Any] | None]] = {}

        def rehearsal(variables: tuple[Array, ...]) -> tuple[tuple[Array, ...], Values]:
            results = iterate(variables)
            for place, s in traced_stores(fixed):
                learnt[place] = s, None if s.buffer is None else (s.buffer.shape, s.buffer.dtype)
            return tuple(jnp.asarray(v) for v in results), self.loop.body.factors

        shapes, factors = jax.eval_shape(rehearsal, start)
        for s, v in zip(shapes, start, strict=True):
            if s.shape != v.shape or s.dtype != v.dtype:
                raise NotTraceable
        for (k, source), (store, shape) in learnt.items():
            store.buffer = before.get(id(store))
            if isinstance(store, TracedStack):
                store.count = counts[id(store)]
                if store.moved:
                    self.moved.append(k)
            if store.buffer is None and shape is not None:
                store.buffer = jnp.zeros(*shape)
            if store.written or (source is not None and shape is not None and id(store) not in before):
                self.written.append((k, source))
        return list(factors)

    def run(
        self,
        initial: Values,
        fixed: Values,
        contents: list[Content],
        state: Values,
        streams: list[Array],
        look: Callable[[], None],
    ) -> tuple[Values | None, int]:
        """Runs the program and gives (variables, iterations). None when a check failed: the host runs it again and raises."""
        args = self._arguments(initial, contents, state, streams)
        if self._first is None or self._first[0] != self.iterations:  # an array takes microseconds to make
            self._first = self.iterations, self.jnp.asarray(np.uint64(self.iterations))
        limit, first = self._first
        began = time.monotonic()
        with within_xla:
            carried = self.call(first, None, *args)
        while (iterations := np.asarray(carried[3]).item()) >= limit:
            look()
            now = time.monotonic()
            self.iterations = max(int(self.iterations * _SECONDS_BETWEEN_LOOKS / max(now - began, 1e-3)), 1)
            began, limit = now, iterations + self.iterations
            with within_xla:
                carried = self._go_on(np.uint64(limit), carried, args)
        if iterations == _FAILED:
            return None, 0
        variables, buffers, counts, _, kept = carried
        ends = {k: int(count) for k, count in zip(self.moved, counts, strict=True)}
        if any(count < 0 for count in ends.values()):
            return None, 0  # it popped more than one run of the forward loop had pushed
        for (k, source), buffer in zip(self.written, buffers, strict=True):
            store = fixed[k] if source is None else fixed[k].grad(source)
            if isinstance(store, ArrayStore):
                count = len(store.elements)
                store.fill(buffer if len(buffer) == count else np.asarray(buffer)[:count])
            else:
                store.fill(buffer, ends[k])
        for k, count in ends.items():
            if (k, None) not in self.written:
                fixed[k].shorten(count)
        return self._added_up(variables, contents, kept), iterations

    def _added_up(self, variables: Values, contents: list[Content], kept: Values) -> Values:
        """The variables, with the sums that were left for the end of the loop."""
        variables = list(variables)
        for one, right in zip(self.loop.sums, kept, strict=True):
            _, left, count = contents[one.stack]
            variables[one.variable] = product_of_stacks(variables[one.variable], left, right, int(count))
        return variables
