"""`tensorfleet logs`: the output of a run's tasks, of a run that goes on or has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tensorfleet.cli.distant_runs import distant_runs
from tensorfleet.cli.output import log_path
from tensorfleet.cli.registry import runs

_LOOK_SECONDS = 0.2  # between two looks for new lines
_DISTANT_LOOK_SECONDS = 2.0  # the same, where Slurm is asked whether the run goes on
_DEFAULT_FOLDER = Path("runs")


def logs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Name of a run, or its log folder. The default is the only run, or the last.",
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="One task, such as worker/1. The default is all.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines until the run has ended.")
    ] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="Print only the last N lines of each task.")] = None,
) -> None:
    """Print the output of a run's tasks."""
    folder, is_running = _folder_of(name)
    while follow and is_running and not any(folder.glob("*.log")):
        time.sleep(_DISTANT_LOOK_SECONDS)  # a job waits in the queue
        is_running = _is_going_on(folder)
    files = _files_of(folder, task)
    width = max(len(label) for label in files)
    positions: dict[str, int] = {}
    for label, path in files.items():
        text, positions[label] = _read(path, 0)
        lines = text.splitlines()
        _print(
            label, lines if tail is None else lines[len(lines) - min(tail, len(lines)) :], width, len(files)
        )
    is_here = _is_here(folder)
    while follow and is_running:
        time.sleep(_LOOK_SECONDS if is_here else _DISTANT_LOOK_SECONDS)
        # Asked before the last look, or its last lines would be missed.
        is_running = _is_here(folder) if is_here else _is_going_on(folder)
        for label, path in files.items():
            text, positions[label] = _read(path, positions[label])
            _print(label, text.splitlines(), width, len(files))


def _is_here(folder: Path) -> bool:
    return any(entry["logs"] and Path(entry["logs"]) == folder for entry in runs())


def _is_going_on(folder: Path) -> bool:
    """Whether the run that writes there has not ended, here or on another machine."""
    return _is_here(folder) or any(run.logs and Path(run.logs) == folder for run in distant_runs())


def _folder_of(name: str | None) -> tuple[Path, bool]:
    """The log folder of a run, and whether the run goes on."""
    known = {run.name: Path(run.logs) for run in distant_runs() if run.logs}
    known |= {entry["name"]: Path(entry["logs"]) for entry in runs() if entry["logs"]}
    if name in known:
        return known[name], True
    if name is None and len(known) == 1:
        return next(iter(known.values())), True
    if name is None and known:
        raise typer.BadParameter(f"There are several runs: {', '.join(known)}. Give a name.")
    folders = _ended() if name is None else iter([Path(name), _DEFAULT_FOLDER / name])
    for folder in folders:
        if any(folder.glob("*.log")):
            return folder, False
    running = f"Running: {', '.join(known)}." if known else "No runs."
    wanted = f"No run named {name}, and no logs in {_DEFAULT_FOLDER / name}. " if name else ""
    raise typer.BadParameter(wanted + running)


def _ended() -> Iterator[Path]:
    """The log folders of runs that were started from here, the newest first."""
    if _DEFAULT_FOLDER.is_dir():
        yield from sorted(_DEFAULT_FOLDER.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)


def _files_of(folder: Path, task: str | None) -> dict[str, Path]:
    files = {"/".join(path.stem.rsplit("-", 1)): path for path in sorted(folder.glob("*.log"))}
    if task is None and files:
        return files
    if task in files:
        return {task: log_path(folder, task)}
    if not files:
        raise typer.BadParameter(f"{folder.name} has no logs yet. --follow waits for them.")
    raise typer.BadParameter(f"{folder.name} has no log of {task}. It has {', '.join(files)}.")


def _read(path: Path, position: int) -> tuple[str, int]:
    """What a file has from a position on, up to its last whole line, and where that ends."""
    with path.open("rb") as file:
        file.seek(position)
        content = file.read()
    end = content.rfind(b"\n") + 1
    return content[:end].decode(errors="replace"), position + end


def _print(label: str, lines: list[str], width: int, count: int) -> None:
    prefix = f"[{label}]".ljust(width + 3) if count > 1 else ""
    for line in lines:
        typer.echo(prefix + line)
