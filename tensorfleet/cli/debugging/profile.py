"""`tensorfleet debug TASK profile`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from tensorfleet.base.formats.flame_graph import parsed
from tensorfleet.cli.debugging.questions import Questions
from tensorfleet.cli.writable import why_not_writable

_ANSWERING_SECONDS = 60.0  # beyond those of the samples: py-spy reads symbols first
_SHOWN = 10


def profile_task(questions: Questions, seconds: float, output: Path, native: bool, rate: int) -> None:
    """Writes a flame graph and prints the functions that take most of the time."""
    if reason := why_not_writable(output):
        questions.fail(reason)
    stacks = output.with_suffix(".txt")
    if stacks == output:
        stacks = output.with_name(f"{output.stem}-stacks.txt")
    options = {"seconds": seconds, "native": native, "rate": rate}
    content = questions.ask("profile", options, seconds + _ANSWERING_SECONDS).content
    if not content["samples"]:
        questions.fail(
            f"No sample in {seconds:g} s: the task did nothing but wait. {content['note'] or ''}".strip()
        )
    try:
        output.write_text(content["flamegraph_svg"])
        stacks.write_text(content["collapsed"])
    except OSError as error:
        questions.fail(f"Cannot write {output}: {error.strerror}.")
    if content["note"]:
        typer.echo(content["note"])
    typer.echo(
        f"{content['samples']} samples by {content['tool']}. Flame graph: {output}. Collapsed stacks: {stacks}."
    )
    inside: Counter[str] = Counter()
    for stack, count in parsed(content["collapsed"]):
        inside[stack[-1]] += count
    for name, count in inside.most_common(_SHOWN):
        typer.echo(f"  {100 * count / max(content['samples'], 1):5.1f} %  {name}")
