"""The passes in order: from what a run asks for to the parts that will be executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.common_subexpressions import share
from tensorfleet.passes.control_flow import control
from tensorfleet.passes.fold import fold
from tensorfleet.passes.fuse import fuse
from tensorfleet.passes.matrix_products import products
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import Branches, Inner, Plan, ordered
from tensorfleet.passes.prune import prune
from tensorfleet.passes.reference_order import order


def make_plan(
    graph: Graph,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    placer: Placer,
    done: Iterable[Operation] = (),
    known: Mapping[Tensor, Any] | None = None,
    branches: Branches | None = None,
    inner: Inner | None = None,
) -> Plan:
    """Plans one run: what must run, what is known, what sees updates, where each op goes, in which segments.

    As a part of a larger step it leaves out what is `done` elsewhere, is given values `known` beforehand, and perhaps
    told which of its operations are in `branches`. As a part of a loop that is divided among tasks it is told its
    operations: they are not what the fetches need, but what one iteration does.
    """
    plan = Plan(graph, tuple(fetches), tuple(targets), tuple(feeds), frozenset(done))
    plan.constants.update(known or {})
    if branches is not None:
        plan.guards, plan.merges, plan.told = dict(branches[0]), dict(branches[1]), True
    if inner is None:
        return refine(prune(plan), placer)
    plan.nested = True
    plan.ops = ordered(set(inner[0]), set(feeds) | plan.constants.keys())
    plan.live.update(inner[1])
    return refine(plan, placer)


def divide(plan: Plan, varying: Iterable[Operation]) -> Plan:
    """The same plan with these operations, whose values change their shape from run to run, kept apart from the rest."""
    return products(fuse(replace(plan, parts=[], varying=plan.varying | frozenset(varying))))


def refine(plan: Plan, placer: Placer) -> Plan:
    """The passes after pruning; the condition and the body of every loop go through them too."""
    plan = control(plan)
    for loop in plan.loops:
        refine(loop.cond, placer)
        refine(loop.body, placer)
    for one in (fold, order, placer.place, share, fuse, products):
        plan = one(plan)
    return plan
