"""Convolutions made of others: dilated, separable, one-dimensional, and of any rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np

from tensorfleet.api.nn.pooling import (
    Padding,
    Sizes,
    avg_pool,
    avg_pool1d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.space_blocks import required_space_to_batch_paddings
from tensorfleet.ops.nn.conv import conv2d, conv2d_transpose, conv3d, conv3d_transpose
from tensorfleet.ops.nn.shapes import one_of, spatial_list

_LAYOUTS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def _is_channels_first(data_format: str | None) -> bool:
    return data_format is not None and data_format.startswith("NC")


@export("nn.with_space_to_batch")
def with_space_to_batch(
    input: TensorLike,
    dilation_rate: TensorLike,
    padding: Padding,
    op: Callable[[Tensor, int, Padding], Tensor],
    filter_shape: TensorLike = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Applies `op(input, number_of_spatial_dims, padding)` as if its window were dilated.

    Pixels that a dilated window sees together are moved next to each other, `op` runs without dilation and
    without padding, and the results move back.
    """
    x = to_tensor(input, name="input")
    rate = to_tensor(dilation_rate, "int32", name="dilation_rate")
    rates = constant_value(rate)
    if rates is None:
        raise ValueError("dilation_rate must be known while the graph is built.")
    if (rates < 1).any():
        raise ValueError(f"dilation_rate must be positive, but is {rates.tolist()}")
    # Without dilation nothing moves; explicit paddings are taken only here.
    if (rates == 1).all():
        return op(x, len(rates), padding)
    first = 2 if _is_channels_first(data_format) else 1
    dims = (
        list(range(first, first + len(rates)))
        if spatial_dims is None
        else sorted(int(d) for d in spatial_dims)
    )
    base = _base_paddings(padding, filter_shape, rates)
    pads, crops = required_space_to_batch_paddings(_sizes(x, dims), rate, base)
    spread = apply("SpaceToBatchND", x, *_on_leading_axes(rates, pads, dims))
    result = op(spread, len(rates), "VALID")
    return apply("BatchToSpaceND", result, *_on_leading_axes(rates, crops, dims))


def _sizes(x: Tensor, dims: list[int]) -> Tensor | Array:
    known = None if x.shape.rank is None else [x.shape.as_list()[d] for d in dims]
    if known is not None and None not in known:
        return np.array(known, np.int32)
    shape = apply("Shape", x)
    return apply("Pack", [shape[d] for d in dims])


