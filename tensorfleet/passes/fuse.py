"""Merge operations into the fewest segments that no path leaves and re-enters.

Every operation gets a level: segments of level k run before host operations of level k, which run before
segments of level k + 1. Levels never fall along an edge, so a segment (all fusable operations of one
device at one level) can always run as one unit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tensorfleet.base.devices import hardware
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.batch_host_ops import joinable, put_off
from tensorfleet.passes.index_ops import index_ops
from tensorfleet.passes.owned_tables import owned_tables, reads_of
from tensorfleet.passes.plan import Part, PartKind, Plan, maker_of, updated_by, variable_of
from tensorfleet.passes.segment_sizes import cut

#: the operations that must come before each
_Edges: TypeAlias = dict[Operation, list[Operation]]
# Variables of at least this many elements are gathered from by rows, without handing out the whole.
_MIN_TABLE_ELEMENTS = 1 << 15
_TAKES = {"AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient"}
# Members of an enum are slow to look up in Python 3.11, and this one is compared with for every edge.
_SEGMENT = PartKind.SEGMENT


def fuse(plan: Plan) -> Plan:
    """Fills `plan.parts`."""
    gathers, hidden = _row_gathers(plan)
    known = set(plan.feeds) | plan.constants.keys()
    laid = _lay_out(plan, known, gathers, hidden, {})
    tables = owned_tables(plan, laid.kinds, hidden, known)
    if plan.by_op:
        tables = {}
    # Taking tables into segments changes the levels, and may part the operations on another table: until all hold.
    while tables:
        trial = _lay_out(plan, known, gathers, hidden, tables)
        together = {v: ops for v, ops in tables.items() if len({trial.segment_of(op) for op in ops}) == 1}
        if len(together) == len(tables):
            laid = trial
            break
        tables = together
    plan.gathers = frozenset(op for op, kind in laid.kinds.items() if kind is PartKind.GATHER)
    parts = _group(plan, laid)
    _connect(plan, parts, laid.before)
    plan.parts = parts
    return plan


@dataclass
class _Layout:
    """The operations that run: kind and level of each, and the operations before it."""

    ops: list[Operation]
    kinds: dict[Operation, PartKind]
    before: _Edges
    levels: dict[Operation, int]
    #: see `_freeing`
    freeing: dict[Operation, frozenset[Operation]]
    #: the operations that may be called together, each with what those that are have in common
    alike: dict[Operation, Hashable] = field(default_factory=dict)

    def segment_of(self, op: Operation) -> tuple[int, frozenset[Operation] | None]:
        """The key of an operation's segment among the others of its device."""
        return self.levels[op], self.freeing.get(op)


def _lay_out(
    plan: Plan,
    known: set[Tensor],
    gathers: set[Operation],
    hidden: set[Operation],
    tables: dict[Operation, list[Operation]],
) -> _Layout:
    """Decides the kind of every operation, with all operations on `tables` inside segments."""
    inside = {op for ops in tables.values() for op in ops}
    hidden = hidden - reads_of(tables, hidden)
    ops = [op for op in plan.ops if not op.spec.variable and op not in hidden]
    before = {op: _before(op, plan, known, hidden) for op in ops}
    _read_after_initializing(plan, ops, before)
    kinds = {op: _SEGMENT if op in inside else _kind(op, plan, gathers) for op in ops}
    _share(plan, kinds, before, (PartKind.HOST, PartKind.VARYING))
    if not plan.by_op:
        kinds.update(dict.fromkeys(index_ops(plan, kinds, known), PartKind.INDEX))
    _share(plan, kinds, before, (PartKind.INDEX,))
    _wait_for_all(ops, kinds, before)
    levels = _levels(plan, ops, kinds, before)
    _delay(plan, ops, kinds, before, levels)
    return _Layout(ops, kinds, before, levels, _freeing(ops, before))


def _share(
    plan: Plan, kinds: dict[Operation, PartKind], before: _Edges, shared: tuple[PartKind, ...]
) -> None:
    """Leaves out operations of some kinds whose results another one gives."""
    for op, first in plan.same.items():
        if kinds[op] is kinds[first] and kinds[op] in shared:
            kinds[op] = PartKind.SAME
            before[op] = list(dict.fromkeys([*before[op], first]))


