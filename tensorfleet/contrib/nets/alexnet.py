"""AlexNet as in "One weird trick for parallelizing convolutional neural networks" (Krizhevsky, 2014)."""

from __future__ import annotations

from typing import Any

from tensorfleet.contrib.arg_scope import Scope, arg_scope
from tensorfleet.contrib.nets.plain import classifier, layer
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.nn_activations import relu
from tensorfleet.variables.initializers import Constant, TruncatedNormal, Zeros


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments for the layers of this network: enter it with `slim.arg_scope`."""
    with arg_scope(
        [layer("conv2d"), layer("fully_connected")],
        activation_fn=relu,
        biases_initializer=Constant(0.1),
        weights_regularizer=layer("l2_regularizer")(weight_decay),
    ):
        with arg_scope([layer("conv2d")], padding="SAME"):
            with arg_scope([layer("max_pool2d")], padding="VALID") as scope:
                return scope


def alexnet_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "alexnet_v2",
) -> tuple[Tensor, dict[str, Tensor]]:
    """The logits and the end points."""
    body: list[tuple] = [
        ("conv1", "conv2d", 64, [11, 11], 4, {"padding": "VALID"}),
        ("pool1", "max_pool2d", [3, 3], 2, {}),
        ("conv2", "conv2d", 192, [5, 5], {}),
        ("pool2", "max_pool2d", [3, 3], 2, {}),
        ("conv3", "conv2d", 384, [3, 3], {}),
        ("conv4", "conv2d", 384, [3, 3], {}),
        ("conv5", "conv2d", 256, [3, 3], {}),
        ("pool5", "max_pool2d", [3, 3], 2, {}),
    ]
    small = {"weights_initializer": TruncatedNormal(0.0, 0.005), "biases_initializer": Constant(0.1)}
    last = {"biases_initializer": Zeros()}
    return classifier(
        inputs,
        scope,
        body,
        (4096, 4096, 5),
        num_classes,
        is_training,
        dropout_keep_prob,
        spatial_squeeze,
        small,
        last,
    )
