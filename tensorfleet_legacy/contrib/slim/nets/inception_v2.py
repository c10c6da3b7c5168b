"""The second Inception network, with batch normalization (Ioffe and Szegedy, 2015)."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.variables.initializers import TruncatedNormal
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.framework.arg_scope import arg_scope
from tensorfleet_legacy.contrib.layers.layers_normalization import softmax
from tensorfleet_legacy.contrib.slim.nets.inception_branches import Depth, built, depth_by, fitting, logits_of
from tensorfleet_legacy.contrib.slim.nets.inception_v1 import inception_v1_arg_scope
from tensorfleet_legacy.contrib.slim.nets.plain_network import layer


def _mixed(name: str, *sizes: int, pool: str = "AvgPool") -> tuple[str, Any]:
    one, before, three, before_last, last, pooled = sizes
    return name, [
        f"Conv2d_0a_1x1 {one}",
        f"Conv2d_0a_1x1 {before} ~0.09 > Conv2d_0b_3x3 {three}",
        f"Conv2d_0a_1x1 {before_last} ~0.09 > Conv2d_0b_3x3 {last} > Conv2d_0c_3x3 {last}",
        f"{pool}_0a_3x3 > Conv2d_0b_1x1 {pooled} ~0.1",
    ]


def _smaller(name: str, *sizes: int) -> tuple[str, Any]:
    before, three, before_last, last = sizes
    return name, [
        f"Conv2d_0a_1x1 {before} ~0.09 > Conv2d_1a_3x3 {three} +2",
        f"Conv2d_0a_1x1 {before_last} ~0.09 > Conv2d_0b_3x3 {last} > Conv2d_1a_3x3 {last} +2",
        "MaxPool_1a_3x3 +2",
    ]


def _rows() -> list[tuple[str, Any]]:
    return [
        ("MaxPool_2a_3x3", "+2"),
        ("Conv2d_2b_1x1", "64 ~0.1"),
        ("Conv2d_2c_3x3", "192"),
        ("MaxPool_3a_3x3", "+2"),
        _mixed("Mixed_3b", 64, 64, 64, 64, 96, 32),
        _mixed("Mixed_3c", 64, 64, 96, 64, 96, 64),
        _smaller("Mixed_4a", 128, 160, 64, 96),
        _mixed("Mixed_4b", 224, 64, 96, 96, 128, 128),
        _mixed("Mixed_4c", 192, 96, 128, 96, 128, 128),
        _mixed("Mixed_4d", 160, 128, 160, 128, 160, 96),
        _mixed("Mixed_4e", 96, 128, 192, 160, 192, 96),
        _smaller("Mixed_5a", 128, 192, 192, 256),
        _mixed("Mixed_5b", 352, 192, 320, 160, 224, 128),
        _mixed("Mixed_5c", 352, 192, 320, 192, 224, 128, pool="MaxPool"),
    ]


def _first(inputs: Any, depth: Depth) -> Tensor:
    """A convolution in two parts: of each color by itself, then of all."""
    return layer("separable_conv2d")(
        inputs,
        depth(64),
        [7, 7],
        depth_multiplier=min(depth(64) // 3, 8),
        stride=2,
        weights_initializer=TruncatedNormal(0.0, 1.0),
        scope="Conv2d_1a_7x7",
    )


def inception_v2_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The network up to one of its end points, and the end points."""
    depth = depth_by(depth_multiplier, min_depth)
    with variable_scope(scope, "InceptionV2", [inputs]):
        kinds = [layer(kind) for kind in ("conv2d", "max_pool2d", "avg_pool2d", "separable_conv2d")]
        with arg_scope(kinds, stride=1, padding="SAME"):
            net = _first(inputs, depth)
            if final_endpoint == "Conv2d_1a_7x7":
                return net, {final_endpoint: net}
            last, ends = built(net, _rows(), final_endpoint, depth)
            return last, {"Conv2d_1a_7x7": net, **ends}


def inception_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: str = "InceptionV2",
) -> tuple[Tensor, dict[str, Tensor]]:
    """The logits and the end points."""
    with variable_scope(scope, "InceptionV2", [inputs, num_classes], reuse=reuse) as sc:
        with arg_scope([layer("batch_norm"), layer("dropout")], is_training=is_training):
            net, ends = inception_v2_base(
                inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=sc
            )
            with variable_scope("Logits"):
                size = fitting(net, [7, 7])
                net = layer("avg_pool2d")(net, size, padding="VALID", scope="AvgPool_1a_{}x{}".format(*size))
                net = layer("dropout")(net, dropout_keep_prob, scope="Dropout_1b")
                logits = logits_of(net, num_classes, "Conv2d_1c_1x1", spatial_squeeze)
            ends["Logits"] = logits
            ends["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, ends


inception_v2.default_image_size = 224  # type: ignore[attr-defined]


def inception_v2_arg_scope(
    weight_decay: float = 0.00004, batch_norm_var_collection: str = "moving_vars"
) -> Any:
    """The arguments for the layers of this network: enter it with `slim.arg_scope`."""
    return inception_v1_arg_scope(weight_decay, True, batch_norm_var_collection)
