"""`Plan`, the data of the passes: the part of a graph that one run needs, in an order that respects every edge."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.topology import in_order

#: conditions, each with the value it must have for an operation to run
Guard = frozenset[tuple[Tensor, bool]]
#: the guards of operations, and those of the inputs of each Merge
Branches = tuple[dict[Operation, Guard], dict[Operation, list[Guard]]]
#: operations of a loop, and the inputs of theirs, (operation, position), that see variables as they are
Inner = tuple[list[Operation], dict[tuple[Operation, int], Operation]]


class PartKind(StrEnum):
    """How an operation, or a part, is run."""

    #: operations that XLA can compile, run as one
    SEGMENT = "segment"
    #: such operations in numpy: they prepare indices, and are never worth compiling
    INDEX = "index"
    #: one operation on the host
    HOST = "host"
    #: several host operations of one type, in one call
    JOINED = "joined"
    #: an update of some rows of variables, in place
    ROWS = "rows"
    #: an update of whole variables, in place
    CHUNKS = "chunks"
    #: some rows of a variable, read without touching the rest
    GATHER = "gather"
    #: a whole loop
    LOOP = "loop"
    #: a Merge of strings or handles
    MERGE = "merge"
    #: nothing to do: another part computes the same values
    SAME = "same"
    #: an operation that `fuse` makes a segment by itself of
    ALONE = "alone"
    #: an operation that `fuse` puts into a segment of operations whose shapes change from run to run
    VARYING = "varying"


@dataclass
class Part:
    """One unit of work: a segment of operations to run as one, or a single host operation.

    Its kind is never ALONE or VARYING: those operations are in parts of the kind SEGMENT.
    """

    kind: PartKind
    ops: list[Operation]
    device: str
    outputs: list[Tensor] = field(default_factory=list)
    #: positions, in the plan's list, of the parts that must finish first
    after: list[int] = field(default_factory=list)
    #: sums that are computed as one, with the products they add up; and slices, with the product they are part of
    products: dict[Operation, list[Operation]] = field(default_factory=dict)
    #: the operations that need not run because of that
    hidden: set[Operation] = field(default_factory=set)
    #: what must hold for a single operation to run; those of a segment have theirs in the plan
    guard: Guard = frozenset()
    #: whether the values of a segment change their shape from run to run
    varying: bool = False


@dataclass
class Plan:
    """One way to run one set of fetches with one set of feeds, refined by pass after pass."""

    graph: Graph
    fetches: tuple[Tensor, ...]
    targets: tuple[Operation, ...]
    feeds: tuple[Tensor, ...]
    #: what another part of the step does: only the order counts, which the caller keeps
    done: frozenset[Operation] = frozenset()
    #: what has to run, in order
    ops: list[Operation] = field(default_factory=list)
    #: tensors whose value is known without running anything
    constants: dict[Tensor, Any] = field(default_factory=dict)
    #: what was computed while planning; its placement is still checked and reported
    folded: list[Operation] = field(default_factory=list)
    #: the full device name of each op
    devices: dict[Operation, str] = field(default_factory=dict)
    #: (op, input position) pairs that see a variable as it is when the op runs, not an earlier snapshot
    live: dict[tuple[Operation, int], Operation] = field(default_factory=dict)
    #: the units of work, each after what it depends on
    parts: list[Part] = field(default_factory=list)
    #: the loops, each one of `ops`; and which of them an operation is part of
    loops: list[Any] = field(default_factory=list)
    inside: dict[Operation, Operation] = field(default_factory=dict)
    #: what must hold for an operation to run
    guards: dict[Operation, Guard] = field(default_factory=dict)
    #: for each Merge, what must hold for each of its inputs to be the one
    merges: dict[Operation, list[Guard]] = field(default_factory=dict)
    #: whether `guards` and `merges` came with a part of a larger step, whose switches may be in other parts
    told: bool = False
    #: whether this is the plan of a loop's condition or body
    nested: bool = False
    #: operations that have no effect and depend on none
    inert: set[Operation] = field(default_factory=set)
    #: operations that give what another one, before them, gives too
    same: dict[Operation, Operation] = field(default_factory=dict)
    #: gathers that fetch rows straight from a variable
    gathers: frozenset[Operation] = frozenset()
    #: operations on values that were seen to change their shape from run to run: nothing else is compiled with them
    varying: frozenset[Operation] = frozenset()
    #: whether every operation is a part by itself, so that each has its own cost
    by_op: bool = False
    #: on a cluster: the branches and loops, each on one task, and those that several tasks share
    together: list[list[Operation]] = field(default_factory=list)
    shared: list[list[Operation]] = field(default_factory=list)
    #: on a cluster: the stages, each after those it waits for
    stages: list[Any] = field(default_factory=list)
    #: `feeds`, to look one up in
    fed: frozenset[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.fed = frozenset(self.feeds)

    def variable_of(self, tensor: Tensor) -> Operation | None:
        """The variable of this task that a reference or a handle leads to, or None.

        A fed reference is a value. It may stand for a variable of another task, which has no store here, or for
        one whose name a variable of this task has too.
        """
        return variable_of(tensor, self.fed)


def everything(plan: Plan) -> dict[Operation, str]:
    """All operations of a plan with their devices, those in loops and those computed while planning included."""
    result = {op: plan.devices[loop] for loop in plan.loops for op in loop.inside}
    result.update((op, device) for op, device in plan.devices.items() if op not in plan.loops)
    for loop in plan.loops:
        result.update(everything(loop.cond))
        result.update(everything(loop.body))
    return result


def ordered(
    ops: set[Operation], feeds: set[Tensor], inside: dict[Operation, Operation] | None = None
) -> list[Operation]:
    """The operations such that each follows its inputs, and otherwise in the order they were made.

    The edge that leads back to the start of a loop does not count. `inside` tells which operations stand for
    which others.
    """
    needs: dict[Operation, set[Operation]] = {}
    for op in ops:
        before = {t._op for t in op._inputs if t not in feeds} | set(op._control_inputs)
        if op.type == "Merge":
            before = {b for b in before if b.type != "NextIteration"}
        if inside:
            before = {inside.get(b, b) for b in before}
        needs[op] = before & ops
    return in_order(needs, lambda op: op._id)


# What a reference or handle can go through on its way.
_PASSING = {"Identity", "RefIdentity", "Enter", "RefEnter", "Exit", "RefExit"}
_PASSING |= {"Switch", "RefSwitch", "RefMerge"}


def updated_by(op: Operation) -> list[Tensor]:
    """The references or handles of the variables that an operation (or a whole loop) updates."""
    of_loop: list[Tensor] | None = getattr(op, "updated", None)
    if of_loop is not None:
        return of_loop
    return [t for u in op.spec.updates for t in op._inputs[slice(*op.input_list(u))]]


def maker_of(tensor: Tensor) -> Operation:
    """The operation that a handle comes from."""
    op = tensor._op
    while (op.type in _PASSING or op.type in ("Merge", "Exit")) and op._inputs:
        op = op._inputs[0]._op
    return op


def variable_of(tensor: Tensor, fed: Container[Tensor] = ()) -> Operation | None:
    """The variable operation that a reference or a handle leads to, or None; also if a `fed` value is on the way.

    Without `fed` this is about the graph. Whoever then looks into a store of this task uses `Plan.variable_of`.
    """
    while tensor not in fed:
        op = tensor._op
        if op.spec.variable:
            return op
        position = op.spec.updates[0] if op.spec.updates else 0
        if not (op.spec.updates or op.type in _PASSING) or not op._inputs:
            return None
        if op.spec.inputs[position].is_ref:
            fed = ()  # it is on the variable's own task, and takes the reference whatever its value was
        tensor = op._inputs[position]
    return None


def read_of(op: Operation, fed: Container[Tensor] = ()) -> Operation | None:
    """The variable whose memory an operation's output shares: that of a plain read, also inside a loop."""
    while op.type == "Enter" and op._attrs["is_constant"] and op._inputs[0] not in fed:
        op = op._inputs[0]._op
    if op.type == "Identity" and op._inputs[0].dtype._is_ref_dtype:
        return variable_of(op._inputs[0], fed)
    return None
