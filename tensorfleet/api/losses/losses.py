"""Losses: a cost for each element, weighted and reduced to a number."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from typing import Any, NoReturn

from tensorfleet.api.losses.util import add_loss
from tensorfleet.api.losses.weights import broadcast_weights, check_broadcastable
from tensorfleet.api.nn.ranks import remove_squeezable_dimensions, shorter_weights
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_default_graph, name_scope
from tensorfleet.ops.array.constructors import ones_like, range_, zeros_like
from tensorfleet.ops.array.shape import rank, size
from tensorfleet.ops.math.binary import div_no_nan
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import where
from tensorfleet.ops.math.reduce_functions import reduce_sum
from tensorfleet.ops.nn.losses import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from tensorfleet.ops.nn.shapes import one_of


@export("losses.Reduction")
class Reduction:
    """How the losses of the elements become one: see each name."""

    #: leave them as they are
    NONE = "none"
    #: their weighted sum
    SUM = "weighted_sum"
    #: their weighted sum over the number of elements
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    #: their weighted sum over the sum of weights
    MEAN = "weighted_mean"
    #: their weighted sum over the number of weights that are not zero
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All ways there are."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: str) -> None:
        """ValueError for anything that is not a reduction."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key: {key}. Expected keys are {cls.all()}")


_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


def _num_present(losses: Tensor, weights: Tensor, per_batch: bool = False) -> Tensor:
    """How many elements have a weight other than zero, in all or for each item of the batch."""
    # A scalar weight counts all elements or none: no need to spread it over them.
    if weights.shape.ndims == 0 and not per_batch:
        with name_scope("num_present") as scope:
            total = cast(size(losses), losses.dtype.base_dtype)
            return apply("Mul", total, cast(apply("NotEqual", weights, 0.0), losses.dtype), name=scope)
    with name_scope("num_present") as scope:
        zero = apply("Equal", weights, 0.0)
        present = where(zero, zeros_like(weights), ones_like(weights))
        spread = broadcast_weights(present, losses)
        axes = range_(1, rank(spread)) if per_batch else None
        return reduce_sum(spread, axes, keepdims=per_batch, name=scope)


