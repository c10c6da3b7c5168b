"""`tf.contrib.layers`: fully connected and convolutional layers with their weights, biases and activations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorfleet.api.layers.convolutional import (
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    SeparableConv2D,
)
from tensorfleet.api.layers.core import Dense
from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.api.variables.partitioned import PartitionedVariable
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.arguments import function, like
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import add_to_collection, get_collection
from tensorfleet.ops.nn.activations import relu
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope
from tensorfleet_legacy.contrib.framework.variables import add_model_variable, on_model_device
from tensorfleet_legacy.contrib.layers.regularizers import xavier_initializer

_ZEROS = Zeros()
_NAMES = {"kernel": "weights", "bias": "biases"}


def renaming(names: dict[str, str], collections: Any = None) -> Callable:
    """A custom getter under which layers make model variables with other names, in the user's collections."""

    def get(getter: Callable, name: str, *args: Any, **kwargs: Any) -> Any:
        head, slash, leaf = name.rpartition("/")
        leaf = names.get(leaf, leaf)
        with on_model_device():
            result = getter(f"{head}{slash}{leaf}", *args, **kwargs)
        for part in result if isinstance(result, (list, tuple, PartitionedVariable)) else [result]:
            add_model_variable(part)
            for collection in collections_for(collections, leaf):
                if not any(part is known for known in get_collection(collection)):
                    add_to_collection(collection, part)
        return result

    return get


def collections_for(collections: Any, name: str) -> list:
    """The user's collections that a variable belongs to: all, or the ones under its name in a dict."""
    if isinstance(collections, dict):
        collections = collections.get(name)
    if isinstance(collections, str):
        return [collections]
    return list(collections or [])


def collected(collections: Any, alias: str, outputs: Tensor) -> Tensor:
    """A layer's result, also put into the user's collections."""
    for collection in collections_for(collections, ""):
        add_to_collection(collection, outputs)
    if collections:
        outputs.__dict__.setdefault("aliases", []).append(alias)
    return outputs


def activated(outputs: Tensor, activation_fn: Any, collections: Any, alias: str) -> Tensor:
    """A layer's result after its activation, also put into the user's collections."""
    return collected(collections, alias, outputs if activation_fn is None else activation_fn(outputs))


def _options(given: dict[str, Any], inputs: Tensor, scope: Any) -> dict[str, Any]:
    """The common arguments of all layers of `tf.layers`, from the arguments of a function here."""
    return dict(
        use_bias=given["normalizer_fn"] is None and given["biases_initializer"] is not None,
        bias_initializer=given["biases_initializer"],
        bias_regularizer=given["biases_regularizer"],
        trainable=given["trainable"],
        name=scope.name,
        dtype=inputs.dtype.base_dtype,
        _scope=scope,
        _reuse=given["reuse"],
    )


def _kernel(given: dict[str, Any]) -> dict[str, Any]:
    initializer = given["weights_initializer"] or xavier_initializer()
    return dict(kernel_initializer=initializer, kernel_regularizer=given["weights_regularizer"])


def _windows(given: dict[str, Any]) -> dict[str, Any]:
    same = dict(kernel_size=given["kernel_size"], padding=given["padding"], strides=given["stride"])
    return dict(filters=given["num_outputs"], data_format=_layout(given["data_format"]), **same)


def finish(outputs: Tensor, given: dict[str, Any], alias: str) -> Tensor:
    """The steps after the weights: normalization, activation, collections."""
    if given["normalizer_fn"] is not None:
        outputs = given["normalizer_fn"](outputs, **(given["normalizer_params"] or {}))
    return activated(outputs, given["activation_fn"], given["outputs_collections"], alias)


@export("contrib.layers.fully_connected")
@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """`activation(inputs @ weights + biases)`; with a `normalizer_fn`, that in place of the biases."""
    return connected(locals(), Dense)


def connected(given: dict[str, Any], layer_class: type) -> Tensor:
    """A fully connected layer of a class, by the arguments of `fully_connected`."""
    if not isinstance(given["num_outputs"], int):
        raise ValueError(f"num_outputs type should be one of [int], got {given['num_outputs']!r}.")
    getter, here = renaming(_NAMES, given["variables_collections"]), (given["scope"], "fully_connected")
    with variable_scope(*here, [given["inputs"]], reuse=given["reuse"], custom_getter=getter) as sc:
        inputs = to_tensor(given["inputs"])
        layer = layer_class(given["num_outputs"], **_kernel(given), **_options(given, inputs, sc))
        return finish(layer.apply(inputs), given, sc.name)


@export("contrib.layers.convolution")
@add_arg_scope
def convolution(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Any = relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    conv_dims: int | None = None,
) -> Tensor:
    """A convolution of sequences, images or volumes, as the rank of `inputs` says."""
    return convolved(locals(), {3: Conv1D, 4: Conv2D, 5: Conv3D})


def convolved(given: dict[str, Any], classes: dict[int, type]) -> Tensor:
    """A convolution by a layer for the rank of the inputs, by the arguments of `convolution`."""
    if given["data_format"] not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise ValueError(f"Invalid data_format: {given['data_format']!r}")
    getter, here = renaming(_NAMES, given["variables_collections"]), (given["scope"], "Conv")
    with variable_scope(*here, [given["inputs"]], reuse=given["reuse"], custom_getter=getter) as sc:
        inputs = to_tensor(given["inputs"])
        rank, dims = inputs.shape.ndims, given.get("conv_dims")
        if rank not in classes:
            raise ValueError(f"Convolution not supported for input with rank {rank}")
        if dims is not None and dims + 2 != rank:
            raise ValueError(f"Convolution expects input with rank {dims + 2}, got {rank}")
        options = {**_windows(given), **_kernel(given), **_options(given, inputs, sc)}
        layer = classes[rank](dilation_rate=given["rate"], **options)
        return finish(layer.apply(inputs), given, sc.name)


