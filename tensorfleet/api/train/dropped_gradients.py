"""How many gradients came too late for their step: `tf.fleet.dropped_gradients`, and lines in the chief's log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorfleet.base import errors, logging
from tensorfleet.base.naming import export

if TYPE_CHECKING:
    from tensorfleet.api.train.types import AnySession
    from tensorfleet.session.session import BaseSession

# Often enough to see a slow replica while a program is watched; each report asks all tasks of the session.
_REPORT_SECONDS = 30.0


@export("fleet.dropped_gradients")
def dropped_gradients(session: AnySession) -> dict[str, int]:
    """How many gradients came too late and were dropped, by the task that computed them.

    All accumulators in the tasks of `session` are counted, since those tasks started: the gradients that
    one replica computed for one step count once. `session` may be a monitored one.
    """
    if hasattr(session, "_tf_sess"):
        session = session._tf_sess()
    if not hasattr(session, "_engine"):
        raise TypeError(f"session must be an open tf.Session or a monitored session, but got {session!r}")
    return dict(sorted(session._engine.dropped().items()))


class DroppedReport:
    """Logs how many gradients were dropped, whenever that has changed."""

    def __init__(self) -> None:
        self._logged: dict[str, int] = {}
        self._next = time.monotonic() + _REPORT_SECONDS

    def when_due(self, sess: BaseSession) -> None:
        """Logs, but at most once per interval."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _REPORT_SECONDS
            self.now(sess)

    def now(self, sess: BaseSession) -> None:
        """Logs new numbers. A task that does not answer does not disturb the training."""
        try:
            dropped = dropped_gradients(sess)
        except errors.OpError:
            return
        if dropped != self._logged:
            self._logged = dropped
            each = ", ".join(f"{n} of {task}" for task, n in dropped.items())
            logging.info("Stale gradients dropped so far: %s", each)
