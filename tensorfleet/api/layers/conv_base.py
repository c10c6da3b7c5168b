"""The common base of convolution layers of all ranks."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.options import given
from tensorfleet.api.layers.specs import (
    Activation,
    Constraint,
    InitializerLike,
    InputSpec,
    Regularizer,
    activation_of,
    data_format_of,
    layout_of,
    padding_of,
    tuple_of,
)
from tensorfleet.api.nn.convolutions import conv1d, separable_conv2d, with_space_to_batch
from tensorfleet.api.nn.pooling import Padding, Sizes
from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Dims, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.shape import reshape, shape
from tensorfleet.ops.nn.activations import bias_add
from tensorfleet.ops.nn.conv import conv2d, conv2d_transpose, conv3d, conv3d_transpose

_ZEROS = Zeros()
_PARTS = ("kernel", "depthwise", "pointwise", "bias")


class Conv(Layer):
    """A convolution over one, two or three dimensions, a bias, an activation."""

    rank: int

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Sizes = 1,
        activation: Activation = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = None,
        bias_initializer: InitializerLike = _ZEROS,
        kernel_regularizer: Regularizer | None = None,
        bias_regularizer: Regularizer | None = None,
        activity_regularizer: Regularizer | None = None,
        kernel_constraint: Constraint | None = None,
        bias_constraint: Constraint | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._start(given(locals()))

    def _start(self, options: dict[str, Any]) -> None:
        own = {"filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", "activation"}
        own |= {"use_bias", "depth_multiplier"}
        own |= {f"{part}_{what}" for part in _PARTS for what in ("initializer", "regularizer", "constraint")}
        Layer.__init__(self, **{k: v for k, v in options.items() if k not in own})
        for key in own & set(options):
            setattr(self, key, options[key])
        rank = self.rank
        self.filters = int(options["filters"])
        self.kernel_size = tuple_of(options["kernel_size"], rank, "kernel_size")
        self.strides = tuple_of(options["strides"], rank, "strides")
        self.padding = padding_of(options["padding"], causal=rank == 1)
        self.data_format = data_format_of(options["data_format"])
        self.dilation_rate = tuple_of(options.get("dilation_rate", 1), rank, "dilation_rate")
        self.activation = activation_of(options["activation"])
        self.use_bias: bool = options["use_bias"]
        self.input_spec = InputSpec(ndim=rank + 2)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")

    @property
    def _channel_axis(self) -> int:
        return 1 if self.data_format == "channels_first" else -1

    def _channels(self, input_shape: ShapeLike) -> int:
        result: int | None = TensorShape(input_shape)[self._channel_axis].value
        if result is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={self._channel_axis: result})
        return result

    def _part(self, part: str, dims: tuple[int, ...], name: str) -> Any:
        options = {w: getattr(self, f"{part}_{w}") for w in ("initializer", "regularizer", "constraint")}
        return self.add_weight(name, list(dims), **options)

    def build(self, input_shape: ShapeLike) -> None:
        """Makes the kernel and the bias."""
        channels = self._channels(input_shape)
        self.kernel = self._part("kernel", (*self.kernel_size, channels, self.filters), "kernel")
        self._build_bias()

    def _build_bias(self) -> None:
        self.bias = self._part("bias", (self.filters,), "bias") if self.use_bias else None
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:  # type: ignore[override]
        """Convolves, adds the bias, applies the activation."""
        if self.padding == "causal":
            inputs = self._padded_left(inputs)
        padding = "VALID" if self.padding == "causal" else self.padding.upper()
        layout = layout_of(self.data_format, self.rank)
        if all(r == 1 for r in self.dilation_rate):
            outputs = self._convolve(inputs, self.rank, padding)
        else:
            outputs = with_space_to_batch(
                inputs,
                list(self.dilation_rate),
                padding,
                self._convolve,
                list(self.kernel_size),
                None,
                layout,
            )
        return self._finish(outputs)

    def _convolve(self, inputs: Tensor, count: int, padding: Padding) -> Tensor:
        layout = layout_of(self.data_format, count)
        if count == 1:
            return conv1d(inputs, self.kernel, self.strides[0], padding, data_format=layout)
        ones = [1, 1, *self.strides] if layout.startswith("NC") else [1, *self.strides, 1]
        return (conv2d if count == 2 else conv3d)(inputs, self.kernel, ones, padding, data_format=layout)

    def _padded_left(self, inputs: Tensor) -> Tensor:
        """Zeros before the start, so that an output depends on nothing later than itself."""
        pads = [[0, 0], [0, 0], [0, 0]]
        pads[2 if self.data_format == "channels_first" else 1][0] = self.dilation_rate[0] * (
            self.kernel_size[0] - 1
        )
        return apply("Pad", inputs, pads)

    def _finish(self, outputs: Tensor) -> Tensor:
        if self.use_bias:
            # `bias_add` knows no layout of three dimensions with the channels first.
            if self.rank == 1 and self.data_format == "channels_first":
                outputs = outputs + reshape(self.bias, (1, self.filters, 1))
            else:
                outputs = bias_add(
                    outputs, self.bias, "NCHW" if self.data_format == "channels_first" else "NHWC"
                )
        return outputs if self.activation is None else self.activation(outputs)

    def _length(self, size: int | None, i: int) -> int | None:
        """How long the output is along spatial dimension `i`."""
        if size is None:
            return None
        reach = (self.kernel_size[i] - 1) * self.dilation_rate[i]
        return -(-(size - (reach if self.padding == "valid" else 0)) // self.strides[i])

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        """The shape of the output for an input of this shape."""
        dims = TensorShape(input_shape).as_list()
        start = 2 if self.data_format == "channels_first" else 1
        for i in range(self.rank):
            dims[start + i] = self._length(dims[start + i], i)
        dims[self._channel_axis] = self.filters
        return TensorShape(dims)


class SeparableConv(Conv):
    """A convolution of each channel on its own, then one of size 1 over all channels."""

    depth_multiplier: int

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Sizes = 1,
        depth_multiplier: int = 1,
        activation: Activation = None,
        use_bias: bool = True,
        depthwise_initializer: InitializerLike = None,
        pointwise_initializer: InitializerLike = None,
        bias_initializer: InitializerLike = _ZEROS,
        depthwise_regularizer: Regularizer | None = None,
        pointwise_regularizer: Regularizer | None = None,
        bias_regularizer: Regularizer | None = None,
        activity_regularizer: Regularizer | None = None,
        depthwise_constraint: Constraint | None = None,
        pointwise_constraint: Constraint | None = None,
        bias_constraint: Constraint | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._start(given(locals()))

    def build(self, input_shape: ShapeLike) -> None:
        """Makes both kernels and the bias."""
        channels, deep = self._channels(input_shape), self.depth_multiplier
        self.depthwise_kernel = self._part(
            "depthwise", (*self.kernel_size, channels, deep), "depthwise_kernel"
        )
        ones = (1,) * self.rank
        self.pointwise_kernel = self._part(
            "pointwise", (*ones, channels * deep, self.filters), "pointwise_kernel"
        )
        self._build_bias()

    def call(self, inputs: Tensor) -> Tensor:  # type: ignore[override]
        """Convolves twice, adds the bias, applies the activation."""
        first = self.data_format == "channels_first"
        if self.rank == 2:
            return self._finish(
                self._separable(
                    inputs, self.depthwise_kernel, self.pointwise_kernel, self.strides, self.dilation_rate
                )
            )
        if self.padding == "causal":
            inputs = self._padded_left(inputs)
        height = 2 if first else 1
        # There is no op for separable filters of sequences: they are images one pixel high.
        tall = apply("ExpandDims", inputs, height)
        deep = apply("ExpandDims", self.depthwise_kernel, 0)
        point = apply("ExpandDims", self.pointwise_kernel, 0)
        outputs = self._separable(tall, deep, point, self.strides * 2, (1, *self.dilation_rate))
        if self.use_bias:
            outputs = bias_add(outputs, self.bias, "NCHW" if first else "NHWC")
        outputs = apply("Squeeze", outputs, squeeze_dims=[height])
        return outputs if self.activation is None else self.activation(outputs)

    def _separable(
        self, inputs: Tensor, deep: TensorLike, point: TensorLike, strides: Dims, rate: Dims
    ) -> Tensor:
        layout = layout_of(self.data_format, 2)
        steps = [1, 1, *strides] if layout == "NCHW" else [1, *strides, 1]
        padding = "VALID" if self.padding == "causal" else self.padding.upper()
        return separable_conv2d(inputs, deep, point, steps, padding, rate=list(rate), data_format=layout)


class ConvTranspose(Conv):
    """The transpose of a convolution over two or three dimensions, a bias, an activation."""

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: Activation = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = None,
        bias_initializer: InitializerLike = _ZEROS,
        kernel_regularizer: Regularizer | None = None,
        bias_regularizer: Regularizer | None = None,
        activity_regularizer: Regularizer | None = None,
        kernel_constraint: Constraint | None = None,
        bias_constraint: Constraint | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._start(given(locals()))

    def build(self, input_shape: ShapeLike) -> None:
        """Makes the kernel, whose last two dimensions are swapped, and the bias."""
        channels = self._channels(input_shape)
        self.kernel = self._part("kernel", (*self.kernel_size, self.filters, channels), "kernel")
        self._build_bias()

    def call(self, inputs: Tensor) -> Tensor:  # type: ignore[override]
        """Convolves backwards, adds the bias, applies the activation."""
        sizes = shape(inputs)
        start = 2 if self.data_format == "channels_first" else 1
        batch = sizes[0]
        space: list[TensorLike] = [self._length(sizes[start + i], i) for i in range(self.rank)]
        target = [batch, self.filters, *space] if start == 2 else [batch, *space, self.filters]
        steps = [1, 1, *self.strides] if start == 2 else [1, *self.strides, 1]
        function = conv2d_transpose if self.rank == 2 else conv3d_transpose
        layout = layout_of(self.data_format, self.rank)
        whole = apply("Pack", target, name="stack")
        outputs = function(inputs, self.kernel, whole, steps, self.padding.upper(), data_format=layout)
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return self._finish(outputs)

    def _length(self, size: Any, i: int) -> Any:
        if size is None:
            return None
        longer = size * self.strides[i]
        extra = max(self.kernel_size[i] - self.strides[i], 0)
        return longer + extra if self.padding == "valid" and extra else longer
