"""`tensorfleet debug TASK stack`."""

from __future__ import annotations

import json

import typer

from tensorfleet.cli.debugging.questions import Questions
from tensorfleet.cluster.inspection.stacks import as_text


def print_stacks(questions: Questions, every_frame: bool, as_json: bool) -> None:
    """Prints the threads of the task."""
    content = questions.ask("stacks").content
    if as_json:
        typer.echo(json.dumps(content, indent=1))
        return
    threads = content["threads"]
    typer.echo(
        f"{questions.label}, process {content['pid']}: {len(threads)} threads. `>` marks your own files.\n"
    )
    typer.echo(as_text(threads, every_frame))
