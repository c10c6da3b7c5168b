"""`tf.keras.applications`: networks with ways past their layers: ResNet in both versions, DenseNet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorfleet_legacy.keras.applications import imagenet_utils as common
from tensorfleet_legacy.keras.layers.convolutional import (
    AveragePooling2D,
    BatchNormalization,
    Conv2D,
    MaxPooling2D,
)
from tensorfleet_legacy.keras.layers.convolutional_padding import ZeroPadding2D
from tensorfleet_legacy.keras.layers.core import Activation
from tensorfleet_legacy.keras.layers.merge import Add, Concatenate


def _norm(x: Any, name: str) -> Any:
    return BatchNormalization(axis=common.channel_axis(), epsilon=1.001e-5, name=name)(x)


def _relu(x: Any, name: str) -> Any:
    return Activation("relu", name=name)(x)


def _block(x: Any, filters: int, stride: int, first: bool, name: str) -> Any:
    """Three convolutions; beside them the input, through a convolution at the beginning of a stack."""
    past = x
    if first:
        past = _norm(Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(x), f"{name}_0_bn")
    x = Conv2D(filters, 1, strides=stride, name=f"{name}_1_conv")(x)
    x = _relu(_norm(x, f"{name}_1_bn"), f"{name}_1_relu")
    x = Conv2D(filters, 3, padding="same", name=f"{name}_2_conv")(x)
    x = _relu(_norm(x, f"{name}_2_bn"), f"{name}_2_relu")
    x = _norm(Conv2D(4 * filters, 1, name=f"{name}_3_conv")(x), f"{name}_3_bn")
    return _relu(Add(name=f"{name}_add")([past, x]), f"{name}_out")


def _stack(x: Any, filters: int, count: int, stride: int, name: str) -> Any:
    for i in range(1, count + 1):
        x = _block(x, filters, stride if i == 1 else 1, i == 1, f"{name}_block{i}")
    return x


def _block_v2(x: Any, filters: int, stride: int, first: bool, name: str) -> Any:
    """The same with normalization and activation before each convolution."""
    before = _relu(_norm(x, f"{name}_preact_bn"), f"{name}_preact_relu")
    if first:
        past = Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(before)
    else:
        past = MaxPooling2D(1, strides=stride)(x) if stride > 1 else x
    x = Conv2D(filters, 1, strides=1, use_bias=False, name=f"{name}_1_conv")(before)
    x = _relu(_norm(x, f"{name}_1_bn"), f"{name}_1_relu")
    x = ZeroPadding2D(((1, 1), (1, 1)), name=f"{name}_2_pad")(x)
    x = Conv2D(filters, 3, strides=stride, use_bias=False, name=f"{name}_2_conv")(x)
    x = _relu(_norm(x, f"{name}_2_bn"), f"{name}_2_relu")
    x = Conv2D(4 * filters, 1, name=f"{name}_3_conv")(x)
    return Add(name=f"{name}_out")([past, x])


def _stack_v2(x: Any, filters: int, count: int, stride: int, name: str) -> Any:
    for i in range(1, count + 1):
        x = _block_v2(x, filters, stride if i == count else 1, i == 1, f"{name}_block{i}")
    return x


def _resnet(counts: tuple[int, ...], second: bool, inputs: Any) -> Any:
    """The layers of a residual network of the first or second version, in stacks of so many blocks."""
    x = ZeroPadding2D(((3, 3), (3, 3)), name="conv1_pad")(inputs)
    x = Conv2D(64, 7, strides=2, name="conv1_conv")(x)
    if not second:
        x = _relu(_norm(x, "conv1_bn"), "conv1_relu")
    x = ZeroPadding2D(((1, 1), (1, 1)), name="pool1_pad")(x)
    x = MaxPooling2D(3, strides=2, name="pool1_pool")(x)
    strides = (2, 2, 2, 1) if second else (1, 2, 2, 2)
    for i, (count, stride) in enumerate(zip(counts, strides, strict=True)):
        x = (_stack_v2 if second else _stack)(x, 64 * 2**i, count, stride, f"conv{i + 2}")
    return _relu(_norm(x, "post_bn"), "post_relu") if second else x


_COUNTS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def _residual(depth: int, second: bool, does: str) -> Callable[..., Any]:
    name = f"ResNet{depth}{'V2' if second else ''}"
    layers = partial(_resnet, _COUNTS[depth], second)
    return common.application(name, does, name.lower(), layers, top=partial(common.classifier, name="probs"))


ResNet50 = _residual(50, False, "The residual network of fifty layers (He et al. 2015).")
ResNet101 = _residual(101, False, "The residual network of 101 layers.")
ResNet152 = _residual(152, False, "The residual network of 152 layers.")
ResNet50V2 = _residual(50, True, "The second residual network of fifty layers (He et al. 2016).")
ResNet101V2 = _residual(101, True, "The second residual network of 101 layers.")
ResNet152V2 = _residual(152, True, "The second residual network of 152 layers.")


def _growing(x: Any, name: str) -> Any:
    """Thirty-two more channels beside those there are."""
    more = _relu(_norm(x, f"{name}_0_bn"), f"{name}_0_relu")
    more = Conv2D(128, 1, use_bias=False, name=f"{name}_1_conv")(more)
    more = _relu(_norm(more, f"{name}_1_bn"), f"{name}_1_relu")
    more = Conv2D(32, 3, padding="same", use_bias=False, name=f"{name}_2_conv")(more)
    return Concatenate(axis=common.channel_axis(), name=f"{name}_concat")([x, more])


def _halving(x: Any, name: str) -> Any:
    x = _relu(_norm(x, f"{name}_bn"), f"{name}_relu")
    channels = x.shape.as_list()[common.channel_axis()]
    x = Conv2D(channels // 2, 1, use_bias=False, name=f"{name}_conv")(x)
    return AveragePooling2D(2, strides=2, name=f"{name}_pool")(x)


def _densenet(counts: tuple[int, ...], inputs: Any) -> Any:
    """The layers of a network of dense blocks of so many layers."""
    x = ZeroPadding2D(((3, 3), (3, 3)))(inputs)
    x = Conv2D(64, 7, strides=2, use_bias=False, name="conv1/conv")(x)
    x = _relu(_norm(x, "conv1/bn"), "conv1/relu")
    x = MaxPooling2D(3, strides=2, name="pool1")(ZeroPadding2D(((1, 1), (1, 1)))(x))
    for i, count in enumerate(counts, 2):
        for j in range(1, count + 1):
            x = _growing(x, f"conv{i}_block{j}")
        if i < 5:
            x = _halving(x, f"pool{i}")
    return _relu(_norm(x, "bn"), "relu")


def _dense(name: str, counts: tuple[int, ...], does: str) -> Callable[..., Any]:
    top = partial(common.classifier, name="fc1000")
    return common.application(name, does, name.lower(), partial(_densenet, counts), top=top)


DenseNet121 = _dense(
    "DenseNet121",
    (6, 12, 24, 16),
    "The network of 121 layers, each of which sees all before it in its block (Huang et al. 2016).",
)
DenseNet169 = _dense("DenseNet169", (6, 12, 32, 32), "DenseNet with 169 layers.")
DenseNet201 = _dense("DenseNet201", (6, 12, 48, 32), "DenseNet with 201 layers.")
