"""`tf.contrib.layers`: normalization, pooling, dropout, and the small ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorfleet.api.layers.core import Dropout
from tensorfleet.api.layers.normalization import BatchNormalization
from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    add_to_collections,
    control_dependencies,
    get_collection_ref,
    name_scope,
)
from tensorfleet.ops.nn.activations import relu
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope
from tensorfleet_legacy.contrib.layers.layers import activated, collected, fully_connected, pair, renaming
from tensorfleet_legacy.contrib.layers.layers_weighted_batch_norm import normalized


def _channels_first(data_format: str) -> bool:
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    return data_format == "NCHW"


@export("contrib.layers.batch_norm")
@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Tensor:
    """Gives each channel mean `beta` and deviation `gamma`; moving averages serve outside training.

    Their updates go to `updates_collections`, for the training step to depend on; with None they happen
    whenever the result is computed.
    """
    given = dict(locals())
    if batch_weights is not None and fused:
        raise ValueError("Weighted mean and variance is not currently supported for fused batch norm.")
    first_axis = _channels_first(data_format)
    options = {f"{what}_initializer": value for what, value in (param_initializers or {}).items()}
    options |= {f"{what}_regularizer": value for what, value in (param_regularizers or {}).items()}
    getter = renaming({}, variables_collections)
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=getter) as sc:
        inputs = to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError(f"Inputs {inputs.name} has undefined rank")
        if batch_weights is not None or zero_debias_moving_mean:
            outputs = normalized(inputs, given, first_axis)
            return activated(outputs, activation_fn, outputs_collections, sc.name)
        # Rows are normalized as images of one pixel: the fused kernel is for images.
        as_images = rank == 2 and fused is not False
        if as_images:
            channels = inputs.shape.as_list()[-1]
            inputs = find("reshape")(inputs, [-1, channels, 1, 1] if first_axis else [-1, 1, 1, channels])
        layer = BatchNormalization(
            axis=1 if first_axis else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            trainable=trainable,
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
            fused=fused,
            name=sc.name,
            dtype=inputs.dtype.base_dtype,
            _scope=sc,
            _reuse=reuse,
            **options,
        )
        outputs = layer.apply(inputs, training=is_training)
        outputs = _updated(layer.updates, updates_collections, outputs)
        if as_images:
            outputs = find("reshape")(outputs, [-1, channels])
        return activated(outputs, activation_fn, outputs_collections, sc.name)


def _updated(updates: list, collections: Any, outputs: Tensor) -> Tensor:
    """The layer has put its updates among the graph's: here they go where the user wants them."""
    usual = get_collection_ref(GraphKeys.UPDATE_OPS)
    usual[:] = [op for op in usual if op not in updates]
    if collections is not None:
        for update in updates:
            add_to_collections(collections, update.outputs[0] if update.outputs else update)
        return outputs
    if not updates:
        return outputs
    with control_dependencies(updates):
        return find("identity")(outputs)


@export("contrib.layers.layer_norm")
@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Tensor:
    """Gives each example mean `beta` and deviation `gamma` over its axes from `begin_norm_axis` on."""
    getter = renaming({}, variables_collections)
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse, custom_getter=getter) as sc:
        inputs = to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError(f"Inputs {inputs.name} has undefined rank.")
        begin = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        if begin_params_axis >= rank or begin >= rank:
            raise ValueError(
                f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({begin}) must be < rank(inputs) ({rank})"
            )
        params = inputs.shape[begin_params_axis:]
        if not params.is_fully_defined():
            raise ValueError(
                f"Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not fully defined: {inputs.shape}"
            )
        variable, kind = find("get_variable"), inputs.dtype.base_dtype
        beta = (
            variable("beta", params, kind, find("zeros_initializer")(), trainable=trainable)
            if center
            else None
        )
        gamma = (
            variable("gamma", params, kind, find("ones_initializer")(), trainable=trainable)
            if scale
            else None
        )
        mean, variance = find("nn.moments")(inputs, list(range(begin, rank)), keep_dims=True)
        epsilon = 1e-12 if kind != find("float16") else 1e-3
        outputs = find("nn.batch_normalization")(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.shape)
        return activated(outputs, activation_fn, outputs_collections, sc.name)


