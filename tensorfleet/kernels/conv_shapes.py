"""The shapes that convolutions give, while dimensions, or whole shapes, may be unknown. Errors are in TensorFlow's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypedDict, Unpack

from tensorfleet.kernels.windows import channel_axis, format_name, require_rank, windowed_shape

#: A shape of which some dimensions, or all, are unknown.
PartialDims: TypeAlias = Sequence[int | None] | None


class ConvAttrs(TypedDict, total=False):
    """The attributes of a convolution, in the order of `data_format`."""

    strides: Sequence[int]
    padding: bytes | str
    explicit_paddings: Sequence[int]
    data_format: bytes | str
    dilations: Sequence[int]


def conv2d_shape(
    x_shape: PartialDims, w_shape: PartialDims, **attrs: Unpack[ConvAttrs]
) -> tuple[int | None, ...]:
    """The shape of `conv2d`."""
    return _conv_shape("Conv2D", x_shape, w_shape, {"data_format": "NHWC", **attrs})


def conv3d_shape(
    x_shape: PartialDims, w_shape: PartialDims, **attrs: Unpack[ConvAttrs]
) -> tuple[int | None, ...]:
    """The shape of `conv3d`."""
    return _conv_shape("Conv3D", x_shape, w_shape, {"data_format": "NDHWC", **attrs})


def depthwise_conv2d_shape(
    x_shape: PartialDims, w_shape: PartialDims, **attrs: Unpack[ConvAttrs]
) -> tuple[int | None, ...]:
    """The shape of `depthwise_conv2d`."""
    attrs = {"data_format": "NHWC", **attrs}
    x_dims, w_dims = _known_rank("DepthwiseConv2D", x_shape, w_shape, attrs)
    depth = x_dims[channel_axis(attrs["data_format"])]
    filter_depth, multiplier = w_dims[-2:]
    if depth is not None and filter_depth is not None and depth != filter_depth:
        raise ValueError(f"Dimensions must be equal, but are {depth} and {filter_depth}")
    depth = filter_depth if depth is None else depth
    channels = None if depth is None or multiplier is None else depth * multiplier
    return _window_shape(x_dims, w_dims, channels, attrs)


def count_groups(depth: int, filter_depth: int, out_depth: int | None) -> int:
    """The number of groups that channels fall into: filters may see only a part of the input's depth."""
    if filter_depth <= 0 or depth % filter_depth:
        raise ValueError(
            f"Depth of input ({depth}) is not a multiple of input depth of filter ({filter_depth})"
        )
    groups = depth // filter_depth
    if out_depth is not None and groups and out_depth % groups:
        raise ValueError(
            f"Depth of output ({out_depth}) is not a multiple of the number of groups ({groups})"
        )
    return groups


def _conv_shape(
    op: str, x_shape: PartialDims, w_shape: PartialDims, attrs: ConvAttrs
) -> tuple[int | None, ...]:
    x_dims, w_dims = _known_rank(op, x_shape, w_shape, attrs)
    depth = x_dims[channel_axis(attrs["data_format"])]
    filter_depth, out_depth = w_dims[-2:]
    if depth is not None and filter_depth is not None:
        count_groups(depth, filter_depth, out_depth)
    return _window_shape(x_dims, w_dims, out_depth, attrs)


def _known_rank(
    op: str, x_shape: PartialDims, w_shape: PartialDims, attrs: ConvAttrs
) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    rank = len(attrs["data_format"])
    require_rank(x_shape, rank)
    require_rank(w_shape, rank)
    if len(attrs["strides"]) != rank:
        raise ValueError(
            f"{op} on data format {format_name(attrs['data_format'])} requires the stride attribute "
            f"to contain {rank} values, but got: {len(attrs['strides'])}"
        )
    unknown = (None,) * rank
    return tuple(unknown if x_shape is None else x_shape), tuple(unknown if w_shape is None else w_shape)


def _window_shape(
    x_dims: tuple[int | None, ...], w_dims: tuple[int | None, ...], channels: int | None, attrs: ConvAttrs
) -> tuple[int | None, ...]:
    size, axis = list(w_dims[:-2]), channel_axis(attrs["data_format"])
    explicit = attrs.get("explicit_paddings", ())
    if any(explicit[2 * i] or explicit[2 * i + 1] for i in (0, axis) if explicit):
        raise ValueError("Nonzero explicit padding in the batch or depth dimensions is not supported")
    size.insert(0, 1)
    size.insert(axis, 1)
    shape = windowed_shape(x_dims, size, attrs["strides"], attrs["padding"], explicit, attrs.get("dilations"))
    return (*shape[:axis], channels, *shape[axis + 1 :])