def _kind(op: Operation, plan: Plan, gathers: set[Operation]) -> PartKind:
    if op in gathers:
        return PartKind.GATHER
    if op in plan.loops:
        return PartKind.LOOP
    if op.spec.rows is not None:
        return PartKind.ROWS
    if op.spec.elementwise and _arrives(op, plan):
        return PartKind.CHUNKS
    inputs: list[Tensor] = list(op._inputs)
    if op.type == "Assert":  # its texts are used only in the message of a failure
        inputs = [t for t in inputs if t not in plan.constants]
    objects = any(_objects(t, plan) for t in (*inputs, *op._outputs))
    if objects and op in plan.merges:
        return PartKind.MERGE
    if op.spec.host or objects or (op.spec.in_numpy is not None and op.spec.in_numpy(op)):
        # A read or write of a string variable goes through the variable's store, but never through XLA.
        return PartKind.ALONE if not op.spec.host and _touches_variable(op, plan) else PartKind.HOST
    if plan.by_op:
        return PartKind.ALONE
    if op in plan.varying:
        return PartKind.ALONE if op.spec.updates else PartKind.VARYING
    return _SEGMENT


def _arrives(op: Operation, plan: Plan) -> bool:
    """Whether an update of a large variable gets its values from outside, or an accumulator: nothing to fuse it with."""
    variable = variable_of(op._inputs[0])
    if variable is None or (variable._attrs["shape"].num_elements() or 0) < _MIN_TABLE_ELEMENTS:
        return False
    # A value that this step computes is fused with the update instead.
    references = {op.input_list(u)[0] for u in op.spec.updates}
    known = plan.constants
    return all(
        i in references or t in known or t in plan.feeds or t.shape.rank == 0 or t._op.type in _TAKES
        for i, t in enumerate(op._inputs)
    )


def _wait_for_all(ops: list[Operation], kinds: dict[Operation, PartKind], before: _Edges) -> None:
    """Lets an in-place update by an accumulator's gradient wait for all accumulators, as a segment of them would."""
    place = {op: n for n, op in enumerate(ops)}
    taking = [op for op in ops if op.type in _TAKES]
    for op in ops if taking else ():
        if kinds[op] is PartKind.CHUNKS and any(t._op.type in _TAKES for t in op._inputs):
            if place[taking[-1]] < place[op]:
                before[op] = list(dict.fromkeys([*before[op], *taking]))
            else:
                kinds[op] = _SEGMENT


def _touches_variable(op: Operation, plan: Plan) -> bool:
    return any(
        (t.dtype._is_ref_dtype or t.dtype.name == "resource") and plan.variable_of(t) is not None
        for t in op._inputs
    )


def _objects(tensor: Tensor, plan: Plan) -> bool:
    """Whether a tensor holds Python objects: strings, or resources other than variables."""
    if tensor.dtype.np_dtype.kind != "O":
        return False
    return tensor.dtype.name != "resource" or plan.variable_of(tensor) is None


def _row_gathers(plan: Plan) -> tuple[set[Operation], set[Operation]]:
    """The gathers that fetch rows straight from a variable, and the reads that nothing else needs."""
    fetched = set(plan.fetches)
    row_updated = {
        variable_of(op._inputs[op.input_list(u)[0]])
        for op in plan.ops
        if op.spec.rows is not None
        for u in op.spec.updates
    }
    needed = set(plan.ops)
    gathers: set[Operation] = set()
    reads: dict[Operation, int] = {}
    for op in plan.ops:
        if not _gathers_rows(op, plan):
            continue
        source = op._inputs[0]
        read = None if source.dtype.name == "resource" or source.dtype._is_ref_dtype else source._op
        if source in plan.fed or (read is not None and read.type not in ("Identity", "ReadVariableOp")):
            continue
        if (op, 0) in plan.live:
            continue
        variable = plan.variable_of(source if read is None else read._inputs[0])
        if variable is None or (read is not None and not _from_variable(read)):
            continue
        size = variable._attrs["shape"].num_elements() or 0
        # A table whose rows are updated in place must not be handed out as a whole: the update would have to copy it.
        if size < _MIN_TABLE_ELEMENTS and variable not in row_updated:
            continue
        gathers.add(op)
        if read is not None:
            reads[read] = reads.get(read, 0) + 1
    hidden: set[Operation] = set()
    targets = set(plan.targets)
    for read in reads:
        users = [c for c in read._outputs[0]._consumers if c in needed]
        waited = any(read in op._control_inputs for op in needed)
        if (
            all(c in gathers for c in users)
            and read._outputs[0] not in fetched
            and read not in targets
            and not waited
        ):
            hidden.add(read)
    # A gather whose read stays would copy for nothing: it reads what has been handed out anyway.
    gathers -= {op for op in gathers if not _direct(op) and op._inputs[0]._op not in hidden}
    return gathers, hidden


