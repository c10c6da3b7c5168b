"""The third Inception network (Szegedy and others, 2015)."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.variables.initializers import TruncatedNormal
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet_legacy.contrib.framework.arg_scope import Scope, arg_scope
from tensorfleet_legacy.contrib.layers.layers_normalization import softmax
from tensorfleet_legacy.contrib.slim.nets.inception_branches import Depth, built, depth_by, fitting, logits_of
from tensorfleet_legacy.contrib.slim.nets.inception_v1 import scope_with
from tensorfleet_legacy.contrib.slim.nets.plain_network import layer

_LAYERS = ("conv2d", "max_pool2d", "avg_pool2d")


def _fifth(name: str, pooled: int, odd: bool = False) -> tuple[str, Any]:
    five = "Conv2d_0b_1x1 48 > Conv_1_0c_5x5 64" if odd else "Conv2d_0a_1x1 48 > Conv2d_0b_5x5 64"
    return name, [
        "Conv2d_0a_1x1 64",
        five,
        "Conv2d_0a_1x1 64 > Conv2d_0b_3x3 96 > Conv2d_0c_3x3 96",
        f"AvgPool_0a_3x3 > Conv2d_0b_1x1 {pooled}",
    ]


def _sixth(name: str, n: int) -> tuple[str, Any]:
    return name, [
        "Conv2d_0a_1x1 192",
        f"Conv2d_0a_1x1 {n} > Conv2d_0b_1x7 {n} > Conv2d_0c_7x1 192",
        f"Conv2d_0a_1x1 {n} > Conv2d_0b_7x1 {n} > Conv2d_0c_1x7 {n} > Conv2d_0d_7x1 {n} > Conv2d_0e_1x7 192",
        "AvgPool_0a_3x3 > Conv2d_0b_1x1 192",
    ]


def _seventh(name: str, second: str) -> tuple[str, Any]:
    return name, [
        "Conv2d_0a_1x1 320",
        f"Conv2d_0a_1x1 384 > Conv2d_0b_1x3 384 | {second} 384",
        "Conv2d_0a_1x1 448 > Conv2d_0b_3x3 384 > Conv2d_0c_1x3 384 | Conv2d_0d_3x1 384",
        "AvgPool_0a_3x3 > Conv2d_0b_1x1 192",
    ]


_ROWS: list[tuple[str, Any]] = [
    ("Conv2d_1a_3x3", "32 /2"),
    ("Conv2d_2a_3x3", "32 /1"),
    ("Conv2d_2b_3x3", "64"),
    ("MaxPool_3a_3x3", "/2"),
    ("Conv2d_3b_1x1", "80 /1"),
    ("Conv2d_4a_3x3", "192 /1"),
    ("MaxPool_5a_3x3", "/2"),
    _fifth("Mixed_5b", 32),
    _fifth("Mixed_5c", 64, odd=True),
    _fifth("Mixed_5d", 64),
    (
        "Mixed_6a",
        [
            "Conv2d_1a_1x1 384 *3x3 /2",
            "Conv2d_0a_1x1 64 > Conv2d_0b_3x3 96 > Conv2d_1a_1x1 96 *3x3 /2",
            "MaxPool_1a_3x3 /2",
        ],
    ),
    _sixth("Mixed_6b", 128),
    _sixth("Mixed_6c", 160),
    _sixth("Mixed_6d", 160),
    _sixth("Mixed_6e", 192),
    (
        "Mixed_7a",
        [
            "Conv2d_0a_1x1 192 > Conv2d_1a_3x3 320 /2",
            "Conv2d_0a_1x1 192 > Conv2d_0b_1x7 192 > Conv2d_0c_7x1 192 > Conv2d_1a_3x3 192 /2",
            "MaxPool_1a_3x3 /2",
        ],
    ),
    _seventh("Mixed_7b", "Conv2d_0b_3x1"),
    _seventh("Mixed_7c", "Conv2d_0c_3x1"),
]


def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The network up to one of its end points, and the end points."""
    depth = depth_by(depth_multiplier, min_depth)
    with variable_scope(scope, "InceptionV3", [inputs]):
        with arg_scope([layer(n) for n in _LAYERS], stride=1, padding="SAME"):
            return built(inputs, _ROWS, final_endpoint, depth)


def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: str = "InceptionV3",
    create_aux_logits: bool = True,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The logits and the end points; "AuxLogits" among them, for a second loss, unless they are not wanted."""
    depth = depth_by(depth_multiplier, min_depth)
    with variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as sc:
        with arg_scope([layer("batch_norm"), layer("dropout")], is_training=is_training):
            net, ends = inception_v3_base(
                inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=sc
            )
            if create_aux_logits:
                with arg_scope([layer(n) for n in _LAYERS], stride=1, padding="SAME"):
                    ends["AuxLogits"] = _aux(ends["Mixed_6e"], num_classes, depth, spatial_squeeze)
            with variable_scope("Logits"):
                size = fitting(net, [8, 8])
                net = layer("avg_pool2d")(net, size, padding="VALID", scope=f"AvgPool_1a_{size[0]}x{size[1]}")
                net = layer("dropout")(net, dropout_keep_prob, scope="Dropout_1b")
                ends["PreLogits"] = net
                logits = logits_of(net, num_classes, "Conv2d_1c_1x1", spatial_squeeze)
            ends["Logits"] = logits
            ends["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, ends


def _aux(net: Tensor, classes: int, depth: Depth, squeeze: bool) -> Tensor:
    """Logits from the middle of the network."""
    with variable_scope("AuxLogits"):
        net = layer("avg_pool2d")(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
        net = layer("conv2d")(net, depth(128), [1, 1], scope="Conv2d_1b_1x1")
        size = fitting(net, [5, 5])
        net = layer("conv2d")(
            net,
            depth(768),
            size,
            weights_initializer=TruncatedNormal(0.0, 0.01),
            padding="VALID",
            scope=f"Conv2d_2a_{size[0]}x{size[1]}",
        )
        small = TruncatedNormal(0.0, 0.001)
        return logits_of(net, classes, "Conv2d_2b_1x1", squeeze, weights_initializer=small)


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    use_fused_batchnorm: bool = True,
) -> Scope:
    """The arguments for the layers of this network: enter it with `slim.arg_scope`."""
    params = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "updates_collections": updates_collections,
        "fused": use_fused_batchnorm,
    }
    return scope_with(weight_decay, params, batch_norm_var_collection)
