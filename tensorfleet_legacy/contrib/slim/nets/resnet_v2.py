"""Residual networks, with the activation before each convolution (He and others, 2016)."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.nn.activations import relu
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope
from tensorfleet_legacy.contrib.layers.layers import collected
from tensorfleet_legacy.contrib.slim.nets import resnet_utils as utils
from tensorfleet_legacy.contrib.slim.nets.plain_network import layer

resnet_arg_scope = utils.resnet_arg_scope


@add_arg_scope
def bottleneck(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """Narrow, convolve, widen; normalized and activated before each convolution."""
    with variable_scope(scope, "bottleneck_v2", [inputs]) as sc:
        conv = layer("conv2d")
        plain = {"normalizer_fn": None, "activation_fn": None}
        active = layer("batch_norm")(inputs, activation_fn=relu, scope="preact")
        if depth == inputs.shape[-1].value:
            shortcut = utils.subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv(active, depth, [1, 1], stride=stride, scope="shortcut", **plain)
        residual = conv(active, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = utils.conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = conv(residual, depth, [1, 1], stride=1, scope="conv3", **plain)
        output = shortcut + residual
        return collected(outputs_collections, sc.name, output)


def _postnorm(net: Tensor) -> Tensor:
    return layer("batch_norm")(net, activation_fn=relu, scope="postnorm")


resnet_v2 = utils.residual_network(
    "resnet_v2", bottleneck, {"activation_fn": None, "normalizer_fn": None}, _postnorm
)


def resnet_v2_block(scope: str, base_depth: int, num_units: int, stride: int) -> utils.Block:
    """So many units, the last with the stride."""
    return utils.block(bottleneck, scope, base_depth, num_units, stride)


resnet_v2_50 = utils.sized(resnet_v2, bottleneck, (3, 4, 6, 3), "resnet_v2_50")
resnet_v2_101 = utils.sized(resnet_v2, bottleneck, (3, 4, 23, 3), "resnet_v2_101")
resnet_v2_152 = utils.sized(resnet_v2, bottleneck, (3, 8, 36, 3), "resnet_v2_152")
resnet_v2_200 = utils.sized(resnet_v2, bottleneck, (3, 24, 36, 3), "resnet_v2_200")
