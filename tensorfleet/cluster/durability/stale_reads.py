"""Reads of variables at a server of a durable task, also at its standby, which has no sessions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorfleet.base import errors
from tensorfleet.cluster.durability.kept_state import KeptState
from tensorfleet.cluster.durability.role import State
from tensorfleet.cluster.messages import ReadVariables, VariablesRead

if TYPE_CHECKING:
    from tensorfleet.cluster.durability.replica import Replica
    from tensorfleet.runtime.values import Values


def read(replica: Replica, request: ReadVariables) -> tuple[VariablesRead, Values]:
    """The values of variables as a server has them. Raises UnavailableError at a standby that may be out of date."""
    if request.task != replica.task:
        raise errors.InvalidArgumentError(None, None, f"This is {replica.task}, not {request.task!r}.")
    if replica.role.state is State.STANDING_BY:
        with replica.taking:
            _need_fresh(replica, request)
            values = replica.kept.variables(request.names)
            return VariablesRead(replica.role.number, replica.lineage, stands_by=True), values
    journal = replica.journal
    with journal.lock:
        replica.need()
        values = KeptState(journal.as_contents(request.names)).variables(request.names)
        return VariablesRead(journal.number, replica.lineage), values


def _need_fresh(replica: Replica, request: ReadVariables) -> None:
    is_late = request.lineage not in (0, replica.lineage) or replica.role.number < request.at_least
    if is_late or not (replica.is_fed and replica.freshness.may_answer(time.monotonic())):
        raise errors.UnavailableError(None, None, f"This standby of {replica.task} may be out of date.")
