"""Waits for other tasks: a log line now and then, and an error when nothing has changed for too long."""

from __future__ import annotations

from time import monotonic, sleep

from tensorfleet.base import errors, logging, settings
from tensorfleet.base.settings import Setting

# A line every half minute shows a program that waits without filling its log.
_LOG_SECONDS = 30.0
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.1, 1.0


class StallTimer:
    """How long this task has waited for others. A setting is the limit, in seconds."""

    def __init__(self, limit: Setting[float], advice: str) -> None:
        self._variable, self._advice = limit.name, advice
        self._limit = limit()
        self._progress: object = None
        self._since = self._said = monotonic()
        self._pause = _FIRST_PAUSE_SECONDS

    def look(self, progress: object, awaited: str) -> None:
        """Takes the progress of the others; raises when that has been the same for too long."""
        now = monotonic()
        # Any progress restarts the limit: slow workers are waited for, stuck ones are not.
        if progress != self._progress:
            self._progress, self._since = progress, now
        if now - self._since > self._limit:
            raise errors.DeadlineExceededError(
                None,
                None,
                f"Waited for {awaited}, but nothing has changed for {self._limit:g} s. {self._advice}, or set "
                f"{self._variable} to wait longer.",
            )
        if now - self._said > _LOG_SECONDS:
            self._said = now
            logging.info("Waiting for %s: unchanged for %.0f s.", awaited, now - self._since)

    def pause(self) -> None:
        """Sleeps, longer each time, for a second at most."""
        sleep(self._pause)
        self._pause = min(2 * self._pause, _MAX_PAUSE_SECONDS)


def step_stall_timer() -> StallTimer:
    """For steps that other workers make."""
    return StallTimer(
        settings.STEP_SECONDS, "See whether the other workers train, and start them again if not"
    )
