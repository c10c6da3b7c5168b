"""One `tensorfleet run`: from its tasks and engine to its exit code."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TypeAlias

from tensorfleet.cli import plan as planning
from tensorfleet.cli.dashboard.launched import LaunchedPage
from tensorfleet.cli.engines.base import EngineError, RunEngine, TaskResources, Wanted
from tensorfleet.cli.engines.child import free_ports
from tensorfleet.cli.output import Output
from tensorfleet.cli.placing import (
    elastic_jobs,
    needed_at_once,
    tasks_at,
    token_for,
    wanted_alone,
    wanted_for,
)
from tensorfleet.cli.plan import Place, Task
from tensorfleet.cli.registry import Entry
from tensorfleet.cli.replicas import (
    PRIMARY_JOB,
    ServerPair,
    check_standbys_in_file,
    with_standbys,
    with_standbys_wanted,
)
from tensorfleet.cli.run import Launcher
from tensorfleet.cli.run_settings import RunSettings
from tensorfleet.cli.task_counts import Asked, Counts, counts_for, counts_in_file, spoken

#: from the labels of the tasks and the folder of the logs
MakeOutput: TypeAlias = Callable[[list[str], Path], Output]
_CANNOT_START = 127  # as shells say it
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class _Stopped(BaseException):
    """A signal that ends a run which still waits for its places."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True)
class RunRequest:
    """The tasks that a run needs."""

    wishes: planning.Wishes
    #: None: the script runs once, told nothing of clusters
    counts: Counts | None
    wanted: list[Wanted]
    token: str
    #: whether each parameter server has a standby
    durable: bool = False

    @classmethod
    def of(
        cls,
        wishes: planning.Wishes,
        asked: Asked,
        engine: RunEngine,
        resources: TaskResources,
        durable: bool = False,
    ) -> RunRequest:
        """What the user asks for, or the engine's configuration says. Raises ValueError for what cannot run."""
        token = token_for(Path(wishes.script), engine.name == "local")
        named = engine.jobs()
        cluster_file = engine.options.cluster_file
        if named is not None and cluster_file is not None:
            check_standbys_in_file(cluster_file, named, durable)
            named = {job: count for job, count in named.items() if job != planning.STANDBY_JOB}
            counts: Counts | None = counts_in_file(wishes, asked, cluster_file, named)
        else:
            counts = counts_for(wishes, asked)
        wanted = wanted_for(counts, resources) if counts else [wanted_alone(resources)]
        if durable:
            wanted = with_standbys_wanted(wanted, wishes.script)
        return cls(wishes, counts, wanted, token, durable)

    @property
    def at_once(self) -> list[Wanted]:
        """The tasks that the run cannot begin without."""
        return needed_at_once(self.counts, self.wanted) if self.counts else self.wanted

    @property
    def elastic(self) -> frozenset[str]:
        """The jobs whose tasks may come and go."""
        return elastic_jobs(self.counts) if self.counts else frozenset()

    def tasks_at(self, places: Mapping[str, Place]) -> list[Task]:
        """The tasks with their commands, at these places."""
        return self.planned_at(places)[0]

    def planned_at(self, places: Mapping[str, Place]) -> tuple[list[Task], list[ServerPair]]:
        """The tasks with their commands, at these places; and those that are durable."""
        if self.counts is None:
            return planning.plan_alone(self.wishes, places[self.wanted[0].label].host), []
        tasks = tasks_at(self.wishes, self.counts, places, self.token)
        return with_standbys(tasks, places, Path(self.wishes.script)) if self.durable else (tasks, [])