def _pooling(function: str, default_name: str, name: str) -> Callable:
    def pool(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = "NHWC",
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Tensor:
        first = _channels_first(data_format)
        window, step = pair(kernel_size), pair(stride)
        with name_scope(scope, default_name, [inputs]) as sc:
            pooled = find(function)(
                to_tensor(inputs),
                [1, 1, *window] if first else [1, *window, 1],
                [1, 1, *step] if first else [1, *step, 1],
                padding.upper(),
                data_format=data_format,
            )
            return collected(outputs_collections, sc.rstrip("/"), pooled)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"{name[:3].capitalize()}-pooling of images, two by two when not told otherwise."
    return add_arg_scope(pool)


max_pool2d = _pooling("nn.max_pool", "MaxPool2D", "max_pool2d")
avg_pool2d = _pooling("nn.avg_pool", "AvgPool2D", "avg_pool2d")
publish(max_pool2d, "contrib.layers.max_pool2d")
publish(avg_pool2d, "contrib.layers.avg_pool2d")


@export("contrib.layers.dropout")
@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Tensor:
    """Keeps each value with `keep_prob` in training, scaled up; else passes them on."""
    with variable_scope(scope, "Dropout", [inputs]) as sc:
        inputs = to_tensor(inputs)
        layer = Dropout(1 - keep_prob, noise_shape, seed, name=sc.name, _scope=sc)
        return collected(outputs_collections, sc.name, layer.apply(inputs, training=is_training))


@export("contrib.layers.flatten")
@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Tensor:
    """Makes one axis of all but the first."""
    with name_scope(scope, "Flatten", [inputs]) as sc:
        return collected(outputs_collections, sc.rstrip("/"), find("layers.flatten")(to_tensor(inputs)))


@export("contrib.layers.one_hot_encoding")
@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """Class numbers as rows with a single one."""
    with name_scope(scope, "OneHotEncoding", [labels, num_classes]) as sc:
        labels = to_tensor(labels)
        if labels.dtype == find("int32"):
            labels = find("to_int64")(labels)
        rows = find("one_hot")(labels, num_classes, on_value=on_value, off_value=off_value)
        return collected(outputs_collections, sc.rstrip("/"), rows)


@export("contrib.layers.bias_add")
@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:
    """Adds a bias for each channel."""
    getter = renaming({}, variables_collections)
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse, custom_getter=getter) as sc:
        inputs = to_tensor(inputs)
        size = inputs.shape.as_list()[1 if _channels_first(data_format) else -1]
        biases = find("get_variable")(
            "biases",
            [size],
            inputs.dtype.base_dtype,
            initializer or Zeros(),
            regularizer,
            trainable=trainable,
        )
        outputs = find("nn.bias_add")(inputs, biases, data_format=data_format)
        return activated(outputs, activation_fn, outputs_collections, sc.name)


@export("contrib.layers.softmax")
@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Tensor:
    """Softmax over the last axis, whatever the rank."""
    with variable_scope(scope, "softmax", [logits]):
        logits = to_tensor(logits)
        flat = find("reshape")(logits, [-1, logits.shape.as_list()[-1]])
        result = find("reshape")(find("nn.softmax")(flat), find("shape")(logits))
        result.set_shape(logits.shape)
        return result


@export("contrib.layers.unit_norm")
@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Tensor:
    """Scales the vectors along an axis to length one."""
    with variable_scope(scope, "UnitNorm", [inputs]):
        inputs = to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError("The input rank must be known.")
        if not 0 <= dim < rank:
            raise ValueError("dim must be positive but smaller than the input rank.")
        length = find("sqrt")(epsilon + find("reduce_sum")(find("square")(inputs), dim, True))
        return find("div")(inputs, length)


@export("contrib.layers.repeat")
@add_arg_scope
def repeat(inputs: Any, repetitions: int, layer: Callable, *args: Any, **kwargs: Any) -> Any:
    """Applies a layer several times over; the scopes are numbered from 1."""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        inputs = to_tensor(inputs)
        name = scope if scope is not None else _name_of(layer, "repeat")
        outputs = inputs
        for i in range(repetitions):
            outputs = layer(outputs, *args, **{**kwargs, "scope": f"{name}_{i + 1}"})
        return outputs


@export("contrib.layers.stack")
@add_arg_scope
def stack(inputs: Any, layer: Callable, stack_args: Any, **kwargs: Any) -> Any:
    """Applies a layer with each of the arguments in turn; the scopes are numbered from 1."""
    scope = kwargs.pop("scope", None)
    if not isinstance(stack_args, (list, tuple)):
        raise TypeError("stack_args need to be a list or tuple")
    with variable_scope(scope, "Stack", [inputs]):
        outputs = to_tensor(inputs)
        name = scope if scope is not None else _name_of(layer, "stack")
        for i, given in enumerate(stack_args):
            arguments = given if isinstance(given, (list, tuple)) else [given]
            outputs = layer(outputs, *arguments, **{**kwargs, "scope": f"{name}_{i + 1}"})
        return outputs


@export("contrib.layers.embed_sequence")
def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """The rows of an embedding for a batch of sequences of ids."""
    if not reuse and (vocab_size is None or embed_dim is None):
        raise ValueError(
            f"Must specify vocab size and embedding dimension when not reusing. Got vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        table = find("contrib.framework.model_variable")(
            "embeddings",
            [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        return find("nn.embedding_lookup")(table, ids)


def _name_of(layer: Any, otherwise: str) -> str:
    """The name of a layer's scopes: its function's name, or that of the function it is a part of."""
    own = getattr(layer, "func", layer)
    return str(getattr(layer, "__name__", getattr(own, "__name__", otherwise)))


# They have no name of their own: `stack` calls the scopes of `relu` fully_connected, and checkpoints hold that.
for _name, _activation in (
    ("relu", relu),
    ("linear", None),
    ("relu6", find("nn.relu6")),
    ("elu", find("nn.elu")),
):
    publish(functools.partial(fully_connected, activation_fn=_activation), f"contrib.layers.{_name}")