def _direct(op: Operation) -> bool:
    return op._inputs[0].dtype.name == "resource" or op._inputs[0].dtype._is_ref_dtype


def _from_variable(read: Operation) -> bool:
    source = read._inputs[0]
    return source.dtype._is_ref_dtype or source.dtype.name == "resource"


def _gathers_rows(op: Operation, plan: Plan) -> bool:
    if op.type in ("GatherV2", "ResourceGather"):
        if op._attrs.get("batch_dims", 0):
            return False
        if op.type == "GatherV2":
            axis = plan.constants.get(op._inputs[2])
            return axis is not None and int(axis) == 0
        return True
    return op.type == "Gather"


def _before(op: Operation, plan: Plan, known: set[Tensor], hidden: set[Operation]) -> list[Operation]:
    """The operations of the plan that must come first."""
    before: dict[Operation, None] = {}
    stack = [t._op for t in op._inputs if t not in known] + op._control_inputs
    stack += [p._op for p, _ in plan.guards.get(op, ()) if p not in known]
    for choice in plan.merges.get(op, ()):
        stack += [p._op for p, _ in choice if p not in known]
    while stack:
        b = stack.pop()
        b = plan.inside.get(b, b)
        if b.spec.variable or b in hidden:
            # Nothing runs for these; what they wait for must still come first.
            stack.extend(b._control_inputs)
            if b in hidden:
                stack.extend(t._op for t in b._inputs)
        elif b in plan.devices:
            before[b] = None
    return list(before)


def _read_after_initializing(
    plan: Plan, ops: list[Operation], before: dict[Operation, list[Operation]]
) -> None:
    """Orders a read after the assignments made before it, where the graph leaves it open.

    So one run can initialize variables whose initial values read each other, in the order they were made. What
    comes after an operation that waits is left in the order that the waiting gives.
    """
    written: dict[Operation, list[Operation]] = {}
    waiting: set[Operation] = set()
    # As the list has them, not as they were made: an old assignment may have been given what a newer read gives.
    place = {op: n for n, op in enumerate(ops)}
    for op in ops:
        if op.spec.blocks or not waiting.isdisjoint(before[op]):
            waiting.add(op)
        elif op.spec.overwrites:
            variable = variable_of(op._inputs[op.input_list(op.spec.updates[0])[0]])
            if variable is not None:
                written.setdefault(variable, []).append(op)
    if not written:
        return
    for op in ops:
        if op.spec.updates or op in waiting:
            continue
        for t in op._inputs:
            variable = plan.variable_of(t) if t.dtype._is_ref_dtype or t.dtype.name == "resource" else None
            earlier = (
                [w for w in written.get(variable, ()) if place[w] < place[op]] if variable is not None else []
            )
            before[op] += [w for w in earlier if w not in before[op]]


def _are_together(plan: Plan, a: Operation, b: Operation) -> bool:
    """Whether two operations may be in one segment.

    Virtual CPUs are one processor: a segment of each would only mean that two programs share the threads that one
    has for itself.
    """
    one, other = plan.devices[a], plan.devices[b]
    return one == other or hardware(one) == hardware(other)


