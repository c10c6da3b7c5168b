"""Check a plan after each pass: every operation is there once, after its inputs.

Tests switch this on with `enable`. Otherwise nothing here is imported or called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorfleet.base import errors
from tensorfleet.base.devices import hardware
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes import pipeline
from tensorfleet.passes.partition import Stage, conditions, standing, task_of
from tensorfleet.passes.plan import Part, PartKind, Plan

_READS = ("Identity", "ReadVariableOp")
# Only these compute several operations, of whose outputs some may stay inside.
_OF_SEVERAL = (PartKind.SEGMENT, PartKind.INDEX, PartKind.JOINED)


def enable() -> None:
    """Verifies every plan of this process from now on."""
    if verify not in pipeline.observers:
        pipeline.observers.append(verify)


def disable() -> None:
    """Verifies no more plans."""
    if verify in pipeline.observers:
        pipeline.observers.remove(verify)


def verify(plan: Plan, after: str) -> None:
    """Raises InternalError, with the name of the pass and an operation, if a plan is inconsistent after a pass."""
    _Check(plan, after).run()


class _Check:
    def __init__(self, plan: Plan, after: str) -> None:
        self.plan = plan
        self.after = after
        self.known = set(plan.feeds) | plan.constants.keys()
        self.place = {op: n for n, op in enumerate(plan.ops)}

    def run(self) -> None:
        """Checks the invariants of every pass, and those that hold since this one."""
        self._each_once()
        self._in_order()
        self._all_there()
        self._not_folded()
        self._loops()
        self._live()
        if self.plan.devices:
            self._placed()
        self._same()
        since: dict[str, list[Callable[[], None]]] = {
            "place": [self._placed],
            "fuse": [self._parts],
            "products": [self._parts, self._products],
            "partition": [self._stages],
        }
        for check in since.get(self.after, ()):
            check()

    def _fail(self, op: Operation, text: str) -> errors.InternalError:
        return errors.InternalError(
            None,
            op,
            f"After the pass '{self.after}' the plan is inconsistent: '{op.name}' ({op.type}) {text}. This is a bug in "
            "TensorFleet.",
        )

    # -- operations -----------------------------------------------------------------------------------

    def _each_once(self) -> None:
        for n, op in enumerate(self.plan.ops):
            if self.place[op] != n:
                raise self._fail(op, "is there twice")
            if op in self.plan.inside:
                raise self._fail(op, f"is there, and in the loop '{self.plan.inside[op].name}' too")

    def _needs(self, op: Operation) -> Iterator[Operation]:
        """The operations of the plan that an operation has to follow."""
        for b in (*(t._op for t in op._inputs if t not in self.known), *op._control_inputs):
            if op.type in ("Merge", "RefMerge") and b.type in ("NextIteration", "RefNextIteration"):
                continue  # the way back to the start of a loop
            b = self.plan.inside.get(b, b)
            if b in self.place:
                yield b

    def _in_order(self) -> None:
        for n, op in enumerate(self.plan.ops):
            for b in self._needs(op):
                if self.place[b] >= n:
                    raise self._fail(op, f"comes before '{b.name}', which it needs")

    def _has(self, tensor: Tensor) -> bool:
        op = tensor._op
        return tensor in self.known or self.plan.inside.get(op, op) in self.place

    def _all_there(self) -> None:
        plan = self.plan
        if plan.nested:
            return  # a part of a loop finds variables of outside by itself, and waits for nothing outside
        folded = set(plan.folded)
        for t in plan.fetches:
            if not self._has(t):
                raise self._fail(t._op, "is fetched and missing")
        for op in plan.targets:
            if plan.inside.get(op, op) not in self.place and op not in folded:
                raise self._fail(op, "is a target and missing")
        for op in plan.ops:
            for t in op._inputs:
                if not self._has(t):
                    raise self._fail(t._op, f"is missing, and '{op.name}' needs it")

    def _not_folded(self) -> None:
        for op in self.plan.folded:
            if op in self.place:
                raise self._fail(op, "is constant, and is to run too")
            for t in op._outputs:
                if t not in self.known:
                    raise self._fail(op, "was folded, and has no value")

    def _loops(self) -> None:
        loops = set(self.plan.loops)
        for loop in self.plan.loops:
            if loop not in self.place:
                raise self._fail(loop, "is a loop, and missing")
        for op, loop in self.plan.inside.items():
            if loop not in loops:
                raise self._fail(op, f"is in the loop '{loop.name}', which the plan does not have")

    def _live(self) -> None:
        for op, i in self.plan.live:
            if op in self.place and i >= len(op._inputs):
                raise self._fail(op, f"sees a variable through input {i}, which it does not have")

    def _placed(self) -> None:
        for op in self.plan.ops:
            if not self.plan.devices.get(op):
                raise self._fail(op, "has no device")

    def _same(self) -> None:
        for op, first in self.plan.same.items():
            for one in (op, first):
                if one not in self.place:
                    raise self._fail(one, "is shared, and missing")
            if op.type != first.type or self.place[first] >= self.place[op]:
                raise self._fail(op, f"cannot take its values from '{first.name}'")

    # -- parts ----------------------------------------------------------------------------------------

    def _parts(self) -> None:
        owner: dict[Operation, int] = {}
        for i, part in enumerate(self.plan.parts):
            for op in part.ops:
                if op in owner:
                    raise self._fail(op, f"is in the parts {owner[op]} and {i}")
                if op not in self.place:
                    raise self._fail(op, f"is in part {i}, and not in the plan")
                owner[op] = i
        self._covered(owner)
        for i, part in enumerate(self.plan.parts):
            self._part(i, part, owner)
        for t in self.plan.fetches:
            self._given(t, owner, -1)

    def _covered(self, owner: dict[Operation, int]) -> None:
        """Variables need no part; a read does not if only gathers, which fetch rows by themselves, use it."""
        gathers = self.plan.gathers
        kept = {t._op for t in self.plan.fetches if t not in self.known} | set(self.plan.targets)
        for op in self.plan.ops:
            if op in owner or op.spec.variable:
                continue
            users = [c for t in op._outputs for c in t._consumers if c in self.place]
            if op.type not in _READS or op in kept or not users or not gathers.issuperset(users):
                raise self._fail(op, "is in no part")

    def _part(self, i: int, part: Part, owner: dict[Operation, int]) -> None:
        place = {op: n for n, op in enumerate(part.ops)}
        for j in part.after:
            if not 0 <= j < i:
                raise self._fail(part.ops[0], f"is in part {i}, which waits for part {j} that comes later")
        for op in part.ops:
            if hardware(self.plan.devices[op]) != hardware(part.device):
                raise self._fail(op, f"is placed on {self.plan.devices[op]} and in a part on {part.device}")
            for b in self._waits(op, owner):
                j = owner[b]
                if j == i and place[b] >= place[op]:
                    raise self._fail(op, f"comes before '{b.name}' in part {i}, and needs it")
                if j != i and j not in part.after:
                    raise self._fail(op, f"is in part {i}, which does not wait for '{b.name}' in part {j}")
            for t in op._inputs:
                self._given(t, owner, i)

    def _waits(self, op: Operation, owner: dict[Operation, int]) -> Iterator[Operation]:
        """The operations with a part that must be over before an operation, found through those without one."""
        stack = list(self._needs(op))
        stack += [p._op for p in conditions(self.plan, op) if p not in self.known]
        if op in self.plan.same and self.plan.parts[owner[op]].kind is PartKind.SAME:
            stack.append(self.plan.same[op])
        seen: set[Operation] = set()
        while stack:
            b = stack.pop()
            b = self.plan.inside.get(b, b)
            if b in seen:
                continue
            seen.add(b)
            if b in owner:
                yield b
            elif b in self.place:
                stack.extend(self._needs(b))

    def _given(self, tensor: Tensor, owner: dict[Operation, int], user: int) -> None:
        """A value that leaves its part must be one of the part's outputs."""
        op = self.plan.inside.get(tensor._op, tensor._op)
        i = owner.get(op, user)
        if i == user or tensor in self.known:
            return
        part = self.plan.parts[i]
        if part.kind in _OF_SEVERAL and tensor not in part.outputs:
            raise self._fail(op, f"is in part {i}, which does not give '{tensor.name}' to those that use it")

    def _products(self) -> None:
        for i, part in enumerate(self.plan.parts):
            inside = set(part.ops)
            for op in (*part.products, *(o for terms in part.products.values() for o in terms), *part.hidden):
                if op not in inside:
                    raise self._fail(op, f"is in a product of part {i}, and not in the part")
            for t in part.outputs:
                if t._op in part.hidden:
                    raise self._fail(t._op, f"does not run, and is an output of part {i}")

    # -- stages ---------------------------------------------------------------------------------------

    def _stages(self) -> None:
        home: dict[Operation, int] = {}
        for i, stage in enumerate(self.plan.stages):
            for op in stage.ops:
                if op in home:
                    raise self._fail(op, f"is in the stages {home[op]} and {i}")
                if op not in self.place:
                    raise self._fail(op, f"is in stage {i}, and not in the plan")
                home[op] = i
        for op in self.plan.ops:
            if op not in home and (not standing(op) or op in self.plan.targets):
                raise self._fail(op, "is in no stage")
        for i, stage in enumerate(self.plan.stages):
            self._stage(i, stage, home)
        for t in self.plan.fetches:
            op = self.plan.inside.get(t._op, t._op)
            if t not in self.known and op in home and t not in self.plan.stages[home[op]].outputs:
                raise self._fail(op, f"is in stage {home[op]}, which does not give the fetch '{t.name}'")

    def _stage(self, i: int, stage: Stage, home: dict[Operation, int]) -> None:
        for j in stage.after:
            if not 0 <= j < i:
                raise self._fail(stage.ops[0], f"is in stage {i}, which waits for stage {j} that comes later")
        for op in stage.ops:
            if task_of(self.plan.devices[op]) != stage.task:
                raise self._fail(op, f"is placed on {self.plan.devices[op]} and in a stage of {stage.task}")
            before = [p._op for p in conditions(self.plan, op) if p not in self.known]
            for b in (*self._needs(op), *(self.plan.inside.get(b, b) for b in before)):
                j = home.get(b, i)
                named = standing(b) and task_of(self.plan.devices[b]) == stage.task  # by the stage itself
                if j != i and j not in stage.after and not named:
                    raise self._fail(op, f"is in stage {i}, which does not wait for '{b.name}' in stage {j}")
        for t in stage.inputs:
            op = self.plan.inside.get(t._op, t._op)
            if t not in self.known and (op not in home or t not in self.plan.stages[home[op]].outputs):
                raise self._fail(op, f"makes '{t.name}', which stage {i} takes and no stage gives")
