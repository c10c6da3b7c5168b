"""The search for the server that leads a durable task. Which answer counts is decided in durable_places.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tensorfleet.base import errors, logging
from tensorfleet.cluster.transport.connection import connect
from tensorfleet.cluster.transport.durable_places import Patience, Places, not_found
from tensorfleet.cluster.transport.token import token

if TYPE_CHECKING:
    from tensorfleet.cluster.messages import Hello, Welcome
    from tensorfleet.cluster.transport import wire

_TOLD_AFTER_SECONDS, _TOLD_EVERY_SECONDS = 1.0, 5.0
_LOOK_SECONDS = 0.3  # for a place to say whether its server leads, when another one is in use


class LeaderSearch:
    """Looks for the server that leads one durable task, whenever it was lost."""

    def __init__(self, name: str, places: Places) -> None:
        self._name = name
        self._places = places
        self._told_at = 0.0

    def run(
        self,
        open_at: Callable[[str, float], wire.Channel],
        limit: float,
        deadline: float | None,
        ended: Callable[[], object],
        lost: str,
    ) -> wire.Channel:
        """What `open_at` gives for the place of the server that leads, called with a place and how many seconds it may take.

        Raises an error that begins with `lost` when there is none before `limit`, or when what needs it has `ended`.
        """
        began, patient = time.monotonic(), Patience()
        while True:
            for place in self._places.in_order():
                try:
                    return open_at(place, min(patient.answer, max(limit - time.monotonic(), 0.05)))
                except (OSError, errors.OpError) as e:  # also a stranger who is there now
                    why = getattr(e, "strerror", None) or str(e)
            now = time.monotonic()
            if now >= limit or ended():
                text = not_found(lost, self._places.in_order(), now - began, why)
                late = deadline is not None and now >= deadline
                raise (errors.DeadlineExceededError if late else errors.UnavailableError)(None, None, text)
            if now - began > _TOLD_AFTER_SECONDS:
                self._tell(now, why)
            time.sleep(min(patient.pause, limit - now))
            patient.grow()

    def _tell(self, now: float, why: str) -> None:
        if now - self._told_at > _TOLD_EVERY_SECONDS:  # not once for each step that waits for it
            self._told_at = now
            places = ", ".join(self._places.in_order())
            logging.warning("Looking for the server that leads %s at %s (%s).", self._name, places, why)

    def answers_of_others(self, hello: Hello) -> Iterator[Welcome]:
        """Who answers at the places of the servers that do not lead, as far as is known."""
        for place in self._places.others():
            try:
                channel, welcome = connect(place, token(), hello, _LOOK_SECONDS)
            except (OSError, errors.OpError):
                continue
            channel.close()
            yield welcome
