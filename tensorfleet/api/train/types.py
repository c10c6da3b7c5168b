"""Types of arguments that many functions about training take. Nothing looks at them at run time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from tensorfleet.api.variables.variable import Variable
    from tensorfleet.base.protos import RunMetadata, RunOptions
    from tensorfleet.graph.graph import Graph
    from tensorfleet.graph.indexed_slices import IndexedSlices
    from tensorfleet.graph.operation import Tensor

#: The path of a file or folder.
PathLike: TypeAlias = "str | os.PathLike[str]"

#: Values by the tensors, or the names of tensors, that they are fed to.
FeedDict: TypeAlias = Mapping[Any, Any]

#: Tensors, operations, variables or their names, in any nesting.
Fetches: TypeAlias = object

#: A number, a tensor, or a function without arguments that gives one of them.
Hyperparameter: TypeAlias = object

#: The gradient of a variable: dense, by rows, or None where the loss does not depend on the variable.
Gradient: TypeAlias = "Tensor | IndexedSlices | None"

#: The pairs that `compute_gradients` gives and `apply_gradients` takes.
GradsAndVars: TypeAlias = "Iterable[tuple[Gradient, Variable]]"

#: A variable, or variables in lists and dictionaries of any depth.
VariableList: TypeAlias = "Variable | Tensor | Sequence[Any] | Mapping[Any, Any]"

#: The variable, or its tensor, that counts steps.
GlobalStep: TypeAlias = "Variable | Tensor"


class AnySession(Protocol):
    """A `tf.Session`, or a session around one, such as a `MonitoredSession`."""

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""

    def run(
        self,
        fetches: Any,
        feed_dict: FeedDict | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs operations and gives the values of tensors."""
