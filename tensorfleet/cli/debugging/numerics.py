"""`tensorfleet debug TASK numerics`."""

from __future__ import annotations

import time
from typing import Any

import typer

from tensorfleet.base import errors
from tensorfleet.cli.debugging.questions import Questions
from tensorfleet.cli.debugging.watch import withdrawn
from tensorfleet.runtime.value_stats import in_words

_POLL_SECONDS = 0.5
_NO_LIMIT = 1_000_000_000  # of the others: they are checked for as long as the task itself
_SETTLING_SECONDS = 2.0  # for the operation that made a number which another task has already been given


def check_numerics(questions: Questions, steps: int, seconds: float, alone: bool) -> None:
    """Checks coming steps on all tasks; ends with code 1 if there is a NaN or an infinity."""
    labels = (
        [questions.label]
        if alone
        else [questions.label, *sorted(set(questions.run.addresses) - {questions.label})]
    )
    watches: dict[str, str] = {}
    try:
        watches[questions.label] = questions.ask("numerics", {"steps": steps}).content["id"]
        for label in labels[1:]:
            try:
                watches[label] = questions.ask_other(label, "numerics", {"steps": _NO_LIMIT}).content["id"]
            except errors.OpError as error:
                typer.echo(f"{label} is not checked: {error.message}", err=True)
        typer.echo(f"Checking steps of {', '.join(watches)}.")
        told = _follow(questions, watches, seconds)
    finally:
        for label, number in watches.items():
            withdrawn(questions, label, number)
    _tell(questions, told)


def _follow(questions: Questions, watches: dict[str, str], seconds: float) -> dict[str, dict[str, Any]]:
    """What each task has found."""
    told: dict[str, dict[str, Any]] = {}
    limit = time.monotonic() + seconds
    has_any = False
    while time.monotonic() < limit:
        for label, number in list(watches.items()):
            options = {"id": number, "seconds": _POLL_SECONDS / len(watches)}
            try:
                told[label] = questions.ask_other(label, "numerics_take", options).content
            except errors.OpError as error:
                typer.echo(f"{label} is not checked any more: {error.message}", err=True)
                del watches[label]
                if not watches:
                    return told
        if any(t["maker"] for t in told.values()) or (
            questions.label in told and told[questions.label]["done"]
        ):
            break
        if any(t["taker"] for t in told.values()) and not has_any:
            has_any, limit = True, min(limit, time.monotonic() + _SETTLING_SECONDS)
    return told


def _tell(questions: Questions, told: dict[str, dict[str, Any]]) -> None:
    makers = [(t["maker"]["time"], label, t["maker"]) for label, t in told.items() if t["maker"]]
    takers = [(t["taker"]["time"], label, t["taker"]) for label, t in told.items() if t["taker"]]
    if not (makers or takers):
        counts = ", ".join(f"{t['checked']} {t.get('unit', 'steps')} of {label}" for label, t in told.items())
        typer.echo(f"No NaN and no infinity in {counts or 'any step: none ran'}.")
        return
    _, label, culprit = min(makers or takers, key=lambda found: found[0])
    _locate(questions, culprit)
    number = "a NaN" if culprit["output"].get("nans") else "an infinity"
    if culprit["makes"]:
        typer.echo(f"'{culprit['op']}' ({culprit['type']}) on {label} makes {number}.")
    else:
        typer.echo(
            f"'{culprit['op']}' ({culprit['type']}) on {label} has {number}, which it was given: see its inputs."
        )
    if culprit["line"]:
        typer.echo(f"  made at {culprit['line']}:  {culprit['code']}")
    typer.echo(f"  in the step that fetches {culprit['step']}")
    if culprit["only_compiled"]:
        typer.echo("  Only the compiled program has it: computed by numpy, its results are finite.")
    typer.echo(f"  output: {in_words(culprit['output'])}")
    for one in culprit["inputs"]:
        typer.echo(f"  input {one['name']}: {in_words(one)}")
    raise typer.Exit(1)


def _locate(questions: Questions, culprit: dict[str, Any]) -> None:
    """Asks the other tasks for the line: a server does not know the scripts of those that use it."""
    for label in questions.run.addresses:
        if culprit["line"]:
            return
        try:
            lines = questions.ask_other(label, "made_at", {"ops": [culprit["op"]]}, 5.0).content["lines"]
        except errors.OpError:
            continue
        culprit.update(lines.get(culprit["op"], {}))