def _levels(
    plan: Plan, ops: list[Operation], kinds: dict[Operation, PartKind], before: _Edges
) -> dict[Operation, int]:
    levels: dict[Operation, int] = {}
    for op in ops:
        level = 0
        fusable = kinds[op] is _SEGMENT
        for b in before[op]:
            if b not in levels:
                continue  # a constant
            step = 0
            # Only entering a segment raises the level: host operations of a level run after its segments.
            if fusable and (kinds[b] is not _SEGMENT or not _are_together(plan, b, op)):
                step = 1
            level = max(level, levels[b] + step)
        levels[op] = level
    return levels


def _delay(
    plan: Plan,
    ops: list[Operation],
    kinds: dict[Operation, PartKind],
    before: _Edges,
    levels: dict[Operation, int],
) -> None:
    """Moves operations to the latest level they can have, so that they join the segment of their users."""
    last, updated = _last_and_updated(plan, ops, kinds, levels)
    if not any(last.values()):
        return
    after: dict[Operation, list[Operation]] = {}
    for op in ops:
        for b in before[op]:
            after.setdefault(b, []).append(op)
    for op in reversed(ops):
        if kinds[op] is not _SEGMENT or op.spec.updates or (levels[op] and op not in after):
            continue
        latest = last[hardware(plan.devices[op])]
        for user in after.get(op, ()):
            same = kinds[user] is not _SEGMENT or _are_together(plan, user, op)
            latest = min(latest, levels[user] if same else levels[user] - 1)
        for t in op._inputs:
            if t.dtype._is_ref_dtype or t.dtype.name == "resource":
                variable = plan.variable_of(t)
                if variable in updated:  # a read stays before the update it was made before
                    latest = min(latest, max(updated[variable], levels[op]))
        levels[op] = max(levels[op], latest)


def _last_and_updated(
    plan: Plan, ops: list[Operation], kinds: dict[Operation, PartKind], levels: dict[Operation, int]
) -> tuple[dict[str, int], dict[Operation, int]]:
    """The last level with a segment on each processor, and the first level that updates each variable."""
    last: dict[str, int] = {}
    updated: dict[Operation, int] = {}
    for op in ops:
        if kinds[op] is _SEGMENT:
            place = hardware(plan.devices[op])
            last[place] = max(last.get(place, 0), levels[op])
        for tensor in updated_by(op):
            variable = variable_of(tensor)
            if variable is not None:
                updated[variable] = min(updated.get(variable, 1 << 30), levels[op])
    return last, updated


def _freeing(ops: list[Operation], before: _Edges) -> dict[Operation, frozenset[Operation]]:
    """For each operation that others wait for through a queue or lock: the blocking operations before it.

    What comes after one dequeue must not be held up by another that goes on only when the first has led to an
    enqueue: operations behind different ones stay in segments of their own.
    """
    waiting = [op for op in ops if op.spec.blocks]
    if len(waiting) < 2:
        return {}
    waiters: dict[Any, set[Operation]] = {}
    for op in waiting:
        for handle in _handles(op):
            waiters.setdefault(handle, set()).add(op)
    behind: dict[Operation, frozenset[Operation]] = {}
    for op in ops:
        sets = {behind[b] for b in before[op] if b in behind}
        sets |= {frozenset((b,)) for b in before[op] if b.spec.blocks}
        behind[op] = next(iter(sets)) if len(sets) == 1 else frozenset().union(*sets)
    leading: set[Operation] = set()
    for op in reversed(ops):
        # What a waiting operation has got (a lock) stands for what it waited at.
        used = [
            h for one in _handles(op) for h in (_handles(one) if one in behind and one.spec.blocks else [one])
        ]
        if op in leading or (behind[op] and any(waiters.get(h, set()) - behind[op] - {op} for h in used)):
            leading.update(before[op])
    return {op: behind[op] for op in leading if op in behind}


def _handles(op: Operation) -> list[Any]:
    """The queues, locks and staging areas (which have no handle) that an operation acts on."""
    if "shared_name" in op._attrs:
        return [op._attrs["shared_name"]]
    return [maker_of(t) for t in op._inputs if t.dtype.name in ("resource", "variant")]


