"""The networks of Simonyan and Zisserman (2014): `vgg_a`, `vgg_16`, `vgg_19`."""

from __future__ import annotations

from typing import Any

from tensorfleet.contrib.arg_scope import Scope, arg_scope
from tensorfleet.contrib.nets.plain import classifier, layer
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.nn_activations import relu
from tensorfleet.variables.initializers import Zeros


def vgg_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments for the layers of these networks: enter it with `slim.arg_scope`."""
    with arg_scope(
        [layer("conv2d"), layer("fully_connected")],
        activation_fn=relu,
        weights_regularizer=layer("l2_regularizer")(weight_decay),
        biases_initializer=Zeros(),
    ):
        with arg_scope([layer("conv2d")], padding="SAME") as scope:
            return scope


def _network(
    counts: tuple[int, ...], inputs: Any, classes: int, training: Any, keep: float, squeeze: bool, scope: str
) -> tuple[Tensor, dict[str, Tensor]]:
    body: list[tuple] = []
    for i, (count, depth) in enumerate(zip(counts, (64, 128, 256, 512, 512), strict=True), 1):
        body.append((f"conv{i}", "repeat", count, depth))
        body.append((f"pool{i}", "max_pool2d", [2, 2], {}))
    return classifier(inputs, scope, body, (4096, 4096, 7), classes, training, keep, squeeze, {}, {})


def vgg_a(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_a",
) -> tuple[Tensor, dict[str, Tensor]]:
    """Eleven layers; the logits and the end points."""
    counts = (1, 1, 2, 2, 2)
    return _network(counts, inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope)


def vgg_16(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_16",
) -> tuple[Tensor, dict[str, Tensor]]:
    """Sixteen layers; the logits and the end points."""
    counts = (2, 2, 3, 3, 3)
    return _network(counts, inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope)


def vgg_19(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_19",
) -> tuple[Tensor, dict[str, Tensor]]:
    """Nineteen layers; the logits and the end points."""
    counts = (2, 2, 4, 4, 4)
    return _network(counts, inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope)


vgg_d, vgg_e = vgg_16, vgg_19
