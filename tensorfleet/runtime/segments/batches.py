"""Equal operations of a segment, traced as one operation on stacked arrays.

A model with many small variables does the same to each of them. XLA takes some milliseconds to compile each
operation, and a program of a thousand scalar updates runs ten times slower than one update of a thousand elements. So
operations that are equal in all but their arguments, and do not need each other, become one: their arguments are
stacked, and the kernel is mapped over the stack (`jax.vmap`). A result stays in its stack until something needs it alone.

Operations are equal in type, attributes, and the types and shapes of their arguments. They do not need each other if
they are on the same level: a level is one more than that of everything an operation has to follow. Updates that
nothing follows are all on the last level, at whatever depth their gradients are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorfleet.graph.kernels import Kernel
from tensorfleet.passes.equal_ops import MIN_EQUAL
from tensorfleet.runtime.segments.segment import _CONCRETE, NeedsValue, Segment, SegmentStep

if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import ModuleType

    from tensorfleet.base.types import ArrayModule, Dims
    from tensorfleet.graph.kernel_types import Check
    from tensorfleet.runtime.segments.xla_barriers import Barriers
    from tensorfleet.runtime.values import Values

# An argument with more elements is not stacked: the copy would take longer than the call of one more kernel.
_MAX_STACKED_ELEMENTS = 4096
# A stack stays in the processor's cache, and is below what XLA divides among threads.
_MAX_STACK_ELEMENTS = 1 << 17
# Attributes that do not change what an operation computes.
_NAMES = {"_class", "use_locking", "shared_name", "container"}


class Row:
    """A value that is one row of a stack."""

    __slots__ = ("index", "stack")

    def __init__(self, stack: Any, index: int) -> None:
        self.stack = stack
        self.index = index

    @property
    def shape(self) -> Dims:
        """The shape of the value."""
        shape: Dims = self.stack.shape[1:]
        return shape

    def alone(self, jax: ModuleType) -> Any:
        """The value."""
        return jax.lax.index_in_dim(self.stack, self.index, 0, keepdims=False)


class NotStackable(Exception):
    """Values are not as equal as the graph tells; the segment is traced operation by operation."""


class Batch:
    """Operations that are traced as one."""

    __slots__ = ("steps",)

    def __init__(self, steps: list[SegmentStep]) -> None:
        self.steps = steps

    def trace(
        self, jax: ModuleType, jnp: ArrayModule, values: Values, state: Values, barriers: Barriers | None
    ) -> None:
        """Computes the results of all operations."""
        leader = self.steps[0]
        rows = [[_value_of(code, values, state) for code in step.args] for step in self.steps]
        if all(isinstance(value, _CONCRETE) for row in rows for value in row):
            # What follows from shapes alone stays known: others may need it to be traced.
            for step, row in zip(self.steps, rows, strict=True):
                _keep(step, step.kernel.call(np, row), values, state)
            return
        columns = [_column(jax, jnp, list(column)) for column in zip(*rows, strict=True)]
        for i in leader.static:
            column, differs = columns[i]
            if differs:
                raise NotStackable
            if not isinstance(column, _CONCRETE):
                raise NeedsValue(leader.args[i])
        mapped = [i for i, (_, differs) in enumerate(columns) if differs]
        args = [column for column, _ in columns]
        results = _mapped(jax, jnp, leader, args, mapped)
        if barriers is not None:
            traced = barriers(leader, args, tuple([result for result, _ in results]))
            results = [(result, differs) for result, (_, differs) in zip(traced, results, strict=True)]
        for n, step in enumerate(self.steps):
            _keep(step, [Row(result, n) if differs else result for result, differs in results], values, state)


def _keep(step: SegmentStep, results: Sequence[Any], values: Values, state: Values) -> None:
    """Puts the results of a step where others find them."""
    for variable, value in zip(step.updates, results, strict=False):
        state[variable] = value
    for out, value in zip(step.outs, results[len(step.updates) :], strict=True):
        if out is not None:
            values[out] = value


def _mapped(
    jax: ModuleType, jnp: ArrayModule, leader: SegmentStep, args: Values, mapped: list[int]
) -> list[tuple[Any, bool]]:
    """The results of a kernel, each with whether it is a stack. It is mapped over the arguments at `mapped`."""
    if not mapped:
        xp: Any = np if all(isinstance(a, _CONCRETE) for a in args) else jnp
        return [(result, False) for result in leader.kernel.call(xp, args)]
    known: dict[int, Any] = {}  # results that follow from the shapes alone stay known

    def one(*rows: Any) -> list[Any]:
        inner = list(args)
        for i, row in zip(mapped, rows, strict=True):
            inner[i] = row
        results = leader.kernel.call(jnp, inner)
        known.update((i, r) for i, r in enumerate(results) if isinstance(r, _CONCRETE))
        return [r for r in results if not isinstance(r, _CONCRETE)]

    stacks = iter(jax.vmap(one)(*[args[i] for i in mapped]))
    count = len(leader.outs) + len(leader.updates)
    return [(known[i], False) if i in known else (next(stacks), True) for i in range(count)]


def _value_of(code: int, values: Values, state: Values) -> Any:
    return values[code] if code >= 0 else state[~code]


def _column(jax: ModuleType, jnp: ArrayModule, values: list[Any]) -> tuple[Any, bool]:
    """One argument of equal operations: the value that all have, or a stack of their values; and whether these differ."""
    first = values[0]
    if all(value is first for value in values):
        return (first.alone(jax) if isinstance(first, Row) else first), False
    if all(isinstance(value, _CONCRETE) for value in values):
        same = all(value.tobytes() == first.tobytes() for value in values)
        return (first, False) if same else (np.stack(values), True)
    return stack(jax, jnp, values), True


def stack(jax: ModuleType, jnp: ArrayModule, values: Sequence[Any]) -> Any:
    """Values of one shape as rows of one array. Rows that are next to each other already are not copied one by one."""
    if len({np.shape(value) for value in values}) > 1:
        raise NotStackable
    pieces = []
    for _, run in itertools.groupby(
        values, key=lambda value: id(value.stack) if isinstance(value, Row) else 0
    ):
        rows = list(run)
        pieces.append(_rows(jax, rows) if isinstance(rows[0], Row) else jnp.stack(rows))
    return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces)


def _rows(jax: ModuleType, rows: list[Row]) -> Any:
    """Some rows of one stack."""
    whole = rows[0].stack
    indices = [row.index for row in rows]
    first, last = indices[0], indices[-1] + 1
    if indices == list(range(first, last)):
        return whole if last - first == len(whole) else jax.lax.slice_in_dim(whole, first, last)
    return whole[np.array(indices)]


#: What is traced at once: a batch, or steps one by one.
Unit: TypeAlias = Batch | list[SegmentStep]


def units_of(segment: Segment) -> list[Unit] | None:
    """The steps of a segment in an order in which equal ones can be traced together; None if few are equal."""
    if segment.guarded or len(segment.steps) < MIN_EQUAL:
        return None
    levels = _levels(segment)
    groups: dict[tuple[int, Hashable], list[SegmentStep]] = {}
    for n, (step, level) in enumerate(zip(segment.steps, levels, strict=True)):
        key = _key(segment, step)
        groups.setdefault((level, n if key is None else key), []).append(step)
    if all(len(group) < MIN_EQUAL for group in groups.values()):
        return None
    units: list[Unit] = []
    ranks: dict[int, int] = {}  # of a value, or of a variable (~index), in the stack that it is a row of
    for _, group in sorted(groups.items(), key=lambda item: item[0][0]):
        if len(group) >= MIN_EQUAL:
            units += map(Batch, _in_stacks(_in_rows(group, ranks)))
        elif units and isinstance(units[-1], list):
            units[-1] += group
        else:
            units.append(group)
    return units


def _levels(segment: Segment) -> list[int]:
    """The level of each step."""
    level_of: dict[int, int] = {}  # the level at which a value (or a variable's, ~index) was computed
    read: dict[int, int] = {}  # the last level at which a variable was read
    levels = []
    for step in segment.steps:
        codes = (*step.args, *(~u for u in step.updates))
        level = 1 + max([0, *[level_of.get(c, 0) for c in codes], *[read.get(~u, 0) for u in step.updates]])
        levels.append(level)
        read.update({a: max(level, read.get(a, 0)) for a in step.args if a < 0})
        level_of.update({o: level for o in step.outs if o is not None})
        level_of.update({~u: level for u in step.updates})
    last = max(levels, default=0) + 1
    needed = {c for c in segment.output_codes if c >= 0}
    touched: set[int] = set()  # variables that a later step reads or writes
    written: set[int] = set()  # variables that a later step writes
    for n in range(len(levels) - 1, -1, -1):
        step = segment.steps[n]
        updates = {~u for u in step.updates}
        variables = {a for a in step.args if a < 0}
        followed = updates & touched or variables & written or not needed.isdisjoint(step.outs)
        if updates and not followed:
            levels[n] = last
        needed.update(step.args)
        touched |= variables | updates
        written |= updates
    return levels


def _key(segment: Segment, step: SegmentStep) -> Hashable | None:
    """What steps must have in common to be traced together; None for one that is always traced alone."""
    spec = step.op.spec
    if type(step.kernel) is not Kernel or step.rng is not None or step.kernel.checks:
        return None
    if spec.heavy or spec.overwrites or spec.rows is not None or (spec.stateful and not step.updates):
        return None
    args: list[Hashable] = []
    for code, tensor in zip(step.args, step.op._inputs, strict=True):
        shape = segment.variables[~code]._attrs["shape"] if code < 0 else tensor.shape
        size = shape.num_elements()
        if size is None or not 0 < size <= _MAX_STACKED_ELEMENTS:
            return None
        constant = code >= 0 and segment.template[code] is not None
        args.append((tuple(shape.as_list()), tensor.dtype.base_dtype, code < 0, constant))
    for i in step.static:
        known = segment.template[step.args[i]] if step.args[i] >= 0 else None
        args.append(None if known is None else known.tobytes())
    attrs = [(name, repr(value)) for name, value in step.op._attrs.items() if name not in _NAMES]
    return step.op.type, tuple(args), tuple(sorted(attrs)), len(step.updates), len(step.outs)


def _in_rows(group: list[SegmentStep], ranks: dict[int, int]) -> list[SegmentStep]:
    """The steps in the order of the stack that their first arguments are rows of, so that it need not be rearranged."""

    def rank(step: SegmentStep) -> tuple[int, int]:
        own = [a for a in step.args if a < 0]
        return next((ranks[a] for a in step.args if a in ranks), len(ranks)), ~min(own, default=-1)

    ordered = sorted(group, key=rank)
    for n, step in enumerate(ordered):
        ranks.update((out, n) for out in step.outs if out is not None)
    return ordered


def _in_stacks(steps: list[SegmentStep]) -> list[list[SegmentStep]]:
    """Equal steps in parts whose stacks are not too large."""
    largest = max(
        [t.shape.num_elements() or 1 for t in (*steps[0].op._inputs, *steps[0].op._outputs)], default=1
    )
    count = max(_MAX_STACK_ELEMENTS // largest, 1)
    return [steps[first : first + count] for first in range(0, len(steps), count)]


def trace_units(
    jax: ModuleType,
    segment: Segment,
    units: Iterable[Unit],
    values: Values,
    state: Values,
    streams: Sequence[Any],
    check: Check,
    barriers: Barriers | None,
) -> None:
    """Traces the steps of a segment. Variables may stay rows of stacks."""
    jnp = jax.numpy
    for unit in units:
        if isinstance(unit, Batch):
            try:
                unit.trace(jax, jnp, values, state, barriers)
            except (NeedsValue, NotStackable):
                raise
            except Exception as e:  # traced alone, the operation that is wrong says so itself
                raise NotStackable from e
            continue
        for step in unit:
            if step.op.type == "AddN" and _add_rows(jax, jnp, step, values):
                continue
            _settle(jax, step.args, values, state)
            segment.interpret(values, state, streams, jnp, check, barriers, [step])
    _settle(jax, segment.output_codes, values, state)


def take_apart(jax: ModuleType, state: Values) -> None:
    """Takes all variables out of their stacks."""
    _settle(jax, [~i for i in range(len(state))], [], state)


def _settle(jax: ModuleType, codes: Iterable[int], values: Values, state: Values) -> None:
    """Takes values out of their stacks."""
    for code in codes:
        value = _value_of(code, values, state)
        if isinstance(value, Row):
            if code >= 0:
                values[code] = value.alone(jax)
            else:
                state[~code] = value.alone(jax)


def _add_rows(jax: ModuleType, jnp: ArrayModule, step: SegmentStep, values: Values) -> bool:
    """Traces a sum of many rows as a sum over their stacks, if it is one: to take each row by itself would undo the batch."""
    out = step.outs[0]
    if out is None or any(a < 0 for a in step.args):
        return False
    args = [values[a] for a in step.args]
    stacks: dict[int, list[Row]] = {}
    for value in args:
        if isinstance(value, Row):
            stacks.setdefault(id(value.stack), []).append(value)
    if all(len(rows) < MIN_EQUAL for rows in stacks.values()):
        return False
    alone = [value for value in args if not isinstance(value, Row)]
    sums = [
        jnp.sum(_rows(jax, sorted(rows, key=lambda row: row.index)), axis=0, dtype=rows[0].stack.dtype)
        for rows in stacks.values()
    ]
    values[out] = step.kernel.function(jnp, [*sums, *alone])
    return True
