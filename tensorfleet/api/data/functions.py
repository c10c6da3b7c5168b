"""Tracing the functions that users hand to datasets."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.autograph.calls import converted_call
from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.structure import Leaf, Nested, Structure
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.functions import FunctionGraph, add_function, trace
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset


class Traced:
    """A traced function: its body, its captures, and the structure of its results."""

    def __init__(self, graph: FunctionGraph, result: Nested) -> None:
        self.graph = graph
        self.result = result
        self.structure = structures.map_leaves(structures.leaf_of, result)
        self.name = add_function(graph)

    @property
    def captured(self) -> list[Tensor]:
        """The tensors of the graph around it that it uses."""
        return list(self.graph.captures)


def traced(function: Callable[..., Any], what: str, *arguments: Structure) -> Traced:
    """Calls a user's function with one structure of placeholders per structure in `arguments`.

    An element that is a tuple is spread over the function's parameters when it is the only argument.
    """
    if not callable(function):
        raise TypeError(f"{what} takes a function, not {function!r}.")
    flat = [leaf for argument in arguments for leaf in structures.flatten(argument)]
    result: list[Any] = []

    def call(*tensors: Tensor) -> None:
        left = list(tensors)
        values = []
        for argument in arguments:
            leaves: Sequence[Leaf] = structures.flatten(argument)
            parts = [leaf.unpacked(left.pop(0)) for leaf in leaves]
            values.append(structures.pack_like(argument, parts))
        if len(arguments) == 1 and type(arguments[0]) is tuple:
            values = list(values[0])
        returned = converted_call(function, tuple(values), {})
        if isinstance(returned, list):
            returned = tuple(returned)  # more likely several results than one to be stacked
        try:
            result.append(structures.converted(returned))
        except (TypeError, ValueError) as e:
            raise TypeError(
                f"Unsupported return value from function passed to {_full(what)}: {returned}. ({e})"
            ) from e
        graph.outputs = structures.carried(result[0])

    label = getattr(function, "__name__", type(function).__name__)
    # `trace` makes the graph and only then calls `run`: `call` below sees it through the closure.
    graph: FunctionGraph

    def run(*tensors: Tensor) -> None:
        nonlocal graph
        from tensorfleet.graph.scopes import get_default_graph

        graph = get_default_graph()  # type: ignore[assignment]
        # Items of collections outside are found inside; items added inside stay there.
        graph._collections = {key: list(items) for key, items in graph.outer._collections.items()}
        call(*tensors)
        # A captured tensor may be a result, too.
        graph.outputs = [t if t.graph is graph else graph.capture(t) for t in graph.outputs]

    body, _ = trace(run, f"Dataset_{what}_{label}", [(leaf.flat_dtype, leaf.flat_shape) for leaf in flat])
    _warn_of_surprises(body, what, label)
    return Traced(body, result[0])


_EXPERIMENTAL = {"group_by_reducer", "group_by_window", "map_and_batch", "scan", "take_while"}


def _full(what: str) -> str:
    """How users call a transformation."""
    return f"{'tf.data.experimental' if what in _EXPERIMENTAL else 'Dataset'}.{what}()"


def _warn_of_surprises(body: FunctionGraph, what: str, label: str) -> None:
    """Warns when a function makes tables, which nobody will fill, or draws by a seed from around it."""
    if body.get_collection(GraphKeys.TABLE_INITIALIZERS) != body.outer.get_collection(
        GraphKeys.TABLE_INITIALIZERS
    ):
        warnings.warn(
            f"Creating resources inside a function passed to Dataset.{what}() is not supported. Create each resource "
            "outside the function, and capture it inside the function to use it.",
            stacklevel=4,
        )
    if body.seed is not None and body.seed == body.outer.seed and body._seed_used:
        warnings.warn(
            f"Seed {body.seed} from outer graph might be getting used by function {label}, if the random op has not "
            "been provided any seed. Explicitly set the seed in the function if this is not the intended behavior.",
            stacklevel=4,
        )


def as_in_contrib(mapping: Callable[..., Dataset]) -> Callable[..., Dataset]:
    """`map` with the arguments that it had in tf.contrib.data, too."""

    @functools.wraps(mapping)
    def called(
        dataset: Dataset,
        *args: Any,
        num_threads: TensorLike = None,
        output_buffer_size: TensorLike = None,
        **kw: Any,
    ) -> Dataset:
        if num_threads is not None:
            kw.setdefault("num_parallel_calls", num_threads)
        mapped = mapping(dataset, *args, **kw)
        return mapped if output_buffer_size is None else mapped.prefetch(output_buffer_size)

    return called
