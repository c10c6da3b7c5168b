"""Batch normalization as `tf.contrib.layers` has it where the layer of `tf.layers` does not suffice.

That is where examples have weights, and where the moving mean is corrected for having begun at zero.
"""

from __future__ import annotations

from typing import Any

from tensorfleet.api.train.moving_averages import assign_moving_average
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import add_to_collections, control_dependencies
from tensorfleet.ops.control.cond import smart_cond


def normalized(inputs: Tensor, given: dict[str, Any], first_axis: bool) -> Tensor:
    """`inputs` with the mean and deviation of its channels taken out; `given` are the arguments of `batch_norm`."""
    if given["renorm"]:
        raise ValueError(
            "renorm is not supported with batch_weights, updates_collections or zero_debias_moving_mean"
        )
    rank, place = inputs.shape.ndims or 0, 1 if first_axis else -1
    size = inputs.shape[place : place + 1 or None]
    if not size.is_fully_defined():
        raise ValueError(f"Inputs {inputs.name} has undefined channels dimension {size}.")
    beta = _variable("beta", size, inputs, given, "zeros") if given["center"] else None
    gamma = _variable("gamma", size, inputs, given, "ones") if given["scale"] else None
    moving = [
        _variable(name, size, inputs, {**given, "trainable": False}, start)
        for name, start in (("moving_mean", "zeros"), ("moving_variance", "ones"))
    ]
    axes = [i for i in range(rank) if i != place % rank]
    mean, variance = _used(_moments(inputs, axes, given["batch_weights"]), moving, inputs, given)
    outer = [1] * rank
    outer[place] = size.as_list()[0]
    parts = [None if t is None else find("reshape")(t, outer) for t in (mean, variance, beta, gamma)]
    return find("nn.batch_normalization")(inputs, *parts, given["epsilon"])


def _variable(name: str, size: Any, inputs: Tensor, given: dict[str, Any], start: str) -> Any:
    begin = (given["param_initializers"] or {}).get(name, find(f"{start}_initializer")())
    kind, trained = inputs.dtype.base_dtype, given["trainable"]
    weigh = (given["param_regularizers"] or {}).get(name)
    return find("get_variable")(name, size, kind, begin, regularizer=weigh, trainable=trained)


def _moments(inputs: Tensor, axes: list[int], weights: Any) -> tuple[Tensor, Tensor]:
    if weights is None:
        return find("nn.moments")(inputs, axes)
    each = find("reshape")(weights, [-1] + [1] * len(axes))
    return find("nn.weighted_moments")(inputs, axes, each)


def _used(moments: tuple, moving: list, inputs: Tensor, given: dict[str, Any]) -> Any:
    """The batch's own moments in training, which move the averages; the averages otherwise."""
    collections, training = given["updates_collections"], given["is_training"]
    mean, variance = moments
    if given["batch_weights"] is None and given["fused"] is not False and inputs.shape.ndims in (2, 4):
        count = find("cast")(find("size")(inputs) / find("size")(mean), variance.dtype)
        seen = variance * (count / find("maximum")(count - 1.0, 1.0))  # as the fused kernel gives it
    else:
        seen = variance

    def updates() -> list:
        corrected = given["zero_debias_moving_mean"]
        first = assign_moving_average(moving[0], mean, given["decay"], zero_debias=corrected)
        return [first, assign_moving_average(moving[1], seen, given["decay"], zero_debias=False)]

    def own() -> list:
        with control_dependencies(updates() if collections is None else []):
            return [find("identity")(mean), find("identity")(variance)]

    def kept() -> list:
        return [find("identity")(average) for average in moving]

    if collections is not None:
        for update in smart_cond(training, updates, kept):
            add_to_collections(collections, update)
    return smart_cond(training, own, kept)
