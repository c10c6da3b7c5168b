"""Helpers of layers for arguments, names, collections and dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorfleet.api.layers.specs import InitializerLike
from tensorfleet.api.variables.partitioned import PartitionedVariable
from tensorfleet.base import nest
from tensorfleet.base.naming import export, find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph


def of_graph(value: object) -> bool:
    """Whether something is part of a graph, which copies of a layer share."""
    return isinstance(value, (Tensor, Operation, IndexedSlices, PartitionedVariable)) or hasattr(
        value, "_as_graph_element"
    )


def refuse_in_keras_style(**given: object) -> None:
    """ValueError when an option is given that layers with variables of their own do not take."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} argument not allowed when keras style layers are enabled, but saw: {value}"
            )


def as_tensor(value: object) -> Any:
    """Numbers, arrays and variables as tensors; other inputs of a layer as they are."""
    if isinstance(value, (Tensor, IndexedSlices)) or value is None:
        return value
    plain = isinstance(value, (int, float, np.ndarray, np.generic)) or hasattr(value, "_as_graph_element")
    return to_tensor(value) if plain else value


def initializer_of(value: InitializerLike) -> InitializerLike:
    """An initializer, or one of those in `tf.initializers` by its name."""
    if not isinstance(value, str):
        return value
    try:
        return find(f"initializers.{value}")
    except KeyError:
        raise ValueError(f"Unknown initializer: {value}. Pass one of tf.initializers.") from None


def collect_new(items: Sequence[Any], key: str) -> None:
    """Adds the items that are not yet in a collection."""
    collection = get_default_graph().get_collection_ref(key)
    known = {id(item) for item in collection}
    collection.extend(item for item in items if id(item) not in known)


def depending(items: Sequence[Any], inputs: object) -> list[Any]:
    """The tensors and operations that need one of the inputs; with None, those that need no placeholder."""
    if inputs is None:
        return [item for item in items if not any(o.type == "Placeholder" for o in _upstream(item))]
    sources = {t.op for t in nest.flatten(inputs)}
    return [item for item in items if sources & _upstream(item)]


def _upstream(item: Tensor | Operation) -> set[Operation]:
    """The operations that a tensor or an operation needs."""
    seen: set[Operation] = set()
    left = [item if isinstance(item, Operation) else item.op]
    while left:
        op = left.pop()
        if op not in seen:
            seen.add(op)
            left += [t.op for t in op.inputs]
            left += op.control_inputs
    return seen


def unique_name(base: str) -> str:
    """`dense_1`, `dense_2` ... in each graph."""
    graph: Graph = get_default_graph()
    # Kept in the graph, so that names start anew with each.
    counts = graph.__dict__.setdefault("_layer_names", {})
    counts[base] = counts.get(base, 0) + 1
    return f"{base}_{counts[base]}"


_keras_style = False


def in_keras_style() -> bool:
    """Whether layers that are made now have variables of their own, whatever the variable scope around them."""
    return _keras_style


@export("layers.experimental.keras_style_scope")
@contextmanager
def keras_style_scope() -> Iterator[None]:
    """Layers and cells made inside have variables of their own, as Keras's have: none is found by its name.

    They cannot be told a `scope` or to `reuse` one.
    """
    global _keras_style
    before, _keras_style = _keras_style, True
    try:
        yield
    finally:
        _keras_style = before


@export("layers.experimental.set_keras_style")
def set_keras_style() -> None:
    """Lets all layers that are made from now on have variables of their own: `keras_style_scope` without an end."""
    global _keras_style
    _keras_style = True
