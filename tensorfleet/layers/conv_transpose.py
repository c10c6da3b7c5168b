"""Layers of transposed convolutions, which enlarge their input."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import export
from tensorfleet.layers.conv_base import ConvTranspose
from tensorfleet.layers.options import function_of, given
from tensorfleet.variables.initializers import Zeros

_ZEROS = Zeros()


@export("layers.Conv2DTranspose")
class Conv2DTranspose(ConvTranspose):
    """The transpose of a convolution of images: it enlarges them."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str = "channels_last",
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


conv2d_transpose = export("layers.conv2d_transpose")(function_of(Conv2DTranspose, "conv2d_transpose"))


@export("layers.Conv3DTranspose")
class Conv3DTranspose(ConvTranspose):
    """The transpose of a convolution of volumes: it enlarges them."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1, 1),
        padding: str = "valid",
        data_format: str = "channels_last",
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


conv3d_transpose = export("layers.conv3d_transpose")(function_of(Conv3DTranspose, "conv3d_transpose"))
