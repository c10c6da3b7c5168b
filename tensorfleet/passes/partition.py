"""Cut a placed plan into stages: the operations that one task can run without input from another.

Every operation gets a level that rises by one along each edge to another task, and around an operation that may
wait. The operations of one task at one level are a stage, so stages never wait for each other in a circle. A stage
needs one message with what it is to be given, and one back with what it made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from tensorfleet.base import errors
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.control_flow import SWITCHES, find_guards, is_variable, loop_name
from tensorfleet.passes.plan import Plan, maker_of

# Task, level, the operation if it is alone in its stage, and the waits it comes after.
_StageKey: TypeAlias = tuple[str, int, int | None, frozenset[Operation] | None]


@dataclass
class Stage:
    """Some operations of one task, run as one local step."""

    task: str
    level: int
    ops: list[Operation] = field(default_factory=list)
    #: values from other stages or fed by the user
    inputs: list[Tensor] = field(default_factory=list)
    #: values that other stages or the user want
    outputs: list[Tensor] = field(default_factory=list)
    #: positions of the stages that must be over before
    after: list[int] = field(default_factory=list)
    #: whether it may wait for something other than arithmetic
    blocks: bool = False


def task_of(device: str) -> str:
    """The task part of a full device name."""
    return device.rpartition("/device:")[0]


#: the task of what the master does itself: loops that are divided among tasks
MASTER = ""


class Entangled(errors.UnimplementedError):
    """Operations that must stay in one stage depend on operations outside that depend on them."""


def partition(plan: Plan, groups: list[list[Operation]] | None = None) -> list[Stage]:
    """The stages of a plan that has been pruned, folded and placed, each after those it waits for.

    `groups` lists operations that must stay in one stage (those of one loop).
    """
    return _Partition(plan, groups or []).stages()


def into_stages(plan: Plan) -> Plan:
    """Fills `plan.stages`."""
    try:
        plan.stages = partition(plan, plan.together)
    except Entangled:  # a branch has a loop inside: each of its operations is told whether it runs
        plan.guards, plan.merges = find_guards(plan)
        plan.stages = partition(plan, [group for group in plan.together if loop_name(group) is not None])
    return plan


def standing(op: Operation) -> bool:
    """Whether an operation only names something that lives in its task: a variable, a queue, a table."""
    return op.spec.variable or (
        bool(op._outputs) and not op._inputs and all(t.dtype.name == "resource" for t in op._outputs)
    )


def rereads(op: Operation) -> bool:
    """Whether an operation reads a reference variable: another stage of its task reads again, at no cost."""
    return (
        op.type == "Identity"
        and bool(op._inputs)
        and op._inputs[0].dtype._is_ref_dtype
        and standing(op._inputs[0]._op)
    )


def ends(stage: Stage) -> list[Operation]:
    """The operations of a stage that have to be asked for: neither an output nor something inside needs them."""
    needed = {t._op for t in stage.outputs}
    for op in stage.ops:
        needed.update(t._op for t in op._inputs if t not in stage.inputs)
        needed.update(op._control_inputs)
    return [op for op in stage.ops if op not in needed]


def elsewhere(ops: Iterable[Operation], given: Container[Tensor]) -> set[Operation]:
    """The operations of other stages that a stage, which is `given` some values, waits for.

    A stage does itself what costs nothing and makes other values it needs: it names a variable, reads it again, has a
    constant. What these wait for was done before, and must not be done a second time for their sake.
    """
    inside = set(ops)
    again: set[Operation] = set()
    stack = [t for op in inside for t in op._inputs]
    while stack:
        t = stack.pop()
        if t not in given and t._op not in inside and t._op not in again:
            again.add(t._op)
            stack.extend(t._op._inputs)
    return {c for op in (*inside, *again) for c in op._control_inputs} - inside


def conditions(plan: Plan, op: Operation) -> list[Tensor]:
    """The conditions of an operation, and of the inputs of a Merge, in a plan whose branches are known."""
    if not plan.guards:
        return []
    literals = [plan.guards.get(op, frozenset()), *plan.merges.get(op, ())]
    return sorted({p for guard in literals for p, _ in guard}, key=lambda p: p.name)


class _Partition:
    def __init__(self, plan: Plan, groups: list[list[Operation]]) -> None:
        self.plan = plan
        self.known = set(plan.feeds) | plan.constants.keys()
        self.inside = plan.inside
        self.tasks = {op: task_of(plan.devices[op]) for op in plan.ops}
        self.working = [op for op in plan.ops if not self._implied(op)]
        self.leader = {op: group[0] for group in groups for op in group}
        self.levels: dict[Operation, int] = {}
        # Variables and handles rarely wait for anything. If none does, `_waited_for` needs no walk.
        self.held_up = any(op._control_inputs for op in plan.ops if standing(op))
        self.before = {op: self._before(op) for op in self.working}
        self.delayed = self._delayed()

    def _implied(self, op: Operation) -> bool:
        """Variables and handles are no work: they come with the stages that use them, unless asked for or sent elsewhere."""
        if not standing(op) or op in self.plan.targets:
            return False
        task = self.tasks[op]
        return not any(
            self.tasks.get(user, task) != task
            for t in op._outputs
            for user in (self.inside.get(c, c) for c in t._consumers)
            if user in self.tasks and t in user._inputs
        ) and not any(t in self.plan.fetches for t in op._outputs)

    def _before(self, op: Operation) -> list[Operation]:
        before = dict.fromkeys(t._op for t in op._inputs if t not in self.known)
        before.update(dict.fromkeys(self._waited_for(op)))
        before.update(dict.fromkeys(p._op for p in conditions(self.plan, op) if p not in self.known))
        makers = dict.fromkeys(self.inside.get(b, b) for b in before)
        return [b for b in makers if b in self.tasks]

    def _waited_for(self, op: Operation) -> list[Operation]:
        """The control inputs of an operation, with those of the variables and handles that it names."""
        if not self.held_up:
            return op._control_inputs
        before = dict.fromkeys(op._control_inputs)
        stack = [b for b in (*(t._op for t in op._inputs), *op._control_inputs) if standing(b)]
        seen: set[Operation] = set()
        while stack:
            b = stack.pop()
            if b not in seen:
                seen.add(b)
                before.update(dict.fromkeys(b._control_inputs))
                stack.extend(c for c in b._control_inputs if standing(c))
        return list(before)

    def stages(self) -> list[Stage]:
        """Levels first, then stages, then the values between them."""
        self._rise()
        self._settle()
        by_key: dict[_StageKey, Stage] = {}
        for op in self.working:
            key = self._key(op)
            stage = by_key.get(key)
            if stage is None:
                stage = by_key[key] = Stage(self.tasks[op], self.levels[op])
            stage.ops.append(op)
            stage.blocks = stage.blocks or op.spec.blocks
        # Of one level, what waits for more comes later: it may need what waits for less.
        order = sorted(by_key, key=lambda key: (key[1], len(key[3] or ())))
        stages = [by_key[key] for key in order]
        self._connect(stages)
        while (shorter := self._joined(stages)) is not None:
            stages = shorter
            self._connect(stages)
        return stages

    def _joined(self, stages: list[Stage]) -> list[Stage] | None:
        """The stages with one more joined to those it waits for, or None when no more can be.

        That can be when they are of its own task and nobody else waits for them: one message instead of several.
        """
        followers: dict[int, list[int]] = {}
        for i, stage in enumerate(stages):
            for j in stage.after:
                followers.setdefault(j, []).append(i)
        for i, stage in enumerate(stages):
            before = stage.after if stage.task != MASTER else []
            if before and all(stages[j].task == stage.task and followers[j] == [i] for j in before):
                parts = [*(stages[j] for j in before), stage]
                one = Stage(stage.task, stage.level, blocks=any(p.blocks for p in parts))
                one.ops = [op for p in parts for op in p.ops]
                return [one if k == i else s for k, s in enumerate(stages) if k not in before]
        return None

    def _key(self, op: Operation) -> _StageKey:
        # In a branch it waits with all of the branch, which is one stage.
        alone = (op.spec.blocks and op not in self.leader) or self.tasks[op] == MASTER
        return self.tasks[op], self.levels[op], op._id if alone else None, self.delayed.get(op)

    def _delayed(self) -> dict[Operation, frozenset[Operation]]:
        """The blocking operations before each operation, if another operation of this step may unblock them.

        A stage must not put off what leads to an enqueue for the sake of what a dequeue is waited for.
        """
        makers = {
            op: {maker_of(t) for t in op._inputs if t.dtype.base_dtype.name == "resource"}
            for op in self.working
        }
        users = Counter(maker for used in makers.values() for maker in used)
        waits = [op for op in self.working if op.spec.blocks or self.tasks[op] == MASTER]
        waiting = {op for op in waits if any(users[m] > 1 for m in makers[op])}
        result: dict[Operation, frozenset[Operation]] = {}
        if waiting:
            for members in self._units():
                before = {b for m in members for b in self.before[m]}
                after = waiting.intersection(before).union(*(result.get(b, ()) for b in before))
                result.update(dict.fromkeys(members, frozenset(after)))
        return result

    def _step(self, before: Operation, op: Operation) -> int:
        if self.tasks[before] != self.tasks[op]:
            return 1
        # A blocking operation is alone in its stage, so that nothing independent of it waits with it.
        return 1 if before.spec.blocks or op.spec.blocks else 0

    def _rise(self) -> None:
        """The earliest level of every operation; those of one group share theirs."""
        for members in self._units():
            inside = set(members)
            level = 0
            for member in members:
                for b in self.before[member]:
                    if b not in inside and b in self.levels:
                        level = max(level, self.levels[b] + self._step(b, member))
            self.levels.update(dict.fromkeys(members, level))

    def _units(self) -> list[list[Operation]]:
        """The operations, and the groups of them, each after its dependencies."""
        units: dict[Operation, list[Operation]] = {}
        for op in self.working:
            units.setdefault(self.leader.get(op, op), []).append(op)
        # Without groups the plan's own order is right already.
        if len(units) == len(self.working):
            return list(units.values())
        waiting: dict[Operation, int] = {}
        after: dict[Operation, list[Operation]] = {}
        for lead, members in units.items():
            before = {self.leader.get(b, b) for m in members for b in self.before[m]} - {lead}
            before &= units.keys()
            waiting[lead] = len(before)
            for b in before:
                after.setdefault(b, []).append(lead)
        ready = [lead for lead, n in waiting.items() if not n]
        result = []
        while ready:
            lead = ready.pop()
            result.append(units[lead])
            for follower in after.get(lead, ()):
                waiting[follower] -= 1
                if not waiting[follower]:
                    ready.append(follower)
        if len(result) != len(units):
            stuck = next(lead for lead, n in waiting.items() if n)
            raise Entangled(
                None,
                stuck,
                f"The branch or loop around '{stuck.name}' takes values from other tasks that themselves come out of it. Place "
                "all of it on one task with tf.device.",
            )
        return result

    def _settle(self) -> None:
        """Moves operations without effect to the level of their users, so that a task has few stages."""
        after: dict[Operation, list[Operation]] = {}
        for op in self.working:
            for b in self.before[op]:
                after.setdefault(b, []).append(op)
        last: dict[str, int] = {}
        for op in self.working:
            last[self.tasks[op]] = max(last.get(self.tasks[op], 0), self.levels[op])
        # Users first: their levels are final when an operation looks at them.
        for op in reversed(self.working):
            # Moving a read or an update behind another update would change the values that they see.
            if op.spec.updates or op.spec.blocks or op in self.leader or self._reads(op):
                continue
            if op.spec.stateful and not standing(op):
                continue
            latest = last[self.tasks[op]]
            for user in after.get(op, ()):
                if standing(op) and self.tasks[user] == self.tasks[op]:
                    continue  # they find it by themselves
                latest = min(latest, self.levels[user] - self._step(op, user))
            self.levels[op] = max(self.levels[op], latest)

    def _reads(self, op: Operation) -> bool:
        return any(t.dtype._is_ref_dtype or t.dtype.name == "resource" for t in op._inputs)

    def _connect(self, stages: list[Stage]) -> None:
        home = {op: i for i, stage in enumerate(stages) for op in stage.ops}
        fetched = set(self.plan.fetches)
        for i, stage in enumerate(stages):
            after: dict[int, None] = {}
            inputs: dict[Tensor, None] = {}
            for op in stage.ops:
                for t in op._inputs:
                    self._take(t, i, stages, home, inputs, after)
                for p in conditions(self.plan, op):
                    self._take(p, i, stages, home, inputs, after)
                for c in self._waited_for(op):
                    c = self.inside.get(c, c)
                    if home.get(c, i) != i:
                        after[home[c]] = None
            stage.inputs, stage.after = list(inputs), sorted(after)
            stage.outputs = [
                t for op in stage.ops for t in op._outputs if t in fetched and t not in self.known
            ]
        for stage in stages:
            for t in stage.inputs:
                if t in self.known:
                    continue
                j = home[self.inside.get(t._op, t._op)]
                if t not in stages[j].outputs:
                    stages[j].outputs.append(t)

    def _take(
        self,
        t: Tensor,
        i: int,
        stages: list[Stage],
        home: dict[Operation, int],
        inputs: dict[Tensor, None],
        after: dict[int, None],
    ) -> None:
        """Notes where stage `i` gets an input of one of its operations from."""
        if t in self.plan.constants:
            return
        if t in self.known:
            inputs[t] = None
            return
        op = self.inside.get(t._op, t._op)
        if op not in self.tasks and is_variable(t):  # it came into the loop that this plan is a part of
            return
        same_task = self.tasks[op] == stages[i].task
        if home.get(op, i) == i or (same_task and standing(op)):
            return
        if same_task and rereads(op) and self.tasks.get(op._inputs[0]._op) == stages[i].task:
            after[home[op]] = None
            return
        if (
            same_task and op.type in SWITCHES and is_variable(t)
        ):  # the way to a variable is found again, with the condition it depends on
            for given in op._inputs:
                self._take(given, i, stages, home, inputs, after)
            after[home[op]] = None
            return
        inputs[t] = None
        after[home[op]] = None
