"""A stage as the task that runs it knows it: the program, where its feeds come from and where its results go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorfleet.cluster.master.graph_registration import found
from tensorfleet.cluster.stage_spec import StageSpec
from tensorfleet.cluster.transport.wire_dtype import is_full
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation
from tensorfleet.passes.partition import elsewhere, standing
from tensorfleet.runtime.resources import VariableStore
from tensorfleet.runtime.scheduling.host_loops import LoopItem
from tensorfleet.runtime.scheduling.host_ops import HostItem
from tensorfleet.runtime.segments.segment_item import SegmentItem

if TYPE_CHECKING:
    from tensorfleet.cluster.worker.worker_session import WorkerSession

# A stage that takes longer gains more from a thread of its own than waking the thread costs.
SHORT_SECONDS = 1e-4


class RegisteredStage:
    """One registered stage: the program, where its feeds come from and where its results go."""

    def __init__(self, session: WorkerSession, spec: StageSpec, known: dict[str, Any]) -> None:
        graph = session.graph
        self.id = spec.id
        self.given = len(spec.given)
        #: of the values that come with the request, and of those that go into the reply
        self.names = spec.given, spec.reply
        self.fixed = sorted(spec.fixed)
        self.kept = spec.kept
        self.awaited = spec.awaited
        self.held = [name for _, name in spec.held]
        held = [name for name, _ in spec.held]
        feeds = [graph.get_tensor_by_name(n) for n in (*spec.given, *self.kept, *self.awaited, *held)]
        wanted = dict.fromkeys([*spec.reply, *spec.keep, *spec.hold])
        for push in spec.push:
            wanted.update(dict.fromkeys(push.names))
        place = {name: i for i, name in enumerate(wanted)}
        ops = [graph.get_operation_by_name(n) for n in spec.ops]
        fetches = [graph.get_tensor_by_name(n) for n in wanted]
        self.program = session.engine.program(
            fetches,
            [graph.get_operation_by_name(n) for n in spec.targets],
            feeds,
            elsewhere(ops, {*feeds, *(graph.get_tensor_by_name(n) for n in known)}),
            {graph.get_tensor_by_name(n): v for n, v in known.items()},
            found(spec.branches, graph) if spec.branches is not None else None,
            (ops, _seen_live(spec.live, graph)) if spec.live is not None else None,
        )
        self.wire = spec.wire
        self.thin = {place[n]: n for n in spec.thin}
        self.full = [i for i, t in enumerate(feeds) if is_full(t)] if self.wire else []
        self.reply = [place[n] for n in spec.reply]
        self.keep = [(n, place[n]) for n in spec.keep]
        self.hold = [(n, place[n]) for n in spec.hold]
        self.push = [(route, [place[n] for n in route.names]) for route in spec.push]
        self.alone = not (self.kept or self.awaited or self.keep or self.hold or self.held)
        #: whether it only reads: it is not one of those that make up the step here, and need not be asked for
        self.plain = spec.plain and self.alone and not (self.given or self.push)
        #: whether what it takes from queues goes nowhere but into the reply
        #: whether its values go only into the reply, as they are
        self._simple = self.alone and not (self.push or self.thin or self.full or self.fixed)
        #: how long each of its last two runs took
        self._took = math.inf, math.inf
        #: whether it may change what is kept here
        self.changes = any(map(_may_change, ops)) or any(isinstance(i, LoopItem) for i in self.program.items)
        self.returnable = not (self.keep or self.push or self.hold) and _only_takes(ops)
        #: when it ends by taking an element from a queue, and that is all of the reply: the op, and which components those are
        self.answers = None if self.keep or self.push or self.hold or self.thin else self._taken_last()

    def _taken_last(self) -> tuple[Operation, list[int]] | None:
        last = self.program.last_to_run()
        if not isinstance(last, HostItem) or last.op.type not in ("QueueDequeue", "QueueDequeueV2"):
            return None
        wanted: list[Any] = [self.program.fetch_slots[i] for i in self.reply]
        if not all(s in last.outs for s in wanted):
            return None
        return last.op, [last.outs.index(s) for s in wanted]

    def is_alone(self, total: int) -> bool:
        """Whether it neither waits nor has to do with other stages of a step that has so many here."""
        return self.alone and (total == 1 or self.plain) and self.program.inline

    def is_short(self, total: int) -> bool:
        """Whether it is alone and was short the last time. One slow run of two may be the fault of others."""
        return min(self._took) < SHORT_SECONDS and self._simple and self.is_alone(total)

    def took(self, seconds: float) -> None:
        """It has run, alone, for so long."""
        self._took = self._took[1], seconds

    @property
    def last_seconds(self) -> float:
        """How long it took the last time that it ran alone."""
        return self._took[1]

    def reads(self) -> list[VariableStore] | None:
        """For each value of the reply the variable that has it, if the stage does nothing but read them."""
        if not self.plain or self.thin:
            return None
        of: dict[int, VariableStore] = {}
        program = self.program
        for item in program.items:
            if not isinstance(item, SegmentItem) or (item.segment.steps and item.reading is None):
                return None
            if item.reading is not None:
                of |= {slot: item.stores[i] for slot, i in zip(item.outs, item.reading, strict=True)}
        values = [of.get(s) if isinstance(s, int) else s.store for s in program.fetch_slots]
        wanted = [values[i] for i in self.reply]
        return None if None in wanted else [s for s in wanted if s is not None]


def _seen_live(live: list[tuple[str, int, str]], graph: Graph) -> dict[tuple[Operation, int], Operation]:
    named = graph.get_operation_by_name
    return {(named(op), i): named(variable) for op, i, variable in live}


def _may_change(op: Operation) -> bool:
    spec = op.spec
    return bool(spec.updates or spec.rng) or ((spec.stateful or spec.blocks) and not standing(op))


def _only_takes(ops: list[Operation]) -> bool:
    """Whether a stage does nothing that could not be undone by putting back what it took from queues."""
    return all(
        op.type.startswith("QueueDequeue") or standing(op) or not (op.spec.stateful or op.spec.updates)
        for op in ops
    )
