"""`tf.contrib.layers`: normalization of single examples, by channel or by groups of channels."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.naming import export, find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope
from tensorfleet_legacy.contrib.layers.layers import activated, renaming


def _known_rank(inputs: Tensor) -> int:
    rank = inputs.shape.ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    return rank


def _parameters(
    channels: int, shape: list[int], kind: Any, center: bool, scale: bool, initializers: Any, trainable: bool
) -> list:
    """`beta` and `gamma`, shaped so that they fit the inputs; None for what is not asked for."""
    result: list = []
    for name, wanted, default in (
        ("beta", center, "zeros_initializer"),
        ("gamma", scale, "ones_initializer"),
    ):
        if not wanted:
            result.append(None)
            continue
        initializer = (initializers or {}).get(name) or find(default)()
        variable = find("get_variable")(name, [channels], kind, initializer, trainable=trainable)
        result.append(find("reshape")(variable, shape))
    return result


@export("contrib.layers.instance_norm")
@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:
    """Gives each channel of each example mean `beta` and deviation `gamma`."""
    inputs = to_tensor(inputs)
    rank = _known_rank(inputs)
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    axis = 1 if data_format == "NCHW" else rank - 1
    channels = inputs.shape[axis].value
    if channels is None:
        raise ValueError(f"Inputs {inputs.name} has undefined channels dimension {inputs.shape}.")
    getter = renaming({}, variables_collections)
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse, custom_getter=getter) as sc:
        shape = [channels if i == axis else 1 for i in range(rank)]
        kind = inputs.dtype.base_dtype
        beta, gamma = _parameters(channels, shape, kind, center, scale, param_initializers, trainable)
        axes = [i for i in range(1, rank) if i != axis]
        mean, variance = find("nn.moments")(inputs, axes, keep_dims=True)
        outputs = find("nn.batch_normalization")(
            inputs, mean, variance, beta, gamma, epsilon, name="instancenorm"
        )
        outputs.set_shape(inputs.shape)
        return activated(outputs, activation_fn, outputs_collections, sc.name)


def _axes(inputs: Tensor, channels_axis: int, reduction_axes: Any) -> tuple[int, list[int]]:
    """The axis of channels and those that are reduced, counted from the front and checked."""
    rank = _known_rank(inputs)
    for axis in (channels_axis, *reduction_axes):
        if not -rank <= axis < rank:
            raise ValueError("Axis is out of bounds.")
    channel, reduced = channels_axis % rank, [axis % rank for axis in reduction_axes]
    if inputs.shape[channel].value is None:
        raise ValueError(f"Inputs {inputs.name} has undefined channel dimension: {channel}.")
    for axis in reduced:
        if inputs.shape[axis].value is None:
            raise ValueError(f"Inputs {inputs.name} has undefined dimensions {axis}.")
    if channel in reduced:
        raise ValueError(
            f"reduction_axis must be mutually exclusive with channels_axis: {reduction_axes}, {channels_axis}"
        )
    return channel, reduced


@export("contrib.layers.group_norm")
@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Any = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Tensor:
    """Gives the channels of each group, of each example, mean `beta` and deviation `gamma` together."""
    inputs = to_tensor(inputs)
    channel, reduced = _axes(inputs, channels_axis, reduction_axes)
    rank, channels = _known_rank(inputs), int(inputs.shape[channel])
    if groups > channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups:
        raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")
    getter = renaming({}, variables_collections)
    with variable_scope(scope, "GroupNorm", [inputs], reuse=reuse, custom_getter=getter) as sc:
        kind, per_group = inputs.dtype.base_dtype, channels // groups
        sizes = find("unstack")(find("shape")(inputs), num=rank)
        known = [s if d is None else d for s, d in zip(sizes, inputs.shape.as_list(), strict=True)]
        grouped = find("reshape")(inputs, [*known[:channel], groups, per_group, *known[channel + 1 :]])
        axes = [channel + 1, *(a if a < channel else a + 1 for a in reduced)]
        shape = [1] * channel + [groups, per_group] + [1] * (rank - channel - 1)
        beta, gamma = _parameters(channels, shape, kind, center, scale, param_initializers, trainable)
        if mean_close_to_zero:
            mean = find("reduce_mean")(grouped, axes, keepdims=True)
            variance = find("reduce_mean")(find("square")(grouped), axes, keepdims=True) - find("square")(
                mean
            )
        else:
            mean, variance = find("nn.moments")(grouped, axes, keep_dims=True)
        normal = find("nn.batch_normalization")(grouped, mean, variance, beta, gamma, epsilon)
        outputs = find("reshape")(normal, known)
        outputs.set_shape(inputs.shape)
        return activated(outputs, activation_fn, outputs_collections, sc.name)
