"""Room on a Ray cluster for the tasks of a run: placement groups, and what to say when there is none.

Imports Ray inside its functions only: `tensorfleet.fleet` does without it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorfleet.fleet.ray_tasks import library

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup

Bundle = dict[str, float]
_POLL_SECONDS = 0.5
_NO_WAIT_SECONDS = 3.0  # what Ray needs to place what it has room for
_ADDRESS = re.compile(r"^\s*ip: (\S+)", re.MULTILINE)
_DEATH = re.compile(r"The actor is dead because ([^.]+)")
_SHOWN_KINDS = ("CPU", "GPU", "memory")


class NoRoom(Exception):
    """The cluster has no room for what was asked. The text is for the user."""


@dataclass(frozen=True)
class Seat:
    """What one task needs."""

    label: str
    bundle: Bundle
    #: a parameter server: not beside another one where there is room
    serves: bool = False
    #: labels that its node must have
    selector: Mapping[str, str] = field(default_factory=dict)
    #: whether somebody has asked for this number of CPUs
    has_own_cpus: bool = False


@dataclass(frozen=True)
class Held:
    """A bundle that a task has: when its node dies, Ray places the bundle on another one."""

    group: PlacementGroup
    index: int
    seat: Seat

    def actor_options(self) -> dict[str, Any]:
        """What places an actor in the bundle, with all that the bundle has."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        others = {kind: amount for kind, amount in self.seat.bundle.items() if kind not in _SHOWN_KINDS}
        return {
            "num_cpus": self.seat.bundle.get("CPU", 0),
            "num_gpus": self.seat.bundle.get("GPU", 0),
            "memory": self.seat.bundle.get("memory") or None,
            "resources": others or None,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                placement_group=self.group, placement_group_bundle_index=self.index
            ),
        }


def bundle(resources: Mapping[str, float]) -> Bundle:
    """The resources of a task, as Ray counts them: one CPU unless told otherwise."""
    wanted = {"CPU": 1.0, **resources}
    # Ray refuses an empty bundle.
    return {kind: amount for kind, amount in wanted.items() if amount} or {"CPU": 0.001}


def ask(seats: Sequence[Seat]) -> list[Held]:
    """Asks Ray for room, all or nothing for each group: the servers spread over nodes, the others wherever it is."""
    from ray.util.placement_group import placement_group

    held = []
    for strategy, members in (
        ("SPREAD", [seat for seat in seats if seat.serves]),
        ("PACK", [seat for seat in seats if not seat.serves]),
    ):
        if members:
            selectors = [dict(seat.selector) for seat in members]
            group = placement_group(
                [seat.bundle for seat in members],
                strategy=strategy,
                bundle_label_selector=selectors if any(selectors) else None,
            )
            held += [Held(group, index, seat) for index, seat in enumerate(members)]
    return held


def reserve(
    seats: Sequence[Seat],
    wait_seconds: float | None,
    note: Callable[[str], None],
    may_grow: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Held]:
    """A bundle for each task, by label; waits for room as long as told. `may_grow`: a cluster that adds nodes."""
    if not may_grow:
        refuse_the_impossible(seats)
    held = ask(seats)
    try:
        _wait(held, wait_seconds, note, stop)
    except BaseException:
        give_back(held)
        raise
    return {each.seat.label: each for each in held}


def _wait(
    held: list[Held],
    wait_seconds: float | None,
    note: Callable[[str], None],
    stop: Callable[[], bool],
) -> None:
    groups = list(dict.fromkeys(each.group for each in held))
    began = time.monotonic()
    limit = None if wait_seconds is None else max(wait_seconds, _NO_WAIT_SECONDS)
    told = False
    while groups:
        if groups[0].wait(_POLL_SECONDS):
            groups.pop(0)
            continue
        waited = time.monotonic() - began
        if stop():
            raise NoRoom("The run was stopped while it waited for room.")
        if limit is not None and waited >= limit:
            after = f" after {wait_seconds:g} s" if wait_seconds else ""
            raise NoRoom(f"Ray has no room{after}. {_numbers(held)} Ask for less, or wait longer.")
        if not told and wait_seconds != 0 and waited > _NO_WAIT_SECONDS - _POLL_SECONDS:
            told = True
            note(f"Waiting for room on Ray. {_numbers(held)}")


def give_back(held: Sequence[Held]) -> None:
    """Gives bundles back to Ray, with the groups that they are in. Never raises."""
    from ray.util.placement_group import remove_placement_group

    for group in dict.fromkeys(each.group for each in held):
        with contextlib.suppress(Exception):  # the cluster is gone, and the group with it
            remove_placement_group(group)


