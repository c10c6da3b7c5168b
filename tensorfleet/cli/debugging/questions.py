"""Questions of `tensorfleet debug` to the tasks of a run, and errors that say what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

import psutil
import typer

from tensorfleet.base import errors
from tensorfleet.base.log_lines import own_words
from tensorfleet.cli.known_run import KnownRun, find_run
from tensorfleet.cluster.inspection.ask import ASK_SECONDS, ask
from tensorfleet.cluster.inspection.topics import Report

_TASK = re.compile(r"^/?(?:job:)?(\w+)(?:/replica:\d+)?[/:](?:task:)?(\d+)$")
_LAST_LINES = 10


class Questions:
    """The task that somebody debugs, and its run."""

    def __init__(self, run: KnownRun, label: str) -> None:
        self.run, self.label = run, label

    def ask(
        self, topic: str, options: Mapping[str, Any] | None = None, seconds: float = ASK_SECONDS
    ) -> Report:
        """The answer of the task. Ends the command with an error that says what to do if there is none."""
        try:
            return self.ask_other(self.label, topic, options, seconds)
        except errors.DeadlineExceededError:
            self.fail(self._busy(seconds))
        except errors.UnavailableError as error:
            self.fail(self._busy(seconds) if self._lives() else self._dead(error))
        except errors.OpError as error:
            self.fail(error.message)

    def ask_other(
        self, label: str, topic: str, options: Mapping[str, Any] | None = None, seconds: float = ASK_SECONDS
    ) -> Report:
        """The answer of any task of the run. Raises an `OpError`."""
        return ask(label, self.run.address(label), topic, options, seconds)

    def fail(self, text: str) -> NoReturn:
        """Ends the command with an error."""
        typer.echo(f"tensorfleet: {text}", err=True)
        raise typer.Exit(1)

    @property
    def pid(self) -> int | None:
        """The process of the task, if it is known to be on this machine."""
        known = self.run.tasks.get(self.label, {}).get("pid")
        return int(known) if known else None

    def _lives(self) -> bool:
        """Whether the task is a process of this machine that is there."""
        known = self.run.tasks.get(self.label, {})
        return known.get("state") == "running" and psutil.pid_exists(int(known.get("pid") or -1))

    def _busy(self, seconds: float) -> str:
        pid = self.pid
        look = (
            f"`py-spy dump --native --pid {pid}`"
            if pid
            else "`py-spy dump --native --pid PID` on its machine"
        )
        return (
            f"{self.label} has not answered in {seconds:.0f} s. Its process is stopped, or native code holds Python's lock. "
            f"Try again, or run {look} (pip install py-spy)."
        )

    def _dead(self, error: errors.OpError) -> str:
        state = self.run.tasks.get(self.label, {}).get("state")
        text = f"{self.label} does not answer: {error.message}"
        if state:
            text += f" `tensorfleet ps` calls it {state}."
        lines = self.last_words()
        if lines:
            text += "\nThe end of its log:\n" + "\n".join(f"  {line}" for line in lines)
        return text

    def last_words(self) -> list[str]:
        """The last lines of the task's log, if that is on this machine."""
        if self.run.logs is None:
            return []
        path = self.run.logs / f"{self.label.replace('/', '-')}.log"
        try:
            return own_words(path.read_text(errors="replace").splitlines())[-_LAST_LINES:]
        except OSError:
            return []


def questions_to(words: list[str]) -> Questions:
    """The task that the words before the action name: `[RUN] TASK`, or grpc://host:port alone."""
    name, label = (words[0], words[1]) if len(words) > 1 else _one_word(words[0])
    run = find_run(name)
    if label is None:
        at = str(name).removeprefix("grpc://")
        label = next((task for task, address in run.addresses.items() if address == at), None)
    match = _TASK.match(label or "")
    label = f"{match[1]}/{match[2]}" if match else str(label)
    if label in run.tasks and label not in run.addresses:
        state = run.tasks[label].get("state")
        questions = Questions(run, label)
        text = f"{label} of {run.name} has no server that could answer: it is {state}."
        if words := questions.last_words():
            text += "\nThe end of its log:\n" + "\n".join(f"  {line}" for line in words)
        questions.fail(text)
    run.address(label)
    return Questions(run, label)


def _one_word(word: str) -> tuple[str | None, str | None]:
    return (word, None) if word.startswith("grpc://") else (None, word)
