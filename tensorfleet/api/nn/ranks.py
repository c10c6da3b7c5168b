"""Last dimensions of 1: labels, predictions and weights whose ranks differ by one are brought together."""

from __future__ import annotations

from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import expand_dims, rank, squeeze
from tensorfleet.ops.control.cond import cond


def _may_go(tensor: Tensor) -> bool:
    """Whether the last dimension can be 1, as far as is known."""
    return not tensor.shape.ndims or tensor.shape[-1].is_compatible_with(1)


def _shorter_if(test: Tensor, tensor: Tensor) -> Tensor:
    result: Tensor = cond(test, lambda: squeeze(tensor, [-1]), lambda: tensor)
    return result


@export("python.ops.confusion_matrix.remove_squeezable_dimensions")
def remove_squeezable_dimensions(
    labels: TensorLike, predictions: TensorLike, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Drops the last dimension of one of the two when their ranks differ by it.

    Ranks that are not known yet are compared when the step runs.
    """
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        p, want = to_tensor(predictions), to_tensor(labels)
        ours, theirs = p.shape.ndims, want.shape.ndims
        if ours is not None and theirs is not None:
            if ours - theirs == expected_rank_diff + 1 and _may_go(p):
                p = squeeze(p, [-1])
            elif ours - theirs == expected_rank_diff - 1 and _may_go(want):
                want = squeeze(want, [-1])
            return want, p
        difference = rank(p) - rank(want)
        if _may_go(p):
            p = _shorter_if(apply("Equal", expected_rank_diff + 1, difference), p)
        if _may_go(want):
            want = _shorter_if(apply("Equal", expected_rank_diff - 1, difference), want)
        return want, p


def shorter_weights(weights: TensorLike, values: Tensor) -> Tensor:
    """Weights without their last dimension, where they have one more than the values."""
    weights = to_tensor(weights)
    ours, theirs = weights.shape.ndims, values.shape.ndims
    if ours is not None and theirs is not None:
        return squeeze(weights, [-1]) if ours - theirs == 1 and _may_go(weights) else weights
    difference = rank(weights) - rank(values)
    if ours == 0 or not _may_go(weights):
        return weights
    return _shorter_if(apply("Equal", 1, difference), weights)


def fitted_weights(weights: TensorLike, values: Tensor) -> Tensor:
    """Weights with one dimension less or more, where that gives them the rank of the values."""
    weights = to_tensor(weights)
    ours, theirs = weights.shape.ndims, values.shape.ndims
    if ours == 0:
        return weights
    if ours is not None and theirs is not None:
        if ours - theirs == 1 and _may_go(weights):
            return squeeze(weights, [-1])
        return expand_dims(weights, [-1]) if theirs - ours == 1 else weights
    difference = rank(weights) - rank(values)

    def longer() -> Tensor:
        result: Tensor = cond(
            apply("Equal", difference, -1), lambda: expand_dims(weights, [-1]), lambda: weights
        )
        return result

    def fitted() -> Tensor:
        if not _may_go(weights):
            return longer()
        result: Tensor = cond(apply("Equal", difference, 1), lambda: squeeze(weights, [-1]), longer)
        return result

    if ours is not None:
        return fitted()
    result: Tensor = cond(apply("Equal", rank(weights), 0), lambda: weights, fitted)
    return result
