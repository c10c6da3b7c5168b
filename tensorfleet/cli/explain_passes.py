"""`tensorfleet explain --passes`: what each pass does to the plan of a script's step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet.passes import pipeline
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import PartKind, Plan
from tensorfleet.session.fetches import fetch_plan

# How a part of each kind is called.
_PARTS = {
    PartKind.SEGMENT: "segment",
    PartKind.INDEX: "index part",
    PartKind.HOST: "host op",
    PartKind.JOINED: "batch of host ops",
    PartKind.ROWS: "row update",
    PartKind.CHUNKS: "update in place",
    PartKind.GATHER: "row gather",
    PartKind.LOOP: "loop",
    PartKind.MERGE: "merge",
    PartKind.SAME: "shared result",
}


def passes_table(graph: Graph, fetches: object, placer: Placer, on_tasks: bool) -> str:
    """A line per pass: its name, the number of operations before and after it, and what it changed.

    The step is the training step if the graph has one; else what `fetches`, of the first run, need; else all of the graph.
    """
    title, tensors, targets = _step(graph, fetches)
    feeds = [op.outputs[0] for op in graph.get_operations() if op.type in ("Placeholder", "PlaceholderV2")]
    recorder = _Recorder(len(graph.get_operations()))
    pipeline.observers.append(recorder.note)
    try:
        if on_tasks:
            plan = Plan(graph, tuple(tensors), tuple(targets), tuple(feeds))
            pipeline.cut_into_stages(pipeline.place_on_tasks(plan, placer))
        else:
            pipeline.make_plan(graph, tensors, targets, feeds, placer)
    finally:
        pipeline.observers.remove(recorder.note)
    return f"{title}\n\n{_aligned(recorder.rows)}"


def _step(graph: Graph, fetches: object) -> tuple[str, Sequence[Tensor], Sequence[Operation]]:
    training = [getattr(one, "op", one) for one in graph.get_collection(GraphKeys.TRAIN_OP)]
    if training:
        return f"The training step ({', '.join(op.name for op in training)}):", [], training
    if fetches is not None:
        tensors, targets, _ = fetch_plan(graph, fetches, [])
        return "The first run of a session:", tensors, targets
    ends = [op for op in graph.get_operations() if not any(t.consumers() for t in op.outputs)]
    return "The whole graph:", [], ends


class _Recorder:
    """Notes what a pass has changed when it is over."""

    def __init__(self, operations: int) -> None:
        self.rows: list[tuple[str, str, str, str]] = [("pass", "before", "after", "what it did")]
        self._before = operations

    def note(self, plan: Plan, name: str) -> None:
        """Adds the line of a pass. The parts of loops, which are plans of their own, have none."""
        if plan.nested:
            return
        after = len(plan.ops)
        text = _WORDS[name](plan, self._before) or "nothing to do"
        self.rows.append((name, str(self._before), str(after), text))
        self._before = after


def _count(n: int, what: str, several: str = "") -> str:
    return f"{n} {what}" if n == 1 else f"{n} {several or what + 's'}"


def _pruned(plan: Plan, before: int) -> str:
    return f"kept {len(plan.ops)} of {_count(before, 'operation')}"


def _resolved(plan: Plan, before: int) -> str:
    phrases = []
    if plan.loops:
        phrases.append(f"made {_count(len(plan.loops), 'loop')} of {_count(len(plan.inside), 'operation')}")
    if plan.guards:
        phrases.append(f"{_count(len(plan.guards), 'operation')} in branches")
    return ", ".join(phrases)


def _planned(plan: Plan, before: int) -> str:
    if not plan.loops:
        return ""
    parts = sum(len(inner.parts) for loop in plan.loops for inner in (loop.cond, loop.body))
    return f"planned {_count(len(plan.loops), 'loop')}: {_count(parts, 'part')} inside"


def _folded(plan: Plan, before: int) -> str:
    return f"folded {_count(len(plan.folded), 'constant')}" if plan.folded else ""


def _ordered(plan: Plan, before: int) -> str:
    return f"{_count(len(plan.live), 'input')} read after an update" if plan.live else ""


def _placed(plan: Plan, before: int) -> str:
    devices = {plan.devices[op] for op in plan.ops}
    return f"placed on {_count(len(devices), 'device')}" if devices else ""


def _shared(plan: Plan, before: int) -> str:
    return f"{_count(len(plan.same), 'host op')} computed once with others" if plan.same else ""


def _fused(plan: Plan, before: int) -> str:
    kinds = Counter(part.kind for part in plan.parts)
    several = {PartKind.JOINED: "batches of host ops", PartKind.CHUNKS: "updates in place"}
    return ", ".join(_count(kinds[k], one, several.get(k, "")) for k, one in _PARTS.items() if kinds[k])


def _multiplied(plan: Plan, before: int) -> str:
    sums = sum(len(part.products) for part in plan.parts)
    hidden = sum(len(part.hidden) for part in plan.parts)
    if not sums:
        return ""
    return f"merged matrix products in {_count(sums, 'place')}: {_count(hidden, 'operation')} left out"


def _gathered(plan: Plan, before: int) -> str:
    if not plan.together and not plan.shared:
        return ""
    groups = "branches and loops"
    return f"{len(plan.together)} {groups} on one task, {len(plan.shared)} on several"


def _lifted(plan: Plan, before: int) -> str:
    return f"{_count(len(plan.loops), 'loop')} driven by the master" if plan.loops else ""


def _guarded(plan: Plan, before: int) -> str:
    return f"{_count(len(plan.guards), 'operation')} in branches on several tasks" if plan.guards else ""


def _staged(plan: Plan, before: int) -> str:
    tasks = {stage.task for stage in plan.stages}
    return f"{_count(len(plan.stages), 'stage')} on {_count(len(tasks), 'task')}" if tasks else ""


_WORDS: dict[str, Callable[[Plan, int], str]] = {
    "prune": _pruned,
    "control": _resolved,
    "loops": _planned,
    "fold": _folded,
    "order": _ordered,
    "place": _placed,
    "share": _shared,
    "fuse": _fused,
    "products": _multiplied,
    "inert": lambda plan, before: "",
    "gather": _gathered,
    "lift": _lifted,
    "guard": _guarded,
    "partition": _staged,
}


def _aligned(rows: list[tuple[str, str, str, str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(
        f"{name.ljust(widths[0])}  {before.rjust(widths[1])}  {after.rjust(widths[2])}  {text}"
        for name, before, after, text in rows
    )
