"""The passes in order: from what a run asks for to the parts that will be executed."""

from __future__ import annotations

from collections.abc import Sequence

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.fold import fold
from tensorfleet.passes.fuse import fuse
from tensorfleet.passes.order import order
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import Plan
from tensorfleet.passes.products import products
from tensorfleet.passes.prune import prune


def make_plan(
    graph: Graph,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    placer: Placer,
) -> Plan:
    """Plans one run: what must run, what is known, what sees updates, where each op goes, in which segments."""
    plan = Plan(graph, tuple(fetches), tuple(targets), tuple(feeds))
    for one in (prune, fold, order, placer.place, fuse, products):
        plan = one(plan)
    return plan
