"""Other numbers of workers for a running launcher: what `tensorfleet scale` asks for, and the answer line by line."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias

from tensorfleet.cli.control import STILL_AT_IT_SECONDS, Answer, ControlError
from tensorfleet.cli.policy import Action, Policy, ScaleError, ScaleResult

#: what the launcher is to do at a time, decided in its own thread
Decision: TypeAlias = Callable[[float], list[Action]]
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class ScaleRequest:
    """Asks for a number of workers, and whether to wait until they have come and gone."""

    workers: int
    wait_seconds: int


class Scaling:
    """Changes the number of workers of one run."""

    def __init__(
        self,
        policy: Policy,
        call: Callable[[Decision], None],
        note: Callable[[str], None],
        others: int = 0,
    ) -> None:
        """`call` has something decided in the launcher's thread; `others` of the workers are not scaled: a chief."""
        self._policy = policy
        self._call = call
        self._note = note
        self._others = others

    def answer(self, request: ScaleRequest) -> Generator[Answer, None, None]:
        """Scales, and tells what becomes of it."""
        decided: queue.SimpleQueue[ScaleResult | ScaleError] = queue.SimpleQueue()
        self._call(lambda now: self._decide(request.workers, now, decided))
        outcome = None
        while outcome is None:
            try:
                outcome = decided.get(timeout=STILL_AT_IT_SECONDS)
            except queue.Empty:
                yield {}
        if isinstance(outcome, ScaleError):
            raise ControlError(str(outcome))
        yield {"note": _spoken(request.workers, outcome)}
        yield from self._follow(outcome, request.wait_seconds)

    def _decide(
        self, workers: int, now: float, decided: queue.SimpleQueue[ScaleResult | ScaleError]
    ) -> list[Action]:
        try:
            scaled = self._policy.on_scale(workers - self._others, now)
        except ScaleError as error:
            decided.put(error)
            return []
        self._note(_spoken(workers, scaled))
        decided.put(scaled)
        return scaled.actions

    def _follow(self, scaled: ScaleResult, wait_seconds: int) -> Generator[Answer, None, None]:
        """Tells who has come and who has left."""
        missing = [*scaled.joining, *scaled.leaving]
        limit = time.monotonic() + wait_seconds
        told = time.monotonic()
        pause = threading.Event()
        while missing and time.monotonic() < limit:
            for label in list(missing):
                joins, task = label in scaled.joining, self._policy.tasks[label]
                # One that was told to leave and is wanted again leaves first.
                if (task.running and task.leaves_by is None) if joins else not task.running:
                    missing.remove(label)
                    yield {"note": f"{label} {'joins' if joins else 'has left'}."}
            if time.monotonic() - told > STILL_AT_IT_SECONDS:
                told = time.monotonic()
                yield {}
            pause.wait(_LOOK_SECONDS)
        yield from self._not_done(scaled, missing, wait_seconds)

    def _not_done(
        self, scaled: ScaleResult, missing: list[str], wait_seconds: int
    ) -> Generator[Answer, None, None]:
        coming = [label for label in missing if label in scaled.joining]
        if coming and wait_seconds:
            raise ControlError(
                f"There has been no room for {' and '.join(coming)} for {wait_seconds:g} s. The run still looks for it; scale "
                "it to fewer workers to give that up."
            )
        if missing:
            yield {"note": f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} still at it."}


def _spoken(workers: int, scaled: ScaleResult) -> str:
    parts = [f"{' and '.join(labels)} {verb}" for labels, verb in _changes(scaled) if labels]
    return f"Scaled to {workers} worker{'s' if workers > 1 else ''}: {'; '.join(parts) or 'nothing changes'}."


def _changes(scaled: ScaleResult) -> list[tuple[list[str], str]]:
    return [(scaled.joining, "to join"), (scaled.leaving, "told to save and leave")]
