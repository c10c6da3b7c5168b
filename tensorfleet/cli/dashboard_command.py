"""`tensorfleet dashboard`: the page of a run, of a run that has ended, or of a cluster that was started by hand."""

from __future__ import annotations

import contextlib
import signal
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tensorfleet.cli.dashboard.launched import wanted_key, wanted_place
from tensorfleet.cli.dashboard.server import ListenPlace, PageRefused, PageServer, PageSocket, listen
from tensorfleet.cli.dashboard.store import FILE
from tensorfleet.cli.known_run import KnownRun, find_run
from tensorfleet.cli.registry import runs

_SCHEME = "grpc://"
_RUNS = Path("runs")  # where `tensorfleet run` writes logs when nothing else is said
_LOOK_SECONDS = 1.0


def dashboard(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME | grpc://HOST:PORT | FOLDER",
            help="Name of a run, address of any task of a cluster, or log folder of a run that has ended.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(metavar="PORT|HOST:PORT", help="Serve the page there, instead of on any free port."),
    ] = None,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Show the page of a run.

    A run on this machine that has a page: this prints its address. Otherwise this serves a page until Ctrl-C: for a run
    that has ended, from the statistics beside its logs; for a cluster that was started by hand, by asking its tasks.

    You can leave out the name if there is only one run.
    """
    address = None if port is not None else _address_of(name)
    if address is not None:
        _show(address, opens)
        return
    try:
        place = wanted_place(port or "0") or ListenPlace()
        folder = _finished(name)
        known = find_run(name) if folder is None else None
        page = listen(place, wanted_key())
    except (PageRefused, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    if known is not None:
        _serve_live(page, known, opens)
    elif folder is not None:
        _serve_recorded(page, folder, opens)


def _address_of(name: str | None) -> str | None:
    """The address of the page that a run on this machine has already."""
    matches = [entry for entry in runs() if name in (None, entry["name"])]
    return matches[0].get("page") if len(matches) == 1 else None


def _finished(name: str | None) -> Path | None:
    """The log folder of a run that has ended; None where a run that is going on is meant."""
    running = [entry["name"] for entry in runs()]
    if name is None:
        kept = sorted(_RUNS.glob(f"*/{FILE}"), key=lambda path: path.stat().st_mtime)
        return kept[-1].parent if kept and not running else None
    if name in running or name.startswith(_SCHEME):
        return None
    given = Path(name)
    for folder in (given.parent if given.name == FILE else given, _RUNS / name):
        if (folder / FILE).is_file():
            return folder
    if given.is_dir() or (_RUNS / name).is_dir():
        folder = given if given.is_dir() else _RUNS / name
        raise ValueError(f"{folder} has no {FILE}: that run had no page, or ended before its first second.")
    return None


def _show(address: str, opens: bool) -> None:
    typer.echo(address)
    if opens and not webbrowser.open(address):
        typer.echo("tensorfleet: no browser could be opened. Open the address yourself.", err=True)


def _serve_recorded(page: PageSocket, folder: Path, opens: bool) -> None:
    from tensorfleet.cli.dashboard.sources import RecordedRun
    from tensorfleet.cli.dashboard.store import recorded

    try:
        run = RecordedRun(recorded(folder / FILE), folder)
    except OSError as error:
        page.socket.close()
        raise typer.BadParameter(str(error)) from None
    server = PageServer(run, page)
    server.start()
    try:
        _wait(page, server, opens)
    finally:
        server.stop()
        run.stop()


def _serve_live(page: PageSocket, known: KnownRun, opens: bool) -> None:
    from tensorfleet.cli.dashboard.collector import StatsCollector
    from tensorfleet.cli.dashboard.sources import LiveRun, RunFacts
    from tensorfleet.cli.dashboard.store import StatsStore

    collector = StatsCollector()
    # In memory: the file beside the logs belongs to the run's own page.
    run = LiveRun(RunFacts(known.name, known.script, known.logs), collector, StatsStore(None))
    follower = _Follower(known, run, collector)
    follower.look()
    server = PageServer(run, page)
    run.start()
    server.start()
    try:
        _wait(page, server, opens, follower)
    finally:
        server.stop()
        run.stop()


class _Follower:
    """Keeps a collector up to date with what the registry knows of the tasks."""

    def __init__(self, known: KnownRun, run: Any, collector: Any) -> None:
        self._known, self._run, self._collector = known, run, collector
        self._has_ended = False

    def look(self) -> None:
        """Looks once."""
        known = self._known
        if not known.tasks:  # a cluster that was started by hand: its tasks are all that is known
            for label, address in known.addresses.items():
                self._collector.update(label, address)
            return
        if self._has_ended:
            return
        tasks = next((entry["tasks"] for entry in runs() if entry["name"] == known.name), None)
        if tasks is None:
            self._has_ended = True
            for task in self._collector.facts():
                self._collector.update(task.label, task.address, None, "ended")
            self._run.end(None)
            return
        for label, task in tasks.items():
            address = task["address"] or task.get("inspect")
            self._collector.update(label, address, task["pid"], task["state"])


def _wait(page: PageSocket, server: PageServer, opens: bool, follower: _Follower | None = None) -> None:
    """Until Ctrl-C."""
    with _signals() as ended:
        _show(page.address, opens)
        while not ended.wait(_LOOK_SECONDS) and not server.wait(0.0):
            if follower is not None:
                follower.look()


@contextlib.contextmanager
def _signals() -> Iterator[threading.Event]:
    ended = threading.Event()
    before = {n: signal.signal(n, lambda *_: ended.set()) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
