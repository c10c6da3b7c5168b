"""`tf.wrap_function`: a function of version 1, traced once, with its variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.api.functions.concrete import ConcreteFunction, lifting, traced
from tensorfleet.api.variables.base import Variable
from tensorfleet.base import nest
from tensorfleet.base.naming import export
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.type_specs import TensorSpec


@export("python.eager.wrap_function.WrappedFunction")
class WrappedFunction(ConcreteFunction):
    """A function traced once; other functions can be cut out of its graph."""

    def prune(self, feeds: object, fetches: object, name: str = "pruned") -> ConcreteFunction:
        """The function from some tensors of the graph to others."""
        body = self._body
        given = [body.as_graph_element(f) for f in nest.flatten(feeds)]
        asked = nest.map_structure(body.as_graph_element, fetches)
        effects = [f for f in nest.flatten(asked) if isinstance(f, Operation)]
        tensors = [f for f in nest.flatten(asked) if isinstance(f, Tensor)]
        cut = body.cut(f"{body.name}_{name}", given, tensors, effects)
        structured = nest.map_structure(lambda f: f if isinstance(f, Tensor) else None, asked)
        specs = tuple(TensorSpec(t.shape, t.dtype) for t in given)
        return ConcreteFunction(cut, structured, (specs, {}), effects, self._variables)


@export("wrap_function")
def wrap_function(
    fn: Callable[..., Any], signature: Sequence[Any], name: str | None = None
) -> WrappedFunction:
    """Traces a function of version 1 for arguments of these kinds (`tf.TensorSpec`s); its variables are kept.

    Other values in the signature are constant arguments.
    """
    variables: list[Variable] = []
    flat = nest.flatten(signature)
    specs = [s for s in flat if isinstance(s, TensorSpec)]

    def call(*tensors: Tensor) -> Any:
        following = iter(tensors)
        given = [next(following) if isinstance(s, TensorSpec) else s for s in flat]
        return fn(*nest.pack_sequence_as(list(signature), given))

    label = "wrapped_function" if name is None else f"wrapped_function_{name}"
    return traced(WrappedFunction, call, label, specs, lifting(variables), (tuple(signature), {}), variables)
