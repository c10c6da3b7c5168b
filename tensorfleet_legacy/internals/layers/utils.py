"""`tensorflow.python.layers.utils`: sizes of what convolutions give, and their formats."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import export, find

_CONV = "python.keras.utils.conv_utils"


@export("python.layers.utils.convert_data_format", f"{_CONV}.convert_data_format")
def convert_data_format(data_format: str, ndim: int) -> str:
    """The layout as operations name it."""
    layouts = {3: ("NWC", "NCW"), 4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError("Invalid data_format:", data_format)
    if ndim not in layouts:
        raise ValueError("Input rank not supported:", ndim)
    return layouts[ndim][data_format == "channels_first"]


@export("python.layers.utils.conv_output_length", f"{_CONV}.conv_output_length")
def conv_output_length(
    input_length: Any, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> Any:
    """How long a convolution makes a dimension; None when the input's length is unknown."""
    if input_length is None:
        return None
    lost = 0 if padding in ("same", "causal") else (filter_size - 1) * dilation
    longer = (filter_size - 1) * dilation if padding == "full" else -lost
    return (input_length + longer + stride - 1) // stride


@export("python.layers.utils.conv_input_length", f"{_CONV}.conv_input_length")
def conv_input_length(output_length: Any, filter_size: int, padding: str, stride: int) -> Any:
    """How long the input of a convolution is, given its output; None when that is unknown."""
    if output_length is None:
        return None
    pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * pad + filter_size


@export("python.layers.utils.deconv_output_length")
def deconv_output_length(input_length: Any, filter_size: int, padding: str, stride: int) -> Any:
    """How long a transposed convolution makes a dimension; None when the input's length is unknown."""
    return longer_length(input_length, filter_size, padding, None, stride)


@export(f"{_CONV}.deconv_output_length")
def longer_length(
    input_length: Any,
    filter_size: int,
    padding: str,
    output_padding: int | None = None,
    stride: int = 0,
    dilation: int = 1,
) -> Any:
    """The same, also where `output_padding` says by how much more."""
    if input_length is None:
        return None
    wide = filter_size + (filter_size - 1) * (dilation - 1)
    if output_padding is not None:
        pad = {"same": wide // 2, "valid": 0, "full": wide - 1}[padding]
        return (input_length - 1) * stride + wide - 2 * pad + output_padding
    more = {"valid": max(wide - stride, 0), "full": -(stride + wide - 2), "same": 0}[padding]
    return input_length * stride + more


@export("python.layers.utils.smart_cond", "python.keras.utils.tf_utils.smart_cond")
def smart_cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """One of two functions' results: chosen now when the condition is known, else when it runs."""
    if isinstance(pred, find("Variable")):
        return find("cond")(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return find("python.framework.smart_cond.smart_cond")(pred, true_fn=true_fn, false_fn=false_fn, name=name)
