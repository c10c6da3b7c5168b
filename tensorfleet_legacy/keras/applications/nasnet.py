"""`tf.keras.applications`: NASNet, whose cells were found by a search (Zoph et al. 2017)."""

from __future__ import annotations

from typing import Any

from tensorfleet_legacy.keras.applications import imagenet_utils as common
from tensorfleet_legacy.keras.layers.convolutional import (
    AveragePooling2D,
    BatchNormalization,
    Conv2D,
    GlobalAveragePooling2D,
    MaxPooling2D,
    SeparableConv2D,
)
from tensorfleet_legacy.keras.layers.convolutional_padding import Cropping2D, ZeroPadding2D
from tensorfleet_legacy.keras.layers.core import Activation, Dense
from tensorfleet_legacy.keras.layers.merge import add, concatenate

_PLAIN: dict[str, Any] = {"use_bias": False, "kernel_initializer": "he_normal"}


def _norm(x: Any, name: str) -> Any:
    return BatchNormalization(axis=common.channel_axis(), momentum=0.9997, epsilon=1e-3, name=name)(x)


def _relu(x: Any, name: str | None = None) -> Any:
    return Activation("relu", name=name)(x)


def _separable(x: Any, filters: int, size: int, name: str, stride: int = 1) -> Any:
    """Twice: an activation, a separable convolution, a normalization."""
    x = _relu(x)
    padding = "same"
    if stride == 2:
        x, padding = (
            ZeroPadding2D(common.half_padding(x, size), name=f"separable_conv_1_pad_{name}")(x),
            "valid",
        )
    first = SeparableConv2D(
        filters, size, strides=stride, padding=padding, name=f"separable_conv_1_{name}", **_PLAIN
    )
    x = _relu(_norm(first(x), f"separable_conv_1_bn_{name}"))
    x = SeparableConv2D(filters, size, padding="same", name=f"separable_conv_2_{name}", **_PLAIN)(x)
    return _norm(x, f"separable_conv_2_bn_{name}")


