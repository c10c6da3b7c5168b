"""Topics `numerics` and `numerics_take`: the first operation of this task that makes a NaN or an infinity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorfleet.base import errors
from tensorfleet.cluster.inspection import leases
from tensorfleet.cluster.inspection.topics import Options, Report, chosen
from tensorfleet.runtime.numeric_checks import NumericWatch

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

_MAX_POLL_SECONDS = 5.0  # below the lease


@dataclass
class _Start:
    steps: int = 100


@dataclass
class _Take:
    id: str = ""
    seconds: float = 1.0


def start(server: Server | None, options: Options) -> Report:
    """Begins to check the coming steps; tells the id to ask by."""
    wanted: _Start = chosen(_Start, options)
    if wanted.steps < 1:
        raise errors.InvalidArgumentError(None, None, "Check a whole number of steps, at least 1.")
    return Report({"id": leases.begin(NumericWatch(wanted.steps))})


def take(server: Server | None, options: Options) -> Report:
    """What the checks have found, after at most some seconds."""
    wanted: _Take = chosen(_Take, options)
    watch = leases.renewed(str(wanted.id))
    if not isinstance(watch, NumericWatch):
        raise errors.InvalidArgumentError(None, None, "This is the id of another kind of watch.")
    return Report(watch.take(min(float(wanted.seconds), _MAX_POLL_SECONDS)))
