"""OverFeat (Sermanet and others, 2014), the accurate model."""

from __future__ import annotations

from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.ops.nn.activations import relu
from tensorfleet_legacy.contrib.framework.arg_scope import Scope, arg_scope
from tensorfleet_legacy.contrib.slim.nets.plain_network import layer, network, small_head


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments for the layers of this network: enter it with `slim.arg_scope`."""
    with arg_scope(
        [layer("conv2d"), layer("fully_connected")],
        activation_fn=relu,
        weights_regularizer=layer("l2_regularizer")(weight_decay),
        biases_initializer=Zeros(),
    ):
        with arg_scope([layer("conv2d")], padding="SAME"):
            with arg_scope([layer("max_pool2d")], padding="VALID") as scope:
                return scope


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
