"""Host operations of one type that are called together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.passes.plan import Part, Plan
from tensorfleet.runtime.scheduling.host_ops import HostItem

if TYPE_CHECKING:
    from tensorfleet.runtime.resources import ResourceManager
    from tensorfleet.runtime.scheduling.program import Slots
    from tensorfleet.runtime.scheduling.step import ExecutionContext
    from tensorfleet.runtime.values import Values


class JoinedItem:
    """Several operations with a kernel for all of them; one after the other where that has no shorter way."""

    blocks = False

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        self.op = part.ops[-1]
        self.name = self.op.name
        self.device = part.device
        self._ops = part.ops
        self._each = [HostItem(replace(part, ops=[op]), plan, slots, resources) for op in part.ops]
        assert self.op.spec.joined is not None
        self._kernel = self.op.spec.joined

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the operations."""
        given = [item.arguments(values) for item in self._each]
        try:
            with np.errstate(all="ignore"):
                results = self._kernel(self._ops, given)
        except Exception:
            results = None  # the one that it is about says so itself, with its name
        for n, item in enumerate(self._each):
            if results is None:
                item.run(ctx, values)
            else:
                item.finish(values, results[n])