class PlannedRun:
    """A run that has not begun."""

    def __init__(
        self,
        request: RunRequest,
        engine: RunEngine,
        settings: RunSettings,
        make_output: MakeOutput,
        guesses: bool,
    ) -> None:
        """With `guesses` nobody said how many tasks there are: if the script makes another cluster, that counts."""
        self._request = request
        self._engine = engine
        self._settings = settings
        self._make_output = make_output
        self._guesses = guesses and request.counts is not None
        self._entry: Entry | None = None

    def to_its_end(self, page: LaunchedPage | None) -> int:
        """Runs it, and gives the exit code."""
        try:
            elsewhere = self._engine.relaunch(
                self._request.at_once, [sys.executable, "-m", "tensorfleet", *sys.argv[1:]]
            )
            return self._go(page) if elsewhere is None else elsewhere
        except (OSError, EngineError) as error:
            print(f"tensorfleet: {error}", file=sys.stderr)
            return _CANNOT_START
        except _Stopped as stopped:
            print(f"tensorfleet: Got {signal.Signals(stopped.number).name}; stopping.", file=sys.stderr)
            return 128 + stopped.number
        finally:
            self._engine.close()
            if self._entry is not None:
                self._entry.remove()

    def _go(self, page: LaunchedPage | None) -> int:
        request, settings = self._request, self._settings
        fixed = self._engine.fixed_places(request.wanted)
        self._entry = self._listed(page)
        with _signals_raised():
            places = {**fixed, **self._engine.reserve(request.at_once, _Notes())}
        tasks, pairs = request.planned_at(places)
        made = (settings.log_dir / "cluster.json").absolute() if self._guesses and settings.log_dir else None
        code = self._launch(tasks, replace(settings, made=made), page, pairs)
        if made and made.exists() and code < 128:  # not interrupted
            counts = json.loads(made.read_text())
            made.unlink()
            print(
                f"tensorfleet: {settings.script} creates a cluster of {spoken(counts)}. Restarting with these tasks.",
                file=sys.stderr,
            )
            code = self._launch_again(tasks, counts, page)
        return code

    def _listed(self, page: LaunchedPage | None) -> Entry:
        """Lists the run while it has no places yet: it may wait for hours, and can be stopped."""
        settings = self._settings
        where = page.address if page else None
        entry = Entry(settings.name, settings.script, settings.log_dir, "", where, self._engine.name)
        entry.announce([one.label for one in self._request.at_once])
        return entry

    def _launch_again(self, tasks: list[Task], counts: dict[str, int], page: LaunchedPage | None) -> int:
        request = self._request
        ports = iter(free_ports(2 * sum(counts.values())))
        tasks = planning.plan_again(request.wishes, tasks, counts, ports)
        pairs: list[ServerPair] = []
        if request.durable:
            labels = [f"{planning.STANDBY_JOB}/{task.index}" for task in tasks if task.job == PRIMARY_JOB]
            places = {label: Place(f"127.0.0.1:{next(ports)}") for label in labels}
            tasks, pairs = with_standbys(tasks, places, Path(request.wishes.script))
        return self._launch(tasks, self._settings, page, pairs)

    def _launch(
        self, tasks: list[Task], settings: RunSettings, page: LaunchedPage | None, pairs: Sequence[ServerPair]
    ) -> int:
        request = self._request
        logs = settings.log_dir or Path()
        placed = {one.label for one in request.at_once}
        unplaced = frozenset(one.label for one in request.wanted if one.label not in placed)
        launcher = Launcher(
            tasks,
            self._engine,
            settings,
            self._make_output([task.label for task in tasks], logs),
            page,
            {one.label: one for one in request.wanted},
            unplaced,
            pairs,
        )
        return launcher.go()


@contextlib.contextmanager
def _signals_raised() -> Iterator[None]:
    """Turns the signals that end a run into an exception: also where this is the first process of a pod."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        raise _Stopped(number)

    heard = [n for n in _ENDING if signal.getsignal(n) is not signal.SIG_IGN]  # as nohup leaves SIGHUP
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Notes:
    """Hears what an engine tells before there are tasks."""

    def on_line(self, label: str, text: str) -> None:
        """No task is there to print."""

    def on_exit(self, label: str, code: int, lost: str | None = None) -> None:
        """No task is there to end."""

    def on_place(self, label: str, place: Place) -> None:
        """Nothing is looked for yet."""

    def on_note(self, text: str) -> None:
        """A line for the user."""
        print(f"tensorfleet: {text}", file=sys.stderr, flush=True)
