"""The language the Inception networks are written in: branches of convolutions and poolings, side by side.

A branch is a text of steps, `Conv2d_0a_1x1 64 > Conv2d_0b_3x3 96`: each layer's scope, whose end is the size of
its kernel, and how many channels it gives. `*3x3` gives another kernel, `+2` a stride, `/2` a stride without padding,
`~0.1` the deviation of the weights at the beginning, and `Conv2d_0b_1x3 384 | Conv2d_0c_3x1 384` two layers of one input, joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.variables.initializers import TruncatedNormal
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.slim.nets.plain_network import layer

Depth = Callable[[int], int]


def depth_by(depth_multiplier: float, min_depth: int) -> Depth:
    """How many channels a layer has in a network made narrower or wider."""
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda d: max(int(d * depth_multiplier), min_depth)


def branch(net: Tensor, steps: str, depth: Depth) -> Tensor:
    """Applies the steps of a branch."""
    for step in steps.split(" > "):
        joined = [_layer(net, text.split(), depth) for text in step.split(" | ")]
        net = joined[0] if len(joined) == 1 else find("concat")(joined, 3)
    return net


def _layer(net: Tensor, words: list[str], depth: Depth) -> Tensor:
    name, *rest = words
    kernel = name.rpartition("_")[2]
    options: dict[str, Any] = {}
    sizes = []
    for word in rest:
        if word[0] == "*":
            kernel = word[1:]
        elif word[0] == "/":
            options = {"stride": int(word[1:]), "padding": "VALID"}
        elif word[0] == "+":
            options = {"stride": int(word[1:])}
        elif word[0] == "~":
            options = {"weights_initializer": TruncatedNormal(0.0, float(word[1:]))}
        else:
            sizes.append(depth(int(word)))
    shape = [int(n) for n in kernel.split("x")]
    kind = {"M": "max_pool2d", "A": "avg_pool2d", "C": "conv2d"}[name[0]]
    return layer(kind)(net, *sizes, shape, scope=name, **options)


def mixed(net: Tensor, scope: str, branches: list[str], depth: Depth) -> Tensor:
    """Several branches of one input, joined along the channels."""
    with variable_scope(scope):
        parts = []
        for i, steps in enumerate(branches):
            with variable_scope(f"Branch_{i}"):
                parts.append(branch(net, steps, depth))
        return find("concat")(parts, 3)


def built(
    net: Tensor, rows: list[tuple[str, Any]], final: str, depth: Depth
) -> tuple[Tensor, dict[str, Tensor]]:
    """The rows of a network up to one of them: a step, or the branches of a mixed layer."""
    ends: dict[str, Tensor] = {}
    for name, what in rows:
        net = (
            mixed(net, name, what, depth) if isinstance(what, list) else branch(net, f"{name} {what}", depth)
        )
        ends[name] = net
        if name == final:
            return net, ends
    raise ValueError(f"Unknown final endpoint {final}")


def fitting(net: Tensor, size: list[int]) -> list[int]:
    """A kernel's size, not larger than the image if that is known."""
    height, width = net.shape[1].value, net.shape[2].value
    return size if height is None or width is None else [min(height, size[0]), min(width, size[1])]


def logits_of(net: Tensor, classes: int, scope: str, squeeze: bool, **options: Any) -> Tensor:
    """The logits of classes, from the features of a whole image."""
    logits = layer("conv2d")(
        net, classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=scope, **options
    )
    return find("squeeze")(logits, [1, 2], name="SpatialSqueeze") if squeeze else logits
