"""`tf.contrib.layers`: pooling of any rank, images as sequences, and layers of few uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, add_to_collections, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.nn.activations import relu
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope
from tensorfleet_legacy.contrib.layers.layers import collected, finish, pair, renaming
from tensorfleet_legacy.contrib.layers.regularizers import xavier_initializer

_ZEROS = Zeros()


def _pooling_3d(function: str, default_name: str, name: str) -> Callable:
    def pool(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = "NDHWC",
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Tensor:
        if data_format not in ("NCDHW", "NDHWC"):
            raise ValueError("data_format has to be either NCDHW or NDHWC.")
        window, step = ([1, v, v, v, 1] if isinstance(v, int) else [1, *v, 1] for v in (kernel_size, stride))
        with name_scope(scope, default_name, [inputs]) as sc:
            volumes = to_tensor(inputs)
            if data_format == "NCDHW":
                volumes = find("transpose")(volumes, [0, 2, 3, 4, 1])
            pooled = find(function)(volumes, window, step, padding.upper())
            if data_format == "NCDHW":
                pooled = find("transpose")(pooled, [0, 4, 1, 2, 3])
            return collected(outputs_collections, sc.rstrip("/"), pooled)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"{name[:3].capitalize()}-pooling of volumes, two by two by two when not told otherwise."
    return add_arg_scope(pool)


publish(_pooling_3d("nn.max_pool3d", "MaxPool3D", "max_pool3d"), "contrib.layers.max_pool3d")
publish(_pooling_3d("nn.avg_pool3d", "AvgPool3D", "avg_pool3d"), "contrib.layers.avg_pool3d")


@export("contrib.layers.pool")
@add_arg_scope
def pool(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """Pooling over the inner axes: the largest (`MAX`) or the mean (`AVG`) of each window."""
    with name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as sc:
        inputs = to_tensor(inputs)
        if inputs.shape.ndims is None:
            raise ValueError("Rank of inputs must be known")
        count = inputs.shape.ndims - 2
        if count < 1:
            raise ValueError("Rank of inputs must be >= 3")
        window, rate, step = (
            [v] * count if isinstance(v, int) else list(v) for v in (kernel_size, dilation_rate, stride)
        )
        outputs = find("nn.pool")(
            inputs,
            window,
            pooling_type,
            padding,
            dilation_rate=rate,
            strides=step,
            data_format=data_format,
            name=sc,
        )
        return collected(outputs_collections, sc.rstrip("/"), outputs)


@export(
    "contrib.layers.conv2d_in_plane",
    "contrib.layers.convolution2d_in_plane",
)
@add_arg_scope
def conv2d_in_plane(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
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
    """Convolves each channel of images with the same kernel."""
    given = locals()
    getter = renaming({}, variables_collections)
    with variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse, custom_getter=getter) as sc:
        inputs = to_tensor(inputs)
        kind, channels = inputs.dtype.base_dtype, inputs.shape[-1].value
        variable, initializer = find("get_variable"), weights_initializer or xavier_initializer()
        weights = variable(
            "weights", [*pair(kernel_size), 1, 1], kind, initializer, weights_regularizer, trainable
        )
        each = find("tile")(weights, [1, 1, channels, 1])
        outputs = find("nn.depthwise_conv2d")(inputs, each, [1, *pair(stride), 1], padding)
        if normalizer_fn is None and biases_initializer is not None:
            biases = variable("biases", [channels], kind, biases_initializer, biases_regularizer, trainable)
            outputs = find("nn.bias_add")(outputs, biases)
        return finish(outputs, given, sc.name)


@export("contrib.layers.images_to_sequence")
@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None, scope: Any = None
) -> Tensor:
    """The columns of images as a sequence: `[width, batch * height, channels]`."""
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with name_scope(scope, "ImagesToSequence", [inputs]) as sc:
        inputs = to_tensor(inputs)
        if data_format == "NCHW":
            inputs = find("transpose")(inputs, [0, 2, 3, 1])
        _, _, width, depth = inputs.shape.as_list()
        columns = find("transpose")(inputs, [2, 0, 1, 3])
        sizes = find("shape")(columns)
        outputs = find("reshape")(columns, [sizes[0], sizes[1] * sizes[2], sizes[3]])
        outputs.set_shape([width, None, depth])
        return collected(outputs_collections, sc.rstrip("/"), outputs)


@export("contrib.layers.sequence_to_images")
@add_arg_scope
def sequence_to_images(
    inputs: Any,
    height: int,
    output_data_format: str = "channels_last",
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """A sequence of columns as the images of a height that it came from."""
    with name_scope(scope, "SequenceToImages", [inputs]) as sc:
        inputs = to_tensor(inputs)
        width, rows, depth = inputs.shape.as_list()
        sizes = find("shape")(inputs)
        known = [sizes[0] if width is None else width, -1, height, sizes[2] if depth is None else depth]
        if rows is not None:
            known[1] = rows // height
        order = [1, 2, 0, 3] if output_data_format == "channels_last" else [1, 3, 2, 0]
        outputs = find("transpose")(find("reshape")(inputs, known), order)
        return collected(outputs_collections, sc.rstrip("/"), outputs)


@export("contrib.layers.maxout")
@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Tensor:
    """The largest of each group of features; there are `num_units` groups."""
    with variable_scope(scope, "MaxOut", [inputs]):
        inputs = to_tensor(inputs)
        shape = inputs.shape.as_list()
        features = shape[axis]
        if features % num_units:
            raise ValueError(f"number of features({features}) is not a multiple of num_units({num_units})")
        at = axis % len(shape)
        dynamic = find("shape")(inputs)
        sizes = [dynamic[i] if d is None else d for i, d in enumerate(shape)]
        split = [*sizes[:at], num_units, features // num_units, *sizes[at + 1 :]]
        outputs = find("reduce_max")(find("reshape")(inputs, split), at + 1)
        outputs.set_shape([*shape[:at], num_units, *shape[at + 1 :]])
        return outputs


@export("contrib.layers.poincare_normalize")
def poincare_normalize(x: Any, axis: Any = 1, epsilon: float = 1e-5, name: str | None = None) -> Tensor:
    """Brings what is outside of the unit ball to just inside of it."""
    with name_scope(name, "poincare_normalize", [x]):
        x = to_tensor(x)
        inverse = find("rsqrt")(find("reduce_sum")(find("square")(x), axis, keepdims=True))
        return x * find("minimum")((1.0 - epsilon) * inverse, 1.0)


@export("contrib.layers.scale_gradient")
def scale_gradient(inputs: Any, gradient_multiplier: Any) -> Tensor:
    """The same values; their gradient is multiplied."""

    @find("custom_gradient")
    def scaled(x: Tensor) -> Any:
        return find("identity")(x), lambda dy: dy * gradient_multiplier

    return scaled(to_tensor(inputs))


@export("contrib.layers.spatial_softmax")
@add_arg_scope
def spatial_softmax(
    features: Any,
    temperature: Any = None,
    name: str | None = None,
    variables_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Tensor:
    """Where each channel of images is large: the mean of coordinates from -1 to 1, `[batch, 2 * channels]`."""
    getter = renaming({}, variables_collections)
    with variable_scope(name, "spatial_softmax", [features], custom_getter=getter):
        features = to_tensor(features)
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError("data_format has to be either NCHW or NHWC.")
        if data_format == "NHWC":
            features = find("transpose")(features, [0, 3, 1, 2])
        _, channels, height, width = features.shape.as_list()
        if channels is None:
            raise ValueError(
                "The num_channels dimension of the inputs to `spatial_softmax` should be defined. Found `None`."
            )
        sizes = find("shape")(features)
        high, wide = (sizes[i + 2] if d is None else d for i, d in enumerate((height, width)))
        steps = find("linspace")
        across, down = find("meshgrid")(steps(-1.0, 1.0, wide), steps(-1.0, 1.0, high))
        start = find("constant_initializer")(1.0 if temperature is None else temperature)
        heat = find("get_variable")("temperature", [], find("float32"), start, trainable=trainable)
        flat = find("reshape")(features, [-1, high * wide])
        attention = find("nn.softmax")(flat / heat)
        means = [
            find("reduce_sum")(find("reshape")(c, [-1]) * attention, [1], keepdims=True)
            for c in (down, across)  # rows come first
        ]
        return find("reshape")(find("concat")(means, 1), [-1, channels * 2])


@export("contrib.layers.legacy_fully_connected")
def legacy_fully_connected(
    x: Any,
    num_output_units: int,
    activation_fn: Any = None,
    weight_init: Any = None,
    bias_init: Any = _ZEROS,
    name: str | None = None,
    weight_collections: Any = (GraphKeys.WEIGHTS,),
    bias_collections: Any = (GraphKeys.BIASES,),
    output_collections: Any = (GraphKeys.ACTIVATIONS,),
    trainable: bool = True,
    weight_regularizer: Any = None,
    bias_regularizer: Any = None,
) -> Tensor:
    """`activation_fn(x * weights + bias)`, with the arguments and names of early versions."""
    with variable_scope(name, "fully_connected", [x]):
        x = to_tensor(x)
        dims = x.shape.dims
        if dims is None:
            raise ValueError("dims of x must be known but is None")
        if len(dims) < 2:
            raise ValueError(f"rank of x must be at least 2 not: {len(dims)}")
        size, kind, variable = dims[-1].value, x.dtype.base_dtype, find("get_variable")
        if size is None:
            raise ValueError("last dimension of x must be known but is None")
        everywhere = [GraphKeys.GLOBAL_VARIABLES]
        weights = variable(
            "weights",
            [size, num_output_units],
            kind,
            weight_init or xavier_initializer(),
            weight_regularizer,
            trainable,
            collections=[*weight_collections, *everywhere],
        )
        y = find("tensordot")(x, weights, 1) if len(dims) > 2 else find("matmul")(x, weights)
        if bias_init is not None:
            bias = variable(
                "bias",
                [num_output_units],
                kind,
                bias_init,
                bias_regularizer,
                trainable,
                collections=[*bias_collections, *everywhere],
            )
            y = find("nn.bias_add")(y, bias)
        y = y if activation_fn is None else activation_fn(y)
        add_to_collections(list(output_collections or ()), y)
        return y


def _legacy(activation: Any, name: str) -> Callable:
    def layer(*args: Any, **kwargs: Any) -> Tensor:
        return legacy_fully_connected(*args, **{"activation_fn": activation, **kwargs})

    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = (
        f"`legacy_fully_connected` with {'no' if activation is None else 'relu as its'} activation."
    )
    return layer


publish(_legacy(None, "legacy_linear"), "contrib.layers.legacy_linear")
publish(_legacy(relu, "legacy_relu"), "contrib.layers.legacy_relu")


@export("contrib.layers.dense_to_sparse")
@add_arg_scope
def dense_to_sparse(
    tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: Any = None
) -> Any:
    """The values of a tensor that are not `eos_token`, as a sparse tensor."""
    with variable_scope(scope, "dense_to_sparse", [tensor]):
        tensor = to_tensor(tensor)
        places = find("where")(find("not_equal")(tensor, find("constant")(eos_token, tensor.dtype)))
        shape = find("shape")(tensor, out_type=find("int64"))
        result = find("SparseTensor")(places, find("gather_nd")(tensor, places), shape)
        add_to_collections(list(outputs_collections or ()), result)
        return result


@export("contrib.layers.bow_encoder")
def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """The mean of the embeddings of each row of ids."""
    with variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        table = find("contrib.framework.model_variable")(
            "embeddings",
            shape=[vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        sparse = isinstance(ids, find("SparseTensor"))
        if sparse_lookup:
            given = ids if sparse else dense_to_sparse(ids, -1)
            return find("nn.embedding_lookup_sparse")(table, given, None, combiner="mean")
        if sparse:
            raise TypeError(f"ids are expected to be dense Tensor, got: {ids}")
        return find("reduce_mean")(find("nn.embedding_lookup")(table, ids), 1)


@export("contrib.layers.python.layers.layers._inner_flatten")
@add_arg_scope
def inner_flatten(inputs: Any, new_rank: int, output_collections: Any = None, scope: Any = None) -> Any:
    """The same values with the innermost axes made one, so that `new_rank` axes are left."""
    with name_scope(scope, "InnerFlatten", [inputs, new_rank]) as sc:
        if isinstance(inputs, SparseTensor):
            rank = inputs.dense_shape.shape.as_list()[0]
            if rank < new_rank:
                raise ValueError(
                    f"Inputs has rank less than new_rank. {inputs} must have rank at least {new_rank}. Received "
                    f"rank {rank}, shape {inputs.shape}"
                )
            sizes, reshape = inputs.dense_shape, find("sparse_reshape")
        else:
            inputs = to_tensor(inputs)
            find("assert_rank_at_least")(inputs, new_rank, message="inputs has rank less than new_rank")
            sizes, reshape = find("shape")(inputs), find("reshape")
        last = find("reduce_prod")(sizes[new_rank - 1 :], keepdims=True)
        flat = reshape(inputs, find("concat")([sizes[: new_rank - 1], last], 0))
        if not isinstance(inputs, SparseTensor) and inputs.shape.rank is not None:
            inner = inputs.shape[new_rank - 1 :].num_elements()
            flat.set_shape([*inputs.shape.as_list()[: new_rank - 1], inner])
        return collected(output_collections, sc, flat)
