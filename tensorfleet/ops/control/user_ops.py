"""`tf.user_ops`: the place of operations that users built into TensorFlow, with the one that shows how."""

from __future__ import annotations

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.types import Array
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.samples import case


@op("Fact", "-> fact: string", shape=lambda op: SCALAR, host=True, examples=[case()])
def _fact(ctx: HostContext) -> Array:
    return np.array(b"0! == 1", object)


not_differentiable("Fact")


@export("user_ops.my_fact")
def my_fact() -> Tensor:
    """A fact about numbers."""
    return apply("Fact")
