"""The program of one combination of fetches and feeds over all tasks of a cluster."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tensorfleet.cluster.master.shared_memory_reads import SharedMemoryRead
from tensorfleet.cluster.master.step_machine import StageRule, StepRules
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.graph.operation import Tensor
from tensorfleet.passes.partition import MASTER, Stage
from tensorfleet.passes.plan import Plan
from tensorfleet.runtime.step_parts import part_of


class StageProgram:
    """One stage as the master runs it: a local program, or a number that a peer knows."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.peer: Peer | None = None
        self.number = 0
        self.program: Any = None
        self.ins: list[int] = []
        self.outs: list[int] = []
        self.total = 1
        #: the names of the values that go with the request to a peer, and of those that come back
        self.given: list[str] = []
        self.replied: list[str] = []
        #: positions of the values to send in 16 bits, with their names, and of those that come so
        self.thin: dict[int, str] = {}
        self.full: list[int] = []
        self.followers: list[int] = []
        self.waits = 0
        #: positions of the values that are the same in every iteration of the loop it is in: the peer keeps them
        self.fixed: frozenset[int] = frozenset()
        #: whether the peer keeps handles or values of this stage until the whole step is over
        self.holds = False
        #: the stages whose results are kept at the peer for it, or sent there; the peers that its own results are sent to
        self.needs: list[int] = []
        self.pushes_to: list[Peer] = []
        #: whether it changes something, on a task that does not remember that it has
        self.repeatable = True
        #: whether it only follows others, with nothing to do then
        self.is_empty = False
        #: where it is read without asking the peer, if it only reads
        self.posted: SharedMemoryRead | None = None
        self._part: tuple[str | None] | None = None  # not known yet

    def part(self) -> str | None:
        """The part of a step that it is, for those who measure; None for computing."""
        if self._part is None:
            self._part = (part_of(self.stage.ops),)
        return self._part[0]

    def rule(self) -> StageRule:
        """The stage as the machine sees it."""
        return StageRule(
            task=self.peer,
            waits=self.waits,
            followers=tuple(self.followers),
            blocks=self.peer is None and not self.program.inline,
            holds=self.holds,
            takes=any(op.type.startswith("QueueDequeue") for op in self.stage.ops),
            needs=tuple(self.needs),
            repeatable=self.repeatable,
        )


class ClusterProgram:
    """What one combination of fetches and feeds runs, over all tasks."""

    def __init__(self, plan: Plan, work: list[StageProgram], slots: dict[Tensor, int]) -> None:
        self.plan = plan
        self.work = work
        self.template: list[Any] = [None] * len(slots)
        for tensor, slot in slots.items():
            if tensor in plan.constants:
                self.template[slot] = plan.constants[tensor]
        self.feeds = [slots[t] for t in plan.feeds]
        self.fetches = [slots[t] for t in plan.fetches]
        self.rules = StepRules([w.rule() for w in work])
        #: the durable tasks that it uses, those of its loops too; None for none
        self.durable = _durable(work)
        self.last = _last_uses(work, self.fetches, self.durable is not None)
        #: whether all of it is the work of one other task, which is given nothing and gives nothing back
        self.elsewhere = len(work) == 1 and work[0].peer is not None and not (work[0].ins or work[0].outs)


def _durable(work: list[StageProgram]) -> frozenset[Peer] | None:
    """The durable tasks of some stages."""
    peers = {w.peer for w in work if w.peer is not None and w.peer.places}
    for w in work:
        if w.stage.task == MASTER:
            peers |= w.program.durable
    return frozenset(peers) or None


def _last_uses(work: list[StageProgram], fetches: list[int], is_durable: bool) -> list[list[int]]:
    """For each stage the slots whose values nobody else needs, so that they can be let go when it is done."""
    users = Counter(slot for w in work for slot in w.ins)
    # A loop looks for what it needs itself; to a durable task a value may have to be sent again.
    if is_durable or any(w.stage.task == MASTER for w in work):
        return [[] for _ in work]
    return [[slot for slot in w.ins if users[slot] == 1 and slot not in fetches] for w in work]
