"""OverFeat (Sermanet and others, 2014), the accurate model."""

from __future__ import annotations

from tensorfleet.api.variables.initializers import Zeros
from tensorfleet_legacy.contrib.framework.arg_scope import Scope
from tensorfleet_legacy.contrib.slim.nets.plain_network import network, plain_scope, small_head


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments for the layers of this network: enter it with `slim.arg_scope`."""
    return plain_scope(weight_decay, Zeros(), valid_pools=True)


def _body() -> list[tuple]:
    return [
        ("conv1", "conv2d", 64, [11, 11], 4, {"padding": "VALID"}),
        ("pool1", "max_pool2d", [2, 2], {}),
        ("conv2", "conv2d", 256, [5, 5], {"padding": "VALID"}),
        ("pool2", "max_pool2d", [2, 2], {}),
        ("conv3", "conv2d", 512, [3, 3], {}),
        ("conv4", "conv2d", 1024, [3, 3], {}),
        ("conv5", "conv2d", 1024, [3, 3], {}),
        ("pool5", "max_pool2d", [2, 2], {}),
    ]


overfeat = network("overfeat", _body, (3072, 4096, 6), small_head, "The logits and the end points.")
