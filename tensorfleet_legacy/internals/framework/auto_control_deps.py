"""`tensorflow.python.framework.auto_control_deps`: what a block of a program does happens in its order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorfleet.api.functions.ordering import in_order
from tensorfleet.base import nest
from tensorfleet.base.naming import export
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.ops.array.basic import identity

_HERE = "python.framework.auto_control_deps."


@export(_HERE + "AutomaticControlDependencies")
class AutomaticControlDependencies:
    """A block in which operations with effects wait for those before them, and its results for all of them."""

    def __init__(self) -> None:
        self._graph: Graph | None = None
        self._begin = 0
        self._returned: list[Tensor] = []
        self.ops_which_must_run: set[Operation] = set()

    def mark_as_return(self, tensor: Any) -> Any:
        """A result of the block: it is known when everything in the block has happened."""

        def marked(value: Any) -> Tensor:
            result = identity(value)
            self._returned.append(result)
            return result

        return nest.map_structure(marked, tensor, expand_composites=True)

    def __enter__(self) -> AutomaticControlDependencies:
        self._graph = get_default_graph()
        self._begin = len(self._graph._ops)
        return self

    def __exit__(self, *error: Any) -> None:
        graph = self._graph
        assert graph is not None
        if graph is not get_default_graph():
            raise RuntimeError("Graph changed while trying to add control dependencies.")
        if error[0] is not None:
            return
        results = {t._op for t in self._returned}
        inside = [op for op in list(graph._ops)[self._begin :] if op not in results]
        last = in_order(inside)
        self.ops_which_must_run = set(last)
        for result in results:
            missing = [op for op in last if op not in result._control_inputs]
            result._add_control_inputs(missing)


@export(_HERE + "automatic_control_dependencies")
def automatic_control_dependencies(f: Callable) -> Callable:
    """A function whose results are known when all that it does has happened."""

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with AutomaticControlDependencies() as block:
            result = f(*args, **kwargs)
            return nest.map_structure(lambda t: block.mark_as_return(to_tensor(t)), result)

    return wrapped
