"""Convolutions in two and three dimensions, depthwise ones, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_list
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import conv as conv_kernels
from tensorfleet.kernels import conv_shapes
from tensorfleet.kernels import depthwise_conv as depthwise_kernels
from tensorfleet.kernels.windows import channel_axis
from tensorfleet.ops.common import ints, shape_given_by
from tensorfleet.ops.nn.shapes import dims_of, of_rank, one_of, same_dimension, shape_of, spatial_list
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_random = np.random.RandomState(0)
_IMAGE = _random.randn(2, 5, 4, 2).astype(np.float32)
_FILTER = _random.randn(3, 2, 2, 3).astype(np.float32)
_VOLUME = _random.randn(1, 3, 4, 3, 2).astype(np.float32)
_FILTER_3D = _random.randn(2, 2, 2, 2, 3).astype(np.float32)
_SAME: dict[str, Any] = dict(strides=[1, 1, 1, 1], padding="SAME")
_VALID: dict[str, Any] = dict(strides=[1, 2, 1, 1], padding="VALID")
_CHANNELS_FIRST: dict[str, Any] = dict(strides=[1, 1, 1, 1], padding="VALID", data_format="NCHW")
_SAME_3D: dict[str, Any] = dict(strides=[1, 1, 1, 1, 1], padding="SAME")

_SPACING = "explicit_paddings: list(int) = []; data_format: string(NHWC|NCHW) = NHWC; "
_SPACING += "dilations: list(int) = [1, 1, 1, 1]"
_PADDED = "padding: string(SAME|VALID|EXPLICIT); "
_CONV2D = f"strides: list(int); use_cudnn_on_gpu: bool = true; {_PADDED}{_SPACING}"
_DEPTHWISE = f"strides: list(int); {_PADDED}{_SPACING}"
_CONV3D = "strides: list(int) >= 5; padding: string(SAME|VALID); data_format: string(NDHWC|NCDHW) = NDHWC; "
_CONV3D += "dilations: list(int) = [1, 1, 1, 1, 1]"
_FORWARD = "input: T, filter: T -> output: T"
_TO_FILTER = "input: T, filter_sizes: int32[1], out_backprop: T -> output: T"
_TO_INPUT = "input_sizes: int32[1], filter: T, out_backprop: T -> output: T"

_GEOMETRY = ("strides", "padding", "data_format", "dilations")


def _windowed(function: Kernel, *more: str) -> Callable[[Operation], TensorShape]:
    """The shape function of a convolution, from the kernels' own."""

    def infer(op: Operation) -> TensorShape:
        attrs = {name: op._attrs[name] for name in (*_GEOMETRY, *more)}
        x, w = op._inputs
        return shape_of(function(dims_of(x.shape), dims_of(w.shape), **attrs))

    return infer


def _given(position: int, rank: int) -> Callable[[Operation], TensorShape]:
    """The shape function of a gradient whose shape an input gives."""
    return lambda op: of_rank(shape_given_by(op, position), rank)


def _planar_input(op: Operation) -> TensorShape:
    """The shape given for the input of a convolution, whose batch is that of the gradient."""
    given = of_rank(shape_given_by(op, 0), 4).as_list()
    w, dy = (of_rank(t.shape, 4).as_list() for t in op._inputs[1:])
    same_dimension(dy[channel_axis(op._attrs["data_format"])], w[-1])
    return TensorShape([same_dimension(given[0], dy[0]), *given[1:]])


def _options(op: Operation) -> dict[str, Any]:
    """The attributes a convolution and its gradients have in common."""
    names = (*_GEOMETRY, "explicit_paddings", "use_cudnn_on_gpu")
    return {name: op._attrs[name] for name in names if name in op._attrs}


def _shape(x: Tensor) -> Tensor:
    return apply("Shape", x)


