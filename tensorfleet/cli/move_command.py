"""`tensorfleet move`: another process leads a parameter server of a running training."""

from __future__ import annotations

from typing import Annotated

import typer

from tensorfleet.cli.control import ControlError, ask
from tensorfleet.cli.server_moves import MOVE


def move(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the run, as listed by `ps`.", show_default=False)
    ],
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="The parameter server, such as ps/1.", show_default=False),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Start a new process on this host, and let it take over: a host of the cluster file, or localhost for runs "
            "on this machine. The default is the process of the standby.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        int,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Give up after this time. The parameter server then stays where it is.",
        ),
    ] = 120,
) -> None:
    """Move a parameter server of a running training to another process.

    The run needs standbys (`tensorfleet run --replicas 1`). The standby takes over, and the process that led before
    becomes the standby. Training goes on: no step fails, and no update is lost or applied twice.

    With --to, a standby is started on that host first, and gets the state while updates go on. It takes over, and the
    process that led before ends; a standby starts where the standby was. Until it is up to date, each of the two times,
    the parameter server has no standby.

    `tensorfleet move digits ps/0`

    `tensorfleet move digits ps/0 --to beta`
    """
    try:
        for line in ask(name, {"do": MOVE, "task": task, "to": to or "", "timeout": timeout}):
            typer.echo(line.get("note"))
    except ControlError as error:
        typer.echo(f"tensorfleet: {error}", err=True)
        raise typer.Exit(1) from None
