"""The compiled mode of a segment: trace it once per signature, compile, call."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.kernels import conv_library
from tensorfleet.kernels.aligned_memory import aligned
from tensorfleet.kernels.onednn_library import allow_calls
from tensorfleet.runtime.devices import jax_device, load_jax, on_cpu
from tensorfleet.runtime.segments import background
from tensorfleet.runtime.segments.batches import NotStackable
from tensorfleet.runtime.segments.compiled_segment import ArrayShape, CompiledSegment
from tensorfleet.runtime.segments.masking import Unpaddable
from tensorfleet.runtime.segments.packing import Packing, plan_packing
from tensorfleet.runtime.segments.padded_sizes import PaddedSizes
from tensorfleet.runtime.segments.padded_trace import PaddedTrace
from tensorfleet.runtime.segments.segment import NeedsValue, Segment, SegmentStep
from tensorfleet.runtime.segments.shape_variance import Varying
from tensorfleet.runtime.segments.tracing import TooManySteps, Tracer
from tensorfleet.runtime.segments.trial import Trial, shapes_of
from tensorfleet.runtime.segments.xla_barriers import Barriers
from tensorfleet.runtime.segments.xla_options import (
    compile_for_cpu,
    has_library_convolutions,
    is_large,
    waits_for_itself,
)
from tensorfleet.runtime.xla_exit_guard import within_xla

if TYPE_CHECKING:
    from jax import Device

    from tensorfleet.base.types import Array, ArrayModule
    from tensorfleet.runtime.resources import VariableStore
    from tensorfleet.runtime.segments.batches import Unit
    from tensorfleet.runtime.values import Signature, Values

# Shapes that keep changing run in numpy after so many programs: a changing batch size must not compile for ever.
_MAX_PROGRAMS = 24
_MAX_REMEMBERED_SIGNATURES = 4096
# So many small arrays of one type are joined into one: each argument of a call costs some microseconds.
_MIN_JOINED_ARRAYS = 12
_MAX_JOINED_BYTES = 1 << 16
# A constant this large is passed at each call: XLA takes long to compile a program that contains it, and to keep it.
_MIN_PASSED_BYTES = 1 << 20
# The first few signatures are compiled when they come. A later one must come back first: where numpy does well too,
# until numpy has taken as long for it as compiling does, because shapes that depend on the data keep coming back.
# Where a run takes long, the first signatures too must come twice in a row: compiling may take longer than an epoch.
_EAGER_SIGNATURES = 2
_EAGER_SIGNATURES_OF_HEAVY = 4
_EXPECTED_COMPILE_SECONDS = 1.0  # before anything was compiled
# A step that could use the program being compiled leaves it as much time as it takes itself, up to this much.
_MAX_GIVEN_SECONDS = 0.05
# Variables are changed in place as long as others seldom want them meanwhile (decision 16). A disturbed run counts as
# so many undisturbed ones, so more than one in nine fills the count; then the next program makes new arrays again.
_DISTURBANCE_WEIGHT = 8
_MAX_DISTURBANCE = 128


class Compiler(Trial):
    """Decides when a segment is compiled and keeps its programs."""

    def __init__(self, segment: Segment, device: str, others: bool = False) -> None:
        super().__init__(segment, device)
        self.device = device
        self.others = others  # whether the step has arrays of other kinds of devices too
        self.lock = threading.Lock()
        self.static_inputs: set[int] = set()
        self.static_variables: set[int] = set()
        self.passed = _large_constants(segment)
        self.loose: list[int] = []  # variables whose shape has been seen to change
        self.seen: dict[Any, int] = {}
        # A condition that is fed (`is_training`) makes one program for each value it has, without the other branch.
        self.flags = _fed_conditions(segment) if segment.guarded else set()
        self.static_inputs |= self.flags
        self.varying: Varying | None = None  # is told the shapes of all values, while that is of interest
        self.padded: PaddedSizes | None = (
            None  # the lengths that programs are padded to, once these keep changing
        )
        # Whether variables get their new values in place; how often somebody else wanted them meanwhile (weighted).
        self.reuses = "/device:CPU" in device and not others
        self.disturbed = 0
        self.pending = False  # while a program is compiled in the background
        self.in_step = False  # whether steps have to compile: some values must be known
        self.stores: Sequence[VariableStore] = ()  # of the segment's variables, which may then be packed

    def note_disturbance(self, disturbed: bool) -> None:
        """Notes whether somebody else had, or wanted, a variable whose memory a program was to use again."""
        if not disturbed:
            self.disturbed = max(self.disturbed - 1, 0)
            return
        self.disturbed += _DISTURBANCE_WEIGHT
        if self.reuses and self.disturbed > _MAX_DISTURBANCE:
            with self.lock:
                self.reuses = False
                self.programs = {k: p for k, p in self.programs.items() if p is None or not p.reused}

    def drop(self, program: CompiledSegment) -> None:
        """Forgets a program whose packs are no more. Without the lock: the caller has those of variables."""
        for key, one in list(self.programs.items()):
            if one is program:
                self.programs.pop(key, None)

    def keyed(self) -> tuple[int, ...]:
        """The variables that `key` looks at, beside those that the segment owns."""
        return (*self.loose, *self.static_variables)

    def program(self, inputs: Sequence[Any], state: Sequence[Any]) -> CompiledSegment | None:
        """The program for these arguments, compiled now if need be; None to run in numpy."""
        key = self.key(inputs, state)
        result = self.programs.get(key)
        if result is not None or key in self.programs:
            if self.varying is not None:
                self.varying.runs += 1
            return result
        if self._compiles_beside():
            self._start(key, inputs, state)
            if self.pending:
                background.wait(min(self.fastest, _MAX_GIVEN_SECONDS))
            return None
        return self._compiled_in_step(inputs, state)

    def _compiled_in_step(self, inputs: Sequence[Any], state: Sequence[Any]) -> CompiledSegment | None:
        """The program, compiled while the step waits if that is worth it."""
        with self.lock:
            self._adopt_lengths()
            key = self.key(inputs, state)  # another thread may have made more of it static meanwhile
            if key in self.programs:
                return self.programs[key]
            if not self._worth(key):
                return None
            began = time.perf_counter()
            while True:
                try:
                    with within_xla:
                        result = self._compile(inputs, state)
                    self.compiling = min(self.compiling, time.perf_counter() - began)
                    break
                except NotStackable:
                    self.batches = False
                except NeedsValue as need:
                    if self._make_static(need.code):
                        continue
                    if not self.batches:
                        result = None
                        break
                    self.batches = False  # operation by operation, more of the values may be known
                except TooManySteps:
                    result = None
                    break
                except Unpaddable:
                    self.padded = None
                    assert self.varying is not None
                    self.varying.divide(True)
                    return None
            self.programs[self.key(inputs, state)] = result
            return result

    def _compiles_beside(self) -> bool:
        """Whether steps go on in numpy while a program is compiled.

        Not where values are part of the program: the caller may change its arrays before they are looked at.
        """
        known = (
            self.static_inputs or self.static_variables or self.segment.owned or self.others or self._pads()
        )
        return self.mostly_calls() and "/device:CPU" in self.device and not (known or self.in_step)

    def _start(self, key: Signature, inputs: Sequence[Any], state: Sequence[Any]) -> None:
        """Has a program compiled in the background, unless one is already."""
        with self.lock:
            if self.pending or key in self.programs or not self._worth(key):
                return
            self.pending = True
        # Only shapes are of interest. A reference would have the next update of a variable copy it.
        small = [type(x) is np.ndarray and x.nbytes <= _MAX_JOINED_BYTES for x in inputs]
        arrays = [x if keep else ArrayShape.of(x) for x, keep in zip(inputs, small, strict=True)]
        described = [ArrayShape.of(x) for x in state]
        background.start(lambda: self._compile_beside(key, arrays, described))

    def _compile_beside(self, key: Signature, inputs: Sequence[Any], state: Sequence[Any]) -> None:
        began = time.perf_counter()
        try:
            with within_xla:
                program = self._compile(inputs, state)
            self.compiling = min(self.compiling, time.perf_counter() - began)
            with self.lock:
                self.programs[key] = program
        except Exception:
            # A step compiles it again, with the values it may need, and raises what is to be raised.
            self.in_step = True
        finally:
            self.pending = False

    def _pads(self) -> bool:
        return self.padded is not None or (self.varying is not None and self.varying.lengths is not None)

    def _adopt_lengths(self) -> None:
        """Pads lengths from now on, if they have been found to keep changing. Programs for single ones are dropped."""
        if self.padded is None and self.varying is not None and self.varying.lengths is not None:
            self.padded, self.varying.lengths = self.varying.lengths, None
            self.programs = {}

    def key(self, inputs: Sequence[Any], state: Sequence[Any]) -> Signature:
        """Tells programs apart: by shapes, and by the values of static arguments."""
        shapes = shapes_of(inputs)
        if self.padded is not None:
            lengths = self.padded.lengths(shapes)
            if lengths is not None:
                shapes = tuple(self.padded.shapes(shapes, self.padded.bucket(lengths).sizes))
        if self.loose or self.segment.owned:
            shapes += tuple([state[i].shape for i in (*self.loose, *self.segment.owned)])
        if not self.static_inputs and not self.static_variables:
            return shapes
        values = [np.asarray(inputs[i]).tobytes() for i in sorted(self.static_inputs)]
        values += [np.asarray(state[i]).tobytes() for i in sorted(self.static_variables)]
        return shapes, tuple(values)

    def _worth(self, key: Signature) -> bool:
        by_value = bool(self.static_inputs - self.flags or self.static_variables)
        eager = _EAGER_SIGNATURES_OF_HEAVY if self.heavy else _EAGER_SIGNATURES
        again = (
            self.shapes is None
            or self.padded is not None
            or self.shapes == (key[0] if self.static_inputs else key)[: len(self.shapes)]
        )
        if len(self.programs) < eager and not by_value and (again or self.heavy):
            return True
        self.seen[key] = times = self.seen.get(key, 0) + 1
        if len(self.seen) > _MAX_REMEMBERED_SIGNATURES:
            self.seen.clear()
        if len(self.programs) >= _MAX_PROGRAMS:
            return False
        if by_value:
            # Values that never settle (an index that goes through the data) must come back more often each time.
            return times > 1 + len(self.programs)
        cost = self.compiling if self.programs else _EXPECTED_COMPILE_SECONDS
        return times > 1 and (self.heavy or self.padded is not None or times * self.fastest > cost)

    def _compile(
        self, inputs: Sequence[Any], state: Sequence[Any], in_parts: bool = True
    ) -> CompiledSegment | None:
        jax, jnp = load_jax()
        segment = self.segment
        padding, inputs = self._padding(inputs)
        skips: list[int] = [0] * len(segment.rng_steps)
        tables = [state[i].shape for i in segment.owned]
        barriers = Barriers(segment, jax, tables) if "/device:CPU" in self.device else None
        fixed_inputs = {i: None if inputs[i] is None else np.asarray(inputs[i]) for i in self.static_inputs}
        fixed_state = {i: np.asarray(state[i]) for i in self.static_variables}

        joined = self._joined(inputs) if padding is None else []
        reused = self._reused(state)
        units = self.units if self.batches and padding is None else None
        # Loops and stacks would hide from the masks where elements of a padded dimension meet.
        parts = None if padding is not None else units or self.pieces
        packing = self._packing(state, units, reused)
        reads = [i for i in packing.reads if i not in reused]
        shapes: list[Any] = [None if x is None else x.shape for x in inputs]
        passed = sorted(self.passed)

        def trace(
            args: tuple[Any, ...],
            joins: tuple[Array, ...],
            variables: tuple[Any, ...],
            streams: tuple[Array, ...],
            owned: tuple[Array, ...],
            constants: tuple[Array, ...],
        ) -> tuple[Values, Values, list[Array]]:
            values = list(segment.template)
            given = [fixed_inputs.get(i, arg) for i, arg in enumerate(args)]
            _cut_apart(jnp, joined, joins, shapes, given)
            for slot, value in zip((*passed, *segment.input_slots), (*constants, *given), strict=True):
                values[slot] = value
            current: Values = [None] * len(segment.variables)
            for index, variable in zip(reads, variables, strict=False):
                current[index] = fixed_state.get(index, variable)
            packing.unpack(jax, variables[len(reads) :], current)
            for index, table in zip((*segment.owned, *reused), owned, strict=True):
                current[index] = table
            before = current.copy()
            for index in reused:
                assert barriers is not None
                barriers.watch(current[index])
            tracer = Tracer(segment, values, current, streams, barriers)
            tracer.trace(parts)
            self._note(padding, inputs, tracer.with_shapes())
            skips[:] = [_blocks_drawn(step, values) for step in segment.rng_steps]
            ok = [tracer.check.passed()] if tracer.check.flags else []
            for index in reused if ok else ():  # a step that fails changes nothing
                current[index] = jnp.where(ok[0], current[index], before[index])
            written = packing.repack(jax, jnp, variables[len(reads) :], current)
            return segment.collect(values, current), written, ok

        streams = [np.zeros(6, np.uint32)] * len(skips)
        variables = [*[state[i] for i in reads], *packing.samples()]
        args = self.arguments(
            inputs, variables, streams, joined, [state[i] for i in (*segment.owned, *reused)]
        )
        args = jax.tree.map(lambda x: x.abstract(jax) if isinstance(x, ArrayShape) else x, args)
        constants = self._placed([segment.template[slot] for slot in passed])
        owns = bool(segment.owned or reused)
        whole = trace
        if padding is not None:
            whole, args = padding.masked(jax, jnp, trace, (*args, constants), skips)
        jitted = jax.jit(whole, donate_argnums=4 if owns else ())
        if barriers is None or self.others:
            return CompiledSegment(
                jitted.trace(*args, constants).lower().compile(),
                None,
                skips,
                joined,
                constants,
                packing,
                padding=padding,
            )
        in_parts = in_parts and has_library_convolutions()
        with allow_calls(padding is None), conv_library.offered(in_parts) as offer:
            traced = jitted.trace(*args, constants)
        if owns and waits_for_itself(traced.jaxpr):  # it has to run where variables cannot change in place
            if segment.owned:
                return None
            self.reuses = False
            return self._compile(inputs, state, in_parts)
        call, cpu = compile_for_cpu(jax, traced, barriers.largest, owns, offer.taken)
        if call is None:
            return self._compile(inputs, state, in_parts=False)
        return CompiledSegment(call, cpu, skips, joined, constants, packing, reused, padding)

    def _packing(self, state: Sequence[Any], units: list[Unit] | None, reused: tuple[int, ...]) -> Packing:
        """The packs of a program, if its variables may have any."""
        if not self.stores or self.loose or "/device:CPU" not in self.device or self.others:
            return Packing(self.segment)
        alone = {*reused, *self.static_variables, *self.segment.optional}
        return plan_packing(self.segment, self.stores, state, units, alone)

    def _padding(self, inputs: Sequence[Any]) -> tuple[PaddedTrace | None, Sequence[Any]]:
        """How a program for these inputs serves other lengths too, if it does, and the inputs of its size."""
        lengths = None if self.padded is None else self.padded.lengths(shapes_of(inputs))
        if self.padded is None or lengths is None or not self.padded.bucket(lengths).pads:
            return None, inputs
        if self.static_inputs or self.static_variables or self.loose or self.segment.guarded:
            raise Unpaddable
        padding = PaddedTrace(self.segment, self.padded, self.padded.bucket(lengths))
        return padding, padding.pad(inputs)

    def _note(self, padding: PaddedTrace | None, inputs: Sequence[Any], values: Values) -> None:
        """Looks at the values of a trace."""
        if padding is not None:
            padding.note(values)
        elif self.varying is not None:
            self.varying.note(inputs, values, True)

    def _reused(self, state: Sequence[Any]) -> tuple[int, ...]:
        """The variables that a program changes where they are: large ones, since others stay in the cache anyway."""
        if not self.reuses:
            return ()
        changed = [i for i in self.segment.changed() if i not in self.static_variables]
        return tuple([i for i in changed if state[i] is not None and is_large(state[i].size)])

    def _placed(self, constants: list[Any]) -> tuple[Array, ...]:
        """Puts constants where the program's device takes them without a copy."""
        device = jax_device(self.device, self.others)
        if device is None:
            return tuple([aligned(x) for x in constants])
        jax, _ = load_jax()
        return tuple(jax.device_put(constants, device))

    def _joined(self, inputs: Sequence[Any]) -> list[list[int]]:
        """Groups of inputs of one type that are worth joining."""
        groups: dict[Any, list[int]] = {}
        for i, x in enumerate(inputs):
            if type(x) is np.ndarray and x.nbytes <= _MAX_JOINED_BYTES and i not in self.static_inputs:
                groups.setdefault(x.dtype, []).append(i)
        return [group for group in groups.values() if len(group) >= _MIN_JOINED_ARRAYS]

    def arguments(
        self,
        inputs: Sequence[Any],
        variables: Sequence[Any],
        streams: Sequence[Any],
        joined: list[list[int]],
        owned: Sequence[Any] = (),
        cpu: Device | None = None,
    ) -> tuple[Any, ...]:
        """The arguments of a compiled program, on its device."""
        joins = tuple(
            [np.concatenate([np.asarray(inputs[i]).reshape(-1) for i in group]) for group in joined]
        )
        if joined:
            within = {i for group in joined for i in group}
            inputs = [None if i in within else x for i, x in enumerate(inputs)]
        device = jax_device(self.device, self.others)
        if device is None:
            placed = tuple([aligned(x) for x in on_cpu(cpu, inputs)])
            return placed, joins, tuple(on_cpu(cpu, variables)), tuple(streams), tuple(owned)
        jax, _ = load_jax()
        moved: tuple[Any, ...] = jax.device_put(
            (tuple(inputs), joins, tuple(variables), tuple(streams), tuple(owned)), device
        )
        return moved

    def _make_static(self, code: int) -> bool:
        """Makes what `code` is computed from part of the program; False when nothing new could be.

        The same is done for everything else that kernels need the value of. Each of it would have another trace fail.
        """
        producer = {o: step for step in self.segment.steps for o in step.outs if o is not None}
        before = self._known()
        sources = self._sources(code, producer)
        if sources is None:
            return False
        self._fix(sources)
        if not self.segment.guarded:  # what a branch needs may never be traced
            for needed in {step.args[i] for step in self.segment.steps for i in step.static}:
                sources = self._sources(needed, producer)
                if sources is not None:
                    self._fix(sources)
        return self._known() > before

    def _fix(self, sources: set[int]) -> None:
        slot_to_input = {s: i for i, s in enumerate(self.segment.input_slots)}
        self.static_variables.update(~c for c in sources if c < 0)
        self.static_inputs.update(slot_to_input[c] for c in sources if c in slot_to_input)
        self.passed.difference_update(sources)

    def _sources(self, code: int, producer: dict[int, SegmentStep]) -> set[int] | None:
        """The inputs, variables and passed constants that a value is computed from; None if it cannot be known."""
        ends = {*self.segment.input_slots, *self.passed}
        result: set[int] = set()
        stack, done = [code], set()
        while stack:
            c = stack.pop()
            if c in done:
                continue
            done.add(c)
            if c < 0 and ~c in self.segment.owned:
                return None
            if c < 0 or c in ends:
                result.add(c)
            # Shapes are known while tracing, whatever their array is.
            elif c in producer and producer[c].op.type not in ("Shape", "ShapeN", "Size", "Rank"):
                if producer[c].rng is not None:
                    return None
                stack.extend(producer[c].args)
        return result

    def _known(self) -> int:
        """How many values are part of a program; only good for comparisons."""
        return len(self.static_inputs) + len(self.static_variables) - len(self.passed)


