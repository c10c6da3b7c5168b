"""What a stage of a plan has in it, beside its operations."""

from __future__ import annotations

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.partition import Stage, conditions, standing
from tensorfleet.passes.plan import Branches, Plan

#: what only looks at variables
READS = {"ReadVariableOp", "VarIsInitializedOp", "IsVariableInitialized", "ResourceGather"}


def given_to(plan: Plan, stage: Stage) -> dict[Tensor, None]:
    """What the operations of a stage look at, in order."""
    return dict.fromkeys(t for op in stage.ops for t in (*op._inputs, *conditions(plan, op)))


def with_standing(plan: Plan, stage: Stage) -> list[Operation]:
    """The operations of a stage in a loop, with those that make what it uses of its own task."""
    inside = set(plan.ops)
    used = dict.fromkeys(t._op for op in stage.ops for t in op._inputs)
    return [*(op for op in used if op in inside and standing(op) and op not in stage.ops), *stage.ops]


def branches_in(plan: Plan, stage: Stage) -> Branches:
    """The part of a plan's branches that lies in a stage."""
    guards = {op: plan.guards[op] for op in stage.ops if op in plan.guards}
    return guards, {op: plan.merges[op] for op in stage.ops if op in plan.merges}


def changes_something(stage: Stage) -> bool:
    """Whether a stage leaves something changed behind, so that to run it twice is not the same as to run it once."""
    return any(
        (op.spec.stateful or op.spec.updates) and not standing(op) and op.type not in READS
        for op in stage.ops
    )
