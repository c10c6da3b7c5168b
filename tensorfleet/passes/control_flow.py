"""Resolve branches and loops: into conditions of operations, and loops with a body.

A loop becomes one operation of the plan, with a plan of its own for its condition and one for its body. What
lies in a branch stays where it is, with a guard: the conditions, and how each must turn out, for it to run. It
all follows from the nodes (Switch, Merge, Enter, ...), so that graphs made elsewhere run as well.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from tensorfleet.base import errors
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import OpSpec
from tensorfleet.passes.plan import Guard, Plan, read_of, updated_by, variable_of

_ENTERS = ("Enter", "RefEnter")
_EXITS = ("Exit", "RefExit")
SWITCHES = ("Switch", "RefSwitch")
_MERGES = ("Merge", "RefMerge")
_NEXTS = ("NextIteration", "RefNextIteration")
_NODES = {*_ENTERS, *SWITCHES, *_MERGES}

Frame = tuple[str, ...]


def control(plan: Plan) -> Plan:
    """Replaces loops by one operation each, and fills `plan.guards` and `plan.merges`."""
    resolved = any(op.type in _NODES for op in plan.ops)
    if resolved:
        if any(op.type in _ENTERS for op in plan.ops):
            lift_loops(plan)
        if plan.told:
            _guard_loops(plan)
        else:
            plan.guards, plan.merges = find_guards(plan)
    if resolved or plan.nested or plan.told:
        find_inert(plan)
    return plan


# -- loops --------------------------------------------------------------------------------------------


class Loop(Operation):
    """A whole loop, as one operation of a plan."""

    __slots__ = ("body", "cond", "fixed", "initial", "inside", "results", "start", "updated", "variables")

    def __init__(
        self, plan: Plan, frame: Frame, ops: list[Operation], frames: dict[Operation, Frame]
    ) -> None:
        enters = [op for op in ops if op.type in _ENTERS and frames[op] == frame]
        self.graph = plan.graph
        self.spec = _SPEC
        self.type = "Loop"
        self._name = frame[-1]
        self._attrs: dict[str, Any] = {}
        self._device = ""
        self._constant = None
        self._original_op = None
        self._gradient_function = None
        self._control_flow_context = None
        # Errors of the loop show the line that made it, and it sorts among the others where its first node was.
        self._stack = enters[0]._stack
        self._id = min(op._id for op in ops)
        self.inside = set(ops)
        self.start = enters[0]
        fed = set(plan.feeds)
        #: the initial value of each loop variable; the tensors it is in the loop; its next value
        self.variables = _Variables(ops, frame, frames)
        self.initial = [m._inputs[0]._op._inputs[0] for m in self.variables.merges]
        started = {m._inputs[0]._op for m in self.variables.merges}
        #: what stays the same in every iteration: (outside, inside)
        self.fixed = [
            (e._inputs[0], e._outputs[0])
            for e in enters
            if e not in started and not is_variable(e._outputs[0])
        ]
        exits = [op for op in ops if op.type in _EXITS and frames[op] == frame]
        #: (position of the variable, tensor outside)
        self.results = [(self.variables.position(e._inputs[0]), e._outputs[0]) for e in exits]
        self._outputs = tuple(t for _, t in self.results)
        outside = [*self.initial, *(t for t, _ in self.fixed)]
        # References and handles are not passed in: the body finds the variable itself, and so sees its updates.
        self._inputs = tuple(dict.fromkeys(t for t in outside if not (is_variable(t) and t not in fed)))
        waited = dict.fromkeys(c for op in ops for c in op._control_inputs if c not in self.inside)
        self._control_inputs = list(waited)
        self.updated = [t for op in ops for t in updated_by(op)]
        self.cond, self.body = self._plans(plan, ops, frame, frames)
        self._share_memory()

    def _plans(
        self, plan: Plan, ops: list[Operation], frame: Frame, frames: dict[Operation, Frame]
    ) -> tuple[Plan, Plan]:
        variables = self.variables
        nodes = variables.nodes
        own = [
            op
            for op in ops
            if op not in nodes and not (frames[op] == frame and op.type in (*_ENTERS, *_EXITS))
        ]
        # Each node is in one of the two plans, never in both: an update or a random number happens once per iteration.
        test = _ancestors(variables.test, set(own))
        nexts = variables.next_values()
        first = [op for op in own if op in test]
        rest = [op for op in own if op not in test]
        fixed = [t for _, t in self.fixed]
        merged = [m._outputs[0] for m in variables.merges]
        wanted = [variables.test]
        # What the condition computed and the body needs, the condition's plan returns and the body's plan is fed.
        lent = [t for t in dict.fromkeys(t for op in rest for t in op._inputs) if t._op in test]
        lent += [t for t in nexts if t._op in test and t not in lent]
        cond = Plan(plan.graph, (*wanted, *lent), (), (*merged, *fixed), ops=first, nested=True)
        inner = [
            *merged,
            *(s._outputs[1] if s is not None else m for s, m in zip(variables.switches, merged, strict=True)),
        ]
        body = Plan(
            plan.graph,
            nexts,
            (),
            (*inner, *fixed, *lent),
            ops=rest,
            nested=True,
        )
        # What was found out before, by a session that gives a task its share, its share does not compute.
        known = {t: plan.constants[t] for op in own for t in op._inputs if t in plan.constants}
        cond.constants.update(known)
        body.constants.update(known)
        return cond, body

    def _share_memory(self) -> None:
        """Lets the loop see its own updates of reference variables that were read before it."""
        changed = {variable_of(t) for t in self.updated if t.dtype._is_ref_dtype}
        read = {inside: read_of(inside._op) for _, inside in self.fixed} if changed else {}
        for plan in (self.cond, self.body):
            for op in plan.ops:
                for i, t in enumerate(op._inputs):
                    variable = read.get(t)
                    if variable is not None and variable in changed:
                        plan.live[(op, i)] = variable


_SPEC = OpSpec("Loop", (), (), {}, kernel=lambda: None, kernel_attrs=(), host=True, stateful=True)


class _Variables:
    """The nodes of the loop variables of one frame."""

    def __init__(self, ops: list[Operation], frame: Frame, frames: dict[Operation, Frame]) -> None:
        mine = [op for op in ops if frames[op] == frame]
        self.merges = [op for op in mine if op.type in _MERGES and op._inputs[1]._op.type in _NEXTS]
        self.nexts = [m._inputs[1]._op for m in self.merges]
        tests = [op for op in mine if op.type == "LoopCond"]
        #: what decides whether there is another iteration, as it is computed and as the switches have it
        self.test = self._test(mine, frame, tests)
        decided = tests[0]._outputs[0] if tests else self.test
        by_merge: dict[Operation, list[Operation]] = {}
        for op in mine:
            if op.type in SWITCHES and op._inputs[1] is decided:
                by_merge.setdefault(op._inputs[0]._op, []).append(op)
        self.switches = [by_merge[m][0] if m in by_merge else None for m in self.merges]
        self.nodes = {
            *tests,
            *self.merges,
            *self.nexts,
            *(s for found in by_merge.values() for s in found),
        }
        self._places = {m: i for i, m in enumerate(self.merges)}

    def _test(self, mine: list[Operation], frame: Frame, tests: list[Operation]) -> Tensor:
        if len(tests) == 1:
            return tests[0]._inputs[0]
        # Graphs made elsewhere may have no LoopCond. Then the switches of the loop variables must agree on a predicate.
        merged = {m._outputs[0] for m in self.merges}
        predicates = {op._inputs[1] for op in mine if op.type in SWITCHES and op._inputs[0] in merged}
        if tests or len(predicates) != 1:
            raise errors.invalid(f"The loop '{frame[-1]}' has {len(tests)} LoopCond nodes instead of one.")
        return predicates.pop()

    def next_values(self) -> tuple[Tensor, ...]:
        """The next values of the loop variables."""
        leaving = {s._outputs[0]: s._inputs[0] for s in self.switches if s is not None}
        return tuple(leaving.get(n._inputs[0], n._inputs[0]) for n in self.nexts)

    def position(self, tensor: Tensor) -> int:
        """Which variable leaves the loop as this output of a Switch."""
        return self._places[tensor._op._inputs[0]._op]


def is_variable(tensor: Tensor) -> bool:
    """Whether a tensor is a reference or handle that leads to a variable."""
    return (tensor.dtype._is_ref_dtype or tensor.dtype.name == "resource") and variable_of(tensor) is not None


def _ancestors(tensor: Tensor, inside: set[Operation]) -> set[Operation]:
    """The operations, among those inside, that a tensor needs."""
    result: set[Operation] = set()
    stack = [tensor._op]
    while stack:
        b = stack.pop()
        if b in inside and b not in result:
            result.add(b)
            stack += [t._op for t in b._inputs]
            stack += b._control_inputs
    return result


def frames_of(ops: Iterable[Operation]) -> dict[Operation, Frame]:
    """The loops that each operation lies in, outermost first. `ops` must be in order."""
    result: dict[Operation, Frame] = {}
    for op in ops:
        inner: Frame = ()
        # The edge from NextIteration back to Merge is the only one against the order: its frame is not known yet.
        before = [t._op for t in op._inputs if not (op.type in _MERGES and t._op.type in _NEXTS)]
        for b in (*before, *op._control_inputs):
            frame = result.get(b, ())
            if b.type in _EXITS:
                frame = frame[:-1]
            if len(frame) == len(inner) and frame != inner:
                raise errors.InvalidArgumentError(
                    None,
                    op,
                    f"Node '{op.name}' has inputs from different frames: '{inner[-1]}' and '{frame[-1]}'.",
                )
            if len(frame) > len(inner):
                inner = frame
        if op.type in _ENTERS:
            source = op._inputs[0]._op
            outer = result.get(source, ())
            outer = outer[:-1] if source.type in _EXITS else outer
            inner = max(inner, outer, key=len)
            inner = (*inner, op._attrs["frame_name"].decode())
        result[op] = inner
    return result


def lift_loops(plan: Plan, chosen: Container[str] | None = None) -> None:
    """Makes one operation of every outermost loop, or of those with the `chosen` names."""
    frames = frames_of(plan.ops)
    members: dict[Frame, list[Operation]] = {}
    for op in plan.ops:
        if frames[op] and (chosen is None or frames[op][0] in chosen):
            # Loops inside this one stay in its body's plan, where they are lifted in turn.
            members.setdefault(frames[op][:1], []).append(op)
    loops = {frame: Loop(plan, frame, ops, frames) for frame, ops in members.items() if _repeats(ops)}
    plan.loops = list(loops.values())
    plan.inside = {op: loop for loop in loops.values() for op in loop.inside}
    plan.ops = _in_order([op for op in plan.ops if op not in plan.inside] + plan.loops, plan)


def _repeats(ops: list[Operation]) -> bool:
    """Whether there is a next iteration: a frame without one only passes values through."""
    return any(op.type in _NEXTS for op in ops)


def _in_order(ops: list[Operation], plan: Plan) -> list[Operation]:
    """Sorts operations and loops so that each follows its inputs; else in the order they were made."""
    from tensorfleet.passes.plan import ordered

    return ordered(set(ops), set(plan.feeds) | plan.constants.keys(), plan.inside)


# -- branches -----------------------------------------------------------------------------------------


def find_guards(plan: Plan) -> tuple[dict[Operation, Guard], dict[Operation, list[Guard]]]:
    """The condition for each operation to run, and for each input of a Merge to be the one that passes.

    A loop is guarded as its entrance is, whether or not it has become one operation yet.
    """
    known = set(plan.feeds) | plan.constants.keys()
    frames = frames_of(plan.ops) if any(op.type in _ENTERS for op in plan.ops) else {}
    guards: dict[Operation, Guard] = {}
    merges: dict[Operation, list[Guard]] = {}
    entered: dict[str, Guard] = {}

    def of(tensor: Tensor) -> Guard:
        if tensor in known:
            return frozenset()
        # A value that is fed or known is there whichever branch is taken.
        producer = plan.inside.get(tensor._op, tensor._op)
        result = guards.get(producer, frozenset())
        if tensor._op.type in SWITCHES and producer is tensor._op and not frames.get(producer):
            result |= {(condition(tensor._op._inputs[1], known), tensor.value_index == 1)}
        return result

    for op in plan.ops:
        guard: Guard = frozenset()
        frame = frames.get(op, ())
        if op.type in _MERGES and not frame:
            choices = [of(t) for t in op._inputs]
            # A Merge runs if one of its inputs does, so only the conditions common to all inputs are its own.
            guard = frozenset.intersection(*choices)
            merges[op] = [c - guard for c in choices]
        else:
            for t in op._inputs:
                guard |= of(t)
        if op.type != "ControlTrigger":  # which fires whatever becomes of those it waits for
            for c in op._control_inputs:
                guard |= guards.get(plan.inside.get(c, c), frozenset())
        if frame:
            # All of a loop runs or none of it: each node that enters may add a condition.
            guard = entered[frame[0]] = guard | entered.get(frame[0], frozenset())
        if guard:
            guards[op] = guard
    return guards, merges


def _guard_loops(plan: Plan) -> None:
    """Gives each loop the guard that its entrance was given."""
    for loop in plan.loops:
        if loop.start in plan.guards:
            plan.guards[loop] = plan.guards[loop.start]


def condition(pred: Tensor, known: Container[Tensor] = ()) -> Tensor:
    """The tensor that a condition is a copy of."""
    while pred not in known and pred._op.type == "Identity" and not pred._op._inputs[0].dtype._is_ref_dtype:
        pred = pred._op._inputs[0]
    return pred


def find_inert(plan: Plan) -> None:
    """Fills `plan.inert`: operations without effects before them, so that constants behind them can be folded."""
    inside = set(plan.ops)
    known = set(plan.feeds) | plan.constants.keys()
    inert = plan.inert
    for op in plan.ops:
        if (op.spec.pure or op.type in SWITCHES) and not op.spec.checks:
            before = [t._op for t in op._inputs if t not in known] + op._control_inputs
            before = [plan.inside.get(b, b) for b in before]  # a loop may have effects
            if all(b in inert or b not in inside for b in before):
                inert.add(op)


# -- for those who divide a plan before it is resolved ------------------------------------------------


def frames(ops: Sequence[Operation]) -> list[list[Operation]]:
    """Groups of operations that must stay together: all of one loop, or of one cond.

    `ops` must be in order. What a cond's gradient runs in the branches is a group of its own.
    """
    if not any(op.type in _NODES for op in ops):
        return []
    loops: dict[Any, list[Operation]] = {}
    loops_around = frames_of(ops)
    inside = set(ops)
    guards: dict[Operation, tuple[Tensor, ...]] = {}
    rounds: dict[Operation, dict[Tensor, int]] = {}
    for op in ops:
        if loops_around[op]:
            loops.setdefault(loops_around[op][0], []).append(op)
            continue
        before = [b for b in (*(t._op for t in op._inputs), *op._control_inputs) if b in inside]
        preds = _outer_conditions(op, before, guards)
        guards[op] = preds
        passed: dict[Tensor, int] = {}
        for b in before:
            for p, n in rounds.get(b, {}).items():
                left = p in guards.get(b, ()) and p not in preds
                passed[p] = max(passed.get(p, 0), n + left)
        rounds[op] = passed
        own = preds or tuple(p for b in before if op.type in _MERGES for p in guards.get(b, ()))[:1]
        if op.type in SWITCHES and not own:
            own = (condition(op._inputs[1]),)
        if own:
            passed.setdefault(own[0], 0)
            loops.setdefault((own[0], passed[own[0]] - (op.type in _MERGES and not preds)), []).append(op)
    return [group for group in loops.values() if len(group) > 1]


def loop_name(group: list[Operation]) -> str | None:
    """The name of the loop that a group is, or None if it is a cond."""
    return next((op._attrs["frame_name"].decode() for op in group if op.type in _ENTERS), None)


def _outer_conditions(
    op: Operation, before: list[Operation], guards: dict[Operation, tuple[Tensor, ...]]
) -> tuple[Tensor, ...]:
    """The conditions that an operation runs under, outermost first."""
    each = [(*guards.get(b, ()), *((condition(b._inputs[1]),) if b.type in SWITCHES else ())) for b in before]
    if not each:
        return ()
    if op.type in _MERGES:
        shortest = min(each, key=len)
        return shortest[:-1]
    return max(each, key=len)
