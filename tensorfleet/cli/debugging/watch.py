"""`tensorfleet debug TASK watch`."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from tensorfleet.base import errors
from tensorfleet.cli.debugging.questions import Questions
from tensorfleet.runtime.value_stats import in_words

_POLL_SECONDS = 1.0
_SHOWN_NUMBERS = 1000  # of an array that is printed whole


def watch_tensors(
    questions: Questions, tensors: list[str], stats: bool, save: Path | None, steps: int, seconds: float
) -> None:
    """Prints or saves tensors over some steps; ends with code 1 if no step computes them in time."""
    if save is not None:
        try:
            save.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            questions.fail(f"Cannot write to {save}: {error.strerror}.")
    begun = questions.ask("watch", {"tensors": tensors, "steps": steps})
    watches = {questions.label: str(begun.content["id"])}
    try:
        _elsewhere(questions, watches, begun.content["tensors"], steps)
        _follow(questions, watches, stats, save, time.monotonic() + seconds)
    except errors.OpError as error:
        questions.fail(error.message)
    except OSError as error:  # the disk is full, or the name too long
        questions.fail(f"Cannot write to {save}: {error.strerror}.")
    finally:
        for label, number in watches.items():
            withdrawn(questions, label, number)


def _elsewhere(
    questions: Questions, watches: dict[str, str], tensors: list[dict[str, Any]], steps: int
) -> None:
    """Watches what other tasks compute for the sessions of this one over there."""
    own = questions.label
    others: dict[str, list[str]] = {}
    for tensor in tensors:
        if tensor["task"] not in (None, own):
            others.setdefault(tensor["task"], []).append(tensor["name"])
    job, _, index = own.partition("/")
    for label, names in others.items():
        typer.echo(f"{label} computes {', '.join(names)} for {own}; watching there.")
        options = {"tensors": names, "steps": steps, "session": f"/job:{job}/task:{index}"}
        watches[label] = str(questions.ask_other(label, "watch", options).content["id"])
    if sum(map(len, others.values())) == len(tensors):
        withdrawn(questions, own, watches.pop(own))


def withdrawn(questions: Questions, label: str, number: str) -> None:
    """Ends a watch. A task that is gone has none."""
    with contextlib.suppress(errors.OpError):
        questions.ask_other(label, "withdraw", {"id": number}, 2.0)


def _follow(
    questions: Questions, watches: dict[str, str], stats: bool, save: Path | None, limit: float
) -> None:
    content: dict[str, Any] = {"others": {}, "reasons": {}}
    waiting = dict(watches)
    count = dropped = 0
    while waiting:
        for label, number in list(waiting.items()):
            left = limit - time.monotonic()
            if left <= 0:
                _give_up(questions, content, count)
            options = {"id": number, "seconds": min(left, _POLL_SECONDS) / len(waiting), "stats": stats}
            report = questions.ask_other(label, "watch_take", options)
            content = report.content
            for one in content["seen"]:
                count += 1
                _show(one, list(report.arrays), save)
            if content["done"]:
                del waiting[label]
                dropped += content["dropped"]
    if dropped:
        typer.echo(f"{dropped} values were too many to be sent in time, and are missing.", err=True)


def _give_up(questions: Questions, content: dict[str, Any], count: int) -> None:
    lines = [f"{name}: {reason}." for name, reason in content["reasons"].items()]
    others = [f"  {times} times: a step that fetches {what}" for what, times in content["others"].items()]
    if count:
        lines.append("Not all steps came in time; --seconds sets how long to wait.")
    elif others:
        lines += ["No step computed this in time. These steps ran:", *others]
    else:
        lines.append("No step computed this in time: no step ran. `stack` says what the task waits for.")
    questions.fail("\n".join(lines))


def _show(one: dict[str, Any], arrays: list[np.ndarray[Any, Any]], save: Path | None) -> None:
    title = f"step {one['step']}  {one['name']}"
    if "stats" in one:
        typer.echo(f"{title}  {in_words(one['stats'])}")
        return
    value = _value(one, arrays)
    if save is not None:
        path = save / f"{re.sub('[^A-Za-z0-9_.-]', '_', one['name'])}-{one['step']}.npy"
        np.save(path, value, allow_pickle=False)
        typer.echo(f"{title}  {path}")
        return
    typer.echo(f"{title}  {value.dtype.name if value.dtype.kind != 'U' else 'string'} {list(value.shape)}")
    for line in _lines(value):
        typer.echo(f"  {line}")


def _value(one: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    if "texts" in one:
        return np.array(one["texts"], dtype=np.str_).reshape(one["shape"])
    return np.asarray(arrays[one["array"]])


def _lines(value: np.ndarray[Any, Any]) -> Iterator[str]:
    # As precise as the type: what is printed reads back as the same numbers.
    precise: Any = {"float_kind": repr} if value.dtype.kind == "f" and value.dtype.itemsize > 4 else None
    text = np.array2string(
        value, threshold=_SHOWN_NUMBERS, max_line_width=110, formatter=precise, floatmode="unique"
    )
    yield from text.splitlines()
