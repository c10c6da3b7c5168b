"""Stores of variables that a program makes itself, and small names around them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.api.variables.getter import Store, store_of
from tensorfleet.base.naming import export, publish
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.graph.stacks import replaced
from tensorfleet.ops.state.queues import FIFOQueue


@export("python.ops.variable_scope.EagerVariableStore")
class EagerVariableStore:
    """The variables that `tf.get_variable` finds and makes inside of its `as_default()`."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store or Store()

    @contextmanager
    def as_default(self) -> Iterator[Store]:
        """A block in which this is the store of the default graph."""
        graph = get_default_graph()
        store_of(graph)
        with replaced(graph, "_variable_store", self._store):
            yield self._store

    def variables(self) -> list[Any]:
        """All variables, by their names."""
        return sorted(self._store._vars.values(), key=lambda v: v.name)

    def trainable_variables(self) -> list[Any]:
        """The trainable ones."""
        return [v for v in self.variables() if v.trainable]

    def non_trainable_variables(self) -> list[Any]:
        """The ones that are not trainable."""
        return [v for v in self.variables() if not v.trainable]


publish(FIFOQueue, "python.ops.data_flow_ops.GPUCompatibleFIFOQueue")


@export("python.framework.ops.name_from_scope_name")
def name_from_scope_name(name: str) -> str:
    """The name of an operation, given that of its scope."""
    return name[:-1] if name.endswith("/") else name


publish(
    "The input_tree has fewer elements than the shallow_tree. Input structure has length {input_size}, while shallow "
    "structure has length {shallow_size}.",
    "python.util.nest._INPUT_TREE_SMALLER_THAN_SHALLOW_TREE",
)