def _cut_apart(
    jnp: ArrayModule,
    joined: list[list[int]],
    joins: Sequence[Array],
    shapes: Sequence[Any],
    inputs: list[Any],
) -> None:
    """Gives inputs that were joined for the call their values again."""
    for group, join in zip(joined, joins, strict=True):
        parts = jnp.split(join, np.cumsum([math.prod(shapes[i]) for i in group])[:-1])
        for i, part in zip(group, parts, strict=True):
            inputs[i] = part.reshape(shapes[i])


def _blocks_drawn(step: SegmentStep, values: Values) -> int:
    """How many blocks of its random stream a step has used."""
    outs = [values[o] for o in step.outs if o is not None]
    assert step.op.spec.rng is not None
    return 0 if outs[0] is None else step.op.spec.rng(step.op, outs)


def _large_constants(segment: Segment) -> set[int]:
    """The slots of constants that are better passed to a program than put into it."""
    return {
        slot
        for slot, value in enumerate(segment.template)
        if isinstance(value, np.ndarray) and value.nbytes >= _MIN_PASSED_BYTES and value.dtype.kind != "O"
    }


def _fed_conditions(segment: Segment) -> set[int]:
    """The inputs that are conditions of branches as they come."""
    decisive = {code for step in segment.steps for code, _ in step.guard}
    return {
        i
        for i, (slot, t) in enumerate(zip(segment.input_slots, segment.inputs, strict=True))
        if slot in decisive and t.dtype.base_dtype.name == "bool"
    }
