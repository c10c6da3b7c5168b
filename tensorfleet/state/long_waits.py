"""Reports of long waits for a queue (or a similar resource), with its state."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

from tensorfleet.base import logging, settings

if TYPE_CHECKING:
    from tensorfleet.graph.kernel_types import HostContext
    from tensorfleet.state.recording import ChangeRecorder

# After so many seconds the first line; the next ones when waiting has taken twice as long as at the last.
REPORT_SECONDS = settings.REPORT_SECONDS()


class Awaited(abc.ABC):
    """A resource that steps wait for."""

    name: str
    #: who keeps a copy of it, on a durable server
    recorder: ChangeRecorder | None = None

    def __init__(self) -> None:
        self.maker = ""
        #: after how many seconds the next line is due, by what steps want of it
        self.reported: dict[str, float] = {}
        #: how many seconds steps have waited for it, by what they wanted of it
        self.waited: dict[str, float] = {}

    @abc.abstractmethod
    def fullness(self) -> str:
        """How much it holds, in words."""


class LongWait:
    """One wait for a resource. Reports of earlier waits for it count: a slow program is reported once, not in every step."""

    __slots__ = ("_kind", "_resource", "what")

    def __init__(self, resource: Awaited, kind: str, what: str) -> None:
        self._resource, self._kind, self.what = resource, kind, what

    def due(self) -> float:
        """After how many seconds of waiting there is something to tell."""
        return self._resource.reported.get(self._kind, REPORT_SECONDS)

    def tell(self, waited: float, where: str) -> None:
        """Reports that the wait goes on, unless another wait has just reported it."""
        # Twice as long each time: a wait of a day writes a dozen lines, not thousands.
        if waited >= self.due():
            self._resource.reported[self._kind] = 2 * waited
            logging.warning("A step has waited %.0f s %s%s%s.", waited, self.what, where, self.state())

    def count(self, seconds: float) -> None:
        """Counts the wait, which is over."""
        waited = self._resource.waited
        waited[self._kind] = waited.get(self._kind, 0.0) + seconds

    def state(self) -> str:
        """The contents of the resource and its origin, in words."""
        origin = f"; made {self._resource.maker}" if self._resource.maker else ""
        return f" ({self._resource.fullness()}{origin})"


def maker_of(ctx: HostContext) -> str:
    """The origin of an operation's resource: the line of this program or, on a cluster, the session's task."""
    if ctx.private.owner:
        return f"by a session of {ctx.private.owner}"
    line = ctx.op.source_line
    return f"at {line}" if line else ""
