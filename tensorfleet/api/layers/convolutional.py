"""Convolution layers: plain, separable (per channel, then across channels) and transposed (enlarge their input)."""

from __future__ import annotations

from tensorfleet.api.layers.conv_base import Conv, ConvTranspose, SeparableConv
from tensorfleet.api.layers.options import function_of
from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import export


@export("layers.Conv1D")
class Conv1D(Conv):
    """Slides filters over a batch of sequences."""

    rank = 1


@export("layers.Conv2D")
class Conv2D(Conv):
    """Slides filters over a batch of images."""

    rank = 2
    __init__ = with_defaults(Conv.__init__, strides=(1, 1), dilation_rate=(1, 1))


@export("layers.Conv3D")
class Conv3D(Conv):
    """Slides filters over a batch of volumes."""

    rank = 3
    __init__ = with_defaults(Conv.__init__, strides=(1, 1, 1), dilation_rate=(1, 1, 1))


@export("layers.SeparableConv1D")
class SeparableConv1D(SeparableConv):
    """Filters each channel of a batch of sequences, then mixes the channels."""

    rank = 1


@export("layers.SeparableConv2D")
class SeparableConv2D(SeparableConv):
    """Filters each channel of a batch of images, then mixes the channels."""

    rank = 2
    __init__ = with_defaults(SeparableConv.__init__, strides=(1, 1), dilation_rate=(1, 1))


@export("layers.Conv2DTranspose")
class Conv2DTranspose(ConvTranspose):
    """The transpose of a convolution of images: it enlarges them."""

    rank = 2
    __init__ = with_defaults(ConvTranspose.__init__, strides=(1, 1))


@export("layers.Conv3DTranspose")
class Conv3DTranspose(ConvTranspose):
    """The transpose of a convolution of volumes: it enlarges them."""

    rank = 3
    __init__ = with_defaults(ConvTranspose.__init__, strides=(1, 1, 1))


conv1d = export("layers.conv1d")(function_of(Conv1D, "conv1d"))
conv2d = export("layers.conv2d")(function_of(Conv2D, "conv2d"))
conv3d = export("layers.conv3d")(function_of(Conv3D, "conv3d"))
separable_conv1d = export("layers.separable_conv1d")(function_of(SeparableConv1D, "separable_conv1d"))
separable_conv2d = export("layers.separable_conv2d")(function_of(SeparableConv2D, "separable_conv2d"))
conv2d_transpose = export("layers.conv2d_transpose")(function_of(Conv2DTranspose, "conv2d_transpose"))
conv3d_transpose = export("layers.conv3d_transpose")(function_of(Conv3DTranspose, "conv3d_transpose"))
