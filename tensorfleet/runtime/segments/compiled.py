"""The compiled mode of a segment: trace it once per signature, compile, call."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.kernels import conv_library
from tensorfleet.kernels.aligned_memory import aligned
from tensorfleet.runtime.devices import jax_device, load_jax, on_cpu
from tensorfleet.runtime.segments.segment import _CONCRETE, NeedsValue, Segment, SegmentStep
from tensorfleet.runtime.segments.shape_variance import Varying
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
# Variables are changed in place as long as others seldom want them meanwhile (decision 16). A disturbed run counts as
# so many undisturbed ones, so more than one in nine fills the count; then the next program makes new arrays again.
_DISTURBANCE_WEIGHT = 8
_MAX_DISTURBANCE = 128


class CompiledSegment:
    """One signature of a segment as an XLA program."""

    __slots__ = ("_direct", "call", "constants", "cpu", "joined", "proven", "reused", "skips")

    def __init__(
        self,
        call: Callable[..., Any],
        cpu: Device | None,
        skips: list[int],
        joined: list[list[int]],
        constants: tuple[Array, ...],
        reused: tuple[int, ...] = (),
    ) -> None:
        self.call = self._direct = call
        self.constants = constants  # its last argument, always the same
        self.cpu = cpu  # which of the CPU's devices it runs on, None for the usual one
        self.skips = skips
        self.joined = joined  # inputs that are passed as one
        self.reused = reused  # variables that get their new values in place, beside those the segment owns
        self.proven = False  # whether it has run before: it may have asked for more memory than there is

    def run(self, args: tuple[Any, ...], made: list[Any]) -> tuple[Values, Values, list[Array]]:
        """Gives the outputs, the new values of variables, and whether all checks held, if there are any.

        The step is over when the results are ready: XLA may still be reading the caller's arrays until then.
        """
        with within_xla:
            # Extended in C: an interrupt (Ctrl-C) is raised after `made` has the results, never between the two. The old
            # values of variables may be gone by then (decision 16).
            made.extend(starmap(self._direct, ((*args, self.constants),)))
            outputs, written, ok = made[0]
            for result in ok or written or outputs:  # all of them become ready together
                if result is not None:
                    result.block_until_ready()
                    break
        if not self.proven:
            self.proven = True
            # At the first call JAX makes `_call`, its entry in C++. It saves the Python function around it.
            self._direct = getattr(self.call, "_call", None) or self.call
        return outputs, written, ok


class _Checks:
    """Collects the checks of kernels while they are traced."""

    def __init__(self, jnp: ArrayModule) -> None:
        self._jnp = jnp
        self.flags: list[Any] = []

    def __call__(
        self, ok: Any, message: Callable[[], str] | str, kind: Callable[..., errors.OpError] | None = None
    ) -> None:
        if not isinstance(ok, (bool, *_CONCRETE)):
            self.flags.append(self._jnp.all(ok))
        elif not np.all(ok):
            text = message() if callable(message) else message
            raise (kind or errors.InvalidArgumentError)(None, None, text)

    def passed(self) -> Array:
        """Whether none of the checks has failed so far."""
        return self._jnp.all(self._jnp.stack(self.flags)) if self.flags else self._jnp.asarray(True)


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
        # Whether variables get their new values in place; how often somebody else wanted them meanwhile (weighted).
        self.reuses = "/device:CPU" in device and not others
        self.disturbed = 0

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

    def program(self, inputs: Sequence[Any], state: Sequence[Any]) -> CompiledSegment | None:
        """The program for these arguments, compiled now if need be; None to run in numpy."""
        key = self.key(inputs, state)
        found = self.programs.get(key)
        if found is not None or key in self.programs:
            if self.varying is not None:
                self.varying.runs += 1
            return found
        with self.lock:
            key = self.key(inputs, state)  # another thread may have made more of it static meanwhile
            if key in self.programs:
                return self.programs[key]
            if not self._worth(key):
                return None
            began = time.perf_counter()
            while True:
                try:
                    with within_xla:
                        made = self._compile(inputs, state)
                    self.compiling = min(self.compiling, time.perf_counter() - began)
                    break
                except NeedsValue as need:
                    if not self._make_static(need.code, inputs, state):
                        made = None
                        break
            self.programs[self.key(inputs, state)] = made
            return made

    def key(self, inputs: Sequence[Any], state: Sequence[Any]) -> Signature:
        """Tells programs apart: by shapes, and by the values of static arguments."""
        shapes = shapes_of(inputs)
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
            self.shapes is None or self.shapes == (key[0] if self.static_inputs else key)[: len(self.shapes)]
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
        return times > 1 and (self.heavy or times * self.fastest > cost)

    def _compile(
        self, inputs: Sequence[Any], state: Sequence[Any], in_parts: bool = True
    ) -> CompiledSegment | None:
        jax, jnp = load_jax()
        segment = self.segment
        skips: list[int] = [0] * len(segment.rng_steps)
        tables = [state[i].shape for i in segment.owned]
        barriers = Barriers(segment, jax, tables) if "/device:CPU" in self.device else None
        fixed_inputs = {i: None if inputs[i] is None else np.asarray(inputs[i]) for i in self.static_inputs}
        fixed_state = {i: np.asarray(state[i]) for i in self.static_variables}

        joined = self._joined(inputs)
        reused = self._reused(state)
        reads = [i for i in segment.reads if i not in reused]
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
            check = _Checks(jnp)
            values = list(segment.template)
            given = [fixed_inputs.get(i, arg) for i, arg in enumerate(args)]
            _cut_apart(jnp, joined, joins, shapes, given)
            for slot, value in zip((*passed, *segment.input_slots), (*constants, *given), strict=True):
                values[slot] = value
            current: Values = [None] * len(segment.variables)
            for i, index in enumerate(reads):
                current[index] = fixed_state.get(index, variables[i])
            for index, table in zip((*segment.owned, *reused), owned, strict=True):
                current[index] = table
            before = current.copy()
            for index in reused:
                assert barriers is not None
                barriers.watch(current[index])
            segment.interpret(values, current, streams, jnp, check, barriers)
            if self.varying is not None:
                self.varying.note(inputs, values, True)
            skips[:] = [_blocks_drawn(step, values) for step in segment.rng_steps]
            ok = [check.passed()] if check.flags else []
            for index in reused if ok else ():  # a step that fails changes nothing
                current[index] = jnp.where(ok[0], current[index], before[index])
            return segment.collect(values, current), [current[w] for w in segment.writes], ok

        args = self.arguments(inputs, state, [np.zeros(6, np.uint32)] * len(skips), joined, None, reused)
        constants = self._placed([segment.template[slot] for slot in passed])
        owns = bool(segment.owned or reused)
        jitted = jax.jit(trace, donate_argnums=4 if owns else ())
        if barriers is None or self.others:
            return CompiledSegment(
                jitted.trace(*args, constants).lower().compile(), None, skips, joined, constants
            )
        with conv_library.offered(in_parts and has_library_convolutions()) as offer:
            traced = jitted.trace(*args, constants)
        if owns and waits_for_itself(traced.jaxpr):  # it has to run where variables cannot change in place
            if segment.owned:
                return None
            self.reuses = False
            return self._compile(inputs, state, in_parts)
        call, cpu = compile_for_cpu(jax, traced, barriers.largest, owns, offer.taken)
        if call is None:
            return self._compile(inputs, state, in_parts=False)
        return CompiledSegment(call, cpu, skips, joined, constants, reused)

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
        state: Sequence[Any],
        streams: Sequence[Any],
        joined: list[list[int]],
        cpu: Device | None = None,
        reused: tuple[int, ...] = (),
    ) -> tuple[Any, ...]:
        """The arguments of a compiled program, on its device."""
        joins = tuple(
            [np.concatenate([np.asarray(inputs[i]).reshape(-1) for i in group]) for group in joined]
        )
        if joined:
            within = {i for group in joined for i in group}
            inputs = [None if i in within else x for i, x in enumerate(inputs)]
        variables = tuple([state[i] for i in self.segment.reads if i not in reused])
        owned = tuple([state[i] for i in (*self.segment.owned, *reused)])
        device = jax_device(self.device, self.others)
        if device is None:
            placed = tuple([aligned(x) for x in on_cpu(cpu, inputs)])
            return placed, joins, tuple(on_cpu(cpu, variables)), tuple(streams), owned
        jax, _ = load_jax()
        moved: tuple[Any, ...] = jax.device_put(
            (tuple(inputs), joins, variables, tuple(streams), owned), device
        )
        return moved

    def _make_static(self, code: int, inputs: Sequence[Any], state: Sequence[Any]) -> bool:
        """Marks the inputs that `code` is computed from as static; False when nothing new could be marked."""
        segment = self.segment
        producer = {o: step for step in segment.steps for o in step.outs if o is not None}
        slot_to_input = {s: i for i, s in enumerate(segment.input_slots)}
        before = self._known()
        stack, done = [code], set()
        while stack:
            c = stack.pop()
            if c in done:
                continue
            done.add(c)
            if c < 0 and ~c in segment.owned:
                return False
            if c < 0:
                self.static_variables.add(~c)
            elif c in slot_to_input:
                self.static_inputs.add(slot_to_input[c])
            elif c in self.passed:
                self.passed.remove(c)
            # Shapes are known while tracing, whatever their array is.
            elif c in producer and producer[c].op.type not in ("Shape", "ShapeN", "Size", "Rank"):
                if producer[c].rng is not None:
                    return False
                stack.extend(producer[c].args)
        return self._known() > before

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
