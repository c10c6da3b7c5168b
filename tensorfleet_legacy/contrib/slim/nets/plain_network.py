"""Parts of the networks without branches: convolutions, poolings, and three layers at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.variables.initializers import Constant, TruncatedNormal, Zeros
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.nn.activations import relu
from tensorfleet_legacy.contrib.framework.arg_scope import Scope, arg_scope


def layer(name: str) -> Any:
    """A function of `tf.contrib.layers`."""
    return find(f"contrib.layers.{name}")


def collecting(scope: Any, *layers: str, **options: Any) -> tuple[str, Any]:
    """The collection for a network's end points, and a scope in which these layers put their results there."""
    collection = scope.original_name_scope + "_end_points"
    return collection, arg_scope([layer(n) for n in layers], outputs_collections=[collection], **options)


def end_points(collection: str) -> dict[str, Tensor]:
    """The results that were collected, by the layers' scopes."""
    return find("contrib.layers.utils.convert_collection_to_dict")(collection)


def plain_scope(weight_decay: float, biases: Any, *, valid_pools: bool = False) -> Scope:
    """The arguments for the layers of a network of plain layers, whose biases begin so."""
    with arg_scope(
        [layer("conv2d"), layer("fully_connected")],
        activation_fn=relu,
        weights_regularizer=layer("l2_regularizer")(weight_decay),
        biases_initializer=biases,
    ):
        with arg_scope([layer("conv2d")], padding="SAME") as scope:
            if not valid_pools:
                return scope
            with arg_scope([layer("max_pool2d")], padding="VALID") as with_pools:
                return with_pools


def small_head() -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the last layers where these begin with small weights."""
    small = {"weights_initializer": TruncatedNormal(0.0, 0.005), "biases_initializer": Constant(0.1)}
    return small, {"biases_initializer": Zeros()}


def network(
    name: str, body: Callable[[], list[tuple]], head: tuple[int, int, int], options: Callable, does: str
) -> Callable[..., tuple[Tensor, dict[str, Tensor]]]:
    """A function that builds a network of plain layers: `body`, then fc6, fc7 and fc8 as convolutions.

    A row of `body` is the layer's scope, what it is, and its arguments; `head` has the sizes of fc6 and fc7, and
    of the image that reaches fc6; `options` gives more arguments for those three, and for the last of them.
    """

    def build(
        inputs: Any,
        num_classes: int = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: str = name,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        sizes = (head, num_classes, is_training, dropout_keep_prob)
        return _classifier(inputs, scope, body(), sizes, spatial_squeeze, *options())

    build.__name__ = build.__qualname__ = name
    build.__module__, build.__doc__ = body.__module__, does
    return build


def _classifier(
    inputs: Any,
    scope: str,
    body: list[tuple],
    head: tuple[tuple, int, Any, float],
    squeeze: bool,
    head_options: dict,
    last_options: dict,
) -> tuple[Tensor, dict[str, Tensor]]:
    with variable_scope(scope, scope, [inputs]) as sc:
        collection, gathered = collecting(sc, "conv2d", "fully_connected", "max_pool2d")
        with gathered:
            net = inputs
            for name, kind, *args in body:
                if kind == "repeat":
                    count, depth = args
                    net = layer("repeat")(net, count, layer("conv2d"), depth, [3, 3], scope=name)
                else:
                    *sizes, options = args
                    net = layer(kind)(net, *sizes, scope=name, **options)
            with arg_scope([layer("conv2d")], **head_options):
                net = _head(net, *head, last_options)
        result = end_points(collection)
        if squeeze:
            net = find("squeeze")(net, [1, 2], name="fc8/squeezed")
            result[f"{sc.name}/fc8"] = net
    return net, result


def _head(net: Tensor, head: tuple, classes: int, training: Any, keep: float, last: dict[str, Any]) -> Tensor:
    sixth, seventh, size = head
    conv, dropout = layer("conv2d"), layer("dropout")
    net = conv(net, sixth, [size, size], padding="VALID", scope="fc6")
    net = dropout(net, keep, is_training=training, scope="dropout6")
    net = conv(net, seventh, [1, 1], scope="fc7")
    net = dropout(net, keep, is_training=training, scope="dropout7")
    return conv(net, classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8", **last)
