"""Durable parameter servers of a run: which pairs there are, and how their standbys are started. Decides only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tensorfleet.base import settings
from tensorfleet.cli.engines.base import Wanted
from tensorfleet.cli.plan import (
    MADE,
    PLACED,
    SERVES,
    STANDBY_JOB,
    Place,
    Task,
    is_known_to_clients,
    names_in_script,
)

PRIMARY_JOB = "ps"
MAX_REPLICAS = 1
PLACES = settings.PLACES.name
# What the user's script needs to know, and a standby does not.
_OF_SCRIPTS = (SERVES, PLACED, MADE, "TF_CONFIG", "CLUSTER_SPEC")


@dataclass(frozen=True)
class ServerPair:
    """A durable task: its two seats, the first of which begins with the user's script."""

    #: as people call the task, and the seats
    task: str
    labels: tuple[str, str]
    #: as the seats are called in the cluster; they may be at other places meanwhile
    addresses: tuple[str, str]
    #: the task in the cluster, as the script calls its job
    job: str
    index: int
    #: the addresses of all tasks by job, as the script calls these
    cluster: Mapping[str, Sequence[str]]

    @property
    def places(self) -> str:
        """Both addresses, as the servers are told them."""
        return json.dumps(list(self.addresses))

    def standby_command(self, python: str, seat: int) -> list[str]:
        """The command that starts a standby in a seat."""
        task = ["--task", f"{self.job}/{self.index}", "--listen", self.addresses[seat]]
        cluster = {job: list(addresses) for job, addresses in self.cluster.items()}
        return [python, "-m", "tensorfleet", "standby", *task, "--cluster", json.dumps(cluster)]

    def as_standby(self, task: Task) -> Task:
        """A task of the run as the standby in its seat, whatever it was."""
        seat = self.labels.index(task.label)
        environment = {name: value for name, value in task.environment.items() if name not in _OF_SCRIPTS}
        command = self.standby_command(task.command[0], seat)
        return replace(task, command=command, environment={**environment, PLACES: self.places})


def with_standbys_wanted(wanted: Sequence[Wanted], script: str) -> list[Wanted]:
    """Requests for places, with a standby for each parameter server. Raises ValueError where that cannot be."""
    if is_known_to_clients(Path(script)):
        raise ValueError(
            f"{script} has the addresses of its tasks written in it, so --replicas cannot tell where they are. Let the "
            "script take them by flags (--ps_hosts, --worker_hosts) or from TF_CONFIG; or start its tasks yourself, with "
            "`tensorfleet standby` and `tensorfleet guard`."
        )
    if not any(one.job == PRIMARY_JOB for one in wanted):
        raise ValueError(
            f"--replicas needs parameter servers, and this run of {script} has none. Add for example --ps 1, or leave out "
            "--replicas."
        )
    result = []
    for one in wanted:
        result.append(one)
        if (
            one.job == PRIMARY_JOB
        ):  # next to it: engines that take one node after the other put the two on different ones
            result.append(replace(one, job=STANDBY_JOB))
    return result


def check_standbys_in_file(cluster: Path, counts: Mapping[str, int], durable: bool) -> None:
    """Raises ValueError if a cluster file has not as many standbys as parameter servers, or has them for nothing."""
    standbys, servers = counts.get(STANDBY_JOB, 0), counts.get(PRIMARY_JOB, 0)
    if standbys and not durable:
        raise ValueError(f"{cluster} has a job {STANDBY_JOB}. Add --replicas 1, or take the job out.")
    if durable and standbys != servers:
        raise ValueError(
            f"{cluster} has {servers} parameter servers and {standbys} standbys. Add a job `{STANDBY_JOB}` with {servers} "
            "tasks, on other hosts than job `ps` where possible."
        )


def with_standbys(
    tasks: Sequence[Task], places: Mapping[str, Place], script: Path
) -> tuple[list[Task], list[ServerPair]]:
    """The tasks of a run with a standby for each parameter server, at these places by label; and the pairs."""
    pairs = _pairs(tasks, places, script)
    primaries = {pair.labels[0]: pair for pair in pairs}
    result, standbys = [], []
    for task in tasks:
        pair = primaries.get(task.label)
        if pair is not None:
            place = places[pair.labels[1]]
            command = [place.host.python if place.host else task.command[0]]
            seat = replace(task, job=STANDBY_JOB, address=place.address, host=place.host, command=command)
            standbys.append(pair.as_standby(seat))
            task = replace(task, environment={**task.environment, PLACES: pair.places})
        result.append(task)
    servers = sum(task.serves for task in result)  # they come first
    return [*result[:servers], *standbys, *result[servers:]], pairs


def _pairs(tasks: Sequence[Task], places: Mapping[str, Place], script: Path) -> list[ServerPair]:
    addresses: dict[str, list[str]] = {}
    for task in tasks:
        if task.address:
            addresses.setdefault(task.job, []).append(task.address)
    names = names_in_script(script, addresses)
    cluster = {names.get(job, job): at for job, at in addresses.items()}
    return [
        ServerPair(
            task.label,
            (task.label, f"{STANDBY_JOB}/{task.index}"),
            (task.address, places[f"{STANDBY_JOB}/{task.index}"].address),
            names.get(task.job, task.job),
            task.index,
            cluster,
        )
        for task in tasks
        if task.job == PRIMARY_JOB and task.address
    ]
