"""`tf.keras.applications`: Inception with ways past its blocks (Szegedy et al. 2016)."""

from __future__ import annotations

from typing import Any

from tensorfleet_legacy.keras.applications import imagenet_utils as common
from tensorfleet_legacy.keras.layers.convolutional import (
    AveragePooling2D,
    BatchNormalization,
    Conv2D,
    MaxPooling2D,
)
from tensorfleet_legacy.keras.layers.core import Activation
from tensorfleet_legacy.keras.layers.core_lambda import Lambda
from tensorfleet_legacy.keras.layers.merge import Concatenate

# The branches of each kind of block: convolutions of so many filters and this size.
_BRANCHES: dict[str, list[list[tuple]]] = {
    "block35": [[(32, 1)], [(32, 1), (32, 3)], [(32, 1), (48, 3), (64, 3)]],
    "block17": [[(192, 1)], [(128, 1), (160, (1, 7)), (192, (7, 1))]],
    "block8": [[(192, 1)], [(192, 1), (224, (1, 3)), (256, (3, 1))]],
}


def _conv(
    x: Any, filters: int, size: Any, stride: int = 1, padding: str = "same", name: str | None = None
) -> Any:
    def named(ending: str) -> str | None:
        return None if name is None else name + ending

    x = Conv2D(filters, size, strides=stride, padding=padding, use_bias=False, name=name)(x)
    x = BatchNormalization(axis=common.channel_axis(), scale=False, name=named("_bn"))(x)
    return Activation("relu", name=named("_ac"))(x)


def _convs(x: Any, steps: Any) -> Any:
    for step in steps:
        x = _conv(x, *step)
    return x


def _joined(parts: list, name: str) -> Any:
    return Concatenate(axis=common.channel_axis(), name=name)(parts)


def _block(x: Any, kind: str, number: int, scale: float, active: bool = True) -> Any:
    """Branches joined and mixed, a share of which is added to the input."""
    name = f"{kind}_{number}"
    mixed = _joined([_convs(x, steps) for steps in _BRANCHES[kind]], f"{name}_mixed")
    channels = x.shape.as_list()[common.channel_axis()]
    up = Conv2D(channels, 1, padding="same", name=f"{name}_conv")(mixed)
    x = Lambda(lambda two, scale: two[0] + two[1] * scale, arguments={"scale": scale}, name=name)([x, up])
    return Activation("relu", name=f"{name}_ac")(x) if active else x


def _layers(inputs: Any) -> Any:
    x = _convs(inputs, [(32, 3, 2, "valid"), (32, 3, 1, "valid"), (64, 3)])
    x = MaxPooling2D(3, strides=2)(x)
    x = _convs(x, [(80, 1, 1, "valid"), (192, 3, 1, "valid")])
    x = MaxPooling2D(3, strides=2)(x)
    parts = [_convs(x, [(96, 1)]), _convs(x, [(48, 1), (64, 5)]), _convs(x, [(64, 1), (96, 3), (96, 3)])]
    pooled = AveragePooling2D(3, strides=1, padding="same")(x)
    x = _joined([*parts, _conv(pooled, 64, 1)], "mixed_5b")
    for i in range(1, 11):
        x = _block(x, "block35", i, 0.17)
    parts = [_conv(x, 384, 3, 2, "valid"), _convs(x, [(256, 1), (256, 3), (384, 3, 2, "valid")])]
    x = _joined([*parts, MaxPooling2D(3, strides=2, padding="valid")(x)], "mixed_6a")
    for i in range(1, 21):
        x = _block(x, "block17", i, 0.1)
    parts = [_convs(x, [(256, 1), (384, 3, 2, "valid")]), _convs(x, [(256, 1), (288, 3, 2, "valid")])]
    parts.append(_convs(x, [(256, 1), (288, 3), (320, 3, 2, "valid")]))
    x = _joined([*parts, MaxPooling2D(3, strides=2, padding="valid")(x)], "mixed_7a")
    for i in range(1, 10):
        x = _block(x, "block8", i, 0.2)
    x = _block(x, "block8", 10, 1.0, active=False)
    return _conv(x, 1536, 1, name="conv_7b")


InceptionResNetV2 = common.application(
    "InceptionResNetV2",
    "The Inception network with residual connections, version 2 (Szegedy et al. 2016).",
    "inception_resnet_v2",
    _layers,
    size=299,
    least=75,
)
