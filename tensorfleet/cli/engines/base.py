"""What the launcher needs of an engine: places for tasks, and a way to start them there.

The launcher decides what a failure means, and when a run is over (`cli/policy.py`). An engine knows its scheduler: it
reserves places, starts commands at them, and tells what becomes of them. `docs/engines.md` shows an engine of one's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tensorfleet.cli.plan import Place, Task


class EngineError(Exception):
    """A run cannot go on, for a reason of the engine's. The text is for the user: what happened, and what to do."""


@dataclass(frozen=True)
class TaskResources:
    """What one task needs. None leaves it to the engine."""

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int = 0


@dataclass(frozen=True)
class Wanted:
    """A task that needs a place."""

    job: str
    index: int
    #: a parameter server: spread over nodes, and not beside another one where there is room
    serves: bool
    resources: TaskResources = TaskResources()

    @property
    def label(self) -> str:
        """The task's name: worker/1."""
        return f"{self.job}/{self.index}"


@dataclass(frozen=True)
class RunOptions:
    """What every engine is told of a run, besides its tasks."""

    #: the name of the run, as `tensorfleet ps` lists it
    name: str
    script: Path
    log_dir: Path | None = None
    #: the file that names hosts and their tasks: `--cluster`
    cluster_file: Path | None = None
    #: leave the run to the engine, and do not follow it: `--submit`
    submit: bool = False
    #: how long to wait for room: None is until there is room, 0 is not at all
    wait_seconds: float | None = None
    #: where the engine is: `--address`
    address: str | None = None
    #: the longest time of the run, in the engine's own words: `--time`
    time_limit: str | None = None
    #: options of the engine's own, as the user has written them: `--engine-arg`
    engine_arguments: Sequence[str] = ()
    #: what only containers need
    image: str | None = None
    namespace: str | None = None
    #: environment variables that the user sets for every task
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineNode:
    """A machine of an engine's: its name, and the Python there."""

    name: str
    python: str = "python3"

    @property
    def shown(self) -> str:
        """Its name, for people."""
        return self.name


class RunListener(Protocol):
    """What the launcher hears from an engine. Any thread may call; no call blocks for long."""

    def on_line(self, label: str, text: str) -> None:
        """A task has printed a line."""

    def on_exit(self, label: str, code: int, lost: str | None = None) -> None:
        """A task has ended: with its exit code, or -N for signal N.

        `lost` says that its place is gone, and why: "node n2 has died", "preempted". It is None if the task itself has
        ended. After this, nothing more is said of the task until it is started again.
        """

    def on_place(self, label: str, place: Place) -> None:
        """A place that `seek` asked for."""

    def on_note(self, text: str) -> None:
        """Something that the user wants to know. Printed once."""


class RunningTask(Protocol):
    """A task that has been started."""

    @property
    def pid(self) -> int:
        """The id of its process, 0 if that is on another machine."""

    @property
    def where(self) -> str:
        """What the engine calls it, for people: "pid 4711", "step 12.3", "pod digits-ps-0"."""

    def send(self, number: int) -> None:
        """Sends a signal to the task and all that it started. SIGKILL always ends it; never blocks, never raises.

        A task that has ended already is not an error.
        """


class RunEngine(ABC):
    """Where the tasks of one run are. Made for one run, and closed at its end."""

    #: as in `--on NAME`
    name: str

    def __init__(self, options: RunOptions) -> None:
        self.options = options

    def jobs(self) -> dict[str, int] | None:
        """How many tasks of each job there are, where the engine's own configuration says; None if the user does."""
        return None

    def relaunch(self, wanted: Sequence[Wanted], command: Sequence[str]) -> int | None:
        """Runs this very command from where the engine needs it, and gives its exit code. None: go on here.

        A batch system gets its allocation so. `command` is the whole command line, with the interpreter.
        """
        return None

    def preview(self, wanted: Sequence[Wanted]) -> dict[str, Place]:
        """Places as they may look, for `--dry-run`: nothing is reserved."""
        return {
            one.label: Place(f"NODE-{number}:2222", EngineNode(f"NODE-{number}"))
            for number, one in enumerate(wanted)
        }

    def fixed_places(self, wanted: Sequence[Wanted]) -> dict[str, Place]:
        """Places whose addresses are known before there is room for them: every task is told them from the start."""
        return {}

    def manifests(self, tasks: Sequence[Task]) -> str | None:
        """What `--print` prints: the objects that would be made for the tasks. None: the engine has no such thing."""
        return None

    @abstractmethod
    def reserve(self, wanted: Sequence[Wanted], listener: RunListener) -> dict[str, Place]:
        """A place for each task, by label: all of them, or an `EngineError` that says what was asked and what there is.

        Waits for room as the options say. Says through `listener.on_note` what it waits for.
        """

    @abstractmethod
    def start(self, task: Task, listener: RunListener) -> RunningTask:
        """Starts a task at its place: the one of `reserve`, or the last that `seek` found.

        The command inherits no secrets by its command line: the token in `task.environment` travels by the engine's
        own secret channel. Raises `EngineError` if it cannot be started at all.
        """

    @abstractmethod
    def seek(self, wanted: Wanted, listener: RunListener) -> None:
        """Looks for a (new) place for a task: one that was lost, or one more worker. Returns at once.

        Calls `listener.on_place` when there is one, which may be never. What the task held before is given back.
        """

    def place_on(self, wanted: Wanted, host: str) -> Place:
        """A place for one more process of a task, on a host that the user names. Raises `EngineError`.

        The task is started there by `start`, perhaps before the process that it has now is gone.
        """
        raise EngineError(
            f"{self.name} chooses the hosts of its tasks itself, so {wanted.label} cannot be placed on {host}. Leave out --to: "
            "then the standby takes over where it is."
        )

    def release(self, label: str) -> None:
        """A worker is not wanted any more: gives its place back, or stops looking for one. Returns at once.

        `seek` may ask for one again. An engine whose room is the run's until its end does nothing.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """The run is over: ends whatever still runs, and gives everything back. May be called twice, never raises."""

    def advice(self, task: Task, code: int) -> list[str]:
        """Lines to add to the report of a failed task, where the engine knows more about the exit code."""
        return []
