"""`tensorfleet standby`: the standby of a durable parameter server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tensorfleet.base import errors


def standby(
    task: Annotated[
        str,
        typer.Option(metavar="JOB/N", help="Stand by for this task, such as ps/0.", show_default=False),
    ],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Listen there.", show_default=False)],
    cluster: Annotated[
        str,
        typer.Option(
            metavar="JSON|FILE",
            help="The ClusterSpec: the addresses of the tasks by job, as JSON or in a file.",
            show_default=False,
        ),
    ],
) -> None:
    """Run the standby of a parameter server.

    It receives every update of the parameter server, and takes over when that dies. `tensorfleet run --replicas 1`
    starts standbys itself. For a cluster that you start by hand, set TENSORFLEET_PLACES for the parameter server to
    both addresses, as a JSON list, and start `tensorfleet guard`, which decides who leads.

    `tensorfleet standby --task ps/0 --listen beta:2222 --cluster '{"ps": ["alpha:2222"], "worker": ["gamma:2222"]}'`
    """
    job, index = task_of(task, "--task")
    spec = cluster_of(cluster, job, index)
    address_of(listen, "--listen")
    from tensorfleet.cli.scripts.bootstrap import tie_to_launcher
    from tensorfleet.cluster.durability.standby import serve
    from tensorfleet.cluster.inspection.signal_report import install
    from tensorfleet.cluster.membership.spec import ClusterSpec

    tie_to_launcher()
    install()
    try:
        serve(ClusterSpec(spec), job, index, listen)
    except errors.OpError as error:
        typer.echo(f"tensorfleet: {error.message}", err=True)
        raise typer.Exit(1) from None


def task_of(text: str, option: str) -> tuple[str, int]:
    """Job and number of "ps/0". Raises `typer.BadParameter`."""
    job, slash, index = text.rpartition("/")
    if not slash or not job or not index.isdecimal():
        raise typer.BadParameter(f"{text!r} is not a task. Write for example ps/0.", param_hint=option)
    return job, int(index)


def address_of(text: str, option: str) -> str:
    """An address. Raises `typer.BadParameter`."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise typer.BadParameter(f"{text!r} is not an address. Write host:port.", param_hint=option)
    return text.strip()


def cluster_of(text: str, job: str, index: int) -> dict[str, list[str] | dict[int, str]]:
    """A ClusterSpec with this task, from JSON or a file with JSON. Raises `typer.BadParameter`."""
    given = text.strip()
    try:
        content = json.loads(given if given.startswith("{") else Path(given).read_text())
    except OSError as error:
        raise typer.BadParameter(f"Cannot read {given}: {error.strerror}.", param_hint="--cluster") from None
    except ValueError as error:
        raise typer.BadParameter(f"This is not valid JSON: {error}.", param_hint="--cluster") from None
    if isinstance(content, dict) and isinstance(content.get("cluster"), dict):
        content = content["cluster"]  # as in TF_CONFIG
    if not isinstance(content, dict):
        raise typer.BadParameter(
            'Write the addresses of the tasks by job: {"ps": ["alpha:2222"]}.', param_hint="--cluster"
        )
    jobs = {name: _tasks(name, tasks) for name, tasks in content.items()}
    known = jobs.get(job, [])
    if index not in (known if isinstance(known, dict) else range(len(known))):
        raise typer.BadParameter(f"The cluster has no task {job}/{index}.", param_hint="--cluster")
    return jobs


def _tasks(job: str, tasks: object) -> list[str] | dict[int, str]:
    if isinstance(tasks, dict) and all(key.isdecimal() and isinstance(at, str) for key, at in tasks.items()):
        return {int(key): at for key, at in tasks.items()}
    if isinstance(tasks, list) and all(isinstance(at, str) for at in tasks):
        return tasks
    raise typer.BadParameter(
        f"The tasks of {job!r} are {tasks!r}. Give a list of addresses.", param_hint="--cluster"
    )
