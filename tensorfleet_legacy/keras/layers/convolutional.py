"""Keras's layers of images and sequences: convolutions, poolings, batch normalization."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers import convolutional, normalization
from tensorfleet.api.layers import pooling as poolings
from tensorfleet.api.layers.specs import InputSpec, tuple_of
from tensorfleet.base.arguments import signature_of, taking, with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Layer
from tensorfleet_legacy.keras.layers.core import WEIGHTS, as_keras, converted


class Conv1D(Layer, convolutional.Conv1D):
    """A convolution along a sequence, a bias, an activation."""

    __init__ = as_keras(convolutional.Conv1D, **WEIGHTS)


class Conv2D(Layer, convolutional.Conv2D):
    """A convolution over images, a bias, an activation."""

    __init__ = as_keras(convolutional.Conv2D, data_format=None, **WEIGHTS)


class Conv3D(Layer, convolutional.Conv3D):
    """A convolution over volumes, a bias, an activation."""

    __init__ = as_keras(convolutional.Conv3D, data_format=None, **WEIGHTS)


_TRANSPOSED = (
    "filters, kernel_size, strides={strides}, padding='valid', output_padding=None, data_format=None, {rate} "
    "activation=None, use_bias=True, kernel_initializer='glorot_uniform', bias_initializer='zeros', "
    "kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None, kernel_constraint=None, "
    "bias_constraint=None, **kwargs"
)


class _Transposed:
    """How long the result is on a side, where `output_padding` says it."""

    rank: int
    strides: tuple
    kernel_size: tuple
    padding: str
    output_padding: tuple | None = None

    def _begin(self, given: dict[str, Any]) -> None:
        padding = given.pop("output_padding")
        Layer.__init__(self, **converted(given))  # type: ignore[arg-type]
        if padding is not None:
            self.output_padding = tuple_of(padding, self.rank, "output_padding")
            for step, more in zip(self.strides, self.output_padding, strict=True):
                if step <= more:
                    raise ValueError(
                        f"Stride {self.strides} must be greater than output padding {self.output_padding}"
                    )

    def _length(self, size: Any, i: int) -> Any:
        if size is None or self.output_padding is None:
            return super()._length(size, i)  # type: ignore[misc]
        cut = 2 * (self.kernel_size[i] // 2) if self.padding == "same" else 0
        return (size - 1) * self.strides[i] + self.kernel_size[i] - cut + self.output_padding[i]


class Conv2DTranspose(_Transposed, Layer, convolutional.Conv2DTranspose):
    """The other way round: an image whose convolution would give the input."""

    @taking(signature_of(_TRANSPOSED.format(strides="(1, 1)", rate="dilation_rate=(1, 1),")))
    def __init__(self, given: dict[str, Any]) -> None:
        rate = tuple_of(given.pop("dilation_rate"), 2, "dilation_rate")
        self._begin(given)
        self.dilation_rate = rate

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        """Convolves backwards, adds the bias, applies the activation."""
        if self.dilation_rate == (1, 1):
            return super().call(inputs)
        if self.dilation_rate[0] != self.dilation_rate[1] or self.strides != (1, 1):
            raise ValueError(
                "Conv2DTranspose takes one dilation rate for both sides, and strides of one with it; got "
                f"dilation_rate={self.dilation_rate}, strides={self.strides}"
            )
        moved = find("transpose")(inputs, [0, 2, 3, 1]) if self.data_format == "channels_first" else inputs
        sizes, wide = (
            find("shape")(moved),
            [k + (k - 1) * (self.dilation_rate[0] - 1) for k in self.kernel_size],
        )
        extra = [k - 1 if self.padding == "valid" else 0 for k in wide]
        target = find("stack")([sizes[0], sizes[1] + extra[0], sizes[2] + extra[1], self.filters])
        result = find("nn.atrous_conv2d_transpose")(
            moved, self.kernel, target, self.dilation_rate[0], self.padding.upper()
        )
        if self.data_format == "channels_first":
            result = find("transpose")(result, [0, 3, 1, 2])
        return self._finish(result)


class Conv3DTranspose(_Transposed, Layer, convolutional.Conv3DTranspose):
    """The other way round: a volume whose convolution would give the input."""

    @taking(signature_of(_TRANSPOSED.format(strides="(1, 1, 1)", rate="")))
    def __init__(self, given: dict[str, Any]) -> None:
        self._begin(given)


_SEPARABLE: dict[str, Any] = {
    "depthwise_initializer": "glorot_uniform",
    "pointwise_initializer": "glorot_uniform",
    "bias_initializer": "zeros",
}


class SeparableConv1D(Layer, convolutional.SeparableConv1D):
    """A convolution of each channel of a sequence alone, then one that mixes the channels."""

    __init__ = as_keras(convolutional.SeparableConv1D, data_format=None, **_SEPARABLE)


class SeparableConv2D(Layer, convolutional.SeparableConv2D):
    """A convolution of each channel alone, then one that mixes the channels."""

    __init__ = as_keras(convolutional.SeparableConv2D, data_format=None, **_SEPARABLE)


class BatchNormalization(Layer, normalization.BatchNormalization):
    """Gives each channel mean `beta` and deviation `gamma`, over the batch or, out of training, over all seen.

    The moving averages change by the operations in `updates`: run them with each training step.
    """

    _passes_masks = True

    __init__ = as_keras(
        normalization.BatchNormalization,
        without=(),
        beta_initializer="zeros",
        gamma_initializer="ones",
        moving_mean_initializer="zeros",
        moving_variance_initializer="ones",
    )

    def call(self, inputs: Any, training: Any = None) -> Tensor:  # type: ignore[override]
        """Normalizes with the statistics of the batch when `training`; by the learning phase when that is None."""
        return normalization.BatchNormalization.call(self, inputs, state.decided(training))


def _pooling(name: str, base: type, size: Any, data_format: str | None, what: str) -> type:
    def init(
        self: Any,
        pool_size: Any = size,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = data_format,
        **kwargs: Any,
    ) -> None:
        options = dict(pool_size=pool_size, strides=strides, padding=padding, **kwargs)
        options["data_format"] = data_format or state.image_data_format()
        Layer.__init__(self, **options)

    kind = type(name, (Layer, base), {"__init__": init, "__doc__": what, "__module__": __name__})
    return kind


_MAX, _MEAN = "The largest of each window.", "The mean of each window."
MaxPooling1D = _pooling("MaxPooling1D", poolings.MaxPooling1D, 2, "channels_last", _MAX)
MaxPooling2D = _pooling("MaxPooling2D", poolings.MaxPooling2D, (2, 2), None, _MAX)
MaxPooling3D = _pooling("MaxPooling3D", poolings.MaxPooling3D, (2, 2, 2), None, _MAX)
AveragePooling1D = _pooling("AveragePooling1D", poolings.AveragePooling1D, 2, "channels_last", _MEAN)
AveragePooling2D = _pooling("AveragePooling2D", poolings.AveragePooling2D, (2, 2), None, _MEAN)
AveragePooling3D = _pooling("AveragePooling3D", poolings.AveragePooling3D, (2, 2, 2), None, _MEAN)


class _Global(Layer):
    """One number for each channel of an example."""

    _rank = 2
    _function = "reduce_mean"

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = data_format or (state.image_data_format() if self._rank > 1 else "channels_last")
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        first = 1 if self.data_format == "channels_last" else 2
        return find(self._function)(inputs, list(range(first, first + self._rank)))


class GlobalAveragePooling1D(_Global):
    """The mean of each channel of a sequence, over the steps that count."""

    _rank = 1
    __init__ = with_defaults(_Global.__init__, data_format="channels_last")

    def call(self, inputs: Any, mask: Any = None) -> Tensor:  # type: ignore[override]
        if mask is None:
            return super().call(inputs)
        axis = 1 if self.data_format == "channels_last" else 2
        counts = find("expand_dims")(find("cast")(mask, inputs.dtype), 3 - axis)
        return find("reduce_sum")(inputs * counts, axis) / find("reduce_sum")(counts, axis)


class GlobalAveragePooling2D(_Global):
    """The mean of each channel of an image."""


class GlobalAveragePooling3D(_Global):
    """The mean of each channel of a volume."""

    _rank = 3


class GlobalMaxPooling1D(_Global):
    """The largest of each channel of a sequence."""

    _rank = 1
    __init__ = with_defaults(_Global.__init__, data_format="channels_last")
    _function = "reduce_max"


class GlobalMaxPooling2D(_Global):
    """The largest of each channel of an image."""

    _function = "reduce_max"


class GlobalMaxPooling3D(_Global):
    """The largest of each channel of a volume."""

    _rank = 3
    _function = "reduce_max"


class UpSampling2D(Layer):
    """Larger images: each pixel repeated, or `interpolation="bilinear"`."""

    def __init__(
        self,
        size: Any = (2, 2),
        data_format: str | None = None,
        interpolation: str = "nearest",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.size = tuple_of(size, 2, "size")
        self.data_format = data_format or state.image_data_format()
        if interpolation not in ("nearest", "bilinear"):
            raise ValueError('`interpolation` argument should be one of `"nearest"` or `"bilinear"`.')
        self.interpolation = interpolation
        self.input_spec = InputSpec(ndim=4)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        first = self.data_format == "channels_first"
        image = find("transpose")(inputs, (0, 2, 3, 1)) if first else inputs
        known = image.shape.as_list()[1:3]
        sizes = find("shape")(image)[1:3] * find("constant")(list(self.size))
        name = "nearest_neighbor" if self.interpolation == "nearest" else "bilinear"
        resize = find(f"image.resize_{name}")
        result = resize(image, sizes, half_pixel_centers=True)
        rows, columns = (None if d is None else d * n for d, n in zip(known, self.size, strict=True))
        result.set_shape([inputs.shape[0].value, rows, columns, image.shape[3].value])
        return find("transpose")(result, (0, 3, 1, 2)) if first else result


class LayerNormalization(Layer):
    """Gives each example mean `beta` and deviation `gamma` over some of its axes."""

    _passes_masks = True

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self.axis, self.epsilon, self.center, self.scale = axis, epsilon, center, scale
        self._beta = dict(
            initializer=beta_initializer, regularizer=beta_regularizer, constraint=beta_constraint
        )
        self._gamma = dict(
            initializer=gamma_initializer, regularizer=gamma_regularizer, constraint=gamma_constraint
        )

    def build(self, input_shape: Any) -> None:
        dims = TensorShape(input_shape).as_list()
        given = self.axis if isinstance(self.axis, (list, tuple)) else [self.axis]
        self._axes = sorted(a % len(dims) for a in given)
        sizes = [dims[a] for a in self._axes]
        self._spread = [d if a in self._axes else 1 for a, d in enumerate(dims)]
        self.gamma = self.add_weight("gamma", sizes, **self._gamma) if self.scale else None
        self.beta = self.add_weight("beta", sizes, **self._beta) if self.center else None
        self.built = True

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        mean, variance = find("nn.moments")(inputs, self._axes, keep_dims=True)
        scale, offset = (
            None if v is None else find("reshape")(v, self._spread) for v in (self.gamma, self.beta)
        )
        result = find("nn.batch_normalization")(inputs, mean, variance, offset, scale, self.epsilon)
        result.set_shape(inputs.shape)
        return result


MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution2DTranspose, SeparableConvolution2D = Conv2DTranspose, SeparableConv2D
Convolution3DTranspose, SeparableConvolution1D = Conv3DTranspose, SeparableConv1D
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = (
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
)
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D
