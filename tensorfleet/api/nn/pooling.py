"""Pooling over sequences, images and volumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.nn.shapes import one_of, spatial_list

#: The sizes or strides of windows: one number for all axes, or one for each axis of space, or one for each axis.
Sizes: TypeAlias = int | Sequence[int]
#: "SAME", "VALID", or how many zeros to add before and after each axis.
Padding: TypeAlias = str | Sequence[Sequence[int]]

_LAYOUTS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def _window(count: int, ksize: Sizes, strides: Sizes, padding: Padding, data_format: str) -> dict[str, Any]:
    first = data_format.startswith("NC")
    return dict(
        ksize=spatial_list(ksize, count, first, "ksize"),
        strides=spatial_list(strides, count, first, "strides"),
        padding=padding,
        data_format=data_format,
    )


def _pooled(
    kind: str,
    scope_name: str,
    count: int,
    x: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    """A pool over images (`count` is 2) or volumes (3)."""
    with name_scope(name, scope_name, [x]) as scope:
        options = _window(count, ksize, strides, padding, data_format or _LAYOUTS[count])
        return apply(kind, x, name=scope, **options)


@export("nn.max_pool")
def max_pool(
    value: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike = None,
) -> Tensor:
    """The largest value in each window of size `ksize`, every `strides`."""
    x = one_of("input", input, "value", value)
    return _pooled("MaxPool", "MaxPool", 2, x, ksize, strides, padding, data_format, name)


@export("nn.max_pool2d")
def max_pool2d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The largest value in each window of a batch of images."""
    return _pooled("MaxPool", "MaxPool2d", 2, input, ksize, strides, padding, data_format, name)


@export("nn.max_pool1d")
def max_pool1d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NWC",
    name: str | None = None,
) -> Tensor:
    """The largest value in each window of a batch of sequences."""
    return _along_sequence("MaxPool", "MaxPool1d", input, ksize, strides, padding, data_format, name)


@export("nn.max_pool3d")
def max_pool3d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The largest value in each window of a batch of volumes."""
    return _pooled("MaxPool3D", "MaxPool3D", 3, input, ksize, strides, padding, data_format, name)


@export("nn.max_pool_with_argmax")
def max_pool_with_argmax(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    Targmax: DTypeLike | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest value in each window, and where it is in the flattened image (or batch)."""
    if data_format != "NHWC":
        raise ValueError("Data formats other than 'NHWC' are not yet supported")
    options = _window(2, ksize, strides, padding, data_format)
    del options["data_format"]
    kind = one_of("output_dtype", output_dtype, "Targmax", Targmax)
    outputs = apply_list(
        "MaxPoolWithArgmax",
        input,
        Targmax=dtypes.int64 if kind is None else kind,
        include_batch_in_index=include_batch_in_index,
        name=name,
        **options,
    )
    return outputs[0], outputs[1]


@export("nn.avg_pool", "nn.avg_pool2d")
def avg_pool(
    value: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike = None,
) -> Tensor:
    """The average of each window of size `ksize`, every `strides`; padding does not count."""
    x = one_of("input", input, "value", value)
    return _pooled("AvgPool", "AvgPool", 2, x, ksize, strides, padding, data_format, name)


@export("nn.avg_pool1d")
def avg_pool1d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NWC",
    name: str | None = None,
) -> Tensor:
    """The average of each window of a batch of sequences."""
    return _along_sequence("AvgPool", "AvgPool1D", input, ksize, strides, padding, data_format, name)


@export("nn.avg_pool3d")
def avg_pool3d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The average of each window of a batch of volumes."""
    return _pooled("AvgPool3D", "AvgPool3D", 3, input, ksize, strides, padding, data_format, name)


def _along_sequence(
    kind: str,
    scope_name: str,
    x: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    """A pool over sequences: that of images one pixel high."""
    with name_scope(name, scope_name, [x]) as scope:
        first = (data_format or "NWC").startswith("NC")
        height = 2 if first else 1
        options: dict[str, Any] = dict(padding=padding, data_format="NCHW" if first else "NHWC")
        for key, value in (("ksize", ksize), ("strides", strides)):
            options[key] = spatial_list(value, 1, first, key)
            options[key].insert(height, 1)
        tall = apply("ExpandDims", to_tensor(x), height)
        return apply("Squeeze", apply_any(kind, tall, name=scope, **options), squeeze_dims=[height])


_POOLS: dict[str, dict[int, Callable[..., Tensor]]] = {
    "max": {1: max_pool1d, 2: max_pool2d, 3: max_pool3d},
    "avg": {1: avg_pool1d, 2: avg_pool, 3: avg_pool3d},
}


def _of_any_rank(
    kind: str,
    x: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    layout: str | None,
    name: str | None,
) -> Tensor:
    value = to_tensor(x)
    if layout is None:
        # Three numbers or fewer are the axes of space; more also have the batch and the channels.
        count = len(ksize) if hasattr(ksize, "__len__") and len(ksize) < 4 else (value.shape.rank or 4) - 2
    else:
        count = len(layout) - 2
    if count not in _LAYOUTS:
        raise ValueError(f"Input tensor must be of rank 3, 4 or 5 but was {count + 2}.")
    return _POOLS[kind][count](value, ksize, strides, padding, layout or _LAYOUTS[count], name=name)


@export("nn.max_pool_v2")
def max_pool_v2(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The largest value in each window of sequences, images or volumes."""
    return _of_any_rank("max", input, ksize, strides, padding, data_format, name)


@export("nn.avg_pool_v2")
def avg_pool_v2(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The average of each window of sequences, images or volumes."""
    return _of_any_rank("avg", input, ksize, strides, padding, data_format, name)
