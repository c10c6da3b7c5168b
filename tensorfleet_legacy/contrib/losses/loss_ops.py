"""`tf.contrib.losses`, also `slim.losses`: predictions come before labels, and weights belong to the first axes.

The weights of `tf.losses` fit like any two tensors; these count from the front: a vector has one weight per example,
whatever the loss of an example is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import bound, signature_of
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, name_scope
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope

_LOSSES = "contrib.slim.losses"


@export(f"{_LOSSES}.add_loss")
@add_arg_scope
def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Keeps a loss with those of the graph; with `loss_collection=None`, which an `arg_scope` can give, nowhere."""
    if loss_collection:
        find("losses.add_loss")(loss, loss_collection)


def _known_rank(tensor: Tensor, what: str) -> int:
    rank = tensor.shape.ndims
    if rank is None:
        raise ValueError(f"{what}.get_shape().ndims cannot be None")
    return rank


def _weighed(losses: Tensor, weights: Tensor) -> Tensor:
    """All losses together, those under each weight times that weight."""
    axes = list(range(_known_rank(weights, "weights"), _known_rank(losses, "losses")))
    return find("reduce_sum")(find("reduce_sum")(losses, axes) * weights)


def _counts(losses: Tensor, weights: Tensor) -> Tensor:
    """How many losses of each example have a weight other than zero."""
    rank = _known_rank(weights, "weights")
    sizes = find("shape")(losses)
    under = find("cast")(find("reduce_prod")(sizes[max(rank, 1) :]), dtypes.float32)
    counted = find("cast")(find("not_equal")(weights, 0), dtypes.float32)
    if rank == 0:
        return find("fill")(sizes[:1], counted * under)
    return find("reduce_sum")(counted, list(range(1, rank))) * under


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    return find("div_no_nan")(above, below, name="value")


@export(f"{_LOSSES}.compute_weighted_loss")
def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """The mean of the losses whose weight is not zero, each times its weight; kept with the losses of the graph."""
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = to_tensor(losses)
        kind, losses = losses.dtype, find("cast")(losses, dtypes.float32)
        weights = find("cast")(to_tensor(weights), dtypes.float32)
        rank = _known_rank(losses, "losses")
        if _known_rank(weights, "weights") > 1 and weights.shape[-1].is_compatible_with(1):
            weights = find("squeeze")(weights, [-1])
        if _known_rank(weights, "weights") > rank:
            raise ValueError(
                f"weights of shape {weights.shape} have more axes than losses of shape {losses.shape}"
            )
        present = find("reduce_sum")(_counts(losses, weights))
        mean = find("cast")(_ratio(_weighed(losses, weights), present), kind)
        add_loss(mean)
        return mean


def _reordered(name: str, arguments: str) -> Callable:
    """A loss of `tf.losses` that takes its predictions first, as it did before 1.0."""
    own = signature_of(arguments)

    def loss(*args: Any, **kwargs: Any) -> Tensor:
        if "weight" in kwargs:  # the name of `weights` before 0.12
            kwargs["weights"] = kwargs.pop("weight")
        given = bound(own, name, args, kwargs)
        weights, scope = given.pop("weights"), given.pop("scope")
        default = f"{name}_loss" if name.endswith("_cross_entropy") else name
        with name_scope(scope, default, [*given.values(), weights]) as inner:
            each = find(f"losses.{name}")(**given, scope=inner, loss_collection=None, reduction="none")
            return compute_weighted_loss(each, weights, inner)

    first, second, *_ = own.parameters
    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"`tf.losses.{name}` with `{first}` before `{second}`; weights belong to the first axes."
    loss.__signature__ = own  # type: ignore[attr-defined]
    return loss


for _name, _arguments in {
    "absolute_difference": "predictions, labels=None, weights=1.0, scope=None",
    "softmax_cross_entropy": "logits, onehot_labels, weights=1.0, label_smoothing=0, scope=None",
    "sparse_softmax_cross_entropy": "logits, labels, weights=1.0, scope=None",
    "sigmoid_cross_entropy": "logits, multi_class_labels, weights=1.0, label_smoothing=0, scope=None",
    "log_loss": "predictions, labels=None, weights=1.0, epsilon=1e-7, scope=None",
    "mean_squared_error": "predictions, labels=None, weights=1.0, scope=None",
}.items():
    publish(_reordered(_name, _arguments), f"{_LOSSES}.{_name}")
for _name in ("get_losses", "get_regularization_losses", "get_total_loss"):
    publish(find(f"losses.{_name}"), f"{_LOSSES}.{_name}")


def _pair(predictions: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Both as floats of shapes that fit each other."""
    predictions, labels = to_tensor(predictions), to_tensor(labels)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return find("cast")(predictions, dtypes.float32), find("cast")(labels, dtypes.float32)


@export(f"{_LOSSES}.mean_pairwise_squared_error")
def mean_pairwise_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """How far the differences inside of each example are from those inside of its label, squared, over all pairs."""
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        predictions, labels = _pair(predictions, labels)
        weights = find("cast")(to_tensor(weights), dtypes.float32)
        differences = predictions - labels
        axes = list(range(1, _known_rank(differences, "diffs")))
        _known_rank(weights, "weights")
        present = _counts(differences, weights)
        squares = find("reduce_sum")(find("square")(differences), axes)
        total = find("reduce_sum")(differences, axes)
        each = 2.0 * _ratio(squares, present) - 2.0 * _ratio(find("square")(total), find("square")(present))
        loss = _weighed(each, weights)
        some = find("reduce_sum")(present) > 0
        mean = find("where")(some, loss, find("zeros_like")(loss), name="value")
        add_loss(mean)
        return mean


@export(f"{_LOSSES}.cosine_distance")
def cosine_distance(
    predictions: Any,
    labels: Any = None,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """One minus the product of vectors that have the length one, along an axis."""
    if axis is not None and dim is not None:
        raise ValueError("Cannot specify both 'axis' and 'dim'")
    along = dim if axis is None else axis
    if along is None:
        raise ValueError("You must specify 'axis'.")
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as inner:
        predictions, labels = _pair(predictions, labels)
        return compute_weighted_loss(1 - find("reduce_sum")(predictions * labels, [along]), weights, inner)


@export(f"{_LOSSES}.hinge_loss")
def hinge_loss(logits: Any, labels: Any = None, scope: str | None = None) -> Tensor:
    """How far each logit falls short of the margin of its label, 0 or 1; not added up, nor kept as a loss."""
    with name_scope(scope, "hinge_loss", [logits, labels]):
        logits, labels = to_tensor(logits), to_tensor(labels)
        logits.shape.assert_is_compatible_with(labels.shape)
        signs = 2.0 * find("cast")(labels, dtypes.float32) - 1.0
        return find("nn.relu")(1.0 - signs * logits)
