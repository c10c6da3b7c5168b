"""`tensorfleet scale`: another number of workers for a run."""

from __future__ import annotations

from typing import Annotated

import typer

from tensorfleet.cli.control import ControlError, ask


def scale(
    workers: Annotated[int, typer.Option(min=1, help="Set the number of workers.", show_default=False)],
    name: Annotated[str | None, typer.Argument(help="Name of the run, as listed by `ps`.")] = None,
    wait: Annotated[
        int,
        typer.Option(
            min=0, help="Wait for so many seconds until the workers have joined or left; 0 returns at once."
        ),
    ] = 60,
) -> None:
    """Change the number of workers of a run.

    With more workers, the run starts others. With fewer, those with the highest numbers get SIGTERM: they stop after their
    step, save and leave, and the others go on. The run must have room for them: start it with `--max-workers 8`, or with
    `--workers 2:8`. You can leave out the name if there is only one run.

    `tensorfleet scale digits --workers 4`
    """
    try:
        for line in ask(name, {"do": "scale", "workers": workers, "wait_seconds": wait}):
            typer.echo(line.get("note"))
    except ControlError as error:
        typer.echo(f"tensorfleet: {name or 'the run'} is not scaled to {workers} workers. {error}", err=True)
        raise typer.Exit(1) from None
