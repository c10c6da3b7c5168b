"""`tf.contrib.layers`: normalization of single examples, by channel or by groups of channels, and GDN."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import export, find
from tensorfleet.contrib.arg_scope import add_arg_scope
from tensorfleet.contrib.dense_layers import collected, renaming
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.variables.scope import variable_scope


def _known_rank(inputs: Tensor) -> int:
    rank = inputs.shape.ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    return rank


def _parameters(
    channels: int, shape: list[int], kind: Any, center: bool, scale: bool, initializers: Any, trainable: bool
) -> list:
    """`beta` and `gamma`, shaped so that they fit the inputs; None for what is not asked for."""
    made: list = []
    for name, wanted, default in (
        ("beta", center, "zeros_initializer"),
        ("gamma", scale, "ones_initializer"),
    ):
        if not wanted:
            made.append(None)
            continue
        initializer = (initializers or {}).get(name) or find(default)()
        variable = find("get_variable")(name, [channels], kind, initializer, trainable=trainable)
        made.append(find("reshape")(variable, shape))
    return made


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
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collected(outputs_collections, sc.name, outputs)


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
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collected(outputs_collections, sc.name, outputs)


def _at_least(value: Tensor, bound: float) -> Tensor:
    """The larger one; below the bound only what raises the value is passed back."""

    @find("custom_gradient")
    def clipped(x: Tensor) -> Any:
        def back(dy: Tensor) -> Tensor:
            keep = find("logical_or")(x >= bound, dy < 0)
            return find("cast")(keep, dy.dtype) * dy

        return find("maximum")(x, bound), back

    return clipped(value)


@export("contrib.layers.gdn")
def gdn(
    inputs: Any,
    inverse: bool = False,
    beta_min: float = 1e-6,
    gamma_init: float = 0.1,
    reparam_offset: float = 2**-18,
    data_format: str = "channels_last",
    activity_regularizer: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Divides each channel by the root of `beta` plus a weighted sum of all squared channels; `inverse` multiplies."""
    inputs = to_tensor(inputs)
    rank = _known_rank(inputs)
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Unsupported `data_format` for GDN layer: {data_format}.")
    if not 3 <= rank <= 5:
        raise ValueError(f"`input_shape` must be of rank 3 to 5, inclusive: {inputs.shape}")
    axis = 1 if data_format == "channels_first" else rank - 1
    channels = inputs.shape[axis].value
    if channels is None:
        raise ValueError("The channel dimension of the inputs to `GDN` must be defined.")
    pedestal, kind = reparam_offset**2, inputs.dtype.base_dtype
    with variable_scope(name, "gdn", [inputs], reuse=reuse):

        def parameter(name: str, initial: Any, lowest: float) -> Tensor:
            start = find("constant_initializer")(initial) if not callable(initial) else initial
            made = find("get_variable")(f"reparam_{name}", shapes[name], kind, start, trainable=trainable)
            bound = (lowest + pedestal) ** 0.5
            return find("square")(_at_least(to_tensor(made), bound)) - pedestal

        shapes = {"beta": [channels], "gamma": [channels, channels]}
        beta = parameter("beta", (1.0 + pedestal) ** 0.5, beta_min)
        gamma = parameter("gamma", _roots(gamma_init, pedestal), 0.0)
        last = inputs if axis == rank - 1 else find("transpose")(inputs, [0, *range(2, rank), 1])
        pool = find("tensordot")(find("square")(last), gamma, 1) + beta
        outputs = last * (find("sqrt")(pool) if inverse else find("rsqrt")(pool))
        if axis != rank - 1:
            outputs = find("transpose")(outputs, [0, rank - 1, *range(1, rank - 1)])
        outputs.set_shape(inputs.shape)
        if activity_regularizer is not None:
            find("add_to_collection")(find("GraphKeys").REGULARIZATION_LOSSES, activity_regularizer(outputs))
        return outputs


def _roots(gain: float, pedestal: float) -> Any:
    def initial(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return find("sqrt")(find("eye")(int(shape[0]), dtype=dtype) * gain + pedestal)

    return initial
