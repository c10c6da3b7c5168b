"""`log_device_placement`: a line per operation, the first time a session plans it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tensorfleet.graph.operation import Operation
from tensorfleet.passes.plan import Plan, everything

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto


class PlacementLog:
    """Tells on which device each operation runs, if the configuration asks for it."""

    def __init__(self, config: ConfigProto | None) -> None:
        self._wanted = config is not None and bool(config.log_device_placement)
        self._told: set[Operation] = set()

    def tell(self, plan: Plan, placed: dict[Operation, str]) -> None:
        """Prints the operations of a plan that were not printed before; `placed` knows the folded ones."""
        if not self._wanted:
            return
        devices = {**everything(plan), **{op: placed[op] for op in plan.folded if op in placed}}
        for op in sorted(devices, key=lambda op: op._id):
            if op not in self._told:
                self._told.add(op)
                print(f"{op.name}: ({op.type}): {devices[op]}", file=sys.stderr)
