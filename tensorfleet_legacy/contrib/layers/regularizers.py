"""`tf.contrib.layers`: regularizers and initializers."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export, find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_collection, get_default_graph, name_scope

Regularizer = Callable[[Any], Tensor | None]


def _is_off(scale: Any) -> bool:
    """Whether a scale turns its regularizer off; ValueError when it makes no sense."""
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real):
        if scale < 0.0:
            raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale:g}.")
        if scale == 0.0:
            logging.info("Scale of 0 disables regularizer.")
            return True
    return False


@export("contrib.layers.l1_regularizer")
def l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """`scale` times the sum of the weights' absolute values."""
    if _is_off(scale):
        return lambda _: None

    def l1(weights: Any) -> Tensor:
        with name_scope(scope, "l1_regularizer", [weights]) as inner:
            factor = to_tensor(scale, weights.dtype.base_dtype, name="scale")
            return find("multiply")(factor, find("reduce_sum")(find("abs")(weights)), name=inner)

    return l1


@export("contrib.layers.l2_regularizer")
def l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """`scale` times half the sum of the weights' squares."""
    if _is_off(scale):
        return lambda _: None

    def l2(weights: Any) -> Tensor:
        with name_scope(scope, "l2_regularizer", [weights]) as inner:
            factor = to_tensor(scale, weights.dtype.base_dtype, name="scale")
            return find("multiply")(factor, find("nn.l2_loss")(weights), name=inner)

    return l2


@export("contrib.layers.l1_l2_regularizer")
def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> Regularizer:
    """The sum of both kinds."""
    for label, scale in (("scale_l1", scale_l1), ("scale_l2", scale_l2)):
        if isinstance(scale, numbers.Integral):
            raise ValueError(f"{label} cannot be an integer: {scale}")
    scope = scope or "l1_l2_regularizer"
    if scale_l1 == 0.0:
        return l2_regularizer(scale_l2, scope)
    if scale_l2 == 0.0:
        return l1_regularizer(scale_l1, scope)
    both = [l1_regularizer(scale_l1), l2_regularizer(scale_l2)]
    return sum_regularizer(both, scope)


@export("contrib.layers.sum_regularizer")
def sum_regularizer(regularizer_list: list, scope: str | None = None) -> Any:
    """The sum of several regularizers; None entries are left out, and None is given for none at all."""
    regularizers = [r for r in regularizer_list if r is not None]
    if not regularizers:
        return None

    def sum_reg(weights: Any) -> Tensor | None:
        with name_scope(scope, "sum_regularizer", [weights]) as inner:
            losses = [loss for r in regularizers if (loss := r(weights)) is not None]
            return find("add_n")(losses, name=inner) if losses else None

    return sum_reg


@export("contrib.layers.apply_regularization")
def apply_regularization(regularizer: Regularizer, weights_list: list | None = None) -> Tensor:
    """The regularizer's sum over some weights (those of the graph's WEIGHTS collection), kept as a loss."""
    weights = weights_list or get_collection(GraphKeys.WEIGHTS)
    if not weights:
        raise ValueError("No weights to regularize.")
    with name_scope("get_regularization_penalty", values=weights) as inner:
        penalties = [p if (p := regularizer(w)) is not None else to_tensor(0.0) for w in weights]
        if any(p.shape.ndims != 0 for p in penalties):
            raise ValueError("regularizer must return a scalar Tensor instead of a Tensor with rank > 0.")
        total = apply("AddN", penalties, name=inner)
    get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total


@export("contrib.layers.xavier_initializer", "contrib.layers.xavier_initializer_conv2d")
def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = dtypes.float32
) -> Callable:
    """Random weights that keep the scale of signals about the same in all layers."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


@export("contrib.layers.variance_scaling_initializer")
def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = dtypes.float32,
) -> Callable:
    """Random weights of variance `factor / n`, where n counts a unit's inputs, outputs, or their mean."""
    if not dtypes.as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def initializer(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Tensor:
        if not dtypes.as_dtype(dtype).is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        whole = list(partition_info.full_shape if partition_info is not None else shape)
        n = _fan([float(d) for d in whole], mode)
        if uniform:
            limit = math.sqrt(3.0 * factor / n)
            return find("random_uniform")(shape, -limit, limit, dtype, seed=seed)
        # 1.3 makes up for the variance that cutting at two standard deviations takes away.
        return find("truncated_normal")(shape, 0.0, math.sqrt(1.3 * factor / n), dtype, seed=seed)

    return initializer


def _fan(shape: list[float], mode: str) -> float:
    if not shape:
        return 1.0  # a scalar has itself
    area = math.prod(shape[:-2])
    fan_in = (shape[-2] if len(shape) > 1 else shape[-1]) * area
    fan_out = shape[-1] * area
    return {"FAN_IN": fan_in, "FAN_OUT": fan_out, "FAN_AVG": (fan_in + fan_out) / 2.0}[mode]