@export("losses.compute_weighted_loss")
def compute_weighted_loss(
    losses: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: Hashable | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """Losses times weights, reduced, and added to a collection."""
    Reduction.validate(reduction)
    get_default_graph().__dict__["_last_loss_reduction"] = reduction  # which strategies ask for
    with name_scope(scope, "weighted_loss", (losses, weights)):
        values = to_tensor(losses)
        kind = values.dtype.base_dtype
        with control_dependencies(check_broadcastable(weights, values)):
            values = cast(values, dtypes.float32)
            factor = cast(
                to_tensor(weights, None if hasattr(weights, "dtype") else dtypes.float32), dtypes.float32
            )
            loss: Tensor = apply("Mul", values, factor, name="Mul")
            if reduction != Reduction.NONE:
                loss = _reduced(loss, values, factor, reduction)
            loss = cast(loss, kind)
        add_loss(loss, loss_collection)
        return loss


def _reduced(weighted: Tensor, values: Tensor, weights: Tensor, reduction: str) -> Tensor:
    total: Tensor = reduce_sum(weighted)
    if reduction == Reduction.MEAN:
        return _mean(total, reduce_sum(ones_like(values) * weights))
    if reduction == _BY_NONZERO:
        return _mean(total, _num_present(values, weights))
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return _mean(total, cast(size(values, name="num_elements"), total.dtype))
    return total


def _mean(total: Tensor, count: Tensor) -> Tensor:
    return div_no_nan(total, count, name="value")


def _pair(labels: TensorLike, predictions: TensorLike) -> tuple[Tensor, Tensor]:
    """Both as float32, after a check that their shapes agree."""
    ours, theirs = cast(predictions, dtypes.float32), cast(labels, dtypes.float32)
    ours.shape.assert_is_compatible_with(theirs.shape)
    return theirs, ours


def _missing(name: str) -> NoReturn:
    raise ValueError(f"{name} must not be None.")


def _required(**given: object) -> None:
    for name, value in given.items():
        if value is None:
            _missing(name)


_REDUCTION_ARGUMENTS = signature_of(
    "scope=None, loss_collection=LOSSES, reduction=MEAN", LOSSES=GraphKeys.LOSSES, MEAN=_BY_NONZERO
)


def _of_elements(scope_name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function that gives the loss of each element. The new function weights and reduces them.

    Where the weights must be changed to fit, it gives both.
    """

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(f)
        whole = own.replace(parameters=[*own.parameters.values(), *_REDUCTION_ARGUMENTS.parameters.values()])
        labels, predictions, *_ = own.parameters

        def body(given: dict[str, Any]) -> Tensor:
            scope, *how = (given.pop(name) for name in _REDUCTION_ARGUMENTS.parameters)
            _required(**{name: given[name] for name in (labels, predictions)})
            weights = given["weights"]
            with name_scope(scope, scope_name, (given[predictions], given[labels], weights)) as inner:
                losses = f(**given)
                if isinstance(losses, tuple):
                    losses, weights = losses
                return compute_weighted_loss(losses, weights, inner, *how)

        public = function(whole, f.__name__, body, f.__doc__)
        public.__module__ = f.__module__
        return public

    return decorate


@export("losses.absolute_difference")
@_of_elements("absolute_difference")
def absolute_difference(labels: TensorLike, predictions: TensorLike, weights: TensorLike = 1.0) -> Tensor:
    """How far predictions are from labels."""
    y, p = _pair(labels, predictions)
    return apply("Abs", apply("Sub", p, y))


@export("losses.cosine_distance")
def cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: Hashable | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
    dim: int | None = None,
) -> Tensor:
    """One minus the product of labels and predictions along `axis`; both must be of length one there."""
    along = one_of("axis", axis, "dim", dim)
    if along is None:
        raise ValueError("You must specify 'axis'.")
    _required(labels=labels, predictions=predictions)
    with name_scope(scope, "cosine_distance_loss", (predictions, labels, weights)) as inner:
        y, p = _pair(labels, predictions)
        losses = 1 - reduce_sum(apply("Mul", p, y), (along,), keepdims=True)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction=reduction)


@export("losses.hinge_loss")
@_of_elements("hinge_loss")
def hinge_loss(labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0) -> Tensor:
    """The distance of logits from 1 on the side of their label (0 or 1), zero beyond it."""
    y, p = _pair(labels, logits)
    ones = ones_like(y)
    sign = apply("Sub", 2 * y, ones)
    return apply("Relu", apply("Sub", ones, apply("Mul", sign, p)))


@export("losses.huber_loss")
@_of_elements("huber_loss")
def huber_loss(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike = 1.0, delta: float = 1.0
) -> Tensor:
    """Half the squared error up to `delta`, growing linearly beyond."""
    y, p = _pair(labels, predictions)
    distance = apply("Abs", apply("Sub", p, y))
    limit = to_tensor(delta, distance.dtype.base_dtype)
    quadratic = apply("Minimum", distance, limit)
    linear = apply("Sub", distance, quadratic)
    half = constant(0.5, quadratic.dtype.base_dtype)
    squares = apply("Mul", half, apply("Mul", quadratic, quadratic))
    return apply("AddV2", squares, apply("Mul", limit, linear))


@export("losses.log_loss")
@_of_elements("log_loss")
def log_loss(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike = 1.0, epsilon: float = 1e-7
) -> Tensor:
    """The cross entropy of labels and predicted probabilities."""
    y, p = _pair(labels, predictions)
    yes = apply("Mul", y, apply("Log", p + epsilon))
    no = apply("Mul", 1 - y, apply("Log", 1 - p + epsilon))
    return -yes - no


@export("losses.mean_pairwise_squared_error")
def mean_pairwise_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: Hashable | None = GraphKeys.LOSSES,
) -> Tensor:
    """The squared error of the differences between all pairs of elements of an item."""
    _required(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", (predictions, labels, weights)):
        factor = cast(
            to_tensor(weights, None if hasattr(weights, "dtype") else dtypes.float32), dtypes.float32
        )
        y, p = _pair(labels, predictions)
        with control_dependencies(check_broadcastable(factor, y)):
            errors = apply("Sub", p, y)
            axes = range_(1, rank(errors))
            squares = reduce_sum(apply("Square", errors), axes, keepdims=True)
            count = _num_present(errors, factor, per_batch=True)
            # The sum over all pairs, from the sums of the differences and of their squares: no pair is built.
            first = 2.0 * div_no_nan(squares, apply("Maximum", count - 1, 0.0), name="value")
            total = reduce_sum(errors, axes, keepdims=True)
            pairs = apply("Maximum", count * (count - 1), 0.0)
            second = 2.0 * div_no_nan(apply("Square", total), pairs, name="value")
            loss = reduce_sum(apply("Mul", first - second, factor))
            some = apply("Greater", reduce_sum(count), 0.0)
            mean = where(some, loss, zeros_like(loss), name="value")
        add_loss(mean, loss_collection)
        return mean


@export("losses.mean_squared_error")
@_of_elements("mean_squared_error")
def mean_squared_error(labels: TensorLike, predictions: TensorLike, weights: TensorLike = 1.0) -> Tensor:
    """The squared difference of labels and predictions."""
    y, p = _pair(labels, predictions)
    return apply("SquaredDifference", p, y)


@export("losses.sigmoid_cross_entropy")
@_of_elements("sigmoid_cross_entropy_loss")
def sigmoid_cross_entropy(
    multi_class_labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0, label_smoothing: float = 0
) -> Tensor:
    """The cross entropy of independent yes-or-no labels; smoothing moves them towards 1/2."""
    p = to_tensor(logits)
    y = cast(multi_class_labels, p.dtype.base_dtype)
    p.shape.assert_is_compatible_with(y.shape)
    if label_smoothing > 0:
        y = y * (1 - label_smoothing) + 0.5 * label_smoothing
    return sigmoid_cross_entropy_with_logits(labels=y, logits=p, name="xentropy")


@export("losses.softmax_cross_entropy")
@_of_elements("softmax_cross_entropy_loss")
def softmax_cross_entropy(
    onehot_labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0, label_smoothing: float = 0
) -> Tensor:
    """The cross entropy of labels given as distributions; smoothing moves them towards the uniform one."""
    p = to_tensor(logits)
    y = cast(onehot_labels, p.dtype.base_dtype)
    p.shape.assert_is_compatible_with(y.shape)
    if label_smoothing > 0:
        classes = cast(_last_size(y), p.dtype.base_dtype)
        y = y * (1.0 - label_smoothing) + label_smoothing / classes
    # Labels are data. `..._v2` would differentiate by them, too.
    y = apply("StopGradient", y, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=y, logits=p, name="xentropy")


def _last_size(labels: Tensor) -> int | Tensor:
    known = labels.shape.ndims is not None and labels.shape[-1].value
    return known if known else apply("Shape", labels)[-1]


@export("losses.sparse_softmax_cross_entropy")
@_of_elements("sparse_softmax_cross_entropy_loss")
def sparse_softmax_cross_entropy(
    labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0
) -> tuple[Tensor, Any]:
    """The cross entropy of labels given as numbers of classes."""
    y, p = remove_squeezable_dimensions(labels, logits, expected_rank_diff=1)
    factor = shorter_weights(weights, y)
    losses = sparse_softmax_cross_entropy_with_logits(labels=y, logits=p, name="xentropy")
    return losses, factor