def _halved(p: Any, filters: int, block: str) -> Any:
    """Half as large an image: every second place, and every second one beside them."""
    p = _relu(p, f"adjust_relu_1_{block}")
    beside = Cropping2D(((1, 0), (1, 0)))(ZeroPadding2D(((0, 1), (0, 1)))(p))
    parts = []
    for i, part in enumerate((p, beside), 1):
        part = AveragePooling2D(1, strides=2, padding="valid", name=f"adjust_avg_pool_{i}_{block}")(part)
        conv = Conv2D(filters // 2, 1, padding="same", name=f"adjust_conv_{i}_{block}", **_PLAIN)
        parts.append(conv(part))
    return _norm(concatenate(parts, axis=common.channel_axis()), f"adjust_bn_{block}")


def _adjusted(p: Any, x: Any, filters: int, block: str) -> Any:
    """The output of the cell before the last, in the size and with the channels that this cell needs."""
    if p is None:
        return x
    side = 2 if common.channel_axis() == 1 else -2
    if p.shape.as_list()[side] != x.shape.as_list()[side]:
        return _halved(p, filters, block)
    if p.shape.as_list()[common.channel_axis()] != filters:
        conv = Conv2D(filters, 1, padding="same", name=f"adjust_conv_projection_{block}", **_PLAIN)
        return _norm(conv(_relu(p)), f"adjust_bn_{block}")
    return p


def _entered(x: Any, p: Any, filters: int, kind: str, block: str) -> tuple[Any, Any]:
    p = _adjusted(p, x, filters, block)
    h = Conv2D(filters, 1, padding="same", name=f"{kind}_conv_1_{block}", **_PLAIN)(_relu(x))
    return _norm(h, f"{kind}_bn_1_{block}"), p


def _normal(x: Any, p: Any, filters: int, block: str) -> tuple[Any, Any]:
    """A cell that keeps the size: (its result, its input)."""
    h, p = _entered(x, p, filters, "normal", block)

    def mean(value: Any, name: str) -> Any:
        return AveragePooling2D(3, strides=1, padding="same", name=f"normal_{name}_{block}")(value)

    def conv(value: Any, size: int, name: str) -> Any:
        return _separable(value, filters, size, f"normal_{name}_{block}")

    pairs = [
        (conv(h, 5, "left1"), conv(p, 3, "right1")),
        (conv(p, 5, "left2"), conv(p, 3, "right2")),
        (mean(h, "left3"), p),
        (mean(p, "left4"), mean(p, "right4")),
        (conv(h, 3, "left5"), h),
    ]
    sums = [add(list(pair), name=f"normal_add_{i}_{block}") for i, pair in enumerate(pairs, 1)]
    return concatenate([p, *sums], axis=common.channel_axis(), name=f"normal_concat_{block}"), x


def _reduction(x: Any, p: Any, filters: int, block: str) -> tuple[Any, Any]:
    """A cell that halves the image: (its result, its input)."""
    h, p = _entered(x, p, filters, "reduction", block)
    padded = ZeroPadding2D(common.half_padding(h, 3), name=f"reduction_pad_1_{block}")(h)

    def conv(value: Any, size: int, name: str, stride: int = 2) -> Any:
        return _separable(value, filters, size, f"reduction_{name}_{block}", stride)

    def pool(kind: Any, name: str) -> Any:
        return kind(3, strides=2, padding="valid", name=f"reduction_{name}_{block}")(padded)

    one = add([conv(h, 5, "left1"), conv(p, 7, "right1")], name=f"reduction_add_1_{block}")
    two = add([pool(MaxPooling2D, "left2"), conv(p, 7, "right2")], name=f"reduction_add_2_{block}")
    three = add([pool(AveragePooling2D, "left3"), conv(p, 5, "right3")], name=f"reduction_add3_{block}")
    near = AveragePooling2D(3, strides=1, padding="same", name=f"reduction_left4_{block}")(one)
    four = add([two, near])
    five = [conv(one, 3, "left4", 1), pool(MaxPooling2D, "right5")]
    last = add(five, name=f"reduction_add4_{block}")
    parts = [two, three, four, last]
    return concatenate(parts, axis=common.channel_axis(), name=f"reduction_concat_{block}"), x


def _nasnet(size: int, filters: int, blocks: int, stem: int, skips: bool, given: dict[str, Any]) -> Any:
    """The network: a stem, then three times `blocks` cells, with twice as many filters after each halving."""
    common.starts(given["weights"], given["include_top"], given["classes"])
    inputs = common.image_input(given["input_tensor"], given["input_shape"], size, 32, True)
    x = Conv2D(stem, 3, strides=2, padding="valid", name="stem_conv1", **_PLAIN)(inputs)
    x, p = _norm(x, "stem_bn1"), None
    for i, share in enumerate((4, 2), 1):
        x, p = _reduction(x, p, filters // share, f"stem_{i}")
    for part in range(3):
        if part:
            x, before = _reduction(x, p, filters * 2**part, f"reduce_{part * blocks}")
            p = p if skips else before
        for i in range(blocks):
            x, p = _normal(x, p, filters * 2**part, str(part * blocks + i + (part > 0)))
    x = _relu(x)
    if given["include_top"]:
        x = GlobalAveragePooling2D()(x)
        x = Dense(given["classes"], activation="softmax", name="predictions")(x)
    else:
        x = common.pooled(x, given["pooling"])
    name = "nasnet_mobile" if size == 224 else "nasnet_large"
    file = f"{name}.h5" if given["include_top"] else f"{name}_no_top.h5"
    return common.finished(inputs, x, "NASNet", given["weights"], file)


def NASNetLarge(
    input_shape: Any = None,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Any:
    """The large network."""
    return _nasnet(331, 168, 6, 96, True, locals())


def NASNetMobile(
    input_shape: Any = None,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Any:
    """The network for small machines."""
    return _nasnet(224, 44, 4, 32, False, locals())
