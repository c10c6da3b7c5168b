"""`tf.keras.applications`: networks whose layers follow each other: VGG, MobileNet, Xception, InceptionV3."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.applications import imagenet_utils as common
from tensorfleet_legacy.keras.layers.convolutional import (
    AveragePooling2D,
    BatchNormalization,
    Conv2D,
    GlobalAveragePooling2D,
    MaxPooling2D,
    SeparableConv2D,
)
from tensorfleet_legacy.keras.layers.convolutional_padding import ZeroPadding2D
from tensorfleet_legacy.keras.layers.core import Activation, Dense, Dropout, Flatten, ReLU, Reshape
from tensorfleet_legacy.keras.layers.local import DepthwiseConv2D
from tensorfleet_legacy.keras.layers.merge import add, concatenate


def _vgg(depths: tuple[int, ...], x: Any) -> Any:
    """The layers of a network of five blocks of so many convolutions."""
    for block, (depth, filters) in enumerate(zip(depths, (64, 128, 256, 512, 512), strict=True), 1):
        for i in range(1, depth + 1):
            x = Conv2D(filters, (3, 3), activation="relu", padding="same", name=f"block{block}_conv{i}")(x)
        x = MaxPooling2D((2, 2), strides=(2, 2), name=f"block{block}_pool")(x)
    return x


def _vgg_top(x: Any, classes: int) -> Any:
    x = Flatten(name="flatten")(x)
    for i in (1, 2):
        x = Dense(4096, activation="relu", name=f"fc{i}")(x)
    return Dense(classes, activation="softmax", name="predictions")(x)


VGG16 = common.application(
    "VGG16",
    "The network of sixteen layers of Simonyan and Zisserman.",
    "vgg16",
    partial(_vgg, (2, 2, 3, 3, 3)),
    top=_vgg_top,
)
VGG19 = common.application(
    "VGG19",
    "The network of nineteen layers of Simonyan and Zisserman.",
    "vgg19",
    partial(_vgg, (2, 2, 4, 4, 4)),
    top=_vgg_top,
)


def _normal_relu(x: Any, bn: str, relu: str, **options: Any) -> Any:
    x = BatchNormalization(axis=common.channel_axis(), name=bn, **options)(x)
    return ReLU(6.0, name=relu)(x)


def _depthwise_block(x: Any, filters: int, multiplier: int, stride: int, number: int) -> Any:
    if stride == 2:
        x = ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{number}")(x)
    x = DepthwiseConv2D(
        (3, 3),
        padding="same" if stride == 1 else "valid",
        depth_multiplier=multiplier,
        strides=stride,
        use_bias=False,
        name=f"conv_dw_{number}",
    )(x)
    x = _normal_relu(x, f"conv_dw_{number}_bn", f"conv_dw_{number}_relu")
    x = Conv2D(filters, (1, 1), padding="same", use_bias=False, name=f"conv_pw_{number}")(x)
    return _normal_relu(x, f"conv_pw_{number}_bn", f"conv_pw_{number}_relu")


def MobileNet(
    input_shape: Any = None,
    alpha: float = 1.0,
    depth_multiplier: int = 1,
    dropout: float = 1e-3,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Any:
    """A small network of depthwise convolutions (Howard et al. 2017)."""
    common.starts(weights, include_top, classes)
    inputs = common.image_input(input_tensor, input_shape, 224, 32, include_top)
    x = ZeroPadding2D(((0, 1), (0, 1)), name="conv1_pad")(inputs)
    x = Conv2D(int(32 * alpha), (3, 3), strides=2, use_bias=False, name="conv1")(x)
    x = _normal_relu(x, "conv1_bn", "conv1_relu")
    sizes = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for number, (filters, stride) in enumerate(sizes, 1):
        x = _depthwise_block(x, int(filters * alpha), depth_multiplier, stride, number)
    if not include_top:
        x = common.pooled(x, pooling)
        return common.finished(
            inputs, x, _mobile_name(alpha, inputs), weights, _mobile_file(alpha, inputs, False)
        )
    depth = int(1024 * alpha)
    last = state.image_data_format() == "channels_last"
    x = GlobalAveragePooling2D()(x)
    x = Reshape((1, 1, depth) if last else (depth, 1, 1), name="reshape_1")(x)
    x = Dropout(dropout, name="dropout")(x)
    x = Conv2D(classes, (1, 1), padding="same", name="conv_preds")(x)
    x = Activation("softmax", name="act_softmax")(Reshape((classes,), name="reshape_2")(x))
    return common.finished(inputs, x, _mobile_name(alpha, inputs), weights, _mobile_file(alpha, inputs, True))


def _mobile_name(alpha: float, inputs: Any) -> str:
    rows = inputs.shape.as_list()[1 if common.channel_axis() == 3 else 2]
    return f"mobilenet_{alpha:0.2f}_{rows}"


_MOBILE_SIZES = (128, 160, 192, 224)  # the images that weights were trained on


def _trained_rows(inputs: Any, known: tuple) -> int:
    rows = inputs.shape.as_list()[1 if common.channel_axis() == 3 else 2]
    return rows if rows in known else 224


def _mobile_file(alpha: float, inputs: Any, include_top: bool) -> str:
    share = {1.0: "1_0", 0.75: "7_5", 0.5: "5_0"}.get(alpha, "2_5")
    rows = _trained_rows(inputs, _MOBILE_SIZES)
    return f"mobilenet_{share}_{rows}_tf{'' if include_top else '_no_top'}.h5"


def _divisible(value: float, by: int) -> int:
    """The multiple of `by` nearest to a number, not more than a tenth below it."""
    result = max(by, int(value + by / 2) // by * by)
    return result + by if result < 0.9 * value else result


def _inverted_block(x: Any, filters: int, stride: int, expansion: int, number: int) -> Any:
    options = dict(axis=common.channel_axis(), epsilon=1e-3, momentum=0.999)
    channels, start = x.shape.as_list()[common.channel_axis()], x
    prefix = f"block_{number}_" if number else "expanded_conv_"
    if number:
        x = Conv2D(
            expansion * channels, 1, padding="same", use_bias=False, activation=None, name=prefix + "expand"
        )(x)
        x = ReLU(6.0, name=prefix + "expand_relu")(
            BatchNormalization(name=prefix + "expand_BN", **options)(x)
        )
    if stride == 2:
        x = ZeroPadding2D(common.half_padding(x, 3), name=prefix + "pad")(x)
    padding = "same" if stride == 1 else "valid"
    x = DepthwiseConv2D(3, strides=stride, use_bias=False, padding=padding, name=prefix + "depthwise")(x)
    x = ReLU(6.0, name=prefix + "depthwise_relu")(
        BatchNormalization(name=prefix + "depthwise_BN", **options)(x)
    )
    x = Conv2D(filters, 1, padding="same", use_bias=False, activation=None, name=prefix + "project")(x)
    x = BatchNormalization(name=prefix + "project_BN", **options)(x)
    return add([start, x], name=prefix + "add") if channels == filters and stride == 1 else x


def MobileNetV2(
    input_shape: Any = None,
    alpha: float = 1.0,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Any:
    """A small network of inverted residuals (Sandler et al. 2018)."""
    common.starts(weights, include_top, classes)
    inputs = common.image_input(input_tensor, input_shape, 224, 32, include_top)
    options = dict(axis=common.channel_axis(), epsilon=1e-3, momentum=0.999)
    x = ZeroPadding2D(common.half_padding(inputs, 3), name="Conv1_pad")(inputs)
    x = Conv2D(_divisible(32 * alpha, 8), 3, strides=2, use_bias=False, name="Conv1")(x)
    x = ReLU(6.0, name="Conv1_relu")(BatchNormalization(name="bn_Conv1", **options)(x))
    sizes = [(16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)]
    number = 0
    for filters, count, stride in sizes:
        for i in range(count):
            step, expansion = (stride if i == 0 else 1), (6 if number else 1)
            x = _inverted_block(x, _divisible(filters * alpha, 8), step, expansion, number)
            number += 1
    last = _divisible(1280 * alpha, 8) if alpha > 1.0 else 1280
    x = Conv2D(last, 1, use_bias=False, name="Conv_1")(x)
    x = ReLU(6.0, name="out_relu")(BatchNormalization(name="Conv_1_bn", **options)(x))
    if include_top:
        x = Dense(classes, activation="softmax", name="Logits")(GlobalAveragePooling2D()(x))
    else:
        x = common.pooled(x, pooling)
    rows = inputs.shape.as_list()[1 if common.channel_axis() == 3 else 2]
    file = f"mobilenet_v2_weights_tf_dim_ordering_tf_kernels_{alpha}_{_trained_rows(inputs, (96, *_MOBILE_SIZES))}"
    file = f"{file}.h5" if include_top else f"{file}_no_top.h5"
    return common.finished(inputs, x, f"mobilenetv2_{alpha:0.2f}_{rows}", weights, file)


def _separable(x: Any, filters: int, name: str) -> Any:
    x = SeparableConv2D(filters, (3, 3), padding="same", use_bias=False, name=name)(x)
    return BatchNormalization(axis=common.channel_axis(), name=f"{name}_bn")(x)


def _xception_down(x: Any, filters: tuple[int, int], block: int) -> Any:
    """A block that halves the image."""
    axis = common.channel_axis()
    past = Conv2D(filters[1], (1, 1), strides=(2, 2), padding="same", use_bias=False)(x)
    past = BatchNormalization(axis=axis)(past)
    if block > 2:
        x = Activation("relu", name=f"block{block}_sepconv1_act")(x)
    x = _separable(x, filters[0], f"block{block}_sepconv1")
    x = Activation("relu", name=f"block{block}_sepconv2_act")(x)
    x = _separable(x, filters[1], f"block{block}_sepconv2")
    x = MaxPooling2D((3, 3), strides=(2, 2), padding="same", name=f"block{block}_pool")(x)
    return add([x, past])


def _xception(inputs: Any) -> Any:
    axis, x = common.channel_axis(), inputs
    for i, (filters, stride) in enumerate(((32, 2), (64, 1)), 1):
        x = Conv2D(filters, (3, 3), strides=stride, use_bias=False, name=f"block1_conv{i}")(x)
        x = BatchNormalization(axis=axis, name=f"block1_conv{i}_bn")(x)
        x = Activation("relu", name=f"block1_conv{i}_act")(x)
    for block, filters in enumerate((128, 256, 728), 2):
        x = _xception_down(x, (filters, filters), block)
    for block in range(5, 13):
        past = x
        for i in (1, 2, 3):
            x = Activation("relu", name=f"block{block}_sepconv{i}_act")(x)
            x = _separable(x, 728, f"block{block}_sepconv{i}")
        x = add([x, past])
    x = _xception_down(x, (728, 1024), 13)
    for i, filters in ((1, 1536), (2, 2048)):
        x = Activation("relu", name=f"block14_sepconv{i}_act")(_separable(x, filters, f"block14_sepconv{i}"))
    return x


Xception = common.application(
    "Xception",
    "A network of separable convolutions (Chollet 2017).",
    "xception",
    _xception,
    size=299,
    least=71,
)


def _conv(x: Any, filters: int, rows: int, columns: int, stride: int = 1, padding: str = "same") -> Any:
    x = Conv2D(filters, (rows, columns), strides=stride, padding=padding, use_bias=False)(x)
    return Activation("relu")(BatchNormalization(axis=common.channel_axis(), scale=False)(x))


def _convs(x: Any, *steps: tuple) -> Any:
    for step in steps:
        x = _conv(x, *step)
    return x


def _mean_pool(x: Any) -> Any:
    return AveragePooling2D((3, 3), strides=(1, 1), padding="same")(x)


def _fork(x: Any, name: str | None = None) -> Any:
    """The same seen through a row and through a column of three."""
    parts = [_conv(x, 384, 1, 3), _conv(x, 384, 3, 1)]
    return concatenate(parts, axis=common.channel_axis(), name=name)


def _inception_wide(x: Any, middle: int, name: str) -> Any:
    m = middle
    parts = [
        _conv(x, 192, 1, 1),
        _convs(x, (m, 1, 1), (m, 1, 7), (192, 7, 1)),
        _convs(x, (m, 1, 1), (m, 7, 1), (m, 1, 7), (m, 7, 1), (192, 1, 7)),
        _conv(_mean_pool(x), 192, 1, 1),
    ]
    return concatenate(parts, axis=common.channel_axis(), name=name)


def _inception_v3(inputs: Any) -> Any:
    axis = common.channel_axis()
    x = _convs(inputs, (32, 3, 3, 2, "valid"), (32, 3, 3, 1, "valid"), (64, 3, 3))
    x = MaxPooling2D((3, 3), strides=(2, 2))(x)
    x = _convs(x, (80, 1, 1, 1, "valid"), (192, 3, 3, 1, "valid"))
    x = MaxPooling2D((3, 3), strides=(2, 2))(x)
    for i, pool in enumerate((32, 64, 64)):
        parts = [_conv(x, 64, 1, 1), _convs(x, (48, 1, 1), (64, 5, 5))]
        parts += [_convs(x, (64, 1, 1), (96, 3, 3), (96, 3, 3)), _conv(_mean_pool(x), pool, 1, 1)]
        x = concatenate(parts, axis=axis, name=f"mixed{i}")
    parts = [_conv(x, 384, 3, 3, 2, "valid"), _convs(x, (64, 1, 1), (96, 3, 3), (96, 3, 3, 2, "valid"))]
    x = concatenate([*parts, MaxPooling2D((3, 3), strides=(2, 2))(x)], axis=axis, name="mixed3")
    for i, middle in enumerate((128, 160, 160, 192), 4):
        x = _inception_wide(x, middle, f"mixed{i}")
    parts = [_convs(x, (192, 1, 1), (320, 3, 3, 2, "valid"))]
    parts.append(_convs(x, (192, 1, 1), (192, 1, 7), (192, 7, 1), (192, 3, 3, 2, "valid")))
    x = concatenate([*parts, MaxPooling2D((3, 3), strides=(2, 2))(x)], axis=axis, name="mixed8")
    for i in range(2):
        parts = [_conv(x, 320, 1, 1), _fork(_conv(x, 384, 1, 1), f"mixed9_{i}")]
        parts += [_fork(_convs(x, (448, 1, 1), (384, 3, 3))), _conv(_mean_pool(x), 192, 1, 1)]
        x = concatenate(parts, axis=axis, name=f"mixed{9 + i}")
    return x


InceptionV3 = common.application(
    "InceptionV3",
    "The third Inception network (Szegedy et al. 2015).",
    "inception_v3",
    _inception_v3,
    size=299,
    least=75,
)
