"""Branches and loops on a cluster: whole on one task where that is possible, else shared by several.

A branch or a loop on one task is a local matter of that task. A loop that several tasks share is driven by the master,
as one operation of its plan. The operations of a branch that several tasks share are each told whether they run.
"""

from __future__ import annotations

from typing import Protocol

from tensorfleet.graph.operation import Operation
from tensorfleet.passes.control_flow import find_guards, find_inert, frames, lift_loops, loop_name
from tensorfleet.passes.partition import MASTER
from tensorfleet.passes.plan import Plan


class TaskPlacer(Protocol):
    """A placer that knows the devices of several tasks."""

    def gather(self, plan: Plan, groups: list[list[Operation]]) -> list[list[Operation]]:
        """Moves the operations of every group to one task where possible; returns these groups."""


def inert(plan: Plan) -> Plan:
    """Fills `plan.inert` for a condition or a body of a loop that several tasks share."""
    if plan.nested:
        find_inert(plan)
    return plan


def gather(plan: Plan, placer: TaskPlacer) -> Plan:
    """Brings branches and loops to one task each where possible: fills `plan.together` and `plan.shared`."""
    groups = frames(plan.ops)
    plan.together = placer.gather(plan, groups)
    whole = {id(group) for group in plan.together}
    plan.shared = [group for group in groups if id(group) not in whole]
    return plan


def lift(plan: Plan) -> Plan:
    """Makes one operation, of the master, of every loop that several tasks share."""
    names = {name for name in map(loop_name, plan.shared) if name is not None}
    names -= {loop_name(group) for group in plan.together}
    if names:
        lift_loops(plan, names)
        plan.devices.update(dict.fromkeys(plan.loops, f"{MASTER}/device:CPU:0"))
    return plan


def guard(plan: Plan) -> Plan:
    """Fills `plan.guards` and `plan.merges` where several tasks share a branch."""
    if any(loop_name(group) is None for group in plan.shared):
        plan.guards, plan.merges = find_guards(plan)
    return plan