def _group(plan: Plan, laid: _Layout) -> list[Part]:
    kinds, levels = laid.kinds, laid.levels
    parts: list[Part] = []
    by_level: dict[int, list[Operation]] = {}
    for op in laid.ops:
        by_level.setdefault(levels[op], []).append(op)
    together = laid.alike = {} if plan.by_op else joinable(plan, kinds)
    for level in sorted(by_level):
        segments: dict[tuple[str, frozenset[Operation] | None], Part] = {}
        hosts: list[Part] = []
        ops, needs = put_off(by_level[level], laid.before, kinds, together)
        for op in ops:
            device = plan.devices[op]
            if kinds[op] is _SEGMENT:
                own = (hardware(device), laid.freeing.get(op))
                segments.setdefault(own, Part(_SEGMENT, [], device)).ops.append(op)
            elif kinds[op] is PartKind.ALONE:
                hosts.append(Part(_SEGMENT, [op], device))
            elif op in together:
                _join_alike(hosts, op, Part(PartKind.JOINED, [], device), laid, needs[op])
            elif kinds[op] is PartKind.INDEX:
                _join(hosts, op, Part(PartKind.INDEX, [], device), laid)
            elif kinds[op] is PartKind.VARYING:
                _join(hosts, op, Part(_SEGMENT, [], device, varying=True), laid)
            else:
                guard = plan.guards.get(op, frozenset())
                hosts.append(Part(kinds[op], [op], device, list(op._outputs), guard=guard))
        # Those behind fewer waiting operations never need what those behind more of them make.
        order = sorted(segments, key=lambda own: math.inf if own[1] is None else len(own[1]))
        parts += [*itertools.chain(*(cut(plan, segments[own]) for own in order)), *hosts]
    return parts


def _join(hosts: list[Part], op: Operation, new: Part, laid: _Layout) -> None:
    """Adds an operation to the first part like `new` that comes after all it needs, or to a new one."""
    before = set(laid.before[op])
    # Host parts of a level run in this order. Before the last part that it needs, an operation cannot join.
    first = max((i for i, part in enumerate(hosts) if not before.isdisjoint(part.ops)), default=0)
    like = _likeness(new, op, laid)
    for part in hosts[first:]:
        if _likeness(part, part.ops[0], laid) == like:
            part.ops.append(op)
            return
    new.ops.append(op)
    hosts.append(new)


def _join_alike(hosts: list[Part], op: Operation, new: Part, laid: _Layout, needs: set[Operation]) -> None:
    """Adds an operation to the first part of operations like it that comes after all it needs, or to a new one."""
    after = 1 + max((i for i, part in enumerate(hosts) if not needs.isdisjoint(part.ops)), default=-1)
    like = _likeness(new, op, laid)
    for part in hosts[after:]:
        if _likeness(part, part.ops[0], laid) == like:
            part.ops.append(op)
            return
    new.ops.append(op)
    hosts.append(new)


def _likeness(part: Part, op: Operation, laid: _Layout) -> tuple[object, ...]:
    """The properties that a part shares with an operation that joins it."""
    alike = laid.alike[op] if part.kind is PartKind.JOINED else None
    return part.kind, part.device, part.varying, alike, laid.freeing.get(op)


def _connect(plan: Plan, parts: list[Part], before: _Edges) -> None:
    """Sets the outputs of each part, and the parts it must wait for."""
    owner = {op: i for i, part in enumerate(parts) for op in part.ops}
    owner.update((op, owner[loop]) for op, loop in plan.inside.items() if loop in owner)
    wanted = set(plan.fetches)
    for i, part in enumerate(parts):
        for op in part.ops:
            for b in before[op]:
                j = owner.get(b)
                if j is not None and j != i and j not in part.after:
                    part.after.append(j)
            wanted.update(t for t in op._inputs if owner.get(t._op, i) != i)
            if part.kind is PartKind.SAME:
                wanted.update(plan.same[op]._outputs)
            if op in plan.guards or op in plan.merges:
                decided = set(plan.guards.get(op, ())).union(*plan.merges.get(op, ()))
                wanted.update(p for p, _ in decided if owner.get(p._op, i) != i)
    for part in parts:
        if part.kind in (_SEGMENT, PartKind.INDEX, PartKind.JOINED):
            part.outputs = [t for op in part.ops for t in op._outputs if t in wanted and t not in plan.fed]
