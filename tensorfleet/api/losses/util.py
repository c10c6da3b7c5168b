"""The collections of losses, and their sums."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import constant
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_collection, get_default_graph
from tensorfleet.ops.math.sums import add_n


@export("losses.add_loss")
def add_loss(loss: TensorLike, loss_collection: Hashable | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to a collection, from where `tf.losses.get_total_loss` takes it."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


@export("losses.get_losses")
def get_losses(scope: str | None = None, loss_collection: Hashable | None = GraphKeys.LOSSES) -> list[Any]:
    """The losses in a collection, or those whose names begin with `scope`."""
    return get_collection(loss_collection, scope)


@export("losses.get_regularization_losses")
def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses of regularizers."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


@export("losses.get_regularization_loss")
def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of the losses of regularizers; zero when there are none."""
    losses = get_regularization_losses(scope)
    return add_n(losses, name=name) if losses else constant(0.0)


@export("losses.get_total_loss")
def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses, those of regularizers included. ValueError when there are none."""
    losses = get_losses(scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    return add_n(losses, name=name)
