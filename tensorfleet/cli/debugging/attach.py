"""`tensorfleet debug TASK attach`."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import typer

from tensorfleet.base import errors
from tensorfleet.cli.debugging.questions import Questions
from tensorfleet.cluster.transport.connection import is_loopback, split_address

_POLL_SECONDS = 1.0
_STOPPING_SECONDS = 60.0  # for the main thread to come back from native code


def attach_debugger(questions: Questions, pdb: bool, port: int) -> None:
    """Opens a debugger in the task."""
    if pdb:
        _terminal(questions)
        return
    opened = questions.ask("attach", {"port": port}, 30.0).content
    host, at = opened["host"], opened["port"]
    if opened["was_open"]:
        typer.echo(f"A debugger is open in {questions.label} already, at {host}:{at}.")
    else:
        typer.echo(f"debugpy listens in {questions.label} (process {opened['pid']}) at {host}:{at}.")
    machine = split_address(questions.run.address(questions.label))[0]
    if not is_loopback(machine):
        typer.echo(
            f"It is on another machine. Forward the port first:\n\n  ssh -N -L {at}:{host}:{at} {machine}\n"
        )
    typer.echo("VS Code: add this to `configurations` in .vscode/launch.json, and start it:\n")
    typer.echo(json.dumps(_configuration(questions.label, host, at, opened["folder"]), indent=2))
    typer.echo(
        f"\nPyCharm (2025.1 and later): Run > Edit Configurations > + > Attach to DAP, host {host}, port {at}.\n"
        "Anyone who may connect to this port of that machine can run code in the task, until it ends."
    )


def _configuration(label: str, host: str, port: int, folder: str) -> dict[str, Any]:
    return {
        "name": f"TensorFleet {label}",
        "type": "debugpy",
        "request": "attach",
        "connect": {"host": host, "port": port},
        "pathMappings": [{"localRoot": "${workspaceFolder}", "remoteRoot": folder}],
        "justMyCode": True,
    }


def _terminal(questions: Questions) -> None:
    """Takes commands from this terminal until the debugger is left."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - `input` then has a history

    opened = questions.ask("pdb").content
    typer.echo(
        f"Stopping the main thread of {questions.label}, process {opened['pid']}. `quit` lets it run on."
    )
    number, text = opened["id"], None
    silent = 0.0
    try:
        while True:
            options = {"id": number, "text": text, "seconds": _POLL_SECONDS}
            told = questions.ask_other(questions.label, "pdb_talk", options).content
            text = None
            typer.echo(told["output"], nl=False)
            if told["ended"]:
                return
            silent = 0.0 if told["output"] or told["asks"] else silent + _POLL_SECONDS
            if silent == _STOPPING_SECONDS:
                typer.echo(
                    "The main thread has not stopped yet: it runs on, or is in native code. Ctrl-C leaves.",
                    err=True,
                )
            if told["asks"]:
                try:
                    text = input()
                except EOFError:
                    text = "quit"
    except errors.OpError as error:
        questions.fail(error.message)
    except KeyboardInterrupt:
        typer.echo()
    finally:
        with contextlib.suppress(errors.OpError):
            questions.ask_other(
                questions.label, "pdb_talk", {"id": number, "text": "quit", "seconds": 0.1}, 2.0
            )
