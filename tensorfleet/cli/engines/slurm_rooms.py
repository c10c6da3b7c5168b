"""Chooses the nodes of tasks by their needs and the room there is. Decides only: no commands, no clock."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tensorfleet.cli.engines.base import TaskResources, Wanted
from tensorfleet.cli.engines.slurm_commands import NodeShare

_MEGABYTE = 1 << 20


def memory_mb(resources: TaskResources) -> int:
    """The memory to ask Slurm for, which counts in MB; 0 if nothing is said."""
    return math.ceil((resources.memory_bytes or 0) / _MEGABYTE)


def whole_cpus(resources: TaskResources) -> int:
    """The CPUs to ask Slurm for, which gives whole ones; 0 if nothing is said."""
    return math.ceil(resources.cpus or 0)


@dataclass(frozen=True)
class Room:
    """What is free of a share, and who is there."""

    share: NodeShare
    cpus: int
    memory_mb: int
    gpus: int
    tasks: int = 0

    def fits(self, wanted: Wanted, grows: bool = False) -> bool:
        """Whether a task finds room. One more worker wants a CPU that no other task has, even if it asks for none."""
        own = wanted.resources
        idle = not grows or self.tasks < self.share.cpus
        return (
            idle
            and whole_cpus(own) <= self.cpus
            and memory_mb(own) <= self.memory_mb
            and own.gpus <= self.gpus
        )

    def with_one(self, wanted: Wanted) -> Room:
        """The room that is left after one more task."""
        own = wanted.resources
        return replace(
            self,
            cpus=self.cpus - whole_cpus(own),
            memory_mb=self.memory_mb - memory_mb(own),
            gpus=self.gpus - own.gpus,
            tasks=self.tasks + 1,
        )


@dataclass
class Seating:
    """Which task is where, among the shares that a run may use."""

    shares: list[NodeShare] = field(default_factory=list)
    held: dict[str, tuple[Wanted, NodeShare]] = field(default_factory=dict)

    def choose(self, wanted: Wanted, shares: Iterable[NodeShare], grows: bool = False) -> NodeShare | None:
        """The best of some shares for one task: servers apart from each other, and where there is most room."""
        servers = Counter(share.node for other, share in self.held.values() if other.serves)
        rooms = [room for room in map(self._room, shares) if room.fits(wanted, grows)]
        if not rooms:
            return None

        def burden(room: Room) -> tuple[int, bool, float, int]:
            beside = servers[room.share.node] if wanted.serves else 0
            wastes_gpus = room.share.gpus > 0 and not wanted.resources.gpus
            return beside, wastes_gpus, (room.tasks + 1) / max(room.share.cpus, 1), room.tasks

        return min(rooms, key=burden).share

    def choose_all(
        self, wanted: Sequence[Wanted], shares: Sequence[NodeShare]
    ) -> dict[str, NodeShare] | None:
        """Shares for tasks, by label, or None if there is not enough room."""
        servers_first = sorted(wanted, key=lambda one: not one.serves)
        # Servers that have spread may have taken the only room of a big task, so big ones come first then.
        by_size = sorted(wanted, key=lambda one: _size(one.resources), reverse=True)
        for order in (servers_first, by_size):
            trial = Seating(self.shares, dict(self.held))
            if all(trial.take(one, shares) for one in order):
                return {one.label: trial.held[one.label][1] for one in wanted}
        return None

    def take(self, wanted: Wanted, shares: Iterable[NodeShare], grows: bool = False) -> NodeShare | None:
        """Chooses a share and holds it."""
        share = self.choose(wanted, shares, grows)
        if share is not None:
            self.held[wanted.label] = wanted, share
        return share

    def needs(self, job: str | None, label: str, sought: Container[str]) -> bool:
        """Whether a job that was asked for on behalf of a task is still of use: to this task, or to others that are there."""
        return label in sought or any(share.leader == job for _, share in self.held.values())

    def _room(self, share: NodeShare) -> Room:
        room = Room(share, share.cpus, share.memory_mb, share.gpus)
        for other, where in self.held.values():
            if where == share:
                room = room.with_one(other)
        return room


def cpus_of_step(wanted: Wanted, share: NodeShare, others: Iterable[Wanted]) -> int | None:
    """The CPUs of a task's step; None to share those of the node with the other tasks there.

    A step that has GPUs for itself needs a number of CPUs. If nobody has named one, the tasks divide the CPUs.
    """
    if wanted.resources.cpus is not None:
        return max(whole_cpus(wanted.resources), 1)
    if not wanted.resources.gpus:
        return None
    everyone = {one.label: one.resources for one in (*others, wanted)}.values()
    named = sum(whole_cpus(one) for one in everyone)
    return max((share.cpus - named) // sum(one.cpus is None for one in everyone), 1)


def spoken_need(wanted: Sequence[Wanted]) -> str:
    """What tasks ask for, for people: "2 ps and 3 workers with 4 CPUs, 2000 MB"."""
    groups = Counter((one.job, _spoken(one.resources)) for one in wanted)
    parts = [f"{n} {_plural(job, n)}{f' with {each}' if each else ''}" for (job, each), n in groups.items()]
    return " and ".join(parts)


def spoken_room(shares: Sequence[NodeShare]) -> str:
    """What there is, for people: "n1 has 4 CPUs, 4000 MB"."""
    return (
        "; ".join(f"{s.node} has {_amounts(s.cpus, s.memory_mb, s.gpus)}" for s in shares) or "no node is up"
    )


def _plural(job: str, count: int) -> str:
    return f"{job}s" if count > 1 and job != "ps" else job


def _spoken(resources: TaskResources) -> str:
    each = _amounts(whole_cpus(resources), memory_mb(resources), resources.gpus)
    return f"{each} each" if each else ""


def _amounts(cpus: int, memory: int, gpus: int) -> str:
    parts = [
        (cpus, f"{cpus} CPU{'s' * (cpus > 1)}"),
        (memory, f"{memory} MB"),
        (gpus, f"{gpus} GPU{'s' * (gpus > 1)}"),
    ]
    return ", ".join(text for amount, text in parts if amount)


def _size(resources: TaskResources) -> tuple[int, int, int]:
    return resources.gpus, whole_cpus(resources), memory_mb(resources)
