"""AlexNet as in "One weird trick for parallelizing convolutional neural networks" (Krizhevsky, 2014)."""

from __future__ import annotations

from tensorfleet.api.variables.initializers import Constant
from tensorfleet_legacy.contrib.framework.arg_scope import Scope
from tensorfleet_legacy.contrib.slim.nets.plain_network import network, plain_scope, small_head


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments for the layers of this network: enter it with `slim.arg_scope`."""
    return plain_scope(weight_decay, Constant(0.1), valid_pools=True)


def _body() -> list[tuple]:
    return [
        ("conv1", "conv2d", 64, [11, 11], 4, {"padding": "VALID"}),
        ("pool1", "max_pool2d", [3, 3], 2, {}),
        ("conv2", "conv2d", 192, [5, 5], {}),
        ("pool2", "max_pool2d", [3, 3], 2, {}),
        ("conv3", "conv2d", 384, [3, 3], {}),
        ("conv4", "conv2d", 384, [3, 3], {}),
        ("conv5", "conv2d", 256, [3, 3], {}),
        ("pool5", "max_pool2d", [3, 3], 2, {}),
    ]


alexnet_v2 = network("alexnet_v2", _body, (4096, 4096, 5), small_head, "The logits and the end points.")
