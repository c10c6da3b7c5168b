"""The first Inception network, GoogLeNet (Szegedy and others, 2014)."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.variables.initializers import TruncatedNormal
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet.ops.nn.activations import relu
from tensorfleet_legacy.contrib.framework.arg_scope import Scope, arg_scope
from tensorfleet_legacy.contrib.layers.layers_normalization import softmax
from tensorfleet_legacy.contrib.slim.nets.inception_branches import built, logits_of
from tensorfleet_legacy.contrib.slim.nets.plain_network import layer


def _mixed(name: str, *sizes: int, second: str = "Conv2d_0b_3x3") -> tuple[str, Any]:
    one, before, three, before_last, last, pooled = sizes
    return name, [
        f"Conv2d_0a_1x1 {one}",
        f"Conv2d_0a_1x1 {before} > Conv2d_0b_3x3 {three}",
        f"Conv2d_0a_1x1 {before_last} > {second} {last}",
        f"MaxPool_0a_3x3 > Conv2d_0b_1x1 {pooled}",
    ]


def _rows() -> list[tuple[str, Any]]:
    return [
        ("Conv2d_1a_7x7", "64 +2"),
        ("MaxPool_2a_3x3", "+2"),
        ("Conv2d_2b_1x1", "64"),
        ("Conv2d_2c_3x3", "192"),
        ("MaxPool_3a_3x3", "+2"),
        _mixed("Mixed_3b", 64, 96, 128, 16, 32, 32),
        _mixed("Mixed_3c", 128, 128, 192, 32, 96, 64),
        ("MaxPool_4a_3x3", "+2"),
        _mixed("Mixed_4b", 192, 96, 208, 16, 48, 64),
        _mixed("Mixed_4c", 160, 112, 224, 24, 64, 64),
        _mixed("Mixed_4d", 128, 128, 256, 24, 64, 64),
        _mixed("Mixed_4e", 112, 144, 288, 32, 64, 64),
        _mixed("Mixed_4f", 256, 160, 320, 32, 128, 128),
        ("MaxPool_5a_2x2", "+2"),
        _mixed("Mixed_5b", 256, 160, 320, 32, 128, 128, second="Conv2d_0a_3x3"),
        _mixed("Mixed_5c", 384, 192, 384, 48, 128, 128),
    ]


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Tensor, dict[str, Tensor]]:
    """The network up to one of its end points, and the end points."""
    with variable_scope(scope, "InceptionV1", [inputs]):
        weighted = [layer("conv2d"), layer("fully_connected")]
        with arg_scope(weighted, weights_initializer=TruncatedNormal(0.0, 0.01)):
            with arg_scope([layer("conv2d"), layer("max_pool2d")], stride=1, padding="SAME"):
                return built(inputs, _rows(), final_endpoint, lambda d: d)


def inception_v1(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: str = "InceptionV1",
) -> tuple[Tensor, dict[str, Tensor]]:
    """The logits and the end points."""
    with variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as sc:
        with arg_scope([layer("batch_norm"), layer("dropout")], is_training=is_training):
            net, ends = inception_v1_base(inputs, scope=sc)
            with variable_scope("Logits"):
                net = layer("avg_pool2d")(net, [7, 7], stride=1, scope="MaxPool_0a_7x7")
                net = layer("dropout")(net, dropout_keep_prob, scope="Dropout_0b")
                logits = logits_of(net, num_classes, "Conv2d_0c_1x1", spatial_squeeze)
                ends["Logits"] = logits
                ends["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, ends


def inception_v1_arg_scope(
    weight_decay: float = 0.00004, use_batch_norm: bool = True, batch_norm_var_collection: str = "moving_vars"
) -> Scope:
    """The arguments for the layers of this network: enter it with `slim.arg_scope`."""
    usual = {"decay": 0.9997, "epsilon": 0.001, "updates_collections": GraphKeys.UPDATE_OPS}
    return scope_with(weight_decay, usual if use_batch_norm else None, batch_norm_var_collection)


def scope_with(weight_decay: float, batch_norm: dict[str, Any] | None, collection: str) -> Scope:
    """The arguments for the layers of an Inception network, with these of `batch_norm`, or without it."""
    options: dict[str, Any] = {"normalizer_fn": None, "normalizer_params": {}}
    if batch_norm is not None:
        kept = {"beta": None, "gamma": None, "moving_mean": [collection], "moving_variance": [collection]}
        options["normalizer_fn"] = layer("batch_norm")
        options["normalizer_params"] = {**batch_norm, "variables_collections": kept}
    regularizer = layer("l2_regularizer")(weight_decay)
    with arg_scope([layer("conv2d"), layer("fully_connected")], weights_regularizer=regularizer):
        with arg_scope(
            [layer("conv2d")],
            weights_initializer=layer("variance_scaling_initializer")(),
            activation_fn=relu,
            **options,
        ) as scope:
            return scope