def _base_paddings(padding: Padding, filter_shape: TensorLike, rates: Array) -> Array:
    if padding == "VALID":
        return np.zeros((len(rates), 2), np.int32)
    if padding != "SAME":
        raise ValueError(f"Invalid padding method {padding!r}")
    if filter_shape is None:
        raise ValueError("filter_shape must be specified for SAME padding")
    sizes = constant_value(to_tensor(filter_shape, name="filter_shape"))
    if sizes is None:
        raise ValueError("SAME padding with dilation needs a filter of known size.")
    # What SAME would add around a window of the dilated size.
    extra = (sizes[: len(rates)] - 1) * rates
    return np.stack([extra // 2, extra - extra // 2], 1).astype(np.int32)


def _on_leading_axes(rates: Array, edges: Tensor, dims: list[int]) -> tuple[Array, Tensor | Array]:
    """Blocks and paddings (or crops) for all axes from 1 up to the last dilated one."""
    count, known = dims[-1], constant_value(edges)
    # SpaceToBatchND moves the leading axes; with channels first those before the dilated ones get blocks of one.
    if dims == list(range(1, count + 1)):
        return rates, edges if known is None else known
    block = np.ones(count, np.int32)
    block[[d - 1 for d in dims]] = rates
    if known is None:
        rows = [edges[dims.index(d)] if d in dims else np.zeros(2, np.int32) for d in range(1, count + 1)]
        return block, apply("Pack", rows)
    full = np.zeros((count, 2), np.int32)
    full[[d - 1 for d in dims]] = known
    return block, full


@export("nn.convolution")
def convolution(
    input: TensorLike,
    filter: TensorLike,
    padding: Padding,
    strides: Sequence[int] | None = None,
    dilation_rate: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: TensorLike = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """A convolution over one, two or three spatial dimensions, optionally dilated."""
    w = to_tensor(filter if filters is None else filters, name="filter")
    x = to_tensor(input, name="input")
    rate = one_of("dilations", dilations, "dilation_rate", dilation_rate)
    ranks = (w.shape.rank, x.shape.rank)
    rank = next((r for r in ranks if r is not None), None)
    if rank is None:
        raise ValueError("rank of input and filter must be known")
    count = rank - 2
    if count not in _LAYOUTS:
        raise ValueError(f"`input` must be of rank 3, 4 or 5, but is of rank {rank}")
    steps = list(strides) if strides is not None else [1] * count
    rates = list(rate) if rate is not None else [1] * count
    if any(s > 1 for s in steps) and any(r > 1 for r in rates):
        raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
    with name_scope(name, "convolution", [x, w]) as scope:

        def convolve(value: Tensor, _: int, pads: Padding) -> Tensor:
            return _undilated(count, value, w, steps, pads, data_format, scope)

        if all(r == 1 for r in rates):
            return convolve(x, count, padding)
        sizes = w.shape.as_list()[:count]
        result = with_space_to_batch(x, rates, padding, convolve, sizes, data_format=data_format)
        if str(data_format or "").startswith("NC") and result.shape.rank is not None:
            # Sizes of space that are not known hide that of the channels in front of them.
            result.set_shape([None, w.shape[-1].value, *[None] * count])
        return result


def _undilated(
    count: int, x: Tensor, w: Tensor, steps: list[int], padding: Padding, layout: str | None, name: str
) -> Tensor:
    if count == 1:
        return _conv1d(x, w, steps[0], padding, layout, None, name)
    function = conv2d if count == 2 else conv3d
    return function(x, w, steps, padding, data_format=layout or _LAYOUTS[count], name=name)


@export("nn.conv1d")
def conv1d(
    value: TensorLike = None,
    filters: TensorLike = None,
    stride: Sizes | None = None,
    padding: Padding | None = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: TensorLike = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Slides filters of shape [width, in_channels, out_channels] over a batch of sequences."""
    x = one_of("input", input, "value", value)
    with name_scope(name, "conv1d", [x, filters]) as scope:
        return _conv1d(to_tensor(x), filters, stride, padding, data_format, dilations, scope)


def _conv1d(
    x: TensorLike,
    w: TensorLike,
    stride: Sizes | None,
    padding: Padding | None,
    layout: str | None,
    dilations: Sizes | None,
    name: str,
) -> Tensor:
    first = _check_sequence_layout(layout)
    height = 2 if first else 1
    steps, rates = _as_planar(stride, first, "stride"), _as_planar(dilations, first, "dilations")
    # As TensorFlow does: a sequence is an image one pixel high.
    tall, flat = apply("ExpandDims", x, height), apply("ExpandDims", w, 0)
    planar = "NCHW" if first else "NHWC"
    planes = conv2d(tall, flat, steps, padding, data_format=planar, dilations=rates, name=name)
    return apply("Squeeze", planes, squeeze_dims=[height])


def _as_planar(sizes: Sizes | None, channels_first: bool, what: str) -> list[int]:
    """Strides or rates along a sequence, as those of an image one pixel high."""
    planar: list[int] = spatial_list(sizes, 1, channels_first, what)
    planar.insert(2 if channels_first else 1, 1)
    return planar


def _check_sequence_layout(layout: str | None) -> bool:
    if layout in (None, "NWC", "NHWC"):
        return False
    if layout in ("NCW", "NCHW"):
        return True
    raise ValueError('data_format must be "NWC" or "NCW".')


@export("nn.conv1d_transpose")
def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Sizes,
    padding: Padding = "SAME",
    data_format: str | None = "NWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `tf.nn.conv1d`; its filters are [width, out_channels, in_channels]."""
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as scope:
        first = _check_sequence_layout(data_format)
        height = 2 if first else 1
        steps, rates = _as_planar(strides, first, "strides"), _as_planar(dilations, first, "dilations")
        tall, flat = apply("ExpandDims", to_tensor(input), height), apply("ExpandDims", filters, 0)
        sizes = output_shape if isinstance(output_shape, (list, tuple)) else to_tensor(output_shape)
        whole = apply("ConcatV2", [sizes[:height], [1], sizes[height:]], 0, name="concat")
        planar = "NCHW" if first else "NHWC"
        planes = conv2d_transpose(
            tall, flat, whole, steps, padding, data_format=planar, dilations=rates, name=scope
        )
        return apply("Squeeze", planes, squeeze_dims=[height])


@export("nn.conv_transpose")
def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Sizes,
    padding: Padding = "SAME",
    data_format: str | None = None,
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of a convolution over one, two or three spatial dimensions."""
    if isinstance(output_shape, Tensor):
        size = output_shape.shape[0].value
    elif isinstance(output_shape, Sized):
        size = len(output_shape)
    else:
        raise ValueError("output_shape must be a tensor or sized collection.")
    if size not in (3, 4, 5):
        raise ValueError(f"output_shape must be of length 3, 4 or 5 but was {size}.")
    count = size - 2
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as scope:
        options: dict[str, Any] = dict(
            data_format=data_format or _LAYOUTS[count], dilations=dilations, name=scope
        )
        if count == 1:
            return conv1d_transpose(input, filters, output_shape, strides, padding, **options)
        function: Callable[..., Tensor] = conv2d_transpose if count == 2 else conv3d_transpose
        return function(input, filters, output_shape, strides, padding, **options)


@export("nn.atrous_conv2d")
def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: int, padding: Padding, name: str | None = None
) -> Tensor:
    """A 2-D convolution whose filters see every `rate`-th pixel."""
    return convolution(value, filters, padding, dilation_rate=[int(rate)] * 2, name=name)


@export("nn.atrous_conv2d_transpose")
def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    rate: int,
    padding: Padding,
    name: str | None = None,
) -> Tensor:
    """The transpose of `tf.nn.atrous_conv2d`; its filters are [height, width, out_channels, in_channels]."""
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]) as scope:
        rates = [1, rate, rate, 1]
        return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rates, name=scope)


@export("nn.depthwise_conv2d")
def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    padding: Padding,
    rate: Sizes | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """A convolution of each channel with filters of its own: [height, width, channels, multiplier]."""
    rates = one_of("dilations", dilations, "rate", rate)
    with name_scope(name, "depthwise", [input, filter]) as scope:
        x, w = to_tensor(input, name="tensor_in"), to_tensor(filter, name="filter_in")
        return _depthwise(x, w, strides, padding, rates, data_format, scope)


def _depthwise(
    x: Tensor, w: Tensor, strides: Sizes, padding: Padding, rates: Sizes | None, layout: str | None, name: str
) -> Tensor:
    def convolve(value: Tensor, _: int, pads: Padding) -> Tensor:
        options: dict[str, Any] = dict(strides=strides, padding=pads, data_format=layout or "NHWC", name=name)
        return apply("DepthwiseConv2dNative", value, w, **options)

    sizes = (
        apply("Shape", w)
        if not w.shape.is_fully_defined()
        else to_tensor(np.array(w.shape.as_list(), np.int32), name="Shape")
    )
    return with_space_to_batch(
        x, [1, 1] if rates is None else rates, padding, convolve, sizes, data_format=layout
    )


@export("nn.separable_conv2d")
def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Sizes,
    padding: Padding,
    rate: Sizes | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """A depthwise convolution, then a mixing of channels: a 1 x 1 convolution with `pointwise_filter`."""
    rates = one_of("dilations", dilations, "rate", rate)
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        x = to_tensor(input, name="tensor_in")
        deep = to_tensor(depthwise_filter, name="depthwise_filter")
        point = to_tensor(pointwise_filter, name="pointwise_filter")
        shape = point.shape.with_rank(4).as_list()
        if any(d not in (None, 1) for d in shape[:2]):
            raise ValueError(f"Expected pointwise_filter of height and width 1, got shape {point.shape}.")
        depthwise = _depthwise(x, deep, strides, padding, rates, data_format, "depthwise")
        return conv2d(depthwise, point, [1, 1, 1, 1], "VALID", data_format=data_format or "NHWC", name=scope)


_POOLS: dict[str, dict[int, Callable[..., Tensor]]] = {
    "MAX": {1: max_pool1d, 2: max_pool2d, 3: max_pool3d},
    "AVG": {1: avg_pool1d, 2: avg_pool, 3: avg_pool3d},
}


@export("nn.pool")
def pool(
    input: TensorLike,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: Padding,
    dilation_rate: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """The maximum ("MAX") or average ("AVG") over windows in one, two or three dimensions."""
    rates = one_of("dilations", dilations, "dilation_rate", dilation_rate)
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        x, count = to_tensor(input, name="input"), len(window_shape)
        if count not in _LAYOUTS:
            raise ValueError("It is required that 1 <= num_spatial_dims <= 3.")
        x.shape.with_rank(count + 2)
        steps = [1] * count if strides is None else list(strides)
        rate = [1] * count if rates is None else list(rates)
        if any(s > 1 for s in steps) and any(r > 1 for r in rate):
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
        if any(s > w for s, w in zip(steps, window_shape, strict=True)) and padding == "SAME":
            raise ValueError("strides > window_shape not supported with padding SAME")
        if pooling_type not in _POOLS:
            raise ValueError(f"{count}-D {pooling_type} pooling is not supported.")
        function, layout = _POOLS[pooling_type][count], data_format or _LAYOUTS[count]

        def reduce(value: Tensor, _: int, pads: Padding) -> Tensor:
            return function(value, list(window_shape), steps, pads, layout, name=scope)

        return with_space_to_batch(x, rate, padding, reduce, list(window_shape), data_format=data_format)
