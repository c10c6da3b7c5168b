"""Moves of a run's durable parameter servers to other processes, as `tensorfleet move` asks for them.

The guard of the task decides each step (guard.py); this chooses the places, and tells whoever asked what happens.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorfleet.cli.control import Answer, ControlError, Handler
from tensorfleet.cli.engines.base import EngineError, RunEngine, Wanted
from tensorfleet.cli.moves import Moves
from tensorfleet.cli.plan import Place, Task

if TYPE_CHECKING:
    from tensorfleet.cli.guarding import PairGuard, RunGuards

MOVE = "move"
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class MoveRequest:
    """Asks for a parameter server to be led by another process."""

    #: such as ps/1
    task: str
    #: the host of a new process; nothing for that of the standby
    to: str = ""
    #: give up after so many seconds
    timeout: int = 120


class _Steps:
    """What a guard tells of a move, for the thread that waits for it."""

    def __init__(self) -> None:
        #: a line for the user, or the end and why it was not done
        self.told: queue.SimpleQueue[tuple[str, bool]] = queue.SimpleQueue()

    def on_decision(self, text: str) -> None:
        """A step of it."""
        self.told.put((text, False))

    def on_end(self, why: str) -> None:
        """It is over."""
        self.told.put((why, True))


class ServerMoves:
    """The moves of one run's parameter servers."""

    def __init__(
        self,
        guards: RunGuards | None,
        engine: RunEngine,
        tasks: Mapping[str, Task],
        moves: Moves,
    ) -> None:
        """`tasks` are those of the run, as they are now."""
        self._guards = guards
        self._engine = engine
        self._tasks = tasks
        self._moves = moves
        #: by label: where a task is to be started next
        self._next: dict[str, Place] = {}

    @property
    def handler(self) -> Handler[MoveRequest]:
        """What the launcher does when it is asked for a move."""
        return Handler(MoveRequest, self.move)

    def placed(self, task: Task) -> Task:
        """A task that is about to be started, at the place that a move wants it at."""
        place = self._next.pop(task.label, None)
        return task if place is None else self._moves.to(task, place)

    def move(self, request: MoveRequest) -> Generator[Answer, None, None]:
        """Moves a parameter server, and tells each step. Raises ControlError when that cannot be, or fails."""
        guard, labels = self._guard_of(request.task)
        source = guard.leader
        if source is None:
            raise ControlError(
                f"Nobody leads {request.task} at the moment. Try again when the run has begun, or its standby has taken over."
            )
        target = next(label for label in labels if label != source)
        before = self._choose_places(source, target, request.to) if request.to else None
        steps, is_over = _Steps(), False
        if not guard.begin_move(steps, replaces=bool(request.to)):
            raise ControlError(f"{request.task} is being moved already. Try again when that has ended.")
        try:
            yield {"note": f"{request.task} moves from {self._shown(source)}."}
            yield from self._told(steps, request)
            is_over = True
        finally:  # also when whoever asked has gone
            if not is_over:
                if before is not None and guard.leader == source:
                    self._next.pop(source, None)
                    self._next[target] = before
                guard.give_up_move(f"The move of {request.task} was given up.")
        yield {"note": f"{request.task} is led by {target} at {self._shown(target)} now."}

    def _guard_of(self, task: str) -> tuple[PairGuard, tuple[str, str]]:
        if self._guards is None:
            raise ControlError(
                "The parameter servers of this run have no standbys, so nobody can take over from one that moves. Start the run "
                "with --replicas 1."
            )
        known = self._guards.of(task)
        if known is None:
            raise ControlError(
                f"The run has no parameter server {task}. It has {', '.join(self._guards.tasks)}."
            )
        return known[0], known[1].labels

    def _choose_places(self, source: str, target: str, host: str) -> Place:
        """The new process is at a host, and what led before will stand by where the standby was. Gives that place."""
        before = self._place(target)
        try:
            place = self._engine.place_on(self._wanted(target), host)
        except EngineError as error:
            raise ControlError(str(error)) from None
        self._next |= {target: place, source: before}
        return before

    def _told(self, steps: _Steps, request: MoveRequest) -> Generator[Answer, None, None]:
        limit = time.monotonic() + request.timeout
        while (left := limit - time.monotonic()) > 0:
            try:
                text, is_end = steps.told.get(timeout=min(left, _LOOK_SECONDS))
            except queue.Empty:
                yield {}
                continue
            if is_end and text:
                raise ControlError(text)
            if is_end:
                return
            yield {"note": text}
        raise ControlError(
            f"{request.task} was not moved within {request.timeout} s. Is the new process up? The log of the run says more, and "
            "--timeout gives it more time."
        )

    def _wanted(self, label: str) -> Wanted:
        task = self._tasks[label]
        return Wanted(task.job, task.index, task.serves)

    def _place(self, label: str) -> Place:
        task = self._tasks[label]
        return Place(self._moves.current(task.address or ""), task.host)

    def _shown(self, label: str) -> str:
        place = self._place(label)
        return f"{place.address} on {place.host.shown}" if place.host else place.address
