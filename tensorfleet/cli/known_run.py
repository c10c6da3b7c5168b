"""Finding a run to look into: by its name on this machine, or by the address of any of its tasks."""

from __future__ import annotations

import difflib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from tensorfleet.base import errors
from tensorfleet.cli.registry import runs
from tensorfleet.cluster.messages import Ping
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.cluster.transport.token import secure

_SCHEME = "grpc://"
_CONTACT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run that is going on, and where its tasks answer questions."""

    name: str
    #: by label, such as worker/1: host:port
    addresses: dict[str, str]
    logs: Path | None = None
    script: str | None = None
    #: by label: what the registry knows of the task (pid, address, state)
    tasks: dict[str, Any] = field(default_factory=dict)

    def address(self, label: str) -> str:
        """Where a task answers. Raises `typer.BadParameter` for a task that the run does not have."""
        if label not in self.addresses:
            raise typer.BadParameter(
                f"{self.name} has no task {label}. Its tasks are {', '.join(sorted(self.addresses))}."
            )
        return self.addresses[label]


def find_run(name: str | None) -> KnownRun:
    """The run of that name on this machine, the only one if `name` is None, or the cluster behind `grpc://host:port`.

    The connections that this process opens from now on use the token of the run. Raises `typer.BadParameter`, which
    says what there is instead.
    """
    if name is not None and name.startswith(_SCHEME):
        return _cluster_at(name)
    entry = find_entry(name)
    if entry.get("token"):
        secure(token=entry["token"])
    places = {label: task.get("address") or task.get("inspect") for label, task in entry["tasks"].items()}
    addresses = {label: place for label, place in places.items() if place}
    logs = Path(entry["logs"]) if entry["logs"] else None
    return KnownRun(entry["name"], addresses, logs, entry["script"], entry["tasks"])


def find_entry(name: str | None) -> dict[str, Any]:
    """What the registry has about the run of that name on this machine, or about the only one if `name` is None.

    Raises `typer.BadParameter`, which says what there is instead.
    """
    known = list(runs())
    running = f"Running: {', '.join(entry['name'] for entry in known)}." if known else "No runs."
    matches = [entry for entry in known if name in (None, entry["name"])]
    if not matches:
        near = difflib.get_close_matches(name or "", [entry["name"] for entry in known], 1)
        meant = f"Did you mean {near[0]}? " if near else ""
        wanted = f"No run named {name} on this machine. {meant}" if name else ""
        raise typer.BadParameter(wanted + running)
    if len(matches) > 1:
        if len({entry["name"] for entry in matches}) == 1:
            launchers = ", ".join(str(entry["launcher"]) for entry in matches)
            raise typer.BadParameter(
                f"{len(matches)} runs are named {matches[0]['name']} (launchers {launchers}). Give the address of a task "
                "instead, such as grpc://127.0.0.1:2222; `tensorfleet ps` lists them."
            )
        raise typer.BadParameter(f"There are several runs. {running} Give a name.")
    return matches[0]


def _cluster_at(target: str) -> KnownRun:
    address = target.removeprefix(_SCHEME)
    peer = Peer(f"the server at {target}", address, watched=False)
    try:
        peer.call(Ping(), time.monotonic() + _CONTACT_SECONDS)
        welcome = peer.welcome
    except errors.OpError as error:
        raise typer.BadParameter(error.message) from None
    finally:
        peer.forget()
    assert welcome is not None  # it has answered
    addresses = {
        f"{job}/{index}": at
        for job, tasks in welcome.cluster.items()
        for index, at in (tasks.items() if isinstance(tasks, dict) else enumerate(tasks))
    }
    # The task is there where it was reached, whatever its cluster calls it.
    addresses[f"{welcome.job}/{welcome.index}"] = address
    return KnownRun(target, addresses)
