"""Functions of TensorFlow 2 in a graph: what they do goes into the graph at each call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorfleet import nest
from tensorfleet.api import export, publish
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, get_default_graph
from tensorfleet.ops.basic import identity
from tensorfleet.ops.function_calls import Defun


@export("python.eager.def_function.function")
def function(
    func: Callable | None = None, input_signature: Any = None, autograph: bool = True, **options: Any
) -> Callable:
    """Calls a Python function in the graph that is the default then. What it changes is done before its results are known.

    Its Python is not rewritten: branches and loops that depend on tensors need `tf.cond` and `tf.while_loop`.
    """

    def decorate(call: Callable) -> Callable:
        @functools.wraps(call)
        def called(*args: Any, **kwargs: Any) -> Any:
            graph = get_default_graph()
            start = len(graph.get_operations())
            result = call(*args, **kwargs)
            changes = [op for op in graph.get_operations()[start:] if _acts(op)]
            if not changes or result is None:
                return result
            with control_dependencies(changes):
                return nest.map_structure(lambda t: identity(t) if isinstance(t, Tensor) else t, result)

        called.python_function = call  # type: ignore[attr-defined]
        called.get_concrete_function = functools.partial(_concrete, call)  # type: ignore[attr-defined]
        return called

    return decorate if func is None else decorate(func)


def _concrete(call: Callable, *args: Any) -> Any:
    """The function for tensors of the types of some arguments, as functional ops take it."""
    given = [a.dtype.base_dtype if hasattr(a, "dtype") else to_tensor(a).dtype for a in nest.flatten(args)]

    def body(*tensors: Any) -> Any:
        return call(*nest.pack_sequence_as(args, tensors))

    return Defun(*given, func_name=f"{call.__name__.strip('<>')}_{id(call)}")(body)


def _acts(op: Operation) -> bool:
    """Whether something would be missing if an operation did not run."""
    return op.spec.stateful and not op.spec.variable and op._control_flow_context is None and not op.outputs


for _name in ("defun", "defun_with_attributes"):
    publish(function, f"python.eager.function.{_name}")