def _layout(data_format: str | None) -> str:
    return "channels_first" if data_format and data_format.startswith("NC") else "channels_last"


def _of_rank(dims: int, name: str) -> Callable:
    def conv(given: dict[str, Any]) -> Tensor:
        return convolution(**given, conv_dims=dims)

    own, does = like(convolution, without=("conv_dims",)), f"`convolution` for inputs of rank {dims + 2}."
    return add_arg_scope(function(own, name, conv, does))


def _transposed(layer_class: type, default_name: str, given: dict[str, Any]) -> Tensor:
    known = ("NCHW", "NHWC") if layer_class is Conv2DTranspose else ("NCDHW", "NDHWC")
    if given["data_format"] not in known:
        raise ValueError(f"data_format has to be either {known[0]} or {known[1]}.")
    getter, reuse = renaming(_NAMES, given["variables_collections"]), given["reuse"]
    here = (given["scope"], default_name, [given["inputs"]])
    with variable_scope(*here, reuse=reuse, custom_getter=getter) as sc:
        inputs = to_tensor(given["inputs"])
        layer = layer_class(**_windows(given), **_kernel(given), **_options(given, inputs, sc))
        return finish(layer.apply(inputs), given, sc.name)


conv2d_transpose = add_arg_scope(
    function(
        like(convolution, without=("rate", "conv_dims"), data_format="NHWC"),
        "conv2d_transpose",
        functools.partial(_transposed, Conv2DTranspose, "Conv2d_transpose"),
        "The transpose of a convolution of images: it enlarges them.",
    )
)
conv3d_transpose = add_arg_scope(
    function(
        like(convolution, without=("rate", "conv_dims"), data_format="NDHWC"),
        "conv3d_transpose",
        functools.partial(_transposed, Conv3DTranspose, "Conv3d_transpose"),
        "The transpose of a convolution of volumes: it enlarges them.",
    )
)
publish(conv3d_transpose, "contrib.layers.conv3d_transpose", "contrib.layers.convolution3d_transpose")
publish(conv2d_transpose, "contrib.layers.conv2d_transpose", "contrib.layers.convolution2d_transpose")


@export("contrib.layers.separable_conv2d", "contrib.layers.separable_convolution2d")
@add_arg_scope
def separable_conv2d(
    inputs: Any,
    num_outputs: int | None,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Any = 1,
    activation_fn: Any = relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    pointwise_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """Filters each channel by itself, then mixes the channels; without `num_outputs` only the first."""
    given = locals()
    names = {
        "bias": "biases",
        "depthwise_kernel": "depthwise_weights",
        "pointwise_kernel": "pointwise_weights",
    }
    getter = renaming(names, variables_collections)
    weights_initializer = weights_initializer or xavier_initializer()
    with variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=getter) as sc:
        inputs = to_tensor(inputs)
        if num_outputs is None:
            outputs = _depthwise(inputs, {**given, "weights_initializer": weights_initializer})
            if normalizer_fn is None and biases_initializer is not None:
                biases = find("get_variable")(
                    "bias",
                    [outputs.shape.as_list()[1 if _layout(data_format) == "channels_first" else -1]],
                    inputs.dtype.base_dtype,
                    biases_initializer,
                    biases_regularizer,
                    trainable=trainable,
                )
                outputs = find("nn.bias_add")(outputs, biases, data_format=data_format)
        else:
            outputs = SeparableConv2D(
                dilation_rate=rate,
                depth_multiplier=depth_multiplier,
                depthwise_initializer=weights_initializer,
                pointwise_initializer=pointwise_initializer or weights_initializer,
                depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer,
                **_windows(given),
                **_options(given, inputs, sc),
            ).apply(inputs)
        return finish(outputs, given, sc.name)


def _depthwise(inputs: Tensor, given: dict[str, Any]) -> Tensor:
    """Each channel filtered by itself."""
    height, width = pair(given["kernel_size"])
    vertical, horizontal = pair(given["stride"])
    layout = given["data_format"]
    first = _layout(layout) == "channels_first"
    channels = inputs.shape.as_list()[1 if first else 3]
    weights = find("get_variable")(
        "depthwise_kernel",
        [height, width, channels, given["depth_multiplier"]],
        inputs.dtype.base_dtype,
        given["weights_initializer"],
        given["weights_regularizer"],
        trainable=given["trainable"],
    )
    strides = [1, 1, vertical, horizontal] if first else [1, vertical, horizontal, 1]
    rates = pair(given["rate"])
    return find("nn.depthwise_conv2d")(
        inputs, weights, strides, given["padding"], rate=rates, data_format=layout
    )


def pair(value: Any) -> tuple[int, int]:
    """Two sizes from one or two."""
    if isinstance(value, int):
        return value, value
    first, second = value
    return int(first), int(second)


convolution1d, convolution2d, convolution3d = (_of_rank(d, f"convolution{d}d") for d in (1, 2, 3))
publish(convolution1d, "contrib.layers.conv1d", "contrib.layers.convolution1d")
publish(convolution2d, "contrib.layers.conv2d", "contrib.layers.convolution2d")
publish(convolution3d, "contrib.layers.conv3d", "contrib.layers.convolution3d")
