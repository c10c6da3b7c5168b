"""Layers of separable convolutions: each channel on its own, then a mixing of channels."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import export
from tensorfleet.layers.conv_base import SeparableConv
from tensorfleet.layers.options import function_of, given
from tensorfleet.variables.initializers import Zeros

_ZEROS = Zeros()


@export("layers.SeparableConv1D")
class SeparableConv1D(SeparableConv):
    """Filters each channel of a batch of sequences, then mixes the channels."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(1, given(locals()))


separable_conv1d = export("layers.separable_conv1d")(function_of(SeparableConv1D, "separable_conv1d"))


@export("layers.SeparableConv2D")
class SeparableConv2D(SeparableConv):
    """Filters each channel of a batch of images, then mixes the channels."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = (1, 1),
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, given(locals()))


separable_conv2d = export("layers.separable_conv2d")(function_of(SeparableConv2D, "separable_conv2d"))
