"""`tensorfleet trace`: one trace of all tasks of a run, for some steps."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from tensorfleet.base import errors

_BAR_WIDTH = 24


def trace(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME | grpc://HOST:PORT",
            help="Name of the run, as listed by `ps`, or the address of any task.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Trace this many steps of each session's task.")] = 20,
    seconds: Annotated[
        float, typer.Option(min=0.01, max=3600.0, help="Stop after this many seconds, whatever was traced.")
    ] = 10.0,
    output: Annotated[Path, typer.Option("-o", "--output", help="Write the trace to this file.")] = Path(
        "trace.json"
    ),
    by_op: Annotated[
        bool,
        typer.Option(
            "--by-op", help="Run the traced steps unfused, so that each operation has its own cost."
        ),
    ] = False,
) -> None:
    """Trace some steps of a run, in all of its tasks, into one file.

    Open the file in https://ui.perfetto.dev or chrome://tracing. You can leave out the name if there is only one run.
    """
    from tensorfleet.cli.known_run import find_run
    from tensorfleet.cli.writable import why_not_writable
    from tensorfleet.fleet.trace_summary import as_text, summarize
    from tensorfleet.fleet.tracing import trace_tasks, write_trace

    if reason := why_not_writable(output):
        raise typer.BadParameter(reason, param_hint="-o")
    run = find_run(name)
    if not run.addresses:
        raise typer.BadParameter(
            f"No task of {run.name} has an address, so none can be asked. A run without a cluster is traced in its script: "
            "tf.fleet.trace(session)."
        )
    line = _ProgressLine()
    try:
        made = trace_tasks(run.addresses, steps, seconds, by_op, line.show)
        line.end()
        write_trace(made, output)
    except errors.OpError as error:
        _fail(line, error.message)
    except OSError as error:
        _fail(line, f"Cannot write {output}: {error.strerror or error}.")
    about = made["otherData"]
    typer.echo(as_text(summarize(made)))
    count = sum(task["events"] for task in about["tasks"].values())
    typer.echo(
        f"\nWrote {output}: {count} events of {len(about['tasks'])} processes, {about['arrows']} transfers. "
        "Open it in https://ui.perfetto.dev or chrome://tracing."
    )


def _fail(line: _ProgressLine, text: str) -> NoReturn:
    line.end()
    typer.echo(f"tensorfleet: {text}", err=True)
    raise typer.Exit(1) from None


class _ProgressLine:
    """One line on the screen that says how far it is. Nothing where nobody looks."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._length = 0

    def show(self, done: int, steps: int, seconds: float) -> None:
        """Shows the steps that the slowest task has done."""
        if not self._is_shown:
            return
        full = round(_BAR_WIDTH * min(done / steps, 1.0))
        text = (
            f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] {min(done, steps)} of {steps} steps, {seconds:.1f} s"
        )
        sys.stderr.write("\r" + text.ljust(self._length))
        sys.stderr.flush()
        self._length = len(text)

    def end(self) -> None:
        """Removes the line."""
        if self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            self._length = 0
