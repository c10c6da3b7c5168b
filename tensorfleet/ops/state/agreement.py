"""A text that all programs which use something by name must have in common: the op that asks for it."""

from __future__ import annotations

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR
from tensorfleet.state.agreement import Agreement


@op(
    "FleetAgree",
    "text: string[0] -> agreed: string",
    "shared_name: string; container: string = ''",
    shape=lambda op: SCALAR,
    host=True,
    stateful=True,
)
def _agree(ctx: HostContext, text: Array, *, shared_name: bytes, container: bytes) -> Array:
    agreement = ctx.resources.get(container.decode(), "agreement", shared_name.decode(), Agreement)
    return np.array(agreement.settle(np.asarray(text, object).item()), object)


not_differentiable("FleetAgree")
