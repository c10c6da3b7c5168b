"""Convolution layers."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import export
from tensorfleet.layers.conv_base import Conv
from tensorfleet.layers.options import function_of, given
from tensorfleet.variables.initializers import Zeros

_ZEROS = Zeros()


@export("layers.Conv1D")
class Conv1D(Conv):
    """Slides filters over a batch of sequences."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(1, given(locals()))


conv1d = export("layers.conv1d")(function_of(Conv1D, "conv1d"))


@export("layers.Conv2D")
class Conv2D(Conv):
    """Slides filters over a batch of images."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = (1, 1),
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, given(locals()))


conv2d = export("layers.conv2d")(function_of(Conv2D, "conv2d"))


@export("layers.Conv3D")
class Conv3D(Conv):
    """Slides filters over a batch of volumes."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1, 1),
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = (1, 1, 1),
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(3, given(locals()))


conv3d = export("layers.conv3d")(function_of(Conv3D, "conv3d"))
