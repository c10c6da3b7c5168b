"""What the launcher hears, from threads of the engine, the guards and other commands."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tensorfleet.cli.plan import Place
from tensorfleet.cli.scaling import Decision


class PrintedLine(NamedTuple):
    """A line that a task has printed."""

    label: str
    text: str


class Exit(NamedTuple):
    """A task has ended."""

    label: str
    code: int
    lost: str | None = None


class Found(NamedTuple):
    """A place that was looked for."""

    label: str
    place: Place


class UserNote(NamedTuple):
    """A line for the user."""

    text: str


class UserSignal(NamedTuple):
    """The user wants the run to end."""

    number: int


class Restart(NamedTuple):
    """The guard wants a standby in the place of a task."""

    label: str


class Lost(NamedTuple):
    """Both servers of a durable task are gone."""

    label: str
    cause: str
    text: str


class LauncherCall(NamedTuple):
    """Something that is decided in the launcher's thread."""

    decide: Decision


RunEvent: TypeAlias = PrintedLine | Exit | Found | UserSignal | UserNote | Restart | Lost | LauncherCall


class NeverStarted:
    """Stands for a task that its engine could not start."""

    pid = 0
    where = "not started"

    def send(self, number: int) -> None:
        """There is nothing to end."""
