"""`tensorfleet guard`: decides who leads the durable parameter servers of a cluster that was started by hand."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from tensorfleet.cli.replicas import ServerPair
from tensorfleet.cli.standby_command import address_of, cluster_of, task_of

_LOOK_SECONDS = 3600.0


def guard(
    cluster: Annotated[
        str,
        typer.Option(
            metavar="JSON|FILE",
            help="The ClusterSpec: the addresses of the tasks by job, as JSON or in a file.",
            show_default=False,
        ),
    ],
    task: Annotated[
        list[str],
        typer.Option(
            metavar="JOB/N=PS,STANDBY",
            help="Guard this task: the address of its parameter server, then that of its standby. May be repeated.",
            show_default=False,
        ),
    ],
) -> None:
    """Guard the durable parameter servers of a cluster that you started by hand.

    Asks the two servers of each task whether they are alive, and tells one of them that it leads. When it dies, or does
    not answer for a second, the standby takes over. Prints each decision; runs until Ctrl-C. Run one guard for a task,
    and start it again if it ends: without it nobody takes over. `tensorfleet run --replicas 1` guards its tasks itself.

    Start each parameter server with TENSORFLEET_PLACES='["alpha:2222", "beta:2222"]', its standby with `tensorfleet
    standby`, and all with the same token.

    `tensorfleet guard --cluster cluster.json --task ps/0=alpha:2222,beta:2222`
    """
    pairs = [_pair(text, cluster) for text in task]
    labels = [pair.task for pair in pairs]
    if len(set(labels)) < len(labels):
        raise typer.BadParameter("A task is named twice. Name each once.", param_hint="--task")
    from tensorfleet.cli.guarding import PairGuard

    with _until_told() as ended:
        guards = [PairGuard(pair, _Printer(pair), by_hand=True) for pair in pairs]
        for one in guards:
            one.start()
        _print(f"Guarding {', '.join(labels)}. Ctrl-C ends this.")
        while not ended.wait(_LOOK_SECONDS):
            pass
        for one in guards:
            one.close()
    _print("Nobody guards the tasks now: no standby takes over until a guard is started again.")


class _Printer:
    """Prints the decisions about one task."""

    def __init__(self, pair: ServerPair) -> None:
        self._pair = pair

    def on_restart(self, label: str) -> None:
        """Says how to start a standby."""
        pair = self._pair
        address = pair.addresses[pair.labels.index(label)]
        _print(
            f"{pair.task} needs a standby at {address}. If none is there, start one with `tensorfleet standby`."
        )

    def on_lost(self, label: str, cause: str, text: str) -> None:
        """Says that updates are lost."""
        _print(text or f"{label} ended before it led. Start it again.")

    def on_decision(self, task: str, text: str) -> None:
        """Prints it."""
        _print(text)

    def on_note(self, text: str) -> None:
        """Prints it."""
        _print(text)


def _pair(text: str, cluster: str) -> ServerPair:
    name, equals, places = text.partition("=")
    job, index = task_of(name, "--task")
    addresses = [address_of(at, "--task") for at in places.split(",")] if equals else []
    if len(addresses) != 2:
        raise typer.BadParameter(
            f"{text!r} does not name two servers. Write for example ps/0=alpha:2222,beta:2222.",
            param_hint="--task",
        )
    if addresses[0] == addresses[1]:
        raise typer.BadParameter(
            f"{name} has one address twice. Its standby needs an address of its own.", param_hint="--task"
        )
    spec = cluster_of(cluster, job, index)
    known = {job: list(at.values() if isinstance(at, dict) else at) for job, at in spec.items()}
    return ServerPair(name, (name, f"{job}-standby/{index}"), (addresses[0], addresses[1]), job, index, known)


@contextlib.contextmanager
def _until_told() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set."""
    ended = threading.Event()
    before = {n: signal.signal(n, lambda *_: ended.set()) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
