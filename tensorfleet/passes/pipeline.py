"""The passes in order: from the fetches of a run to the parts, or the stages, that are executed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.common_subexpressions import share
from tensorfleet.passes.control_flow import control
from tensorfleet.passes.fold import fold, fold_outside_branches
from tensorfleet.passes.fuse import fuse
from tensorfleet.passes.matrix_products import products
from tensorfleet.passes.partition import into_stages
from tensorfleet.passes.place import Placer, place
from tensorfleet.passes.plan import Branches, Inner, PartKind, Plan, ordered
from tensorfleet.passes.prune import prune
from tensorfleet.passes.reference_order import order
from tensorfleet.passes.shared_control_flow import gather, guard, inert, lift


class Pass(NamedTuple):
    """A function from plan to plan, with its name. Some are given the placer too."""

    name: str
    run: Callable[..., Plan]
    takes_placer: bool = False


def loops(plan: Plan, placer: Placer) -> Plan:
    """Plans the condition and the body of every loop."""
    for loop in plan.loops:
        for inner in (loop.cond, loop.body):
            _run(LOCAL, inner, placer)
    return plan


# The order matters. `fold` needs the inert operations that `control` finds, `share` and `fuse` compare devices that
# `place` chooses, and `products` looks inside the segments of `fuse`.
#: from fetches to parts, in one process
LOCAL: tuple[Pass, ...] = (
    Pass("prune", prune),
    Pass("control", control),
    Pass("loops", loops, takes_placer=True),
    Pass("fold", fold),
    Pass("order", order),
    Pass("place", place, takes_placer=True),
    Pass("share", share),
    Pass("fuse", fuse),
    Pass("products", products),
)

#: from fetches to stages, over the tasks of a cluster; each task plans its stages with the passes of LOCAL
CLUSTER: tuple[Pass, ...] = (
    Pass("prune", prune),
    Pass("inert", inert),
    Pass("fold", fold_outside_branches),
    Pass("place", place, takes_placer=True),
    Pass("gather", gather, takes_placer=True),
    Pass("lift", lift),
    Pass("guard", guard),
    Pass("partition", into_stages),
)

#: called with the plan and the name of each pass that has run: by tests, and by `tensorfleet explain --passes`
observers: list[Callable[[Plan, str], None]] = []


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
    """Plans one run: its operations, constants, live views of variables, devices and parts.

    As a part of a larger step it leaves out what is `done` elsewhere, is given values `known` beforehand, and perhaps
    told which of its operations are in `branches`. As a part of a loop that is divided among tasks it is told its
    operations: they are not what the fetches need, but what one iteration does.
    """
    plan = Plan(graph, tuple(fetches), tuple(targets), tuple(feeds), frozenset(done))
    plan.constants.update(known or {})
    if branches is not None:
        plan.guards, plan.merges, plan.told = dict(branches[0]), dict(branches[1]), True
    if inner is not None:
        plan.nested = True
        plan.ops = ordered(set(inner[0]), set(feeds) | plan.constants.keys())
        plan.live.update(inner[1])
    return _run(LOCAL, plan, placer)


def divide(plan: Plan, varying: Iterable[Operation]) -> Plan:
    """The same plan with these operations, whose values change their shape from run to run, kept apart from the rest."""
    plan = replace(plan, parts=[], varying=plan.varying | frozenset(varying))
    return _run(_since(LOCAL, "fuse"), plan)


def divide_by_op(plan: Plan) -> Plan:
    """The same plan with every operation as a part by itself, which run one after the other."""
    plan = _run(_since(LOCAL, "fuse"), replace(plan, parts=[], by_op=True))
    # In one segment they see the variables as they were before it. Side by side, a read could come after an update.
    segments = [i for i, part in enumerate(plan.parts) if part.kind is PartKind.SEGMENT]
    for before, after in itertools.pairwise(segments):
        if before not in plan.parts[after].after:
            plan.parts[after].after.append(before)
    return plan


def place_on_tasks(plan: Plan, placer: Placer) -> Plan:
    """Runs the first passes of a plan over several tasks: its operations, and their tasks."""
    later = _since(CLUSTER, "lift")
    return _run(CLUSTER[: -len(later)], plan, placer)


def cut_into_stages(plan: Plan) -> Plan:
    """Runs the other passes of a plan over several tasks: its stages."""
    return _run(_since(CLUSTER, "lift"), plan)


def _since(passes: tuple[Pass, ...], name: str) -> tuple[Pass, ...]:
    """The pass of this name, and those that follow."""
    return passes[[one.name for one in passes].index(name) :]


def _run(passes: tuple[Pass, ...], plan: Plan, placer: Placer | None = None) -> Plan:
    for one in passes:
        if one.run is prune and plan.nested:
            continue  # a part of a loop was told its operations
        plan = one.run(plan, placer) if one.takes_placer else one.run(plan)
        for tell in observers:
            tell(plan, one.name)
    return plan