def _declare_gradients(forward: str, to_input: str, to_filter: str) -> None:
    """Each of the three ops differentiates into the other two."""

    @gradient(forward)
    def of_forward(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
        x, w = op.inputs
        x_shape, w_shape = apply_list("ShapeN", [x, w])
        dx = apply_any(to_input, x_shape, w, dy, **_options(op))
        dw = apply_any(to_filter, x, w_shape, dy, **_options(op))
        # The sizes are tensors, so the shape functions know less than the graph does here.
        dx.set_shape(x.shape)
        dw.set_shape(w.shape)
        return dx, dw

    @gradient(to_input)
    def of_input(op: Operation, dz: Tensor) -> tuple[None, Tensor, Tensor]:
        _, w, dy = op.inputs
        dw = apply_any(to_filter, dz, _shape(w), dy, **_options(op))
        return None, dw, apply_any(forward, dz, w, **_options(op))

    @gradient(to_filter)
    def of_filter(op: Operation, dz: Tensor) -> tuple[Tensor, None, Tensor]:
        x, _, dy = op.inputs
        dx = apply_any(to_input, _shape(x), dz, dy, **_options(op))
        return dx, None, apply_any(forward, x, dz, **_options(op))


# -- two dimensions ----------------------------------------------------------------------------------


def _planar_kernel(function: Kernel, sizes: int | None = None) -> Kernel:
    """A kernel with the attributes of a 2-D convolution; argument `sizes`, if any, is a shape."""

    def call(
        xp: ArrayModule,
        *arrays: Array,
        strides: list[int],
        padding: bytes,
        explicit_paddings: list[int],
        data_format: bytes,
        dilations: list[int],
    ) -> Array:
        if any(strides[i] != 1 for i in ((0, 1) if data_format == b"NCHW" else (0, 3))):
            raise errors.UnimplementedError(
                None,
                None,
                "Current implementation does not yet support strides in the batch and depth dimensions.",
            )
        result: Array = function(
            xp,
            *(ints(a) if i == sizes else a for i, a in enumerate(arrays)),
            strides=strides,
            padding=padding,
            explicit_paddings=explicit_paddings,
            data_format=data_format,
            dilations=dilations,
        )
        return result

    return call


_WIDE = "{half, bfloat16, float, double, int32}"
_IMAGE_SHAPE, _FILTER_SHAPE = np.array(_IMAGE.shape, np.int32), np.array(_FILTER.shape, np.int32)
_OUT = _random.randn(2, 5, 4, 3).astype(np.float32)

op(
    "Conv2D",
    _FORWARD,
    f"T: {_WIDE}; {_CONV2D}",
    shape=_windowed(conv_shapes.conv2d_shape, "explicit_paddings"),
    heavy=True,
    examples=[
        case(_IMAGE, _FILTER, **_SAME),
        case(_IMAGE, _FILTER, **_VALID),
        case(np.transpose(_IMAGE, [0, 3, 1, 2]).copy(), _FILTER, **_CHANNELS_FIRST),
    ],
)(_planar_kernel(conv_kernels.conv2d))

op(
    "Conv2DBackpropInput",
    _TO_INPUT,
    f"T: {_WIDE}; {_CONV2D}",
    shape=_planar_input,
    static=["input_sizes"],
    heavy=True,
    examples=[case(_IMAGE_SHAPE, _FILTER, _OUT, **_SAME)],
)(_planar_kernel(conv_kernels.conv2d_backprop_input, 0))

op(
    "Conv2DBackpropFilter",
    _TO_FILTER,
    f"T: floating; {_CONV2D}",
    shape=_given(1, 4),
    static=["filter_sizes"],
    heavy=True,
    examples=[case(_IMAGE, _FILTER_SHAPE, _OUT, **_SAME)],
)(_planar_kernel(conv_kernels.conv2d_backprop_filter, 1))

_declare_gradients("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")


def _padding(value: Any) -> tuple[Any, list[int]]:
    """The padding attribute, and explicit paddings when it came as a list of pairs."""
    if isinstance(value, (list, tuple)):
        if len(value) != 4 or any(len(pair) != 2 for pair in value):
            raise ValueError(f"When padding is a list, it must hold 4 pairs of numbers. Padding: {value}")
        return "EXPLICIT", [int(p) for pair in value for p in pair]
    if value == "EXPLICIT":
        raise ValueError('"EXPLICIT" is not a valid value for the padding parameter. Pass a list of pairs.')
    return value, []


def _planar(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> dict[str, Any]:
    """The attributes of a 2-D convolution, from what its Python functions accept."""
    layout = data_format or "NHWC"
    first = layout.startswith("NC")
    kind, explicit = _padding(padding)
    return dict(
        strides=spatial_list(strides, 2, first, "strides"),
        padding=kind,
        explicit_paddings=explicit,
        data_format=layout,
        dilations=spatial_list(dilations, 2, first, "dilations"),
    )


@export("nn.conv2d")
def conv2d(
    input: TensorLike,
    filter: TensorLike = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = [1, 1, 1, 1],  # noqa: B006
    name: str | None = None,
    filters: TensorLike = None,
) -> Tensor:
    """Slides filters of shape [height, width, in_channels, out_channels] over a batch of images.

    `padding` is "SAME", "VALID", or four pairs of numbers. Both data formats work on every device.
    """
    w = one_of("filters", filters, "filter", filter)
    options = _planar(strides, padding, data_format, dilations)
    return apply("Conv2D", input, w, use_cudnn_on_gpu=use_cudnn_on_gpu, name=name, **options)


@export("nn.conv2d_backprop_input")
def conv2d_backprop_input(
    input_sizes: TensorLike,
    filter: TensorLike = None,
    out_backprop: TensorLike = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = [1, 1, 1, 1],  # noqa: B006
    name: str | None = None,
    filters: TensorLike = None,
) -> Tensor:
    """The gradient of `tf.nn.conv2d` with respect to its input, of shape `input_sizes`."""
    w = one_of("filters", filters, "filter", filter)
    options = {**_planar(strides, padding, data_format, dilations), "use_cudnn_on_gpu": use_cudnn_on_gpu}
    return apply("Conv2DBackpropInput", input_sizes, w, out_backprop, name=name, **options)


@export("nn.conv2d_backprop_filter")
def conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = [1, 1, 1, 1],  # noqa: B006
    name: str | None = None,
) -> Tensor:
    """The gradient of `tf.nn.conv2d` with respect to its filter, of shape `filter_sizes`."""
    options = {**_planar(strides, padding, data_format, dilations), "use_cudnn_on_gpu": use_cudnn_on_gpu}
    return apply("Conv2DBackpropFilter", input, filter_sizes, out_backprop, name=name, **options)


@export("nn.conv2d_transpose")
def conv2d_transpose(
    value: TensorLike = None,
    filter: TensorLike = None,
    output_shape: TensorLike = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: TensorLike = None,
    filters: TensorLike = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of a convolution; its filters are [height, width, out_channels, in_channels]."""
    x = one_of("input", input, "value", value)
    w = one_of("filters", filters, "filter", filter)
    with name_scope(name, "conv2d_transpose", [x, w, output_shape]) as scope:
        options = _planar(strides, padding, data_format, dilations)
        return apply("Conv2DBackpropInput", output_shape, w, x, name=scope, **options)


# -- depthwise ---------------------------------------------------------------------------------------

_DEEP = _FILTER[:, :, :, :2].copy()
_DEEP_SHAPE, _DEEP_OUT = np.array(_DEEP.shape, np.int32), _random.randn(2, 5, 4, 4).astype(np.float32)

op(
    "DepthwiseConv2dNative",
    _FORWARD,
    f"T: floating; {_DEPTHWISE}",
    shape=_windowed(conv_shapes.depthwise_conv2d_shape, "explicit_paddings"),
    heavy=True,
    examples=[case(_IMAGE, _DEEP, **_SAME), case(_IMAGE, _DEEP, **_VALID)],
)(_planar_kernel(depthwise_kernels.depthwise_conv2d))

op(
    "DepthwiseConv2dNativeBackpropInput",
    _TO_INPUT,
    f"T: floating; {_DEPTHWISE}",
    shape=_given(0, 4),
    static=["input_sizes"],
    heavy=True,
    examples=[case(_IMAGE_SHAPE, _DEEP, _DEEP_OUT, **_SAME)],
)(_planar_kernel(depthwise_kernels.depthwise_conv2d_backprop_input, 0))

op(
    "DepthwiseConv2dNativeBackpropFilter",
    _TO_FILTER,
    f"T: floating; {_DEPTHWISE}",
    shape=_given(1, 4),
    static=["filter_sizes"],
    heavy=True,
    examples=[case(_IMAGE, _DEEP_SHAPE, _DEEP_OUT, **_SAME)],
)(_planar_kernel(depthwise_kernels.depthwise_conv2d_backprop_filter, 1))

_declare_gradients(
    "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"
)


depthwise_conv2d_native = op_function(
    "DepthwiseConv2dNative",
    "input, filter, strides, padding, data_format='NHWC', dilations=[1, 1, 1, 1], name=None",
    "nn.depthwise_conv2d_native",
    "A convolution of each channel with filters of its own: [height, width, channels, multiplier].",
)


depthwise_conv2d_native_backprop_input = op_function(
    "DepthwiseConv2dNativeBackpropInput",
    "input_sizes, filter, out_backprop, strides, padding, data_format='NHWC', dilations=[1, 1, 1, 1], "
    "name=None",
    "nn.depthwise_conv2d_native_backprop_input nn.depthwise_conv2d_backprop_input",
    "The gradient of `depthwise_conv2d_native` with respect to its input, of shape `input_sizes`.",
)


depthwise_conv2d_native_backprop_filter = op_function(
    "DepthwiseConv2dNativeBackpropFilter",
    "input, filter_sizes, out_backprop, strides, padding, data_format='NHWC', dilations=[1, 1, 1, 1], "
    "name=None",
    "nn.depthwise_conv2d_native_backprop_filter nn.depthwise_conv2d_backprop_filter",
    "The gradient of `depthwise_conv2d_native` with respect to its filter, of shape `filter_sizes`.",
)


# -- three dimensions --------------------------------------------------------------------------------


def _solid_kernel(function: Kernel, sizes: int | None = None) -> Kernel:
    """A kernel with the attributes of a 3-D convolution; argument `sizes`, if any, is a shape."""

    def call(
        xp: ArrayModule,
        *arrays: Array,
        strides: list[int],
        padding: bytes,
        data_format: bytes,
        dilations: list[int],
    ) -> Array:
        result: Array = function(
            xp,
            *(ints(a) if i == sizes else a for i, a in enumerate(arrays)),
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilations=dilations,
        )
        return result

    return call


_VOLUME_SHAPE, _FILTER_3D_SHAPE = np.array(_VOLUME.shape, np.int32), np.array(_FILTER_3D.shape, np.int32)
_OUT_3D = _random.randn(1, 3, 4, 3, 3).astype(np.float32)

op(
    "Conv3D",
    _FORWARD,
    f"T: floating; {_CONV3D}",
    shape=_windowed(conv_shapes.conv3d_shape),
    heavy=True,
    examples=[case(_VOLUME, _FILTER_3D, **_SAME_3D)],
)(_solid_kernel(conv_kernels.conv3d))

op(
    "Conv3DBackpropInputV2",
    "input_sizes: Tshape[1], filter: T, out_backprop: T -> output: T",
    f"T: floating; {_CONV3D}; Tshape: index = int32",
    shape=_given(0, 5),
    static=["input_sizes"],
    heavy=True,
    examples=[case(_VOLUME_SHAPE, _FILTER_3D, _OUT_3D, **_SAME_3D)],
)(_solid_kernel(conv_kernels.conv3d_backprop_input, 0))

op(
    "Conv3DBackpropFilterV2",
    _TO_FILTER,
    f"T: floating; {_CONV3D}",
    shape=_given(1, 5),
    static=["filter_sizes"],
    heavy=True,
    examples=[case(_VOLUME, _FILTER_3D_SHAPE, _OUT_3D, **_SAME_3D)],
)(_solid_kernel(conv_kernels.conv3d_backprop_filter, 1))

_declare_gradients("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")


def _solid(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> dict[str, Any]:
    """The attributes of a 3-D convolution, from what its Python functions accept."""
    layout = data_format or "NDHWC"
    first = layout.startswith("NC")
    return dict(
        strides=spatial_list(strides, 3, first, "strides"),
        padding=padding,
        data_format=layout,
        dilations=spatial_list(dilations, 3, first, "dilations"),
    )


@export("nn.conv3d")
def conv3d(
    input: TensorLike,
    filter: TensorLike = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str | None = "NDHWC",
    dilations: Any = [1, 1, 1, 1, 1],  # noqa: B006
    name: str | None = None,
    filters: TensorLike = None,
) -> Tensor:
    """Slides filters of shape [depth, height, width, in_channels, out_channels] over volumes."""
    w = one_of("filters", filters, "filter", filter)
    return apply("Conv3D", input, w, name=name, **_solid(strides, padding, data_format, dilations))


@export("nn.conv3d_backprop_filter", "nn.conv3d_backprop_filter_v2")
def conv3d_backprop_filter_v2(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    dilations: Any = [1, 1, 1, 1, 1],  # noqa: B006
    name: str | None = None,
) -> Tensor:
    """The gradient of `tf.nn.conv3d` with respect to its filter, of shape `filter_sizes`."""
    options = _solid(strides, padding, data_format, dilations)
    return apply("Conv3DBackpropFilterV2", input, filter_sizes, out_backprop, name=name, **options)


@export("nn.conv3d_transpose")
def conv3d_transpose(
    value: TensorLike,
    filter: TensorLike = None,
    output_shape: TensorLike = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = "NDHWC",
    name: str | None = None,
    input: TensorLike = None,
    filters: TensorLike = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of a 3-D convolution: filters are [depth, height, width, out_channels, in_channels]."""
    x = one_of("input", input, "value", value)
    w = one_of("filters", filters, "filter", filter)
    with name_scope(name, "conv3d_transpose", [x, w, output_shape]) as scope:
        options = _solid(strides, padding, data_format, dilations)
        return apply("Conv3DBackpropInputV2", output_shape, w, x, name=scope, **options)
