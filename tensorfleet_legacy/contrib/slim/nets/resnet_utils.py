"""The building blocks of both kinds of residual networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet.ops.nn.activations import relu
from tensorfleet_legacy.contrib.framework.arg_scope import Scope, add_arg_scope, arg_scope
from tensorfleet_legacy.contrib.layers.layers import collected
from tensorfleet_legacy.contrib.slim.nets.plain_network import collecting, end_points, layer


class Block(NamedTuple):
    """A run of units under one scope: the function of a unit, and each unit's arguments."""

    scope: str
    unit_fn: Callable
    args: list[dict[str, Any]]


def block(unit: Callable, scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """Units of which the last has the stride."""
    args = {"depth": base_depth * 4, "depth_bottleneck": base_depth}
    return Block(scope, unit, [{**args, "stride": 1}] * (num_units - 1) + [{**args, "stride": stride}])


def subsample(inputs: Any, factor: int, scope: Any = None) -> Any:
    """Every so many rows and columns."""
    return inputs if factor == 1 else layer("max_pool2d")(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: Any = None
) -> Tensor:
    """A convolution padded by its kernel alone, so that a stride gives the same as leaving out rows afterwards."""
    conv = layer("conv2d")
    if stride == 1:
        return conv(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = (kernel_size - 1) * rate
    around = [total // 2, total - total // 2]
    padded = find("pad")(inputs, [[0, 0], around, around, [0, 0]])
    return conv(padded, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@add_arg_scope
def stack_blocks_dense(
    net: Any, blocks: list, output_stride: int | None = None, outputs_collections: Any = None
) -> Tensor:
    """The blocks one after the other; beyond `output_stride` convolutions get holes instead of strides."""
    current, rate = 1, 1
    for part in blocks:
        with variable_scope(part.scope, "block", [net]) as sc:
            for i, unit in enumerate(part.args, 1):
                if output_stride is not None and current > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                with variable_scope(f"unit_{i}", values=[net]):
                    if output_stride is not None and current == output_stride:
                        net = part.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= unit.get("stride", 1)
                    else:
                        net = part.unit_fn(net, rate=1, **unit)
                        current *= unit.get("stride", 1)
            net = collected(outputs_collections, sc.name, net)
    if output_stride is not None and current != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Scope:
    """The arguments for the layers of residual networks: enter it with `slim.arg_scope`."""
    params = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": GraphKeys.UPDATE_OPS,
    }
    with arg_scope(
        [layer("conv2d")],
        weights_regularizer=layer("l2_regularizer")(weight_decay),
        weights_initializer=layer("variance_scaling_initializer")(),
        activation_fn=relu,
        normalizer_fn=layer("batch_norm"),
        normalizer_params=params,
    ):
        with arg_scope([layer("batch_norm")], **params):
            with arg_scope([layer("max_pool2d")], padding="SAME") as scope:
                return scope


def residual_network(
    name: str, unit: Callable, root_options: dict[str, Any], after_blocks: Callable
) -> Callable:
    """A function that builds networks of such units: root, blocks, pooling, logits.

    `root_options` are for the first convolution, `after_blocks` is applied to the result of the last block.
    """

    def build(
        inputs: Any,
        blocks: list,
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        include_root_block: bool = True,
        reuse: Any = None,
        scope: Any = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """A network of these blocks: the logits (the features without `num_classes`) and the end points.

        `output_stride` bounds how much smaller than the image the features are, with holes in the convolutions.
        """
        with variable_scope(scope, name, [inputs], reuse=reuse) as sc:
            collection, gathered = collecting(sc, "conv2d")
            more = arg_scope([unit, stack_blocks_dense], outputs_collections=[collection])
            with gathered, more, arg_scope([layer("batch_norm")], is_training=is_training):
                net = inputs
                if include_root_block:
                    if output_stride is not None:
                        if output_stride % 4:
                            raise ValueError("The output_stride needs to be a multiple of 4.")
                        output_stride //= 4
                    with arg_scope([layer("conv2d")], **root_options):
                        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                    net = layer("max_pool2d")(net, [3, 3], stride=2, scope="pool1")
                net = after_blocks(stack_blocks_dense(net, blocks, output_stride))
                if global_pool:
                    net = find("reduce_mean")(net, [1, 2], name="pool5", keepdims=True)
                if num_classes is not None:
                    net = layer("conv2d")(
                        net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits"
                    )
                result = end_points(collection)
                if num_classes is not None:
                    result["predictions"] = layer("softmax")(net, scope="predictions")
        return net, result

    build.__name__ = build.__qualname__ = name
    build.__module__ = unit.__module__
    return build


def sized(network: Callable, unit: Callable, counts: tuple[int, int, int, int], name: str) -> Callable:
    """The network with so many units in each of its four blocks."""

    def build(
        inputs: Any,
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Any = None,
        scope: str = name,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        blocks = [
            block(unit, f"block{i + 1}", 64 * 2**i, count, 2 if i < 3 else 1)
            for i, count in enumerate(counts)
        ]
        return network(
            inputs, blocks, num_classes, is_training, global_pool, output_stride, reuse=reuse, scope=scope
        )

    build.__name__ = build.__qualname__ = name
    build.__module__ = network.__module__
    build.__doc__ = f"{3 * sum(counts) + 2} layers; the logits and the end points."
    return build
