"""`tensorfleet join`: a worker that you start by hand, for a run that goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from tensorfleet.base import errors
from tensorfleet.cli.scripts.bootstrap import LAUNCHER

_CONNECT_SECONDS = 10.0
_LOOPBACK = "127.0.0.1"


def join(
    address: Annotated[
        str,
        typer.Argument(
            metavar="RUN|HOST:PORT",
            help="Name of a run on this machine, or where its launcher takes in workers.",
            show_default=False,
        ),
    ],
    script: Annotated[str, typer.Argument(help="Path of the script.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="More arguments of the script; it gets those of the run too.", show_default=False
        ),
    ] = None,
) -> None:
    """Start a worker by hand that joins a running run.

    The launcher gives it a free number, the cluster and the arguments of the run. It needs the run's token
    (`TENSORFLEET_TOKEN`) unless you give the name of a run on this machine. The run must have room: start it with
    `--max-workers`. When the worker ends or is killed, its number is free again, and the others go on. When the run ends, so
    does the worker.

    `tensorfleet join digits train.py`
    """
    if not Path(script).is_file():
        raise typer.BadParameter(f"No file {script} in {os.getcwd()}.", param_hint="SCRIPT")
    at, secret = _where(address)
    try:
        code = _Joining(at, secret).run(script, [a for a in arguments or [] if a != "--"])
    except (OSError, errors.OpError) as error:
        text = getattr(error, "message", None) or str(error)
        typer.echo(f"tensorfleet: cannot join the run at {at}: {text}", err=True)
        raise typer.Exit(1) from None
    raise typer.Exit(code if code >= 0 else 128 - code)


def _where(address: str) -> tuple[str, bytes]:
    """The launcher's address, and the run's token. Raises `typer.BadParameter`."""
    from tensorfleet.cluster.transport.token import token

    if ":" in address:
        try:
            return address, token()
        except errors.OpError as error:
            raise typer.BadParameter(error.message) from None
    from tensorfleet.cli.known_run import find_entry

    entry = find_entry(address)
    if not entry.get("join"):
        raise typer.BadParameter(
            f"{address} has a fixed number of workers. Start it with --max-workers, such as --workers 2 --max-workers 8, so "
            "that others can join."
        )
    return str(entry["join"]), str(entry["token"]).encode() or token()


class _Joining:
    """One worker, and its connection to the launcher."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._address, self._secret = address, secret
        self._child: subprocess.Popen[bytes] | None = None

    def run(self, script: str, more: list[str]) -> int:
        """Joins, runs the script, and gives its exit code."""
        from tensorfleet.cli.joining import LEFT, follow_signals, say
        from tensorfleet.cluster.messages import Hello
        from tensorfleet.cluster.transport.connection import connect

        channel, _ = connect(self._address, self._secret, Hello("join"), _CONNECT_SECONDS)
        with contextlib.closing(channel):
            told = self._admission(channel)
            environment = {**os.environ, **told["environment"], "TENSORFLEET_TOKEN": self._secret.decode()}
            command = [sys.executable, "-m", "tensorfleet", script, *told["arguments"], *more]
            typer.echo(f"tensorfleet: joins as {told['label']}.", err=True)
            before = {n: signal.signal(n, self._on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
            try:
                self._child = subprocess.Popen(command, env={**environment, LAUNCHER: str(os.getpid())})
                threading.Thread(
                    target=follow_signals,
                    args=(channel, self._send),
                    name="signals of the launcher",
                    daemon=True,
                ).start()
                code = self._followed(self._child, channel)
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
            with contextlib.suppress(OSError, errors.OpError):  # the run is over
                say(channel, LEFT, code=code)
        return code

    def _followed(self, child: subprocess.Popen[bytes], channel: Any) -> int:
        """Tells the launcher that the worker is there, until it is not; gives its exit code."""
        from tensorfleet.cli.joining import HERE, HERE_SECONDS, say

        while True:
            try:
                return child.wait(HERE_SECONDS)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError, errors.OpError):  # the other thread ends the worker then
                    say(channel, HERE)

    def _admission(self, channel: Any) -> dict[str, Any]:
        """What the script is told. Raises PermissionError when the launcher refuses."""
        from tensorfleet.cli.engines.child import free_ports
        from tensorfleet.cli.joining import ADMITTED, JOIN, heard, say
        from tensorfleet.cluster.transport.connection import is_on_this_machine, joined

        here = is_on_this_machine(channel.sock)
        host = _LOOPBACK if here else channel.sock.getsockname()[0]
        (port,) = free_ports(1)
        say(channel, JOIN, address=joined(host, port))
        topic, told = heard(channel)
        if topic != ADMITTED:
            raise PermissionError(told.get("why") or f"the launcher said {topic}")
        return told

    def _on_signal(self, number: int, _frame: object) -> None:
        # Ctrl-C reaches the script by itself.
        if number != signal.SIGINT:
            self._send(number)

    def _send(self, number: int) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)
