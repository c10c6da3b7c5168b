"""Topic `clock`: the time of this task, so that others can compute the offset of their clocks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorfleet.cluster.inspection.topics import NoOptions, Options, Report, chosen

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server


def report(server: Server | None, options: Options) -> Report:
    """The time in nanoseconds: by the wall clock, which traces use, and by the steady clock."""
    chosen(NoOptions, options)
    return Report({"time_ns": time.time_ns(), "steady_ns": time.monotonic_ns()})
