"""Keras's convolutions that differ from place to place, and those of each channel alone."""

from __future__ import annotations

import math
from typing import Any

from tensorfleet.api.layers.specs import InputSpec, tuple_of
from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import activations as getting
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Layer


class _Weighted(Layer):
    """A layer with a kernel, a bias and an activation."""

    _kernel_part = "kernel"

    def _begin(self, rank: int, given: dict[str, Any]) -> None:
        """Takes the `locals()` of a constructor."""
        kwargs = given.pop("kwargs")
        regularizer = getting.regularizer(given.pop("activity_regularizer"))
        Layer.__init__(self, activity_regularizer=regularizer, **kwargs)
        for key, value in given.items():
            if key.endswith(("initializer", "regularizer", "constraint")):
                value = getattr(getting, key.rpartition("_")[2])(value)
            if key not in ("self", "__class__"):
                setattr(self, key, value)
        self.kernel_size = tuple_of(given["kernel_size"], rank, "kernel_size")
        self.strides = tuple_of(given["strides"], rank, "strides")
        self.activation = getting.activation(given["activation"])
        self.data_format = given["data_format"] or (
            "channels_last" if rank == 1 else state.image_data_format()
        )
        self.input_spec = InputSpec(ndim=rank + 2)

    activation: Any
    kernel_size: tuple
    strides: tuple

    def _part(self, name: str, dims: Any, part: str) -> Any:
        whats = ("initializer", "regularizer", "constraint")
        return self.add_weight(name, dims, **{w: getattr(self, f"{part}_{w}") for w in whats})


class DepthwiseConv2D(_Weighted):
    """A convolution of each channel alone, a bias, an activation."""

    padding: str
    depth_multiplier: int
    use_bias: bool

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        rate = kwargs.pop("dilation_rate", (1, 1))
        self._begin(2, {key: value for key, value in locals().items() if key != "rate"})
        self.dilation_rate = tuple_of(rate, 2, "dilation_rate")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "dilation_rate": self.dilation_rate}

    def build(self, input_shape: Any) -> None:
        axis = 1 if self.data_format == "channels_first" else -1
        channels = TensorShape(input_shape)[axis].value
        if channels is None:
            raise ValueError(
                "The channel dimension of the inputs to `DepthwiseConv2D` should be defined. Found `None`."
            )
        self.depthwise_kernel = self._part(
            "depthwise_kernel", (*self.kernel_size, channels, self.depth_multiplier), "depthwise"
        )
        self.bias = self._part("bias", (channels * self.depth_multiplier,), "bias") if self.use_bias else None
        self.built = True

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        first = self.data_format == "channels_first"
        layout = "NCHW" if first else "NHWC"
        steps = (1, 1, *self.strides) if first else (1, *self.strides, 1)
        output = find("nn.depthwise_conv2d")(
            inputs,
            self.depthwise_kernel,
            steps,
            self.padding.upper(),
            rate=self.dilation_rate,
            data_format=layout,
        )
        if self.bias is not None:
            output = find("nn.bias_add")(output, self.bias, data_format=layout)
        return output if self.activation is None else self.activation(output)


class _Local(_Weighted):
    """A convolution with a kernel of its own at each place."""

    _rank: int
    filters: int
    use_bias: bool

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        if padding.lower() != "valid":
            name = f"LocallyConnected{self._rank}D"
            raise ValueError(f'Invalid border mode for {name} (only "valid" is supported): {padding}')
        self._begin(self._rank, locals())

    def build(self, input_shape: Any) -> None:
        dims = TensorShape(input_shape).as_list()
        first = self.data_format == "channels_first"
        sides, channels = (dims[2:], dims[1]) if first else (dims[1:-1], dims[-1])
        if None in (*sides, channels):
            raise ValueError(
                f"The spatial dimensions of the inputs to a {type(self).__name__} should be fully-defined, but layer "
                f"received the inputs shape {dims}"
            )
        self._places = [
            (side - size) // step + 1
            for side, size, step in zip(sides, self.kernel_size, self.strides, strict=True)
        ]
        count, width = math.prod(self._places), math.prod(self.kernel_size) * channels
        self.kernel = self._part("kernel", (count, width, self.filters), "kernel")
        self.bias = self._part("bias", (*self._places, self.filters), "bias") if self.use_bias else None
        self.built = True

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        result = _local_conv(
            inputs, self.kernel, self.kernel_size, self.strides, tuple(self._places), self.data_format
        )
        if self.bias is not None:
            bias = find("convert_to_tensor")(self.bias)
            first = self.data_format == "channels_first"
            result = result + (find("transpose")(bias, [self._rank, *range(self._rank)]) if first else bias)
        return result if self.activation is None else self.activation(result)


class LocallyConnected1D(_Local):
    """A convolution along sequences with a kernel of its own at each step."""

    _rank = 1
    __init__ = with_defaults(_Local.__init__, strides=1)


class LocallyConnected2D(_Local):
    """A convolution over images with a kernel of its own at each place."""

    _rank = 2


def local_conv1d(
    inputs: Any, kernel: Any, kernel_size: Any, strides: Any, data_format: str | None = None
) -> Tensor:
    """A convolution along sequences with a kernel of its own at each step: [steps, window, filters]."""
    steps = find("convert_to_tensor")(kernel).shape.as_list()[0]
    return _local_conv(inputs, kernel, kernel_size, strides, (steps,), data_format)


def local_conv2d(
    inputs: Any,
    kernel: Any,
    kernel_size: Any,
    strides: Any,
    output_shape: Any,
    data_format: str | None = None,
) -> Tensor:
    """A convolution over images with a kernel of its own at each place: [places, window, filters]."""
    return _local_conv(inputs, kernel, kernel_size, strides, tuple(output_shape), data_format)


def _local_conv(
    inputs: Any, kernel: Any, sizes: Any, strides: Any, places: tuple, data_format: str | None
) -> Tensor:
    rank, result = len(places), data_format or state.image_data_format()
    inputs = find("convert_to_tensor")(inputs)
    first = result == "channels_first"
    moved = find("transpose")(inputs, [0, *range(2, rank + 2), 1]) if first else inputs
    output = find("einsum")("bpw,pwf->bpf", windows(moved, sizes, strides, places), kernel)
    output = find("reshape")(output, [-1, *places, find("convert_to_tensor")(kernel).shape.as_list()[-1]])
    return find("transpose")(output, [0, rank + 1, *range(1, rank + 1)]) if first else output


def windows(inputs: Tensor, sizes: Any, strides: Any, places: Any) -> Tensor:
    """The window of each position: [batch, positions, elements of a window]."""
    one = len(places) == 1
    tall = find("expand_dims")(inputs, 1) if one else inputs
    window, steps = ((1, *sizes), (1, *strides)) if one else (sizes, strides)
    patches = find("extract_image_patches")(tall, [1, *window, 1], [1, *steps, 1], [1, 1, 1, 1], "VALID")
    width = math.prod(sizes) * inputs.shape.as_list()[-1]
    return find("reshape")(patches, [-1, math.prod(places), width])