def refuse_the_impossible(seats: Sequence[Seat]) -> None:
    """Raises `NoRoom` for tasks that the nodes could not hold even if they were empty."""
    nodes = alive_nodes()
    for job, members in _by_job(seats).items():
        need = members[0].bundle
        fits = [_times(node["Resources"], need) for node in nodes if _has_labels(node, members[0].selector)]
        if not any(fits):
            where = " with these labels" if members[0].selector else ""
            raise NoRoom(
                f"No node of the Ray cluster can ever hold a task of job {job!r}: each needs {shown(need)}, "
                f"and the largest node{where} has {_largest(nodes, need, members[0].selector)}. Ask for less per task."
            )
        if sum(fits) < len(members):
            raise NoRoom(
                f"The Ray cluster can never hold this run: {_asked(seats)}; it has room for {sum(fits)} of the "
                f"{len(members)} tasks of job {job!r} when it is empty ({_total()}). Ask for less, or add nodes."
            )
    for kind in {kind for seat in seats for kind in seat.bundle}:
        wanted = sum(seat.bundle.get(kind, 0) for seat in seats)
        there = sum(node["Resources"].get(kind, 0) for node in nodes)
        if wanted > there + 1e-6:
            raise NoRoom(
                f"The Ray cluster can never hold this run: {_asked(seats)}, together {shown({kind: wanted})}; "
                f"it has {shown({kind: there})} ({_total()}). Ask for less, or add nodes."
            )


def alive_nodes() -> list[dict[str, Any]]:
    """What Ray tells of each of its nodes."""
    ray = library()
    return [node for node in ray.nodes() if node["Alive"]]


def death_of(error: Exception, host: str | None = None, node_id: str = "") -> str:
    """Why an actor is gone, in a few words. `host` and `node_id` are where it was, if that is known."""
    text = str(error)
    found = _ADDRESS.search(text)
    node = f"node {host or (found[1] if found else 'unknown')}"
    if getattr(error, "preempted", False):
        return f"{node} was preempted"
    if "node has died" in text or (node_id and not _is_alive(node_id)):
        return f"{node} has died"
    if isinstance(error, library().exceptions.ActorUnavailableError):
        return f"{node} does not answer"
    if "running low on memory" in text:
        return f"{node} ran out of memory"
    death = _DEATH.search(text)
    return f"its Ray actor on {node} is dead: {death[1] if death else first_line(error)}"


def first_line(error: Exception) -> str:
    """What an error says first."""
    return str(error).strip().partition("\n")[0]


def _is_alive(node_id: str) -> bool:
    try:
        return any(node["NodeID"] == node_id for node in alive_nodes())
    except Exception:  # then nothing is known of it, except what the error says
        return True


def shown(resources: Mapping[str, float]) -> str:
    """Resources for people: "2 CPU, 4.0 GB memory"."""
    kinds = sorted(resources, key=lambda kind: (kind not in _SHOWN_KINDS, kind))
    parts = [
        f"{resources[kind] / 2**30:.3g} GB memory" if kind == "memory" else f"{resources[kind]:g} {kind}"
        for kind in kinds
    ]
    return ", ".join(parts) or "nothing"


def _by_job(seats: Sequence[Seat]) -> dict[str, list[Seat]]:
    jobs: dict[str, list[Seat]] = {}
    for seat in seats:
        jobs.setdefault(seat.label.partition("/")[0], []).append(seat)
    return jobs


def _times(there: Mapping[str, float], need: Mapping[str, float]) -> int:
    """How many tasks an empty node holds."""
    return min(int((there.get(kind, 0) + 1e-6) / amount) for kind, amount in need.items())


def _has_labels(node: Mapping[str, Any], selector: Mapping[str, str]) -> bool:
    # Conditions such as "in(a,b)" are Ray's to decide.
    labels = node.get("Labels") or {}
    plain = {key: value for key, value in selector.items() if not set(value) & set("!(")}
    return all(labels.get(key) == value for key, value in plain.items())


def _largest(
    nodes: Sequence[Mapping[str, Any]], need: Mapping[str, float], selector: Mapping[str, str]
) -> str:
    fitting = [node["Resources"] for node in nodes if _has_labels(node, selector)]
    return shown({kind: max((each.get(kind, 0) for each in fitting), default=0) for kind in need})


def _numbers(held: Sequence[Held]) -> str:
    """What was asked, and what was free before that."""
    seats = [each.seat for each in held]
    kinds = {kind for seat in seats for kind in seat.bundle}
    free = dict(library().available_resources())
    for each in held:
        if each.group.wait(0):  # one of two groups has its room already
            for kind, amount in each.seat.bundle.items():
                free[kind] = free.get(kind, 0) + amount
    return f"Asked for {_asked(seats)}; free: {shown({kind: free.get(kind, 0) for kind in kinds})} of {_total()}."


def _asked(seats: Sequence[Seat]) -> str:
    return " and ".join(
        f"{len(members)} {job} ({shown(members[0].bundle)} each)" for job, members in _by_job(seats).items()
    )


def _total() -> str:
    nodes = alive_nodes()
    total: dict[str, float] = {}
    for node in nodes:
        for kind in _SHOWN_KINDS:
            if amount := node["Resources"].get(kind, 0):
                total[kind] = total.get(kind, 0) + amount
    return f"{shown(total)} on {len(nodes)} node{'s' * (len(nodes) != 1)}"
