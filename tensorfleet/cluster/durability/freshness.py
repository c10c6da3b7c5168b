"""Whether a standby may answer reads: not when updates may have been acknowledged without it.

A state machine without clocks. The server that leads acknowledges updates without the standby only after the guard has
given the standby up, because it did not answer for a second. A standby that is asked all the time is not given up. One that
was not asked for a while does not know, until it hears from the server that leads again.
"""

from __future__ import annotations

import math

#: less than the guard waits for an answer
_ASKED_SECONDS = 0.8


class Freshness:
    """What a standby knows about whether it is one."""

    def __init__(self) -> None:
        self._asked_at = -math.inf
        self._is_known = False

    def asked(self, now: float) -> None:
        """The guard has asked whether this server is alive."""
        if now - self._asked_at > _ASKED_SECONDS:
            self._is_known = False
        self._asked_at = now

    def heard(self, now: float) -> None:
        """The server that leads has sent something."""
        self._is_known = now - self._asked_at <= _ASKED_SECONDS

    def may_answer(self, now: float) -> bool:
        """Whether all updates that were acknowledged until a second ago have come here, or are on their way."""
        return self._is_known and now - self._asked_at <= _ASKED_SECONDS
