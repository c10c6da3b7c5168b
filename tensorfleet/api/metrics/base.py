"""The parts that all metrics share: their variables, and the fitting of labels, predictions and weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.nn.ranks import fitted_weights, remove_squeezable_dimensions
from tensorfleet.api.variables.creation import create_variable
from tensorfleet.api.variables.variable import Variable, VariableAggregation, VariableSynchronization
from tensorfleet.base.arguments import function
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph
from tensorfleet.ops.array.constructors import zeros
from tensorfleet.ops.math.binary import div_no_nan

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import CollectionKeys


def metric_variable(shape: ShapeLike, dtype: DTypeLike, name: str) -> Variable:
    """A local variable that starts at zero, in the collection of metric variables."""
    return create_variable(
        initial_value=lambda: zeros(shape, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        # Each replica counts its own batches; reading adds them up.
        synchronization=VariableSynchronization.ON_READ,
        aggregation=VariableAggregation.SUM,
        name=name,
    )


def collect(
    value: Tensor,
    update: Tensor | None,
    metrics_collections: CollectionKeys | None,
    updates_collections: CollectionKeys | None,
) -> tuple[Any, Any]:
    """Adds a metric's value and its update to collections, and gives both."""
    graph = get_default_graph()
    if metrics_collections:
        graph.add_to_collections(metrics_collections, value)
    if updates_collections:
        graph.add_to_collections(updates_collections, update)
    return value, update


def metric(f: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    """Decorator of a function that gives a metric's value and its update: callers may name collections for them."""
    signature = inspect.signature(f)
    own = list(signature.parameters.values())
    more = [own[-1].replace(name=name) for name in ("metrics_collections", "updates_collections")]
    whole = signature.replace(parameters=[*own[:-1], *more, own[-1]])

    def body(given: dict[str, Any]) -> tuple[Any, Any]:
        collections = [given.pop(p.name) for p in more]
        return collect(*f(**given), *collections)

    public = function(whole, f.__name__, body, f.__doc__)
    public.__module__ = f.__module__
    return public


def ratio(total: TensorLike, count: TensorLike, name: str | None) -> Tensor:
    """`total / count`; zero where nothing was counted."""
    wanted = to_tensor(count)
    none = to_tensor(0, wanted.dtype.base_dtype) if not wanted.dtype.is_floating else 0.0
    return div_no_nan(total, apply("Maximum", wanted, none), name=name)


def fitted(predictions: TensorLike, labels: TensorLike, weights: TensorLike) -> tuple[Tensor, Any, Any]:
    """Drops (or, for weights, adds) a last dimension of 1 where ranks differ by one."""
    p = to_tensor(predictions)
    if labels is not None:
        labels, p = remove_squeezable_dimensions(labels, p)
        p.shape.assert_is_compatible_with(labels.shape)
    if weights is not None:
        weights = fitted_weights(weights, p)
    return p, labels, weights
